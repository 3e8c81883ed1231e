"""Inputs on which rounding is at its worst: cancellation, mixed scales, far origins, and contacts in long numbers."""

from __future__ import annotations

import numpy as np

from oracles.families.planted_contacts import Queries, dyadic, passing, random_touch, rigid
from tangere.query.contacts import Kind

__all__ = ["around", "awkward_intervals", "awkward_points", "long_contacts"]


def awkward_points(n: int, rng: np.random.Generator) -> np.ndarray:
    """Queries (n, 8, 3) with cancellation, mixed scales and far origins; all at least 2^-100 in size."""
    points = rng.uniform(-1, 1, (n, 8, 3))
    block = np.arange(n) % 6
    signs = rng.choice([-1.0, 1.0], (n, 8, 3)) * (1 - 0.01 * rng.random((n, 8, 3)))
    points[block == 1] = signs[block == 1]  # all components of one size: the terms of the determinant add up
    flat = block == 2
    points[flat, :, 2] = points[flat, :, 0] - points[flat, :, 1] + 2.0**-48 * points[flat, :, 2]  # nearly coplanar
    points[block == 3] *= 2.0 ** rng.integers(-12, 13, (n, 1, 3))[block == 3]
    points[block == 4] *= 2.0 ** np.tile(rng.integers(-12, 13, (n, 4, 1)), (1, 2, 1))[block == 4]
    points[block == 5] += 10.0 ** rng.integers(3, 9, (n, 1, 1))[block == 5]
    return points


def awkward_intervals(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Left and right ends, from the whole step down to parts of 2^-44."""
    left = rng.uniform(0, 1, n)
    left[::5] = 0.0
    right = np.minimum(1.0, left + 2.0 ** -rng.integers(0, 45, n).astype(float))
    right[::7] = 1.0
    return left, right


def long_contacts(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Exact contacts in 48-bit coordinates: weights in halves, many on the boundary, times in quarters."""
    if kind == Kind.VERTEX_FACE:
        weights = rng.choice([(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0), (0.5, 0, 0.5), (0, 0.5, 0.5)], n)
    else:
        weights = rng.integers(0, 3, (n, 2)) / 2.0
    touch = random_touch(kind, n, rng, weights, lambda shape: dyadic(shape, rng, bits=46))
    velocity = dyadic((n, 4, 3), rng, bits=46)
    velocity = np.where(rng.random((n, 1, 1)) < 0.3, rigid(kind, velocity), velocity)
    time = rng.integers(0, 5, n) / 4.0
    return Queries(passing(touch, velocity, time), time)


def around(time: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of every length that contain the times."""
    below, above = 2.0 ** -rng.integers(0, 45, (2, len(time))).astype(float) * rng.random((2, len(time)))
    return np.maximum(0.0, time - below), np.minimum(1.0, time + above)
