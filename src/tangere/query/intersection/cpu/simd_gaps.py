"""How far eight pairs of triangles are apart at least, for CPUs; nothing here is for CUDA."""

from __future__ import annotations

import warp as wp

from tangere.geometry.simd import VECTORS
from tangere.geometry.simd.triangle_gaps import TRIANGLE_GAPS

_CODE = """
    const int count = end - begin < 8 ? end - begin : 8;
    const int* leaf = &scratch.data[(long long)row * scratch.shape[1] + listed + begin * width];
    const double* at_a[3][8];
    const double* at_b[3][8];
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int a = leaf[k * width], b = leaf[k * width + 1];
        for (int c = 0; c < 3; ++c) {
            at_a[c][lane] = (const double*)&corners_a.data[3 * a + c];
            at_b[c][lane] = (const double*)&corners_b.data[3 * b + c];
        }
    }
    const double* r_a = (const double*)&rotation_a;
    const double* r_b = (const double*)&rotation_b;
    const double* s_a = (const double*)&translation_a;
    const double* s_b = (const double*)&translation_b;
    const double* n = (const double*)&towards;
    auto placed = [](Vector p, const double* t, const double* s) -> Vector {
        return {t[0] * p.x + t[1] * p.y + t[2] * p.z + s[0], t[3] * p.x + t[4] * p.y + t[5] * p.z + s[1],
                t[6] * p.x + t[7] * p.y + t[8] * p.z + s[2]};
    };
    Vector a[3], b[3];
    for (int c = 0; c < 3; ++c) {
        a[c] = placed(gathered(at_a[c]), r_a, s_a);
        b[c] = placed(gathered(at_b[c]), r_b, s_b);
    }
    const Wide gap = triangle_gaps(a, b, {(Wide)n[0], (Wide)n[1], (Wide)n[2]});
    for (int lane = 0; lane < 8; ++lane)
        gaps.data[8 * row + lane] = gap[lane];
    return bits_of(gap < (Wide)below) & ((1 << count) - 1);
"""


@wp.func_native(VECTORS + TRIANGLE_GAPS + _CODE)
def gaps_below(
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    rotation_a: wp.mat33d,
    translation_a: wp.vec3d,
    rotation_b: wp.mat33d,
    translation_b: wp.vec3d,
    towards: wp.vec3d,
    below: wp.float64,
    listed: int,
    width: int,
    begin: int,
    end: int,
    row: int,
    scratch: wp.array2d[int],
    gaps: wp.array[wp.float64],
) -> int:
    """Which of the listed pairs of triangles from `begin` on, at most eight, have a gap smaller than `below`.

    Args:
        towards: a direction to look along, in the world, where corners are compared; a unit vector, or zero.
        listed, width: where pairs stand in a row of `scratch`, and how many numbers each has.
        gaps: eight of each row: lower bounds of the distances.
    """
    ...
