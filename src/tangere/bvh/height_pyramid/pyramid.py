"""Pyramids over heightfields: bounds, planar and convex flags of squares of 1, 2, 4, … cells, in memory or in pages.

Question: where can ground be higher than this; where is it one plane; where are there ridges? And, of ground in files:
          which tiles may the bodies of a batch touch, and are these ready for kernels?
Method:   each tile's page is computed from its own heights and a border of one vertex, so a tile gives the same bits
          whether it is built with all others, after an edit, or when it is loaded from a file. A square is PLANAR if
          its four quarters are and their corners lie on its plane; each level may add a rounding error, no more.
          Levels above the tiles are put together on the host.
Paged:    the levels above the tiles come from the field's relief, without reading heights. Of a batch of bodies a
          kernel marks the tiles they may touch with the number of the query; one number says whether one of them has no
          page. Only then does the host read the marks, load what is missing in few large reads, and evict the tiles
          that were marked longest ago. When all tiles have pages, nothing is marked any more. Bodies whose tiles do not
          fit together are taken in groups, near ones together (`terrain_visits`).
Sound:    a page that is loaded must fit what the relief says of its tile, bit for bit: files that changed are noticed.
Known as: maximum mipmap (layout: `terrain`); out-of-core paging with least-recently-used eviction.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.pages import PAGE_BYTES, Pages, TileRoots, build_pages, outward_of, tile_counts
from tangere.bvh.height_pyramid.terrain import GAP, PLANAR, TILE, TOP, Terrain
from tangere.runtime import SOUND, CapacityError, InputError, UnsupportedError, choose_device, described, launch
from tangere.shape.heightfield import Heightfield, Relief, TiledHeightfield

wp.set_module_options(SOUND)

#: Ground this near to a plane is planar: some roundings of the largest height, or of so many cells if that is more.
HEIGHT_ROUNDING = 4.0 * 2.0**-53
TALL = 1024.0
#: Pages there is room for at first, 22 MB; the room doubles when it is full.
FIRST_PAGES = 1024
#: Pages that 32 bits can number the nodes of.
MOST_PAGES = 1 << 20
#: Memory for tiles where the machine does not tell how much it has [bytes].
UNKNOWN_MEMORY = 1 << 30
_ONE = wp.constant(wp.float64(1.0))
_SIDE = wp.constant(wp.float64(float(TILE)))


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


def terrain_visits(
    field: Heightfield | TiledHeightfield, centres: np.ndarray, reach: np.ndarray, device: wp.Device
) -> Iterator[tuple[Any, Any]]:
    """Pairs of rows (an index of the batch: slice or array) and the `Terrain` that has all they need.

    Args:
        field: the ground.
        centres: a point of each body, world, shape (n, 3) [m].
        reach: how far from it the body, wherever it goes, may be, shape (n,) or (1,) [m].
        device: where the kernels run.

    The terrain of one visit is valid until the next, as long as its `tiles_held`.
    """
    if isinstance(field, Heightfield):
        yield slice(None), HeightPyramid.of(field, device).terrain
    elif isinstance(field, TiledHeightfield):
        yield from PagedPyramid.of(field, device).visits(centres, reach)
    else:
        raise UnsupportedError(f"a terrain is a Heightfield or a TiledHeightfield, not {described(field)}")


@contextmanager
def tiles_held(fields: Iterable[Heightfield | TiledHeightfield], device: wp.Device) -> Iterator[None]:
    """Let no other thread load tiles of these fields, because it might take away those of a visit.

    Fields with all tiles loaded give none away: threads need not wait for each other.
    """
    pyramids = {PagedPyramid.of(field, device) for field in fields if isinstance(field, TiledHeightfield)}
    with ExitStack() as held:
        for pyramid in sorted(pyramids, key=id):  # in one order for all threads
            if not pyramid.has_all:
                held.enter_context(pyramid.lock)
        yield


class PagedPyramid:
    """Pages of some tiles on one device, and where they are.

    Args:
        field: the ground.
        device: where the kernels run.
        resident: how many tiles are kept at most; None means as many as fit the field's budget.
    """

    def __init__(self, field: TiledHeightfield, device: wp.Device, resident: int | None = None) -> None:
        self.field, self.counts = field, tile_counts(field.shape)
        self._total = self.counts[0] * self.counts[1]
        if resident is None:
            resident = (field.budget or _free_memory(device)) // PAGE_BYTES
        self.resident = max(min(resident, self._total, MOST_PAGES), 1)
        self.loads = 0  #: tiles loaded so far
        self.has_all = False  #: whether all tiles have pages, which they then keep
        self.lock = threading.RLock()  #: held by whoever visits tiles: nobody else may take them away meanwhile
        self._planar = planar_tolerance(field)
        self._roots = _roots_of(field.relief, self._planar)
        self._room = min(FIRST_PAGES, self.resident)
        self._pages = Pages.empty(self._room, device)
        self._page_of = np.full(self._total, -1, np.int32)
        self._tile_in = np.empty(0, np.int64)  # by page, as many as are loaded
        self._query = 0
        self._marks = wp.zeros(self._total, dtype=wp.int64, device=device)
        self._lacking = wp.zeros(1, dtype=wp.int64, device=device)
        table = wp.array(self._page_of, dtype=wp.int32, device=device)
        self.terrain: Any = terrain_struct(field, self._pages, table, self._roots, self._planar)
        self.row = wp.array([self.terrain], dtype=Terrain, device=device)  #: the same as one row of an array, (1,)

    @staticmethod
    def of(field: TiledHeightfield, device: str | wp.Device | None = None) -> PagedPyramid:
        """The pyramid of `field`, kept in `field.cache`."""
        device = choose_device(device)
        key = ("pyramid", device.alias)
        return field.cache.get(key) or field.cache.setdefault(key, PagedPyramid(field, device))

    def visits(self, centres: Any, reach: Any) -> Iterator[tuple[Any, Any]]:
        """Groups of bodies and the terrain with all tiles they may touch; see `terrain_visits`."""
        if self.has_all or not len(centres) or not self._lacks(centres, reach):
            yield slice(None), self.terrain
            return
        wanted = np.flatnonzero(self._marks.numpy() == self._query)
        if len(wanted) <= self.resident:
            self._load(wanted)
            yield slice(None), self.terrain
            return
        yield from self._visits_in_groups(_on_host(centres), _on_host(reach))

    def _lacks(self, centres: Any, reach: Any) -> bool:
        """Mark the tiles of all bodies; whether one has no page."""
        device = self._pages.device
        self._query += 1
        launch(
            mark_tiles,
            len(centres),
            [self.row, self.counts[0], _on_device(centres, device), _on_device(reach, device), self._query],
            [self._marks, self._lacking],
            device=device,
            grain=4096,
        )
        return int(self._lacking.numpy()[0]) == self._query

    def _visits_in_groups(self, centres: np.ndarray, reach: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
        """Bodies by their first tile, cut where their tiles would no longer fit."""
        first, last = windows_of(self.field, centres, reach)
        order = np.argsort(first[:, 0] * self.counts[1] + first[:, 1], kind="stable")
        most = np.maximum(last - first + 1, 0).prod(axis=1)
        if most.max() > self.resident:  # before all of them are listed
            body = int(np.argmax(most))
            raise CapacityError(
                f"terrain {self.field.name!r}: the body at {centres[body].tolist()} reaches over {most[body]} tiles,"
                f" but the budget is {self.resident} ({self.resident * PAGE_BYTES} bytes)"
            )
        tiles, owners = tiles_of(first[order], last[order], self.counts)
        begin, at = 0, 0  # of the rest of bodies and of their tiles
        while begin < len(order):
            rest, seen = np.unique(tiles[at:], return_index=True)
            end, until = len(order), len(tiles)
            if len(rest) > self.resident:
                end = int(owners[at + np.sort(seen)[self.resident]])  # the first body with one tile too many
                until = int(np.searchsorted(owners, end))
            self._load(np.unique(tiles[at:until]))
            yield order[begin:end], self.terrain
            begin, at = end, until

    def _load(self, wanted: np.ndarray) -> None:
        """Let tiles, rising, no more than may be resident, have pages, in place of those marked longest ago."""
        self._query += 1
        marks = self._marks.numpy()
        marks[wanted] = self._query
        self._marks.assign(marks)
        missing = wanted[self._page_of[wanted] < 0]
        if not len(missing):
            return
        loaded = len(self._tile_in)
        fresh = min(len(missing), self.resident - loaded)
        if loaded + fresh > self._room:
            self._grow(loaded + fresh)
        given_up = len(missing) - fresh
        oldest = np.argpartition(marks[self._tile_in], given_up - 1)[:given_up] if given_up else np.empty(0, np.int64)
        slots = np.concatenate([np.arange(loaded, loaded + fresh), oldest])
        self._page_of[self._tile_in[oldest]] = -1
        self._tile_in = np.append(self._tile_in, np.full(fresh, -1))
        try:
            self._check(missing, build_pages(self.field, missing, self._pages, slots, self._planar))
        except BaseException:  # pages may be half written
            self._tile_in = np.empty(0, np.int64)
            self._page_of[:] = -1
            self.terrain.page.assign(self._page_of)
            raise
        self._tile_in[slots], self._page_of[missing] = missing, slots
        self.terrain.page.assign(self._page_of)
        self.loads += len(missing)
        self.has_all = len(self._tile_in) == self._total  # last: who sees it may read all pages

    def _grow(self, count: int) -> None:
        room = min(max(2 * self._room, count), self.resident)
        self._pages = pages = self._pages.grown(room)  # may find no memory: nothing has changed then
        self._room = room
        self.terrain.heights, self.terrain.bounds, self.terrain.flags = pages.heights, pages.bounds, pages.flags
        self.row = wp.array([self.terrain], dtype=Terrain, device=pages.device)

    def _check(self, tiles: np.ndarray, built: TileRoots) -> None:
        """Whether pages are what the relief has let expect."""
        known = self._roots
        wrong = (built.flags != known.flags[tiles]) | (built.bounds != known.bounds[tiles]).any(axis=1)
        wrong |= (built.corners != known.corners[tiles]).any(axis=1)  # NaN is never right
        if wrong.any():
            row, column = divmod(int(tiles[np.argmax(wrong)]), self.counts[1])
            raise InputError(
                f"terrain {self.field.name!r}: cells from ({TILE * row}, {TILE * column}) on have changed since it was"
                " opened; open it again (and remove its relief.npz if that does not help)"
            )


def _roots_of(relief: Relief, planar: float) -> TileRoots:
    """The top nodes of all tiles, with the bits that `build_pages` gives them."""
    flags = relief.marks | np.where(relief.bend <= planar, PLANAR, 0).astype(np.uint8)
    bounds = outward_of(*relief.ground.reshape(-1, 2).T)
    return TileRoots(bounds, flags.ravel(), relief.corners.reshape(-1, 4))


def _free_memory(device: wp.Device) -> int:
    """What tiles may take if nobody says: half of a CUDA device's free memory, a quarter of the machine's [bytes]."""
    if device.is_cuda:
        return device.free_memory // 2
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):  # not every system tells
        return UNKNOWN_MEMORY


def _on_device(values: Any, device: wp.Device) -> wp.array:
    return values if isinstance(values, wp.array) else wp.array(values, dtype=wp.float64, device=device)


def _on_host(values: Any) -> np.ndarray:
    return values.numpy() if isinstance(values, wp.array) else values


def windows_of(field: Any, centres: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last tile (row, column) of each body as `mark_tiles` finds them; first > last for none."""
    step = np.array([field.spacing[1], field.spacing[0]])
    at = (centres[:, [1, 0]] - np.array([field.origin[1], field.origin[0]])) / step
    around = np.broadcast_to(reach, len(centres))[:, None] / step + 1.0
    counts = np.array([cells // TILE + 1 for cells in field.shape], np.float64)
    low, high = (at - around) / TILE, (at + around) / TILE
    some = ((high >= 0.0) & (low < counts)).all(axis=1, keepdims=True)  # NaN is not
    first = np.where(some, np.clip(low, 0.0, counts), 0.0).astype(np.int64)
    return first, np.where(some, np.clip(high, -1.0, counts - 1.0), -1.0).astype(np.int64)


def tiles_of(first: np.ndarray, last: np.ndarray, counts: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """All tiles of all windows, and the body of each, by rising body."""
    size = np.maximum(last - first + 1, 0)
    number = size[:, 0] * size[:, 1]
    owners = np.repeat(np.arange(len(first)), number)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(number) - number, number)
    width = np.maximum(size[owners, 1], 1)
    return (first[owners, 0] + within // width) * counts[1] + first[owners, 1] + within % width, owners


@wp.func
def tile_range(at: wp.float64, reach: wp.float64, step: wp.float64, count: int) -> wp.vec2i:
    """First and last tile along an axis, one cell more than a body reaches; first > last for none, and for NaN."""
    around = reach / step + _ONE
    low = (at / step - around) / _SIDE
    high = (at / step + around) / _SIDE
    if not (high >= wp.float64(0.0) and low < wp.float64(count)):
        return wp.vec2i(0, -1)
    return wp.vec2i(int(wp.max(low, wp.float64(0.0))), int(wp.min(high, wp.float64(count - 1))))


@wp.kernel
def mark_tiles(
    first: int,
    terrain: wp.array[Terrain],
    tiles_y: int,
    centres: wp.array2d[wp.float64],
    reach: wp.array[wp.float64],
    query: wp.int64,
    marks: wp.array[wp.int64],
    lacking: wp.array[wp.int64],
):
    """Write the number of the query to all tiles of body i, and to `lacking` where one has no page.

    Bodies may write to the same place, but they all write the same.
    """
    i = first + wp.tid()
    t = terrain[0]
    far = reach[wp.min(i, reach.shape[0] - 1)]
    rows = tile_range(centres[i, 1] - t.origin[1], far, t.dy, tiles_y)
    columns = tile_range(centres[i, 0] - t.origin[0], far, t.dx, t.tiles_x)
    for row in range(rows[0], rows[1] + 1):
        for column in range(columns[0], columns[1] + 1):
            tile = row * t.tiles_x + column
            marks[tile] = query
            if t.page[tile] < 0:
                lacking[0] = query
