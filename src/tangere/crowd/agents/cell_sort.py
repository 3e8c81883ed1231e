"""Agents sorted by cell after each step, with all they carry: then the agents of a cell are a range.

Method:   a counting sort that moves the agents themselves. Each shard counts its own contiguous range, one scan turns
          counts into places, each shard moves its range (stable, no atomics). With one shard all of it is one kernel,
          and few agents change cell in a step: those are sorted and merged with the others, who are sorted already,
          and each that went from cell a to cell b moves the starts of the cells between them by one. So nothing is
          asked of the cells of who stays. At first, and where many change or far, it is a counting sort again.
          On CUDA a radix sort of the cells, and a gather.
The order does not depend on the number of threads.
Spec: specs/pitiot-multiresolution-interactions 2.11, 5.3.
"""

from __future__ import annotations

import math
from typing import Any

import warp as wp
import warp.utils

from tangere.cells.registration import first_at_least
from tangere.crowd.agents.arrays import Agents, CrowdArrays
from tangere.runtime import SOUND, PreparedLaunch, thread_count

__all__ = ["cell_sort"]

wp.set_module_options(SOUND)

#: Agents worth a shard of their own: each shard also has a counter per cell to clear.
_SHARD = 8192


def cell_sort(moved: Agents, crowd: CrowdArrays, tick: int, device: wp.Device) -> list[Any]:
    """What to run, in this order, to put the agents `moved` into the crowd, by cell; `tick` goes on its clock."""
    count, cells = len(moved.cell), len(crowd.start) - 1
    if device.is_cuda:
        keys, order = (wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2))
        bits = max(1, cells.bit_length())
        return [
            PreparedLaunch(_number, [moved, keys, order], device, dim=count),
            _Radix(keys, order, count, bits),
            PreparedLaunch(_starts, [keys, count, tick, crowd], device, dim=cells + 1),
            PreparedLaunch(_gather, [moved, order, crowd], device, dim=count),
        ]
    shards = max(1, min(thread_count(), count // _SHARD))
    if shards == 1:
        taken, known = (wp.zeros(size, dtype=wp.int32, device=device) for size in (cells, 1))
        movers, sorted_movers = (wp.empty(_movers(count), dtype=wp.int32, device=device) for _ in range(2))
        return [PreparedLaunch(_sort_alone, [moved, taken, known, movers, sorted_movers, tick, crowd], device, dim=1)]
    tally = wp.empty((shards, cells), dtype=wp.int32, device=device)
    return [
        PreparedLaunch(_count, [moved, shards, tally], device, dim=shards, grain=1),
        PreparedLaunch(_scan, [shards, tick, tally, crowd], device, dim=1),
        PreparedLaunch(_place, [moved, shards, tally, crowd], device, dim=shards, grain=1),
    ]


def _movers(count: int) -> int:
    """So many agents are sorted one by one, which takes about as long as passing all of them once."""
    return 2 * math.isqrt(count) + 1


class _Radix:
    """A sort of the same arrays, again and again."""

    def __init__(self, keys: wp.array, order: wp.array, count: int, bits: int) -> None:
        self._arguments = keys, order, count, 0, bits

    def run(self) -> None:
        warp.utils.radix_sort_pairs(*self._arguments)


@wp.func
def _begin(count: int, shard: int, shards: int) -> int:
    return int(wp.int64(count) * wp.int64(shard) / wp.int64(shards))


@wp.func
def _carried(a: Agents, i: int, c: CrowdArrays, place: int):
    c.position[place] = a.position[i]
    c.velocity[place] = a.velocity[i]
    c.dart[place] = int(a.dart[i])
    c.number[place] = int(a.number[i])
    c.cell[place] = int(a.cell[i])
    c.within[place] = a.within[i]


@wp.func
def _counted(a: Agents, shard: int, shards: int, tally: wp.array2d[int]):
    for cell in range(tally.shape[1]):
        tally[shard, cell] = 0
    for i in range(_begin(a.cell.shape[0], shard, shards), _begin(a.cell.shape[0], shard + 1, shards)):
        tally[shard, a.cell[i]] = tally[shard, a.cell[i]] + 1


@wp.func
def _scanned(shards: int, tally: wp.array2d[int], tick: int, c: CrowdArrays):
    total = int(0)
    for cell in range(tally.shape[1]):
        c.start[cell] = total
        for s in range(shards):
            here = int(tally[s, cell])
            tally[s, cell] = total
            total += here
    c.start[tally.shape[1]] = total
    c.clock[0] = c.clock[0] + tick


@wp.func
def _placed(a: Agents, shard: int, shards: int, tally: wp.array2d[int], c: CrowdArrays):
    for i in range(_begin(a.cell.shape[0], shard, shards), _begin(a.cell.shape[0], shard + 1, shards)):
        place = int(tally[shard, a.cell[i]])
        tally[shard, a.cell[i]] = place + 1
        _carried(a, i, c, place)


@wp.func
def _noted(a: Agents, c: CrowdArrays, cells: int, movers: wp.array[int]) -> int:
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
def _shifted(c: CrowdArrays, a: int, b: int):
    """Move the starts of cells as one agent goes from cell a to cell b."""
    for cell in range(a + 1, b + 1):
        c.start[cell] = c.start[cell] - 1
    for cell in range(b + 1, a + 1):
        c.start[cell] = c.start[cell] + 1


@wp.func
def _merged(a: Agents, count: int, movers: wp.array[int], by_cell: wp.array[int], c: CrowdArrays):
    """Put everybody in the order of cells: so many movers, given in the order of agents, and the others."""
    for k in range(count):
        i = movers[k]
        _shifted(c, c.cell[i], a.cell[i])
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
            going = bool(True)
            while going and next < count:
                j = by_cell[next]
                going = a.cell[j] < a.cell[i] or (a.cell[j] == a.cell[i] and j < i)
                if going:
                    _carried(a, j, c, place)
                    place += 1
                    next += 1
            _carried(a, i, c, place)
            place += 1
    while next < count:
        _carried(a, by_cell[next], c, place)
        place += 1
        next += 1


@wp.func
def _recounted(a: Agents, taken: wp.array[int], c: CrowdArrays):
    """The counting sort on one thread; `taken` is zero before and after."""
    for i in range(a.cell.shape[0]):
        taken[a.cell[i]] = taken[a.cell[i]] + 1
    total = int(0)
    for cell in range(taken.shape[0]):
        c.start[cell] = total
        total += taken[cell]
        taken[cell] = 0
    c.start[taken.shape[0]] = total
    for i in range(a.cell.shape[0]):
        _carried(a, i, c, c.start[a.cell[i]] + taken[a.cell[i]])
        taken[a.cell[i]] = taken[a.cell[i]] + 1
    for i in range(a.cell.shape[0]):
        taken[a.cell[i]] = 0


@wp.kernel
def _sort_alone(
    first: int,
    a: Agents,
    taken: wp.array[int],
    known: wp.array[int],
    movers: wp.array[int],
    by_cell: wp.array[int],
    tick: int,
    c: CrowdArrays,
):
    count = int(-1)
    if known[0] == 1:
        count = _noted(a, c, taken.shape[0], movers)
    if count >= 0:
        _merged(a, count, movers, by_cell, c)
    else:
        _recounted(a, taken, c)
        known[0] = 1
    c.clock[0] = c.clock[0] + tick


@wp.kernel
def _count(first: int, a: Agents, shards: int, tally: wp.array2d[int]):
    _counted(a, first + wp.tid(), shards, tally)


@wp.kernel
def _scan(first: int, shards: int, tick: int, tally: wp.array2d[int], c: CrowdArrays):
    _scanned(shards, tally, tick, c)


@wp.kernel
def _place(first: int, a: Agents, shards: int, tally: wp.array2d[int], c: CrowdArrays):
    _placed(a, first + wp.tid(), shards, tally, c)


@wp.kernel
def _number(first: int, a: Agents, keys: wp.array[int], order: wp.array[int]):
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
def _gather(first: int, a: Agents, order: wp.array[int], c: CrowdArrays):
    i = first + wp.tid()
    _carried(a, order[i], c, i)
