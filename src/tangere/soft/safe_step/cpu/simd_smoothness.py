"""The certificates of `smoothness` for CPUs: eight vertices at a time, and nothing about a place is found twice.

A step begins where the one before ended, and iterations of the truncation change only where it ends. So what the map of
a patch and its errors are at the start is known already, unless something was put elsewhere. Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.simd import VECTORS
from tangere.runtime import SOUND
from tangere.soft.safe_step.patch_layout import PatchReference
from tangere.soft.safe_step.smoothness import smallest_stretch

wp.set_module_options(SOUND)

#: What is known of where a step begins: what was known before, what was known of where the last one ended, or nothing.
AS_BEFORE, FROM_END, UNKNOWN = (wp.constant(k) for k in range(3))
#: Vertices that are laid side by side at once; few patches have more around them.
AT_ONCE = 256


@wp.kernel
def simd_certify(
    first: int,
    patches: wp.array[int],
    reference: PatchReference,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    known: int,
    maps: wp.array2d[wp.mat33d],
    errors: wp.array2d[wp.vec2d],
    certified: wp.array[int],
):
    """Certify a patch; `maps` and `errors` are those at its start and end."""
    p = patches[first + wp.tid()]
    certified[p] = 0
    if reference.clearance[p] <= wp.float64(0.0):
        return
    if known == FROM_END:
        maps[0, p] = maps[1, p]
        errors[0, p] = errors[1, p]
    elif known == UNKNOWN:
        simd_fit_map(p, 0, reference, start, maps, errors)
    simd_fit_map(p, 1, reference, end, maps, errors)
    certified[p] = int(reference.clearance[p] > needed_clearance(p, maps, errors, least))


@wp.func
def needed_clearance(
    p: int, maps: wp.array2d[wp.mat33d], errors: wp.array2d[wp.vec2d], least: wp.float64
) -> wp.float64:
    """How far apart features must have been once for the patch to be certified; infinite if that is never enough."""
    half = wp.float64(0.5)
    change = maps[1, p] - maps[0, p]
    stretch = smallest_stretch(half * (maps[0, p] + maps[1, p])) - half * wp.sqrt(wp.ddot(change, change))
    if not (stretch > wp.float64(0.0)):
        return wp.float64(wp.inf)
    worst = wp.max(errors[0, p], errors[1, p])
    return (wp.sqrt(worst[0]) + wp.sqrt(worst[1]) + least) / stretch


@wp.func_native(
    VECTORS
    + f"""
    const int most = {AT_ONCE};
"""
    + """
    const int begin = reference.offsets.data[p], stop = reference.offsets.data[p + 1];
    alignas(64) double at[3][most], once[3][most];
    alignas(64) long long mine[most];
    // Lanes beyond the last vertex repeat the first one, which adds nothing: all is measured from it.
    auto gather = [&](int from) -> int {
        const int count = stop - from < most ? stop - from : most;
        #pragma clang loop vectorize(disable)
        for (int k = 0; k < count; ++k) {
            const double* place = (const double*)&x.data[reference.vertices.data[from + k]];
            const double* before = (const double*)&reference.rest.data[from + k];
            for (int c = 0; c < 3; ++c) {
                at[c][k] = place[c];
                once[c][k] = before[c];
            }
            mine[k] = -(long long)reference.own.data[from + k];
        }
        const double* first = (const double*)&x.data[reference.vertices.data[begin]];
        const double* before = (const double*)&reference.rest.data[begin];
        for (int k = count; k % 8; ++k) {
            for (int c = 0; c < 3; ++c) {
                at[c][k] = first[c];
                once[c][k] = before[c];
            }
            mine[k] = 0;
        }
        return count;
    };
    auto row = [](const double (&of)[3][most], int k) -> Vector {
        return {*(const Wide*)&of[0][k], *(const Wide*)&of[1][k], *(const Wide*)&of[2][k]};
    };
    auto added = [](Wide a) -> double {
        return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
    };
    const double* zeroth = (const double*)&x.data[reference.vertices.data[begin]];
    const Vector origin = {(Wide)zeroth[0], (Wide)zeroth[1], (Wide)zeroth[2]};
    Vector sum = {zero, zero, zero}, by_x = sum, by_y = sum, by_z = sum;
    for (int from = begin; from < stop; from += most) {
        const int count = gather(from);
        for (int k = 0; k < count; k += 8) {
            const Vector r = minus(row(at, k), origin), d = row(once, k);
            sum = {sum.x + r.x, sum.y + r.y, sum.z + r.z};
            by_x = {by_x.x + r.x * d.x, by_x.y + r.x * d.y, by_x.z + r.x * d.z};
            by_y = {by_y.x + r.y * d.x, by_y.y + r.y * d.y, by_y.z + r.y * d.z};
            by_z = {by_z.x + r.z * d.x, by_z.y + r.z * d.y, by_z.z + r.z * d.z};
        }
    }
    const Wide products[9] = {by_x.x, by_x.y, by_x.z, by_y.x, by_y.y, by_y.z, by_z.x, by_z.y, by_z.z};
    const double* inverse = (const double*)&reference.duals.data[p];
    const double* t = (const double*)&reference.tangents.data[p];
    double product[9], f[9], one[3], other[3];
    for (int k = 0; k < 9; ++k)
        product[k] = added(products[k]);
    for (int k = 0; k < 9; ++k) {
        const double* r = product + 3 * (k / 3);
        f[k] = r[0] * inverse[k % 3] + r[1] * inverse[3 + k % 3] + r[2] * inverse[6 + k % 3];
    }
    for (int k = 0; k < 3; ++k) {
        one[k] = f[3 * k] * t[0] + f[3 * k + 1] * t[1] + f[3 * k + 2] * t[2];
        other[k] = f[3 * k] * t[3] + f[3 * k + 1] * t[4] + f[3 * k + 2] * t[5];
    }
    const double across[3] = {
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0]};
    const double size = __builtin_sqrt(across[0] * across[0] + across[1] * across[1] + across[2] * across[2]);
    for (int k = 0; k < 9; ++k)
        f[k] += size > 0.0 ? across[k / 3] / size * t[6 + k % 3] : 0.0;
    const double number = stop - begin;
    const Vector centre = {
        origin.x + added(sum.x) / number, origin.y + added(sum.y) / number, origin.z + added(sum.z) / number};
    Wide worst = zero, worst_own = zero;
    for (int from = begin; from < stop; from += most) {
        const int count = stop - begin <= most ? stop - begin : gather(from);
        for (int k = 0; k < count; k += 8) {
            const Vector away = minus(row(at, k), centre), r = row(once, k);
            const Vector error = {
                away.x - (f[0] * r.x + f[1] * r.y + f[2] * r.z),
                away.y - (f[3] * r.x + f[4] * r.y + f[5] * r.z),
                away.z - (f[6] * r.x + f[7] * r.y + f[8] * r.z)};
            const Wide squared = dot(error, error);
            worst = squared > worst ? squared : worst;
            worst_own = (squared > worst_own) & *(const Whole*)&mine[k] ? squared : worst_own;
        }
    }
    double* found = (double*)&errors.data[errors.shape[1] * when + p];
    found[0] = found[1] = 0.0;
    for (int lane = 0; lane < 8; ++lane) {
        found[0] = worst[lane] > found[0] ? worst[lane] : found[0];
        found[1] = worst_own[lane] > found[1] ? worst_own[lane] : found[1];
    }
    double* map = (double*)&maps.data[maps.shape[1] * when + p];
    for (int k = 0; k < 9; ++k)
        map[k] = f[k];
"""
)
def simd_fit_map(
    p: int,
    when: int,
    reference: PatchReference,
    x: wp.array[wp.vec3d],
    maps: wp.array2d[wp.mat33d],
    errors: wp.array2d[wp.vec2d],
):
    """Write the map of a patch at its start (0) or end (1), and its largest squared errors, of all and of its own."""
    ...
