"""Whether the features of eight candidates are near, all at once, for CPUs.

The texts of `geometry.simd.closest_points`, with the bits of `geometry.closest_points`. A lane that is not sure there
is in doubt and must be tested one by one.

Loops over lanes that look up corners are kept from becoming gather instructions: those took 28 ns a pair, loads 15 ns.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.simd import POINT_TRIANGLE, SEGMENT_SEGMENT, VECTORS
from tangere.query.contacts.record import Kind
from tangere.query.proximity.cpu.parallel_sort import KeySegments
from tangere.query.proximity.cpu.simd_boxes import SHARD
from tangere.query.proximity.details import ContactTable
from tangere.query.proximity.searched_features import SearchedFeatures
from tangere.runtime import COUNTER_STRIDE

#: Bits of lanes in doubt stand above those of lanes that are near.
IN_DOUBT = wp.constant(8)

#: The features of eight keys, and where their vertices are; what follows reads corners.
_FEATURES_OF_KEYS = """
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const long long key = table.pair_keys.data[begin + lane], mask = (1ll << table.bits) - 1;
        const int one = (key >> table.bits) & mask, other = key & mask;
        int* pair = (int*)&table.features.data[begin + lane];
        int* quad = (int*)&table.quads.data[begin + lane];
        pair[0] = one;
        pair[1] = other;
"""
_CORNERS = """
        for (int c = 0; c < 4; ++c)
            corner[c][lane] = (const double*)&table.positions.data[quad[c]];
    }
"""
_GAPS = """
    const Wide gaps = __builtin_elementwise_sqrt(dot(apart, apart));
    for (int lane = 0; lane < 8; ++lane) {
        table.gap.data[begin + lane] = gaps[lane];
        for (int c = 0; c < 4; ++c)
            ((double*)&table.weights.data[begin + lane])[c] = weight[c][lane];
    }
    return 255 & ~bits_of(sure);
"""
_VERDICT = """
    const int counted = count < 8 ? (1 << count) - 1 : 255;
    const int known = bits_of(sure);
    const int near = bits_of(dot(apart, apart) < (Wide)(pairs.distance * pairs.distance));
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
        const bool swap = pairs.numbers_b.data[j] < pairs.numbers_a.data[i];
        const double* a0 = (const double*)&pairs.positions_a.data[pairs.items_a.data[2 * i]];
        const double* a1 = (const double*)&pairs.positions_a.data[pairs.items_a.data[2 * i + 1]];
        const double* b0 = (const double*)&pairs.positions_b.data[pairs.items_b.data[2 * j]];
        const double* b1 = (const double*)&pairs.positions_b.data[pairs.items_b.data[2 * j + 1]];
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
def edges_near_in_lanes(pairs: SearchedFeatures, from_: int, count: int, shard: int, scratch: wp.array2d[int]) -> int:
    """Which of up to eight pairs of edges, the candidates from `from_` on, are nearer than `distance`, or in doubt."""
    ...


@wp.func_native(
    SHARD
    + VECTORS
    + """
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int* face = &pairs.items_b.data[3 * other[from_ + k]];
        corner[0][lane] = (const double*)&pairs.positions_a.data[pairs.items_a.data[one[from_ + k]]];
        for (int c = 0; c < 3; ++c)
            corner[1 + c][lane] = (const double*)&pairs.positions_b.data[face[c]];
    }
    const Vector p = gathered(corner[0]), a = gathered(corner[1]), b = gathered(corner[2]), c = gathered(corner[3]);
"""
    + POINT_TRIANGLE
    + _VERDICT
)
def faces_near_in_lanes(pairs: SearchedFeatures, from_: int, count: int, shard: int, scratch: wp.array2d[int]) -> int:
    """The same for vertices, which come first, and faces."""
    ...


@wp.func_native(
    SHARD
    + f"""
    wp::int64& filled = found.counters.data[{int(COUNTER_STRIDE)} * shard];
    const bool faces = kind == {int(Kind.VERTEX_FACE)};
"""
    + """
    wp::int64* place = &found.pair_keys.data[(long long)shard * found.capacity];
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const int a = pairs.numbers_a.data[one[from_ + lane]], b = pairs.numbers_b.data[other[from_ + lane]];
        const bool turn = !faces && b < a;
        const wp::int64 side = faces && pairs.vertex_body.data[a] > pairs.face_body.data[b];
        const wp::int64 head = (((kind << 1) | side) << pairs.bits) | (turn ? b : a);
        if (filled < found.capacity)
            place[filled] = (head << pairs.bits) | (turn ? a : b);
        ++filled;
    }
"""
)
def append_keys(
    mask: int,
    from_: int,
    kind: wp.int64,
    pairs: SearchedFeatures,
    shard: int,
    scratch: wp.array2d[int],
    found: KeySegments,
):
    """Append the keys of those of eight candidates that a mask names; what does not fit is counted."""
    ...


@wp.func_native(
    VECTORS
    + _FEATURES_OF_KEYS
    + """
        for (int c = 0; c < 2; ++c) {
            quad[c] = table.edges.data[2 * one + c];
            quad[2 + c] = table.edges.data[2 * other + c];
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
def fill_edges_in_lanes(begin: int, table: ContactTable) -> int:
    """Write eight contacts of edges, features as the scene counts them; the lanes in doubt, whose numbers are wrong."""
    ...


@wp.func_native(
    VECTORS
    + _FEATURES_OF_KEYS
    + """
        quad[0] = one;
        for (int c = 0; c < 3; ++c)
            quad[1 + c] = table.faces.data[3 * other + c];
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
def fill_faces_in_lanes(begin: int, table: ContactTable) -> int:
    """The same for vertices and faces."""
    ...
