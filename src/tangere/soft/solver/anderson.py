"""Anderson acceleration of the sweeps: the last moves say where the sequence is going.

Question: which combination of the last sweeps is nearer to the limit than the last one?
Method:   r = sweep(x) - x; among the last three differences of r, weighted by mass, those that cancel r best are found
          by least squares, and the same combination of the differences of sweep(x) is taken off. When |r|^2 grows by
          half the memory is dropped. No host in the loop.
Known as: Anderson acceleration (Anderson 1965; of simulation solvers Peng et al. 2018).
The last sweep of a step should be left plain. These functions are called by `cuda.sweep_end`; CPUs have twins of two
of them in `cpu.dof_slices`.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND
from tangere.soft.model.assembled_bodies import struct_of

wp.set_module_options(SOUND)

WINDOW = 3
#: |r|^2 may grow by this much before the memory is dropped.
GROWTH = wp.constant(wp.float64(1.5))
#: Relative size of what is added to the diagonal of the least-squares matrix.
RIDGE = wp.constant(wp.float64(1.0e-9))
TINY = wp.constant(wp.float64(1.0e-300))

#: Upper triangle of the matrix (6), right-hand side (3), |r|^2.
Dots = wp.types.vector(length=10, dtype=wp.float64)


@wp.struct
class AndersonMemory:
    """What is remembered of the sweeps of one step."""

    before: wp.array[wp.vec3d]  #: (n,) before the last sweep
    last_r: wp.array[wp.vec3d]  #: (n,) r and x after it
    last_x: wp.array[wp.vec3d]
    differences_r: wp.array2d[wp.vec3d]  #: (WINDOW, n) differences of both in the last sweeps
    differences_x: wp.array2d[wp.vec3d]
    valid: wp.array[int]  #: (2,) how many differences are good after even and after odd sweeps; -1 before the first
    residual: wp.array[wp.float64]  #: (2,) |r|^2, likewise


def anderson_memory(dofs: int, device: wp.Device) -> AndersonMemory:
    """Of nothing yet."""
    shapes = dict.fromkeys(("before", "last_r", "last_x"), (dofs, 3))
    shapes |= dict.fromkeys(("differences_r", "differences_x"), (WINDOW, dofs, 3))
    shapes |= dict.fromkeys(("valid", "residual"), (2,))
    return struct_of(AndersonMemory, device, **{name: np.zeros(shape) for name, shape in shapes.items()})


@wp.func
def record_differences(i: int, slot: int, here: wp.vec3d, mass: wp.float64, memory: AndersonMemory) -> Dots:
    """The differences of a dof between this sweep and the last, and its part of the dots."""
    r = here - memory.before[i]
    memory.differences_r[slot, i] = r - memory.last_r[i]
    memory.differences_x[slot, i] = here - memory.last_x[i]
    memory.last_r[i] = r
    memory.last_x[i] = here
    a = memory.differences_r[0, i]
    b = memory.differences_r[1, i]
    c = memory.differences_r[2, i]
    dots = Dots()
    dots[0] = wp.dot(a, a)
    dots[1] = wp.dot(a, b)
    dots[2] = wp.dot(a, c)
    dots[3] = wp.dot(b, b)
    dots[4] = wp.dot(b, c)
    dots[5] = wp.dot(c, c)
    dots[6] = wp.dot(a, r)
    dots[7] = wp.dot(b, r)
    dots[8] = wp.dot(c, r)
    dots[9] = wp.dot(r, r)
    return mass * dots


@wp.func
def mixing_coefficients(slot: int, dots: Dots, valid_before: int, residual_before: wp.float64):
    """The combination of the differences that are still good, and how many those are."""
    zero = wp.float64(0.0)
    valid = valid_before + 1
    if valid > 0 and dots[9] > GROWTH * residual_before:
        valid = 0
    valid = wp.min(valid, 3)
    matrix = wp.mat33d(dots[0], dots[1], dots[2], dots[1], dots[3], dots[4], dots[2], dots[4], dots[5])
    right = wp.vec3d(dots[6], dots[7], dots[8])
    size = wp.float64(0.0)
    for k in range(3):
        age = (slot - k + 3) % 3
        if age >= valid:
            for c in range(3):
                matrix[k, c] = zero
                matrix[c, k] = zero
            right[k] = zero
        else:
            size += matrix[k, k]
    for k in range(3):
        matrix[k, k] = matrix[k, k] + RIDGE * size + TINY
        age = (slot - k + 3) % 3
        if age >= valid:
            matrix[k, k] = size + TINY
    theta = wp.vec3d(zero, zero, zero)
    if valid > 0 and size > zero:
        theta = wp.inverse(matrix * (wp.float64(1.0) / size)) * (right / size)
    return theta, valid


@wp.func
def accelerated_position(i: int, theta: wp.vec3d, here: wp.vec3d, differences_x: wp.array2d[wp.vec3d]) -> wp.vec3d:
    """Where the combination puts a dof."""
    return here - theta[0] * differences_x[0, i] - theta[1] * differences_x[1, i] - theta[2] * differences_x[2, i]
