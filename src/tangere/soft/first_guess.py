"""Where the solver starts when it has too few sweeps to forget: along the free motion, but not into more energy.

A stiff body bent or stretched by its free motion y would keep much of that strain after a few sweeps, and gain energy.
Sweeps never raise the energy of the step, so it is bounded by that of the start: of y, of the body only carried along
with its mean move, and of half-way between, the one with the least energy is taken. At the second the energy is that
of the last step and of the motion within the body, so none is gained, however few the sweeps.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.soft.assembly import Assembly
from tangere.soft.groups import Groups
from tangere.soft.measures import elastic_energy

wp.set_module_options(SOUND)

__all__ = ["FirstGuess"]

#: Parts of the free motion within the body that are tried.
PARTS = (1.0, 0.5, 0.0)


class FirstGuess:
    """Puts the dofs where the sweeps of a step begin."""

    def __init__(self, assembly: Assembly, start: wp.array, y: wp.array, inertia: wp.array, groups: Groups) -> None:
        """`start` is where the step begins, `y` its free motion, `inertia` m / dt^2."""
        device = assembly.device
        self._assembly, self._start, self._y, self._groups = assembly, start, y, groups
        self._inertia = inertia
        self._drift = wp.zeros(len(assembly.bodies), dtype=wp.vec3d, device=device)
        self._inner = wp.zeros(len(assembly.x), dtype=wp.float64, device=device)

    def __call__(self) -> None:
        self._drift.assign(self._groups.drift(self._y, self._start))
        energies = []
        for part in PARTS:
            self._place(part)
            inertial = float(self._inner.numpy().sum())
            energies.append(inertial + elastic_energy(self._assembly))
        self._place(PARTS[int(np.argmin(energies))])

    def _place(self, part: float) -> None:
        assembly = self._assembly
        inputs = [self._start, self._y, assembly.body_of_dof, assembly.free, self._drift, self._inertia, part]
        outputs = [assembly.x, self._inner]
        launch(_place, len(assembly.x), inputs, outputs, device=assembly.device, grain=8192)


@wp.kernel
def _place(
    first: int,
    start: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    body: wp.array[int],
    free: wp.array[int],
    drift: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    part: wp.float64,
    x: wp.array[wp.vec3d],
    inner: wp.array[wp.float64],
):
    """A part of the free motion beyond the drift of the body, and the inertial energy of what is missing."""
    i = first + wp.tid()
    inner[i] = wp.float64(0.0)
    if free[i] == 1:
        missing = (wp.float64(1.0) - part) * (y[i] - start[i] - drift[body[i]])
        x[i] = y[i] - missing
        inner[i] = wp.float64(0.5) * inertia[i] * wp.dot(missing, missing)
