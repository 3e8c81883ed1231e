"""Folders of square tiles of heights that share their border vertices, read and written.

A folder holds terrain.json (what a `Heightfield` knows beside its heights), tile_<row>_<column>.npy,
holes_<row>_<column>.npy where a tile has holes, and relief.npz: what can be known of all squares of the ground without
reading it (`relief`).
Known as: a tiled, memory-mapped raster; out-of-core terrain.
"""

from __future__ import annotations

import json
import mmap
from functools import lru_cache
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, described
from tangere.shape.heightfield.heightfield import LARGEST_HEIGHT, checked_origin, checked_spacing
from tangere.shape.heightfield.relief_file import FILE

#: What a `Heightfield` knows beside its heights.
ABOUT = "terrain.json"
#: Cells along a side of a tile's file: 2 MB of float32.
TILE_CELLS = 512
#: Files of a folder mapped at once: each holds a descriptor, of which a process often has 1024.
OPEN_FILES = 128
#: Rows of a mapped file that are looked at together.
ROWS_AT_ONCE = 256


class TileFolder:
    """A folder of tiles that reads like an array: `tiles[i, j]` with two slices.

    Files may be replaced, as `TiledHeightfield.edit` does it, but not be rewritten or cut in place while a process has
    them mapped: the system ends a process that reads where a file has ended.
    """

    def __init__(self, folder: str | PathLike[str], prefix: str = "tile") -> None:
        self.folder, self.prefix = Path(fspath(folder)), prefix
        try:
            self.about = json.loads((self.folder / ABOUT).read_text())
            self.side = _checked_side(self.about["tile"])
            rows, columns = _checked_shape(self.about["shape"])
            self.spacing = checked_spacing(self.about["spacing"], self.folder.name)  #: dx, dy [m]
            self.origin = checked_origin(self.about["origin"], self.folder.name)  #: [m]
            self.dtype = np.dtype({"float32": np.float32, "float64": np.float64}[self.about["dtype"]])
            self._has_holes = bool(self.about["holes"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{str(self.folder)!r} is not a folder of terrain tiles ({error})") from error
        self.shared = 1 if prefix == "tile" else 0  #: rows and columns that a tile has in common with the next
        self.shape = (rows + self.shared, columns + self.shared)
        self.counts = max(-(-rows // self.side), 1), max(-(-columns // self.side), 1)  #: rows and columns of tiles
        if not self.shared:
            self.dtype = np.dtype(bool)
        self._mapped = lru_cache(OPEN_FILES)(_mapped)  # of a function, so that files are closed when the folder goes

    def __reduce__(self) -> tuple[Any, ...]:
        return TileFolder, (self.folder, self.prefix)

    def holes(self) -> TileFolder | None:
        """The folder's holes, None if it has none."""
        return TileFolder(self.folder, "holes") if self._has_holes else None

    def path(self, row: int, column: int) -> Path:
        """Where a tile is."""
        return self.folder / f"{self.prefix}_{row}_{column}.npy"

    def copied(self, row: int, column: int) -> np.ndarray:
        """A copy of a tile's heights or holes."""
        tile = self._open(row, column)
        return np.zeros(self._size(row, column), self.dtype) if tile is None else tile.copy()

    def _open(self, row: int, column: int) -> np.ndarray | None:
        """A tile's file; None for holes that nobody has written."""
        path = self.path(row, column)
        if not self.shared and not path.exists():
            return None
        return self._mapped(path, self._size(row, column), self.dtype)

    def _size(self, row: int, column: int) -> tuple[int, int]:
        """Of a tile; the last ones may be smaller."""
        side = self.side + self.shared
        return min(side, self.shape[0] - row * self.side), min(side, self.shape[1] - column * self.side)

    def __getitem__(self, window: tuple[slice, slice]) -> np.ndarray:
        rows, columns = (range(*part.indices(n)) for part, n in zip(window, self.shape, strict=True))
        if rows.step != 1 or columns.step != 1:
            raise InputError(f"terrain {self.folder.name!r}: tiles give windows without steps, not {window}")
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

    def _tile_of(self, at: int, axis: int) -> int:
        """A vertex on a seam is in both tiles, which need not agree: the tile it begins has it, at the end the last."""
        return min(at // self.side, self.counts[axis] - 1)

    def _part(self, wanted: range, tile: int, axis: int) -> tuple[slice, slice]:
        """What a tile has of a range of vertices: where that is in the range, and where in the tile."""
        first = tile * self.side
        end = first + self.side if tile + 1 < self.counts[axis] else self.shape[axis]
        low, high = max(wanted.start, first), min(wanted.stop, end)
        return slice(low - wanted.start, high - wanted.start), slice(low - first, high - first)


def _mapped(path: Path, size: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    name = f"terrain {path.parent.name!r}: tile {path.name!r}"
    try:
        tile = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{name} cannot be read ({error})") from error
    if not isinstance(tile, np.memmap) or (tile.shape, tile.dtype) != (size, dtype):
        what = f"{tile.dtype} of {tile.shape}" if isinstance(tile, np.ndarray) else type(tile).__name__
        raise InputError(f"{name} must be {dtype} of shape {size}, not {what}")
    if hasattr(mmap, "MADV_WILLNEED"):  # who looks at a tile will soon look at more of it
        tile._mmap.madvise(mmap.MADV_WILLNEED)
    return np.asarray(tile)


def _checked_side(tile: Any) -> int:
    """Cells along a side of a tile."""
    try:
        side = index(tile)
    except TypeError as error:
        raise InputError(f"the side of a tile is a number of cells, not {described(tile)}") from error
    if side < 1:
        raise InputError(f"the side of a tile is a number of cells, not {side}")
    return side


def _checked_shape(shape: Any) -> tuple[int, int]:
    """Rows and columns of cells."""
    try:
        rows, columns = (index(v) for v in shape)
    except (TypeError, ValueError) as error:
        raise InputError(f"a terrain has a number of rows and one of columns, not {described(shape)}") from error
    if min(rows, columns) < 1:
        raise InputError(f"a terrain has one row and one column of cells at least, not {(rows, columns)}")
    return rows, columns


def write_tile_files(
    folder: str | PathLike[str],
    heights: Any,
    spacing: float | tuple[float, float] = 1.0,
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
    holes: Any = None,
    *,
    shape: tuple[int, int] | None = None,
    tile: int = TILE_CELLS,
) -> None:
    """Write a folder of tiles, one after the other.

    Args:
        folder: made if it is not there; tiles in it are replaced, so heights and holes must not come from them.
        heights: a two-dimensional array, or `heights(rows, columns)` that gives those of two slices [m]; float32 stays
            float32, anything else becomes float64.
        spacing, origin: as for `Heightfield`.
        holes: bool array or function of two slices of cells; None for none.
        shape: rows and columns of cells; needed for a function.
        tile: cells along a side of a tile.
    """
    folder, tile = Path(fspath(folder)), _checked_side(tile)
    spacing, origin = checked_spacing(spacing, folder.name), checked_origin(origin, folder.name)
    if callable(heights):
        if shape is None:
            raise InputError("terrain tiles: heights given by a function need a shape")
        block, shape = heights, _checked_shape(shape)
    else:
        cells = tuple(n - 1 for n in np.shape(heights))
        if len(cells) != 2 or (shape is not None and tuple(shape) != cells):
            raise InputError(f"terrain tiles: heights of shape {np.shape(heights)} are not those of {shape} cells")
        grid, shape = heights if hasattr(heights, "shape") else np.asarray(heights), _checked_shape(cells)
        block = lambda rows, columns: grid[rows, columns]  # noqa: E731
    if not callable(holes) and holes is not None and np.shape(holes) != shape:
        raise InputError(f"terrain tiles: holes must be bool of shape {shape}, not of {np.shape(holes)}")
    hole_block = holes if callable(holes) or holes is None else lambda rows, columns: holes[rows, columns]
    for source in (heights, holes):
        if isinstance(source, TileFolder) and source.folder.resolve() == folder.resolve():
            raise InputError(f"terrain tiles: the tiles in {str(folder)!r} cannot be written from themselves")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # terrain.json first: a folder that is half written is none
        for old in [folder / ABOUT, *folder.glob("tile_*.npy"), *folder.glob("holes_*.npy"), folder / FILE]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {str(folder)!r}: {error.strerror}") from error
    dtype = None
    for i in range(-(-shape[0] // tile)):
        for j in range(-(-shape[1] // tile)):
            last = min((i + 1) * tile, shape[0]), min((j + 1) * tile, shape[1])
            part = np.asarray(block(slice(i * tile, last[0] + 1), slice(j * tile, last[1] + 1)))
            size = last[0] + 1 - i * tile, last[1] + 1 - j * tile
            if part.shape != size or part.dtype.kind not in "fiu":
                raise InputError(f"terrain tiles: heights must be numbers of {size}, not {part.dtype} of {part.shape}")
            part = part if part.dtype == np.float32 else part.astype(np.float64)
            height_range(part, folder.name)  # all finite
            dtype = dtype or part.dtype
            if part.dtype != dtype:
                raise InputError(f"terrain tiles: heights are {dtype} at first, but {part.dtype} from ({i}, {j}) on")
            np.save(folder / f"tile_{i}_{j}.npy", part)
            if hole_block is not None:
                mask = np.asarray(hole_block(slice(i * tile, last[0]), slice(j * tile, last[1])))
                cells = last[0] - i * tile, last[1] - j * tile
                if mask.shape != cells or mask.dtype != np.bool_:
                    raise InputError(f"terrain tiles: holes must be bool of {cells}, not {mask.dtype} of {mask.shape}")
                if mask.any():
                    np.save(folder / f"holes_{i}_{j}.npy", mask)
    about = {
        "shape": list(shape),
        "tile": tile,
        "spacing": list(spacing),
        "origin": list(origin),
        "dtype": np.dtype(dtype).name,
        "holes": holes is not None,
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1))


def height_range(heights: Any, name: str) -> tuple[float, float]:
    """Lowest and highest, checked; a few rows at a time."""
    lowest, highest = np.inf, -np.inf
    for first in range(0, heights.shape[0], ROWS_AT_ONCE):
        end = min(first + ROWS_AT_ONCE, heights.shape[0])
        part = heights[first:end, : heights.shape[1]]
        low, high = float(part.min()), float(part.max())
        if not (low >= -LARGEST_HEIGHT and high <= LARGEST_HEIGHT):  # NaN is not either
            raise InputError(f"Heightfield {name!r}: a height in rows {first} to {end - 1} is not finite")
        lowest, highest = min(lowest, low), max(highest, high)
    return lowest, highest
