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
#: `best`: the larger two of `most`, by halves. The compiler's own reduction, which minds what does not compare, takes
#: longer than two dozen points.
_HALVES = """
        typedef double Half __attribute__((ext_vector_type(4)));
        typedef double Pair __attribute__((ext_vector_type(2)));
        typedef decltype(Half() < Half()) Four;
        typedef decltype(Pair() < Pair()) Two;
        const Half low = most.lo, high = most.hi;
        const Half larger = high > low ? high : low;
        const Pair left = larger.lo, right = larger.hi;
        const Pair best = right > left ? right : left;
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
        {_HALVES}
        return best.y > best.x ? best.y : best.x;
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
        Wide most = eight(end - 8);
        Whole from = (Whole)(long long)(end - 8);
        for (int k = first; k + 8 < end; k += 8) {{
            const Wide here = eight(k);
            const Whole more = here > most;
            most = more ? here : most;
            from = more ? (Whole)(long long)k : from;
        }}
        from += Whole{{0, 1, 2, 3, 4, 5, 6, 7}};
        {_HALVES}
        const Four four = high > low ? (Four)from.hi : (Four)from.lo;
        const Two two = right > left ? (Two)four.hi : (Two)four.lo;
        return (int)(best.y > best.x ? two.y : two.x);
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
