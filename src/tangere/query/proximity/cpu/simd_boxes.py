"""Candidates of a thread on CPUs: pairs of items whose boxes meet, eight boxes at a time, and where they are kept.

Which boxes meet is beyond any prediction, so nothing branches on it (`geometry.simd.lanes_by_mask`).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes
from tangere.bvh.wide import AabbRecord
from tangere.geometry.simd import ROWS, STATIC_BOXES

#: How many pairs of clusters are looked into before candidates are tested.
CLUSTERS_AT_ONCE = 32
#: Pairs of an item and a cluster that so many pairs can give, and the lanes written beyond the last.
_PAIRS = 8 * CLUSTERS_AT_ONCE + 8
#: Candidates they can give, with some left from before, and the lanes written beyond the last.
_CANDIDATES = 64 * CLUSTERS_AT_ONCE + 16
#: Numbers each thread keeps besides the nodes it visits.
SCRATCH = wp.constant(2 * _PAIRS + 2 * _CANDIDATES)

#: The memory of a shard, or of a thread: pairs of an item and a cluster, candidates, and visited nodes.
SHARD = f"""
    int* with = &scratch.data[(long long)shard * scratch.shape[1]];
    int* at_cluster = with + {_PAIRS};
    int* one = at_cluster + {_PAIRS};
    int* other = one + {_CANDIDATES};
    int* visited = other + {_CANDIDATES};
"""


@wp.func_native(
    SHARD
    + ROWS
    + STATIC_BOXES
    + """
    const Row* row = (const Row*)&rows_b.data[0];
    const Row* corner = (const Row*)&corners_b.data[0];
    const int* first = &blocks.data[(long long)block * blocks.shape[1]] + 1;
    const int* second = first + blocks.shape[1] / 2;
    int pairs = 0;
    for (int k = begin; k < end; ++k) {
        const int mask = meeting((const int*)&clusters_b.data[second[k]], (const Row*)&rows_a.data[6 * first[k]]);
        *(Row*)&with[pairs] = chosen(mask) + 8 * first[k];
        *(Row*)&at_cluster[pairs] = (Row)second[k];
        pairs += __builtin_popcount(mask);
    }
    for (int pair = 0; pair < pairs; ++pair) {
        const int i = with[pair], k = at_cluster[pair];
        int mask = lane_meeting((const int*)&rows_a.data[6 * (i >> 3)] + (i & 7), 8, row + 6 * k);
        if (related) {
            Row same = corner[across * k] == items_a.data[wide * i];
            for (int c = 0; c < wide; ++c)
                for (int d = 0; d < across; ++d)
                    same |= corner[across * k + d] == items_a.data[wide * i + c];
            mask &= ~bits(same);
        }
        mask &= within && k == i >> 3 ? 254 << (i & 7) : 255;
        *(Row*)&one[pending] = (Row)i;
        *(Row*)&other[pending] = chosen(mask) + 8 * k;
        pending += __builtin_popcount(mask);
    }
    return pending;
"""
)
def meeting_items(
    within: int,
    related: int,
    items_a: wp.array2d[int],
    wide: int,
    rows_a: wp.array2d[Lanes],
    clusters_b: wp.array[AabbRecord],
    rows_b: wp.array2d[Lanes],
    corners_b: wp.array2d[Lanes],
    across: int,
    lanes: wp.array[wp.uint64],
    blocks: wp.array2d[int],
    block: int,
    begin: int,
    end: int,
    pending: int,
    shard: int,
    scratch: wp.array2d[int],
) -> int:
    """How many candidates there are after adding those of the pairs of clusters from `begin` to `end` in a block.

    Candidates are items whose boxes meet and which, if `related`, have no vertex in common; they have `wide` and
    `across` vertices. `within` one tree each pair counts once, and no item with itself.
    """
    ...


@wp.func_native(
    SHARD
    + """
    for (int k = 0; k < 8; ++k) {
        one[k] = one[from_ + k];
        other[k] = other[from_ + k];
    }
    return pending - from_;
"""
)
def keep_rest(from_: int, pending: int, shard: int, scratch: wp.array2d[int]) -> int:
    """Move the candidates from `from_` on, at most eight, to the beginning; how many there are."""
    ...


@wp.func_native(
    SHARD
    + """
    return wp::vec_t<2, wp::int32>(one[at], other[at]);
"""
)
def candidate(at: int, shard: int, scratch: wp.array2d[int]) -> wp.vec2i:
    """The items of one candidate."""
    ...
