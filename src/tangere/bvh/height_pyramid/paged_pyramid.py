"""The pyramid over a heightfield in files: pages of the tiles somebody looks at, as many as a budget of memory allows.

The levels above the tiles come from the field's relief, without reading heights. Of a batch of bodies a kernel notes
which tiles they may touch, with the number of the question; one number tells the host whether one of them has no page.
Only then does the host look at the notes, load what is missing in few large reads, and give up the tiles that were
noted longest ago. When all tiles have pages, nothing is asked any more.
A page that is loaded must fit what the relief says of its tile, bit for bit: files that changed are noticed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.cells import outward_of
from tangere.bvh.height_pyramid.pages import PAGE_BYTES, Pages, TileRoots, build_pages, tile_counts
from tangere.bvh.height_pyramid.pyramid import planar_tolerance, terrain_struct
from tangere.bvh.height_pyramid.terrain import PLANAR, TILE, Terrain
from tangere.bvh.height_pyramid.tile_windows import note_tiles, tiles_of, windows_of
from tangere.runtime import CapacityError, InputError, choose_device, launch
from tangere.shape.heightfield import Relief, TiledHeightfield

__all__ = ["PagedPyramid"]

#: Pages there is room for at first, 22 MB; the room doubles when it is full.
FIRST_PAGES = 1024
#: Pages that 32 bits can number the nodes of.
MOST_PAGES = 1 << 20
#: Memory for tiles where the machine does not tell how much it has [bytes].
UNKNOWN_MEMORY = 1 << 30


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
        self._question = 0
        self._noted = wp.zeros(self._total, dtype=wp.int64, device=device)
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
        wanted = np.flatnonzero(self._noted.numpy() == self._question)
        if len(wanted) <= self.resident:
            self._load(wanted)
            yield slice(None), self.terrain
            return
        yield from self._visits_in_groups(_on_host(centres), _on_host(reach))

    def _lacks(self, centres: Any, reach: Any) -> bool:
        """Note the tiles of all bodies; whether one has no page."""
        device = self._pages.device
        self._question += 1
        launch(
            note_tiles,
            len(centres),
            [self.row, self.counts[0], _on_device(centres, device), _on_device(reach, device), self._question],
            [self._noted, self._lacking],
            device=device,
            grain=4096,
        )
        return int(self._lacking.numpy()[0]) == self._question

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
        """Let tiles, rising, no more than may be resident, have pages, in place of those noted longest ago."""
        self._question += 1
        noted = self._noted.numpy()
        noted[wanted] = self._question
        self._noted.assign(noted)
        missing = wanted[self._page_of[wanted] < 0]
        if not len(missing):
            return
        loaded = len(self._tile_in)
        fresh = min(len(missing), self.resident - loaded)
        if loaded + fresh > self._room:
            self._grow(loaded + fresh)
        given_up = len(missing) - fresh
        oldest = np.argpartition(noted[self._tile_in], given_up - 1)[:given_up] if given_up else np.empty(0, np.int64)
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
