"""What a slice of dofs does at the end of a sweep: sums over it, the shift of its body, the acceleration (CPU).

Positions lie in fours, with a zero. The formulas are those of `solver.cuda.sweep_end` and `solver.anderson`.
"""

from __future__ import annotations

import warp as wp

from tangere.soft.solver.anderson import Dots


@wp.func
def body_shift(
    b: int,
    slice_begin: int,
    slice_end: int,
    missing: wp.array[wp.vec4d],
    anchored: int,
    mass_per_dt2: wp.float64,
    per_dt2: wp.float64,
    sums: wp.array2d[wp.float64],
) -> wp.vec4d:
    """The shift of a body, see `sweep_end`."""
    if anchored != 0:
        return wp.vec4d()
    push = wp.vec3d(sums[b, 0], sums[b, 1], sums[b, 2])
    total = wp.vec4d()
    for s in range(slice_begin, slice_end):
        total += missing[s]
    push += per_dt2 * wp.vec3d(total[0], total[1], total[2])
    m = mass_per_dt2
    matrix = wp.mat33d(
        m + sums[b, 4],
        sums[b, 5],
        sums[b, 6],
        sums[b, 5],
        m + sums[b, 7],
        sums[b, 8],
        sums[b, 6],
        sums[b, 8],
        m + sums[b, 9],
    )
    shift = wp.inverse(matrix) * push
    return wp.vec4d(shift[0], shift[1], shift[2], wp.float64(0.0))


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const Four* a = (const Four*)x.data;
    const Four* b = (const Four*)y.data;
    Four sum = {};
    for (int i = begin; i < end; ++i)
        sum += mass.data[i] * (b[i] - a[i]);
    return wp::vec_t<4, wp::float64>(sum[0], sum[1], sum[2], 0.0);
"""
)
def missing_move(
    begin: int, end: int, mass: wp.array[wp.float64], x: wp.array[wp.vec4d], y: wp.array[wp.vec4d]
) -> wp.vec4d:
    """Mass times what is missing of the free motion, of some dofs."""
    ...


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const int count = x.shape[0];
    auto in = [](auto& array) -> Four* { return (Four*)array.data; };
    Four* all = in(differences_r);
    Four sums[10] = {};
    for (int i = begin; i < end; ++i) {
        if (free.data[i] == 0)
            continue;
        const Four here = in(x)[i] + *(const Four*)&shift;
        in(x)[i] = here;
        if (slot < 0)
            continue;
        const Four r = here - in(before)[i];
        all[slot * count + i] = r - in(last_r)[i];
        in(differences_x)[slot * count + i] = here - in(last_x)[i];
        in(last_r)[i] = r;
        in(last_x)[i] = here;
        const Four a = all[i], b = all[count + i], c = all[2 * count + i];
        const double m = mass.data[i];
        const Four ma = m * a, mb = m * b, mr = m * r;
        sums[0] += ma * a, sums[1] += ma * b, sums[2] += ma * c, sums[3] += mb * b, sums[4] += mb * c;
        sums[5] += m * c * c, sums[6] += mr * a, sums[7] += mr * b, sums[8] += mr * c, sums[9] += mr * r;
    }
    for (int k = 0; k < 10; ++k)
        ((double*)&dots.data[part])[k] = sums[k][0] + sums[k][1] + sums[k][2];
"""
)
def shift_and_record(
    part: int,
    begin: int,
    end: int,
    slot: int,
    shift: wp.vec4d,
    mass: wp.array[wp.float64],
    free: wp.array[int],
    x: wp.array[wp.vec4d],
    before: wp.array[wp.vec4d],
    last_r: wp.array[wp.vec4d],
    last_x: wp.array[wp.vec4d],
    differences_r: wp.array2d[wp.vec4d],
    differences_x: wp.array2d[wp.vec4d],
    dots: wp.array[Dots],
):
    """Some dofs go along with their body; unless the slot is negative, see `anderson.remember`."""
    ...


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const int count = x.shape[0];
    Four* here = (Four*)x.data;
    const Four* d = (const Four*)differences_x.data;
    for (int i = begin; i < end; ++i) {
        if (free.data[i] == 1)
            here[i] -= theta[0] * d[i] + theta[1] * d[count + i] + theta[2] * d[2 * count + i];
        ((Four*)before.data)[i] = here[i];
    }
"""
)
def accelerate_slice(
    begin: int,
    end: int,
    theta: wp.vec3d,
    free: wp.array[int],
    x: wp.array[wp.vec4d],
    before: wp.array[wp.vec4d],
    differences_x: wp.array2d[wp.vec4d],
):
    """Some dofs go where the combination puts them."""
    ...
