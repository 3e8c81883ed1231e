"""Neighbourhoods of sets of cells, on the finest or any coarser level.

Question: which cells are around a set of cells?
Method:   the cells outside that share a vertex with one of the set, however many pieces the ring is in. On level k the
          cells are those of level k and the leaves above it, and the vertices those of darts up to level k.
Known as: one-rings (Pitiot 2015, section 3.3).
"""

from __future__ import annotations

import numpy as np

from tangere.cells.index_checks import checked_indices
from tangere.cells.maps.cell_map import CellMap
from tangere.runtime import Arrays, InputError


def ring(map: CellMap, cells: Arrays, *, level: int | None = None) -> np.ndarray:
    """The cells that share a vertex with one of `cells` and are not among them, sorted.

    Args:
        cells: leaves; with a level, any cells: their level-k ancestors are meant.
    """
    chosen = np.unique(checked_indices(cells, "cells", map.cell_capacity, "cells"))
    wrong = (map.levels[chosen] < 0) | ((level is None) & (map.arrays.first_child.numpy()[chosen] >= 0))
    if wrong.any():
        raise InputError(f"cells: cell {chosen[wrong][0]} is not a leaf")
    if level is None:
        return np.setdiff1d(map.rings.rows(chosen), chosen)
    up = ancestors(map, level)
    chosen = np.unique(up[chosen])
    darts = map.darts
    darts = darts[(map.numpy("tag")[darts] & 255) <= level]
    cell, vertex = up[map.numpy("cell")[darts]], map.numpy("origin")[darts]
    touched = np.zeros(len(map.positions), bool)
    touched[vertex[np.isin(cell, chosen)]] = True
    return np.setdiff1d(cell[touched[vertex]], chosen)


def ancestors(map: CellMap, level: int) -> np.ndarray:
    """For every cell number its ancestor on a level, or the cell itself if it is not finer."""
    if level < 0:
        raise InputError(f"level: levels start at 0, there is no level {level}")
    parent, levels = map.arrays.parent.numpy(), map.levels
    up = np.arange(len(levels))
    while True:
        finer = levels[up] > level
        if not finer.any():
            return up
        up = np.where(finer, parent[up], up)
