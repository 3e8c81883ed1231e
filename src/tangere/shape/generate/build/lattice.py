"""Triangles on grids of vertices: wrapped both ways, wrapped one way, and revolved round the z axis.

All are outward oriented where the grid's first direction, its second and the outward normal are right-handed.
"""

from __future__ import annotations

import numpy as np

def ring_grid(first: int, second: int) -> np.ndarray:
    """(2 first second, 3): triangles of a torus; vertex (i, j) has number i second + j and both directions wrap."""
    i, j = np.meshgrid(np.arange(first), np.arange(second), indexing="ij")
    return _split(i, j, (i + 1) % first, (j + 1) % second, second)


def band(first: int, second: int, *, wrap: bool) -> np.ndarray:
    """Triangles of a tube, if the second direction wraps, or of a sheet; vertex (i, j) has number i second + j.

    A tube has 2 (first - 1) second of them, a sheet 2 (first - 1) (second - 1).
    """
    i, j = np.meshgrid(np.arange(first - 1), np.arange(second if wrap else second - 1), indexing="ij")
    return _split(i, j, i + 1, (j + 1) % second, second)


def revolve(
    rings: np.ndarray,
    around: int,
    *,
    first_pole: float | None = None,
    last_pole: float | None = None,
    phase: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a profile turned round the z axis, `around` points per ring.

    With k rings it has 2 around (k - 1) triangles, and `around` more for each pole; with both poles it is closed.

    Args:
        rings: radius and height of the profile's points, shape (k, 2) [m]; outside is to its right.
        around: points per ring.
        first_pole, last_pole: height on the axis of a point that closes the first or last ring [m].
        phase: angle of the first point of each ring [rad].
    """
    rings = np.asarray(rings, np.float64)
    angle = phase + 2.0 * np.pi * np.arange(around) / around
    radius, height = rings[:, :1], rings[:, 1:]
    vertices = [
        np.stack(np.broadcast_arrays(radius * np.cos(angle), radius * np.sin(angle), height), -1).reshape(-1, 3)
    ]
    faces = [band(len(rings), around, wrap=True)[:, ::-1]]
    number, here = len(rings) * around, np.arange(around)
    after = (here + 1) % around
    if first_pole is not None:
        vertices.append(np.array([[0.0, 0.0, first_pole]]))
        faces.append(np.stack([after, here, np.full(around, number)], axis=1))
        number += 1
    if last_pole is not None:
        last = (len(rings) - 1) * around
        vertices.append(np.array([[0.0, 0.0, last_pole]]))
        faces.append(np.stack([last + here, last + after, np.full(around, number)], axis=1))
    return np.concatenate(vertices), np.concatenate(faces)


def _split(i: np.ndarray, j: np.ndarray, i_next: np.ndarray, j_next: np.ndarray, second: int) -> np.ndarray:
    """Two triangles for each quad, cut along the diagonal from (i, j)."""
    a, b, c, d = ((x * second + y).ravel() for x, y in ((i, j), (i_next, j), (i_next, j_next), (i, j_next)))
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
