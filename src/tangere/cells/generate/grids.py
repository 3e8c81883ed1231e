"""Maps to start from: grids of quadrilaterals, triangles and hexahedra, whole or jittered."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.runtime import fraction, positive, random_source, whole

#: The corners of a cube as VTK numbers them.
_CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])

Device = str | wp.Device | None

#: A cube cut into six tetrahedra around its main diagonal; corners as VTK numbers them.
_TETS = [[0, 1, 2, 6], [0, 2, 3, 6], [0, 3, 7, 6], [0, 7, 4, 6], [0, 4, 5, 6], [0, 5, 1, 6]]


def quad_grid(
    columns: int, rows: int, *, size: float = 1.0, jitter: float = 0.0, seed: int = 0, device: Device = None
) -> CellMap:
    """A rectangle of `columns` x `rows` squares of side `size` [m] from the origin.

    Args:
        jitter: inner vertices move by up to this part of `size` along each axis.
    """
    corners, squares = _grid("quad_grid", {"columns": columns, "rows": rows}, size, jitter, seed)
    return CellMap.from_polygons(corners, squares, device=device)


def triangle_grid(
    columns: int, rows: int, *, size: float = 1.0, jitter: float = 0.0, seed: int = 0, device: Device = None
) -> CellMap:
    """A rectangle of squares, each cut into two triangles; arguments as in `quad_grid`."""
    corners, squares = _grid("triangle_grid", {"columns": columns, "rows": rows}, size, jitter, seed)
    triangles = np.concatenate([squares[:, [0, 1, 2]], squares[:, [0, 2, 3]]], axis=1).reshape(-1, 3)
    return CellMap.from_polygons(corners, triangles, device=device)


def hex_grid(
    nx: int, ny: int, nz: int, *, size: float = 1.0, jitter: float = 0.0, seed: int = 0, device: Device = None
) -> CellMap:
    """A block of nx x ny x nz cubes of side `size` [m] from the origin; arguments as in `quad_grid`."""
    corners, cubes = _grid("hex_grid", {"nx": nx, "ny": ny, "nz": nz}, size, jitter, seed)
    return CellMap.from_polyhedra(corners, cubes, device=device)


def tet_grid(
    nx: int,
    ny: int,
    nz: int,
    *,
    size: float = 1.0,
    jitter: float = 0.0,
    seed: int = 0,
    mirrored: bool = False,
    device: Device = None,
) -> CellMap:
    """A block of cubes, each cut into six tetrahedra; arguments as in `quad_grid`.

    Args:
        mirrored: every second cube along each axis is cut as the mirror image of the one before, so that no direction
            is preferred.
    """
    corners, cubes = _grid("tet_grid", {"nx": nx, "ny": ny, "nz": nz}, size, jitter, seed)
    if not mirrored:
        return CellMap.from_polyhedra(corners, cubes[:, _TETS].reshape(-1, 4), device=device)
    flipped = np.stack(np.meshgrid(*[np.arange(n) % 2 for n in (nx, ny, nz)], indexing="ij"), -1).reshape(-1, 3)
    # Corner c of a mirrored cube is the one with the flipped coordinates exchanged.
    place = (_CORNERS[None] != flipped[:, None]).astype(int) @ [4, 2, 1]
    tets = np.take_along_axis(cubes, np.argsort(_CORNERS @ [4, 2, 1])[place], axis=1)[:, _TETS]
    turned = flipped.sum(axis=1) % 2 == 1
    tets[turned] = tets[turned][..., [0, 2, 1, 3]]
    return CellMap.from_polyhedra(corners, tets.reshape(-1, 4), device=device)


def _grid(kind: str, cells: dict[str, int], size: float, jitter: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners and cells (VTK order) of a grid of squares or cubes, so many along each axis."""
    counts = tuple(whole(count, f"{kind}: {name}", least=1) for name, count in cells.items())
    size, jitter = positive(size, f"{kind}: size"), fraction(jitter, f"{kind}: jitter")
    points = np.stack(np.meshgrid(*[np.arange(n + 1) for n in counts], indexing="ij"), -1).reshape(-1, len(counts))
    inner = ((points > 0) & (points < counts)).all(axis=1)
    moved = random_source(seed, f"{kind}: seed").uniform(-jitter, jitter, points.shape) * inner[:, None]
    strides = np.cumprod([1, *[n + 1 for n in counts[:0:-1]]])[::-1]
    low = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), -1).reshape(-1, len(counts)) @ strides
    square = [0, strides[0], strides[0] + strides[1], strides[1]]
    steps = square if len(counts) == 2 else [*square, *(np.array(square) + strides[2])]
    return (points + moved) * size, low[:, None] + np.array(steps)
