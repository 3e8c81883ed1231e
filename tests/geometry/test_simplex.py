"""The point of a simplex that is nearest to the origin, beside least squares on the hull of each set of corners."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import warp as wp

from tangere.geometry.simplex import nearest_of_points
from tangere.runtime import SOUND, launch


@wp.kernel(module="unique", module_options=SOUND)
def ask_nearest(
    first: int,
    count: int,
    corners: wp.array2d[wp.vec3d],
    weights: wp.array[wp.vec4d],
    points: wp.array[wp.vec3d],
    inside: wp.array[int],
):
    i = first + wp.tid()
    found = nearest_of_points(count, corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3], True)
    weights[i] = found.weights
    points[i] = found.point
    inside[i] = wp.where(found.inside, 1, 0)


def asked(corners: np.ndarray, count: int, device: str):
    number = len(corners)
    weights = wp.zeros(number, dtype=wp.vec4d, device=device)
    points = wp.zeros(number, dtype=wp.vec3d, device=device)
    inside = wp.zeros(number, dtype=wp.int32, device=device)
    inputs = [count, wp.array(corners, dtype=wp.vec3d, device=device), weights, points, inside]
    launch(ask_nearest, number, inputs, device=wp.get_device(device))
    return weights.numpy(), points.numpy(), inside.numpy()


def least_distance(corners: np.ndarray) -> float:
    """Over all sets of corners: where the foot of the origin on what they span has no negative weight."""
    best = np.inf
    for size in range(1, len(corners) + 1):
        for chosen in combinations(corners, size):
            first, rest = chosen[0], np.reshape(chosen[1:], (-1, 3)) - chosen[0]
            own = np.linalg.lstsq(rest.T, -first, rcond=None)[0] if size > 1 else np.zeros(0)
            if (own >= 0.0).all() and own.sum() <= 1.0:
                best = min(best, float(np.linalg.norm(first + own @ rest)))
    return best


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", ["wide", "flat", "needle", "far"])
def test_it_is_as_near_as_any_point_of_the_simplex(count, shape, rng, effort, device):
    number = effort(300, 40)
    corners = rng.normal(size=(number, 4, 3))
    if shape == "flat":
        corners[:, :, 2] *= 1e-9
    if shape == "needle":
        corners *= [1.0, 1e-6, 1e-9]
    if shape == "far":
        corners += 10.0 * rng.normal(size=(number, 1, 3))
    weights, points, inside = asked(corners, count, device)
    assert (weights >= 0.0).all()
    assert (weights[:, count:] == 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    told = np.einsum("nk,nki->ni", weights, corners)
    size = np.linalg.norm(corners, axis=2).max(axis=1)
    least = np.array([least_distance(each[:count]) for each in corners])
    assert (np.linalg.norm(told, axis=1) <= least + 1e-12 * size).all()
    assert (np.linalg.norm(told - points, axis=1)[inside == 0] <= 1e-12 * size[inside == 0]).all()
    assert (least[inside == 1] <= 1e-9 * size[inside == 1]).all()
