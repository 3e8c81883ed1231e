"""Which cells are crowded and which hold few, asked of the agents' own order: nothing is counted again.

Spec: specs/pitiot-multiresolution-interactions 2.16.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.registration.criteria import Density
from tangere.runtime import SOUND, launch, where

__all__ = ["crowded_cells", "empty_cells"]

wp.set_module_options(SOUND)

_YES = wp.constant(wp.uint8(1))


def crowded_cells(map: CellMap, start: wp.array, limit: Density, finest: int, budget: int | None) -> np.ndarray:
    """Leaves coarser than level `finest` with too many agents; at most `budget`, the most crowded ones.

    Args:
        start: agents of cell c are start[c] … start[c + 1] - 1.
    """
    codes = wp.zeros(map.cell_capacity, dtype=wp.uint8, device=map.device)
    launch(_crowded, map.cell_capacity, [map.arrays, start, limit.split, finest], [codes], device=map.device)
    cells = np.sort(where(codes, 1).numpy())
    if budget is None or len(cells) <= budget:
        return cells
    counts = np.diff(start.numpy())
    return cells[np.argsort(-counts[cells], kind="stable")][:budget]


def empty_cells(map: CellMap, start: wp.array, limit: Density, budget: int | None) -> np.ndarray:
    """Cells whose children are all leaves and hold few together; at most `budget`."""
    codes = wp.zeros(map.cell_capacity, dtype=wp.uint8, device=map.device)
    launch(_empty, map.cell_capacity, [map.arrays, start, limit.merge], [codes], device=map.device)
    return np.sort(where(codes, 1).numpy())[:budget]


@wp.kernel
def _crowded(first: int, m: MapArrays, start: wp.array[int], most: int, finest: int, codes: wp.array[wp.uint8]):
    c = first + wp.tid()
    if m.cell_level[c] >= 0 and m.cell_level[c] < finest and m.first_child[c] < 0:
        if start[c + 1] - start[c] > most:
            codes[c] = _YES


@wp.kernel
def _empty(first: int, m: MapArrays, start: wp.array[int], most: int, codes: wp.array[wp.uint8]):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] < 0:
        return
    total = int(0)
    child = int(m.first_child[c])
    while child >= 0:
        # An obstacle keeps its shape.
        if m.first_child[child] >= 0 or m.obstacle[child] != 0:
            return
        total += start[child + 1] - start[child]
        child = m.sibling[child]
    if total <= most:
        codes[c] = _YES
