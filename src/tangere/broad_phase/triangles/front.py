"""Broad phase with memory: the next search of a tree starts where the last one ended (a BVTT front).

A search of a tree with itself ends at pairs of nodes that are apart, or at pairs of clusters. When things move little
these pairs are almost the same in the next step: only they are tested, and opened where boxes have come to overlap
(Léonard 2021, section 2.3, surveys it). Pairs are never closed again; when there are twice as many as a search from the
root would leave, the front starts afresh. One tree holds the triangles of all bodies of a scene; tree and front are
kept with its topologies, so that `broad_phase="front"` finds them at the next step.
Known as: BVTT front (Li and Chen 1998; Ehmann and Lin 2001).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.broad_phase.triangles.triangle_aabbs import compared_bodies, may_pair
from tangere.bvh.lbvh import LinearTree, MovingBox, TreeArrays, TreeBoxes, boxes_meet
from tangere.runtime import SOUND, collect, device_of, reserve_slots

wp.set_module_options(SOUND)

#: What became of a pair of nodes.
APART = wp.constant(0)
CLUSTERS = wp.constant(1)
OPENED = wp.constant(2)
#: A front this many times larger than a fresh one starts afresh.
GROWTH = 2.0


def front_pairs(surfaces: Surfaces, distance: float, jobs: np.ndarray) -> wp.array:
    """All pairs (i, j), i < j, of triangles of compared bodies whose boxes overlap, in any order.

    Args:
        distance: boxes are grown by half of it [m].
        jobs: (k, 2) meshes to compare; a mesh with itself is (a, a).
    """
    layout, device = surfaces.layout, surfaces.device
    known: BvhFront | None = layout.cache.pop("front", None)  # while one thread has it, another begins at the root
    tree = _built(surfaces) if known is None else known.tree
    boxes = tree.fit(surfaces.vertex_boxes(distance))
    front = layout.cache["front"] = BvhFront.from_root(tree, boxes) if known is None else known.moved(boxes)
    compared = layout.for_jobs("compared", jobs, lambda: compared_bodies(jobs, len(surfaces.meshes), device))
    inputs = [front.nodes, boxes.items, tree.arrays, layout.body, compared]
    return collect(_item_pairs, len(front.nodes), inputs, wp.vec2i, device=device)


@dataclass(frozen=True)
class BvhFront:
    """Pairs of nodes of one tree, between which lie all pairs of its items."""

    tree: LinearTree
    nodes: wp.array  #: (k,) vec3i: node, node, APART or CLUSTERS
    fresh: int  #: how many there were after the last search from the root
    tests: int  #: pairs of nodes tested in the last search

    @staticmethod
    def from_root(tree: LinearTree, boxes: TreeBoxes) -> BvhFront:
        """A search that knows nothing yet; boxes as `tree.fit` makes them."""
        nodes, tests = _expanded(tree, boxes, np.zeros((1, 3), np.int32))
        return BvhFront(tree, nodes, len(nodes), tests)

    def moved(self, boxes: TreeBoxes) -> BvhFront:
        """The search with new boxes of the same tree, from where this one ended."""
        nodes, tests = _expanded(self.tree, boxes, self.nodes.numpy())
        if len(nodes) > GROWTH * self.fresh:
            again = BvhFront.from_root(self.tree, boxes)
            return BvhFront(self.tree, again.nodes, again.fresh, tests + again.tests)
        return BvhFront(self.tree, nodes, self.fresh, tests)


def _built(surfaces: Surfaces) -> LinearTree:
    """A tree of all triangles, ordered by where they are."""
    bounds = np.array([mesh.bounds for mesh in surfaces.meshes])
    hull = np.stack([bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)])
    return LinearTree.build(surfaces.layout.faces, surfaces.positions, hull)


def _expanded(tree: LinearTree, boxes: TreeBoxes, start: np.ndarray) -> tuple[wp.array, int]:
    """Pairs of nodes that need not be opened, from a front that may, and how many were tested."""
    device = device_of(tree.items)
    open_pairs = wp.array(start, dtype=wp.vec3i, device=device)
    final, tests = [], 0
    while len(open_pairs):
        tests += len(open_pairs)
        inputs = [open_pairs, boxes.nodes, tree.arrays]
        found = collect(_open, len(open_pairs), inputs, wp.vec3i, device=device).numpy().reshape(-1, 3)
        final.append(found[found[:, 2] != OPENED])
        open_pairs = wp.array(found[found[:, 2] == OPENED], dtype=wp.vec3i, device=device)
    return wp.array(np.concatenate(final), dtype=wp.vec3i, device=device), tests


@wp.kernel
def _open(
    first: int,
    shard: int,
    pairs: wp.array[wp.vec3i],
    boxes: wp.array[MovingBox],
    tree: TreeArrays,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """A pair that is apart, or of clusters, stays; any other is replaced by pairs with the children of the larger."""
    k = first + wp.tid()
    a = pairs[k][0]
    b = pairs[k][1]
    state = int(APART)
    amount = int(1)
    if a == b or boxes_meet(boxes[a], boxes[b]):
        state = CLUSTERS
        if tree.cluster[a] < 0 or tree.cluster[b] < 0:
            state = OPENED
            amount = 2
            if a == b:
                amount = 3
    slot = reserve_slots(counts, shard, amount, capacity)
    if slot < 0:
        return
    if state != OPENED:
        out[slot] = wp.vec3i(a, b, state)
    elif a == b:
        out[slot] = wp.vec3i(a + 1, a + 1, OPENED)
        out[slot + 1] = wp.vec3i(a + 1, tree.skip[a + 1], OPENED)
        out[slot + 2] = wp.vec3i(tree.skip[a + 1], tree.skip[a + 1], OPENED)
    elif tree.cluster[b] >= 0 or (tree.cluster[a] < 0 and tree.last[a] - tree.first[a] >= tree.last[b] - tree.first[b]):
        out[slot] = wp.vec3i(a + 1, b, OPENED)
        out[slot + 1] = wp.vec3i(tree.skip[a + 1], b, OPENED)
    else:
        out[slot] = wp.vec3i(a, b + 1, OPENED)
        out[slot + 1] = wp.vec3i(a, tree.skip[b + 1], OPENED)


@wp.kernel
def _item_pairs(
    first: int,
    shard: int,
    pairs: wp.array[wp.vec3i],
    boxes: wp.array[MovingBox],
    tree: TreeArrays,
    body: wp.array[int],
    compared: wp.array2d[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    k = first + wp.tid()
    if pairs[k][2] != CLUSTERS:
        return
    a = pairs[k][0]
    b = pairs[k][1]
    for i in range(tree.first[a], tree.last[a] + 1):
        begin = tree.first[b]
        if a == b:
            begin = i + 1
        for j in range(begin, tree.last[b] + 1):
            if boxes_meet(boxes[i], boxes[j]) and may_pair(tree.order[i], tree.order[j], body, compared):
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    one = tree.order[i]
                    other = tree.order[j]
                    out[slot] = wp.vec2i(wp.min(one, other), wp.max(one, other))
