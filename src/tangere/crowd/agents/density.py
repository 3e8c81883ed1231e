"""Which cells are crowded and which hold few, asked of the lists a step has made: nothing is counted again.

Question: which cells are to be split, and which merged?
Method:   only cells that somebody is in may be crowded, and only cells that were split may hold few: nobody looks at
          the others, so that it costs the same in a map of any size. Both are marked in one launch: where nothing is to
          be done, which is what is found mostly, that is all it costs.
          Edges of bodies count too, half as much as points because they are quicker to look at: where only points did,
          bodies in a place without points would all look at each other.
Known as: the multiresolution criterion by density (Pitiot 2015, sections 6.1 and 8.3.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells import Density
from tangere.cells.maps import CellMap, MapArrays
from tangere.cells.tracking import points_per_index
from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: So many edges count like one point.
_EDGES_PER_POINT = 2
#: The mark of a cell that holds few; that of a crowded one is how many agents and edges it holds.
_TO_MERGE = wp.constant(-1)
_GRAIN = 8192


class DensityMarks:
    """Looks at a map as it is now, as often as one likes.

    Args:
        crowd: the points, by cell. finest: leaves of this level are not split.
    """

    def __init__(self, map: CellMap, crowd: Any, limit: Density, finest: int) -> None:
        self.limit, self.leaves = limit, len(map.leaves)
        self._map, self._crowd, self._finest = map, crowd, finest
        split = np.flatnonzero((map.levels >= 0) & (map.arrays.first_child.numpy() >= 0))
        self._split = wp.array(split.astype(np.int32), dtype=wp.int32, device=map.device)
        self._launch: tuple[Any, PreparedLaunch] | None = None

    def cells_to_change(self, edges: Any, budget: int | None = None, turn: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Cells to merge, whose children are leaves and hold few together, and leaves to split, which hold too many.

        Args:
            edges: those of bodies, by cell. budget: at most so many of each, the most crowded ones first.
            turn: counts looks; those that merge take turns, because some of them may be kept from it for long.
        """
        if self._launch is None or self._launch[0] is not edges:
            self._launch = edges, self._prepared_launch(edges)
        if len(self._marks):
            self._launch[1].run()
        marks = self._marks.numpy()
        places = np.flatnonzero(marks)
        if len(places) == 0:
            return places, places
        cells = self._cells.numpy()[places].astype(np.int64)
        order = np.argsort(cells)
        cells, marks = cells[order], marks[places][order]
        few, many = cells[marks < 0], cells[marks > 0]
        if budget is not None and len(many) > budget:
            many = many[np.argsort(-marks[marks > 0], kind="stable")][:budget]
        return np.roll(few, -(turn * len(few[:budget])))[:budget], many

    def _prepared_launch(self, edges: Any) -> PreparedLaunch:
        device, limit, crowd = self._map.device, self.limit, self._crowd
        places = len(crowd.cell) + (len(edges.entry) if edges.entry is not None else 0) + len(self._split)
        self._cells, self._marks = (wp.empty(places, dtype=wp.int32, device=device) for _ in range(2))
        limits = wp.vec3i(limit.merge * _EDGES_PER_POINT, limit.split * _EDGES_PER_POINT, _EDGES_PER_POINT)
        chunk = points_per_index(device)
        arguments = [self._map.arrays, crowd, edges, self._split, limits, self._finest, chunk]
        arguments += [self._cells, self._marks]
        return PreparedLaunch(_mark, arguments, device, dim=-(-places // chunk) or 1, grain=_GRAIN // chunk)


@wp.func
def _load(c: CrowdArrays, e: BodyEdges, weight: int, cell: int) -> int:
    return weight * (c.start[cell + 1] - c.start[cell]) + e.start[cell + 1] - e.start[cell]


@wp.func
def _cell_at(c: CrowdArrays, e: BodyEdges, split: wp.array[int], i: int) -> int:
    """The cell of a place, each once: at its first point, without points at its first edge; or split. -1: none."""
    points = c.cell.shape[0]
    edges = e.entry.shape[0]
    if i < points:
        cell = c.cell[i]
        if c.start[cell] == i:
            return cell
        return -1
    if i < points + edges:
        k = i - points
        # There is room for more entries than there are.
        if k >= e.start[e.start.shape[0] - 1]:
            return -1
        cell = e.cells[e.entry[k]]
        if e.start[cell] == k and c.start[cell] == c.start[cell + 1]:
            return cell
        return -1
    return split[i - points - edges]


@wp.func
def _mark_of(m: MapArrays, c: CrowdArrays, e: BodyEdges, limits: wp.vec3i, finest: int, cell: int) -> int:
    if m.first_child[cell] < 0:
        if m.cell_level[cell] < finest and _load(c, e, limits[2], cell) > limits[1]:
            return _load(c, e, 1, cell)
        return 0
    total = int(0)
    child = int(m.first_child[cell])
    while child >= 0:
        # An obstacle keeps its shape.
        if m.first_child[child] >= 0 or m.obstacle[child] != 0:
            return 0
        total += _load(c, e, limits[2], child)
        child = m.sibling[child]
    if total <= limits[0]:
        return _TO_MERGE
    return 0


@wp.kernel
def _mark(
    first: int,
    m: MapArrays,
    c: CrowdArrays,
    e: BodyEdges,
    split: wp.array[int],
    limits: wp.vec3i,
    finest: int,
    chunk: int,
    cells: wp.array[int],
    marks: wp.array[int],
):
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, cells.shape[0])):
        cell = _cell_at(c, e, split, i)
        mark = int(0)
        if cell >= 0:
            mark = _mark_of(m, c, e, limits, finest, cell)
        cells[i] = cell
        marks[i] = mark
