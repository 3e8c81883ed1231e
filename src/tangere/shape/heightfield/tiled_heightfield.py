"""Heightfields larger than memory: heights stay in files and are read where they are needed.

Question: what is ground like that does not fit into memory?
Method:   the heights are one array in a file that is mapped into memory, or a folder of square tiles (`tile_folder`).
          What can be known of its squares without their heights is kept beside it (`relief`), so that queries read the
          tiles near bodies only.
Known as: out-of-core terrain, tiled raster. Strashnov and Torgashev 2020 have terrain in memory only.
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from tangere.runtime import InputError
from tangere.shape.heightfield.heightfield import FLATNESS, LARGEST_HEIGHT, checked_origin, checked_spacing
from tangere.shape.heightfield.relief import Relief
from tangere.shape.heightfield.relief_file import current_relief
from tangere.shape.heightfield.tile_edits import edit_tile_files
from tangere.shape.heightfield.tile_folder import TILE_CELLS, TileFolder, height_range, write_tile_files


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
        whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
        if budget is not None and not (whole and budget > 0):
            raise InputError(f"TiledHeightfield {name!r}: budget must be a number of bytes, not {budget!r}")
        if not hasattr(heights, "shape") or not hasattr(heights, "dtype"):
            raise InputError(f"TiledHeightfield {name!r}: heights must be a mapped array, not {type(heights).__name__}")
        if len(heights.shape) != 2 or min(heights.shape) < 2:
            raise InputError(f"TiledHeightfield {name!r}: heights must be 2 by 2 at least, not {tuple(heights.shape)}")
        if np.dtype(heights.dtype).kind not in "fiu":
            raise InputError(f"TiledHeightfield {name!r}: heights must be numbers, not {heights.dtype}")
        rows, columns = heights.shape[0] - 1, heights.shape[1] - 1
        if holes is not None:
            shape, dtype = tuple(getattr(holes, "shape", ())), getattr(holes, "dtype", type(holes).__name__)
            if shape != (rows, columns) or dtype != np.bool_:
                raise InputError(
                    f"TiledHeightfield {name!r}: holes must be bool of shape {(rows, columns)}, not {dtype} of {shape}"
                )
        if lowest is None or highest is None:
            lowest, highest = height_range(heights, name)
        elif not -LARGEST_HEIGHT <= lowest <= highest <= LARGEST_HEIGHT:
            raise InputError(f"TiledHeightfield {name!r}: heights cannot be from {lowest!r} to {highest!r}")
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
    def load(cls, folder: str | PathLike[str], *, budget: int | None = None) -> TiledHeightfield:
        """The terrain in a folder that `create` or `save` has written; `budget` as above."""
        tiles = TileFolder(folder)
        relief = current_relief(tiles)
        land = cls(
            tiles,
            tiles.spacing,
            tiles.origin,
            tiles.holes(),
            name=tiles.folder.name,
            lowest=float(relief.heights[..., 0].min()),
            highest=float(relief.heights[..., 1].max()),
            budget=budget,
        )
        land.__dict__["relief"] = relief
        return land

    @classmethod
    def create(
        cls,
        folder: str | PathLike[str],
        heights: Any,
        spacing: float | tuple[float, float] = 1.0,
        origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
        holes: Any = None,
        *,
        shape: tuple[int, int] | None = None,
        tile: int = TILE_CELLS,
        budget: int | None = None,
    ) -> TiledHeightfield:
        """Write a terrain into a folder of tiles, one tile after the other, and load it.

        Args:
            folder: made if it is not there; tiles in it are replaced, so heights and holes must not come from them.
            heights: a two-dimensional array, or `heights(rows, columns)` that gives those of two slices [m]; float32
                stays float32, anything else becomes float64.
            spacing, origin: as for `Heightfield`.
            holes: bool array or function of two slices of cells; None for none.
            shape: rows and columns of cells; needed for a function.
            tile: cells along a side of a tile.
            budget: as above.
        """
        write_tile_files(folder, heights, spacing, origin, holes, shape=shape, tile=tile)
        return cls.load(folder, budget=budget)

    def save(self, folder: str | PathLike[str], *, tile: int = TILE_CELLS) -> None:
        """Write the terrain into a folder of tiles, which must not be the one its heights are in.

        Args:
            folder: made if it is not there; tiles in it are replaced.
            tile: cells along a side of a tile.
        """
        write_tile_files(folder, self.heights, self.spacing, self.origin, self.holes, tile=tile)

    def edit(self, first: tuple[int, int], heights: Any = None, *, holes: Any = None) -> TiledHeightfield:
        """Write other heights, other holes or both into the tiles of a window, and load the terrain anew.

        This one is of no use afterwards: it may have read some of the old tiles. The heights must be in a folder of
        tiles; a mapped file is not changed.

        Args:
            first: row and column of the window's first vertex, which is also that of its first cell.
            heights: of r by c vertices, shape (r, c), relative to the origin [m]; None leaves them.
            holes: of the cells between them, shape (r - 1, c - 1) bool: True takes the ground away, False puts it
                (back) there; None leaves them.
        """
        if not isinstance(self.heights, TileFolder):
            kind = type(self.heights).__name__
            raise InputError(f"TiledHeightfield {self.name!r}: only folders of tiles can be edited, not a {kind}")
        edit_tile_files(self.heights.folder, first, heights, holes=holes)
        return type(self).load(self.heights.folder, budget=self.budget)

    @cached_property
    def relief(self) -> Relief:
        """What is known of its squares without their heights."""
        relief = Relief.of(self.heights, self.holes, self.flatness, self.name)
        lowest, highest = float(relief.heights[..., 0].min()), float(relief.heights[..., 1].max())
        if [self.origin[2] + lowest, self.origin[2] + highest] != self.bounds[:, 2].tolist():
            raise InputError(
                f"TiledHeightfield {self.name!r}: heights are from {lowest!r} to {highest!r}, not as given"
            )
        return relief

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"cache": {}}  # upper rooms build theirs again

    def __repr__(self) -> str:
        (rows, columns), (dx, dy) = self.shape, self.spacing
        return f"TiledHeightfield({self.name!r}, {rows} x {columns} cells of {dx:g} x {dy:g} m)"
