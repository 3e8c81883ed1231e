"""What is searched for among what: a plan of searches through trees over vertices, edges and faces.

If all meshes of a scene are compared with each other and themselves they share one tree of each kind, and two searches
find everything: vertices among faces, and edges among edges; else every pair of meshes is searched by itself. Within
one tree an item is compared with what follows it, so each pair is seen once. CPUs search by eights (`cpu`),
CUDA item by item (`cuda`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Surfaces, every_job
from tangere.bvh.wide import WideBvhBoxes
from tangere.query.proximity.cuda.lbvh import CudaLbvhBoxes
from tangere.query.proximity.engine import engine_of
from tangere.query.proximity.feature_trees import FeatureTrees, PlacedVertices, Tree

#: Contacts per item to make room for at first; more make the traversal run twice.
EXPECTED = 4

TreesOf = Callable[[Surfaces, int | None], FeatureTrees]


@dataclass(frozen=True)
class PlannedSide:
    """One partner of a search: some features of a mesh, or of all, at an instant."""

    trees: FeatureTrees
    placed: PlacedVertices
    kind: str  #: "vertices", "edges" or "faces"
    boxes: WideBvhBoxes | CudaLbvhBoxes

    @staticmethod
    def of(trees: FeatureTrees, placed: PlacedVertices, kind: str) -> PlannedSide:
        """Some features of trees, with room for boxes; on CUDA those of vertices are made when they are placed."""
        tree: Tree = getattr(trees, kind)
        return PlannedSide(trees, placed, kind, placed.vertices if kind == "vertices" else tree.boxes())


@dataclass(frozen=True)
class PlannedSearch:
    """One traversal: the features of one tree among those of another, or among themselves."""

    kernel: wp.Kernel
    dim: int
    inputs: list[Any]  #: after them an appending kernel takes counts, capacity and out: the keys
    expected: int  #: keys to make room for at first
    meeting: list[Any] = field(default_factory=list)  #: on CPU, inputs of the search for clusters that goes before
    scratch: int = 0  #: numbers that each CPU thread needs for itself
    boxes: tuple[WideBvhBoxes, ...] = ()  #: on CPU, of both trees


@dataclass(frozen=True)
class Branch:
    """Searches for one kind of contact, and the sides that no other kind needs."""

    sides: list[PlannedSide] = field(default_factory=list)
    searches: list[PlannedSearch] = field(default_factory=list)

    def fit(self, stream: wp.Stream | None = None) -> None:
        """On CUDA, make the boxes for where the vertices are placed; those of vertices are there already."""
        for side in self.sides:
            if isinstance(side.boxes, CudaLbvhBoxes) and side.kind != "vertices":
                assert isinstance(side.placed.vertices, CudaLbvhBoxes)
                side.boxes.fit(side.placed.vertices.items, stream)


@dataclass(frozen=True)
class SearchPlan:
    """All searches of a scene."""

    bodies: dict[int | None, tuple[FeatureTrees, PlacedVertices]]  #: of one mesh, or of all (None)
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
                    plan.bodies[body] = (ordered, PlacedVertices.empty(ordered))
                if (body, kind) not in sides:
                    sides[body, kind] = PlannedSide.of(*plan.bodies[body], kind)
                    branch.sides.append(sides[body, kind])
            plan_search = engine_of(surfaces.device).plan_search
            branch.searches.append(plan_search(surfaces.layout, sides[a, one], sides[b, other], distance))
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
