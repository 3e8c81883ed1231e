"""Procedural solids of tetrahedra: blocks, and tubes along closed curves (tori and knots) with exact surface counts.

A grid of cubes is bent into shape, each cut into six tetrahedra along one diagonal (Kuhn). The cross-section of a tube
is a square grid mapped to a disk; the diagonals are mirrored in each quadrant, because at the corners of the square any
other direction makes slivers. A tube of n segments and m by m cubes has 8 n m surface triangles: the tori of
Léonard 2021, section 4.1, are (40, 5), (80, 10), (160, 20), its knot is (165, 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from tangere.runtime import positive, whole
from tangere.shape.generate.build.sweep import sweep
from tangere.shape.tets.tet_mesh import TetMesh


def solid_torus(
    grid: tuple[int, int] = (24, 4), *, radius: float = 5.0, tube: float = 2.0, name: str = "torus"
) -> TetMesh:
    """A solid torus round the z axis with 6 n m^2 tetrahedra and 8 n m surface triangles.

    Args:
        grid: (n, m): segments round the axis, cubes across the tube.
        radius: from the axis to the middle of the tube [m].
        tube: radius of the tube [m].
    """
    positive(radius, "solid torus: radius")
    positive(tube, "solid torus: tube", below=radius)
    segments = whole(grid[0], "solid torus: grid[0]", least=3)
    angle = 2.0 * np.pi * np.arange(segments) / segments
    path = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros(segments)], axis=1)
    return _tube(path, tube, whole(grid[1], "solid torus: grid[1]", least=1), name)


def solid_knot(
    grid: tuple[int, int] = (80, 2), *, scale: float = 3.0, tube: float = 1.4, name: str = "knot"
) -> TetMesh:
    """A solid trefoil knot along scale (sin t + 2 sin 2t, cos t - 2 cos 2t, -sin 3t).

    Args:
        grid: (n, m): segments along the curve, cubes across the tube.
        scale: size of the curve [m].
        tube: radius of the tube [m]; strands touch at about 0.6 scale.
    """
    positive(scale, "solid knot: scale")
    positive(tube, "solid knot: tube", below=0.6 * scale)
    t = 2.0 * np.pi * np.arange(whole(grid[0], "solid knot: grid[0]", least=12)) / grid[0]
    curve = [np.sin(t) + 2.0 * np.sin(2.0 * t), np.cos(t) - 2.0 * np.cos(2.0 * t), -np.sin(3.0 * t)]
    return _tube(scale * np.stack(curve, axis=1), tube, whole(grid[1], "solid knot: grid[1]", least=1), name)


def solid_block(
    cells: Sequence[int] = (4, 4, 4),
    *,
    size: Sequence[float] = (1.0, 1.0, 1.0),
    mirrored: bool = False,
    name: str = "block",
) -> TetMesh:
    """A block centred at the origin, its sides along the axes.

    Args:
        cells: cubes along x, y and z, six tetrahedra each.
        size: along x, y and z [m].
        mirrored: every second cube along each axis is cut as the mirror image of the one before, so that the block
            gives way the same to both sides; with all diagonals alike it is pushed aside.
    """
    counts = [whole(cells[k], f"solid block: cells[{k}]", least=1) for k in range(3)]
    sides = [positive(size[k], f"solid block: size[{k}]") for k in range(3)]
    lines = [(np.arange(n + 1) / n - 0.5) * side for n, side in zip(counts, sides, strict=True)]
    vertices = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    corner = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    strides = np.array([(counts[1] + 1) * (counts[2] + 1), counts[2] + 1, 1])
    flipped = corner % 2 if mirrored else np.zeros_like(corner)
    return TetMesh(vertices, _six_tets(lambda step: (corner + abs(flipped - step)) @ strides), name=name)


def _tube(path: np.ndarray, radius: float, cells: int, name: str) -> TetMesh:
    segments, side = len(path), cells + 1
    rings = sweep(path, 1.0, 4, closed=True)[0].reshape(segments, 4, 3) - path[:, None]
    grid = np.linspace(-1.0, 1.0, side)
    u, w = np.meshgrid(grid, grid, indexing="ij")
    x, y = u * np.sqrt(1.0 - 0.5 * w * w), w * np.sqrt(1.0 - 0.5 * u * u)
    across = x[..., None] * rings[:, None, None, 0] + y[..., None] * rings[:, None, None, 1]
    vertices = (path[:, None, None] + radius * across).reshape(-1, 3)
    k, i, j = (a.ravel() for a in np.meshgrid(np.arange(segments), np.arange(cells), np.arange(cells), indexing="ij"))
    mirrored_i, mirrored_j = 2 * i < cells, 2 * j < cells

    def numbers(step: np.ndarray) -> np.ndarray:
        di = np.where(mirrored_i, 1 - step[1], step[1])
        dj = np.where(mirrored_j, 1 - step[2], step[2])
        return (k + step[0]) % segments * side**2 + (i + di) * side + j + dj

    return TetMesh(vertices, _six_tets(numbers), name=name)


def _six_tets(numbers) -> np.ndarray:
    """The six tetrahedra of each cube: the ways from one corner to the opposite one along the axes.

    Args:
        numbers: the vertex of every cube at a corner, given as (0 or 1) per axis.
    """
    tets = []
    for way in permutations(range(3)):
        corner = np.zeros(3, int)
        corners = [numbers(corner)]
        for axis in way:
            corner = corner + np.eye(3, dtype=int)[axis]
            corners.append(numbers(corner))
        tets.append(np.stack(corners, axis=1))
    return np.concatenate(tets)
