"""The farthest point of a table along a direction, beside NumPy's products of all of them."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.geometry.simd.farthest_point import farthest_point, largest_along
from tangere.runtime import SOUND, launch


@wp.kernel(module="unique", module_options=SOUND)
def ask_farthest(
    first: int,
    points: wp.array[wp.vec3d],
    begin: int,
    count: int,
    directions: wp.array[wp.vec3d],
    rows: wp.array[int],
    values: wp.array[wp.float64],
):
    i = first + wp.tid()
    rows[i] = farthest_point(points, begin, count, directions[i])
    values[i] = largest_along(points, begin, count, directions[i])


def asked(points: np.ndarray, begin: int, count: int, directions: np.ndarray, device: str):
    rows = wp.zeros(len(directions), dtype=wp.int32, device=device)
    values = wp.zeros(len(directions), dtype=wp.float64, device=device)
    arrays = [wp.array(each, dtype=wp.vec3d, device=device) for each in (points, directions)]
    inputs = [arrays[0], begin, count, arrays[1], rows, values]
    launch(ask_farthest, len(directions), inputs, device=wp.get_device(device))
    return rows.numpy(), values.numpy()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 32, 33, 100])
@pytest.mark.parametrize("begin", [0, 5])
def test_no_point_is_farther_than_the_one_that_is_told(count, begin, rng, effort, device):
    points = rng.normal(size=(begin + count + 3, 3)) * 10.0 ** rng.uniform(-6, 6)
    points[:begin] *= 100.0  # those before and after are others'
    points[begin + count :] *= 100.0
    directions = np.concatenate([rng.normal(size=(effort(500, 50), 3)), np.eye(3), -np.eye(3), np.zeros((1, 3))])
    x, y, z = points[begin : begin + count].T
    products = (directions[:, :1] * x + directions[:, 1:2] * y) + directions[:, 2:] * z  # rounded in this order
    rows, values = asked(points, begin, count, directions, device)
    assert ((rows >= begin) & (rows < begin + count)).all()
    assert (values == products.max(axis=1)).all()
    assert (products[np.arange(len(rows)), rows - begin] == values).all()


def test_of_points_that_tie_one_is_told(device):
    grid = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    points = np.concatenate([grid, grid, grid[:3]])
    rows, values = asked(points, 0, len(points), np.eye(3), device)
    assert (values == 1.0).all()
    assert (points[rows, [0, 1, 2]] == 1.0).all()
