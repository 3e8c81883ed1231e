"""Ground as one closed-sided mesh: its surface, and a wall under each side of a cell beyond which there is none.

Cell by cell, in plain loops; nothing of it is code under test.
"""

from __future__ import annotations

import numpy as np

import tangere as tg


def solid_ground(field, depth: float) -> tg.Mesh:
    """The surface of a ground with its walls, which end at the height `depth` [m]."""
    rows, columns = field.shape
    (dx, dy), (x0, y0, z0) = field.spacing, field.origin
    heights = np.asarray(field.heights[: rows + 1, : columns + 1], np.float64)
    holes = np.zeros((rows, columns), bool) if field.holes is None else np.asarray(field.holes[:rows, :columns], bool)

    def corner(i: int, j: int) -> tuple[float, float, float]:
        return x0 + j * dx, y0 + i * dy, z0 + heights[i, j]

    def is_ground(i: int, j: int) -> bool:
        return 0 <= i < rows and 0 <= j < columns and not holes[i, j]

    triangles = []
    for i in range(rows):
        for j in range(columns):
            if not is_ground(i, j):
                continue
            v0, v1, v2, v3 = corner(i, j), corner(i, j + 1), corner(i + 1, j), corner(i + 1, j + 1)
            triangles += [(v0, v1, v2), (v3, v2, v1)]
            for beyond, a, b in (
                ((i - 1, j), v0, v1),
                ((i + 1, j), v3, v2),
                ((i, j - 1), v2, v0),
                ((i, j + 1), v1, v3),
            ):
                if not is_ground(*beyond):
                    foot_a, foot_b = (*a[:2], depth), (*b[:2], depth)
                    triangles += [(a, foot_a, b), (foot_b, b, foot_a)]
    points = np.array(triangles, np.float64).reshape(-1, 3)
    vertices, faces = np.unique(points, axis=0, return_inverse=True)
    return tg.Mesh(vertices, faces.reshape(-1, 3).astype(np.int32))


def points_below(field, points: np.ndarray, deeper: float = 0.0) -> np.ndarray:
    """(…,) whether points are in the ground, by more than so much below its surface [m]."""
    return points[..., 2] < field.height_at(points) - deeper  # no height, NaN, beside the ground
