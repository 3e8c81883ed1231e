"""Short lists of candidates, filled eight boxes at a time without a branch on the outcome, for CPUs."""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox
from tangere.bvh.wide import DESCENT_STATE
from tangere.soft.model.assembled_bodies import SurfaceArrays

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


#: Which of the eight boxes of a cluster one axis separates from another, of which the first and the last numbers are
#: given: positive lanes.
_APART = """
    auto apart_from = [](Row begin, Row end, const Row* row_of) -> Row {
        auto low = [&](int k) -> Row { return (Row)(k < 8 ? begin[k] : end[k - 4]); };
        Row apart = (Row)(-1);
        for (int k = 0; k < 3; ++k) {
            apart = __builtin_elementwise_max(
                apart, __builtin_elementwise_min(low(k) + row_of[3 + k], low(6 + k) + row_of[9 + k]));
            apart = __builtin_elementwise_max(
                apart, __builtin_elementwise_min(low(3 + k) + row_of[k], low(9 + k) + row_of[6 + k]));
        }
        return apart;
    };
"""
#: Writes the lanes of a mask to the list of candidates, and returns how many there are then.
_WRITE = (
    f"""
    const int room = {int(PENDING)};
    int* one = &scratch.data[scratch.shape[1] * row];
"""
    + """
    *(Row*)&one[pending] = (Row)name;
    *(Row*)&one[room + pending] = __builtin_convertvector(*(const Bytes*)&by_mask.data[mask], Row) + place;
    return pending + __builtin_popcount(mask);
"""
)


@wp.func_native(
    _TYPES
    + _MEETING
    + _APART
    + """
    const int* a = (const int*)&boxes.data[v0];
    const int* b = (const int*)&boxes.data[v1];
    const Row begin = __builtin_elementwise_min(*(const Row*)a, *(const Row*)b);
    const Row end = __builtin_elementwise_min(*(const Row*)(a + 4), *(const Row*)(b + 4));
    if (!meeting(begin, end, (const int*)&nodes.data[node]))
        return pending;
    const Row apart = apart_from(begin, end, (const Row*)&lanes.data[12 * cluster]);
    const Row* corner = (const Row*)&corners.data[3 * cluster];
    const Row shared = (corner[0] == v0) | (corner[1] == v0) | (corner[2] == v0)
        | (corner[0] == v1) | (corner[1] == v1) | (corner[2] == v1);
    const Row kept = (apart <= 0) & ~shared & (corner[0] >= 0);
    const int mask = __builtin_bit_cast(unsigned char, __builtin_convertvector(kept, Bits));
"""
    + _WRITE
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
    """
    int mask = 0, lane = 0;
    const int* corner = (const int*)&corners.data[3 * cluster];
    for (; lane < 8 && corner[lane] >= 0; ++lane) {
        const int traits = surface.traits.data[corner[lane]] | surface.traits.data[corner[8 + lane]]
            | surface.traits.data[corner[16 + lane]];
        mask |= ((traits & trait) != 0 && surface.body.data[corner[lane]] == body) << lane;
    }
    return mask == (1 << lane) - 1 ? 255 : mask;
"""
)
def lanes_with(trait: int, body: int, corners: wp.array2d[Lanes], cluster: int, surface: SurfaceArrays) -> int:
    """Which faces of a cluster are of this body and have a vertex with this trait, as a mask; 255 for all of them."""
    ...


@wp.func_native(
    _TYPES
    + _MEETING
    + _APART
    + """
    const int* node_box = (const int*)&nodes.data[node];
    const Row* row_of = (const Row*)&lanes.data[12 * cluster];
    const Row* corner = (const Row*)&corners.data[3 * cluster];
    auto kept_of = [&](const int* box) -> int {
        const Row begin = *(const Row*)box, end = *(const Row*)(box + 4);
        if (!meeting(begin, end, node_box))
            return 0;
        const Row apart = apart_from(begin, end, row_of);
        const Row shared = (corner[0] == v) | (corner[1] == v) | (corner[2] == v);
        const Row kept = (apart <= 0) & ~shared & (corner[0] >= 0);
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(kept, Bits));
    };
    const int name = v;
    int mask = kept_of((const int*)&narrow.data[v]) & walls;
    if (others)
        mask |= kept_of((const int*)&boxes.data[v]) & others;
"""
    + _WRITE
)
def add_near_walls(
    v: int,
    narrow: wp.array[MovingBox],
    boxes: wp.array[MovingBox],
    walls: int,
    others: int,
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
    """As `add_candidates` for a vertex, but some faces of the cluster count only where they meet a narrow box.

    Args:
        narrow: boxes for the faces that the mask `walls` says; `boxes` for those of the mask `others`.
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
    return meeting(*(const Row*)a, *(const Row*)(a + 4), (const int*)&others.data[j]);
"""
)
def simd_boxes_meet(boxes: wp.array[MovingBox], i: int, others: wp.array[MovingBox], j: int) -> bool:
    """Whether two boxes meet, as `boxes_meet` says, all axes at once."""
    ...


#: The box around three others, as the first and the last eight of its numbers.
_BOX_OF_THREE = """
    const int* one = (const int*)&boxes.data[a];
    const int* two = (const int*)&boxes.data[b];
    const int* three = (const int*)&boxes.data[c];
    const Row begin = __builtin_elementwise_min(
        __builtin_elementwise_min(*(const Row*)one, *(const Row*)two), *(const Row*)three);
    const Row end = __builtin_elementwise_min(
        __builtin_elementwise_min(*(const Row*)(one + 4), *(const Row*)(two + 4)), *(const Row*)(three + 4));
"""


@wp.func_native(
    _TYPES
    + _BOX_OF_THREE
    + """
    int* to = (int*)&into.data[place];
    *(Row*)to = begin;
    *(Row*)(to + 4) = end;
"""
)
def simd_box_of_three(boxes: wp.array[MovingBox], a: int, b: int, c: int, into: wp.array[MovingBox], place: int):
    """Writes the box around three others to a place."""
    ...


@wp.func_native(
    """
    int* rows = (int*)&lanes.data[12 * group];
    for (int lane = 0; lane < count; ++lane)
        for (int k = 0; k < 12; ++k)
            rows[8 * k + lane] = ((const int*)&boxes.data[begin + lane])[k];
"""
)
def lay_in_lanes(boxes: wp.array[MovingBox], begin: int, count: int, lanes: wp.array[Lanes], group: int):
    """Boxes from `begin` on, at most eight, side by side, as one group of them."""
    ...


@wp.func_native(
    _TYPES
    + _MEETING
    + _APART
    + _BOX_OF_THREE
    + """
    if (!meeting(begin, end, (const int*)&others.data[around]))
        return 0;
    const Row apart = apart_from(begin, end, (const Row*)&lanes.data[0]);
    const int mask = __builtin_bit_cast(unsigned char, __builtin_convertvector(apart <= 0, Bits));
    return mask & ((1 << count) - 1);
"""
)
def simd_lanes_that_meet(
    boxes: wp.array[MovingBox],
    a: int,
    b: int,
    c: int,
    others: wp.array[MovingBox],
    around: int,
    lanes: wp.array[Lanes],
    count: int,
) -> int:
    """Which of some boxes side by side the box around three others meets, as a mask; `around` is the one around all."""
    ...


@wp.func_native(
    _TYPES
    + _APART
    + _BOX_OF_THREE
    + """
    const Row apart = apart_from(begin, end, (const Row*)&lanes.data[12 * group]);
    const Row* corner = (const Row*)&corners.data[24 * group];
    Row shared = corner[0] < 0;
    for (int k = 0; k < 3; ++k)
        shared |= (corner[k] == a) | (corner[k] == b) | (corner[k] == c);
    const int mask = __builtin_bit_cast(unsigned char, __builtin_convertvector((apart <= 0) & ~shared, Bits));
    return mask & ((1 << count) - 1);
"""
)
def simd_strangers_that_meet(
    boxes: wp.array[MovingBox],
    a: int,
    b: int,
    c: int,
    lanes: wp.array[Lanes],
    corners: wp.array[int],
    group: int,
    count: int,
) -> int:
    """Which of a group of boxes the box around three others meets, as a mask, without those with a vertex of it.

    `corners`: three rows of eight vertices for each group; where the first is below 0 there is nothing.
    """
    ...
