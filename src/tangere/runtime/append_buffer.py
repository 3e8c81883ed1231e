"""Variable-size kernel output: append now, grow and run again when it did not fit.

An appending kernel is `kernel(first, shard, *inputs, counts, capacity, out)` and appends with

    slot = reserve_slots(counts, shard, 1, capacity)
    if slot >= 0:
        out[slot] = item

Each CPU shard has a segment of its own, so no two threads write to one place, and the segments put together are in
index order whatever the number of threads. On CUDA there is one segment and its order is not defined: sort it by a
key where order matters.
Known as: append buffers, stream compaction; grow and retry.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime.arrays import device_of
from tangere.runtime.errors import CapacityError
from tangere.runtime.prepared_launch import PreparedLaunch, run_phases
from tangere.runtime.shards import shard_ranges
from tangere.runtime.warp_setup import BLOCK, load

#: Counters of two shards never share a cache line.
COUNTER_STRIDE = wp.constant(8)

_LARGEST = 2**31 - 1
_START = 1024
_pinned = threading.local()
_segment_capacity: dict[tuple[wp.Kernel, str, int], int] = {}


def collect(
    kernel: wp.Kernel,
    dim: int,
    inputs: Sequence[Any],
    dtype: Any,
    *,
    device: wp.Device,
    grain: int = 256,
    threads: int | None = None,
    capacity: int | None = None,
) -> wp.array:
    """Everything the appending `kernel` appends over indices 0 … dim-1, as one array.

    Args:
        dtype: type of an appended item.
        grain: smallest number of indices worth a thread.
        capacity: items per shard to allow for at first; what the last call of this kernel needed, if that is more.
    """
    if dim <= 0:
        return wp.empty(0, dtype=dtype, device=device)
    load(kernel, device)
    ranges = [(0, dim)] if device.is_cuda else shard_ranges(dim, grain, threads)
    key = (kernel, device.alias, len(ranges))
    capacity = max(capacity or _START, _segment_capacity.get(key, 0))
    while True:
        counts = wp.zeros(len(ranges) * COUNTER_STRIDE, dtype=wp.int64, device=device)
        segments = wp.empty(len(ranges) * capacity, dtype=dtype, device=device)
        arguments = [*inputs, counts, capacity, segments]
        if device.is_cuda:
            wp.launch(kernel, dim, [0, 0, *arguments], device=device, record_tape=False, block_dim=BLOCK)
        else:
            run_phases([[PreparedLaunch(kernel, arguments, device, dim=dim, grain=grain)]], threads)
        filled = _read(counts)[::COUNTER_STRIDE]
        needed = int(filled.max())
        if needed <= capacity:
            # What is remembered halves from call to call unless it is needed: one crowded step is soon forgotten.
            _segment_capacity[key] = max(needed + needed // 8, _segment_capacity.get(key, 0) // 2)
            return _joined(segments, filled, capacity)
        capacity = needed + needed // 8
        if capacity * len(ranges) > _LARGEST:
            raise CapacityError(f"{kernel.key} found {int(filled.sum())} items, more than one array can hold")


def _read(counts: wp.array) -> np.ndarray:
    """The counters, from CUDA by way of pinned memory that is kept: half the time of making room anew."""
    if device_of(counts).is_cpu:
        return counts.numpy()
    if not hasattr(_pinned, "counts"):
        _pinned.counts = wp.empty(COUNTER_STRIDE, dtype=wp.int64, device="cpu", pinned=True)
    wp.copy(_pinned.counts, counts)
    wp.synchronize_stream(counts.device)
    return _pinned.counts.numpy()


def _joined(segments: wp.array, filled: np.ndarray, capacity: int) -> wp.array:
    if len(filled) == 1:
        return segments[: int(filled[0])]
    rows = segments.numpy()
    joined = np.empty((int(filled.sum()), *rows.shape[1:]), rows.dtype)  # np.concatenate would repack structs
    np.concatenate([rows[s * capacity : s * capacity + count] for s, count in enumerate(filled)], out=joined)
    return wp.array(joined, dtype=segments.dtype, device=segments.device, copy=False)


@wp.func
def reserve_slots(counts: wp.array[wp.int64], shard: int, amount: int, capacity: int) -> int:
    """The first of `amount` places in the shard's segment, or -1 if they no longer fit (they are counted all the same).

    Counted in 64 bits: what does not fit may be more than 2^31.
    """
    slot = wp.atomic_add(counts, shard * COUNTER_STRIDE, wp.int64(amount))
    if slot + wp.int64(amount) > wp.int64(capacity):
        return -1
    return shard * capacity + int(slot)


def indices_at_least(codes: wp.array, least: int) -> wp.array:
    """The indices i with codes[i] >= least (uint8), as int32; in rising order on CPU, in any order on CUDA."""
    if device_of(codes).is_cpu:
        found = np.flatnonzero(codes.numpy() >= least).astype(np.int32)
        return wp.array(found, dtype=wp.int32, device=codes.device, copy=False)
    return collect(_append_indices, len(codes), [codes, wp.uint8(least)], wp.int32, device=codes.device)


@wp.kernel(enable_backward=False)
def _append_indices(
    first: int,
    shard: int,
    codes: wp.array[wp.uint8],
    least: wp.uint8,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[int],
):
    i = first + wp.tid()
    if codes[i] >= least:
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            out[slot] = i
