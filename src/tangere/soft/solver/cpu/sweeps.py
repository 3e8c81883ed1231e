"""All sweeps of a step in one kernel, which the threads of a team go through together (CPU).

A sweep is: forces of the contacts; every colour, eight dofs at a time (`dof_lanes`); forces again, and from them the
shift of each body (see `solver.cuda.sweep_end`); the acceleration (`anderson`). Sums are taken over slices of fixed
size, in order. Positions are kept in fours meanwhile. What is computed is what the launches for CUDA compute
(`solver.cuda.sweeps`, the twin of this module).
Arguments that belong together are structs, which every member of the team copies once: no slower than one by one.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, thread_count
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.contact.rows import ContactRows
from tangere.soft.model.assembled_bodies import AssembledBodies, struct_of
from tangere.soft.solver.anderson import WINDOW, Dots, mixing_coefficients
from tangere.soft.solver.cpu.dof_lanes import DofLanes, dof_lanes, move_lanes
from tangere.soft.solver.cpu.dof_slices import (
    BodyColumns,
    MemoryColumns,
    accelerate_slice,
    body_shift,
    missing_move,
    missing_moves,
    shift_and_record,
)
from tangere.soft.solver.cpu.row_forces import ROW_FORCE, row_gap, sum_body_forces, write_row_force
from tangere.soft.solver.cpu.team import COUNTER_ROW, next_chunk, run_team, take_chunk, wait_until_done
from tangere.soft.solver.rod import RodArrays, accelerate_rod, record_rod, relax_rod

wp.set_module_options(SOUND)

#: Sweeps of one launch at most: the board has rows for so many.
SWEEPS_PER_LAUNCH = 64
#: Phases of a sweep besides its colours.
OTHER_PHASES = 7
#: Dofs and contacts worth a thread.
GRAIN = 768
#: Eights of dofs, dofs, and contacts of a chunk: about a microsecond each.
GROUPS_PER_CHUNK = wp.constant(2)
DOFS_PER_SLICE = wp.constant(64)
ROWS_PER_CHUNK = wp.constant(32)


class CpuSweeps:
    """Sweeps over all dofs that move."""

    def __init__(
        self,
        assembly: AssembledBodies,
        islands: ContactIslands,
        y: wp.array,
        inertia: wp.array,
        rows: ContactRows,
        dt: float,
        rod: RodArrays,
    ) -> None:
        """`y` is the free motion of the step, `inertia` holds dofs there; a rod takes part in every sweep."""
        device, count, bodies = assembly.device, len(assembly.dofs.x), assembly.body_room
        self._rows, self._count, self.accelerated = rows, count, True
        lanes = dof_lanes(assembly)
        base = assembly.dof_base
        slices = [
            (b, begin, min(begin + int(DOFS_PER_SLICE), base[b + 1]))
            for b in range(len(base) - 1)
            for begin in range(base[b], base[b + 1], int(DOFS_PER_SLICE))
        ]
        self._slices = len(slices)
        of_range = np.searchsorted([s[0] for s in slices], np.arange(len(base)))
        columns = 1 + bodies - (len(base) - 1)

        def vec4s(*shape: int) -> wp.array:
            return wp.zeros(shape, dtype=wp.vec4d, device=device)

        self._sweep_range = wp.zeros(4, dtype=wp.int32, device="cpu")
        self._numbers = self._sweep_range.numpy()
        phases = 2 + SWEEPS_PER_LAUNCH * (len(lanes.colours) + OTHER_PHASES)
        self._counters = wp.zeros((phases, COUNTER_ROW), dtype=wp.int32, device=device)

        def zeros(*shape: int) -> wp.array:
            return wp.zeros(shape, dtype=wp.float64, device=device)

        self._valid = wp.zeros(2, dtype=wp.int32, device=device)
        sums = struct_of(
            BodyColumns,
            device,
            slices=np.array(slices),
            slices_of=of_range,
            mass=assembly.dofs.mass,
            free=assembly.dofs.free,
            body=assembly.dofs.body,
            anchored=islands.anchored,
            whole=assembly.whole,
            per_dt2=1.0 / dt**2,
            dt=dt,
            columns=columns,
            missing=vec4s(len(slices) * columns),
            sums=zeros(bodies, ROW_FORCE),
            shift=vec4s(bodies),
        )
        memory = struct_of(
            MemoryColumns,
            device,
            before=vec4s(count),
            last_r=vec4s(count),
            last_x=vec4s(count),
            differences_r=vec4s(WINDOW, count),
            differences_x=vec4s(WINDOW, count),
            dots=wp.zeros(len(slices) + 1, dtype=Dots, device=device),  # the last of the rod
            valid=self._valid,
            residual=zeros(2),
        )
        arguments = [self._counters, self._sweep_range, assembly.dofs.x, y, vec4s(count), vec4s(count)]
        arguments += [inertia, assembly.material.diagonal, lanes, rows.arrays]
        arguments += [zeros(rows.capacity, ROW_FORCE), wp.zeros_like(rows.arrays.normal), sums, memory, rod]
        self._sweep = PreparedLaunch(_sweep, arguments, device)

    def __call__(self, sweeps: int) -> None:
        """So many sweeps from where the dofs are; the last one is not accelerated."""
        self._valid.fill_(-1)
        members = min(thread_count(), 1 + (self._count + self._rows.count) // GRAIN)
        for begin in range(0, sweeps, SWEEPS_PER_LAUNCH):
            self._counters.zero_()
            self._numbers[:] = begin, min(begin + SWEEPS_PER_LAUNCH, sweeps), sweeps, int(self.accelerated)
            run_team(self._sweep, self._counters, self._slices, members)


@wp.func
def vec4(v: wp.vec3d) -> wp.vec4d:
    return wp.vec4d(v[0], v[1], v[2], wp.float64(0.0))


@wp.kernel
def _sweep(
    first: int,
    counters: wp.array2d[int],
    sweep_range: wp.array[int],
    outer_x: wp.array[wp.vec3d],
    outer_y: wp.array[wp.vec3d],
    x: wp.array[wp.vec4d],
    y: wp.array[wp.vec4d],
    inertia: wp.array[wp.float64],
    diagonal: wp.array[wp.float64],
    lanes: DofLanes,
    rows: RowArrays,
    row_forces: wp.array2d[wp.float64],
    gap_before: wp.array[wp.vec3d],
    bodies: BodyColumns,
    memory: MemoryColumns,
    rod: RodArrays,
):
    """Member `first` of the team."""
    parts = bodies.slices.shape[0]
    rods = wp.min(rod.count[0], 1)
    batches = (rows.live[0] + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK
    phase = int(0)
    chunk = take_chunk(counters, phase)
    while chunk < parts + batches:
        if chunk < parts:
            for i in range(bodies.slices[chunk][1], bodies.slices[chunk][2]):
                x[i] = vec4(outer_x[i])
                y[i] = vec4(outer_y[i])
                if sweep_range[0] == 0:
                    memory.before[i] = x[i]
        else:
            for r in range(
                (chunk - parts) * ROWS_PER_CHUNK, wp.min((chunk - parts + 1) * ROWS_PER_CHUNK, rows.live[0])
            ):
                gap = wp.vec3d()
                for k in range(rows.sizes[r]):
                    gap += rows.weights[r][k] * rows.start[rows.dofs[r][k]]
                gap_before[r] = gap - rows.strain[r]
        chunk = next_chunk(counters, phase)
    if not wait_until_done(counters, phase, parts + batches):
        return
    phase += 1
    for sweep in range(sweep_range[0], sweep_range[1]):
        # a rod, and where it guides bodies
        if rods == 1:
            chunk = take_chunk(counters, phase)
            while chunk < 1:
                if sweep == 0:
                    for i in range(rod.count[0]):
                        rod.before[i] = rod.x[i]
                relax_rod(rod, rows, x)
                chunk = next_chunk(counters, phase)
            if not wait_until_done(counters, phase, 1):
                return
        phase += 1
        # the forces of the contacts where the dofs are
        chunk = take_chunk(counters, phase)
        while chunk < batches:
            for r in range(chunk * ROWS_PER_CHUNK, wp.min((chunk + 1) * ROWS_PER_CHUNK, rows.live[0])):
                gap = row_gap(r, x, rows.dofs, rows.weights, rows.sizes)
                write_row_force(
                    r,
                    gap,
                    gap_before[r],
                    rows.normal[r],
                    rows.law[r],
                    rows.friction,
                    rows.slip,
                    rows.aim[r],
                    rows.guide[r],
                    row_forces,
                )
            chunk = next_chunk(counters, phase)
        if not wait_until_done(counters, phase, batches):
            return
        phase += 1
        # single dofs, colour after colour
        for colour in range(lanes.colours.shape[0]):
            begin = lanes.colours[colour][0]
            end = lanes.colours[colour][1]
            pieces = (end - begin + GROUPS_PER_CHUNK - 1) / GROUPS_PER_CHUNK
            chunk = take_chunk(counters, phase)
            while chunk < pieces:
                for group in range(
                    begin + chunk * GROUPS_PER_CHUNK, wp.min(begin + (chunk + 1) * GROUPS_PER_CHUNK, end)
                ):
                    move_lanes(group, lanes, x, y, inertia, diagonal, rows, row_forces)
                chunk = next_chunk(counters, phase)
            if not wait_until_done(counters, phase, pieces):
                return
            phase += 1
        # whole bodies: what contacts do to them, what is missing of their free motion
        chunk = take_chunk(counters, phase)
        while chunk < batches:
            for r in range(chunk * ROWS_PER_CHUNK, wp.min((chunk + 1) * ROWS_PER_CHUNK, rows.live[0])):
                if rows.bodies[r][0] != rows.bodies[r][1]:
                    gap = row_gap(r, x, rows.dofs, rows.weights, rows.sizes)
                    write_row_force(
                        r,
                        gap,
                        gap_before[r],
                        rows.normal[r],
                        rows.law[r],
                        rows.friction,
                        rows.slip,
                        rows.aim[r],
                        rows.guide[r],
                        row_forces,
                    )
            chunk = next_chunk(counters, phase)
        if not wait_until_done(counters, phase, batches):
            return
        phase += 1
        chunk = take_chunk(counters, phase)
        while chunk < parts + 1:
            if chunk == 0:
                sum_body_forces(rows.live, rows.bodies, row_forces, bodies.anchored, bodies.sums)
            elif bodies.whole.following[bodies.slices[chunk - 1][0]] < 0:
                bodies.missing[(chunk - 1) * bodies.columns] = missing_move(chunk - 1, bodies, x, y)
            else:
                missing_moves(chunk - 1, bodies, x, y)
            chunk = next_chunk(counters, phase)
        if not wait_until_done(counters, phase, parts + 1):
            return
        phase += 1
        chunk = take_chunk(counters, phase)
        while chunk < bodies.anchored.shape[0]:
            bodies.shift[chunk] = body_shift(chunk, bodies)
            chunk = next_chunk(counters, phase)
        if not wait_until_done(counters, phase, bodies.anchored.shape[0]):
            return
        phase += 1
        slot = sweep % 3
        if sweep_range[3] == 0 or sweep == sweep_range[2] - 1:
            slot = -1
        chunk = take_chunk(counters, phase)
        while chunk < parts + rods:
            if chunk < parts:
                shift_and_record(chunk, slot, bodies, x, memory)
            elif slot >= 0:
                memory.dots[parts] = record_rod(rod, slot)
            chunk = next_chunk(counters, phase)
        if not wait_until_done(counters, phase, parts + rods):
            return
        phase += 1
        # acceleration: every member finds the combination for itself
        if slot >= 0:
            turn = sweep % 2
            total = Dots()
            for s in range(parts + rods):
                total += memory.dots[s]
            theta, now = mixing_coefficients(slot, total, memory.valid[turn], memory.residual[turn])
            chunk = take_chunk(counters, phase)
            while chunk < parts + rods:
                if chunk == 0:
                    memory.valid[1 - turn] = now
                    memory.residual[1 - turn] = total[9]
                if chunk < parts:
                    accelerate_slice(chunk, theta, bodies, x, memory)
                else:
                    accelerate_rod(rod, theta)
                chunk = next_chunk(counters, phase)
            if not wait_until_done(counters, phase, parts + rods):
                return
        phase += 1
    phase = counters.shape[0] - 1
    chunk = take_chunk(counters, phase)
    while chunk < parts:
        for i in range(bodies.slices[chunk][1], bodies.slices[chunk][2]):
            outer_x[i] = wp.vec3d(x[i][0], x[i][1], x[i][2])
        chunk = next_chunk(counters, phase)
