"""Candidates of a shard on CPUs, eight at a time: which of them are near, and their keys.

A lane in doubt, where eight at once would not give the bits that one by one gives, is asked one by one.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.lbvh import LANES
from tangere.geometry.closest_points import pair_near
from tangere.query.proximity.cpu.simd_boxes import candidate, keep_rest
from tangere.query.proximity.cpu.simd_near import IN_DOUBT, append_keys, edges_near_in_lanes, faces_near_in_lanes
from tangere.query.proximity.pair_keys import EDGE_EDGE, VERTEX_FACE


@cache
def candidate_test(width_a: int) -> wp.Function:
    """The Warp function that tests candidates: vertices and faces (1), or edges and edges (2)."""
    in_lanes = faces_near_in_lanes if width_a == 1 else edges_near_in_lanes
    code = VERTEX_FACE if width_a == 1 else EDGE_EDGE
    is_near = pair_near(width_a)

    @wp.func
    def test_candidates(
        pending: int,
        least: int,
        items_a: wp.array2d[int],
        numbers_a: wp.array[int],
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        numbers_b: wp.array[int],
        positions_b: wp.array[wp.vec3d],
        vertex_body: wp.array[int],
        face_body: wp.array[int],
        distance: wp.float64,
        bits: wp.int64,
        shard: int,
        scratch: wp.array2d[int],
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.int64],
    ) -> int:
        """Append the keys of candidates that are near, as long as there are `least` of them; how many are left."""
        at = int(0)
        while pending - at >= least:
            amount = wp.min(pending - at, LANES)
            found = in_lanes(
                items_a, numbers_a, positions_a, items_b, numbers_b, positions_b, distance, at, amount, shard, scratch
            )
            doubtful = found >> IN_DOUBT
            lane = int(0)
            while doubtful != 0:
                if doubtful & 1 == 1:
                    pair = candidate(at + lane, shard, scratch)
                    swap = numbers_b[pair[1]] < numbers_a[pair[0]]
                    if is_near(items_a, pair[0], positions_a, items_b, pair[1], positions_b, swap, distance):
                        found = found | (1 << lane)
                doubtful = doubtful >> 1
                lane += 1
            append_keys(
                found & 255, at, code, bits, numbers_a, numbers_b,
                vertex_body, face_body, shard, scratch, counts, capacity, out,
            )  # fmt: skip
            at = at + amount
        return keep_rest(at, pending, shard, scratch)

    return test_candidates
