"""Where the sweeps of a step begin when they are too few: along the free motion, but not into more energy.

Question: from where do a few sweeps end with the least energy?
Method:   a stiff body bent or stretched by its free motion y would keep much of that strain after a few sweeps. Of y,
          of the body only carried along with its mean move, and of half-way between, the one with the least energy of
          the step is taken.
Sound:    sweeps never raise the energy of the step, so it is bounded by that of the start; at the second candidate that
          is the energy of the last step and of the motion within the body. So none is gained, however few the sweeps.
Known as: adaptive initialisation of vertex block descent (Chen et al. 2024); ours compares energies.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.contact.islands import ContactIslands, MassMoves, MeanMoves
from tangere.soft.model.assembled_bodies import AssembledBodies, DofArrays, DofCoupling
from tangere.soft.model.elastic import dof_energy

wp.set_module_options(SOUND)

#: Parts of the free motion within the body that are tried.
PARTS = (1.0, 0.5, 0.0)
#: Dofs per partial sum of the energies on CPU; on CUDA every dof adds to one of a few sums.
BLOCK = 256
SUMS_CUDA = 32


class InitialGuess:
    """Puts the dofs where the sweeps of a step begin."""

    def __init__(
        self, assembly: AssembledBodies, start: wp.array, y: wp.array, inertia: wp.array, islands: ContactIslands
    ) -> None:
        """`start` is where the step begins, `y` its free motion, `inertia` holds dofs there."""
        device, count = assembly.device, len(assembly.dofs.x)
        size = 1 if device.is_cuda else BLOCK
        self._dofs, self._blocks = count, -(-count // size)
        drift = wp.zeros(assembly.body_room, dtype=wp.vec3d, device=device)
        self._moves = MassMoves(assembly, y, start)
        self._drift = MeanMoves(islands, self._moves, drift)
        parts = wp.array(PARTS, dtype=wp.float64, device=device)
        chosen = wp.zeros(1, dtype=wp.int32, device=device)
        sums = wp.zeros((len(PARTS), SUMS_CUDA if device.is_cuda else self._blocks), dtype=wp.float64, device=device)
        self._sums = sums
        motion = [start, y, drift, parts]
        self._numbers = [wp.full(1, number, dtype=wp.int32, device=device) for number in range(len(PARTS))]
        self._place = [
            PreparedLaunch(_place, [*motion, which, assembly.dofs], device, grain=8192) for which in self._numbers
        ]
        energy_inputs = [size, assembly.dofs.x, y, inertia, assembly.material, sums]
        self._step_energy = [
            PreparedLaunch(_step_energy, [number, *energy_inputs], device, grain=16) for number in range(len(PARTS))
        ]
        self._choose = PreparedLaunch(_choose, [sums, chosen], device, serial=True)
        self._apply = PreparedLaunch(_place, [*motion, chosen, assembly.dofs], device, grain=8192)

    def __call__(self) -> None:
        self._moves()
        self._drift()
        self._sums.zero_()
        for place, energy_inputs in zip(self._place, self._step_energy, strict=True):
            place(self._dofs)
            energy_inputs(self._blocks)
        self._choose(1)
        self._apply(self._dofs)


@wp.kernel
def _place(
    first: int,
    start: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    drift: wp.array[wp.vec3d],
    parts: wp.array[wp.float64],
    which: wp.array[int],
    dofs: DofArrays,
):
    """A part of the free motion beyond the drift of the body."""
    i = first + wp.tid()
    if dofs.free[i] == 1:
        part = parts[which[0]]
        dofs.x[i] = y[i] - (wp.float64(1.0) - part) * (y[i] - start[i] - drift[dofs.body[i]])


@wp.kernel
def _step_energy(
    first: int,
    number: int,
    size: int,
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    material: DofCoupling,
    sums: wp.array2d[wp.float64],
):
    """The energy of the step, of some dofs: inertia for what is missing of the free motion, and their materials."""
    block = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(block * size, wp.min((block + 1) * size, x.shape[0])):
        missing = y[i] - x[i]
        total += wp.float64(0.5) * inertia[i] * wp.dot(missing, missing)
        total += dof_energy(i, x, material)
    wp.atomic_add(sums, number, block % sums.shape[1], total)  # on CPU each block has a sum of its own


@wp.kernel
def _choose(first: int, sums: wp.array2d[wp.float64], chosen: wp.array[int]):
    """Which part has the least energy (one thread)."""
    least = wp.float64(wp.inf)
    for number in range(sums.shape[0]):
        total = wp.float64(0.0)
        for k in range(sums.shape[1]):
            total += sums[number, k]
        if total < least:
            least = total
            chosen[0] = number
