"""The links of a coarser level: found by labels (implicit), or kept in tables (explicit) for comparison.

The implicit map stores only the finest links; on level k, phi^k walks along the parts of an edge. The explicit variant
stores for each level a table of links of the darts that are there and points to the row of the level before where
nothing changed: any level at constant cost, for more memory.
Spec: specs/pitiot-multiresolution-interactions 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays, level
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.orbits import following, level_phi2, level_phi3
from tangere.runtime import SOUND, InputError, launch

__all__ = ["ExplicitLevels", "LevelLinks", "explicit_levels", "level_links"]

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class LevelLinks:
    """The map on one level: per dart of that level or below, its neighbours there; -1 elsewhere."""

    phi1: np.ndarray
    phi2: np.ndarray
    phi3: np.ndarray


def level_links(map: CellMap, k: int) -> LevelLinks:
    """phi1, phi2 and phi3 on level k, walked out of the implicit map."""
    if k < 0:
        raise InputError(f"levels start at 0, there is no level {k}")
    count = len(map.arrays.phi1)
    out = [wp.full(count, -1, dtype=wp.int32, device=map.device) for _ in range(3)]
    launch(_links, count, [map.arrays, k], out, device=map.device)
    used = len(map.numpy("phi1"))
    return LevelLinks(*(links.numpy()[:used] for links in out))


class ExplicitLevels:
    """Every level of a map in tables: `phi1(d, k)` and so on take one step whatever the level."""

    def __init__(self, row: np.ndarray, links: np.ndarray) -> None:
        self.row = row  #: (levels, darts) row of `links` of each dart on each level; -1 where it is not there yet
        self.links = links  #: (rows, 3) phi1, phi2, phi3

    @property
    def nbytes(self) -> int:
        """Bytes of links and row numbers."""
        return int(self.row.nbytes + self.links.nbytes)

    def phi1(self, darts: np.ndarray, k: int) -> np.ndarray:
        return self.links[self.row[k, darts], 0]

    def phi2(self, darts: np.ndarray, k: int) -> np.ndarray:
        return self.links[self.row[k, darts], 1]

    def phi3(self, darts: np.ndarray, k: int) -> np.ndarray:
        return self.links[self.row[k, darts], 2]


def explicit_levels(map: CellMap) -> ExplicitLevels:
    """Tables of all levels of a map as it is now."""
    darts = map.darts
    own = map.numpy("tag") & 255
    rows, tables, total = [], [], 0
    before = None
    for k in range(int(map.levels.max()) + 1):
        now = level_links(map, k)
        links = np.stack([now.phi1, now.phi2, now.phi3], axis=1)
        here = np.zeros(len(own), bool)
        here[darts] = own[darts] <= k
        row = np.full(len(own), -1, np.int32)
        changed = here.copy()
        if before is not None:
            same = here & (before[0] >= 0) & (before[1] == links).all(axis=1)
            row[same] = before[0][same]
            changed &= ~same
        row[changed] = total + np.arange(changed.sum())
        total += int(changed.sum())
        tables.append(links[changed].astype(np.int32))
        rows.append(row)
        before = row, links
    return ExplicitLevels(np.stack(rows), np.concatenate(tables))


@wp.kernel
def _links(first: int, m: MapArrays, k: int, phi1: wp.array[int], phi2: wp.array[int], phi3: wp.array[int]):
    d = first + wp.tid()
    if d >= m.counts[0] or m.tag[d] < 0 or level(m, d) > k:
        return
    phi1[d] = following(m, d, k)
    phi2[d] = level_phi2(m, d, k)
    if m.dimension == 3:
        phi3[d] = level_phi3(m, d, k)
