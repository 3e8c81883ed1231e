"""Output of unknown size: nothing is lost when it does not fit, and the order does not depend on threads."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.runtime import SOUND, CapacityError, collect, reserve_slots
from tangere.runtime import append_buffer as collecting_module

wp.set_module_options(SOUND)


@wp.kernel
def _repeat(
    first: int,
    shard: int,
    times: wp.array[wp.int32],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """Appends (i, 0) … (i, times[i] - 1)."""
    i = first + wp.tid()
    for k in range(times[i]):
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            out[slot] = wp.vec2i(i, k)


@wp.kernel
def _reserve(first: int, shard: int, amount: int, counts: wp.array[wp.int64], capacity: int, out: wp.array[wp.int32]):
    """Takes room for `amount` items at a time, as something that finds very many pairs does."""
    slot = reserve_slots(counts, shard, amount, capacity)
    if slot >= 0:
        out[slot] = first + wp.tid()


def _expected(times: np.ndarray) -> np.ndarray:
    return np.array([(i, k) for i, n in enumerate(times) for k in range(n)], dtype=np.int32).reshape(-1, 2)


def _collected(times: np.ndarray, device: str = "cpu", **options) -> np.ndarray:
    target = wp.get_device(device)
    found = collect(
        _repeat,
        len(times),
        [wp.array(times, dtype=wp.int32, device=target)],
        wp.vec2i,
        device=target,
        grain=16,
        **options,
    ).numpy()
    # On CUDA the order is not promised.
    return found if target.is_cpu else found[np.lexsort(found.T[::-1])]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("capacity", [None, 1, 3, 100_000])
def test_growing_loses_nothing_and_keeps_index_order(rng, device, threads, capacity):
    times = rng.integers(0, 9, 1500)
    assert np.array_equal(_collected(times, device, threads=threads, capacity=capacity), _expected(times))


def test_one_index_may_append_far_more_than_the_others(device):
    times = np.zeros(400, dtype=np.int64)
    times[[3, 399]] = 5000, 1
    assert np.array_equal(_collected(times, device, threads=2, capacity=1), _expected(times))


def test_the_capacity_that_was_needed_is_remembered(monkeypatch):
    sizes: list[int] = []
    empty = wp.empty
    monkeypatch.setattr(collecting_module.wp, "empty", lambda shape, **kw: sizes.append(shape) or empty(shape, **kw))
    times = np.full(2000, 20)
    _collected(times, threads=1, capacity=1)
    assert len(sizes) == 2, "one try that overflows, one that fits"
    sizes.clear()
    assert np.array_equal(_collected(times, threads=1), _expected(times))
    assert len(sizes) == 1


@pytest.mark.parametrize("times", [[], [0], [0] * 100])
def test_nothing_found_is_an_empty_array(device, times):
    assert _collected(np.array(times, dtype=np.int64), device, threads=2).shape == (0, 2)


def test_more_than_an_array_can_hold_is_an_error_not_a_truncation(monkeypatch):
    monkeypatch.setattr(collecting_module, "_LARGEST", 5000)
    monkeypatch.setattr(collecting_module, "_segment_capacity", {})
    with pytest.raises(CapacityError, match="8000 items"):
        _collected(np.full(400, 20), threads=1, capacity=1)


@pytest.mark.parametrize("indices", [3, 5])
def test_counting_beyond_32_bits_neither_wraps_nor_writes_astray(indices):
    with pytest.raises(CapacityError, match=f"{indices * 2**30} items"):
        collect(_reserve, indices, [2**30], wp.int32, device=wp.get_device("cpu"), threads=1)


def test_a_crowded_call_is_forgotten_step_by_step(monkeypatch):
    monkeypatch.setattr(collecting_module, "_segment_capacity", {})
    _collected(np.full(400, 500), threads=1)
    (crowded,) = collecting_module._segment_capacity.values()
    for _ in range(20):
        _collected(np.full(400, 1), threads=1)
    (quiet,) = collecting_module._segment_capacity.values()
    assert crowded >= 200_000
    assert quiet < 1000
