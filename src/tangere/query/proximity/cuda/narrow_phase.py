"""Near features on CUDA: the items of one tree of pairs among those of another, or among themselves.

One thread takes an item down the other tree in preorder with skip pointers; within one tree it starts at its own
cluster and goes on with what follows.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.wide import AabbRecord, records_meet
from tangere.query.proximity.cuda.lbvh import SIZE_BITS
from tangere.query.proximity.pair_keys import EDGE_EDGE, VERTEX_FACE, pair_key
from tangere.query.proximity.searched_features import SearchedFeatures, features_near
from tangere.runtime import SOUND, reserve_slots


@cache
def lbvh_search_kernel(width_a: int, width_b: int) -> wp.Kernel:
    """Edges among edges (2, 2), or vertices among faces (1, 3)."""
    are_near = features_near(width_a)

    @wp.func
    def shares_vertex(items_a: wp.array2d[int], i: int, items_b: wp.array2d[int], j: int) -> bool:
        shared = int(0)
        for c in range(wp.static(width_a)):
            for d in range(wp.static(width_b)):
                shared = shared | int(items_a[i, c] == items_b[j, d])
        return shared == 1

    @wp.func
    def key_of(i: int, j: int, pairs: SearchedFeatures) -> wp.int64:
        a = pairs.numbers_a[i]
        b = pairs.numbers_b[j]
        if wp.static(width_a == 1):
            return pair_key(VERTEX_FACE, int(pairs.vertex_body[a] > pairs.face_body[b]), a, b, pairs.bits)
        else:
            return pair_key(EDGE_EDGE, 0, wp.min(a, b), wp.max(a, b), pairs.bits)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_among(
        first: int,
        shard: int,
        units: wp.array[wp.vec3i],
        within: int,
        related: int,
        pairs: SearchedFeatures,
        boxes_a: wp.array[AabbRecord],
        boxes_b: wp.array[AabbRecord],
        nodes: wp.array[AabbRecord],
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
                        if related == 0 or not shares_vertex(pairs.items_a, i, pairs.items_b, j):
                            if are_near(i, j, pairs):
                                slot = reserve_slots(counts, shard, 1, capacity)
                                if slot >= 0:
                                    out[slot] = key_of(i, j, pairs)
                node = record[6]

    return near_among
