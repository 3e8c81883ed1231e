"""People who are there, sorted by cell after each step; who has left is dropped by the sort.

Method:   on CPU one kernel: few change cell in a step, and these are merged with the others, who are sorted already;
          where many change or somebody has come or gone, a counting sort. On CUDA a radix sort, in which those who are
          not there have a cell after the last.
Sound:    the number of people who are there stays on the device; the order depends on no number of threads.
Known as: stream compaction by a counting sort.
"""

from __future__ import annotations

import math
from typing import Any

import warp as wp
import warp.utils

from tangere.cells import first_at_least
from tangere.crowd.agents.arrays import CrowdArrays, MovedAgents
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)


def live_sort_launches(moved: MovedAgents, live: wp.array, crowd: CrowdArrays, device: wp.Device) -> list[Any]:
    """What to run after a step; people in cell -1 leave. `live[0]` is how many there are, before and after."""
    capacity, cells = len(moved.cell), len(crowd.start) - 1
    if device.is_cuda:
        keys, order = (wp.empty(2 * capacity, dtype=wp.int32, device=device) for _ in range(2))
        bits = max(1, cells.bit_length())
        return [
            PreparedLaunch(_keys, [moved, live, cells, keys, order], device, dim=capacity),
            _Radix(keys, order, capacity, bits),
            PreparedLaunch(_begin, [keys, capacity, crowd], device, dim=cells + 1),
            PreparedLaunch(_gather, [moved, order, crowd, live], device, dim=capacity),
        ]
    counts = wp.zeros(cells, dtype=wp.int32, device=device)
    movers, by_cell = (wp.empty(2 * math.isqrt(capacity) + 1, dtype=wp.int32, device=device) for _ in range(2))
    before = wp.full(1, -1, dtype=wp.int32, device=device)
    return [PreparedLaunch(_sort, [moved, live, before, counts, movers, by_cell, crowd], device, dim=1, grain=1)]


class _Radix:
    def __init__(self, keys: wp.array, order: wp.array, count: int, bits: int) -> None:
        self._arguments = keys, order, count, 0, bits

    def run(self) -> None:
        warp.utils.radix_sort_pairs(*self._arguments)


@wp.func
def _copy_person(a: MovedAgents, i: int, c: CrowdArrays, place: int):
    c.position[place] = a.position[i]
    c.velocity[place] = a.velocity[i]
    c.number[place] = int(a.number[i])
    c.cell[place] = int(a.cell[i])


@wp.func
def _movers(a: MovedAgents, c: CrowdArrays, count: int, movers: wp.array[int], cells: int) -> int:
    """Note who has changed cell; how many, or -1 if they are too many, go too far, or leave."""
    found = int(0)
    way = int(0)
    for i in range(count):
        if a.cell[i] != c.cell[i]:
            way += wp.abs(a.cell[i] - c.cell[i])
            if a.cell[i] < 0 or way > cells or found == movers.shape[0]:
                return -1
            movers[found] = i
            found += 1
    return found


@wp.func
def _merge(a: MovedAgents, count: int, moving: int, movers: wp.array[int], by_cell: wp.array[int], c: CrowdArrays):
    """Put everybody in the order of cells: movers, given in the order of people, and the others."""
    for k in range(moving):
        i = movers[k]
        for cell in range(c.cell[i] + 1, a.cell[i] + 1):
            c.start[cell] = c.start[cell] - 1
        for cell in range(a.cell[i] + 1, c.cell[i] + 1):
            c.start[cell] = c.start[cell] + 1
        at = int(k)
        while at > 0 and a.cell[by_cell[wp.max(at, 1) - 1]] > a.cell[i]:
            by_cell[at] = int(by_cell[at - 1])
            at -= 1
        by_cell[at] = i
    place = int(0)
    passed = int(0)
    next = int(0)
    for i in range(count):
        if passed < moving and movers[wp.min(passed, wp.max(moving - 1, 0))] == i:
            passed += 1
        else:
            is_before = bool(True)
            while is_before and next < moving:
                j = by_cell[next]
                is_before = a.cell[j] < a.cell[i] or (a.cell[j] == a.cell[i] and j < i)
                if is_before:
                    _copy_person(a, j, c, place)
                    place += 1
                    next += 1
            _copy_person(a, i, c, place)
            place += 1
    while next < moving:
        _copy_person(a, by_cell[next], c, place)
        place += 1
        next += 1


@wp.func
def _count_and_place(a: MovedAgents, count: int, counts: wp.array[int], c: CrowdArrays) -> int:
    """The counting sort; `counts` are zero before and after. Returns how many are left."""
    for i in range(count):
        if a.cell[i] >= 0:
            counts[a.cell[i]] = counts[a.cell[i]] + 1
    total = int(0)
    for cell in range(counts.shape[0]):
        c.start[cell] = total
        total += counts[cell]
        counts[cell] = 0
    c.start[counts.shape[0]] = total
    for i in range(count):
        if a.cell[i] >= 0:
            _copy_person(a, i, c, c.start[a.cell[i]] + counts[a.cell[i]])
            counts[a.cell[i]] = counts[a.cell[i]] + 1
    for i in range(count):
        if a.cell[i] >= 0:
            counts[a.cell[i]] = 0
    return total


@wp.kernel
def _sort(
    first: int,
    a: MovedAgents,
    live: wp.array[int],
    before: wp.array[int],
    counts: wp.array[int],
    movers: wp.array[int],
    by_cell: wp.array[int],
    c: CrowdArrays,
):
    count = live[0]
    moving = int(-1)
    if before[0] == count:  # nobody has come since the last sort
        moving = _movers(a, c, count, movers, counts.shape[0])
    if moving >= 0:
        _merge(a, count, moving, movers, by_cell, c)
    else:
        live[0] = _count_and_place(a, count, counts, c)
    before[0] = live[0]
    c.clock[0] = c.clock[0] + 1


@wp.kernel
def _keys(first: int, a: MovedAgents, live: wp.array[int], cells: int, keys: wp.array[int], order: wp.array[int]):
    i = first + wp.tid()
    order[i] = i
    keys[i] = cells
    if i < live[0] and a.cell[i] >= 0:
        keys[i] = int(a.cell[i])


@wp.kernel
def _begin(first: int, keys: wp.array[int], count: int, c: CrowdArrays):
    cell = first + wp.tid()
    c.start[cell] = first_at_least(keys, count, cell)
    if cell == 0:
        c.clock[0] = c.clock[0] + 1


@wp.kernel
def _gather(first: int, a: MovedAgents, order: wp.array[int], c: CrowdArrays, live: wp.array[int]):
    i = first + wp.tid()
    total = c.start[c.start.shape[0] - 1]
    if i < total:
        _copy_person(a, order[i], c, i)
    if i == 0:
        live[0] = total
