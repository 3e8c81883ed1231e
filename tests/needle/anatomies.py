"""Vessels and membranes for tests: random lines and wavy sheets inside a cube."""

from __future__ import annotations

import numpy as np

from tangere.needle import Vessel
from tangere.shape.mesh import Mesh


def vessels(rng: np.random.Generator, count: int, size: float = 1.0, radius: float = 1e-3) -> list[Vessel]:
    """Lines of twelve segments that wander through a cube."""
    lines = []
    for _ in range(count):
        points, direction = [rng.uniform(0.15, 0.85, 3)], rng.normal(size=3)
        for _ in range(12):
            direction = direction / np.linalg.norm(direction) + 0.3 * rng.normal(size=3)
            points.append(np.clip(points[-1] + 0.025 * direction / np.linalg.norm(direction), 0.02, 0.98))
        lines.append(Vessel(size * np.array(points), radius=radius * rng.uniform(0.5, 2.0)))
    return lines


def membranes(rng: np.random.Generator, count: int, size: float = 1.0, cells: int = 6) -> list[Mesh]:
    """Wavy square sheets."""
    sheets = []
    for _ in range(count):
        middle, axes = rng.uniform(0.3, 0.7, 3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        line = np.linspace(-0.15, 0.15, cells + 1)
        u, v = np.meshgrid(line, line, indexing="ij")
        w = 0.02 * np.sin(20 * u) * np.cos(20 * v)
        points = middle + np.stack([u, v, w], axis=-1).reshape(-1, 3) @ axes
        corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
        faces = np.concatenate(
            [
                np.stack([corner, corner + cells + 1, corner + cells + 2], axis=1),
                np.stack([corner, corner + cells + 2, corner + 1], axis=1),
            ]
        )
        sheets.append(Mesh(size * points, faces))
    return sheets
