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
from tangere.soft.groups import SLICES, Groups, MassMoves
from tangere.soft.motion import move_bodies
from tangere.soft.prepared import Prepared
from tangere.soft.rows import ContactRows

wp.set_module_options(SOUND)

__all__ = ["BodyStep"]


class BodyStep:
    """One shift of all bodies that are free."""

    def __init__(self, assembly: Assembly, groups: Groups, y: wp.array, rows: ContactRows, dt: float) -> None:
        device, bodies = assembly.device, len(assembly.bodies)
        self._bodies, self._dofs = bodies, len(assembly.x)
        # On CUDA rows add at once: to one of several sums of each body, so that few wait for each other.
        slots = 8 if device.is_cuda else 1
        force = wp.zeros((bodies, slots), dtype=wp.vec3d, device=device)
        stiffness = wp.zeros((bodies, slots), dtype=wp.mat33d, device=device)
        shift = wp.zeros(bodies, dtype=wp.vec3d, device=device)
        self._rows = rows
        self._moves = MassMoves(assembly, y, assembly.x, consumed=True)
        arguments = [rows.live, rows.bodies, rows.force, rows.stiffness, groups.held, force, stiffness]
        self._gather = Prepared(_gather, arguments, device, serial=True)
        self._solve = Prepared(
            _solve, [groups.held, self._moves.sums, 1.0 / dt**2, force, stiffness, shift], device, serial=True
        )
        self._move = move_bodies(assembly, shift)

    def __call__(self) -> None:
        self._gather(self._rows.launched)
        self._moves()
        self._solve(self._bodies)
        self._move(self._dofs)


@wp.kernel
def _gather(
    first: int,
    live: wp.array[int],
    bodies: wp.array[wp.vec2i],
    row_force: wp.array[wp.vec3d],
    row_stiffness: wp.array[wp.mat33d],
    held: wp.array[int],
    force: wp.array2d[wp.vec3d],
    stiffness: wp.array2d[wp.mat33d],
):
    """What contacts between bodies do to them (one thread on CPU)."""
    r = first + wp.tid()
    if r >= live[0]:
        return
    a = bodies[r][0]
    b = bodies[r][1]
    if a == b:
        return
    push = row_force[r]
    if wp.dot(push, push) == wp.float64(0.0):
        return
    matrix = row_stiffness[r] * wp.float64(2 - held[a] - held[b])
    slot = r % force.shape[1]
    if held[a] == 0:
        wp.atomic_add(force, a, slot, push)
        wp.atomic_add(stiffness, a, slot, matrix)
    if held[b] == 0:
        wp.atomic_add(force, b, slot, -push)
        wp.atomic_add(stiffness, b, slot, matrix)


@wp.kernel
def _solve(
    first: int,
    held: wp.array[int],
    moves: wp.array[wp.vec4d],
    per_dt2: wp.float64,
    force: wp.array2d[wp.vec3d],
    stiffness: wp.array2d[wp.mat33d],
    shift: wp.array[wp.vec3d],
):
    """The shift of each body; sums start again from zero."""
    b = first + wp.tid()
    total = wp.vec4d()
    for k in range(b * SLICES, (b + 1) * SLICES):
        total += moves[k]
        moves[k] = wp.vec4d()
    push = wp.vec3d()
    matrix = wp.mat33d()
    for k in range(force.shape[1]):
        push += force[b, k]
        matrix += stiffness[b, k]
        force[b, k] = wp.vec3d()
        stiffness[b, k] = wp.mat33d()
    shift[b] = wp.vec3d()
    if held[b] == 0:
        for k in range(3):
            matrix[k, k] = matrix[k, k] + per_dt2 * total[3]
        shift[b] = wp.inverse(matrix) * (per_dt2 * wp.vec3d(total[0], total[1], total[2]) + push)
