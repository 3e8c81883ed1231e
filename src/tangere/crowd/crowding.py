"""Which cells are crowded and which hold few, asked of the lists a step has made: nothing is counted again.

Edges of bodies count too, half as much as points because looking at one is quicker: where only points did, bodies in a
place without points would all look at each other.
Both are marked in one go: where nothing is to be done, which is what most looks at a crowd find, that is all it costs.
Spec: specs/pitiot-multiresolution-interactions 2.16.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.registration.criteria import Density
from tangere.crowd.repeating import Repeated
from tangere.runtime import SOUND, where

__all__ = ["Crowding"]

wp.set_module_options(SOUND)

#: So many edges count like one point.
_EDGES = 2
_NONE = wp.constant(wp.uint8(0))
_FEW = wp.constant(wp.uint8(1))
_MANY = wp.constant(wp.uint8(2))


class Crowding:
    """Looks at a map as it is now, as often as one likes.

    Args:
        points: those of cell c are points[c] … points[c + 1] - 1. edges: the same for edges of bodies.
        finest: leaves of this level are not split.
    """

    def __init__(self, map: CellMap, points: wp.array, edges: wp.array, limit: Density, finest: int) -> None:
        self.limit, self.edges, self.leaves = limit, edges, len(map.leaves)
        self._points = points
        self._codes = wp.empty(map.cell_capacity, dtype=wp.uint8, device=map.device)
        self._on_cpu = self._codes.numpy() if map.device.is_cpu else None
        limits = wp.vec3i(limit.merge * _EDGES, limit.split * _EDGES, _EDGES)
        arguments = [map.arrays, points, edges, limits, finest, self._codes]
        self._mark = Repeated(_mark, map.cell_capacity, arguments, map.device)

    def look(self, budget: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Cells to merge, whose children are leaves and hold few together, and leaves to split, which hold too many.

        Args:
            budget: at most so many of each, the most crowded ones first.
        """
        self._mark.run()
        marked, codes = self._marked()
        few, many = marked[codes == int(_FEW)], marked[codes == int(_MANY)]
        if budget is not None and len(many) > budget:
            counts = np.diff(self._points.numpy()) + np.diff(self.edges.numpy())
            many = many[np.argsort(-counts[many], kind="stable")][:budget]
        return few[:budget], many

    def _marked(self) -> tuple[np.ndarray, np.ndarray]:
        """The cells with a mark, rising, and their marks."""
        if self._on_cpu is not None:
            marked = np.flatnonzero(self._on_cpu)
            return marked, self._on_cpu[marked]
        marked = np.sort(where(self._codes, int(_FEW)).numpy())
        return marked, self._codes.numpy()[marked] if len(marked) else np.empty(0, np.uint8)


@wp.func
def _held(points: wp.array[int], edges: wp.array[int], weight: int, c: int) -> int:
    return weight * (points[c + 1] - points[c]) + edges[c + 1] - edges[c]


@wp.kernel
def _mark(
    first: int,
    m: MapArrays,
    points: wp.array[int],
    edges: wp.array[int],
    limits: wp.vec3i,
    finest: int,
    codes: wp.array[wp.uint8],
):
    c = first + wp.tid()
    codes[c] = _NONE
    if m.cell_level[c] < 0:
        return
    if m.first_child[c] < 0:
        if m.cell_level[c] < finest and _held(points, edges, limits[2], c) > limits[1]:
            codes[c] = _MANY
        return
    total = int(0)
    child = int(m.first_child[c])
    while child >= 0:
        # An obstacle keeps its shape.
        if m.first_child[child] >= 0 or m.obstacle[child] != 0:
            return
        total += _held(points, edges, limits[2], child)
        child = m.sibling[child]
    if total <= limits[0]:
        codes[c] = _FEW
