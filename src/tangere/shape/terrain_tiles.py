"""Heightfields larger than memory: heights stay in files and are read where somebody looks.

The heights are one array in a file that is mapped into memory (`TiledHeightfield`), or a folder of square tiles that
share their border vertices (`TileFolder`, `write_tiles`). A folder holds terrain.json (what a
`Heightfield` knows beside its heights), tile_<row>_<column>.npy, holes_<row>_<column>.npy where a tile has holes, and
relief.npz: what can be known of all squares of the ground without reading it (`terrain_relief`).
Spec: specs/strashnov-cylinder-terrain 11.5.
"""

from __future__ import annotations

import json
import mmap
from functools import cached_property, lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError
from tangere.shape.heightfield import FLATNESS, LARGEST_HEIGHT, checked_origin, checked_spacing
from tangere.shape.relief_file import FILE, kept_relief
from tangere.shape.terrain_relief import Relief

__all__ = ["TileFolder", "TiledHeightfield", "write_tiles"]

#: Cells along a side of a tile's file: 2 MB of float32.
TILE_CELLS = 512
#: Files mapped at once.
OPEN_FILES = 1024
#: Rows of a mapped file that are looked at together.
ROWS_AT_ONCE = 256


class TiledHeightfield:
    """Ground like a `Heightfield`, with heights that are read from files in pieces; immutable.

    Args:
        heights: a two-dimensional `numpy.memmap` (`numpy.load(path, mmap_mode="r")`), a `TileFolder`, or an array.
        spacing, origin, holes, name: as for `Heightfield`; holes may be mapped or in tiles as well.
        lowest, highest: of all heights [m]; None means to look at all of them once.
        budget: memory that tiles may take on each device [bytes]; None means half of what is free on a CUDA device, and
            a quarter of the machine's on CPU. Tiles that nobody has looked at for longest make room.
    """

    def __init__(
        self,
        heights: Any,
        spacing: float | tuple[float, float] = 1.0,
        origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
        holes: Any = None,
        *,
        name: str = "terrain",
        lowest: float | None = None,
        highest: float | None = None,
        budget: int | None = None,
    ) -> None:
        if budget is not None and not (isinstance(budget, int) and budget > 0):
            raise InputError(f"TiledHeightfield {name!r}: budget must be a number of bytes, not {budget!r}")
        if not hasattr(heights, "shape") or not hasattr(heights, "dtype"):
            raise InputError(f"TiledHeightfield {name!r}: heights must be a mapped array, not {type(heights).__name__}")
        if len(heights.shape) != 2 or min(heights.shape) < 2:
            raise InputError(f"TiledHeightfield {name!r}: heights must be 2 by 2 at least, not {tuple(heights.shape)}")
        rows, columns = heights.shape[0] - 1, heights.shape[1] - 1
        if holes is not None and tuple(holes.shape) != (rows, columns):
            raise InputError(f"TiledHeightfield {name!r}: holes must have shape {(rows, columns)}, not {holes.shape}")
        if lowest is None or highest is None:
            lowest, highest = _extremes(heights, name)
        dx, dy = checked_spacing(spacing, name)
        x, y, z = checked_origin(origin, name)
        self.heights, self.holes, self.name = heights, holes, name
        self.spacing, self.origin = (dx, dy), (x, y, z)
        self.shape = (rows, columns)
        self.bounds = np.array([[x, y, z + lowest], [x + columns * dx, y + rows * dy, z + highest]])
        self.flatness = FLATNESS * max(dx, dy)
        self.budget = budget
        self.cache: dict[Any, Any] = {}  #: what upper rooms build from it

    @classmethod
    def open(cls, folder: str | PathLike[str], *, budget: int | None = None) -> TiledHeightfield:
        """The terrain in a folder that `write_tiles` has written; `budget` as above."""
        tiles = TileFolder(folder)
        relief, about = kept_relief(tiles), tiles.about
        land = cls(
            tiles,
            tuple(about["spacing"]),
            tuple(about["origin"]),
            tiles.holes(),
            name=tiles.folder.name,
            lowest=float(relief.heights[..., 0].min()),
            highest=float(relief.heights[..., 1].max()),
            budget=budget,
        )
        land.__dict__["relief"] = relief
        return land

    @cached_property
    def relief(self) -> Relief:
        """What is known of its squares without their heights."""
        return Relief.of(self.heights, self.holes, self.flatness, self.name)

    def __repr__(self) -> str:
        (rows, columns), (dx, dy) = self.shape, self.spacing
        return f"TiledHeightfield({self.name!r}, {rows} x {columns} cells of {dx:g} x {dy:g} m)"


class TileFolder:
    """A folder of tiles that reads like an array: `tiles[i, j]` with two slices, or index arrays that broadcast."""

    def __init__(self, folder: str | PathLike[str], prefix: str = "tile") -> None:
        self.folder, self.prefix = Path(fspath(folder)), prefix
        try:
            self.about = json.loads((self.folder / "terrain.json").read_text())
            self.side = int(self.about["tile"])
            rows, columns = (int(v) for v in self.about["shape"])
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{str(self.folder)!r} is not a folder of terrain tiles ({error})") from error
        self.shared = 1 if prefix == "tile" else 0  #: rows and columns that a tile has in common with the next
        self.shape = (rows + self.shared, columns + self.shared)
        self.counts = max(-(-rows // self.side), 1), max(-(-columns // self.side), 1)  #: rows and columns of tiles
        self.dtype = np.dtype(self.about["dtype"]) if self.shared else np.dtype(bool)
        self._open = lru_cache(OPEN_FILES)(self._mapped)

    def holes(self) -> TileFolder | None:
        """The folder's holes, None if it has none."""
        return TileFolder(self.folder, "holes") if self.about["holes"] else None

    def path(self, row: int, column: int) -> Path:
        """Where a tile is."""
        return self.folder / f"{self.prefix}_{row}_{column}.npy"

    def copied(self, row: int, column: int) -> np.ndarray:
        """A copy of a tile's heights or holes."""
        tile = self._open(row, column)
        return np.zeros(self._size(row, column), self.dtype) if tile is None else tile.copy()

    def _mapped(self, row: int, column: int) -> np.ndarray | None:
        path = self.path(row, column)
        if self.prefix == "holes" and not path.exists():
            return None
        try:
            tile = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"terrain {self.folder.name!r}: tile {path.name!r} cannot be read ({error})") from error
        if tile.shape != self._size(row, column):
            raise InputError(f"terrain {self.folder.name!r}: tile {path.name!r} has shape {tile.shape}")
        if hasattr(mmap, "MADV_WILLNEED"):  # who looks at a tile will soon look at more of it
            tile._mmap.madvise(mmap.MADV_WILLNEED)
        return np.asarray(tile)

    def _size(self, row: int, column: int) -> tuple[int, int]:
        """Of a tile; the last ones may be smaller."""
        side = self.side + self.shared
        return min(side, self.shape[0] - row * self.side), min(side, self.shape[1] - column * self.side)

    def __getitem__(self, index: tuple[Any, Any]) -> np.ndarray:
        if all(isinstance(part, slice) and part.step in (None, 1) for part in index):
            return self._window(*(range(*s.indices(n)) for s, n in zip(index, self.shape, strict=True)))
        i, j = np.broadcast_arrays(*index)
        out = np.zeros(i.shape, self.dtype)
        number = self._tile_of(i, 0) * self.counts[1] + self._tile_of(j, 1)
        for each in np.unique(number):
            row, column = divmod(int(each), self.counts[1])
            tile = self._open(row, column)
            if tile is not None:
                here = number == each
                out[here] = tile[i[here] - row * self.side, j[here] - column * self.side]
        return out

    def _tile_of(self, index: Any, axis: int) -> Any:
        """A vertex on a seam is in both tiles, which need not agree: the tile it begins has it, at the end the last."""
        return np.minimum(index // self.side, self.counts[axis] - 1)

    def _window(self, rows: range, columns: range) -> np.ndarray:
        out = np.zeros((len(rows), len(columns)), self.dtype)
        if out.size == 0:
            return out
        for row in range(self._tile_of(rows[0], 0), self._tile_of(rows[-1], 0) + 1):
            here_i, there_i = self._part(rows, row, 0)
            for column in range(self._tile_of(columns[0], 1), self._tile_of(columns[-1], 1) + 1):
                here_j, there_j = self._part(columns, column, 1)
                tile = self._open(row, column)
                if tile is not None:
                    out[here_i, here_j] = tile[there_i, there_j]
        return out

    def _part(self, wanted: range, tile: int, axis: int) -> tuple[slice, slice]:
        """What a tile has of a range of vertices: where that is in the range, and where in the tile."""
        first = tile * self.side
        end = first + self.side if tile + 1 < self.counts[axis] else self.shape[axis]
        low, high = max(wanted.start, first), min(wanted.stop, end)
        return slice(low - wanted.start, high - wanted.start), slice(low - first, high - first)


def write_tiles(
    folder: str | PathLike[str],
    heights: Any,
    spacing: float | tuple[float, float] = 1.0,
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
    holes: Any = None,
    *,
    shape: tuple[int, int] | None = None,
    tile: int = TILE_CELLS,
) -> TiledHeightfield:
    """Write a folder of tiles, one after the other, and open it.

    Args:
        folder: made if it is not there; tiles in it are replaced.
        heights: a two-dimensional array, or `heights(rows, columns)` that gives those of two slices [m].
        spacing, origin: as for `Heightfield`.
        holes: bool array or function of two slices of cells; None for none.
        shape: rows and columns of cells; needed for a function.
        tile: cells along a side of a tile.
    """
    folder = Path(fspath(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if shape is None:
        if callable(heights):
            raise InputError("write_tiles: heights given by a function need a shape")
        shape = (heights.shape[0] - 1, heights.shape[1] - 1)
    for old in [*folder.glob("tile_*.npy"), *folder.glob("holes_*.npy"), *folder.glob(FILE)]:
        old.unlink()
    block = heights if callable(heights) else lambda rows, columns: heights[rows, columns]
    hole_block = holes if callable(holes) or holes is None else lambda rows, columns: holes[rows, columns]
    dtype = np.dtype(np.float64)
    for i in range(-(-shape[0] // tile)):
        for j in range(-(-shape[1] // tile)):
            last = min((i + 1) * tile, shape[0]), min((j + 1) * tile, shape[1])
            part = np.asarray(block(slice(i * tile, last[0] + 1), slice(j * tile, last[1] + 1)))
            part = part if part.dtype == np.float32 else part.astype(np.float64)
            _extremes(part, folder.name)  # all finite
            dtype = part.dtype
            np.save(folder / f"tile_{i}_{j}.npy", part)
            if hole_block is not None:
                mask = np.asarray(hole_block(slice(i * tile, last[0]), slice(j * tile, last[1])), bool)
                if mask.any():
                    np.save(folder / f"holes_{i}_{j}.npy", mask)
    about = {
        "shape": list(shape),
        "tile": tile,
        "spacing": list(checked_spacing(spacing, folder.name)),
        "origin": list(checked_origin(origin, folder.name)),
        "dtype": dtype.name,
        "holes": holes is not None,
    }
    (folder / "terrain.json").write_text(json.dumps(about, indent=1))
    return TiledHeightfield.open(folder)


def _extremes(heights: Any, name: str) -> tuple[float, float]:
    """Lowest and highest, checked; a few rows at a time."""
    lowest, highest = np.inf, -np.inf
    columns = np.arange(heights.shape[1])
    for first in range(0, heights.shape[0], ROWS_AT_ONCE):
        rows = np.arange(first, min(first + ROWS_AT_ONCE, heights.shape[0]))
        if isinstance(heights, np.ndarray):
            part = heights[rows[0] : rows[-1] + 1]
        else:
            part = heights[rows[:, None], columns[None, :]]
        low, high = float(part.min()), float(part.max())
        if not (low >= -LARGEST_HEIGHT and high <= LARGEST_HEIGHT):  # NaN is not either
            raise InputError(f"Heightfield {name!r}: a height in rows {rows[0]} to {rows[-1]} is not finite")
        lowest, highest = min(lowest, low), max(highest, high)
    return lowest, highest
