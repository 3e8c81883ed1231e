"""Flat things: boxes, plates with a fine or coarse grid, open sheets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tangere.runtime import positives
from tangere.shape.generate.build.budget import factor_pair, solve
from tangere.shape.generate.build.lattice import band
from tangere.shape.mesh.mesh import Mesh


def box(size: Sequence[float] = (1.0, 1.0, 1.0), *, name: str = "box") -> Mesh:
    """A box of 12 triangles, centred at the origin; closed.

    Args:
        size: of its sides along x, y, z [m].
    """
    return _plate("box", 12, size, name)


def plate(triangles: int = 12, *, size: Sequence[float] = (1.0, 1.0, 0.1), name: str = "plate") -> Mesh:
    """A plate in the xy plane with a grid on both faces and one row of triangles round its rim; closed, centred.

    Args:
        triangles: exactly how many; 4 (n_x n_y + n_x + n_y) for a grid of n_x by n_y squares.
        size: along x, y and z [m].
    """
    return _plate("plate", triangles, size, name)


def _plate(shape: str, triangles: int, size: Sequence[float], name: str) -> Mesh:
    """The same; `shape` is what to call it in an error."""
    x, y, z = positives(size, f"{shape}: size", 3)
    # 4 ((n_x + 1)(n_y + 1) - 1): a grid is a factor pair of triangles / 4 + 1.
    columns, rows = solve(
        shape, triangles, lambda n: None if n % 4 else factor_pair(n // 4 + 1, aspect=x / y, least=(2, 2))
    )
    top = _grid(columns, rows, x, y, 0.5 * z)
    rim, count = _boundary(columns, rows), columns * rows
    rim_faces = band(len(rim) + 1, 2, wrap=False)
    loop = np.append(rim, rim[0])
    faces = band(columns, rows, wrap=False)
    return Mesh(
        np.concatenate([top, top * [1.0, 1.0, -1.0]]),
        np.concatenate([faces, faces[:, ::-1] + count, np.stack([loop + count, loop], axis=1).ravel()[rim_faces]]),
        name=name,
    )


def sheet(triangles: int = 2, *, size: Sequence[float] = (1.0, 1.0), name: str = "sheet") -> Mesh:
    """A rectangle in the xy plane, centred at the origin, normal along z; open.

    Args:
        triangles: exactly how many; 2 n_x n_y for a grid of n_x by n_y squares.
        size: along x and y [m].
    """
    x, y = positives(size, "sheet: size", 2)
    columns, rows = solve("sheet", triangles, lambda n: None if n % 2 else factor_pair(n // 2, aspect=x / y))
    return Mesh(_grid(columns + 1, rows + 1, x, y, 0.0), band(columns + 1, rows + 1, wrap=False), name=name)


def _grid(columns: int, rows: int, x: float, y: float, z: float) -> np.ndarray:
    """(columns rows, 3): vertex (i, j) has number i rows + j."""
    across, along = np.meshgrid(np.linspace(-0.5, 0.5, columns) * x, np.linspace(-0.5, 0.5, rows) * y, indexing="ij")
    return np.stack([across, along, np.full_like(across, z)], axis=-1).reshape(-1, 3)


def _boundary(columns: int, rows: int) -> np.ndarray:
    """Vertex numbers round the grid, counter-clockwise seen from above."""
    number = np.arange(columns * rows).reshape(columns, rows)
    return np.concatenate([number[:-1, 0], number[-1, :-1], number[:0:-1, -1], number[0, :0:-1]])
