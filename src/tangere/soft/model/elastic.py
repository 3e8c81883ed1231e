"""Elastic energy: what a simulation holds, and the block of a vertex: how its elements push it, and how stiffly.

Energy:   of a step: inertia m/(2 dt^2) |x - y|^2 about the free motion y, the materials, and the contact rows.
Method:   with all other vertices held it is quadratic in one vertex for solids, and bounded from above by a quadratic
          that touches it for sheets (|A|^2 - 2 a |A| <= |A|^2 - 2 a n.A, n the unit normal now). Every vertex goes to
          the minimum of its own block, colour after colour. Contacts act with the forces of the sweep's start and a
          diagonal that bounds them, so all may move together.
Sound:    the matrix of a block is positive definite for any state, stiffness and step, so a sweep never raises the
          energy; no line search, no projection.
Known as: vertex block descent (Chen et al. 2024).
Dofs of one colour move at once: on CPU eight side by side (`solver.cpu.dof_lanes`), all sweeps of a step in one kernel
(`solver.cpu.sweeps`); on CUDA a warp shares out what acts on a vertex (`solver.cuda.sweeps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.soft.model.assembled_bodies import AssembledBodies, DofCoupling

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


def energy_of(assembly: AssembledBodies, gravity: np.ndarray, rest_energy: float) -> Energy:
    """The energies now; `rest_energy` is what `elastic_energy` says at rest [J]."""
    mass, free = assembly.dofs.mass.numpy(), assembly.dofs.free.numpy() == 1
    x, v = assembly.dofs.x.numpy()[free], assembly.dofs.v.numpy()[free]
    kinetic = 0.5 * float(mass[free] @ (v * v).sum(axis=1))
    return Energy(kinetic, elastic_energy(assembly) - rest_energy, -float(mass[free] @ (x @ gravity)))


def elastic_energy(assembly: AssembledBodies) -> float:
    """The energy of all materials, up to a constant [J]."""
    energy = wp.empty(len(assembly.dofs.x), dtype=wp.float64, device=assembly.device)
    launch(
        _energy,
        len(assembly.dofs.x),
        [assembly.dofs.x, assembly.material],
        [energy],
        device=assembly.device,
        grain=4096,
    )
    return float(energy.numpy().sum())


@wp.func
def element_energy(xi: wp.vec3d, x: wp.array[wp.vec3d], opposite: wp.vec3i, law: wp.vec3d) -> wp.float64:
    """lam/2 (J - a)^2 of the element of vertex i [J]."""
    origin = x[opposite[0]]
    along = x[opposite[1]] - origin
    ratio = wp.float64(0.0)
    if opposite[2] >= 0:
        ratio = wp.dot(xi - origin, wp.cross(along, x[opposite[2]] - origin)) * law[1]
    else:
        ratio = wp.length(wp.cross(along, xi - origin)) * law[1]
    return wp.float64(0.5) * law[0] * (ratio - law[2]) * (ratio - law[2])


@wp.func
def element_block(here: wp.vec3d, x: wp.array[wp.vec3d], opposite: wp.vec3i, law: wp.vec3d):
    """What an element does to one of its vertices: force, and matrix of the block."""
    origin = x[opposite[0]]
    along = x[opposite[1]] - origin
    force = wp.vec3d()
    matrix = wp.mat33d()
    if opposite[2] >= 0:
        change = wp.cross(along, x[opposite[2]] - origin) * law[1]
        force = (law[0] * (law[2] - wp.dot(here - origin, change))) * change
        matrix = wp.outer(law[0] * change, change)
    else:
        area = wp.cross(along, here - origin) * law[1]
        ratio = wp.length(area)
        if ratio > wp.float64(0.0):
            force = (law[0] * law[1] * (law[2] - ratio) / ratio) * wp.cross(area, along)
        scale = law[0] * law[1] * law[1]
        matrix = -wp.outer(scale * along, along)
        for k in range(3):
            matrix[k, k] = matrix[k, k] + scale * wp.dot(along, along)
    return force, matrix


@wp.func
def dof_energy(i: int, x: wp.array[wp.vec3d], material: DofCoupling) -> wp.float64:
    """The share of a dof: what couples it to neighbours, and its elements, where it is the first of those [J]."""
    total = wp.float64(0.0)
    for e in range(material.neighbour_ranges[i][0], material.neighbour_ranges[i][1]):
        if material.neighbours[e] > i:
            apart = x[material.neighbours[e]] - x[i]
            total -= wp.float64(0.5) * material.weights[e] * wp.dot(apart, apart)
    for e in range(material.element_ranges[i][0], material.element_ranges[i][1]):
        others = material.opposite[e]
        if others[0] > i and others[1] > i and (others[2] > i or others[2] < 0):
            total += element_energy(x[i], x, others, material.laws[e])
    return total


@wp.kernel
def _energy(first: int, x: wp.array[wp.vec3d], material: DofCoupling, energy: wp.array[wp.float64]):
    i = first + wp.tid()
    energy[i] = dof_energy(i, x, material)
