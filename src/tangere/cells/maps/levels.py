"""The links of a coarser level of an implicit multiresolution map, found by labels.

Question: what are phi1, phi2 and phi3 on level k?
Method:   the implicit map stores only the finest links; on level k, each walks along the parts of an edge.
Known as: implicit multiresolution maps (Pitiot 2015, section 3.2.2); tables of all levels are in `tangere.published`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays, level
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.orbits import level_phi1, level_phi2, level_phi3
from tangere.runtime import SOUND, InputError, launch

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


@wp.kernel
def _links(first: int, m: MapArrays, k: int, phi1: wp.array[int], phi2: wp.array[int], phi3: wp.array[int]):
    d = first + wp.tid()
    if d >= m.counts[0] or m.tag[d] < 0 or level(m, d) > k:
        return
    phi1[d] = level_phi1(m, d, k)
    phi2[d] = level_phi2(m, d, k)
    if m.dimension == 3:
        phi3[d] = level_phi3(m, d, k)
