"""Eight pairs of triangles at a time, for CPUs: which are near, and which of their features may be constraints.

The twin of the filters of `posed.leaf` (`compare_triangles`, `may_touch`), in float64 and with the same room for
rounding; kinds of features that none of eight triangles owns are passed over. Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.eights import FIRST_LEAF, SCRATCH
from tangere.geometry.simd import VECTORS
from tangere.query.proximity.posed.features import HAS_PLANE
from tangere.query.proximity.posed.leaf import (
    CANDIDATES,
    EDGES,
    EDGES_OF_A,
    EDGES_OF_B,
    FACES_OF_A,
    LIMIT_ROOM,
    NEARLY_PARALLEL,
    RIM_ROOM,
    VERTICES,
)

_LANES = 8
#: Where candidates stand in a row of scratch memory, two numbers each: which pair of triangles, which candidate.
FIRST_CANDIDATE = wp.constant(SCRATCH)
#: Numbers of a row with room for the candidates of eight pairs.
SCRATCH_WITH_CANDIDATES = SCRATCH + 2 * _LANES * int(CANDIDATES)

_CODE = f"""
    const int first_leaf = {int(FIRST_LEAF)}, first_candidate = {int(FIRST_CANDIDATE)}, plane = {1 << HAS_PLANE};
    const int faces_of_a = {int(FACES_OF_A)}, edges = {int(EDGES)}, edges_of_b = {int(EDGES_OF_B)};
    const int edges_of_a = {int(EDGES_OF_A)}, vertices = {int(VERTICES)};
    const double rim = {RIM_ROOM!r}, limit_room = {LIMIT_ROOM!r}, parallel = {NEARLY_PARALLEL!r};
"""
_CODE += """
    int* state = &scratch.data[(long long)shard * scratch.shape[1]];
    const int* leaf = state + first_leaf + 2 * begin;
    int* listed = state + first_candidate;
    const int count = end - begin < 8 ? end - begin : 8;
    int owns_a[8], owns_b[8], own_all_a = 0, own_all_b = 0;
    const double* at_a[3][8];
    const double* at_b[3][8];
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int a = face_a + leaf[2 * k], b = face_b + leaf[2 * k + 1];
        owns_a[lane] = owns.data[a];
        owns_b[lane] = owns.data[b];
        for (int c = 0; c < 3; ++c) {
            at_a[c][lane] = (const double*)&corners.data[3 * a + c];
            at_b[c][lane] = (const double*)&corners.data[3 * b + c];
        }
    }
    const double* t = (const double*)&turn;
    const double* s = (const double*)&shift;
    const double* n = (const double*)&towards;
    Vector a[3], b[3], d[3], e[3];
    for (int c = 0; c < 3; ++c) {
        a[c] = gathered(at_a[c]);
        const Vector p = gathered(at_b[c]);
        b[c] = {t[0] * p.x + t[1] * p.y + t[2] * p.z + s[0], t[3] * p.x + t[4] * p.y + t[5] * p.z + s[1],
                t[6] * p.x + t[7] * p.y + t[8] * p.z + s[2]};
    }
    for (int c = 0; c < 3; ++c) {
        d[c] = minus(a[(c + 1) % 3], a[c]);
        e[c] = minus(b[(c + 1) % 3], b[c]);
    }
    auto least_of = [](Wide x, Wide y, Wide z) -> Wide {
        return __builtin_elementwise_min(__builtin_elementwise_min(x, y), z);
    };
    auto largest_of = [](Wide x, Wide y, Wide z) -> Wide {
        return __builtin_elementwise_max(__builtin_elementwise_max(x, y), z);
    };
    auto cross = [](Vector p, Vector q) -> Vector {
        return {p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z, p.x * q.y - p.y * q.x};
    };
    const Vector way = {(Wide)n[0], (Wide)n[1], (Wide)n[2]};
    const Wide along = least_of(dot(b[0], way), dot(b[1], way), dot(b[2], way))
        - largest_of(dot(a[0], way), dot(a[1], way), dot(a[2], way));
    const Vector normal_a = cross(d[0], minus(a[2], a[0])), normal_b = cross(e[0], minus(b[2], b[0]));
    const Wide area_a = dot(normal_a, normal_a), area_b = dot(normal_b, normal_b);
    auto gap_across = [&](Vector normal) -> Wide {
        const Wide a0 = dot(a[0], normal), a1 = dot(a[1], normal), a2 = dot(a[2], normal);
        const Wide b0 = dot(b[0], normal), b1 = dot(b[1], normal), b2 = dot(b[2], normal);
        return __builtin_elementwise_max(
            least_of(b0, b1, b2) - largest_of(a0, a1, a2), least_of(a0, a1, a2) - largest_of(b0, b1, b2));
    };
    const Wide gap_a = gap_across(normal_a), gap_b = gap_across(normal_b);
    const double far = limit + tiny, beyond = far * far * limit_room;
    const int counted = (1 << count) - 1;
    const int apart = bits_of(along > (Wide)far)
        | bits_of((gap_a > zero) & (gap_a * gap_a > beyond * area_a))
        | bits_of((gap_b > zero) & (gap_b * gap_b > beyond * area_b));
    const int near = counted & ~apart;
    if (near == 0)
        return wp::vec_t<4, wp::int32>(0, 0, 0, 0);
    const double squared = nearest * nearest;
    const int nearer = near & bits_of(along < (Wide)nearest)
        & ~bits_of((gap_a > zero) & (gap_a * gap_a >= squared * area_a))
        & ~bits_of((gap_b > zero) & (gap_b * gap_b >= squared * area_b));
    const int may_meet = near & bits_of((along <= (Wide)tiny) & (gap_a <= zero) & (gap_b <= zero));

    int most_likely = 0;
    if (nearer) {
        const Wide low = largest_of(
            along, gap_a / __builtin_elementwise_sqrt(area_a), gap_b / __builtin_elementwise_sqrt(area_b));
        for (int lane = 0; lane < 8; ++lane)
            certain.data[8 * shard + lane] = low[lane];
        most_likely = __builtin_ctz(nearer);
        for (int lane = most_likely + 1; lane < 8; ++lane)
            if ((nearer >> lane & 1) && low[lane] < low[most_likely])
                most_likely = lane;
    }
    int found = 0;
    auto list = [&](int mask, int candidate) {
        for (; mask; mask &= mask - 1) {
            listed[2 * found] = begin + __builtin_ctz(mask);
            listed[2 * found + 1] = candidate;
            ++found;
        }
    };
    // Masks of the triangles that are near and own corner k (k) or side k (3 + k), or have a plane (6).
    int mine[7], other[7];
    for (int k = 0; k < 7; ++k) {
        mine[k] = other[k] = 0;
        for (int lane = 0; lane < 8; ++lane) {
            mine[k] |= (owns_a[lane] >> k & 1) << lane;
            other[k] |= (owns_b[lane] >> k & 1) << lane;
        }
        mine[k] &= near;
        other[k] &= near;
    }
    const double within = limit * limit * limit_room;
    auto over = [&](Vector p, const Vector* face, Vector normal, Wide area) -> int {
        const Vector r = minus(p, face[0]);
        const Wide across = dot(r, normal), room = -rim * area;
        const Wide w1 = dot(cross(r, minus(face[2], face[0])), normal);
        const Wide w2 = dot(cross(minus(face[1], face[0]), r), normal);
        return bits_of((across * across <= within * area) & (w1 >= room) & (w2 >= room) & (area - w1 - w2 >= room));
    };
    for (int k = 0; k < 3; ++k) {
        const int on_b = mine[k] & other[6], on_a = other[k] & mine[6];
        if (on_b)
            list(on_b & over(a[k], b, normal_b, area_b), k);
        if (on_a)
            list(on_a & over(b[k], a, normal_a, area_a), faces_of_a + k);
    }
    if ((mine[0] | mine[1] | mine[2] | mine[3] | mine[4] | mine[5]) == 0)
        return wp::vec_t<4, wp::int32>(found, nearer, may_meet, most_likely);
    auto beside = [&](Vector p, Vector q, Vector edge) -> int {
        const Vector r = minus(p, q);
        const Wide on = dot(r, edge), size = dot(edge, edge), room = rim * size, rr = dot(r, r);
        return bits_of((on >= -room) & (on <= size + room) & (rr * size - on * on <= (within + rim * rr) * size));
    };
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const int place = (3 * i + j + 3) % 9;
            const int crossing = mine[3 + i] & other[3 + j], on_edge = mine[i] & other[3 + j];
            const int on_mine = mine[3 + i] & other[j], corner_pair = mine[i] & other[j];
            if (crossing) {
                const Vector r = minus(b[j], a[i]), normal = cross(d[i], e[j]);
                const Wide area = dot(normal, normal), across = dot(r, normal), room = rim * area;
                const Wide u = dot(cross(r, e[j]), normal), w = dot(cross(r, d[i]), normal);
                const Whole inside = (u >= -room) & (w >= -room) & (u <= area + room) & (w <= area + room);
                const Whole askew = area <= parallel * dot(d[i], d[i]) * dot(e[j], e[j]);
                list(crossing & bits_of((across * across <= within * area) & (inside | askew)), edges + place);
            }
            if (on_edge)
                list(on_edge & beside(a[i], b[j], e[j]), edges_of_b + place);
            if (on_mine)
                list(on_mine & beside(b[j], a[i], d[i]), edges_of_a + place);
            if (corner_pair) {
                const Vector r = minus(a[i], b[j]);
                list(corner_pair & bits_of(dot(r, r) <= (Wide)within), vertices + place);
            }
        }
    return wp::vec_t<4, wp::int32>(found, nearer, may_meet, most_likely);
"""


@wp.func_native(VECTORS + _CODE)
def list_candidates(
    corners: wp.array[wp.vec3d],
    owns: wp.array[int],
    face_a: int,
    face_b: int,
    turn: wp.mat33d,
    shift: wp.vec3d,
    limit: wp.float64,
    tiny: wp.float64,
    towards: wp.vec3d,
    nearest: wp.float64,
    begin: int,
    end: int,
    shard: int,
    scratch: wp.array2d[int],
    certain: wp.array[wp.float64],
) -> wp.vec4i:
    """Of the listed pairs of triangles from `begin` on, at most eight: how many candidates there are (they stand in
    `scratch` from `FIRST_CANDIDATE` on), masks of pairs that may be nearer than `nearest`, and that may meet, and which
    of the former is likely to be the nearest. `certain` says how far apart those are at least, eight of each shard.

    Args:
        face_a, face_b: the first triangle of the shape of each body.
        towards: from a to b where they were nearest so far.
    """
    ...
