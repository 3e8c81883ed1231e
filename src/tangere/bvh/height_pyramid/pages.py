"""Pages of tiles: heights cut out of a field, wherever that keeps them, and bounds and flags over them.

Method: tiles side by side are read from the field as one strip; many strips go to the device together, and there they
        are cut into pages: heights, then cells from heights, then each level from the one below. A page depends on its
        tile's heights and a border of one vertex alone. Which edges and vertices a body can touch from above is decided
        here, by heights alone (cells and diagonals as in Strashnov and Torgashev 2020, section 2).
Layout and flags: `terrain`.
Known as: virtual texturing, tiled terrain; pages of a min-max mipmap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.terrain import (
    CONVEX_DIAGONAL,
    CONVEX_VERTEX,
    CONVEX_X,
    CONVEX_Y,
    GAP,
    PAGE_HEIGHTS,
    PAGE_NODES,
    PAGE_SIDE,
    PLANAR,
    TILE,
    TOP,
    level_offset,
    morton,
)
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Size of a page: heights, bounds and flags.
PAGE_BYTES = 8 * PAGE_HEIGHTS + 9 * PAGE_NODES
#: Tiles that are read and computed together: 38 MB of heights.
TOGETHER = 4096
#: Conversion to float32 and the subtraction here, 2^-24 each, and a little more; below the smallest normal it is none.
ROUND_OUT = wp.constant(wp.float32(1.3e-7))
ROUND_OUT_TINY = wp.constant(wp.float32(1.0e-37))
INFINITE = wp.constant(wp.float32(float("inf")))


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


def outward_of(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The same on the host, bit for bit: (n, 2) float32 of two arrays (n,) of float64."""
    a, b = low.astype(np.float32), high.astype(np.float32)
    out, tiny = np.float32(float(ROUND_OUT)), np.float32(float(ROUND_OUT_TINY))
    with np.errstate(invalid="ignore"):  # no ground is from inf to -inf
        wide = np.stack([a - np.abs(a) * out - tiny, b + np.abs(b) * out + tiny], axis=1)
    return np.where((low > high)[:, None], np.array([np.inf, -np.inf], np.float32), wide)


@wp.kernel
def cut_heights(
    first: int,
    read: wp.array[wp.float64],
    cuts: wp.array[wp.vec4i],
    corners: wp.array[wp.vec2i],
    slots: wp.array[int],
    rows: int,
    columns: int,
    heights: wp.array[wp.float64],
):
    """Heights of pages: what is beyond the border is as high as the border."""
    k = first + wp.tid()
    tile = k // PAGE_HEIGHTS
    within = k % PAGE_HEIGHTS
    i = wp.clamp(corners[tile][0] + within // PAGE_SIDE - 1, 0, rows)
    j = wp.clamp(corners[tile][1] + within % PAGE_SIDE - 1, 0, columns)
    heights[slots[tile] * PAGE_HEIGHTS + within] = read[cut_at(cuts[tile], i, j)]


@wp.kernel
def cut_ground(
    first: int,
    holes: wp.array[wp.uint8],
    cuts: wp.array[wp.vec4i],
    corners: wp.array[wp.vec2i],
    rows: int,
    columns: int,
    ground: wp.array[wp.uint8],
):
    """Whether cells have ground, TILE + 1 by TILE + 1 of a tile, from one before its first on; no holes if empty."""
    k = first + wp.tid()
    side = TILE + 1
    tile = k // (side * side)
    within = k % (side * side)
    i = corners[tile][0] + within // side - 1
    j = corners[tile][1] + within % side - 1
    solid = i >= 0 and i < rows and j >= 0 and j < columns
    if solid and holes.shape[0] > 0:
        solid = holes[cut_at(cuts[tile], i, j)] == wp.uint8(0)
    value = wp.uint8(0)
    if solid:
        value = wp.uint8(1)
    ground[k] = value


@wp.func
def cut_at(cut: wp.vec4i, i: int, j: int) -> int:
    """Where (i, j) is in a strip of a grid that begins at cut[0], is cut[1] wide, and has (cut[2], cut[3]) first."""
    return cut[0] + (i - cut[2]) * cut[1] + (j - cut[3])


@wp.func
def is_ridge(ground_a: wp.uint8, ground_b: wp.uint8, bend: wp.float64, flatness: wp.float64) -> bool:
    """Whether a body can touch an edge from above: ground on one side only, or bent; `bend` is what its ends have
    together over the opposite vertices."""
    if ground_a != ground_b:
        return True
    return ground_a != wp.uint8(0) and bend > flatness


@wp.func
def ridge_x(h: wp.array[wp.float64], v: int, ground: wp.array[wp.uint8], c: int, flatness: wp.float64) -> bool:
    """Edge from vertex v along x, between the cells below and c."""
    bend = h[v] + h[v + 1] - h[v + PAGE_SIDE] - h[v - PAGE_SIDE + 1]
    return is_ridge(ground[c], ground[c - (TILE + 1)], bend, flatness)


@wp.func
def ridge_y(h: wp.array[wp.float64], v: int, ground: wp.array[wp.uint8], c: int, flatness: wp.float64) -> bool:
    """Edge from vertex v along y, between the cells to the left and c."""
    bend = h[v] + h[v + PAGE_SIDE] - h[v + 1] - h[v + PAGE_SIDE - 1]
    return is_ridge(ground[c], ground[c - 1], bend, flatness)


@wp.func
def ridge_diagonal(h: wp.array[wp.float64], v: int, ground: wp.array[wp.uint8], c: int, flatness: wp.float64) -> bool:
    """Diagonal of cell c, whose first vertex is v."""
    bend = h[v + 1] + h[v + PAGE_SIDE] - h[v] - h[v + PAGE_SIDE + 1]
    return is_ridge(ground[c], ground[c], bend, flatness)


@wp.kernel
def build_cells(
    first: int,
    heights: wp.array[wp.float64],
    ground: wp.array[wp.uint8],
    slots: wp.array[int],
    planar: wp.float64,
    flatness: wp.float64,
    bounds: wp.array[wp.vec2f],
    flags: wp.array[wp.uint8],
):
    k = first + wp.tid()
    tile = k // (TILE * TILE)
    i = (k % (TILE * TILE)) // TILE
    j = k % TILE
    v = slots[tile] * PAGE_HEIGHTS + (i + 1) * PAGE_SIDE + j + 1
    c = tile * (TILE + 1) * (TILE + 1) + (i + 1) * (TILE + 1) + j + 1
    below_cell = c - (TILE + 1)
    none = wp.uint8(0)
    flag = int(0)
    lo = wp.float64(INFINITE)
    hi = -lo
    h0 = heights[v]
    h1 = heights[v + 1]
    h2 = heights[v + PAGE_SIDE]
    h3 = heights[v + PAGE_SIDE + 1]
    if ground[c] != none:
        lo = wp.min(wp.min(h0, h1), wp.min(h2, h3))
        hi = wp.max(wp.max(h0, h1), wp.max(h2, h3))
        if wp.abs(h0 - h1 - h2 + h3) <= planar:
            flag = flag | PLANAR
    else:
        flag = flag | GAP
        # What it owns may border on ground.
        if ground[c - 1] != none or ground[below_cell] != none or ground[below_cell - 1] != none:
            lo = h0
            hi = h0
        if ground[below_cell] != none:
            lo = wp.min(lo, h1)
            hi = wp.max(hi, h1)
        if ground[c - 1] != none:
            lo = wp.min(lo, h2)
            hi = wp.max(hi, h2)
    if ridge_x(heights, v, ground, c, flatness):
        flag = flag | CONVEX_X | CONVEX_VERTEX
    if ridge_y(heights, v, ground, c, flatness):
        flag = flag | CONVEX_Y | CONVEX_VERTEX
    if ridge_diagonal(heights, v, ground, c, flatness):
        flag = flag | CONVEX_DIAGONAL
    if (flag & CONVEX_VERTEX) == 0:
        if ridge_x(heights, v - 1, ground, c - 1, flatness) or ridge_diagonal(heights, v - 1, ground, c - 1, flatness):
            flag = flag | CONVEX_VERTEX
        if ridge_y(heights, v - PAGE_SIDE, ground, below_cell, flatness):
            flag = flag | CONVEX_VERTEX
        if ridge_diagonal(heights, v - PAGE_SIDE, ground, below_cell, flatness):
            flag = flag | CONVEX_VERTEX
    at = slots[tile] * PAGE_NODES + morton(i, j)
    bounds[at] = outward(lo, hi)
    flags[at] = wp.uint8(flag)


@wp.func
def outward(lo: wp.float64, hi: wp.float64) -> wp.vec2f:
    if lo > hi:
        return wp.vec2f(INFINITE, -INFINITE)
    a = wp.float32(lo)
    b = wp.float32(hi)
    return wp.vec2f(a - wp.abs(a) * ROUND_OUT - ROUND_OUT_TINY, b + wp.abs(b) * ROUND_OUT + ROUND_OUT_TINY)


@wp.func
def is_plane(h: wp.array[wp.float64], v: int, half: int, planar: wp.float64) -> bool:
    """Whether the corners of the quarters of a square of 2 `half` cells from v on lie on the plane of V0, V1, V2."""
    down = half * PAGE_SIDE
    h0 = h[v]
    h1 = h[v + 2 * half]
    h2 = h[v + 2 * down]
    a = wp.float64(0.5)
    return (
        wp.abs(h0 - h1 - h2 + h[v + 2 * down + 2 * half]) <= planar
        and wp.abs(h[v + half] - a * (h0 + h1)) <= planar
        and wp.abs(h[v + down] - a * (h0 + h2)) <= planar
        and wp.abs(h[v + down + half] - a * (h1 + h2)) <= planar
        and wp.abs(h[v + down + 2 * half] - (h1 + a * (h2 - h0))) <= planar
        and wp.abs(h[v + 2 * down + half] - (h2 + a * (h1 - h0))) <= planar
    )


@wp.kernel
def merge_quarters(
    first: int,
    heights: wp.array[wp.float64],
    slots: wp.array[int],
    level: int,
    planar: wp.float64,
    bounds: wp.array[wp.vec2f],
    flags: wp.array[wp.uint8],
    top_bounds: wp.array[wp.vec2f],
    top_flags: wp.array[wp.uint8],
    top_corners: wp.array[wp.vec4d],
):
    k = first + wp.tid()
    side = TILE >> level
    tile = k // (side * side)
    i = (k % (side * side)) // side
    j = k % side
    slot = slots[tile]
    code = morton(i, j)
    child = slot * PAGE_NODES + level_offset(level - 1) + 4 * code
    low = bounds[child]
    every = int(flags[child])
    any_of = every
    for q in range(1, 4):
        other = bounds[child + q]
        low = wp.vec2f(wp.min(low[0], other[0]), wp.max(low[1], other[1]))
        every = every & int(flags[child + q])
        any_of = any_of | int(flags[child + q])
    flag = any_of & (255 - PLANAR)
    v = slot * PAGE_HEIGHTS + ((i << level) + 1) * PAGE_SIDE + (j << level) + 1
    if (every & PLANAR) != 0:
        if is_plane(heights, v, 1 << (level - 1), planar):
            flag = flag | PLANAR
    if level == TOP:
        top_bounds[tile] = low
        top_flags[tile] = wp.uint8(flag)
        far = v + TILE * PAGE_SIDE
        top_corners[tile] = wp.vec4d(heights[v], heights[v + TILE], heights[far], heights[far + TILE])
    else:
        at = slot * PAGE_NODES + level_offset(level) + code
        bounds[at] = low
        flags[at] = wp.uint8(flag)
