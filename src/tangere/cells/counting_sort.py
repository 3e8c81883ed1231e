"""Entities grouped by cell: a counting sort whose result does not depend on the number of threads.

Question: who is in each cell?
Method:   each shard counts its own contiguous range, one scan turns the counts into places, each shard then writes its
          range (stable, no atomics). On CUDA a stable radix sort and a scan.
The grouped order is the registration: `present(c)` is a range, and `near(c)` the ranges of the ring of c.
Known as: counting sort; on CUDA radix sort. Registration of particles: Pitiot 2015, sections 5.1 and 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.index_checks import checked_indices
from tangere.runtime import SOUND, Arrays, device_of, launch, sort_pairs, thread_count

wp.set_module_options(SOUND)

#: Items worth a shard of their own: each shard also has a counter per cell to clear.
_SHARD = 65536


@dataclass(frozen=True)
class CellGroups:
    """Items by cell: those of cell c are `order[start[c]:start[c + 1]]`, in rising order."""

    start: wp.array  #: (cells + 1,) int32
    order: wp.array  #: (n,) int32

    def row(self, cell: int) -> np.ndarray:
        """The items of one cell."""
        return self.rows(np.array([cell]))

    def rows(self, cells: Arrays) -> np.ndarray:
        """The items of some cells, one cell after the other; only these are fetched from the device."""
        chosen = checked_indices(cells, "cells", len(self.start) - 1, "cells")
        if device_of(self.start).is_cpu:
            start, order = self.start.numpy(), self.order.numpy()
            found = [order[start[c] : start[c + 1]] for c in chosen]
        else:
            ends = [self.start[c : c + 2].numpy().tolist() for c in chosen.tolist()]
            # Warp does not take an empty part at the end of an array.
            found = [self.order[low:high].numpy() for low, high in ends if high > low]
        return np.concatenate([np.empty(0, np.int32), *found])


def group_by_cell(cells: wp.array, capacity: int) -> CellGroups:
    """Group items 0 … n-1 by cell.

    Args:
        cells: (n,) int32 cell of each item.
        capacity: cell numbers are below this.
    """
    count, device = len(cells), device_of(cells)
    if device.is_cpu and count:  # CUDA sorts whatever there is
        known = cells.numpy()
        if known.min() < 0 or known.max() >= capacity:
            checked_indices(known, "cells", capacity, "cells")
    start = wp.zeros(capacity + 1, dtype=wp.int32, device=device)
    if device.is_cuda:
        items = wp.empty(count, dtype=wp.int32, device=device)
        launch(_number, count, outputs=[items], device=device)
        keys, order = sort_pairs(cells, items)
        launch(_starts, capacity + 1, [keys], [start], device=device)
        return CellGroups(start, order)
    shards = max(1, min(thread_count(), count // _SHARD))
    order = wp.empty(count, dtype=wp.int32, device=device)
    tally = wp.zeros((shards, capacity), dtype=wp.int32, device=device)
    if shards == 1:
        launch(_group_in_one_shard, 1, [cells, tally], [start, order], device=device)
        return CellGroups(start, order)
    launch(_count, shards, [cells, shards], [tally], device=device, grain=1)
    launch(_scan, 1, [tally, shards], [start], device=device)
    launch(_fill, shards, [cells, shards, tally], [order], device=device, grain=1)
    return CellGroups(start, order)


@wp.func
def shard_begin(count: int, shard: int, shards: int) -> int:
    """The first of so many items that a shard has."""
    return int(wp.int64(count) * wp.int64(shard) / wp.int64(shards))


@wp.func
def count_shard(cells: wp.array[int], s: int, shards: int, tally: wp.array2d[int]):
    """Count the items of shard s by cell."""
    for i in range(shard_begin(cells.shape[0], s, shards), shard_begin(cells.shape[0], s + 1, shards)):
        tally[s, cells[i]] = tally[s, cells[i]] + 1


@wp.func
def scan_counts(tally: wp.array2d[int], shards: int, start: wp.array[int]):
    """Turn counts into the places where each shard begins to write, cell by cell."""
    total = int(0)
    for c in range(tally.shape[1]):
        start[c] = total
        for s in range(shards):
            here = int(tally[s, c])
            tally[s, c] = total
            total += here
    start[tally.shape[1]] = total


@wp.func
def _fill_shard(cells: wp.array[int], s: int, shards: int, tally: wp.array2d[int], order: wp.array[int]):
    for i in range(shard_begin(cells.shape[0], s, shards), shard_begin(cells.shape[0], s + 1, shards)):
        place = int(tally[s, cells[i]])
        order[place] = i
        tally[s, cells[i]] = place + 1


@wp.kernel
def _group_in_one_shard(
    first: int, cells: wp.array[int], tally: wp.array2d[int], start: wp.array[int], order: wp.array[int]
):
    count_shard(cells, 0, 1, tally)
    scan_counts(tally, 1, start)
    _fill_shard(cells, 0, 1, tally, order)


@wp.kernel
def _count(first: int, cells: wp.array[int], shards: int, tally: wp.array2d[int]):
    count_shard(cells, first + wp.tid(), shards, tally)


@wp.kernel
def _scan(first: int, tally: wp.array2d[int], shards: int, start: wp.array[int]):
    scan_counts(tally, shards, start)


@wp.kernel
def _fill(first: int, cells: wp.array[int], shards: int, tally: wp.array2d[int], order: wp.array[int]):
    _fill_shard(cells, first + wp.tid(), shards, tally, order)


@wp.func
def first_at_least(keys: wp.array[int], count: int, key: int) -> int:
    """The place of the first of `count` sorted keys that is not below `key`."""
    low = int(0)
    high = int(count)
    while low < high:
        middle = (low + high) / 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@wp.kernel
def _starts(first: int, keys: wp.array[int], start: wp.array[int]):
    c = first + wp.tid()
    start[c] = first_at_least(keys, keys.shape[0], c)


@wp.kernel
def _number(first: int, items: wp.array[int]):
    i = first + wp.tid()
    items[i] = i
