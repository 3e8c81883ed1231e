"""Which pieces of one tree may meet pieces of another: a traversal with the decision at the leaf built in.

One thread takes a cluster of one tree (a single item on CUDA) down the other tree, in preorder with skip pointers; at
a leaf every pair of items whose boxes meet is shown to a `keep` function, and what it keeps is appended. Within one
tree a cluster starts at itself and goes on with what follows it in preorder, so that each pair is seen once.

Most boxes that meet belong to neighbours in a mesh, which share a vertex and are left out. Which ones do is beyond any
prediction, so a CPU tests an item against all eight of a cluster at once, boxes and vertex numbers, without a branch.
On CUDA, where threads are what is many, items are tested one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import warp as wp

from tangere.bvh.lbvh import Lanes, LinearTree, MovingBox, TreeArrays, TreeBoxes, apart_in_lanes, boxes_meet
from tangere.runtime import SOUND, collect, device_of, reserve_slots, shard_ranges

#: Clusters, not items: a cluster's way down a tree takes some 10 us.
GRAIN = 256
#: A sampled unit stops after showing this many pairs: one crowded unit must not hold up the rest. On CUDA a unit is one
#: item, and a launch takes as long as its slowest thread.
SAMPLE_MOST = 256
SAMPLE_MOST_CUDA = 48
ALL = 2**31 - 1
#: Pairs kept per item to make room for at first; more make the traversal run twice.
EXPECTED_PAIRS = 4


@dataclass(frozen=True)
class BvhSide:
    """One partner: a tree, its boxes, and where the vertices its items name begin in the step's arrays."""

    tree: LinearTree
    boxes: TreeBoxes
    base: int


@wp.struct
class SearchedItems:
    """What items are in both trees, where the vertices that they name begin, and what these do in the step."""

    items_a: wp.array2d[int]
    base_a: int
    items_b: wp.array2d[int]
    base_b: int
    start: wp.array[wp.vec3d]
    end: wp.array[wp.vec3d]
    until: wp.float64
    margin: wp.float64


@wp.func
def keep_all(search: SearchedItems, i: int, j: int) -> bool:
    return True


def pairs(
    keep: wp.Function,
    a: BvhSide,
    b: BvhSide,
    start: wp.array,
    end: wp.array,
    *,
    until: float,
    margin: float = 0.0,
    sampled: bool = False,
    sharing: bool = True,
) -> wp.array:
    """Places (i in a, j in b), as vec2i, of the pairs whose boxes meet and that `keep` keeps.

    Args:
        keep: (`SearchedItems`, place i in a, place j in b) -> bool.
        a, b: the same side twice means pairs within it, each once.
        until, margin: handed to `keep`; the boxes were made for them.
        sharing: False leaves out the pairs that have a vertex in common.
        sampled: only the tree's sample of a's units, and of each no more than its first few hundred pairs.
    """
    within = a is b  # not a.tree is b.tree: copies of one part share their trees
    units = a.tree.sample if sampled else a.tree.units
    tree = b.tree
    device = device_of(start)
    most = (SAMPLE_MOST_CUDA if device.is_cuda else SAMPLE_MOST) if sampled else ALL
    none = wp.empty(0, dtype=Lanes, device=device)
    lanes_a, lanes_b = (side.boxes.lanes if device.is_cpu else none for side in (a, b))
    inputs = [
        *(units, int(within), most, int(sharing)),
        *(a.tree.arrays, a.boxes.items, lanes_a, a.base),
        *(tree.arrays, b.boxes.nodes, b.boxes.items, lanes_b, tree.corners, b.base),
        *(start, end, until, margin),
    ]
    shards = 1 if device.is_cuda else len(shard_ranges(len(units), GRAIN))
    expected = EXPECTED_PAIRS * len(a.tree.items) * len(units) // len(a.tree.units) // shards
    kernel = _pairs_kernel(keep, a.tree.items.shape[1], tree.items.shape[1], device.is_cpu)
    return collect(kernel, len(units), inputs, wp.vec2i, device=device, grain=GRAIN, capacity=expected)


@cache
def _pairs_kernel(keep: wp.Function, width_a: int, width_b: int, in_lanes: bool) -> wp.Kernel:
    @wp.func
    def sharing_in_lanes(items_a: wp.array2d[int], i: int, shift: int, corners_b: wp.array2d[Lanes], k: int):
        """Positive in the lanes of cluster k whose item has a vertex in common with item i."""
        nearest = wp.abs(corners_b[k, 0] - Lanes(items_a[i, 0] + shift))
        for c in range(wp.static(width_a)):
            own = Lanes(items_a[i, c] + shift)
            for d in range(wp.static(width_b)):
                nearest = wp.min(nearest, wp.abs(corners_b[k, d] - own))
        return Lanes(1) - nearest

    @wp.func
    def shares_vertex(items_a: wp.array2d[int], i: int, shift: int, items_b: wp.array2d[int], j: int) -> bool:
        shared = int(0)
        for c in range(wp.static(width_a)):
            for d in range(wp.static(width_b)):
                shared = shared | int(items_a[i, c] + shift == items_b[j, d])
        return shared == 1

    @wp.kernel(module="unique", module_options=SOUND)
    def tree_pairs(
        first: int,
        shard: int,
        units: wp.array[wp.vec3i],
        within: int,
        most: int,
        sharing: int,
        tree_a: TreeArrays,
        boxes_a: wp.array[MovingBox],
        lanes_a: wp.array[Lanes],
        base_a: int,
        tree: TreeArrays,
        nodes: wp.array[MovingBox],
        boxes_b: wp.array[MovingBox],
        lanes_b: wp.array[Lanes],
        corners_b: wp.array2d[Lanes],
        base_b: int,
        start: wp.array[wp.vec3d],
        end: wp.array[wp.vec3d],
        until: wp.float64,
        margin: wp.float64,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.vec2i],
    ):
        unit = units[first + wp.tid()]
        search = SearchedItems()
        search.items_a = tree_a.items
        search.base_a = base_a
        search.items_b = tree.items
        search.base_b = base_b
        search.start = start
        search.end = end
        search.until = until
        search.margin = margin
        whole = boxes_a[unit[0]]
        for i in range(unit[0] + 1, unit[1] + 1):
            whole = wp.min(whole, boxes_a[i])
        own = int(-1)
        node = int(0)
        if within == 1:
            own = unit[2]
            node = unit[2]
        shown = int(0)
        while node < tree.skip.shape[0] and shown < most:
            if not boxes_meet(whole, nodes[node]):
                node = tree.skip[node]
            elif tree.cluster[node] < 0:
                node = node + 1
            else:
                if wp.static(in_lanes):
                    begin = tree.first[node]
                    items_apart = Lanes()
                    if unit[1] > unit[0]:
                        items_apart = apart_in_lanes(nodes[node], lanes_a, 12 * tree_a.cluster[unit[2]])
                    for i in range(unit[0], unit[1] + 1):
                        if items_apart[i - unit[0]] <= 0:
                            barred = apart_in_lanes(boxes_a[i], lanes_b, 12 * tree.cluster[node])
                            if sharing == 0:
                                barred = wp.max(
                                    barred,
                                    sharing_in_lanes(tree_a.items, i, base_a - base_b, corners_b, tree.cluster[node]),
                                )
                            if wp.min(barred) <= 0:
                                after = begin
                                if node == own:
                                    after = i + 1
                                for j in range(after, tree.last[node] + 1):
                                    if barred[j - begin] <= 0:
                                        shown += 1
                                        if keep(search, i, j):
                                            slot = reserve_slots(counts, shard, 1, capacity)
                                            if slot >= 0:
                                                out[slot] = wp.vec2i(i, j)
                else:
                    box = boxes_a[unit[0]]
                    begin = tree.first[node]
                    if node == own:
                        begin = unit[0] + 1
                    for j in range(begin, tree.last[node] + 1):
                        if boxes_meet(box, boxes_b[j]):
                            if sharing == 1 or not shares_vertex(tree_a.items, unit[0], base_a - base_b, tree.items, j):
                                shown += 1
                                if keep(search, unit[0], j):
                                    slot = reserve_slots(counts, shard, 1, capacity)
                                    if slot >= 0:
                                        out[slot] = wp.vec2i(unit[0], j)
                node = tree.skip[node]

    return tree_pairs
