"""Agents sorted by cell after each step, with all they carry: then the agents of a cell are a range.

Method:   a counting sort that moves the agents themselves. Each shard counts its own contiguous range, one scan turns
          counts into places, each shard moves its range (stable, no atomics). With one shard all of it is one kernel
          that does not pass all cells: an agent that went from cell a to cell b moves the starts of the cells between
          them by one. Only where that is more to do than passing the cells once, and at first, they are added up.
          On CUDA a radix sort of the cells, and a gather.
The order does not depend on the number of threads.
Spec: specs/pitiot-multiresolution-interactions 2.11, 5.3.
"""

from __future__ import annotations

from typing import Any

import warp as wp
import warp.utils

from tangere.cells.registration.groups import first_at_least
from tangere.crowd.arrays import Agents, Crowd
from tangere.crowd.repeating import Repeated
from tangere.runtime import SOUND, thread_count

__all__ = ["settling"]

wp.set_module_options(SOUND)

#: Agents worth a shard of their own: each shard also has a counter per cell to clear.
_SHARD = 8192


def settling(moved: Agents, crowd: Crowd, tick: int, device: wp.Device) -> list[Any]:
    """What to run, in this order, to put the agents `moved` into the crowd, by cell; `tick` goes on its clock."""
    count, cells = len(moved.cell), len(crowd.start) - 1
    if device.is_cuda:
        keys, order = (wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2))
        bits = max(1, cells.bit_length())
        return [
            Repeated(_number, count, [moved, keys, order], device),
            _Radix(keys, order, count, bits),
            Repeated(_starts, cells + 1, [keys, count, tick, crowd], device),
            Repeated(_gather, count, [moved, order, crowd], device),
        ]
    shards = max(1, min(thread_count(), count // _SHARD))
    if shards == 1:
        taken, known = wp.zeros(cells, dtype=wp.int32, device=device), wp.zeros(1, dtype=wp.int32, device=device)
        was = wp.empty(count, dtype=wp.int32, device=device)
        return [Repeated(_sort_alone, 1, [moved, taken, was, known, tick, crowd], device)]
    tally = wp.empty((shards, cells), dtype=wp.int32, device=device)
    return [
        Repeated(_count, shards, [moved, shards, tally], device, grain=1),
        Repeated(_scan, 1, [shards, tick, tally, crowd], device),
        Repeated(_place, shards, [moved, shards, tally, crowd], device, grain=1),
    ]


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
def _carried(a: Agents, i: int, c: Crowd, place: int):
    c.position[place] = a.position[i]
    c.velocity[place] = a.velocity[i]
    c.dart[place] = int(a.dart[i])
    c.number[place] = int(a.number[i])


@wp.func
def _counted(a: Agents, shard: int, shards: int, tally: wp.array2d[int]):
    for cell in range(tally.shape[1]):
        tally[shard, cell] = 0
    for i in range(_begin(a.cell.shape[0], shard, shards), _begin(a.cell.shape[0], shard + 1, shards)):
        tally[shard, a.cell[i]] = tally[shard, a.cell[i]] + 1


@wp.func
def _scanned(shards: int, tally: wp.array2d[int], tick: int, c: Crowd):
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
def _placed(a: Agents, shard: int, shards: int, tally: wp.array2d[int], c: Crowd):
    for i in range(_begin(a.cell.shape[0], shard, shards), _begin(a.cell.shape[0], shard + 1, shards)):
        place = int(tally[shard, a.cell[i]])
        tally[shard, a.cell[i]] = place + 1
        _carried(a, i, c, place)


@wp.func
def _way(a: Agents, was: wp.array[int], most: int) -> int:
    """How many starts all changes of cell move together, or more than `most`."""
    way = int(0)
    i = int(0)
    while i < a.cell.shape[0] and way <= most:
        way += wp.abs(a.cell[i] - was[i])
        i += 1
    return way


@wp.func
def _shifted(c: Crowd, a: int, b: int):
    """Move the starts of cells as one agent goes from cell a to cell b."""
    for cell in range(a + 1, b + 1):
        c.start[cell] = c.start[cell] - 1
    for cell in range(b + 1, a + 1):
        c.start[cell] = c.start[cell] + 1


@wp.kernel
def _sort_alone(
    first: int, a: Agents, taken: wp.array[int], was: wp.array[int], known: wp.array[int], tick: int, c: Crowd
):
    count = a.cell.shape[0]
    if known[0] == 1 and _way(a, was, taken.shape[0]) <= taken.shape[0]:
        for i in range(count):
            _shifted(c, was[i], a.cell[i])
    else:
        for i in range(count):
            taken[a.cell[i]] = taken[a.cell[i]] + 1
        total = int(0)
        for cell in range(taken.shape[0]):
            c.start[cell] = total
            total += taken[cell]
            taken[cell] = 0
        c.start[taken.shape[0]] = total
        known[0] = 1
    for i in range(count):
        place = c.start[a.cell[i]] + taken[a.cell[i]]
        taken[a.cell[i]] = taken[a.cell[i]] + 1
        was[place] = int(a.cell[i])
        _carried(a, i, c, place)
    for i in range(count):
        taken[a.cell[i]] = 0
    c.clock[0] = c.clock[0] + tick


@wp.kernel
def _count(first: int, a: Agents, shards: int, tally: wp.array2d[int]):
    _counted(a, first + wp.tid(), shards, tally)


@wp.kernel
def _scan(first: int, shards: int, tick: int, tally: wp.array2d[int], c: Crowd):
    _scanned(shards, tally, tick, c)


@wp.kernel
def _place(first: int, a: Agents, shards: int, tally: wp.array2d[int], c: Crowd):
    _placed(a, first + wp.tid(), shards, tally, c)


@wp.kernel
def _number(first: int, a: Agents, keys: wp.array[int], order: wp.array[int]):
    i = first + wp.tid()
    keys[i] = int(a.cell[i])
    order[i] = i


@wp.kernel
def _starts(first: int, keys: wp.array[int], count: int, tick: int, c: Crowd):
    cell = first + wp.tid()
    c.start[cell] = first_at_least(keys, count, cell)
    if cell == 0:
        c.clock[0] = c.clock[0] + tick


@wp.kernel
def _gather(first: int, a: Agents, order: wp.array[int], c: Crowd):
    i = first + wp.tid()
    _carried(a, order[i], c, i)
