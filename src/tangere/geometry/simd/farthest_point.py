"""The point of a table that is farthest along a direction.

Question: of `count` points from `first` on, which has the largest product with d, and how large is it?
Method:   all of them: on CPUs eight at a time, with one maximum for each lane; the last eight may be asked twice. Hulls
          have some dozens of corners: walking along edges would wait for each step, and this does not.
Sound:    products are rounded after each operation, on CPU and CUDA alike; of points that tie any may be answered.
Known as: the support mapping of a polytope by exhaustive search.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: `eight(k)`: the products of eight points from the k-th on, read as 24 numbers that lie side by side.
_EIGHT = """
    typedef double Wide __attribute__((ext_vector_type(8)));
    typedef double Packed __attribute__((ext_vector_type(8), aligned(8)));
    const double x = d[0], y = d[1], z = d[2];
    auto eight = [&](int k) -> Wide {
        const Packed* row = (const Packed*)(points.data + k);
        const Wide p = row[0], q = row[1], r = row[2];
        const Wide px = __builtin_shufflevector(__builtin_shufflevector(p, q, 0, 3, 6, 9, 12, 15, -1, -1), r,
                                                0, 1, 2, 3, 4, 5, 10, 13);
        const Wide py = __builtin_shufflevector(__builtin_shufflevector(p, q, 1, 4, 7, 10, 13, -1, -1, -1), r,
                                                0, 1, 2, 3, 4, 8, 11, 14);
        const Wide pz = __builtin_shufflevector(__builtin_shufflevector(p, q, 2, 5, 8, 11, 14, -1, -1, -1), r,
                                                0, 1, 2, 3, 4, 9, 12, 15);
        return px * x + py * y + pz * z;
    };
"""


@wp.func_native(
    f"""
    const int end = first + count;
#if !defined(__CUDA_ARCH__)
    if (count >= 8) {{
        {_EIGHT}
        Wide most = eight(end - 8);
        for (int k = first; k + 8 < end; k += 8)
            most = __builtin_elementwise_max(most, eight(k));
        return __builtin_reduce_max(most);
    }}
#endif
    double most = wp::dot(points.data[first], d);
    for (int k = first + 1; k < end; ++k)
        most = wp::max(most, wp::dot(points.data[k], d));
    return most;
"""
)
def largest_along(points: wp.array[wp.vec3d], first: int, count: int, d: wp.vec3d) -> wp.float64:
    """The largest product of d, of any length, with one of `count` points."""
    ...


@wp.func_native(
    f"""
    const int end = first + count;
#if !defined(__CUDA_ARCH__)
    if (count >= 8) {{
        {_EIGHT}
        typedef decltype(Wide() < Wide()) Whole;
        typedef bool Bits __attribute__((ext_vector_type(8)));
        Wide most = eight(end - 8);
        Whole from = (Whole)(long long)(end - 8);
        for (int k = first; k + 8 < end; k += 8) {{
            const Wide here = eight(k);
            const Whole more = here > most;
            most = more ? here : most;
            from = more ? (Whole)(long long)k : from;
        }}
        const Whole largest = most == (Wide)__builtin_reduce_max(most);
        const int lanes = __builtin_bit_cast(unsigned char, __builtin_convertvector(largest, Bits));
        const int lane = __builtin_ctz(lanes | 128);  // the last one where nothing compares
        return (int)from[lane] + lane;
    }}
#endif
    int best = first;
    double most = wp::dot(points.data[first], d);
    for (int k = first + 1; k < end; ++k) {{
        const double here = wp::dot(points.data[k], d);
        if (here > most) {{
            most = here;
            best = k;
        }}
    }}
    return best;
"""
)
def farthest_point(points: wp.array[wp.vec3d], first: int, count: int, d: wp.vec3d) -> int:
    """The row of the point, of `count`, with the largest product with d, of any length."""
    ...
