"""Whole bodies move too: after each sweep every free body is shifted to where its inertia and its contacts balance.

Forces from inside a body cancel, so its mean move depends on inertia and contacts alone; sweeps over single vertices
find it last of all. A shift is one more block of the same descent: (M/dt^2 + sum K) s = sum m (y - x)/dt^2 + sum F; the
stiffness of contacts between two free bodies is doubled, which bounds both shifting at once. Without it a block on a
slope would gain speed a quarter too fast after the usual number of sweeps. Bodies with fixed vertices stay out of it.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.assembly import Assembly
from tangere.soft.groups import SLICES, mass_moves
from tangere.soft.motion import move_bodies
from tangere.soft.prepared import Prepared
from tangere.soft.rows import ContactRows

wp.set_module_options(SOUND)

__all__ = ["BodyStep"]


class BodyStep:
    """One shift of all bodies that are free."""

    def __init__(self, assembly: Assembly, y: wp.array, rows: ContactRows, dt: float) -> None:
        device, bodies = assembly.device, len(assembly.bodies)
        self._bodies, self._dofs = bodies, len(assembly.x)
        free = wp.array([int(not body.fixed.any()) for body in assembly.bodies], dtype=wp.int32, device=device)
        force = wp.zeros(bodies, dtype=wp.vec3d, device=device)
        stiffness = wp.zeros(bodies, dtype=wp.mat33d, device=device)
        shift = wp.zeros(bodies, dtype=wp.vec3d, device=device)
        moves = wp.zeros(bodies * int(SLICES), dtype=wp.vec4d, device=device)
        self._rows = rows
        self._moves = mass_moves(assembly, y, assembly.x, moves)
        arguments = [rows.live, rows.bodies, rows.force, rows.stiffness, free, force, stiffness]
        self._gather = Prepared(_gather, arguments, device, serial=True)
        self._solve = Prepared(_solve, [free, moves, 1.0 / dt**2, force, stiffness, shift], device, serial=True)
        self._move = move_bodies(assembly, shift)

    def __call__(self) -> None:
        self._gather(self._rows.launched)
        self._moves(self._bodies * int(SLICES))
        self._solve(self._bodies)
        self._move(self._dofs)


@wp.kernel
def _gather(
    first: int,
    live: wp.array[int],
    bodies: wp.array[wp.vec2i],
    row_force: wp.array[wp.vec3d],
    row_stiffness: wp.array[wp.mat33d],
    free: wp.array[int],
    force: wp.array[wp.vec3d],
    stiffness: wp.array[wp.mat33d],
):
    """What contacts between bodies do to them (one thread on CPU)."""
    r = first + wp.tid()
    if r >= live[0]:
        return
    a = bodies[r][0]
    b = bodies[r][1]
    if a == b:
        return
    matrix = row_stiffness[r] * wp.float64(free[a] + free[b])
    wp.atomic_add(force, a, row_force[r])
    wp.atomic_add(force, b, -row_force[r])
    wp.atomic_add(stiffness, a, matrix)
    wp.atomic_add(stiffness, b, matrix)


@wp.kernel
def _solve(
    first: int,
    free: wp.array[int],
    moves: wp.array[wp.vec4d],
    per_dt2: wp.float64,
    force: wp.array[wp.vec3d],
    stiffness: wp.array[wp.mat33d],
    shift: wp.array[wp.vec3d],
):
    """The shift of each body; sums start again from zero."""
    b = first + wp.tid()
    total = wp.vec4d()
    for k in range(b * SLICES, (b + 1) * SLICES):
        total += moves[k]
    shift[b] = wp.vec3d()
    if free[b] == 1:
        matrix = stiffness[b]
        for k in range(3):
            matrix[k, k] = matrix[k, k] + per_dt2 * total[3]
        shift[b] = wp.inverse(matrix) * (per_dt2 * wp.vec3d(total[0], total[1], total[2]) + force[b])
    force[b] = wp.vec3d()
    stiffness[b] = wp.mat33d()
