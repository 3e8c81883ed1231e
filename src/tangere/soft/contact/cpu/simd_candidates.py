"""Short lists of candidates, filled eight boxes at a time without a branch on the outcome, for CPUs."""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox
from tangere.bvh.wide import DESCENT_STATE

#: Candidates a list has room for: up to seven wait for an eighth, and eight are written at once.
PENDING = wp.constant(16)
#: Numbers of a row of scratch memory: a list of candidates, and a descent.
SCRATCH_ROW = 2 * int(PENDING) + DESCENT_STATE

_TYPES = """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    typedef unsigned char Bytes __attribute__((ext_vector_type(8), aligned(8)));
"""
#: Whether two boxes meet: the first and the last eight of the twelve numbers of one, and the other.
_MEETING = """
    auto meeting = [](Row begin, Row end, const int* b) -> bool {
        const Row other_begin = *(const Row*)b, other_end = *(const Row*)(b + 4);
        const Row at_begin = begin + __builtin_shufflevector(other_begin, other_begin, 3, 4, 5, 0, 1, 2, 3, 4);
        const Row at_end = __builtin_shufflevector(end, end, 2, 3, 4, 5, 6, 7, 2, 3)
            + __builtin_shufflevector(other_end, other_end, 5, 6, 7, 2, 3, 4, 5, 6);
        const Row apart = (__builtin_elementwise_min(at_begin, at_end) > 0) & (Row){-1, -1, -1, -1, -1, -1, 0, 0};
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(apart, Bits)) == 0;
    };
"""


@wp.func_native(
    _TYPES
    + _MEETING
    + f"""
    const int room = {int(PENDING)};
"""
    + """
    const int* a = (const int*)&boxes.data[v0];
    const int* b = (const int*)&boxes.data[v1];
    const Row begin = __builtin_elementwise_min(*(const Row*)a, *(const Row*)b);
    const Row end = __builtin_elementwise_min(*(const Row*)(a + 4), *(const Row*)(b + 4));
    if (!meeting(begin, end, (const int*)&nodes.data[node]))
        return pending;
    auto low = [&](int k) -> Row { return (Row)(k < 8 ? begin[k] : end[k - 4]); };
    const Row* row_of = (const Row*)&lanes.data[12 * cluster];
    Row apart = (Row)(-1);
    for (int k = 0; k < 3; ++k) {
        apart = __builtin_elementwise_max(
            apart, __builtin_elementwise_min(low(k) + row_of[3 + k], low(6 + k) + row_of[9 + k]));
        apart = __builtin_elementwise_max(
            apart, __builtin_elementwise_min(low(3 + k) + row_of[k], low(9 + k) + row_of[6 + k]));
    }
    const Row* corner = (const Row*)&corners.data[3 * cluster];
    const Row shared = (corner[0] == v0) | (corner[1] == v0) | (corner[2] == v0)
        | (corner[0] == v1) | (corner[1] == v1) | (corner[2] == v1);
    const Row kept = (apart <= 0) & ~shared & (corner[0] >= 0);
    const int mask = __builtin_bit_cast(unsigned char, __builtin_convertvector(kept, Bits));
    int* one = &scratch.data[scratch.shape[1] * row];
    *(Row*)&one[pending] = (Row)name;
    *(Row*)&one[room + pending] = __builtin_convertvector(*(const Bytes*)&by_mask.data[mask], Row) + place;
    return pending + __builtin_popcount(mask);
"""
)
def add_candidates(
    name: int,
    v0: int,
    v1: int,
    boxes: wp.array[MovingBox],
    nodes: wp.array[MovingBox],
    node: int,
    lanes: wp.array[Lanes],
    corners: wp.array2d[Lanes],
    cluster: int,
    place: int,
    by_mask: wp.array[wp.uint64],
    pending: int,
    row: int,
    scratch: wp.array2d[int],
) -> int:
    """How many candidates there are after adding the faces of a cluster that meet an edge and do not share a vertex.

    Args:
        name: of the edge in the list.
        v0, v1: its ends; the same for a vertex.
        nodes, node: boxes of the tree, and the one of the cluster.
        lanes, corners: the boxes of the faces of all clusters and their vertices, eight side by side.
        place: of the first face of the cluster.
        pending: candidates in the list, at most seven.
        row: of the scratch: names, then places of faces.
    """
    ...


@wp.func_native(
    _TYPES
    + f"""
    const int room = {int(PENDING)};
"""
    + """
    int* one = &scratch.data[scratch.shape[1] * row];
    *(Row*)one = *(const Row*)&one[8];
    *(Row*)&one[room] = *(const Row*)&one[room + 8];
    return pending - 8;
"""
)
def drop_eight(pending: int, row: int, scratch: wp.array2d[int]) -> int:
    """Forget the first eight candidates; how many are left."""
    ...


@wp.func_native(
    _TYPES
    + _MEETING
    + """
    const int* a = (const int*)&boxes.data[i];
    return meeting(*(const Row*)a, *(const Row*)(a + 4), (const int*)&boxes.data[j]);
"""
)
def simd_boxes_meet(boxes: wp.array[MovingBox], i: int, j: int) -> bool:
    """Whether two boxes meet, as `boxes_meet` says, all axes at once."""
    ...
