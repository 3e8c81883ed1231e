"""One oriented box against four, for CPUs, and four sines at once; texts that follow each other.

Method: the directions of `geometry.obb.separating_axis`, in coordinates along the axes of the single box: face normals
        first, and where none separates a lane by as much as is to be kept, products of edges. Choices instead of
        branches: only whether any lane needs edges is asked.
Sound:  every direction certifies its own gap. As there, a direction is defined by its coordinates along the single
        box's axes, and where the orthogonality of the four is used their extents are enlarged.
"""

from __future__ import annotations

#: `Wide`: four float64; `Whole`: what is true of which; `bits_of`: that as a mask.
FOUR_WIDE = """
    typedef double Wide __attribute__((ext_vector_type(4)));
    typedef float Narrow __attribute__((ext_vector_type(4), aligned(4)));
    typedef decltype(Wide() < Wide()) Whole;
    typedef bool Bits __attribute__((ext_vector_type(4)));
    const Wide zero = (Wide)0.0, unit = (Wide)1.0;
    auto absolute = [](Wide x) -> Wide { return __builtin_elementwise_abs(x); };
    auto larger = [](Wide x, Wide y) -> Wide { return __builtin_elementwise_max(x, y); };
    auto smaller = [](Wide x, Wide y) -> Wide { return __builtin_elementwise_min(x, y); };
    auto fused = [](Wide x, Wide y, Wide z) -> Wide { return __builtin_elementwise_fma(x, y, z); };
    auto root_of = [](Wide x) -> Wide { return __builtin_elementwise_sqrt(x); };
    auto signed_as = [](Wide x, Wide sign) -> Wide { return __builtin_elementwise_copysign(x, sign); };
    auto bits_of = [](Whole truth) -> unsigned {
        return (unsigned)__builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits)) & 15u;
    };
"""
#: `sine_of_twice(x, sine, versine)`: sin 2x and 1 - cos 2x of four |x| < 1e9: multiples of pi drop out of both. Taylor
#: series of sine and cosine up to pi / 2, whose rest is below half of a rounding.
SINES = """
    auto sine_of_twice = [&](Wide x, Wide& sine, Wide& versine) {
        const Wide turns = __builtin_elementwise_rint(x * 0.31830988618379067);
        const Wide r = fused(turns, (Wide)-1.2246467991473532e-16, fused(turns, (Wide)-3.141592653589793, x));
        const Wide q = r * r;
        Wide s = (Wide)-3.868170170630684e-23, c = (Wide)-8.896791392450574e-22;
        s = fused(s, q, (Wide)1.9572941063391263e-20);
        c = fused(c, q, (Wide)4.110317623312165e-19);
        s = fused(s, q, (Wide)-8.22063524662433e-18);
        c = fused(c, q, (Wide)-1.5619206968586225e-16);
        s = fused(s, q, (Wide)2.8114572543455206e-15);
        c = fused(c, q, (Wide)4.779477332387385e-14);
        s = fused(s, q, (Wide)-7.647163731819816e-13);
        c = fused(c, q, (Wide)-1.1470745597729725e-11);
        s = fused(s, q, (Wide)1.6059043836821613e-10);
        c = fused(c, q, (Wide)2.08767569878681e-09);
        s = fused(s, q, (Wide)-2.505210838544172e-08);
        c = fused(c, q, (Wide)-2.755731922398589e-07);
        s = fused(s, q, (Wide)2.7557319223985893e-06);
        c = fused(c, q, (Wide)2.48015873015873e-05);
        s = fused(s, q, (Wide)-0.0001984126984126984);
        c = fused(c, q, (Wide)-0.001388888888888889);
        s = fused(s, q, (Wide)0.008333333333333333);
        c = fused(c, q, (Wide)0.041666666666666664);
        s = fused(s, q, (Wide)-0.16666666666666666);
        c = fused(c, q, (Wide)-0.5);
        s = fused(s * q, r, r);
        c = fused(c, q, unit);
        sine = 2.0 * s * c;
        versine = 2.0 * s * s;
    };
"""
#: `separate(c, m, half, size, keep, n) -> gap`: the direction n with the largest gap from one box, of half sizes
#: `half`, to four of half sizes `size`. c: from its centre to theirs; m[i][j]: its axis i times their axis j.
ONE_AGAINST_FOUR = """
    auto separate = [&](const Wide (&c)[3], const Wide (&m)[3][3], const double (&half)[3], const Wide (&size)[3],
                        double keep, Wide (&n)[3]) -> Wide {
        Wide l[3][3];
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                l[i][j] = absolute(m[i][j]);
        const Wide lean = (size[0] + size[1] + size[2]) * 2.0e-6;
        Wide gap = absolute(c[0]) - half[0] - fused(l[0][0], size[0], fused(l[0][1], size[1], l[0][2] * size[2]));
        n[0] = signed_as(unit, c[0]);
        n[1] = zero;
        n[2] = zero;
        for (int i = 1; i < 3; ++i) {
            const Wide extent = fused(l[i][0], size[0], fused(l[i][1], size[1], l[i][2] * size[2]));
            const Wide g = absolute(c[i]) - half[i] - extent;
            const Whole better = g > gap;
            gap = better ? g : gap;
            for (int k = 0; k < i; ++k)
                n[k] = better ? zero : n[k];
            n[i] = better ? signed_as(unit, c[i]) : zero;
        }
        for (int j = 0; j < 3; ++j) {
            const Wide d = fused(c[0], m[0][j], fused(c[1], m[1][j], c[2] * m[2][j]));
            const Wide across = fused(l[0][j], (Wide)half[0], fused(l[1][j], (Wide)half[1], l[2][j] * half[2]));
            const Wide g = absolute(d) - size[j] - across - lean;
            const Whole better = g > gap;
            const Wide sign = signed_as(unit, d);
            gap = better ? g : gap;
            for (int k = 0; k < 3; ++k)
                n[k] = better ? sign * m[k][j] : n[k];
        }
        const Whole none = !(gap > keep);
        if (bits_of(none)) {
            #pragma clang loop unroll(full)
            for (int i = 0; i < 3; ++i) {
                const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
                #pragma clang loop unroll(full)
                for (int j = 0; j < 3; ++j) {
                    const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
                    const Wide u = m[i1][j], v = m[i2][j];
                    const Wide d = c[i2] * u - c[i1] * v;
                    const Wide extent = fused(l[i2][j], (Wide)half[i1], fused(l[i1][j], (Wide)half[i2],
                        fused(size[j1], l[i][j2], fused(size[j2], l[i][j1], lean))));
                    Wide g = absolute(d) - extent;
                    Whole better = (g > zero) & none;
                    if (bits_of(better)) {
                        const Wide length = root_of(fused(u, u, v * v));
                        const Wide scale = 1.0 / larger(length, (Wide)1.0e-4);
                        g = g * scale;
                        better = (g > gap) & none & (length > 1.0e-4);
                        gap = better ? g : gap;
                        const Wide turned = signed_as(scale, d);
                        n[i] = better ? zero : n[i];
                        n[i2] = better ? turned * u : n[i2];
                        n[i1] = better ? -turned * v : n[i1];
                    }
                }
            }
        }
        return gap;
    };
"""
