"""A crowd in space: agents spread over a sphere, each on its way to its antipode.

The scene: Pitiot 2015, section 9.1.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells import Density
from tangere.cells.generate import hex_grid
from tangere.crowd.simulation import Simulation
from tangere.runtime import whole


def swarm(
    points: int = 500,
    *,
    size: float = 64.0,
    cell: float = 16.0,
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    """Points evenly on a sphere in a cube of that side go to their antipodes through the middle."""
    points = whole(points, "points", 1)
    count = round(size / cell)
    options.setdefault("adaptive", Density(16, 6))
    simulation = Simulation(hex_grid(count, count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    out = coulomb_sphere(points, seed=seed) * (0.4375 * size)
    middle = size / 2
    simulation.add_points(middle + out, goals=middle - out, speed=random.uniform(1.0, 3.0, points))
    return simulation


def coulomb_sphere(count: int, *, iterations: int | None = None, seed: int = 0) -> np.ndarray:
    """(count, 3) unit vectors near the equilibrium of equal charges: random, then pushed apart.

    Args:
        iterations: all pairs are looked at in each; None: 60, fewer for more than a thousand, and above 2,000 none:
            then points lie along a spiral, which is as even.
    """
    count = whole(count, "count", 1)
    if iterations is None:
        if count > 2_000:
            return _spiral(count)
        iterations = min(60, 60_000_000 // count**2)
    iterations = whole(iterations, "iterations")
    x = np.random.default_rng(seed).normal(size=(count, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    spacing = np.sqrt(4 * np.pi / count)
    for turn in range(iterations if count > 1 else 0):
        force = np.empty_like(x)
        for first in range(0, count, 1024):
            part = slice(first, first + 1024)
            away = x[part, None] - x[None]
            square = (away**2).sum(axis=2)
            np.put_along_axis(square, np.arange(first, first + len(square))[:, None], np.inf, axis=1)
            force[part] = (away / np.maximum(square, 1e-12)[..., None] ** 1.5).sum(axis=1)
        force -= (force * x).sum(axis=1, keepdims=True) * x
        # Each step moves the most pushed one by a part of the spacing that falls from turn to turn.
        x += force * (0.3 * spacing * (1.0 - turn / iterations) / max(np.linalg.norm(force, axis=1).max(), 1e-300))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def _spiral(count: int) -> np.ndarray:
    """(count, 3) unit vectors along a spiral from pole to pole, a golden angle apart."""
    k = np.arange(count) + 0.5
    height, angle = 1.0 - 2.0 * k / count, np.pi * (3.0 - np.sqrt(5.0)) * k
    out = np.sqrt(1.0 - height**2)
    return np.stack([out * np.cos(angle), out * np.sin(angle), height], axis=1)
