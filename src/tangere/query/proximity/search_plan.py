"""What is searched for among what: a plan of searches through trees over vertices, edges and faces.

If all meshes of a scene are compared with each other and themselves they share one tree of each kind, and two searches
find everything: vertices among faces, and edges among edges; else every pair of meshes is searched by itself. Within
one tree an item is compared with what follows it, so each pair is seen once. CPUs search by eights (`eights_search`),
CUDA item by item (`linear_search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces, every_job
from tangere.query.proximity.cpu.bvh8 import Bvh8Boxes
from tangere.query.proximity.cpu.narrow_phase import lanes_by_mask, near_in_bvh8, scratch_of
from tangere.query.proximity.cpu.parallel_sort import Ranges
from tangere.query.proximity.cuda.lbvh import CudaLbvhBoxes
from tangere.query.proximity.cuda.narrow_phase import near_one_by_one
from tangere.query.proximity.feature_trees import FeatureTrees, Placed, Tree
from tangere.query.proximity.pair_keys import number_bits

__all__ = ["EXPECTED", "Branch", "PlannedSearch", "PlannedSide", "SearchPlan"]

#: Contacts per item to make room for at first; more make the traversal run twice.
EXPECTED = 4

TreesOf = Callable[[Surfaces, int | None], FeatureTrees]


@dataclass(frozen=True)
class PlannedSide:
    """One partner of a search: some features of a mesh, or of all, at an instant."""

    trees: FeatureTrees
    placed: Placed
    kind: str  #: "vertices", "edges" or "faces"
    boxes: Bvh8Boxes | CudaLbvhBoxes

    @staticmethod
    def of(trees: FeatureTrees, placed: Placed, kind: str) -> PlannedSide:
        """Some features of trees, with room for boxes; on CUDA those of vertices are made when they are placed."""
        tree: Tree = getattr(trees, kind)
        return PlannedSide(trees, placed, kind, placed.vertices if kind == "vertices" else tree.boxes())


@dataclass(frozen=True)
class PlannedSearch:
    """One traversal: the features of one tree among those of another, or among themselves."""

    kernel: wp.Kernel
    dim: int
    inputs: list[Any]  #: after them an appending kernel takes counts, capacity and out: the names
    expected: int  #: names to make room for at first
    meeting: list[Any] = field(default_factory=list)  #: on CPU, inputs of `cluster_pairs.meet`, which goes before
    scratch: int = 0  #: numbers that each CPU thread needs for itself
    boxes: tuple[Bvh8Boxes, ...] = ()  #: on CPU, of both trees

    @staticmethod
    def of(layout: Layout, a: PlannedSide, b: PlannedSide, distance: float) -> PlannedSearch:
        """A search for names of pairs nearer than `distance` [m]; within a tree if both sides have the same one."""
        how = [int(a.boxes is b.boxes), int(a.trees is b.trees)]
        last = [layout.vertex_body, layout.body, distance, wp.int64(number_bits(layout))]
        if isinstance(a.boxes, Bvh8Boxes) and isinstance(b.boxes, Bvh8Boxes):
            one, other = a.boxes.of, b.boxes.of
            meeting = [how[0], a.boxes.clusters, b.boxes.rows, other.levels, lanes_by_mask()]
            ranges = Ranges.of(layout)
            inputs = [
                *how,
                *(one.items, one.numbers, a.boxes.rows, a.placed.positions),
                *(other.items, other.numbers, b.boxes.clusters, b.boxes.rows, b.placed.positions),
                *(other.corners, *last, lanes_by_mask(), ranges.width, ranges.of_vertices),
            ]
            kernel = near_in_bvh8(one.items.shape[1], other.items.shape[1])
            return PlannedSearch(
                kernel, one.groups, inputs, EXPECTED * one.count, meeting, scratch_of(other), (a.boxes, b.boxes)
            )
        assert isinstance(a.boxes, CudaLbvhBoxes)
        assert isinstance(b.boxes, CudaLbvhBoxes)
        one, other = a.boxes.of, b.boxes.of
        inputs = [
            *(one.tree.units, *how),
            *(one.tree.items, one.numbers, a.boxes.items, a.placed.positions),
            *(other.tree.items, other.numbers, b.boxes.items, b.placed.positions, b.boxes.records, *last),
        ]
        kernel = near_one_by_one(one.tree.items.shape[1], other.tree.items.shape[1])
        return PlannedSearch(kernel, len(one.numbers), inputs, EXPECTED * len(one.numbers))


@dataclass(frozen=True)
class Branch:
    """Searches for one kind of contact, and the sides that no other kind needs."""

    sides: list[PlannedSide] = field(default_factory=list)
    searches: list[PlannedSearch] = field(default_factory=list)

    def fit(self) -> None:
        """On CUDA, make the boxes for where the vertices are placed; those of vertices are there already."""
        for side in self.sides:
            if isinstance(side.boxes, CudaLbvhBoxes) and side.kind != "vertices":
                assert isinstance(side.placed.vertices, CudaLbvhBoxes)
                side.boxes.fit(side.placed.vertices.items)


@dataclass(frozen=True)
class SearchPlan:
    """All searches of a scene."""

    bodies: dict[int | None, tuple[FeatureTrees, Placed]]  #: of one mesh, or of all (None)
    edges: Branch
    vertices: Branch

    @staticmethod
    def of(surfaces: Surfaces, jobs: np.ndarray, distance: float, trees: TreesOf = FeatureTrees.of) -> SearchPlan:
        """What finds all pairs of features without a common vertex that are nearer than `distance` [m].

        Args:
            jobs: (k, 2) meshes to compare, a <= b, each pair once; a mesh with itself is (a, a).
            trees: makes the trees of one mesh, or of all.
        """
        plan, sides = SearchPlan({}, Branch(), Branch()), {}
        for a, b, one, other in _searches(jobs, len(surfaces.meshes)):
            branch: Branch = getattr(plan, one)
            for body, kind in ((a, one), (b, other)):
                if body not in plan.bodies:
                    ordered = trees(surfaces, body)
                    plan.bodies[body] = (ordered, Placed.empty(ordered))
                if (body, kind) not in sides:
                    sides[body, kind] = PlannedSide.of(*plan.bodies[body], kind)
                    branch.sides.append(sides[body, kind])
            branch.searches.append(PlannedSearch.of(surfaces.layout, sides[a, one], sides[b, other], distance))
        return plan

    def is_current(self, surfaces: Surfaces) -> bool:
        """Whether its trees are those that are kept with the topologies, and not yet to be ordered anew."""
        return all(FeatureTrees.of(surfaces, body) is trees for body, (trees, _) in self.bodies.items())


def _searches(jobs: np.ndarray, bodies: int) -> list[tuple[int | None, int | None, str, str]]:
    """Which features of which meshes (None: of all) are searched for among which."""
    if len(jobs) == len(every_job(bodies)):
        return [(None, None, "edges", "edges"), (None, None, "vertices", "faces")]
    planned: list[tuple[int | None, int | None, str, str]] = []
    for a, b in jobs.tolist():
        planned += [(a, b, "edges", "edges"), (a, b, "vertices", "faces")]
        if a != b:
            planned.append((b, a, "vertices", "faces"))
    return planned
