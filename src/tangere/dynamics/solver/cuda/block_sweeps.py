"""Sweeps of large islands on CUDA: a block of threads for each, which solve rows at the same time that share no body.

Method:   that of `gauss_seidel`, level after level (`row_levels`): the impulses are, to the last bit, those of one
          thread. What is summed up only to be compared with a limit is summed by all threads.
Also:     runs on CPU, where a block is one thread.
Known as: parallel Gauss-Seidel by level scheduling.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.dynamics.solver.cuda.row_levels import LevelsOfRows, RowLevels, largest_of_block, rows_before
from tangere.dynamics.solver.gauss_seidel import (
    CONVERGED,
    EXHAUSTED,
    LITTLE,
    NOT_FINITE,
    PATIENCE,
    SOLVED,
    STAGNANT,
    IslandReport,
    SweepOptions,
    contact_velocity,
    is_solved,
    is_stirred,
    joint_velocity,
    push_contact,
    push_joint,
    solve_contact,
    solve_joint,
    stir,
)
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.local_law import bounded_residual, contact_residual
from tangere.dynamics.solver.problem import vec6d
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import BLOCK, SOUND, launch

wp.set_module_options(SOUND)

_NOT_A_SPEED = wp.constant(wp.float64(1.0e300))


class LargeIslands:
    """Levels and launches, made when there is a large island."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._width = BLOCK if device.is_cuda else 1
        self._levels = LevelsOfRows(device)

    def sweep(self, islands: Any, rows: Any, options: Any, report: Any, count: int, contacts: int, joints: int) -> None:
        """Sweep those of so many islands that have more rows than `options.alone`.

        Args:
            contacts, joints: rows there are.
        """
        self._levels.find(islands, rows, count, contacts, joints, self._width)
        arguments = [islands, rows, self._levels.arrays, options, report]
        launch(sweep_large_islands, count * self._width, arguments, device=self._device, threads=1)


@wp.struct
class BlockIsland:
    """An island and a thread of its block."""

    number: wp.int32
    begin: wp.int32  # its rows, joints before contacts
    end: wp.int32
    joints: wp.int32  # how many of them are joints
    joint_offset: wp.int32  # what makes of a row a joint, and …
    contact_offset: wp.int32  # … a contact
    lane: wp.int32
    width: wp.int32


@wp.func
def block_island(islands: IslandArrays, k: int, lane: int, width: int) -> BlockIsland:
    at = BlockIsland()
    at.number = k
    at.begin = rows_before(islands, k)
    at.end = rows_before(islands, k + 1)
    at.joints = islands.joint_first[k + 1] - islands.joint_first[k]
    at.joint_offset = islands.contact_first[k]
    at.contact_offset = islands.joint_first[k + 1]
    at.lane = lane
    at.width = width
    return at


@wp.func
def is_joint(at: BlockIsland, r: int) -> bool:
    return r - at.begin < at.joints


@wp.func
def level_end(levels: RowLevels, at: BlockIsland, level: int) -> int:
    if level + 1 < levels.count[at.number]:
        return levels.first[at.begin + level + 1]
    return at.end


@wp.func
def clear_body(rows: WhitenedRows, body: int):
    if body >= 0:
        rows.w[body] = vec6d()


@wp.func
def apply_together(rows: WhitenedRows, levels: RowLevels, at: BlockIsland):
    """w of the island's bodies from its impulses alone, as `apply_impulses` has it."""
    for r in range(at.begin + at.lane, at.end, at.width):
        if is_joint(at, r):
            clear_body(rows, rows.j_a[r - at.joint_offset])
            clear_body(rows, rows.j_b[r - at.joint_offset])
        else:
            clear_body(rows, rows.c_a[r - at.contact_offset])
            clear_body(rows, rows.c_b[r - at.contact_offset])
    met = largest_of_block(wp.float64(0.0))
    for level in range(levels.count[at.number]):
        for p in range(levels.first[at.begin + level] + at.lane, level_end(levels, at, level), at.width):
            r = levels.order[p]
            if is_joint(at, r):
                push_joint(rows, r - at.joint_offset, rows.j_impulse[r - at.joint_offset])
            else:
                push_contact(rows, r - at.contact_offset, rows.c_impulse[r - at.contact_offset])
        met = largest_of_block(met)


@wp.func
def sweep_together(
    rows: WhitenedRows, levels: RowLevels, at: BlockIsland, number: int, all: bool, little: wp.float64
) -> wp.float64:
    """Once over the rows, there or back; the largest change of a relative velocity, as `sweep` has it [m/s]."""
    worst = wp.float64(0.0)
    count = levels.count[at.number]
    for step in range(count):
        level = step
        if number % 2 == 0:
            level = count - 1 - step
        mine = wp.float64(0.0)
        for p in range(levels.first[at.begin + level] + at.lane, level_end(levels, at, level), at.width):
            r = levels.order[p]
            if is_joint(at, r):
                mine = wp.max(mine, solve_joint(rows, r - at.joint_offset))
            else:
                i = r - at.contact_offset
                if all or is_stirred(rows, i):
                    rows.c_seen[i] = number
                    change = solve_contact(rows, i)
                    if change > little:
                        stir(rows, i, number)
                    mine = wp.max(mine, change)
        worst = wp.max(worst, largest_of_block(mine))
    return worst


@wp.func
def residual_together(rows: WhitenedRows, at: BlockIsland) -> wp.float64:
    """The farthest any row is from its law [m/s]; not finite if a number of the island is not."""
    worst = wp.float64(0.0)
    strange = wp.float64(0.0)
    for r in range(at.begin + at.lane, at.end, at.width):
        e = wp.float64(0.0)
        free = wp.float64(0.0)
        if is_joint(at, r):
            j = r - at.joint_offset
            v = joint_velocity(rows, j)
            e = bounded_residual(v, rows.j_impulse[j], rows.j_diagonal[j], rows.j_lower[j], rows.j_upper[j])
            free = rows.j_free[j]
        else:
            i = r - at.contact_offset
            u = contact_velocity(rows, i)
            e = contact_residual(u, rows.c_impulse[i], rows.c_delassus[i], rows.c_friction[i], wp.float64(1.0))
            free = wp.dot(rows.c_free[i], rows.c_free[i])
        if not (wp.abs(free + e) < _NOT_A_SPEED):
            strange = wp.float64(1.0)
        else:
            worst = wp.max(worst, e)
    worst = largest_of_block(worst)
    if largest_of_block(strange) > wp.float64(0.0):
        worst = _NOT_A_SPEED
    return worst


@wp.func
def sliding_together(rows: WhitenedRows, at: BlockIsland) -> wp.float64:
    """How fast contacts slide on average, each counted by its normal impulse [m/s]."""
    impulse = wp.float64(0.0)
    sliding = wp.float64(0.0)
    for r in range(at.begin + at.joints + at.lane, at.end, at.width):
        i = r - at.contact_offset
        n = rows.c_impulse[i][0]
        if n > wp.float64(0.0):
            u = contact_velocity(rows, i)
            impulse += n
            sliding += n * wp.sqrt(u[1] * u[1] + u[2] * u[2])
    return wp.tile_sum(wp.tile(sliding))[0] / (wp.tile_sum(wp.tile(impulse))[0] + wp.float64(1.0e-300))


@wp.kernel
def sweep_large_islands(
    first: int,
    islands: IslandArrays,
    rows: WhitenedRows,
    levels: RowLevels,
    options: SweepOptions,
    report: IslandReport,
):
    """All sweeps of an island that `sweep_islands` leaves to a block."""
    width = wp.block_dim()
    at = block_island(islands, (first + wp.tid()) / width, wp.tid() % width, width)
    if at.end - at.begin > options.alone:
        apply_together(rows, levels, at)
        made = int(0)
        most = int(options.most)
        status = int(wp.static(EXHAUSTED))
        if is_solved(islands, at.number, options.since[0]):
            most = 0
            status = wp.static(SOLVED)
        worst = wp.float64(0.0)
        all = bool(True)
        while made < most:
            worst = sweep_together(rows, levels, at, made + 1, all, LITTLE * worst)
            made += 1
            if all and worst <= options.tolerance:
                status = wp.static(CONVERGED)
                most = made
            all = worst <= options.tolerance or (made + 1) % PATIENCE == 0
        apply_together(rows, levels, at)
        residual = residual_together(rows, at)
        sliding = options.sliding[0] * sliding_together(rows, at)
        if status == wp.static(EXHAUSTED) and options.good > wp.float64(0.0):
            if residual > options.good and residual > sliding:
                status = wp.static(STAGNANT)
        if not (residual < _NOT_A_SPEED):
            status = wp.static(NOT_FINITE)
        if at.lane == 0:
            report.residual[at.number] = residual
            report.iterations[at.number] = made
            report.status[at.number] = status
