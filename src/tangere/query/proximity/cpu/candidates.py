"""Candidates of a shard on CPUs, eight at a time: which of them are near, and their keys.

A lane in doubt, where eight at once would not give the bits that one by one gives, is asked one by one.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.lbvh import LANES
from tangere.query.proximity.cpu.parallel_sort import KeySegments
from tangere.query.proximity.cpu.simd_boxes import candidate, keep_rest
from tangere.query.proximity.cpu.simd_near import IN_DOUBT, append_keys, edges_near_in_lanes, faces_near_in_lanes
from tangere.query.proximity.pair_keys import EDGE_EDGE, VERTEX_FACE
from tangere.query.proximity.searched_features import SearchedFeatures, features_near


@cache
def candidate_test(width_a: int) -> wp.Function:
    """The Warp function that tests candidates: vertices and faces (1), or edges and edges (2)."""
    in_lanes = faces_near_in_lanes if width_a == 1 else edges_near_in_lanes
    code = VERTEX_FACE if width_a == 1 else EDGE_EDGE
    are_near = features_near(width_a)

    @wp.func
    def test_candidates(
        pending: int, least: int, pairs: SearchedFeatures, shard: int, scratch: wp.array2d[int], out: KeySegments
    ) -> int:
        """Append the keys of candidates that are near, as long as there are `least` of them; how many are left."""
        at = int(0)
        while pending - at >= least:
            amount = wp.min(pending - at, LANES)
            found = in_lanes(pairs, at, amount, shard, scratch)
            doubtful = found >> IN_DOUBT
            lane = int(0)
            while doubtful != 0:
                if doubtful & 1 == 1:
                    pair = candidate(at + lane, shard, scratch)
                    if are_near(pair[0], pair[1], pairs):
                        found = found | (1 << lane)
                doubtful = doubtful >> 1
                lane += 1
            append_keys(found & 255, at, code, pairs, shard, scratch, out)
            at = at + amount
        return keep_rest(at, pending, shard, scratch)

    return test_candidates
