"""Keys that a kernel appends on CPU, put in rising order by all threads.

Every shard appends to a segment of its own, all of one length. Contacts are crowded in a few places, so the indices
of a shard are scattered: then all shards find about as many, and are done at about the same time. How long segments
have to be is remembered with the topologies and forgotten slowly, as contacts come and go within a few steps; when they
were too short the kernel runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout
from tangere.query.proximity.cpu.parallel_sort import KeySegments, ParallelSort, Ranges
from tangere.runtime import COUNTER_STRIDE, SOUND, CapacityError, PreparedLaunch, run_phases, shard_ranges

wp.set_module_options(SOUND)

#: Keys that a segment has room for at least.
LEAST = 256
#: So much of the room that was needed is kept from call to call when less is needed.
REMEMBERED = 0.97
#: Room for this many times the keys of the longest segment.
GROWTH = 1.125
#: So many keys are put in order by compiled code, fewer by NumPy, which takes less time to begin with.
MANY = 4096
_LARGEST = 2**31 - 1


def sorted_keys(kernel: wp.Kernel, dim: int, inputs: Sequence[Any], layout: Layout, *, grain: int) -> wp.array:
    """All keys that the appending `kernel` appends over indices 0 … dim-1, in rising order.

    Args:
        inputs: without the `KeySegments` that it appends to; what is an array (shards, n) has room for all shards.
        grain: smallest number of indices worth a thread.
    """
    shards, key, ranges = len(shard_ranges(dim, grain)), ("keys", kernel.key), Ranges.of(layout)
    capacity = max(layout.cache.get(key, 0) // shards, LEAST)
    while True:
        counters = wp.zeros(shards * COUNTER_STRIDE, dtype=wp.int64, device="cpu")
        segments = wp.empty(shards * capacity, dtype=wp.int64, device="cpu")
        found = ranges.segments(counters, capacity, segments)
        search = PreparedLaunch(kernel, [*inputs, found], wp.get_device("cpu"), dim=dim, grain=grain)
        run_phases([[search]])
        filled = counters.numpy()[::COUNTER_STRIDE]
        needed = int(filled.max(initial=0))
        enough = max(int(GROWTH * needed), int(REMEMBERED * capacity))
        if enough * shards > _LARGEST:
            raise CapacityError(f"{kernel.key} found {int(filled.sum())} contacts, more than one array can hold")
        layout.cache[key] = enough * shards
        if needed <= capacity:
            return _in_order(layout, found, filled)
        capacity = enough


def scattering(count: int, shards: int) -> int:
    """How far it is from one of `count` blocks to the next, so that all are visited and neighbours are far apart."""
    if shards == 1:
        return 1
    step = max(int(0.618 * count), 1)
    while gcd(step, count) > 1:
        step += 1
    return step


@wp.func
def scattered(i: int, step: int, count: int) -> int:
    """The block that index i takes."""
    return int((wp.int64(i) * wp.int64(step)) % wp.int64(count))


def _in_order(layout: Layout, found: KeySegments, filled: np.ndarray) -> wp.array:
    total = int(filled.sum())
    if len(filled) > 1 and total >= MANY:
        pair_keys, number = (wp.empty(n, dtype=wp.int64, device="cpu") for n in (total, 1))
        run_phases(ParallelSort(layout, pair_keys, number).phases(found, counted=False))
        return pair_keys
    rows = found.pair_keys.numpy().reshape(len(filled), found.capacity)
    some = np.concatenate([row[:count] for row, count in zip(rows, filled, strict=True)])
    some.sort()
    return wp.array(some, dtype=wp.int64, device="cpu", copy=False)
