"""Closest points against an independent oracle, degenerate shapes included."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.geometry.closest_points import (
    closest_on_segments,
    closest_on_triangle,
    segments_distance,
    triangle_distance,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.kernel
def _on_triangle(x: wp.array2d[wp.vec3d], weights: wp.array[wp.vec3d], distance: wp.array[wp.float64]):
    i = wp.tid()
    weights[i] = closest_on_triangle(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    distance[i] = triangle_distance(x[i, 0], x[i, 1], x[i, 2], x[i, 3])


@wp.kernel
def _on_segments(x: wp.array2d[wp.vec3d], parameters: wp.array[wp.vec2d], distance: wp.array[wp.float64]):
    i = wp.tid()
    parameters[i] = closest_on_segments(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    distance[i] = segments_distance(x[i, 0], x[i, 1], x[i, 2], x[i, 3])


def triangle(x, device):
    weights = wp.empty(len(x), dtype=wp.vec3d, device=device)
    distance = wp.empty(len(x), dtype=wp.float64, device=device)
    wp.launch(_on_triangle, len(x), [wp.array(x, dtype=wp.vec3d, device=device)], [weights, distance], device=device)
    return weights.numpy(), distance.numpy()


def segments(x, device):
    parameters = wp.empty(len(x), dtype=wp.vec2d, device=device)
    distance = wp.empty(len(x), dtype=wp.float64, device=device)
    wp.launch(_on_segments, len(x), [wp.array(x, dtype=wp.vec3d, device=device)], [parameters, distance], device=device)
    return parameters.numpy(), distance.numpy()


def shapes(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Four points each: ordinary, on a small grid (many exact ties and collapses), flat, thin or far away."""
    x = rng.normal(size=(count, 4, 3))
    if name == "grid":
        x = rng.integers(-1, 2, (count, 4, 3)).astype(float)
    if name == "coplanar":
        x[:, :, 2] = 0
    if name == "last three on a line":
        x[:, 3] = x[:, 1] + rng.uniform(-1, 2, (count, 1)) * (x[:, 2] - x[:, 1])
    if name == "last two equal":
        x[:, 3] = x[:, 2]
    if name == "last three equal":
        x[:, 2:] = x[:, 1:2]
    if name == "first two equal":
        x[:, 1] = x[:, 0]
    if name == "parallel":
        x[:, 3] = x[:, 2] + rng.uniform(-2, 2, (count, 1)) * (x[:, 1] - x[:, 0])
    if name == "nearly parallel":
        x[:, 3] = x[:, 2] + (x[:, 1] - x[:, 0]) + 1e-9 * rng.normal(size=(count, 3))
    if name == "needle":
        x[:, 3] = x[:, 2] + 1e-7 * rng.normal(size=(count, 3))
    if name == "far":
        x += 1e6
    return x


SHAPES = [
    "ordinary",
    "grid",
    "coplanar",
    "last three on a line",
    "last two equal",
    "last three equal",
    "first two equal",
    "parallel",
    "nearly parallel",
    "needle",
    "far",
]


def smallest_on_simplex(base: np.ndarray, directions: np.ndarray, facets: list) -> np.ndarray:
    """min |base + sum(c_k directions_k)| with c in a polytope: by the pseudo-inverse on it and on all of its facets.

    `facets` lists (offset, map): c = offset + map @ s for free s, together with the test that c is in the polytope.
    """
    best = np.full(len(base), np.inf)
    for offset, mapping, inside in facets:
        start = base + np.einsum("k,nkd->nd", offset, directions)
        span = np.einsum("ks,nkd->nds", mapping, directions)
        c = np.broadcast_to(offset, (len(base), len(offset)))
        if mapping.shape[1]:
            s = -np.einsum("nsd,nd->ns", np.linalg.pinv(span, rcond=1e-12), start)
            c = offset + s @ mapping.T
        value = np.linalg.norm(base + np.einsum("nk,nkd->nd", c, directions), axis=1)
        best = np.where(inside(c), np.minimum(best, value), best)
    return best


def in_triangle(c):
    return (c >= -1e-12).all(axis=1) & (c.sum(axis=1) <= 1 + 1e-12)


def in_square(c):
    return ((c >= -1e-12) & (c <= 1 + 1e-12)).all(axis=1)


def lines(corners, sides, inside):
    eye, none = np.eye(2), np.zeros((2, 0))
    return [
        (np.zeros(2), eye, inside),
        *((np.array(p, float), np.array([d], float).T, inside) for p, d in sides),
        *((np.array(p, float), none, inside) for p in corners),
    ]


TRIANGLE = lines([(0, 0), (1, 0), (0, 1)], [((0, 0), (1, 0)), ((0, 0), (0, 1)), ((1, 0), (-1, 1))], in_triangle)
SQUARE = lines(
    [(0, 0), (1, 0), (0, 1), (1, 1)],
    [((0, 0), (1, 0)), ((0, 1), (1, 0)), ((0, 0), (0, 1)), ((1, 0), (0, 1))],
    in_square,
)


@pytest.mark.parametrize("name", SHAPES)
def test_the_point_of_the_triangle_is_the_nearest_one(name, rng, effort, device):
    x = shapes(name, effort(2000), rng)
    weights, distance = triangle(x, device)
    p, a, b, c = x.transpose(1, 0, 2)
    expected = smallest_on_simplex(a - p, np.stack([b - a, c - a], axis=1), TRIANGLE)
    reached = np.linalg.norm(np.einsum("nk,nkd->nd", weights, x[:, 1:] - p[:, None]), axis=1)
    assert np.all(weights >= 0)
    assert weights.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    assert distance == pytest.approx(expected, abs=1e-11)
    assert reached == pytest.approx(distance, abs=1e-14)


@pytest.mark.parametrize("name", SHAPES)
def test_the_points_of_the_segments_are_the_nearest_ones(name, rng, effort, device):
    x = shapes(name, effort(2000), rng)
    parameters, distance = segments(x, device)
    a0, a1, b0, b1 = x.transpose(1, 0, 2)
    expected = smallest_on_simplex(a0 - b0, np.stack([a1 - a0, b0 - b1], axis=1), SQUARE)
    u, w = parameters.T[:, :, None]
    assert np.all((parameters >= 0) & (parameters <= 1))
    assert distance == pytest.approx(expected, abs=1e-11)
    assert np.linalg.norm((a0 - b0) + u * (a1 - a0) - w * (b1 - b0), axis=1) == pytest.approx(distance, abs=1e-14)


def test_nothing_is_not_a_number_when_all_points_are_equal(device):
    x = np.ones((1, 4, 3))
    weights, distance = triangle(x, device)
    parameters, gap = segments(x, device)
    assert np.isfinite(weights).all()
    assert np.isfinite(parameters).all()
    assert distance[0] == gap[0] == 0.0
