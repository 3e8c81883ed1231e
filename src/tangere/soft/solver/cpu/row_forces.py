"""What contacts do to dofs and bodies while the solver sweeps, in rows of twelve numbers (CPU).

A row is a force, three numbers and a zero, and a symmetric stiffness, six and two zeros: two loads take it. The law is
that of `contact.rows.row_force`; how far a contact has slipped is what its gap has changed since the step began.
"""

from __future__ import annotations

import warp as wp

from tangere.soft.contact.row_entries import RowDofs, RowWeights
from tangere.soft.contact.rows import guide_force

#: Numbers in a row.
ROW_FORCE = 12


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const int* dof = (const int*)&dofs.data[r];
    const double* weight = (const double*)&weights.data[r];
    const Four* places = (const Four*)x.data;
    Four gap = {}, more = {};
    for (int k = 0; k < sizes.data[r]; k += 4) {  // beyond the last dof weights are zero
        gap += weight[k] * places[dof[k]] + weight[k + 1] * places[dof[k + 1]];
        more += weight[k + 2] * places[dof[k + 2]] + weight[k + 3] * places[dof[k + 3]];
    }
    gap += more;
    return wp::vec_t<3, wp::float64>(gap[0], gap[1], gap[2]);
"""
)
def row_gap(
    r: int, x: wp.array[wp.vec4d], dofs: wp.array[RowDofs], weights: wp.array[RowWeights], sizes: wp.array[int]
) -> wp.vec3d:
    """The gap vector of a contact where the dofs are."""
    ...


@wp.func
def write_row_force(
    r: int,
    gap: wp.vec3d,
    gap_before: wp.vec3d,
    n: wp.vec3d,
    law: wp.vec2d,
    friction: wp.float64,
    slip: wp.float64,
    aim: wp.vec3d,
    guide: wp.vec4d,
    row_forces: wp.array2d[wp.float64],
):
    """Force and stiffness of a contact or a guide, see `rows.row_force`; `gap_before` is less what was strained."""
    zero = wp.float64(0.0)
    deep = law[1] - wp.dot(n, gap)
    push = wp.vec3d()
    stiff = wp.float64(0.0)
    drag = wp.float64(0.0)
    if guide[0] > zero:
        held = guide_force(gap - aim, n, guide)
        push = held.force
        drag = held.across
        stiff = held.along - held.across
    elif deep > zero:
        moved = gap - gap_before
        across = moved - wp.dot(moved, n) * n
        drag = friction * law[0] * deep / wp.max(wp.length(across), slip)
        push = (law[0] * deep) * n - drag * across
        stiff = law[0] - drag
    row_forces[r, 0] = push[0]
    row_forces[r, 1] = push[1]
    row_forces[r, 2] = push[2]
    row_forces[r, 4] = stiff * n[0] * n[0] + drag
    row_forces[r, 5] = stiff * n[0] * n[1]
    row_forces[r, 6] = stiff * n[0] * n[2]
    row_forces[r, 7] = stiff * n[1] * n[1] + drag
    row_forces[r, 8] = stiff * n[1] * n[2]
    row_forces[r, 9] = stiff * n[2] * n[2] + drag


@wp.func_native(
    """
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    typedef double Wide __attribute__((ext_vector_type(8), aligned(8)));
    for (int k = 0; k < bodies.shape[0] * 12; ++k)
        sums.data[k] = 0.0;
    for (int r = 0; r < live.data[0]; ++r) {
        const int a = rows.data[r][0], b = rows.data[r][1];
        if (a == b)
            continue;
        const double both = (bodies.data[a] == 0) + (bodies.data[b] == 0);
        const Four push = *(const Four*)&row_forces.data[12 * r];
        const Wide stiff = both * *(const Wide*)&row_forces.data[12 * r + 4];
        double *one = &sums.data[12 * a], *other = &sums.data[12 * b];
        *(Four*)one += push;
        *(Four*)other -= push;
        *(Wide*)(one + 4) += stiff;
        *(Wide*)(other + 4) += stiff;
    }
"""
)
def sum_body_forces(
    live: wp.array[int],
    rows: wp.array[wp.vec2i],
    row_forces: wp.array2d[wp.float64],
    bodies: wp.array[int],
    sums: wp.array2d[wp.float64],
):
    """What all contacts between two bodies do to them; `bodies` are 1 where they are held."""
    ...
