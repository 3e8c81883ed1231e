"""Every level of a map in tables, to compare with the implicit map: any level at constant cost, for more memory.

Question: what are phi1, phi2 and phi3 on level k, in one step?
Method:   for each level a table of links of the darts that are there; where nothing changed it points to the row of the
          level before.
Known as: explicit multiresolution maps (Pitiot 2015, section 3.2.1).
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps import CellMap, level_links


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
