"""Planes of four triangles at once, for CPUs: what a polytope that grows asks most often."""

from __future__ import annotations

import warp as wp


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return (1 << count) - 1;
#else
    typedef double Wide __attribute__((ext_vector_type(4)));
    typedef double Loose __attribute__((ext_vector_type(4), aligned(8)));
    typedef bool Bits __attribute__((ext_vector_type(4)));
    struct Vector { Wide x, y, z; };
    const double* from = (const double*)(corners.data + base);
    int slots[4];
    const double* at[3][4];
    #pragma clang loop vectorize(disable) unroll(full)
    for (int lane = 0; lane < 4; ++lane) {
        slots[lane] = listed.data[begin + (lane < count ? lane : 0)];
        const int* face = (const int*)(faces.data + start + slots[lane]);
        for (int k = 0; k < 3; ++k)
            at[k][lane] = from + 3 * face[k];
    }
    auto gathered = [](const double* const* of) -> Vector {
        return {Wide{of[0][0], of[1][0], of[2][0], of[3][0]}, Wide{of[0][1], of[1][1], of[2][1], of[3][1]},
                Wide{of[0][2], of[1][2], of[2][2], of[3][2]}};
    };
    auto dot = [](Vector a, Vector b) -> Wide { return a.x * b.x + a.y * b.y + a.z * b.z; };
    auto lesser = [](Wide a, Wide b) -> Wide { return a < b ? a : b; };
    auto larger = [](Wide a, Wide b) -> Wide { return a > b ? a : b; };
    const Vector x = gathered(at[0]), y = gathered(at[1]), z = gathered(at[2]);
    const Vector u = {y.x - x.x, y.y - x.y, y.z - x.z}, v = {z.x - x.x, z.y - x.y, z.z - x.z};
    Vector n = {u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z, u.x * v.y - u.y * v.x};
    const Wide squared = dot(n, n);
    const auto broad = squared > thin * thin * dot(u, u) * dot(v, v);
    const Wide inverse = 1.0 / __builtin_elementwise_sqrt(squared);
    n = {n.x * inverse, n.y * inverse, n.z * inverse};
    const Wide one = dot(n, x), two = dot(n, y), three = dot(n, z);
    const Wide top = larger(one, larger(two, three)), nearest = lesser(one, lesser(two, three));
    const Wide a = __builtin_shufflevector(n.x, n.y, 0, 4, 2, 6), b = __builtin_shufflevector(n.x, n.y, 1, 5, 3, 7);
    const Wide c = __builtin_shufflevector(n.z, top, 0, 4, 2, 6), d = __builtin_shufflevector(n.z, top, 1, 5, 3, 7);
    const Wide rows[4] = {
        __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(b, d, 0, 1, 4, 5),
        __builtin_shufflevector(a, c, 2, 3, 6, 7), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
    #pragma clang loop vectorize(disable) unroll(full)
    for (int lane = 3; lane >= 0; --lane) {
        *(Loose*)(planes.data + start + slots[lane]) = rows[lane];
        distances.data[start + slots[lane]] = nearest[lane];
    }
    const int told = (int)(__builtin_bit_cast(unsigned char, __builtin_convertvector(broad, Bits)) & 15u);
    return ~told & ((1 << count) - 1);
#endif
""")
def place_four_planes(
    corners: wp.array[wp.vec3d],
    base: int,
    faces: wp.array[wp.vec3i],
    planes: wp.array[wp.vec4d],
    distances: wp.array[wp.float64],
    start: int,
    listed: wp.array[int],
    begin: int,
    count: int,
    thin: wp.float64,
) -> int:
    """Write the planes of up to four triangles; which of them are left to write, as a mask.

    Triangles are those that `listed` names from `begin` on, counted from `start`; their corners are counted from
    `base`. A plane is a unit normal and how far the farthest corner is along it, a distance how far the nearest one is.
    Left are those with a sine of less than `thin` at their first corner; on CUDA all are.
    """
    ...
