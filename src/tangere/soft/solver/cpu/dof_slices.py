"""What a slice of dofs does at the end of a sweep: sums over it, the shift of its body, the acceleration (CPU).

Positions lie in fours, with a zero. The formulas are those of `solver.cuda.sweep_end` and `solver.anderson`.
"""

from __future__ import annotations

import warp as wp

from tangere.soft.model.assembled_bodies import WholeBodies, inertia_per_mass
from tangere.soft.solver.anderson import Dots


@wp.struct
class BodyColumns:
    """Slices of dofs, masses, and the sums that shift whole bodies."""

    slices: wp.array[wp.vec3i]  #: range of the arrays, and dofs from … to below it
    slices_of: wp.array[int]  #: by range
    mass: wp.array[wp.float64]
    free: wp.array[int]
    body: wp.array[int]  #: by dof
    anchored: wp.array[int]
    whole: WholeBodies
    per_dt2: wp.float64  #: one by the square of dt [1/s^2]
    dt: wp.float64  #: [s]
    columns: int  #: sums of each slice, one for each body that may have dofs in its range
    missing: wp.array[wp.vec4d]
    sums: wp.array2d[wp.float64]
    shift: wp.array[wp.vec4d]


@wp.struct
class MemoryColumns:
    """What the acceleration remembers, as `AndersonMemory`, in fours."""

    before: wp.array[wp.vec4d]
    last_r: wp.array[wp.vec4d]
    last_x: wp.array[wp.vec4d]
    differences_r: wp.array2d[wp.vec4d]
    differences_x: wp.array2d[wp.vec4d]
    dots: wp.array[Dots]
    valid: wp.array[int]
    residual: wp.array[wp.float64]


@wp.func
def body_shift(b: int, bodies: BodyColumns) -> wp.vec4d:
    """The shift of a body, see `sweep_end`."""
    if bodies.anchored[b] != 0:
        return wp.vec4d()
    push = wp.vec3d(bodies.sums[b, 0], bodies.sums[b, 1], bodies.sums[b, 2])
    total = wp.vec4d()
    own = bodies.whole.range[b]
    for s in range(bodies.slices_of[own], bodies.slices_of[own + 1]):
        total += bodies.missing[s * bodies.columns + bodies.whole.place[b]]
    held = inertia_per_mass(b, bodies.whole, bodies.per_dt2, bodies.dt)
    push += held * wp.vec3d(total[0], total[1], total[2])
    m = held * bodies.whole.mass[b]
    xy = bodies.sums[b, 5]
    xz = bodies.sums[b, 6]
    yz = bodies.sums[b, 8]
    matrix = wp.mat33d(m + bodies.sums[b, 4], xy, xz, xy, m + bodies.sums[b, 7], yz, xz, yz, m + bodies.sums[b, 9])
    shift = wp.inverse(matrix) * push
    return wp.vec4d(shift[0], shift[1], shift[2], wp.float64(0.0))


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const Four* a = (const Four*)x.data;
    const Four* b = (const Four*)y.data;
    const auto slice = bodies.slices.data[part];
    Four sum = {};
    for (int i = slice[1]; i < slice[2]; ++i)
        sum += bodies.mass.data[i] * (b[i] - a[i]);
    return wp::vec_t<4, wp::float64>(sum[0], sum[1], sum[2], 0.0);
"""
)
def missing_move(part: int, bodies: BodyColumns, x: wp.array[wp.vec4d], y: wp.array[wp.vec4d]) -> wp.vec4d:
    """Mass times what is missing of the free motion, of some dofs."""
    ...


@wp.func
def missing_moves(part: int, bodies: BodyColumns, x: wp.array[wp.vec4d], y: wp.array[wp.vec4d]):
    """The same of each body that has some of these dofs, where parts have come off."""
    first = part * bodies.columns
    b = bodies.slices[part][0]
    while b >= 0:
        bodies.missing[first + bodies.whole.place[b]] = wp.vec4d()
        b = bodies.whole.following[b]
    for i in range(bodies.slices[part][1], bodies.slices[part][2]):
        own = first + bodies.whole.place[bodies.body[i]]
        bodies.missing[own] = bodies.missing[own] + bodies.mass[i] * (y[i] - x[i])


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const int count = x.shape[0];
    auto in = [](auto& array) -> Four* { return (Four*)array.data; };
    Four* all = in(memory.differences_r);
    Four sums[10] = {};
    const auto slice = bodies.slices.data[part];
    const Four shift = in(bodies.shift)[slice[0]];
    const int* label = bodies.whole.following.data[slice[0]] < 0 ? nullptr : bodies.body.data;
    for (int i = slice[1]; i < slice[2]; ++i) {
        if (bodies.free.data[i] == 0)
            continue;
        const Four here = in(x)[i] + (label ? in(bodies.shift)[label[i]] : shift);
        in(x)[i] = here;
        if (slot < 0)
            continue;
        const Four r = here - in(memory.before)[i];
        all[slot * count + i] = r - in(memory.last_r)[i];
        in(memory.differences_x)[slot * count + i] = here - in(memory.last_x)[i];
        in(memory.last_r)[i] = r;
        in(memory.last_x)[i] = here;
        const Four a = all[i], b = all[count + i], c = all[2 * count + i];
        const double m = bodies.mass.data[i];
        const Four ma = m * a, mb = m * b, mr = m * r;
        sums[0] += ma * a, sums[1] += ma * b, sums[2] += ma * c, sums[3] += mb * b, sums[4] += mb * c;
        sums[5] += m * c * c, sums[6] += mr * a, sums[7] += mr * b, sums[8] += mr * c, sums[9] += mr * r;
    }
    for (int k = 0; k < 10; ++k)
        ((double*)&memory.dots.data[part])[k] = sums[k][0] + sums[k][1] + sums[k][2];
"""
)
def shift_and_record(part: int, slot: int, bodies: BodyColumns, x: wp.array[wp.vec4d], memory: MemoryColumns):
    """Some dofs go along with their body; unless the slot is negative, see `anderson.record_differences`."""
    ...


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const int count = x.shape[0];
    Four* here = (Four*)x.data;
    const Four* d = (const Four*)memory.differences_x.data;
    const auto slice = bodies.slices.data[part];
    for (int i = slice[1]; i < slice[2]; ++i) {
        if (bodies.free.data[i] == 1)
            here[i] -= theta[0] * d[i] + theta[1] * d[count + i] + theta[2] * d[2 * count + i];
        ((Four*)memory.before.data)[i] = here[i];
    }
"""
)
def accelerate_slice(part: int, theta: wp.vec3d, bodies: BodyColumns, x: wp.array[wp.vec4d], memory: MemoryColumns):
    """Some dofs go where the combination puts them."""
    ...
