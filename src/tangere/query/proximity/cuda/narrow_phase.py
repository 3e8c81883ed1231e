"""Near features on CUDA: the items of one tree of pairs among those of another, or among themselves.

One thread takes an item down the other tree in preorder with skip pointers; within one tree it starts at its own
cluster and goes on with what follows.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.wide import AabbRecord, records_meet
from tangere.geometry.closest_points import pair_near
from tangere.query.proximity.cuda.lbvh import SIZE_BITS
from tangere.query.proximity.pair_keys import EDGE_EDGE, VERTEX_FACE, pair_key
from tangere.runtime import SOUND, reserve_slots


@cache
def lbvh_search_kernel(width_a: int, width_b: int) -> wp.Kernel:
    """Edges among edges (2, 2), or vertices among faces (1, 3)."""
    is_near = pair_near(width_a)

    @wp.func
    def shares_vertex(items_a: wp.array2d[int], i: int, items_b: wp.array2d[int], j: int) -> bool:
        shared = int(0)
        for c in range(wp.static(width_a)):
            for d in range(wp.static(width_b)):
                shared = shared | int(items_a[i, c] == items_b[j, d])
        return shared == 1

    @wp.func
    def key_at(a: int, b: int, vertex_body: wp.array[int], face_body: wp.array[int], bits: wp.int64) -> wp.int64:
        if wp.static(width_a == 1):
            return pair_key(VERTEX_FACE, int(vertex_body[a] > face_body[b]), a, b, bits)
        else:
            return pair_key(EDGE_EDGE, 0, wp.min(a, b), wp.max(a, b), bits)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_among(
        first: int,
        shard: int,
        units: wp.array[wp.vec3i],
        within: int,
        related: int,
        items_a: wp.array2d[int],
        numbers_a: wp.array[int],
        boxes_a: wp.array[AabbRecord],
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        numbers_b: wp.array[int],
        boxes_b: wp.array[AabbRecord],
        positions_b: wp.array[wp.vec3d],
        nodes: wp.array[AabbRecord],
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
                                place = reserve_slots(counts, shard, 1, capacity)
                                if place >= 0:
                                    out[place] = key_at(a, b, vertex_body, face_body, bits)
                node = record[6]

    return near_among
