"""Agents sorted by cell after each step, with all they carry: then the agents of a cell are a range.

Method:   a counting sort that moves the agents themselves. Each shard counts its own contiguous range, one scan turns
          counts into places, each shard moves its range (stable, no atomics). With one shard all of it is one kernel,
          and few agents change cell in a step: those are sorted and merged with the others, who are sorted already,
          and each that went from cell a to cell b moves the starts of the cells between them by one. So nothing is
          asked of the cells of who stays. At first, and where many change or far, it is a counting sort again.
          On CUDA a radix sort of the cells, and a gather.
The order does not depend on the number of threads.
Known as: counting sort; on CUDA radix sort.
"""

from __future__ import annotations

import math
from typing import Any

import warp as wp
import warp.utils

from tangere.cells import count_shard, first_at_least, scan_counts, shard_begin
from tangere.crowd.agents.arrays import CrowdArrays, MovedAgents
from tangere.runtime import SOUND, PreparedLaunch, thread_count

wp.set_module_options(SOUND)

#: Agents worth a shard of their own: each shard also has a counter per cell to clear.
_SHARD = 8192


def cell_sort_launches(moved: MovedAgents, crowd: CrowdArrays, tick: int, device: wp.Device) -> list[Any]:
    """What to run, in this order, to put the agents `moved` into the crowd, by cell; `tick` goes on its clock."""
    count, cells = len(moved.cell), len(crowd.start) - 1
    if device.is_cuda:
        keys, order = (wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2))
        bits = max(1, cells.bit_length())
        return [
            PreparedLaunch(_number, [moved, keys, order], device, dim=count),
            _RadixSort(keys, order, count, bits),
            PreparedLaunch(_starts, [keys, count, tick, crowd], device, dim=cells + 1),
            PreparedLaunch(_gather, [moved, order, crowd], device, dim=count),
        ]
    shards = max(1, min(thread_count(), count // _SHARD))
    if shards == 1:
        counts, is_sorted = (wp.zeros(size, dtype=wp.int32, device=device) for size in (cells, 1))
        movers, sorted_movers = (wp.empty(_mover_capacity(count), dtype=wp.int32, device=device) for _ in range(2))
        return [
            PreparedLaunch(
                _sort_in_one_shard, [moved, counts, is_sorted, movers, sorted_movers, tick, crowd], device, dim=1
            )
        ]
    tally = wp.empty((shards, cells), dtype=wp.int32, device=device)
    return [
        PreparedLaunch(_count, [moved, shards, tally], device, dim=shards, grain=1),
        PreparedLaunch(_scan, [shards, tick, tally, crowd], device, dim=1),
        PreparedLaunch(_place, [moved, shards, tally, crowd], device, dim=shards, grain=1),
    ]


def _mover_capacity(count: int) -> int:
    """So many agents are sorted one by one, which takes about as long as passing all of them once."""
    return 2 * math.isqrt(count) + 1


class _RadixSort:
    """A sort of the same arrays, again and again."""

    def __init__(self, keys: wp.array, order: wp.array, count: int, bits: int) -> None:
        self._arguments = keys, order, count, 0, bits

    def run(self) -> None:
        warp.utils.radix_sort_pairs(*self._arguments)


@wp.func
def _copy_agent(a: MovedAgents, i: int, c: CrowdArrays, place: int):
    c.position[place] = a.position[i]
    c.velocity[place] = a.velocity[i]
    c.dart[place] = int(a.dart[i])
    c.number[place] = int(a.number[i])
    c.cell[place] = int(a.cell[i])
    c.rectangle[place] = a.rectangle[i]


@wp.func
def _find_movers(a: MovedAgents, c: CrowdArrays, cells: int, movers: wp.array[int]) -> int:
    """Note who has changed cell; how many, or -1 if they are too many or move more starts together than there are."""
    count = int(0)
    way = int(0)
    for i in range(a.cell.shape[0]):
        if a.cell[i] != c.cell[i]:
            way += wp.abs(a.cell[i] - c.cell[i])
            if way > cells or count == movers.shape[0]:
                return -1
            movers[count] = i
            count += 1
    return count


@wp.func
def _shift_starts(c: CrowdArrays, a: int, b: int):
    """Move the starts of cells as one agent goes from cell a to cell b."""
    for cell in range(a + 1, b + 1):
        c.start[cell] = c.start[cell] - 1
    for cell in range(b + 1, a + 1):
        c.start[cell] = c.start[cell] + 1


@wp.func
def _merge_movers(a: MovedAgents, count: int, movers: wp.array[int], by_cell: wp.array[int], c: CrowdArrays):
    """Put everybody in the order of cells: so many movers, given in the order of agents, and the others."""
    for k in range(count):
        i = movers[k]
        _shift_starts(c, c.cell[i], a.cell[i])
        at = int(k)
        while at > 0 and a.cell[by_cell[wp.max(at, 1) - 1]] > a.cell[i]:
            by_cell[at] = int(by_cell[at - 1])
            at -= 1
        by_cell[at] = i
    place = int(0)
    passed = int(0)
    next = int(0)
    for i in range(a.cell.shape[0]):
        if passed < count and movers[wp.min(passed, count - 1)] == i:
            passed += 1
        else:
            is_before = bool(True)
            while is_before and next < count:
                j = by_cell[next]
                is_before = a.cell[j] < a.cell[i] or (a.cell[j] == a.cell[i] and j < i)
                if is_before:
                    _copy_agent(a, j, c, place)
                    place += 1
                    next += 1
            _copy_agent(a, i, c, place)
            place += 1
    while next < count:
        _copy_agent(a, by_cell[next], c, place)
        place += 1
        next += 1


@wp.func
def _counting_sort(a: MovedAgents, counts: wp.array[int], c: CrowdArrays):
    """The counting sort on one thread; `counts` are zero before and after."""
    for i in range(a.cell.shape[0]):
        counts[a.cell[i]] = counts[a.cell[i]] + 1
    total = int(0)
    for cell in range(counts.shape[0]):
        c.start[cell] = total
        total += counts[cell]
        counts[cell] = 0
    c.start[counts.shape[0]] = total
    for i in range(a.cell.shape[0]):
        _copy_agent(a, i, c, c.start[a.cell[i]] + counts[a.cell[i]])
        counts[a.cell[i]] = counts[a.cell[i]] + 1
    for i in range(a.cell.shape[0]):
        counts[a.cell[i]] = 0


@wp.kernel
def _sort_in_one_shard(
    first: int,
    a: MovedAgents,
    counts: wp.array[int],
    is_sorted: wp.array[int],
    movers: wp.array[int],
    by_cell: wp.array[int],
    tick: int,
    c: CrowdArrays,
):
    count = int(-1)
    if is_sorted[0] == 1:
        count = _find_movers(a, c, counts.shape[0], movers)
    if count >= 0:
        _merge_movers(a, count, movers, by_cell, c)
    else:
        _counting_sort(a, counts, c)
        is_sorted[0] = 1
    c.clock[0] = c.clock[0] + tick


@wp.kernel
def _count(first: int, a: MovedAgents, shards: int, tally: wp.array2d[int]):
    shard = first + wp.tid()
    for cell in range(tally.shape[1]):
        tally[shard, cell] = 0
    count_shard(a.cell, shard, shards, tally)


@wp.kernel
def _scan(first: int, shards: int, tick: int, tally: wp.array2d[int], c: CrowdArrays):
    scan_counts(tally, shards, c.start)
    c.clock[0] = c.clock[0] + tick


@wp.kernel
def _place(first: int, a: MovedAgents, shards: int, tally: wp.array2d[int], c: CrowdArrays):
    shard = first + wp.tid()
    for i in range(shard_begin(a.cell.shape[0], shard, shards), shard_begin(a.cell.shape[0], shard + 1, shards)):
        place = int(tally[shard, a.cell[i]])
        tally[shard, a.cell[i]] = place + 1
        _copy_agent(a, i, c, place)


@wp.kernel
def _number(first: int, a: MovedAgents, keys: wp.array[int], order: wp.array[int]):
    i = first + wp.tid()
    keys[i] = int(a.cell[i])
    order[i] = i


@wp.kernel
def _starts(first: int, keys: wp.array[int], count: int, tick: int, c: CrowdArrays):
    cell = first + wp.tid()
    c.start[cell] = first_at_least(keys, count, cell)
    if cell == 0:
        c.clock[0] = c.clock[0] + tick


@wp.kernel
def _gather(first: int, a: MovedAgents, order: wp.array[int], c: CrowdArrays):
    i = first + wp.tid()
    _copy_agent(a, order[i], c, i)
