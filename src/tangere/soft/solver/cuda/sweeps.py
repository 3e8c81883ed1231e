"""The sweeps of a step as launches, for CUDA: forces of the contacts, every colour, the end of the sweep.

A colour of a coarse solid has a hundred vertices, which leave a GPU idle, each busy for long with some forty dependent
reads. So a warp for every vertex shares out its neighbours, elements and rows: with 32 lanes to a vertex those reads
happen side by side. Where a colour has so many vertices that they do not all fit onto the device at once, a warp has
four of them: its sums and the inverse of its matrices then count for four. The formulas are those of `model.elastic`.
The twin for CPUs is `solver.cpu.sweeps`; on CPU, where these launches are only tested, they go where its sweeps go.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.contact.rows import ContactRows
from tangere.soft.model.assembled_bodies import AssembledBodies, DofCoupling
from tangere.soft.model.elastic import element_block
from tangere.soft.solver.cpu.dof_lanes import dof_lanes
from tangere.soft.solver.cuda.sweep_end import SweepEnd, sum_of_lanes
from tangere.soft.solver.rod import RodArrays

wp.set_module_options(SOUND)

#: Lanes to a vertex, and those in colours with at least so many vertices: more than a GPU has warps for at once.
LANES, FEW_LANES, MANY = 32, 8, 4096


class CudaSweeps:
    """Sweeps over all dofs that move."""

    def __init__(
        self,
        assembly: AssembledBodies,
        islands: ContactIslands,
        y: wp.array,
        inertia: wp.array,
        rows: ContactRows,
        dt: float,
        rod: RodArrays | None = None,
    ) -> None:
        """`y` is the free motion of the step, `inertia` holds dofs there; a rod takes part in every sweep."""
        order, self._colours = swept_order(assembly)
        self._rows, arguments = rows, [order, assembly.dofs.x, y, inertia, assembly.material, rows.arrays]
        self._move = CudaVertexSweep(arguments, assembly.device)
        self._end = SweepEnd(assembly, islands, y, rows, dt, rod)
        self.accelerated = True

    def __call__(self, sweeps: int) -> None:
        """So many sweeps from where the dofs are; the last one is not accelerated."""
        self._end.begin()
        for sweep in range(sweeps):
            self._end.relax_rod(sweep)
            self._rows.update_forces()
            for begin, end in self._colours:
                self._move(end - begin, begin)
            self._end(sweep, accelerated=self.accelerated and sweep < sweeps - 1)


def swept_order(assembly: AssembledBodies) -> tuple[wp.array, list[tuple[int, int]]]:
    """The dofs that move, by colour, and the range of each colour; with room in each where the assembly has room.

    With room it is the order of `dof_lanes`, made once, because cuts write into it; -1 for places that are free.
    """
    if not assembly.has_room:
        return assembly.order, list(pairwise(assembly.colours.tolist()))
    if assembly.swept is None:
        lanes = dof_lanes(assembly)
        groups, colours = lanes.dofs.numpy(), lanes.colours.numpy()
        order = np.full(groups.shape, -1, np.int32)
        for begin, end in colours:
            order[begin:end] = groups[begin:end]
            order[begin:end, 1:][groups[begin:end, 1:] == groups[begin:end, :-1]] = -1  # repeated
        ends = 8 * np.append(colours[1:, 0], len(groups))
        spans = list(zip((8 * colours[:, 0]).tolist(), ends.tolist(), strict=True))
        assembly.swept = wp.array(order.ravel(), dtype=wp.int32, device=assembly.device), spans
    return assembly.swept


class CudaVertexSweep:
    """Moves some dofs of one colour; on CPU, where it is only tested, each has a single lane."""

    def __init__(self, arguments: Sequence[Any], device: wp.Device) -> None:
        """`arguments` are those of the kernel after the first."""
        self._arguments, self._device = list(arguments), device
        if device.is_cuda:
            wp.load_module(_sweep.module, device=device, block_dim=LANES)

    def __call__(self, count: int, first: int) -> None:
        lanes = 1 if self._device.is_cpu else LANES if count < MANY else FEW_LANES
        kernel, arguments = (_sweep, [first]) if count < MANY else (_sweep_many, [first, lanes])
        arguments += self._arguments
        wp.launch(kernel, count * lanes, arguments, device=self._device, record_tape=False, block_dim=LANES)


@wp.func
def share_of(
    lane: int,
    width: int,
    i: int,
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    material: DofCoupling,
    rows: RowArrays,
):
    """What one of so many lanes adds to the force on a dof, and to its matrix."""
    here = x[i]
    force = wp.vec3d()
    outer = wp.mat33d()
    if lane == 0:
        force = inertia[i] * (y[i] - here)
        for k in range(3):
            outer[k, k] = inertia[i] + material.diagonal[i]
    for e in range(material.neighbour_ranges[i][0] + lane, material.neighbour_ranges[i][1], width):
        force -= material.weights[e] * (x[material.neighbours[e]] - here)
    for e in range(material.element_ranges[i][0] + lane, material.element_ranges[i][1], width):
        pull, matrix = element_block(here, x, material.opposite[e], material.laws[e])
        force += pull
        outer += matrix
    for e in range(rows.begin[i] + lane, rows.end[i], width):
        share = rows.entry_pull[e]
        force += share[0] * rows.force[rows.entry_row[e]]
        outer += share[1] * rows.stiffness[rows.entry_row[e]]
    return force, outer


@wp.kernel
def _sweep(
    first: int,
    order: wp.array[int],
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    material: DofCoupling,
    rows: RowArrays,
):
    width = wp.block_dim()
    lane = wp.tid() % width
    there = order[first + wp.tid() / width]
    i = wp.max(there, 0)
    force = wp.vec3d()
    outer = wp.mat33d()
    if there >= 0:  # else the place is free
        force, outer = share_of(lane, width, i, x, y, inertia, material, rows)
    all_force = wp.tile_reduce(wp.add, wp.tile(force, preserve_type=True))[0]
    all_outer = wp.tile_reduce(wp.add, wp.tile(outer, preserve_type=True))[0]
    if lane == 0 and there >= 0:
        x[i] = x[i] + wp.inverse(all_outer) * all_force


@wp.kernel
def _sweep_many(
    first: int,
    width: int,
    order: wp.array[int],
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    material: DofCoupling,
    rows: RowArrays,
):
    """As `_sweep`, with several vertices to a warp."""
    lane = wp.tid() % width
    there = order[first + wp.tid() / width]
    i = wp.max(there, 0)
    force = wp.vec3d()
    outer = wp.mat33d()
    if there >= 0:
        force, outer = share_of(lane, width, i, x, y, inertia, material, rows)
    for k in range(3):
        force[k] = sum_of_lanes(force[k], width)
        for j in range(k, 3):  # it is symmetric
            outer[k, j] = sum_of_lanes(outer[k, j], width)
            outer[j, k] = outer[k, j]
    if lane == 0 and there >= 0:
        x[i] = x[i] + wp.inverse(outer) * force
