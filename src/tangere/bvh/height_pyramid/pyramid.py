"""The pyramid over a heightfield: bounds, planar and convex flags of squares of 1, 2, 4, … cells.

Question: where can ground be higher than this; where is it one plane; where are there ridges?
Method:   each tile's page is computed from its own heights and a border of one vertex, so a tile gives the same bits
          whether it is built with all others, after an edit, or when it is loaded from a file. A square is PLANAR if
          its four quarters are and their corners lie on its plane; each level may add a rounding error, no more.
          Levels above the tiles are put together on the host.
Layout:   `tangere.bound.terrain`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.pages import Pages, TileRoots, build_pages, tile_counts
from tangere.bvh.height_pyramid.terrain import GAP, PLANAR, TILE, TOP, Terrain
from tangere.runtime import choose_device
from tangere.shape.heightfield import Heightfield

__all__ = ["HeightPyramid", "planar_tolerance", "terrain_struct"]

#: Ground this near to a plane is planar: some roundings of the largest height, or of so many cells if that is more.
HEIGHT_ROUNDING = 4.0 * 2.0**-53
TALL = 1024.0


class HeightPyramid:
    """The pyramid of a heightfield in memory, on one device.

    `HeightPyramid.of(field, device).terrain` is what kernels take.
    """

    def __init__(self, field: Heightfield, device: wp.Device) -> None:
        tiles = np.arange(np.prod(tile_counts(field.shape)))
        pages = Pages.empty(len(tiles), device)
        self._finish(field, pages, build_pages(field, tiles, pages, np.arange(len(tiles)), planar_tolerance(field)))

    def _finish(self, field: Heightfield, pages: Pages, roots: TileRoots) -> None:
        counts = tile_counts(field.shape)
        table = wp.array(np.arange(counts[0] * counts[1], dtype=np.int32), dtype=wp.int32, device=pages.device)
        self.pages, self.roots = pages, roots
        self.terrain: Any = terrain_struct(field, pages, table, roots, planar_tolerance(field))
        #: The same as one row of an array, (1,): making it takes longer than many a query.
        self.row = wp.array([self.terrain], dtype=Terrain, device=pages.device)

    @staticmethod
    def of(field: Heightfield, device: str | wp.Device | None = None) -> HeightPyramid:
        """The pyramid of `field`, kept in `field.cache`; after an edit only the tiles it touched are computed."""
        device = choose_device(device)
        key = ("pyramid", device.alias)
        pyramid = field.cache.get(key)
        if pyramid is None:
            edit = field.edited
            before = None if edit is None else edit.before.cache.get(key)
            pyramid = HeightPyramid(field, device) if before is None else before._after(field)
            field.cache[key] = pyramid
            field.caught_up()
        return pyramid

    def _after(self, field: Heightfield) -> HeightPyramid:
        """The pyramid of a heightfield that differs from this one's in a window."""
        edit = field.edited
        assert edit is not None
        tiles = _tiles_of_window(edit.first, edit.last, tile_counts(field.shape))
        tolerance = planar_tolerance(field)
        if tolerance != self.terrain.planar:  # other heights than the highest decide what is planar
            return HeightPyramid(field, self.pages.device)
        pages = self.pages.copy()
        changed = build_pages(field, tiles, pages, tiles, tolerance)
        pyramid = HeightPyramid.__new__(HeightPyramid)
        pyramid._finish(field, pages, self.roots.replaced(tiles, changed))
        return pyramid


def planar_tolerance(field: Any) -> float:
    """How far ground may be from a plane to be planar [m]."""
    lowest, highest = field.bounds[:, 2] - field.origin[2]
    largest = 2.0 ** math.frexp(max(-lowest, highest))[1]  # a power of two, and not small: few edits change it
    return HEIGHT_ROUNDING * max(largest, TALL * max(field.spacing))


def terrain_struct(field: Any, pages: Pages, table: wp.array, roots: TileRoots, planar: float) -> Any:
    """What kernels take: the pages, where each tile's is, and the levels above the tiles."""
    bounds, flags, corners, offset = _upper_levels(roots, tile_counts(field.shape), planar)
    device = pages.device
    terrain: Any = Terrain()
    terrain.heights, terrain.bounds, terrain.flags, terrain.page = pages.heights, pages.bounds, pages.flags, table
    terrain.top_bounds = wp.array(bounds, dtype=wp.vec2f, device=device)
    terrain.top_flags = wp.array(flags, dtype=wp.uint8, device=device)
    terrain.top_corners = wp.array(corners, dtype=wp.vec4d, device=device)
    terrain.top_offset = wp.array(offset, dtype=wp.int32, device=device)
    terrain.rows, terrain.columns = field.shape
    terrain.tiles_x = tile_counts(field.shape)[1]
    terrain.root = TOP + len(offset) - 1
    terrain.dx, terrain.dy = field.spacing
    terrain.origin = wp.vec3d(*field.origin)
    terrain.planar, terrain.flatness = planar, field.flatness
    return terrain


def _tiles_of_window(first: tuple[int, int], last: tuple[int, int], counts: tuple[int, int]) -> np.ndarray:
    """The tiles whose page holds a vertex of a window."""
    low = [max(v - 1, 0) // TILE for v in first]  # a page has the first vertices of the next tile …
    high = [min((v + 1) // TILE, n - 1) for v, n in zip(last, counts, strict=True)]  # … and the last of the one before
    i, j = np.meshgrid(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1), indexing="ij")
    return (i * counts[1] + j).ravel()


def _upper_levels(roots: TileRoots, counts: tuple[int, int], planar: float):
    """Bounds, flags, corners and offsets of the levels from TOP to the one with a single node."""
    lo, hi = (roots.bounds[:, k].reshape(counts) for k in (0, 1))
    flags = roots.flags.reshape(counts)
    corners = roots.corners.reshape(*counts, 4)
    bounds_of, flags_of, corners_of, offset, used = [], [], [], [], 0
    while True:
        bounds_of.append(np.stack([lo, hi], axis=-1).reshape(-1, 2))
        flags_of.append(flags.ravel())
        corners_of.append(corners.reshape(-1, 4))
        offset.append(used)
        used += flags.size
        if flags.size == 1:
            levels = (np.concatenate(parts) for parts in (bounds_of, flags_of, corners_of))
            return *levels, np.array(offset, np.int32)
        lo, hi = np.minimum.reduce(_quarters(lo, np.inf)), np.maximum.reduce(_quarters(hi, -np.inf))
        four = _quarters(flags.astype(np.int32), GAP)
        c0, c1, c2, c3 = _quarters(corners, 0.0)
        corners = np.stack([c0[..., 0], c1[..., 1], c2[..., 2], c3[..., 3]], axis=-1)
        # The same arithmetic as `is_plane`: halves of the sides, and the middle, against the plane of V0, V1, V2.
        h0, h1, h2, h3 = (corners[..., k] for k in range(4))
        off = [h0 - h1 - h2 + h3, c0[..., 1] - 0.5 * (h0 + h1), c0[..., 2] - 0.5 * (h0 + h2)]
        off += [c0[..., 3] - 0.5 * (h1 + h2), c1[..., 3] - (h1 + 0.5 * (h2 - h0)), c2[..., 3] - (h2 + 0.5 * (h1 - h0))]
        plane = np.maximum.reduce([np.abs(d) for d in off]) <= planar
        together = np.bitwise_and.reduce(four) & PLANAR
        flags = ((np.bitwise_or.reduce(four) & ~PLANAR) | np.where(plane, together, 0)).astype(np.uint8)


def _quarters(grid: np.ndarray, fill: float) -> list[np.ndarray]:
    """The four quarters of each 2 x 2 block of a grid, V0 first, filled up to even sides."""
    rows, columns = grid.shape[:2]
    padding = [(0, rows % 2), (0, columns % 2)] + [(0, 0)] * (grid.ndim - 2)
    grid = np.pad(grid, padding, constant_values=fill)
    return [grid[a::2, b::2] for a in (0, 1) for b in (0, 1)]
