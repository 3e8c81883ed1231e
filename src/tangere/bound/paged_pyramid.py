"""The pyramid over a heightfield in files: few tiles are resident, those looked at last.

The nodes of the tiles themselves and of all levels above them are computed once, in one pass over the files, and kept
beside a folder of tiles; below them a tile's page is computed when it is loaded, with the same bits as any other way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from tangere.bound.height_pyramid import Pages, TileRoots, build_pages, planar_tolerance, terrain_struct, tile_counts
from tangere.bound.terrain import TILE
from tangere.runtime import CapacityError, choose_device
from tangere.shape.terrain_tiles import TiledHeightfield, TileFolder

__all__ = ["PagedPyramid"]

#: Resident tiles: 21.5 KB each.
RESIDENT = 4096
#: Tiles of the first pass that are computed together.
TOGETHER = 1024


class PagedPyramid:
    """Pages of some tiles on one device, and where they are.

    Args:
        field: the ground.
        device: where the kernels run.
        resident: how many tiles are kept.
    """

    def __init__(self, field: TiledHeightfield, device: wp.Device, resident: int = RESIDENT) -> None:
        self.field, self.counts = field, tile_counts(field.shape)
        total = self.counts[0] * self.counts[1]
        self.resident = min(resident, total)
        self._planar = planar_tolerance(field)
        self._pages = Pages.empty(self.resident, device)
        self._page_of = np.full(total, -1, np.int32)
        self._tile_in = np.full(self.resident, -1, np.int64)
        self._used = np.zeros(self.resident, np.int64)
        self._clock = 0
        self.loads = 0  #: tiles loaded so far
        table = wp.array(self._page_of, dtype=wp.int32, device=device)
        self.terrain: Any = terrain_struct(field, self._pages, table, self._roots(device), self._planar)

    @staticmethod
    def of(field: TiledHeightfield, device: str | wp.Device | None = None) -> PagedPyramid:
        """The pyramid of `field`, kept in `field.cache`."""
        device = choose_device(device)
        key = ("pyramid", device.alias)
        if key not in field.cache:
            field.cache[key] = PagedPyramid(field, device)
        return field.cache[key]

    def visits(self, centres: np.ndarray, reach: np.ndarray) -> Iterator[tuple[Any, Any]]:
        """Groups of bodies and the terrain with all tiles they may touch; see `terrain_visits`."""
        first, last = self._windows(centres, reach)
        if (first > last).any(axis=1).all():
            yield slice(None), self.terrain
            return
        tiles, owners = self._tiles_of(first, last)
        if len(np.unique(tiles)) <= self.resident:
            self._load(np.unique(tiles))
            yield slice(None), self.terrain
            return
        # Bodies by their first tile, cut where the tiles would no longer fit.
        bodies = np.argsort(first[:, 0] * self.counts[1] + first[:, 1], kind="stable")
        starts = np.searchsorted(owners, np.arange(len(first) + 1))
        group: list[int] = []
        needed: set[int] = set()
        for body in bodies:
            mine = set(tiles[starts[body] : starts[body + 1]].tolist())
            if len(mine) > self.resident:
                raise CapacityError(
                    f"body {body} reaches over {len(mine)} tiles of the terrain, more than the {self.resident} resident"
                )
            if len(needed | mine) > self.resident:
                self._load(np.array(sorted(needed)))
                yield np.array(group), self.terrain
                group, needed = [], set()
            group.append(int(body))
            needed |= mine
        self._load(np.array(sorted(needed)))
        yield np.array(group), self.terrain

    def _windows(self, centres: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last tile (row, column) of each body, one cell more than it reaches; first > last for none."""
        step = np.array([self.field.spacing[1], self.field.spacing[0]])
        at = (centres[:, [1, 0]] - np.array([self.field.origin[1], self.field.origin[0]])) / step
        around = np.broadcast_to(reach, len(centres))[:, None] / step + 1.0
        end = np.array(self.counts, np.float64)
        low, high = np.floor((at - around) / TILE), np.floor((at + around) / TILE)
        return np.clip(low, 0, end).astype(np.int64), np.clip(high, -1, end - 1).astype(np.int64)

    def _tiles_of(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All tiles of all windows, and the body of each."""
        size = np.maximum(last - first + 1, 0)
        number = size[:, 0] * size[:, 1]
        owners = np.repeat(np.arange(len(first)), number)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(number) - number, number)
        width = np.maximum(size[owners, 1], 1)
        return (first[owners, 0] + within // width) * self.counts[1] + first[owners, 1] + within % width, owners

    def _load(self, tiles: np.ndarray) -> None:
        """Make tiles resident in place of those used longest ago."""
        self._clock += 1
        pages = self._page_of[tiles]
        self._used[pages[pages >= 0]] = self._clock
        missing = tiles[pages < 0]
        if not len(missing):
            return
        slots = np.argsort(self._used, kind="stable")[: len(missing)]
        left = self._tile_in[slots]
        self._page_of[left[left >= 0]] = -1
        build_pages(self.field, missing, self._pages, slots, self._planar)
        self._tile_in[slots], self._page_of[missing], self._used[slots] = missing, slots, self._clock
        self.terrain.page = wp.array(self._page_of, dtype=wp.int32, device=self._pages.device)
        self.loads += len(missing)

    def _roots(self, device: wp.Device) -> TileRoots:
        kept = None
        if isinstance(self.field.heights, TileFolder):
            kept = self.field.heights.folder / "pyramid.npz"
            if kept.exists():
                with np.load(kept, allow_pickle=False) as parts:
                    return TileRoots(parts["bounds"], parts["flags"], parts["corners"])
        total = self.counts[0] * self.counts[1]
        scratch = Pages.empty(min(TOGETHER, total), device)
        parts = []
        for start in range(0, total, TOGETHER):
            tiles = np.arange(start, min(start + TOGETHER, total))
            parts.append(build_pages(self.field, tiles, scratch, np.arange(len(tiles)), self._planar))
        roots = TileRoots(*(np.concatenate([getattr(p, k) for p in parts]) for k in ("bounds", "flags", "corners")))
        if kept is not None:
            np.savez(kept, bounds=roots.bounds, flags=roots.flags, corners=roots.corners)
        return roots
