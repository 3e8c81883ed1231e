"""Square cells over a floor plan that do not know its walls, and the walls that each of them sees.

Question: whom and which walls may somebody in a cell see or meet?
Method:   cells are squares of a third of the range, those that touch the plan, numbered column by column. From a cell
          all cells are seen whose squares are within the range: one run of numbers for each column. Walls are listed in
          every cell within the range of them. Range and size of cells are two things: a plan is never too narrow.
Sound:    squares are a little wider than they are, and walls are listed a little farther than the range.
Known as: cell lists (linked cells) with cells smaller than the cutoff.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.crowd.agents.neighbour_ranges import CellNeighbourhood, CellRun, Neighbourhoods
from tangere.crowd.agents.walls import WallEdge
from tangere.crowd.floor.wall_raster import Raster
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Cells per range.
_PARTS = 3
#: More than rounding of coordinates and of boxes to float32 takes away, as parts of a side and of coordinates.
_WIDER, _ROUNDING = 1.0e-6, 2.0**-22
#: Cells of a raster that fit into memory with ease.
_MOST_CELLS = 40_000_000


@wp.struct
class FloorCells:
    """The cell of a place: number[column, row], -1 where there is no floor."""

    low: wp.vec2d
    side: wp.float64
    number: wp.array2d[int]


class CellGrid:
    """The cells of a plan.

    Args:
        walls: (n, 2, 2) [m]. bounds: of the plan. range: how far is seen [m].
        parts: cells per range.
    """

    def __init__(
        self,
        walls: np.ndarray,
        bounds: tuple[float, float, float, float],
        range: float,
        device: wp.Device,
        parts: int = _PARTS,
    ) -> None:
        side = range / parts
        width, height = bounds[2] - bounds[0], bounds[3] - bounds[1]
        while (width / side + 2) * (height / side + 2) > _MOST_CELLS:
            side *= 2.0
        self.side, self.range = side, range
        raster = Raster.around(bounds, side)
        self.low = raster.origin - 0.5 * side  # nodes of the raster are the middles of cells
        self.shape = raster.shape
        inside = np.cumsum(raster.cuts(walls)[0], axis=0) % 2 == 1
        cell, wall, gap = self._near_walls(walls)
        inside.ravel()[cell[gap <= _WIDER * side]] = True
        self.columns, self.rows = np.nonzero(inside)
        self.number = np.full(self.shape, -1, np.int32)
        self.number[inside] = np.arange(len(self.columns), dtype=np.int32)
        known = self.number.ravel()[cell] >= 0
        self.arrays = FloorCells()
        self.arrays.low, self.arrays.side = wp.vec2d(*self.low), side
        self.arrays.number = wp.array(self.number, dtype=wp.int32, device=device)
        self.neighbourhoods = self._neighbourhoods(walls, self.number.ravel()[cell[known]], wall[known], device)

    def __len__(self) -> int:
        return len(self.columns)

    def cells_of(self, positions: np.ndarray) -> np.ndarray:
        """(n,) the cell of each place (n, 2); -1 off the floor."""
        index = np.floor((positions - self.low) / self.side).astype(int)
        within = ((index >= 0) & (index < self.shape)).all(axis=1)
        index = np.where(within[:, None], index, 0)
        return np.where(within, self.number[index[:, 0], index[:, 1]], -1)

    def _near_walls(self, walls: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells and walls within the range of each other, and how far from the cell's box the wall surely is not."""
        reach = (self.range * (1.0 + 1.0e-6)) / self.side + _WIDER
        local = (walls - self.low) / self.side
        a, b = local[:, 0], local[:, 1]
        swap = a[:, 0] > b[:, 0]
        a, b = np.where(swap[:, None], b, a), np.where(swap[:, None], a, b)
        first = np.clip(np.floor(a[:, 0] - reach), 0, self.shape[0] - 1).astype(int)
        last = np.clip(np.floor(b[:, 0] + reach), 0, self.shape[0] - 1).astype(int)
        wall, column = _expanded(first, last)
        # The part of a wall that is within reach of a column, and the rows within reach of that.
        size = np.maximum(b[wall, 0] - a[wall, 0], 1.0e-300)
        begin = np.clip((column - reach - a[wall, 0]) / size, 0.0, 1.0)
        end = np.clip((column + 1 + reach - a[wall, 0]) / size, 0.0, 1.0)
        y = a[wall, 1] + np.stack([begin, end]) * (b[wall, 1] - a[wall, 1])
        vertical = b[wall, 0] - a[wall, 0] < 1.0e-9
        y = np.where(vertical, np.stack([a[wall, 1], b[wall, 1]]), y)
        low = np.clip(np.floor(y.min(axis=0) - reach), 0, self.shape[1] - 1).astype(int)
        high = np.clip(np.floor(y.max(axis=0) + reach), 0, self.shape[1] - 1).astype(int)
        pair, row = _expanded(low, high)
        wall, column = wall[pair], column[pair]
        gap = _box_gap(a[wall], b[wall], np.stack([column, row], axis=1))
        near = gap <= reach
        cell = (column * self.shape[1] + row)[near]
        order = np.lexsort((wall[near], cell))
        return cell[order], wall[near][order], gap[near][order] * self.side

    def _neighbourhoods(
        self, walls: np.ndarray, cell: np.ndarray, wall: np.ndarray, device: wp.Device
    ) -> Neighbourhoods:
        count, (columns, rows) = len(self), self.shape
        seen = wp.zeros(count, dtype=CellNeighbourhood, device="cpu").numpy()
        parts = self.range / self.side + _WIDER
        offsets = np.arange(-int(parts) - 1, int(parts) + 2)
        aside = np.maximum(np.abs(offsets) - 1, 0)
        offsets, aside = offsets[aside <= parts], aside[aside <= parts]
        up = np.floor(np.sqrt(parts**2 - aside**2) + _WIDER).astype(int) + 1
        column = self.columns[:, None] + offsets
        known = (column >= 0) & (column < columns)
        column = np.clip(column, 0, columns - 1)
        before = np.zeros((columns, rows + 1), np.int64)  # cells with a lower number than (column, row)
        before.ravel()[:] = np.searchsorted(
            self.columns * (rows + 1) + self.rows, np.arange(columns * (rows + 1)), side="left"
        )
        low = np.clip(self.rows[:, None] - up, 0, rows)
        high = np.clip(self.rows[:, None] + up + 1, 0, rows)
        first, last = before[column, low], before[column, high] - 1
        known &= last >= first
        first, last = first[known], last[known]
        runs = known.sum(axis=1)
        seen["run"], seen["runs"] = np.cumsum(runs) - runs, runs
        run = wp.zeros(len(first), dtype=CellRun, device="cpu").numpy()
        run["first"], run["last"] = first, last
        for name, number, more in (("low", first, 0), ("high", last, 1)):
            corner = self.low + self.side * (np.stack([self.columns[number], self.rows[number]], axis=1) + more)
            wider = (2 * more - 1) * (_WIDER * self.side + _ROUNDING * np.abs(corner))
            run[name][:, :2] = corner + wider
        s = Neighbourhoods()
        begin = np.searchsorted(cell, np.arange(count + 1))
        seen["wall"], seen["walls"] = begin[:-1], np.diff(begin)
        edge = wp.zeros(len(wall), dtype=WallEdge, device="cpu").numpy()
        edge["a"][:, :2], edge["b"][:, :2] = walls[wall, 0], walls[wall, 1]
        s.cell = wp.array(seen, dtype=CellNeighbourhood, device=device)
        s.run = wp.array(run, dtype=CellRun, device=device)
        s.walls.edge = wp.array(edge, dtype=WallEdge, device=device)
        s.walls.top, s.walls.space = wp.empty(0, dtype=wp.vec3d, device=device), 0
        s.walls.own = wp.empty(0, dtype=wp.int32, device=device)
        s.walls.reach, s.walls.opaque = self.range, 1
        return s


@wp.func
def floor_cell(f: FloorCells, x: wp.vec3d) -> int:
    """The cell of a place; -1: no floor."""
    i = int(wp.floor((x[0] - f.low[0]) / f.side))
    j = int(wp.floor((x[1] - f.low[1]) / f.side))
    if i < 0 or j < 0 or i >= f.number.shape[0] or j >= f.number.shape[1]:
        return -1
    return f.number[i, j]


def _expanded(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each k with each number of first[k] … last[k]."""
    count = last - first + 1
    which = np.repeat(np.arange(len(first)), count)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]


def _box_gap(a: np.ndarray, b: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """(n,) a distance that segments ab are not nearer than to unit boxes: by the axes and the segment's own line."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    by_axes = np.linalg.norm(np.maximum(np.maximum(low - corner - 1, corner - high), 0.0), axis=1)
    along = b - a
    size = np.maximum(np.linalg.norm(along, axis=1), 1.0e-300)
    middle = corner + 0.5
    offset = np.abs(along[:, 0] * (middle - a)[:, 1] - along[:, 1] * (middle - a)[:, 0]) / size
    by_line = offset - 0.5 * np.abs(along).sum(axis=1) / size
    return np.maximum(by_axes, by_line)
