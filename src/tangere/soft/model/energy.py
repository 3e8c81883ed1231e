"""What a simulation holds: its energies, and how far its elements are from being turned inside out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.soft.model.assembly import Assembly
from tangere.soft.model.elastic import element_energy

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class Energy:
    """Energies of all bodies at one instant [J]; contacts are not counted."""

    kinetic: float
    elastic: float  #: above that of the bodies at rest
    gravity: float  #: above that at the origin

    @property
    def total(self) -> float:
        """The sum of them."""
        return self.kinetic + self.elastic + self.gravity


def energy_of(assembly: Assembly, gravity: np.ndarray, rest_energy: float) -> Energy:
    """The energies now; `rest_energy` is what `elastic_energy` says at rest [J]."""
    mass, free = assembly.mass.numpy(), assembly.free.numpy() == 1
    x, v = assembly.x.numpy()[free], assembly.v.numpy()[free]
    kinetic = 0.5 * float(mass[free] @ (v * v).sum(axis=1))
    return Energy(kinetic, elastic_energy(assembly) - rest_energy, -float(mass[free] @ (x @ gravity)))


def elastic_energy(assembly: Assembly) -> float:
    """The energy of all materials, up to a constant [J]."""
    energy = wp.empty(len(assembly.x), dtype=wp.float64, device=assembly.device)
    launch(_energy, len(assembly.x), [assembly.x, *assembly.material], [energy], device=assembly.device, grain=4096)
    return float(energy.numpy().sum())


@wp.func
def dof_energy(
    i: int,
    x: wp.array[wp.vec3d],
    neighbour_offsets: wp.array[int],
    neighbours: wp.array[int],
    weights: wp.array[wp.float64],
    element_offsets: wp.array[int],
    opposite: wp.array[wp.vec3i],
    laws: wp.array[wp.vec3d],
) -> wp.float64:
    """The share of a dof: what couples it to neighbours, and its elements, where it is the first of those [J]."""
    total = wp.float64(0.0)
    for e in range(neighbour_offsets[i], neighbour_offsets[i + 1]):
        if neighbours[e] > i:
            apart = x[neighbours[e]] - x[i]
            total -= wp.float64(0.5) * weights[e] * wp.dot(apart, apart)
    for e in range(element_offsets[i], element_offsets[i + 1]):
        others = opposite[e]
        if others[0] > i and others[1] > i and (others[2] > i or others[2] < 0):
            total += element_energy(x[i], x, others, laws[e])
    return total


@wp.kernel
def _energy(
    first: int,
    x: wp.array[wp.vec3d],
    neighbour_offsets: wp.array[int],
    neighbours: wp.array[int],
    weights: wp.array[wp.float64],
    diagonal: wp.array[wp.float64],
    element_offsets: wp.array[int],
    opposite: wp.array[wp.vec3i],
    laws: wp.array[wp.vec3d],
    energy: wp.array[wp.float64],
):
    i = first + wp.tid()
    energy[i] = dof_energy(i, x, neighbour_offsets, neighbours, weights, element_offsets, opposite, laws)
