"""Sums over threads that run side by side: of whole warps, of parts of them, and of lanes of several bodies."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.runtime import launch
from tangere.soft.solver.cuda.sweep_end import WARP, all_lanes_have, sum_of_lanes, warp_width, whole_warps


@wp.kernel
def _sums(
    first: int,
    width: int,
    keys: wp.array[int],
    values: wp.array[wp.float64],
    sums: wp.array[wp.float64],
    same: wp.array[int],
):
    """The sum of its lanes, told by each; and whether all have one key."""
    i = first + wp.tid()
    value = wp.float64(0.0)
    key = int(-1)
    if i < values.shape[0]:
        value = values[i]
        key = keys[i]
    together = all_lanes_have(key)
    total = sum_of_lanes(value, wp.min(width, warp_width()))
    if i < values.shape[0]:
        sums[i] = total
        same[i] = int(together)


@pytest.mark.parametrize("width", [32, 8, 4, 1])
def test_every_lane_has_the_sum_of_its_lanes(device, width, rng):
    count = 1000
    values, keys = rng.standard_normal(count), np.arange(count, dtype=np.int32) // 100
    arrays = [wp.array(keys, dtype=wp.int32, device=device), wp.array(values, dtype=wp.float64, device=device)]
    sums, same = wp.zeros(count, dtype=wp.float64, device=device), wp.zeros(count, dtype=wp.int32, device=device)
    launch(_sums, whole_warps(count), [width, *arrays, sums, same], device=sums.device)
    on_gpu = sums.device.is_cuda
    lanes, warp = (width, WARP) if on_gpu else (1, 1)
    padded = np.concatenate([values, np.zeros(-count % WARP)])
    expected = np.repeat(padded.reshape(-1, lanes).sum(axis=1), lanes)[:count]
    assert np.allclose(sums.numpy(), expected, rtol=0.0, atol=1e-12)
    known = np.concatenate([keys, np.full(-count % WARP, -1)]).reshape(-1, warp)
    assert np.array_equal(same.numpy(), np.repeat((known == known[:, :1]).all(axis=1), warp)[:count])


def test_launches_are_of_whole_warps():
    assert [whole_warps(count) for count in (1, 31, 32, 33, 1000)] == [32, 32, 32, 64, 1024]
