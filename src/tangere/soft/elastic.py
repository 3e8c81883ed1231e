"""Vertex block descent: every vertex goes to the minimum of its own part of the step's energy, colour after colour.

Energy of a step: inertia m/(2 dt^2) |x - y|^2 about the free motion y, the materials, and the contact rows.
Block:  with all other vertices held it is quadratic in one vertex for solids, and bounded from above by a quadratic
        that touches it for sheets (|A|^2 - 2 a |A| <= |A|^2 - 2 a n.A, n the unit normal now). Its matrix is positive
        definite for any state, stiffness and step, so a sweep never raises the energy; no line search, no projection.
Rows:   contacts act with the forces of the sweep's start and a diagonal that bounds them, so all may move together.
On CPU a thread goes through all colours of a body in order, and bodies, which no sweep couples, go side by side where
that is worth it; where colours are large each is a launch. All have the same bits. On CUDA each colour is a launch in
which a warp shares out what acts on a vertex (`elastic_lanes`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import warp as wp

from tangere.runtime import SOUND
from tangere.soft.assembly import Assembly
from tangere.soft.prepared import Prepared
from tangere.soft.rows import ContactRows

wp.set_module_options(SOUND)

__all__ = ["Sweeper", "element_block", "element_energy"]

#: Dofs worth a second thread: one takes about 0.3 us, and as long again for every four contacts it has a part in.
GRAIN = 1024


class Sweeper:
    """One sweep over all dofs that move."""

    def __init__(self, assembly: Assembly, y: wp.array, inertia: wp.array, rows: ContactRows) -> None:
        """`inertia` is m / dt^2."""
        device, self._rows = assembly.device, rows
        self._colours = list(pairwise(assembly.colours.tolist()))
        arguments = [assembly.x, y, inertia, *assembly.material, *rows.by_dof]
        self._by_lanes = None
        if device.is_cuda:
            from tangere.soft.elastic_lanes import SweepByLanes

            self._by_lanes = SweepByLanes([assembly.order, *arguments], device)
            return
        self._by_colour = Prepared(_sweep, [assembly.order, *arguments], device, grain=GRAIN)
        order = assembly.order.numpy()
        body = assembly.body_of_dof.numpy()[order]
        by_body = wp.array(order[np.argsort(body, kind="stable")], dtype=wp.int32, device=device)
        self._by_body = Prepared(_sweep, [by_body, *arguments], device)
        ends = np.cumsum(np.bincount(body, minlength=len(assembly.bodies))).tolist()
        self._bodies = [(begin, end - begin) for begin, end in pairwise([0, *ends]) if end > begin]
        self._dofs = len(order)

    def __call__(self) -> None:
        if self._by_lanes is not None:
            for begin, end in self._colours:
                self._by_lanes(end - begin, begin)
        elif max(end - begin for begin, end in self._colours) > 2 * GRAIN:
            for begin, end in self._colours:
                self._by_colour(end - begin, begin)
        elif self._dofs + self._rows.count // 4 > 2 * GRAIN:
            self._by_body.side_by_side(self._bodies)
        else:
            self._by_body.side_by_side([(0, self._dofs)])


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


@wp.kernel
def _sweep(
    first: int,
    order: wp.array[int],
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    neighbour_offsets: wp.array[int],
    neighbours: wp.array[int],
    weights: wp.array[wp.float64],
    diagonal: wp.array[wp.float64],
    element_offsets: wp.array[int],
    opposite: wp.array[wp.vec3i],
    laws: wp.array[wp.vec3d],
    row_begin: wp.array[int],
    row_end: wp.array[int],
    entry_row: wp.array[int],
    entry_pull: wp.array[wp.vec2d],
    row_force: wp.array[wp.vec3d],
    row_stiffness: wp.array[wp.mat33d],
):
    i = order[first + wp.tid()]
    here = x[i]
    force = inertia[i] * (y[i] - here)
    for e in range(neighbour_offsets[i], neighbour_offsets[i + 1]):
        force -= weights[e] * (x[neighbours[e]] - here)
    stiff = inertia[i] + diagonal[i]
    outer = wp.mat33d()
    for e in range(element_offsets[i], element_offsets[i + 1]):
        pull, matrix = element_block(here, x, opposite[e], laws[e])
        force += pull
        outer += matrix
    for e in range(row_begin[i], row_end[i]):
        share = entry_pull[e]
        force += share[0] * row_force[entry_row[e]]
        outer += share[1] * row_stiffness[entry_row[e]]
    for k in range(3):
        outer[k, k] = outer[k, k] + stiff
    x[i] = here + wp.inverse(outer) * force
