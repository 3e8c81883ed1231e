"""Pages of tiles: heights cut out of a field, wherever that keeps them, and bounds and flags over them.

Method: tiles side by side are read from the field as one strip; many strips go to the device together, and there they
        are cut into pages. A page depends on its tile's heights and a border of one vertex alone.
Layout: `tangere.bound.terrain`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.cells import build_cells, cut_ground, cut_heights, merge_quarters
from tangere.bvh.height_pyramid.terrain import PAGE_HEIGHTS, PAGE_NODES, TILE, TOP
from tangere.runtime import launch

__all__ = ["PAGE_BYTES", "Pages", "TileRoots", "build_pages", "tile_counts"]

#: Size of a page: heights, bounds and flags.
PAGE_BYTES = 8 * PAGE_HEIGHTS + 9 * PAGE_NODES
#: Tiles that are read and computed together: 38 MB of heights.
TOGETHER = 4096


class Pages:
    """Heights, bounds and flags of resident tiles."""

    def __init__(self, heights: wp.array, bounds: wp.array, flags: wp.array) -> None:
        self.heights, self.bounds, self.flags = heights, bounds, flags

    @staticmethod
    def empty(count: int, device: wp.Device) -> Pages:
        return Pages(
            wp.empty(count * PAGE_HEIGHTS, dtype=wp.float64, device=device),
            wp.empty(count * PAGE_NODES, dtype=wp.vec2f, device=device),
            wp.empty(count * PAGE_NODES, dtype=wp.uint8, device=device),
        )

    def grown(self, count: int) -> Pages:
        """The same pages with room for `count`."""
        new = Pages.empty(count, self.device)
        for name in ("heights", "bounds", "flags"):
            old = getattr(self, name)
            wp.copy(getattr(new, name), old, count=len(old))
        return new

    def copy(self) -> Pages:
        return Pages(wp.clone(self.heights), wp.clone(self.bounds), wp.clone(self.flags))

    @property
    def device(self) -> wp.Device:
        device = self.heights.device
        assert device is not None
        return device


class TileRoots:
    """What the levels above the tiles are made of: one row for each tile."""

    def __init__(self, bounds: np.ndarray, flags: np.ndarray, corners: np.ndarray) -> None:
        self.bounds, self.flags, self.corners = bounds, flags, corners  #: (n, 2) float32, (n,) uint8, (n, 4) float64

    def replaced(self, tiles: np.ndarray, changed: TileRoots) -> TileRoots:
        new = TileRoots(self.bounds.copy(), self.flags.copy(), self.corners.copy())
        new.bounds[tiles], new.flags[tiles], new.corners[tiles] = changed.bounds, changed.flags, changed.corners
        return new


def tile_counts(shape: tuple[int, int]) -> tuple[int, int]:
    """Tiles along y and x of a field of rows and columns of cells: every vertex has an owner."""
    return shape[0] // TILE + 1, shape[1] // TILE + 1


def build_pages(field: Any, tiles: np.ndarray, pages: Pages, slots: np.ndarray, planar: float) -> TileRoots:
    """Compute the pages `slots` from the heights of `tiles` (rising numbers, row by row); returns their top nodes."""
    parts = []
    for start in range(0, len(tiles), TOGETHER):
        some = slice(start, start + TOGETHER)
        parts.append(_build(field, tiles[some], pages, slots[some], planar))
    return TileRoots(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("bounds", "flags", "corners")))


def _build(field: Any, tiles: np.ndarray, pages: Pages, slots: np.ndarray, planar: float) -> TileRoots:
    device, count = pages.device, len(tiles)
    where = wp.array(slots.astype(np.int32), dtype=wp.int32, device=device)
    ground = wp.empty(count * (TILE + 1) * (TILE + 1), dtype=wp.uint8, device=device)
    _cut(field, tiles, where, pages, ground)
    launch(
        build_cells,
        count * TILE * TILE,
        [pages.heights, ground, where, planar, field.flatness],
        [pages.bounds, pages.flags],
        device=device,
        grain=4096,
    )
    roots = [wp.empty(count, dtype=dtype, device=device) for dtype in (wp.vec2f, wp.uint8, wp.vec4d)]
    for level in range(1, TOP + 1):
        launch(
            merge_quarters,
            count << (2 * (TOP - level)),
            [pages.heights, where, level, planar],
            [pages.bounds, pages.flags, *roots],
            device=device,
            grain=4096,
        )
    return TileRoots(*(part.numpy().copy() for part in roots))


def _cut(field: Any, tiles: np.ndarray, where: wp.array, pages: Pages, ground: wp.array) -> None:
    """Heights to the pages `where`, and whether cells have ground, (TILE + 1)^2 of a tile."""
    device, (rows, columns) = pages.device, field.shape
    across = tile_counts(field.shape)[1]
    first = TILE * np.stack([tiles // across, tiles % across], axis=1).astype(np.int32)
    corners = wp.array(first, dtype=wp.vec2i, device=device)

    def read(source: Any, reach: int, last: tuple[int, int], dtype: Any) -> list[wp.array]:
        strips, cuts = _strips(source, first, reach, last, wp.dtype_to_numpy(dtype))
        on_device = wp.array(strips, dtype=dtype, device=device, copy=False)  # on CPU it is there already
        return [on_device, wp.array(cuts, dtype=wp.vec4i, device=device), corners]

    inputs = read(field.heights, TILE, (rows, columns), wp.float64)
    launch(cut_heights, len(tiles) * PAGE_HEIGHTS, [*inputs, where, rows, columns], [pages.heights], device=device)
    inputs = [wp.empty(0, dtype=wp.uint8, device=device), wp.empty(0, dtype=wp.vec4i, device=device), corners]
    if field.holes is not None:
        inputs = read(field.holes, TILE - 1, (rows - 1, columns - 1), wp.uint8)
    launch(cut_ground, len(ground), [*inputs, rows, columns], [ground], device=device)


def _strips(
    source: Any, first: np.ndarray, reach: int, last: tuple[int, int], dtype: Any
) -> tuple[np.ndarray, np.ndarray]:
    """All of a grid that tiles need, read strip by strip, and for each tile where it is (`cut_at`).

    Args:
        source: the grid: an array, or what takes slices like one.
        first: first row and column of each tile, (n, 2), tiles side by side after each other.
        reach: a tile needs rows and columns from one before its first to so many after it.
        last: last row and column of the grid.
    """
    begins = np.ones(len(first), bool)
    begins[1:] = (first[1:, 0] != first[:-1, 0]) | (first[1:, 1] != first[:-1, 1] + TILE)
    begin = np.flatnonzero(begins)
    end = np.append(begin[1:], len(first)) - 1
    low = np.maximum(first[begin] - 1, 0)
    high = np.minimum(first[end] + reach, last) + 1
    size = (high - low).astype(np.int64)
    at = np.cumsum(size[:, 0] * size[:, 1]) - size[:, 0] * size[:, 1]
    read = np.empty(int(at[-1] + size[-1, 0] * size[-1, 1]), dtype)
    for start, (height, width), (i, j) in zip(at.tolist(), size.tolist(), low.tolist(), strict=True):
        strip = read[start : start + height * width].reshape(height, width)
        strip[...] = source[i : i + height, j : j + width]
    strips = np.column_stack([at, size[:, 1], low]).astype(np.int32)
    return read, strips[np.cumsum(begins) - 1]
