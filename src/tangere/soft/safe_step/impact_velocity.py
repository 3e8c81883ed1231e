"""How fast bodies go on after an impact: together with no more energy of motion than they came with.

What was hit keeps a part of the moves that the solver found (`impact_substep`). They hold what the contacts did, and
what the strains did too, for which no way was made: step after step the same strains would drive bodies that stand. So
these moves are made smaller, by one factor for all that was hit in an island, until the energy of motion against the
drift of the island is not more than before. Bodies hand on momentum as before, and velocities are halved at least.
Known as: plastic impact.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.contact.islands import SLICES, ContactIslands
from tangere.soft.model.assembly import Assembly

wp.set_module_options(SOUND)


class ImpactVelocity:
    """Finds by which factor the moves of each body are made smaller."""

    def __init__(
        self,
        assembly: Assembly,
        islands: ContactIslands,
        start: wp.array,
        goal: wp.array,
        drift: wp.array,
        velocity_kept: wp.array,
        dt: float,
    ) -> None:
        """`drift` is the mean move of the island of each body [m]; those that keep less than 1 were hit."""
        device, bodies = assembly.device, len(assembly.bodies)
        self.factor = wp.ones(bodies, dtype=wp.float64, device=device)  #: (b,)
        self._sums = wp.zeros(bodies * int(SLICES), dtype=wp.vec2d, device=device)
        base = wp.array(assembly.dof_base, dtype=wp.int32, device=device)
        moves = [assembly.mass, assembly.free, assembly.v, dt, start, goal, drift]
        self._sum_energies = PreparedLaunch(_sum_energies, [base, velocity_kept, *moves, self._sums], device, grain=8)
        total = wp.zeros(bodies, dtype=wp.vec2d, device=device)
        self._find_factors = PreparedLaunch(
            _find_factors, [islands.label, velocity_kept, self._sums, total, self.factor], device, serial=True
        )

    def __call__(self) -> None:
        self._sum_energies(len(self._sums))
        self._find_factors(1)


@wp.kernel
def _sum_energies(
    first: int,
    base: wp.array[int],
    velocity_kept: wp.array[wp.float64],
    mass: wp.array[wp.float64],
    free: wp.array[int],
    v: wp.array[wp.vec3d],
    dt: wp.float64,
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    drift: wp.array[wp.vec3d],
    sums: wp.array[wp.vec2d],
):
    """Mass times squares of moves, as bodies came and as the solver found them, over a slice of one that was hit."""
    k = first + wp.tid()
    body = k / SLICES
    if velocity_kept[body] == wp.float64(1.0):
        return
    size = base[body + 1] - base[body]
    part = (size + SLICES - 1) / SLICES
    begin = base[body] + (k % SLICES) * part
    total = wp.vec2d()
    for i in range(begin, wp.min(begin + part, base[body + 1])):
        if free[i] == 1:
            on = dt * v[i] - drift[body]
            found = goal[i] - start[i] - drift[body]
            total += mass[i] * wp.vec2d(wp.dot(on, on), wp.dot(found, found))
    sums[k] = total


@wp.kernel
def _find_factors(
    first: int,
    label: wp.array[int],
    velocity_kept: wp.array[wp.float64],
    sums: wp.array[wp.vec2d],
    total: wp.array[wp.vec2d],
    factor: wp.array[wp.float64],
):
    """One factor for all that was hit in an island (one thread)."""
    for b in range(label.shape[0]):
        total[b] = wp.vec2d()
        factor[b] = wp.float64(1.0)
    for b in range(label.shape[0]):
        if velocity_kept[b] < wp.float64(1.0):
            for k in range(b * SLICES, (b + 1) * SLICES):
                total[label[b]] += sums[k]
    for b in range(label.shape[0]):
        both = total[label[b]]
        if velocity_kept[b] < wp.float64(1.0) and both[1] > both[0]:
            factor[b] = wp.sqrt(both[0] / both[1])
