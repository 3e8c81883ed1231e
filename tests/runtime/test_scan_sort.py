"""Scan, sort and run lengths against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.runtime import offsets, sort_pairs

SIZES = [0, 1, 2, 1000, 100_003]


@pytest.mark.parametrize("size", SIZES)
def test_offsets_are_the_exclusive_sum(rng, device, size):
    counts = rng.integers(0, 5, size)
    starts, total = offsets(wp.array(counts, dtype=wp.int32, device=device))
    assert total == counts.sum()
    assert np.array_equal(starts.numpy(), np.cumsum(counts) - counts)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("key", [wp.int32, wp.int64, wp.float32])
@pytest.mark.parametrize("value", [wp.int32, wp.int64])
def test_sorting_is_stable_and_leaves_its_arguments_alone(rng, device, size, key, value):
    keys = rng.integers(-50, 50, size).astype(wp.dtype_to_numpy(key))
    given_keys = wp.array(keys, dtype=key, device=device)
    given_values = wp.array(np.arange(size), dtype=value, device=device)
    sorted_keys, sorted_values = sort_pairs(given_keys, given_values)
    order = np.argsort(keys, kind="stable")
    assert np.array_equal(sorted_keys.numpy(), keys[order])
    assert np.array_equal(sorted_values.numpy(), order)
    assert np.array_equal(given_keys.numpy(), keys)
    assert np.array_equal(given_values.numpy(), np.arange(size))


def test_sorting_by_the_lowest_bits_ignores_the_others(rng, device):
    keys = rng.integers(0, 2**30, 5000).astype(np.int32)
    _, order = sort_pairs(
        wp.array(keys, dtype=wp.int32, device=device), wp.array(np.arange(5000), dtype=wp.int32, device=device), bits=8
    )
    assert np.array_equal(order.numpy(), np.argsort(keys & 255, kind="stable"))
