"""Anderson acceleration of the sweeps: the last moves say where the sequence is going.

Method: r = sweep(x) - x; among the last three differences of r, weighted by mass, those that cancel r best are found by
        least squares, and the same combination of the differences of sweep(x) is taken off. When |r|^2 grows by half
        the memory is dropped. No host in the loop. On CPU dots are sums of fixed blocks, with the same bits for any
        number of threads; on CUDA every dof adds to one of a few sums.
The last sweep of a step should be left plain.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.assembly import Assembly
from tangere.soft.prepared import Prepared

wp.set_module_options(SOUND)

__all__ = ["Anderson"]

#: Dofs per partial sum on CPU, and how many sums there are on CUDA.
BLOCK = 256
SUMS_CUDA = 8
WINDOW = 3
#: |r|^2 may grow by this much before the memory is dropped.
GROWTH = wp.constant(wp.float64(1.5))
#: Relative size of what is added to the diagonal of the least-squares matrix.
RIDGE = wp.constant(wp.float64(1.0e-9))
TINY = wp.constant(wp.float64(1.0e-300))

#: Upper triangle of the matrix (6), right-hand side (3), |r|^2.
Dots = wp.types.vector(length=10, dtype=wp.float64)


class Anderson:
    """The memory of one step; call `begin`, and `__call__` after each sweep."""

    def __init__(self, assembly: Assembly) -> None:
        device, count = assembly.device, len(assembly.x)
        size = 1 if device.is_cuda else BLOCK
        self._dofs, self._blocks = count, -(-count // size)

        def vectors(*shape: int) -> wp.array:
            return wp.zeros(shape, dtype=wp.vec3d, device=device)

        before, last_r, last_x = vectors(count), vectors(count), vectors(count)
        differences_r, differences_x = vectors(WINDOW, count), vectors(WINDOW, count)
        partial = wp.zeros(SUMS_CUDA if device.is_cuda else self._blocks, dtype=Dots, device=device)
        valid = wp.zeros(1, dtype=wp.int32, device=device)
        last, theta = wp.zeros(1, dtype=wp.float64, device=device), wp.zeros(1, dtype=wp.vec3d, device=device)
        self._before, self._x, self._valid = before, assembly.x, valid
        memory = [before, last_r, last_x, differences_r, differences_x]
        mass = [assembly.mass, assembly.free]
        self._gather = [
            Prepared(_gather, [slot, size, assembly.x, *mass, *memory, partial], device, grain=16)
            for slot in range(WINDOW)
        ]
        self._solve = [
            Prepared(_solve, [slot, partial, valid, last, theta], device, serial=True) for slot in range(WINDOW)
        ]
        self._apply = Prepared(_apply, [theta, assembly.free, differences_x, assembly.x, before], device, grain=8192)

    def begin(self) -> None:
        """Forget, and remember where the dofs are before the first sweep."""
        self._valid.fill_(-1)
        wp.copy(self._before, self._x)

    def __call__(self, sweep: int) -> None:
        """Improve on the sweep of this number, 0, 1, 2, …"""
        slot = sweep % WINDOW
        self._gather[slot](self._blocks)
        self._solve[slot](1)
        self._apply(self._dofs)


@wp.kernel
def _gather(
    first: int,
    slot: int,
    size: int,
    x: wp.array[wp.vec3d],
    mass: wp.array[wp.float64],
    free: wp.array[int],
    before: wp.array[wp.vec3d],
    last_r: wp.array[wp.vec3d],
    last_x: wp.array[wp.vec3d],
    differences_r: wp.array2d[wp.vec3d],
    differences_x: wp.array2d[wp.vec3d],
    partial: wp.array[Dots],
):
    """Differences of this sweep against the last, and the dots of one block."""
    block = first + wp.tid()
    dots = Dots()
    for i in range(block * size, wp.min((block + 1) * size, x.shape[0])):
        if free[i] == 1:
            r = x[i] - before[i]
            differences_r[slot, i] = r - last_r[i]
            differences_x[slot, i] = x[i] - last_x[i]
            last_r[i] = r
            last_x[i] = x[i]
            a = differences_r[0, i]
            b = differences_r[1, i]
            c = differences_r[2, i]
            m = mass[i]
            dots[0] = dots[0] + m * wp.dot(a, a)
            dots[1] = dots[1] + m * wp.dot(a, b)
            dots[2] = dots[2] + m * wp.dot(a, c)
            dots[3] = dots[3] + m * wp.dot(b, b)
            dots[4] = dots[4] + m * wp.dot(b, c)
            dots[5] = dots[5] + m * wp.dot(c, c)
            dots[6] = dots[6] + m * wp.dot(a, r)
            dots[7] = dots[7] + m * wp.dot(b, r)
            dots[8] = dots[8] + m * wp.dot(c, r)
            dots[9] = dots[9] + m * wp.dot(r, r)
    wp.atomic_add(partial, block % partial.shape[0], dots)  # on CPU each block has a sum of its own


@wp.kernel
def _solve(
    first: int,
    slot: int,
    partial: wp.array[Dots],
    valid: wp.array[int],
    last: wp.array[wp.float64],
    theta: wp.array[wp.vec3d],
):
    """The combination of the differences that are still good (one thread); `valid` is -1 before the first sweep."""
    zero = wp.float64(0.0)
    dots = Dots()
    for k in range(partial.shape[0]):
        dots += partial[k]
        partial[k] = Dots()
    good = valid[0] + 1
    if good > 0 and dots[9] > GROWTH * last[0]:
        good = 0
    good = wp.min(good, 3)
    valid[0] = good
    last[0] = dots[9]
    matrix = wp.mat33d(dots[0], dots[1], dots[2], dots[1], dots[3], dots[4], dots[2], dots[4], dots[5])
    right = wp.vec3d(dots[6], dots[7], dots[8])
    size = wp.float64(0.0)
    for k in range(3):
        age = (slot - k + 3) % 3
        if age >= good:
            for c in range(3):
                matrix[k, c] = zero
                matrix[c, k] = zero
            right[k] = zero
        else:
            size += matrix[k, k]
    for k in range(3):
        matrix[k, k] = matrix[k, k] + RIDGE * size + TINY
        age = (slot - k + 3) % 3
        if age >= good:
            matrix[k, k] = size + TINY
    answer = wp.vec3d(zero, zero, zero)
    if good > 0 and size > zero:
        answer = wp.inverse(matrix * (wp.float64(1.0) / size)) * (right / size)
    theta[0] = answer


@wp.kernel
def _apply(
    first: int,
    theta: wp.array[wp.vec3d],
    free: wp.array[int],
    differences_x: wp.array2d[wp.vec3d],
    x: wp.array[wp.vec3d],
    before: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    if free[i] == 1:
        t = theta[0]
        x[i] = x[i] - t[0] * differences_x[0, i] - t[1] * differences_x[1, i] - t[2] * differences_x[2, i]
    before[i] = x[i]
