"""Eight boxes at a time, for CPUs: what Warp's own vectors leave to chance is said to the compiler here.

A row holds one number of each of eight boxes, so a box is compared with all of them by some ten instructions, and the
answer is a mask. Which boxes meet is beyond any prediction, so nothing branches on a mask: the lanes it names are
written to a list, all eight at once from a table, and the list grows by as many as count. Vector types and builtins are
those of Clang, which compiles kernels for every CPU; nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes
from tangere.query.proximity.aabb_record import Record

__all__ = [
    "CLUSTERS_AT_ONCE",
    "LANE_TYPES",
    "SCRATCH",
    "SHARD",
    "candidate",
    "keep_rest",
    "meeting_clusters",
    "meeting_items",
]

#: How many pairs of clusters are looked into before candidates are tested.
CLUSTERS_AT_ONCE = 32
#: Pairs of an item and a cluster that so many pairs can give, and the lanes written beyond the last.
_PAIRS = 8 * CLUSTERS_AT_ONCE + 8
#: Candidates they can give, with some left from before, and the lanes written beyond the last.
_CANDIDATES = 64 * CLUSTERS_AT_ONCE + 16
#: Numbers each thread keeps besides the nodes it visits.
SCRATCH = 2 * _PAIRS + 2 * _CANDIDATES

#: The memory of a shard, or of a thread: pairs of an item and a cluster, candidates, and visited nodes.
SHARD = f"""
    int* with = &scratch.data[(long long)shard * scratch.shape[1]];
    int* at_cluster = with + {_PAIRS};
    int* one = at_cluster + {_PAIRS};
    int* other = one + {_CANDIDATES};
    int* visited = other + {_CANDIDATES};
"""
#: A number of each of eight boxes, and what is true of which.
LANE_TYPES = """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    typedef unsigned char Bytes __attribute__((ext_vector_type(8), aligned(8)));
    auto bits = [](Row truth) -> int {
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits));
    };
"""
_MEETING = """
    auto lane_meeting = [&](const int* box, int step, const Row* row) -> int {  // its numbers are so far apart
        const Row x = __builtin_elementwise_max(row[3] + box[0], row[0] + box[3 * step]);
        const Row y = __builtin_elementwise_max(row[4] + box[step], row[1] + box[4 * step]);
        const Row z = __builtin_elementwise_max(row[5] + box[2 * step], row[2] + box[5 * step]);
        return bits(__builtin_elementwise_max(__builtin_elementwise_max(x, y), z) <= 0);
    };
    auto meeting = [&](const int* box, const Row* row) -> int { return lane_meeting(box, 1, row); };
    auto chosen = [&](int mask) -> Row {
        return __builtin_convertvector(*(const Bytes*)&lanes.data[mask], Row);
    };
"""


@wp.func_native(
    SHARD
    + LANE_TYPES
    + _MEETING
    + """
    const int* box = (const int*)&boxes.data[i];
    int begin = 0, end = 1;
    visited[0] = 0;
    for (int level = levels.shape[0] - 2; level > 0; --level) {
        const Row* row = (const Row*)&rows.data[6 * levels.data[level]];
        const int least = from_ >> (3 * (level - 1));
        int next = end;
        for (int at = begin; at < end; ++at) {
            const int node = visited[at];
            const int before = least > 8 * node ? least - 8 * node : 0;
            const int mask = meeting(box, row + 6 * node) & (255 << before);
            *(Row*)&visited[next] = chosen(mask) + 8 * node;
            next += __builtin_popcount(mask);
        }
        begin = end;
        end = next;
    }
    return wp::vec_t<2, wp::int32>(begin, end);
"""
)
def meeting_clusters(
    boxes: wp.array[Record],
    i: int,
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    from_: int,
    lanes: wp.array[wp.uint64],
    shard: int,
    scratch: wp.array2d[int],
) -> wp.vec2i:
    """The clusters of a tree, none before `from_`, whose box meets box i: where they begin and end in the scratch."""
    ...


@wp.func_native(
    SHARD
    + LANE_TYPES
    + _MEETING
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
    clusters_b: wp.array[Record],
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
