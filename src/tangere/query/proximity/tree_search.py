"""Near features by trees over vertices, edges and faces: the distance is tested inside the traversal.

No candidate is stored: what is appended is the name of a pair that is near (specs/leonard-deformable-gpu C21.7,
F-L-60). If all meshes of a scene are compared with each other and themselves they share one tree of each kind, and two
searches find everything: vertices among faces, and edges among edges; else every pair of meshes is searched by itself.

One thread takes a cluster of one tree (an item, on CUDA) down the other in preorder with skip pointers. Within one tree
it starts at itself and goes on with what follows, so each pair is seen once. Most boxes that meet belong to neighbours,
which share a vertex and are left out; which ones is beyond any prediction, so a CPU compares an item with all eight of
a cluster at once, boxes and vertex numbers, without a branch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.bound import Lanes
from tangere.partition.broad_phase_boxes import EMPTY, every_job
from tangere.partition.pipeline_surfaces import Layout, Surfaces
from tangere.query.proximity.feature_trees import (
    SIZE_BITS,
    FeatureBoxes,
    FeatureTree,
    FeatureTrees,
    Placed,
    place_vertices,
)
from tangere.query.proximity.lanes import lanes_meeting, lanes_sharing, lowest_bit, node_apart
from tangere.query.proximity.near import EDGE_EDGE, VERTEX_FACE, name_of, number_bits
from tangere.query.proximity.primitives import edges_near, face_near
from tangere.query.proximity.records import Record, records_meet
from tangere.runtime import SOUND, collect, device_of, shard_ranges, take

__all__ = ["Search", "Side", "joined", "plan_searches", "search_trees"]

#: Clusters, not items: a cluster's way down a tree takes some 5 us.
GRAIN = 256
#: Contacts per item to make room for at first; more make the traversal run twice.
EXPECTED = 4


@dataclass(frozen=True)
class Side:
    """One partner of a search: some features of a mesh, or of all, at an instant."""

    trees: FeatureTrees
    placed: Placed
    tree: FeatureTree
    boxes: FeatureBoxes

    @staticmethod
    def of(trees: FeatureTrees, placed: Placed, kind: str) -> Side:
        """The "vertices", "edges" or "faces" of trees, with room for boxes."""
        tree: FeatureTree = getattr(trees, kind)
        boxes = FeatureBoxes.empty(tree)
        if kind == "vertices":
            boxes = replace(boxes, items=placed.boxes)  # their places are their order
        return Side(trees, placed, tree, boxes)

    def fit(self) -> None:
        """Make the boxes for where the vertices are placed."""
        vertices = self.tree is self.trees.vertices
        if not (vertices and device_of(self.tree.numbers).is_cuda):  # where threads take items no one asks for more
            self.tree.fit(self.placed.boxes, self.boxes)


@dataclass(frozen=True)
class Search:
    """One traversal: the features of one tree among those of another, or among themselves."""

    kernel: wp.Kernel
    dim: int
    inputs: list[Any]  #: after them an appending kernel takes counts, capacity and out: the names
    expected: int  #: names to make room for at first

    @staticmethod
    def of(layout: Layout, a: Side, b: Side, distance: float) -> Search:
        """A search for names of pairs nearer than `distance` [m]; within a tree if both sides have the same one."""
        on_cpu = device_of(a.tree.numbers).is_cpu
        one, other = a.tree.tree, b.tree.tree
        units = one.clusters if on_cpu else one.units
        inputs = [
            *(units, int(one is other), int(a.trees is b.trees)),
            *(one.items, a.tree.numbers, a.boxes.items, a.boxes.lanes, one.first, one.last, a.placed.positions),
            *(other.items, b.tree.numbers, b.boxes.items, b.boxes.lanes, other.first, other.last, b.placed.positions),
            *(b.boxes.records, other.corners, layout.vertex_body, layout.body),
            *(distance, wp.int64(number_bits(layout))),
        ]
        kernel = _near_kernel(one.items.shape[1], other.items.shape[1], on_cpu)
        return Search(kernel, len(units), inputs, EXPECTED * len(one.items))

    def run(self, device: wp.Device) -> wp.array:
        """The names of all pairs found, in any order."""
        shards = 1 if device.is_cuda else len(shard_ranges(self.dim, GRAIN))
        room = self.expected // shards
        return collect(self.kernel, self.dim, self.inputs, wp.int64, device=device, grain=GRAIN, capacity=room)


def plan_searches(jobs: np.ndarray, bodies: int) -> list[tuple[int | None, int | None, str, str]]:
    """Which features of which meshes (None: of all) are searched for among which."""
    if len(jobs) == len(every_job(bodies)):
        return [(None, None, "edges", "edges"), (None, None, "vertices", "faces")]
    planned: list[tuple[int | None, int | None, str, str]] = []
    for a, b in jobs.tolist():
        planned += [(a, b, "edges", "edges"), (a, b, "vertices", "faces")]
        if a != b:
            planned.append((b, a, "vertices", "faces"))
    return planned


def search_trees(surfaces: Surfaces, jobs: np.ndarray, distance: float) -> wp.array:
    """Names of all pairs of features without a common vertex that are nearer than `distance`, in any order.

    Args:
        jobs: (k, 2) meshes to compare, a <= b, each pair once; a mesh with itself is (a, a).
    """
    bodies: dict[int | None, tuple[FeatureTrees, Placed]] = {}
    sides: dict[tuple[int | None, str], Side] = {}

    def side(body: int | None, kind: str) -> Side:
        if body not in bodies:
            trees = FeatureTrees.of(surfaces, body)
            bodies[body] = (trees, place_vertices(trees, surfaces.positions, distance, surfaces.frame))
        if (body, kind) not in sides:
            sides[body, kind] = Side.of(*bodies[body], kind)
            sides[body, kind].fit()
        return sides[body, kind]

    plan = plan_searches(jobs, len(surfaces.meshes))
    searches = [Search.of(surfaces.layout, side(a, one), side(b, other), distance) for a, b, one, other in plan]
    return joined([search.run(surfaces.device) for search in searches], surfaces.device)


def joined(parts: list[wp.array], device: wp.Device) -> wp.array:
    """The names of all parts in one array."""
    whole = wp.empty(sum(map(len, parts)), dtype=wp.int64, device=device)
    at = 0
    for part in parts:
        if len(part):
            wp.copy(whole, part, dest_offset=at, count=len(part))
        at += len(part)
    return whole


@cache
def _near_kernel(width_a: int, width_b: int, in_lanes: bool) -> wp.Kernel:
    """Edges among edges (2, 2), or vertices among faces (1, 3)."""

    @wp.func
    def shares_vertex(items_a: wp.array2d[int], i: int, items_b: wp.array2d[int], j: int) -> bool:
        shared = int(0)
        for c in range(wp.static(width_a)):
            for d in range(wp.static(width_b)):
                shared = shared | int(items_a[i, c] == items_b[j, d])
        return shared == 1

    @wp.func
    def is_near(
        items_a: wp.array2d[int],
        i: int,
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        j: int,
        positions_b: wp.array[wp.vec3d],
        swap: bool,
        distance: wp.float64,
    ) -> bool:
        """Whether a pair is near; `swap` asks for the second edge first."""
        if wp.static(width_a == 1):
            p = positions_a[items_a[i, 0]]
            a = positions_b[items_b[j, 0]]
            b = positions_b[items_b[j, 1]]
            c = positions_b[items_b[j, 2]]
            return face_near(p, a, b, c, distance)
        else:
            a0 = positions_a[items_a[i, 0]]
            a1 = positions_a[items_a[i, 1]]
            b0 = positions_b[items_b[j, 0]]
            b1 = positions_b[items_b[j, 1]]
            return edges_near(a0, a1, b0, b1, swap, distance)

    @wp.func
    def name_at(a: int, b: int, vertex_body: wp.array[int], face_body: wp.array[int], bits: wp.int64) -> wp.int64:
        if wp.static(width_a == 1):
            return name_of(VERTEX_FACE, int(vertex_body[a] > face_body[b]), a, b, bits)
        else:
            return name_of(EDGE_EDGE, 0, wp.min(a, b), wp.max(a, b), bits)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_in_lanes(
        first: int,
        shard: int,
        units: wp.array[int],
        within: int,
        related: int,
        items_a: wp.array2d[int],
        numbers_a: wp.array[int],
        boxes_a: wp.array[Record],
        lanes_a: wp.array2d[Lanes],
        first_a: wp.array[int],
        last_a: wp.array[int],
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        numbers_b: wp.array[int],
        boxes_b: wp.array[Record],
        lanes_b: wp.array2d[Lanes],
        first_b: wp.array[int],
        last_b: wp.array[int],
        positions_b: wp.array[wp.vec3d],
        nodes: wp.array[Record],
        corners_b: wp.array2d[Lanes],
        vertex_body: wp.array[int],
        face_body: wp.array[int],
        distance: wp.float64,
        bits: wp.int64,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.int64],
    ):
        u = first + wp.tid()
        begin = first_a[units[u]]
        end = last_a[units[u]]
        whole = boxes_a[begin]
        for i in range(begin + 1, end + 1):
            whole = wp.min(whole, boxes_a[i])
        own = int(-1)
        node = int(0)
        if within == 1:
            own = units[u]
            node = units[u]
        turned = Record(whole[3], whole[4], whole[5], whole[0], whole[1], whole[2], -EMPTY, -EMPTY)
        while node < nodes.shape[0]:
            if node_apart(turned, nodes, node):
                node = nodes[node][6]
            elif nodes[node][7] < 0:
                node = node + 1
            else:
                k = nodes[node][7]
                mine = lanes_meeting(nodes, node, lanes_a, u)
                while mine != 0:
                    i = begin + lowest_bit(mine)
                    mine = mine & (mine - 1)
                    theirs = lanes_meeting(boxes_a, i, lanes_b, k)
                    if related == 1:
                        theirs = theirs & ~lanes_sharing(items_a, width_a, i, corners_b, width_b, k)
                    if node == own:
                        theirs = theirs & (-2 << (i - begin))  # those after i
                    while theirs != 0:
                        j = first_b[node] + lowest_bit(theirs)
                        theirs = theirs & (theirs - 1)
                        a = numbers_a[i]
                        b = numbers_b[j]
                        if is_near(items_a, i, positions_a, items_b, j, positions_b, b < a, distance):
                            place = take(counts, shard, 1, capacity)
                            if place >= 0:
                                out[place] = name_at(a, b, vertex_body, face_body, bits)
                node = nodes[node][6]

    @wp.kernel(module="unique", module_options=SOUND)
    def near_one_by_one(
        first: int,
        shard: int,
        units: wp.array[wp.vec3i],
        within: int,
        related: int,
        items_a: wp.array2d[int],
        numbers_a: wp.array[int],
        boxes_a: wp.array[Record],
        lanes_a: wp.array2d[Lanes],
        first_a: wp.array[int],
        last_a: wp.array[int],
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        numbers_b: wp.array[int],
        boxes_b: wp.array[Record],
        lanes_b: wp.array2d[Lanes],
        first_b: wp.array[int],
        last_b: wp.array[int],
        positions_b: wp.array[wp.vec3d],
        nodes: wp.array[Record],
        corners_b: wp.array2d[Lanes],
        vertex_body: wp.array[int],
        face_body: wp.array[int],
        distance: wp.float64,
        bits: wp.int64,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.int64],
    ):
        unit = units[first + wp.tid()]
        i = unit[0]
        box = boxes_a[i]
        own = int(-1)
        node = int(0)
        if within == 1:
            own = unit[2]
            node = unit[2]
        while node < nodes.shape[0]:
            record = nodes[node]
            if not records_meet(box, record):
                node = record[6]
            elif record[7] < 0:
                node = node + 1
            else:
                begin = record[7] >> SIZE_BITS
                end = begin + (record[7] & ((1 << SIZE_BITS) - 1))
                if node == own:
                    begin = i + 1
                for j in range(begin, end):
                    if records_meet(box, boxes_b[j]):
                        if related == 0 or not shares_vertex(items_a, i, items_b, j):
                            a = numbers_a[i]
                            b = numbers_b[j]
                            if is_near(items_a, i, positions_a, items_b, j, positions_b, b < a, distance):
                                place = take(counts, shard, 1, capacity)
                                if place >= 0:
                                    out[place] = name_at(a, b, vertex_body, face_body, bits)
                node = record[6]

    return near_in_lanes if in_lanes else near_one_by_one
