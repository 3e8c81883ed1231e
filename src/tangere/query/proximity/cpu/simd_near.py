"""Whether the features of eight candidates are near, all at once, for CPUs.

The formulas are those of `primitives`, operation by operation in float64, with choices instead of branches: so the
answers are the same bit by bit. Where those go other ways, for slivers and nearly parallel edges, a lane is in doubt
and must be asked there.

Loops over lanes that look up corners are kept from becoming gather instructions: those took 28 ns a pair, loads 15 ns.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import CONDITIONED, CONDITIONED_EDGES
from tangere.query.contacts.record import Kind
from tangere.query.proximity.cpu.simd_boxes import SHARD
from tangere.runtime import COUNTER_STRIDE

__all__ = [
    "EDGES",
    "FACES",
    "IN_DOUBT",
    "VECTORS",
    "append_names",
    "edges_near_in_lanes",
    "faces_near_in_lanes",
    "fill_edges_in_lanes",
    "fill_faces_in_lanes",
]

#: Bits of lanes in doubt stand above those of lanes that are near.
IN_DOUBT = wp.constant(8)

#: Vectors of eight numbers, and what is done with them.
VECTORS = f"""
    const double conditioned = {CONDITIONED!r}, conditioned_edges = {CONDITIONED_EDGES!r};
"""
VECTORS += """
    typedef double Wide __attribute__((ext_vector_type(8)));
    typedef decltype(Wide() < Wide()) Whole;
    typedef bool Bits __attribute__((ext_vector_type(8)));
    struct Vector { Wide x, y, z; };
    const Wide zero = (Wide)0.0, unit = (Wide)1.0;
    auto minus = [](Vector a, Vector b) -> Vector { return {a.x - b.x, a.y - b.y, a.z - b.z}; };
    auto dot = [](Vector a, Vector b) -> Wide { return a.x * b.x + a.y * b.y + a.z * b.z; };
    auto clamped = [&](Wide x) -> Wide { x = x < zero ? zero : x; return x > unit ? unit : x; };
    auto bits_of = [](Whole truth) -> int {
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits));
    };
    auto gathered = [](const double* const* at) -> Vector {
        return {
            Wide{at[0][0], at[1][0], at[2][0], at[3][0], at[4][0], at[5][0], at[6][0], at[7][0]},
            Wide{at[0][1], at[1][1], at[2][1], at[3][1], at[4][1], at[5][1], at[6][1], at[7][1]},
            Wide{at[0][2], at[1][2], at[2][2], at[3][2], at[4][2], at[5][2], at[6][2], at[7][2]}};
    };
    const double* corner[4][8];
"""
#: The way `apart` between the nearest points of edges p0 p1 and q0 q1; right where `sure`.
EDGES = """
    const Vector d1 = minus(p1, p0), d2 = minus(q1, q0), r = minus(p0, q0);
    const Wide a = dot(d1, d1), b = dot(d1, d2), e = dot(d2, d2), c = dot(d1, r), f = dot(d2, r);
    const Wide determinant = a * e - b * b;
    const Whole sure = determinant > conditioned_edges * a * e;
    Wide u = clamped((b * f - c * e) / determinant);
    Wide v = (b * u + f) / e;
    const Whole below = v < zero, beyond = v > unit;
    const Wide end = clamped((below ? -c : b - c) / a);
    u = below | beyond ? end : u;
    v = clamped(v);
    const Vector apart = {r.x + u * d1.x - v * d2.x, r.y + u * d1.y - v * d2.y, r.z + u * d1.z - v * d2.z};
"""
#: The way `apart` from the nearest point of triangles a, b, c to points p; right where `sure`.
FACES = """
    const Vector e0 = minus(b, a), e1 = minus(c, a), from_p = minus(a, p);
    const Wide aa = dot(e0, e0), bb = dot(e0, e1), cc = dot(e1, e1), d = dot(e0, from_p), e = dot(e1, from_p);
    const Wide determinant = aa * cc - bb * bb;
    const Whole sure = determinant > conditioned * aa * cc;
    Wide u = bb * e - cc * d, v = bb * d - aa * e;
    const Whole low_u = u < zero, low_v = v < zero, within_far = u + v <= determinant;
    const Whole inside = within_far & ~low_u & ~low_v;
    const Whole far_low_u = (bb + d) - (cc + e) < zero, far_low_v = (bb + e) - (aa + d) < zero;
    const Whole on_far = ~within_far & (low_u ? far_low_u : low_v ? far_low_v : ~inside);
    const Whole on_first = within_far ? (low_u & low_v ? d < zero : low_v) : low_v & ~low_u;
    const Wide top = inside ? u : on_far ? cc + e - bb - d : on_first ? -d : -e;
    const Wide bottom = inside ? determinant : on_far ? aa - 2.0 * bb + cc : on_first ? aa : cc;
    const Wide along = top / bottom, t = clamped(along);
    v = v / determinant;
    const Wide rest = unit - along - v;
    const Wide wa = inside ? (rest < zero ? zero : rest) : on_far ? zero : unit - t;
    const Wide wb = inside ? along : on_far ? t : on_first ? t : zero;
    const Wide wc = inside ? v : on_far ? unit - t : on_first ? zero : t;
    const Vector pa = minus(p, a), pb = minus(p, b), pc = minus(p, c);
    const Vector apart = {
        wa * pa.x + wb * pb.x + wc * pc.x, wa * pa.y + wb * pb.y + wc * pc.y, wa * pa.z + wb * pb.z + wc * pc.z};
"""
#: The features of eight names, and where their vertices are; what follows reads corners.
_NAMED = """
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const long long name = names.data[begin + lane], mask = (1ll << bits) - 1;
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
    + EDGES
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
    + FACES
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
def append_names(
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
    """Append the names of those of eight candidates that a mask names, as `take` does: what does not fit is counted."""
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
    + EDGES
    + """
    const Wide weight[4] = {unit - u, u, unit - v, v};
"""
    + _GAPS
)
def fill_edges_in_lanes(
    begin: int,
    names: wp.array[wp.int64],
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
    + FACES
    + """
    const Wide weight[4] = {unit, wa, wb, wc};
"""
    + _GAPS
)
def fill_faces_in_lanes(
    begin: int,
    names: wp.array[wp.int64],
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
