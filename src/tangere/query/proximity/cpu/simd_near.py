"""Whether the features of eight candidates are near, all at once, for CPUs.

The texts of `geometry.simd.closest_points`, with the bits of `geometry.closest_points`. A lane that is not sure there
is in doubt and must be tested one by one.

Loops over lanes that look up corners are kept from becoming gather instructions: those took 28 ns a pair, loads 15 ns.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.simd import POINT_TRIANGLE, SEGMENT_SEGMENT, VECTORS
from tangere.query.contacts.record import Kind
from tangere.query.proximity.cpu.simd_boxes import SHARD
from tangere.runtime import COUNTER_STRIDE

#: Bits of lanes in doubt stand above those of lanes that are near.
IN_DOUBT = wp.constant(8)

#: The features of eight keys, and where their vertices are; what follows reads corners.
_NAMED = """
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const long long name = pair_keys.data[begin + lane], mask = (1ll << bits) - 1;
        const int one = (name >> bits) & mask, other = name & mask;
        int* pair = (int*)&features.data[begin + lane];
        int* quad = (int*)&quads.data[begin + lane];
        pair[0] = one;
        pair[1] = other;
"""
_CORNERS = """
        for (int c = 0; c < 4; ++c)
            corner[c][lane] = (const double*)&positions.data[quad[c]];
    }
"""
_GAPS = """
    const Wide gaps = __builtin_elementwise_sqrt(dot(apart, apart));
    for (int lane = 0; lane < 8; ++lane) {
        gap.data[begin + lane] = gaps[lane];
        for (int c = 0; c < 4; ++c)
            ((double*)&weights.data[begin + lane])[c] = weight[c][lane];
    }
    return 255 & ~bits_of(sure);
"""
_VERDICT = """
    const int counted = count < 8 ? (1 << count) - 1 : 255;
    const int known = bits_of(sure);
    const int near = bits_of(dot(apart, apart) < (Wide)(distance * distance));
    return (counted & near & known) | ((counted & ~known) << 8);
"""


@wp.func_native(
    SHARD
    + VECTORS
    + """
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int i = one[from_ + k], j = other[from_ + k];
        const bool swap = numbers_b.data[j] < numbers_a.data[i];
        const double* a0 = (const double*)&positions_a.data[items_a.data[2 * i]];
        const double* a1 = (const double*)&positions_a.data[items_a.data[2 * i + 1]];
        const double* b0 = (const double*)&positions_b.data[items_b.data[2 * j]];
        const double* b1 = (const double*)&positions_b.data[items_b.data[2 * j + 1]];
        corner[0][lane] = swap ? b0 : a0;
        corner[1][lane] = swap ? b1 : a1;
        corner[2][lane] = swap ? a0 : b0;
        corner[3][lane] = swap ? a1 : b1;
    }
    const Vector p0 = gathered(corner[0]), p1 = gathered(corner[1]);
    const Vector q0 = gathered(corner[2]), q1 = gathered(corner[3]);
"""
    + SEGMENT_SEGMENT
    + _VERDICT
)
def edges_near_in_lanes(
    items_a: wp.array2d[int],
    numbers_a: wp.array[int],
    positions_a: wp.array[wp.vec3d],
    items_b: wp.array2d[int],
    numbers_b: wp.array[int],
    positions_b: wp.array[wp.vec3d],
    distance: wp.float64,
    from_: int,
    count: int,
    shard: int,
    scratch: wp.array2d[int],
) -> int:
    """Which of up to eight pairs of edges, the candidates from `from_` on, are nearer than `distance`, or in doubt."""
    ...


@wp.func_native(
    SHARD
    + VECTORS
    + """
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int* face = &items_b.data[3 * other[from_ + k]];
        corner[0][lane] = (const double*)&positions_a.data[items_a.data[one[from_ + k]]];
        for (int c = 0; c < 3; ++c)
            corner[1 + c][lane] = (const double*)&positions_b.data[face[c]];
    }
    const Vector p = gathered(corner[0]), a = gathered(corner[1]), b = gathered(corner[2]), c = gathered(corner[3]);
"""
    + POINT_TRIANGLE
    + _VERDICT
)
def faces_near_in_lanes(
    items_a: wp.array2d[int],
    numbers_a: wp.array[int],
    positions_a: wp.array[wp.vec3d],
    items_b: wp.array2d[int],
    numbers_b: wp.array[int],
    positions_b: wp.array[wp.vec3d],
    distance: wp.float64,
    from_: int,
    count: int,
    shard: int,
    scratch: wp.array2d[int],
) -> int:
    """The same for vertices, which come first, and faces."""
    ...


@wp.func_native(
    SHARD
    + f"""
    wp::int64& filled = counts.data[{int(COUNTER_STRIDE)} * shard];
    const bool faces = kind == {int(Kind.VERTEX_FACE)};
"""
    + """
    wp::int64* place = &out.data[(long long)shard * capacity];
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const int a = numbers_a.data[one[from_ + lane]], b = numbers_b.data[other[from_ + lane]];
        const bool turn = !faces && b < a;
        const wp::int64 side = faces && vertex_body.data[a] > face_body.data[b];
        const wp::int64 head = (((kind << 1) | side) << bits) | (turn ? b : a);
        if (filled < capacity)
            place[filled] = (head << bits) | (turn ? a : b);
        ++filled;
    }
"""
)
def append_keys(
    mask: int,
    from_: int,
    kind: wp.int64,
    bits: wp.int64,
    numbers_a: wp.array[int],
    numbers_b: wp.array[int],
    vertex_body: wp.array[int],
    face_body: wp.array[int],
    shard: int,
    scratch: wp.array2d[int],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.int64],
):
    """Append the keys of those of eight candidates that a mask names; what does not fit is counted."""
    ...


@wp.func_native(
    VECTORS
    + _NAMED
    + """
        for (int c = 0; c < 2; ++c) {
            quad[c] = edges.data[2 * one + c];
            quad[2 + c] = edges.data[2 * other + c];
        }
"""
    + _CORNERS
    + """
    const Vector p0 = gathered(corner[0]), p1 = gathered(corner[1]);
    const Vector q0 = gathered(corner[2]), q1 = gathered(corner[3]);
"""
    + SEGMENT_SEGMENT
    + """
    const Wide weight[4] = {unit - u, u, unit - v, v};
"""
    + _GAPS
)
def fill_edges_in_lanes(
    begin: int,
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    quads: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    gap: wp.array[wp.float64],
    features: wp.array[wp.vec2i],
) -> int:
    """Write eight contacts of edges, features as the scene counts them; the lanes in doubt, whose numbers are wrong."""
    ...


@wp.func_native(
    VECTORS
    + _NAMED
    + """
        quad[0] = one;
        for (int c = 0; c < 3; ++c)
            quad[1 + c] = faces.data[3 * other + c];
"""
    + _CORNERS
    + """
    const Vector p = gathered(corner[0]), a = gathered(corner[1]), b = gathered(corner[2]), c = gathered(corner[3]);
"""
    + POINT_TRIANGLE
    + """
    const Wide weight[4] = {unit, wa, wb, wc};
"""
    + _GAPS
)
def fill_faces_in_lanes(
    begin: int,
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
    faces: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    quads: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    gap: wp.array[wp.float64],
    features: wp.array[wp.vec2i],
) -> int:
    """The same for vertices and faces."""
    ...
