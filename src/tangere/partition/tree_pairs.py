"""Which pieces of one tree may meet pieces of another: a traversal with the decision at the leaf built in.

One thread takes a cluster of one tree (a single item on CUDA) down the other tree, in preorder with skip pointers; at
a leaf every pair of items whose boxes meet is shown to a `keep` function, and what it keeps is appended. Within one
tree a cluster starts at itself and goes on with what follows it in preorder, so that each pair is seen once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import warp as wp

from tangere.bound import CLUSTER, LinearTree, TreeBoxes, boxes_meet, boxes_meet_flag
from tangere.runtime import SOUND, collect, device_of, shard_ranges, take

__all__ = ["Side", "pairs"]

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
class Side:
    """One partner: a tree, its boxes, and where the vertices its items name begin in the step's arrays."""

    tree: LinearTree
    boxes: TreeBoxes
    base: int


def pairs(
    keep: wp.Function,
    a: Side,
    b: Side,
    start: wp.array,
    end: wp.array,
    *,
    until: float,
    margin: float = 0.0,
    sampled: bool = False,
    shares: wp.Function | None = None,
) -> wp.array:
    """Places (i in a, j in b), as vec2i, of the pairs whose boxes meet and that `keep` keeps.

    Args:
        keep: (items of a, place i, base of a, items of b, place j, base of b, start, end, until, margin) -> bool.
        a, b: the same side twice means pairs within it, each once.
        until, margin: handed to `keep`; the boxes were made for them.
        shares: (items of a, place i, base of a, items of b, place j, base of b) -> 1 if they share a vertex, else 0;
            such pairs are left out. None means that none do.
        sampled: only the tree's sample of a's units, and of each no more than its first few hundred pairs.
    """
    within = a is b  # not a.tree is b.tree: copies of one part share their trees
    units = a.tree.sample if sampled else a.tree.units
    tree = b.tree
    device = device_of(start)
    most = (SAMPLE_MOST_CUDA if device.is_cuda else SAMPLE_MOST) if sampled else ALL
    inputs = [
        *(units, int(within), most),
        *(a.tree.items, a.boxes.items, a.base),
        *(tree.first, tree.last, tree.skip, b.boxes.nodes),
        *(tree.items, b.boxes.items, b.base),
        *(start, end, until, margin),
    ]
    shards = 1 if device.is_cuda else len(shard_ranges(len(units), GRAIN))
    expected = EXPECTED_PAIRS * len(a.tree.items) * len(units) // len(a.tree.units) // shards
    kernel = _pairs_kernel(keep, shares or nothing_shared)
    return collect(kernel, len(units), inputs, wp.vec2i, device=device, grain=GRAIN, capacity=expected)


@wp.func
def nothing_shared(items_a: wp.array2d[int], i: int, base_a: int, items_b: wp.array2d[int], j: int, base_b: int) -> int:
    return 0


@cache
def _pairs_kernel(keep: wp.Function, shares: wp.Function) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def tree_pairs(
        first: int,
        shard: int,
        units: wp.array[wp.vec3i],
        within: int,
        most: int,
        items_a: wp.array2d[int],
        boxes_a: wp.array[wp.vec3],
        base_a: int,
        node_first: wp.array[int],
        node_last: wp.array[int],
        skip: wp.array[int],
        nodes: wp.array[wp.vec3],
        items_b: wp.array2d[int],
        boxes_b: wp.array[wp.vec3],
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
        lower = boxes_a[2 * unit[0]]
        upper = boxes_a[2 * unit[0] + 1]
        for i in range(unit[0] + 1, unit[1] + 1):
            lower = wp.min(lower, boxes_a[2 * i])
            upper = wp.max(upper, boxes_a[2 * i + 1])
        own = int(-1)
        node = int(0)
        if within == 1:
            own = unit[2]
            node = unit[2]
        shown = int(0)
        while node < skip.shape[0] and shown < most:
            node_lower = nodes[2 * node]
            node_upper = nodes[2 * node + 1]
            if not boxes_meet(lower, upper, node_lower, node_upper):
                node = skip[node]
            elif node_last[node] - node_first[node] >= CLUSTER:
                node = node + 1
            else:
                for i in range(unit[0], unit[1] + 1):
                    lower_i = boxes_a[2 * i]
                    upper_i = boxes_a[2 * i + 1]
                    if boxes_meet(lower_i, upper_i, node_lower, node_upper):
                        begin = node_first[node]
                        if node == own:
                            begin = i + 1
                        for j in range(begin, node_last[node] + 1):
                            # Neighbours in a mesh meet and share vertices, unpredictably: one branch for both (a third
                            # faster than two).
                            meet = boxes_meet_flag(lower_i, upper_i, boxes_b[2 * j], boxes_b[2 * j + 1])
                            if meet > shares(items_a, i, base_a, items_b, j, base_b):
                                shown += 1
                                if keep(items_a, i, base_a, items_b, j, base_b, start, end, until, margin):
                                    place = take(counts, shard, 1, capacity)
                                    if place >= 0:
                                        out[place] = wp.vec2i(i, j)
                node = skip[node]

    return tree_pairs
