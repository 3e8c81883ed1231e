"""Heightfields: solid ground under a regular grid of heights.

Vertex (i, j) is at (x0 + j dx, y0 + i dy, z0 + heights[i, j]): row i runs along y, column j along x. Cell (i, j) has
the corners V0 = (i, j), V1 = (i, j+1), V2 = (i+1, j), V3 = (i+1, j+1) and is cut along the diagonal V1-V2 into the
triangles T0 = V0 V1 V2 and T1 = V3 V2 V1, both facing up. Ground is everything below the surface; a hole is a cell
without ground.
A `Heightfield` is immutable. `edit` gives one with other heights or holes in a window, and remembers the window, so
that what upper rooms keep in `cache` is brought up to date there only.
The grid and its diagonal are those of Strashnov and Torgashev 2020, section II.
Known as: a heightmap, a digital elevation model (DEM) as a triangulated regular grid.
"""

from __future__ import annotations

import math
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import Arrays, InputError, described, read_only, read_only_copy, to_numpy
from tangere.shape.heightfield.files import read_heights, write_heights
from tangere.shape.mesh.mesh import Mesh

#: What a cell is made of, as `Heightfield.elements` says it.
HOLE, RECTANGLE, TRIANGLES = 0, 1, 2
#: Heights that differ by less than this part of a cell are level, cells bent by less are planar.
FLATNESS = 1e-6
#: Bounds of heights are kept in float32.
LARGEST_HEIGHT = 1e37


class Edit:
    """Where a heightfield differs from an earlier one: vertex rows and columns `first` to `last`, both included."""

    def __init__(self, before: Heightfield, first: tuple[int, int], last: tuple[int, int]) -> None:
        self.before, self.first, self.last = before, first, last


class Heightfield:
    """Ground under a regular grid of heights; immutable.

    Args:
        heights: shape (rows + 1, columns + 1) [m]; float32 stays float32, anything else becomes float64.
        spacing: distance dx of columns and dy of rows [m].
        origin: where vertex (0, 0) is, and what is added to all heights [m].
        holes: (rows, columns) bool, True for cells without ground; None for none.
        name: what to call it in errors.
    """

    heights: np.ndarray  #: (rows + 1, columns + 1), relative to the origin [m]
    spacing: tuple[float, float]  #: dx, dy [m]
    origin: tuple[float, float, float]  #: [m]
    holes: np.ndarray | None  #: (rows, columns) bool
    name: str
    cache: dict[Any, Any]  #: what upper rooms build from it
    edited: Edit | None  #: how it came from an earlier one, until upper rooms have caught up

    def __init__(
        self,
        heights: Arrays,
        spacing: float | tuple[float, float] = 1.0,
        origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
        holes: Arrays | None = None,
        *,
        name: str = "terrain",
    ) -> None:
        grid = _checked_heights(heights, name)
        if min(grid.shape) < 2:
            raise InputError(f"Heightfield {name!r}: heights must be 2 by 2 at least, not {grid.shape}")
        mask = None if holes is None else _checked_holes(holes, (grid.shape[0] - 1, grid.shape[1] - 1), name)
        self._set(grid, checked_spacing(spacing, name), checked_origin(origin, name), mask, name, None)

    def _set(self, heights, spacing, origin, holes, name, edited) -> None:
        self.__dict__.update(
            heights=heights, spacing=spacing, origin=origin, holes=holes, name=name, edited=edited, cache={}
        )

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"Heightfield is immutable: use edit() instead of setting {key!r}")

    def __repr__(self) -> str:
        rows, columns = self.shape
        dx, dy = self.spacing
        return f"Heightfield({self.name!r}, {rows} x {columns} cells of {dx:g} x {dy:g} m)"

    def __reduce__(self):
        return Heightfield._unpickled, (self.heights, self.spacing, self.origin, self.holes, self.name)

    @staticmethod
    def _unpickled(heights, spacing, origin, holes, name) -> Heightfield:
        return Heightfield(read_only(heights), spacing, origin, holes, name=name)

    # -- in and out ---------------------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        spacing: float | tuple[float, float] | None = None,
        origin: tuple[float, float, float] | None = None,
        scale: float | None = None,
    ) -> Heightfield:
        """Read heights from .npy, .npz (as `save` writes it), a 16-bit .png or a GeoTIFF.

        Args:
            path: the file. A GeoTIFF (rasterio) brings spacing and origin, its first row is the northmost and becomes
                the last; nodata makes holes; one in degrees becomes metres east and north of its middle. A .png
                (pillow) has its first row at the top and it becomes the last; its text may say spacing, origin, scale
                and the height of a black pixel, as `save` writes them. A .npy says none of these.
            spacing: dx and dy [m]; None means the file's, or 1.
            origin: of vertex (0, 0), its z on top of the heights [m]; None means the file's, or 0.
            scale: metres per unit of the file, not 0 (negative for depths); None means the file's, or 1.
        """
        name = Path(fspath(path)).name
        read = read_heights(path)
        factor = read.scale if scale is None else _checked_scale(scale, name)
        heights = read.heights if factor == 1.0 else read.heights * float(factor)
        if read.offset != 0.0:
            heights = heights + read.offset
        return cls(
            heights,
            read.spacing if spacing is None else spacing,
            read.origin if origin is None else origin,
            read.holes,
            name=name,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write .npz (everything), .npy (the heights alone) or a 16-bit .png (65,536 steps between lowest and highest).

        A .npy keeps neither spacing nor origin: its heights are relative to an origin that `load` is to be told. A .png
        has them in its text, under "spacing" and "origin", with the size of a step under "scale" and the lowest height,
        relative to the origin, under "offset" [m]. Holes are kept by .npz alone; with holes, the others are refused.
        """
        write_heights(path, self.heights, self.spacing, self.origin, self.holes)

    # -- other heights ------------------------------------------------------------------------------------------------

    def edit(
        self, first: tuple[int, int], heights: Arrays | None = None, *, holes: Arrays | None = None
    ) -> Heightfield:
        """The same ground with other heights, other holes or both in a window: a ditch, a wheel track, a shaft.

        Args:
            first: row and column of the window's first vertex, which is also that of its first cell.
            heights: of r by c vertices, shape (r, c), relative to the origin [m]; None leaves them.
            holes: of the cells between them, shape (r - 1, c - 1) bool: True takes the ground away, False puts it
                (back) there; None leaves them.
        """
        patch = None if heights is None else _checked_heights(heights, self.name)
        cells = None if holes is None else to_numpy(holes, f"Heightfield {self.name!r}: holes", None)
        if patch is not None:
            last = (first[0] + patch.shape[0] - 1, first[1] + patch.shape[1] - 1)
        elif cells is not None and cells.ndim == 2:
            last = (first[0] + cells.shape[0], first[1] + cells.shape[1])
        else:
            raise InputError(f"Heightfield {self.name!r}: an edit needs heights (r, c), or holes (r - 1, c - 1)")
        if min(first) < 0 or last[0] >= self.heights.shape[0] or last[1] >= self.heights.shape[1]:
            raise InputError(
                f"Heightfield {self.name!r}: the window {tuple(first)} to {last} leaves heights of shape"
                f" {self.heights.shape}"
            )
        grid, mask = self.heights, self.holes
        if patch is not None:
            grid = self.heights.copy()
            grid[first[0] : last[0] + 1, first[1] : last[1] + 1] = patch
        if cells is not None:
            changed = np.zeros(self.shape, bool) if self.holes is None else self.holes.copy()
            window = (last[0] - first[0], last[1] - first[1])
            changed[first[0] : last[0], first[1] : last[1]] = _checked_cells(cells, window, self.name)
            mask = read_only(changed) if changed.any() else None
        before, low, high = self, tuple(first), last
        if not self.cache and self.edited is not None:  # nobody has looked at this one: skip it
            before = self.edited.before
            low = (min(low[0], self.edited.first[0]), min(low[1], self.edited.first[1]))
            high = (max(high[0], self.edited.last[0]), max(high[1], self.edited.last[1]))
        field = Heightfield.__new__(Heightfield)
        edited = Edit(before, low, high) if before.cache else None
        field._set(read_only(grid), self.spacing, self.origin, mask, self.name, edited)
        return field

    def caught_up(self) -> None:
        """Forget how it was edited: what was to be learnt from the earlier heightfield has been, and it can go."""
        self.__dict__["edited"] = None

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.heights.shape[0] - 1, self.heights.shape[1] - 1

    @property
    def flatness(self) -> float:
        """Heights that differ by less count as equal where cells and creases are classified [m]."""
        return FLATNESS * max(self.spacing)

    @cached_property
    def bounds(self) -> np.ndarray:
        """(2, 3): smallest and largest coordinates [m]."""
        (rows, columns), (dx, dy), origin = self.shape, self.spacing, np.array(self.origin)
        lower = origin + [0.0, 0.0, float(self.heights.min())]
        return read_only(np.stack([lower, origin + [columns * dx, rows * dy, float(self.heights.max())]]))

    @property
    def vertices(self) -> np.ndarray:
        """(rows + 1, columns + 1, 3) positions [m]."""
        return self.window_vertices(0, 0, *self.heights.shape)

    def window_vertices(self, row: int, column: int, rows: int, columns: int) -> np.ndarray:
        """(rows, columns, 3) positions of the vertices from (row, column) on [m]."""
        i, j = np.meshgrid(np.arange(row, row + rows), np.arange(column, column + columns), indexing="ij")
        z = np.asarray(self.heights[row : row + rows, column : column + columns], np.float64)
        return np.stack([j * self.spacing[0], i * self.spacing[1], z], axis=-1) + np.array(self.origin)

    def height_at(self, points: Arrays) -> np.ndarray:
        """Height of the ground under points, shape (…, 2) or (…, 3) [m], as an array (…); NaN where there is none."""
        points = to_numpy(points, f"Heightfield {self.name!r}: points")
        if points.ndim == 0 or points.shape[-1] not in (2, 3):
            raise InputError(f"Heightfield {self.name!r}: points must have shape (…, 2) or (…, 3), not {points.shape}")
        u = (points[..., 0] - self.origin[0]) / self.spacing[0]
        v = (points[..., 1] - self.origin[1]) / self.spacing[1]
        rows, columns = self.shape
        inside = (u >= 0.0) & (u <= columns) & (v >= 0.0) & (v <= rows)  # NaN is outside
        j = np.where(inside, np.minimum(np.where(inside, u, 0.0).astype(np.int64), columns - 1), 0)
        i = np.where(inside, np.minimum(np.where(inside, v, 0.0).astype(np.int64), rows - 1), 0)
        s, t = u - j, v - i
        h0, h1, h2, h3 = (self.heights[i + a, j + b].astype(np.float64) for a in (0, 1) for b in (0, 1))
        low = h0 + s * (h1 - h0) + t * (h2 - h0)
        high = h3 + (1.0 - s) * (h2 - h3) + (1.0 - t) * (h1 - h3)
        ground = inside if self.holes is None else inside & ~self.holes[i, j]
        return np.where(ground, self.origin[2] + np.where(s + t <= 1.0, low, high), np.nan)

    @cached_property
    def elements(self) -> np.ndarray:
        """Cells, (rows, columns) uint8, RECTANGLE where they are planar and level along x or y, TRIANGLES, or HOLE."""
        h = self.heights.astype(np.float64)
        h0, h1, h2, h3 = h[:-1, :-1], h[:-1, 1:], h[1:, :-1], h[1:, 1:]
        planar = np.abs(h0 + h3 - h1 - h2) <= self.flatness
        level = np.minimum(np.abs(h1 - h0), np.abs(h2 - h0)) <= self.flatness
        kind = np.where(planar & level, RECTANGLE, TRIANGLES).astype(np.uint8)
        if self.holes is not None:
            kind[self.holes] = HOLE
        return read_only(kind)

    def planes(self) -> tuple[np.ndarray, np.ndarray]:
        """Upward unit normals n (rows, columns, 2, 3) and offsets k (rows, columns, 2) of T0 and T1: n . p = k [m]."""
        v = self.vertices
        v0, v1, v2, v3 = v[:-1, :-1], v[:-1, 1:], v[1:, :-1], v[1:, 1:]
        crosses = np.stack([np.cross(v1 - v0, v2 - v0), np.cross(v2 - v3, v1 - v3)], axis=2)
        normals = crosses / np.linalg.norm(crosses, axis=-1, keepdims=True)
        return normals, np.einsum("ijkc,ijkc->ijk", normals, np.stack([v0, v3], axis=2))

    def to_mesh(self) -> Mesh:
        """The surface as an open triangle mesh: T0 of all cells with ground, then T1.

        Vertex (i, j) has number i (columns + 1) + j.
        """
        rows, columns = self.shape
        number = np.arange((rows + 1) * (columns + 1), dtype=np.int32).reshape(rows + 1, columns + 1)
        v0, v1, v2, v3 = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
        ground = np.ones(self.shape, bool) if self.holes is None else ~self.holes
        if not ground.any():
            raise InputError(f"Heightfield {self.name!r}: there are holes only, so there is no mesh")
        faces = np.concatenate([np.stack(t, axis=-1)[ground] for t in ((v0, v1, v2), (v3, v2, v1))])
        return Mesh(self.vertices.reshape(-1, 3), faces, name=self.name)


def checked_spacing(spacing: Any, name: str) -> tuple[float, float]:
    """dx and dy, positive and finite."""
    try:
        dx, dy = (float(v) for v in (spacing if isinstance(spacing, tuple | list | np.ndarray) else (spacing, spacing)))
    except (TypeError, ValueError) as error:
        told = f"spacing must be one or two lengths, not {described(spacing)}"
        raise InputError(f"Heightfield {name!r}: {told}") from error
    if not (0.0 < dx < math.inf and 0.0 < dy < math.inf):
        raise InputError(f"Heightfield {name!r}: spacing must be positive and finite, not {(dx, dy)}")
    return dx, dy


def checked_origin(origin: Any, name: str) -> tuple[float, float, float]:
    """x0, y0 and z0, finite."""
    try:
        x, y, z = (float(v) for v in origin)
    except (TypeError, ValueError) as error:
        raise InputError(f"Heightfield {name!r}: origin must be three coordinates, not {described(origin)}") from error
    if not all(map(math.isfinite, (x, y, z))):
        raise InputError(f"Heightfield {name!r}: origin must be finite, not {(x, y, z)}")
    return x, y, z


def _checked_scale(scale: Any, name: str) -> float:
    if not isinstance(scale, int | float | np.number) or not math.isfinite(scale) or scale == 0:
        raise InputError(f"Heightfield {name!r}: scale must be a finite number that is not 0, not {described(scale)}")
    return float(scale)


def _checked_heights(heights: Arrays, name: str) -> np.ndarray:
    grid = to_numpy(heights, f"Heightfield {name!r}: heights", None)
    if grid.ndim != 2 or grid.size == 0:
        raise InputError(f"Heightfield {name!r}: heights must have shape (rows, columns), not {grid.shape}")
    if not (np.issubdtype(grid.dtype, np.floating) or np.issubdtype(grid.dtype, np.integer)):
        raise InputError(f"Heightfield {name!r}: heights must be numbers, not {grid.dtype}")
    grid = grid if grid.dtype == np.float32 else grid.astype(np.float64, copy=False)
    fine = np.abs(grid) <= LARGEST_HEIGHT  # NaN is not
    if not fine.all():
        i, j = np.unravel_index(int(np.argmin(fine)), grid.shape)
        raise InputError(
            f"Heightfield {name!r}: height ({i}, {j}) is {grid[i, j]}; heights are finite, below {LARGEST_HEIGHT:g} m;"
            " cells without ground are told by holes"
        )
    return read_only_copy(grid, grid.dtype)


def _checked_holes(holes: Arrays, shape: tuple[int, int], name: str) -> np.ndarray | None:
    mask = _checked_cells(to_numpy(holes, f"Heightfield {name!r}: holes", None), shape, name)
    return read_only_copy(mask, np.bool_) if mask.any() else None


def _checked_cells(mask: np.ndarray, shape: tuple[int, int], name: str) -> np.ndarray:
    if mask.shape != shape or mask.dtype != np.bool_:
        raise InputError(f"Heightfield {name!r}: holes must be bool of shape {shape}, not {mask.dtype} of {mask.shape}")
    return mask
