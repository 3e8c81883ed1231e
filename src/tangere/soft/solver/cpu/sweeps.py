"""All sweeps of a step in one kernel, which the threads of a team go through together (CPU).

A sweep is: forces of the contacts; every colour, eight dofs at a time (`eights_of_dofs`); forces again, and from them
the shift of each body (`sweep_end`); the acceleration (`anderson`). Sums are taken over slices of fixed size, in order.
Positions are kept in fours meanwhile. What is computed is what the launches for CUDA compute (`sweeps_launched`).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, thread_count
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.contact.row_entries import RowDofs, RowWeights
from tangere.soft.contact.rows import ContactRows
from tangere.soft.model.assembly import Assembly
from tangere.soft.solver.anderson import WINDOW, Dots, combination
from tangere.soft.solver.cpu.dof_lanes import DofLanes, move_eight
from tangere.soft.solver.cpu.dof_slices import body_shift, missing_move, shift_and_remember, take_off
from tangere.soft.solver.cpu.row_forces import ACT, act, add_acts, row_gap
from tangere.soft.solver.cpu.team import BOARD, all_done, next_chunk, run_team, take_chunk

wp.set_module_options(SOUND)

__all__ = ["CpuSweeps"]

#: Sweeps of one launch at most: the board has rows for so many.
AT_ONCE = 64
#: Phases of a sweep besides its colours.
OTHER_PHASES = 6
#: Dofs and contacts worth a thread.
GRAIN = 768
#: Eights of dofs, dofs, and contacts of a chunk: about a microsecond each.
EIGHTS = wp.constant(2)
SLICE = wp.constant(64)
ROWS = wp.constant(32)


class CpuSweeps:
    """Sweeps over all dofs that move."""

    def __init__(
        self, assembly: Assembly, groups: ContactIslands, y: wp.array, inertia: wp.array, rows: ContactRows, dt: float
    ) -> None:
        """`y` is the free motion of the step, `inertia` m / dt^2."""
        device, count, bodies = assembly.device, len(assembly.x), len(assembly.bodies)
        self._rows, self._count, self.accelerated = rows, count, True
        eights = DofLanes.of(assembly)
        base = assembly.dof_base
        slices = [
            (b, begin, min(begin + int(SLICE), base[b + 1]))
            for b in range(bodies)
            for begin in range(base[b], base[b + 1], int(SLICE))
        ]
        self._slices = len(slices)
        of_body = np.searchsorted([s[0] for s in slices], np.arange(bodies + 1))

        def ints(values) -> wp.array:
            return wp.array(np.asarray(values, np.int32), dtype=wp.int32, device=device)

        def fours(*shape: int) -> wp.array:
            return wp.zeros(shape, dtype=wp.vec4d, device=device)

        self._span = wp.zeros(4, dtype=wp.int32, device="cpu")
        self._numbers = self._span.numpy()
        phases = 2 + AT_ONCE * (len(eights.colours) - 1 + OTHER_PHASES)
        self._board = wp.zeros((phases, BOARD), dtype=wp.int32, device=device)
        around = [eights.table, eights.dofs, eights.neighbours, eights.weights, eights.corners, eights.laws]
        weight = np.array([body.vertex_mass.sum() for body in assembly.bodies])
        begin, end, entry_row, entry_pull, *_ = rows.by_dof
        live, x, *laws = rows.laws
        arguments = [self._board, self._span, ints(eights.colours), *around, fours(count), fours(count)]
        arguments += [inertia, assembly.material[3], begin, end, entry_row, entry_pull]
        arguments += [wp.zeros((rows.capacity, ACT), dtype=wp.float64, device=device)]
        arguments += [x, y, live, *laws, wp.zeros_like(rows.normal), rows.bodies]
        arguments += [wp.array(slices, dtype=wp.vec3i, device=device), ints(of_body), assembly.mass, assembly.free]
        arguments += [groups.held, wp.array(weight, dtype=wp.float64, device=device), 1.0 / dt**2]
        arguments += [fours(len(slices)), wp.zeros((bodies, ACT), dtype=wp.float64, device=device), fours(bodies)]
        arguments += [fours(count), fours(count), fours(count), fours(WINDOW, count), fours(WINDOW, count)]
        self._good = wp.zeros(2, dtype=wp.int32, device=device)
        arguments += [wp.zeros(len(slices), dtype=Dots, device=device), self._good]
        arguments += [wp.zeros(2, dtype=wp.float64, device=device)]
        self._sweep = PreparedLaunch(_sweep, arguments, device)

    def __call__(self, sweeps: int) -> None:
        """So many sweeps from where the dofs are; the last one is not accelerated."""
        self._good.fill_(-1)
        members = min(thread_count(), 1 + (self._count + self._rows.count) // GRAIN)
        for begin in range(0, sweeps, AT_ONCE):
            self._board.zero_()
            self._numbers[:] = begin, min(begin + AT_ONCE, sweeps), sweeps, int(self.accelerated)
            run_team(self._sweep, self._board, self._slices, members)


@wp.func
def four(v: wp.vec3d) -> wp.vec4d:
    return wp.vec4d(v[0], v[1], v[2], wp.float64(0.0))


@wp.kernel
def _sweep(
    first: int,
    board: wp.array2d[int],
    span: wp.array[int],
    colours: wp.array[int],
    table: wp.array2d[int],
    dofs: wp.array2d[int],
    neighbours: wp.array2d[int],
    weights: wp.array2d[wp.float64],
    corners: wp.array2d[int],
    laws: wp.array2d[wp.float64],
    x: wp.array[wp.vec4d],
    y: wp.array[wp.vec4d],
    inertia: wp.array[wp.float64],
    diagonal: wp.array[wp.float64],
    row_begin: wp.array[int],
    row_end: wp.array[int],
    entry_row: wp.array[int],
    entry_pull: wp.array[wp.vec2d],
    acts: wp.array2d[wp.float64],
    outer_x: wp.array[wp.vec3d],
    outer_y: wp.array[wp.vec3d],
    live: wp.array[int],
    start: wp.array[wp.vec3d],
    row_dofs: wp.array[RowDofs],
    row_weights: wp.array[RowWeights],
    row_sizes: wp.array[int],
    normal: wp.array[wp.vec3d],
    law: wp.array[wp.vec2d],
    friction: wp.float64,
    slip: wp.float64,
    gap_before: wp.array[wp.vec3d],
    row_bodies: wp.array[wp.vec2i],
    slices: wp.array[wp.vec3i],
    slices_of: wp.array[int],
    mass: wp.array[wp.float64],
    free: wp.array[int],
    held: wp.array[int],
    body_mass: wp.array[wp.float64],
    per_dt2: wp.float64,
    missing: wp.array[wp.vec4d],
    sums: wp.array2d[wp.float64],
    shift: wp.array[wp.vec4d],
    before: wp.array[wp.vec4d],
    last_r: wp.array[wp.vec4d],
    last_x: wp.array[wp.vec4d],
    differences_r: wp.array2d[wp.vec4d],
    differences_x: wp.array2d[wp.vec4d],
    dots: wp.array[Dots],
    good: wp.array[int],
    size: wp.array[wp.float64],
):
    """Member `first` of the team."""
    parts = slices.shape[0]
    batches = (live[0] + ROWS - 1) / ROWS
    phase = int(0)
    chunk = take_chunk(board, phase)
    while chunk < parts + batches:
        if chunk < parts:
            for i in range(slices[chunk][1], slices[chunk][2]):
                x[i] = four(outer_x[i])
                y[i] = four(outer_y[i])
                if span[0] == 0:
                    before[i] = x[i]
        else:
            for r in range((chunk - parts) * ROWS, wp.min((chunk - parts + 1) * ROWS, live[0])):
                gap = wp.vec3d()
                for k in range(row_sizes[r]):
                    gap += row_weights[r][k] * start[row_dofs[r][k]]
                gap_before[r] = gap
        chunk = next_chunk(board, phase)
    if not all_done(board, phase, parts + batches):
        return
    phase += 1
    for sweep in range(span[0], span[1]):
        # the forces of the contacts where the dofs are
        chunk = take_chunk(board, phase)
        while chunk < batches:
            for r in range(chunk * ROWS, wp.min((chunk + 1) * ROWS, live[0])):
                gap = row_gap(r, x, row_dofs, row_weights, row_sizes)
                act(r, gap, gap_before[r], normal[r], law[r], friction, slip, acts)
            chunk = next_chunk(board, phase)
        if not all_done(board, phase, batches):
            return
        phase += 1
        # single dofs, colour after colour
        for colour in range(colours.shape[0] - 1):
            begin = colours[colour]
            end = colours[colour + 1]
            pieces = (end - begin + EIGHTS - 1) / EIGHTS
            chunk = take_chunk(board, phase)
            while chunk < pieces:
                for eight in range(begin + chunk * EIGHTS, wp.min(begin + (chunk + 1) * EIGHTS, end)):
                    move_eight(
                        eight,
                        table,
                        dofs,
                        neighbours,
                        weights,
                        corners,
                        laws,
                        x,
                        y,
                        inertia,
                        diagonal,
                        row_begin,
                        row_end,
                        entry_row,
                        entry_pull,
                        acts,
                    )
                chunk = next_chunk(board, phase)
            if not all_done(board, phase, pieces):
                return
            phase += 1
        # whole bodies: what contacts do to them, what is missing of their free motion
        chunk = take_chunk(board, phase)
        while chunk < batches:
            for r in range(chunk * ROWS, wp.min((chunk + 1) * ROWS, live[0])):
                if row_bodies[r][0] != row_bodies[r][1]:
                    gap = row_gap(r, x, row_dofs, row_weights, row_sizes)
                    act(r, gap, gap_before[r], normal[r], law[r], friction, slip, acts)
            chunk = next_chunk(board, phase)
        if not all_done(board, phase, batches):
            return
        phase += 1
        chunk = take_chunk(board, phase)
        while chunk < parts + 1:
            if chunk == 0:
                add_acts(live, row_bodies, acts, held, sums)
            else:
                part = slices[chunk - 1]
                missing[chunk - 1] = missing_move(part[1], part[2], mass, x, y)
            chunk = next_chunk(board, phase)
        if not all_done(board, phase, parts + 1):
            return
        phase += 1
        chunk = take_chunk(board, phase)
        while chunk < held.shape[0]:
            heavy = per_dt2 * body_mass[chunk]
            mine = slices_of[chunk]
            shift[chunk] = body_shift(chunk, mine, slices_of[chunk + 1], missing, held[chunk], heavy, per_dt2, sums)
            chunk = next_chunk(board, phase)
        if not all_done(board, phase, held.shape[0]):
            return
        phase += 1
        slot = sweep % 3
        if span[3] == 0 or sweep == span[2] - 1:
            slot = -1
        chunk = take_chunk(board, phase)
        while chunk < parts:
            part = slices[chunk]
            shift_and_remember(
                chunk,
                part[1],
                part[2],
                slot,
                shift[part[0]],
                mass,
                free,
                x,
                before,
                last_r,
                last_x,
                differences_r,
                differences_x,
                dots,
            )
            chunk = next_chunk(board, phase)
        if not all_done(board, phase, parts):
            return
        phase += 1
        # acceleration: every member finds the combination for itself
        if slot >= 0:
            turn = sweep % 2
            total = Dots()
            for s in range(parts):
                total += dots[s]
            theta, now = combination(slot, total, good[turn], size[turn])
            chunk = take_chunk(board, phase)
            while chunk < parts:
                if chunk == 0:
                    good[1 - turn] = now
                    size[1 - turn] = total[9]
                take_off(slices[chunk][1], slices[chunk][2], theta, free, x, before, differences_x)
                chunk = next_chunk(board, phase)
            if not all_done(board, phase, parts):
                return
        phase += 1
    phase = board.shape[0] - 1
    chunk = take_chunk(board, phase)
    while chunk < parts:
        for i in range(slices[chunk][1], slices[chunk][2]):
            outer_x[i] = wp.vec3d(x[i][0], x[i][1], x[i][2])
        chunk = next_chunk(board, phase)
