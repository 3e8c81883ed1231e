"""Ways out of bodies in each other: supports along many directions, the best ones refined by chance."""

from __future__ import annotations

import numpy as np

from oracles.convex_distances import Rows, supports

__all__ = ["least_seen", "reaches"]


def reaches(a: Rows, b: Rows, n: np.ndarray) -> np.ndarray:
    """(rows, k) how far each a must go along each of its (rows, k, 3) directions to be beyond b."""
    rows = np.repeat(np.arange(len(n)), n.shape[1])
    flat = n.reshape(-1, 3)
    return (supports(a[rows], -flat) + supports(b[rows], flat)).reshape(n.shape[:2])


def least_seen(a: Rows, b: Rows, rng: np.random.Generator) -> np.ndarray:
    """(rows,) the least of many directions, also across the axes of both bodies, the best ones refined by chance."""
    rows, turns = len(a.poses), np.linspace(0.0, 2.0 * np.pi, 240, endpoint=False)
    circle = np.stack([np.cos(turns), np.sin(turns), np.zeros(len(turns))], axis=1)
    sets = [rng.normal(size=(rows, 400, 3))]
    for body in (a, b):
        sets += [circle @ np.swapaxes(body.poses[:, :3, :3], 1, 2)]
        sets += [sign * np.swapaxes(body.poses[:, :3, :3], 1, 2) for sign in (-1.0, 1.0)]
        slope = body.radius / np.hypot(body.radius, 2.0 * body.half[:, 2])  # of a cone's side
        sign = -1.0 if body is a else 1.0  # of b, what faces out of it pushes a
        side = np.sqrt(1.0 - slope**2)[:, None, None] * circle + slope[:, None, None] * np.array([0.0, 0.0, 1.0])
        sets += [sign * side @ np.swapaxes(body.poses[:, :3, :3], 1, 2)]
    n = np.concatenate(sets, axis=1)
    n /= np.linalg.norm(n, axis=2)[:, :, None]
    seen = reaches(a, b, n)
    best = np.argsort(seen, axis=1)[:, :12]
    n, seen = np.take_along_axis(n, best[:, :, None], axis=1), np.take_along_axis(seen, best, axis=1)
    step = 0.1
    while step > 1e-11:
        for _ in range(4):
            tried = n + step * rng.normal(size=n.shape)
            tried /= np.linalg.norm(tried, axis=2)[:, :, None]
            here = reaches(a, b, tried)
            n, seen = np.where((here < seen)[:, :, None], tried, n), np.minimum(here, seen)
        step *= 0.7
    return seen.min(axis=1)
