"""Square cells over the sheets of a floor that do not know its walls, and the walls that each of them sees.

Question: whom and which walls may somebody in a cell see or meet?
Method:   cells are squares of a third of the range or less, those that touch a sheet, numbered sheet by sheet and by
          column. From a cell all cells of its sheet are seen whose squares are within the range: one run for each
          column. Walls are listed in every cell within the range of them. Over a joint, cells and walls of the other
          sheet are seen if the way from cell to joint and on to them is within the range. Range and size of cells are
          two things: a plan is never too narrow.
Sound:    squares are a little wider than they are, and walls are listed a little farther than the range. A look over
          two joints is none: nobody sees past a flight of stairs that is shorter than the range.
Known as: cell lists (linked cells) with cells smaller than the cutoff.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.crowd.agents.neighbour_ranges import CellNeighbourhood, CellRun, Neighbourhoods
from tangere.crowd.agents.walls import WallEdge
from tangere.crowd.floor.plans.building import AnyPlan
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.crowd.floor.plans.wall_raster import Raster
from tangere.runtime import SOUND, InputError

wp.set_module_options(SOUND)

#: Cells per range at least, and about how wide they are: found by trying [m].
_PARTS, _SIDE = 3, 0.6
#: More than rounding of coordinates and of boxes to float32 takes away, as parts of a side and of coordinates.
_WIDER, _ROUNDING = 1.0e-6, 2.0**-22
#: Joints are longer than they are on each side [m].
_LONGER = 4.0e-7
_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
#: Walls by cell, and cells of a raster, that fit into memory with ease.
_MOST_WALLS, _MOST_CELLS = 40_000_000, 4_000_000


@wp.struct
class FloorCells:
    """The cell of a place: number[sheet * columns + column, row], -1 where there is no floor; and sheets by number."""

    low: wp.vec2d
    side: wp.float64
    columns: int  # of a sheet
    sheets: int
    number: wp.array2d[int]
    sheet: wp.array[int]  # by cell
    slope: wp.array[wp.vec4d]  # by sheet: uphill (x, y), speed up and down as parts of that on level ground
    joint_first: wp.array[int]  # by sheet, and one more
    joint: wp.array[wp.vec4d]
    joint_to: wp.array[int]  # sheet


class CellGrid:
    """The cells of a plan.

    Args:
        plan: its sheets and joints. range: how far is seen [m].
        parts: cells per range; None: by its length. more: room for so many walls that move, in each cell.
    """

    def __init__(self, plan: AnyPlan, range: float, device: wp.Device, parts: int | None = None, more: int = 0) -> None:
        side, bounds = range / (parts or max(_PARTS, round(range / _SIDE))), plan.bounds
        width, height = bounds[2] - bounds[0], bounds[3] - bounds[1]
        while (width / side + 2) * (height / side + 2) * len(plan.sheets) > _MOST_CELLS:
            side *= 2.0
        self.side, self.range, self.more = side, range, more
        raster = Raster.around(bounds, side)
        self.low = raster.origin - 0.5 * side  # nodes of the raster are the middles of cells
        self.shape = raster.shape
        self.number = np.full((len(plan.sheets), *self.shape), -1, np.int32)
        sees, lists, count = [], [], 0
        for k, sheet in enumerate(plan.sheets):
            inside = np.cumsum(raster.cuts(sheet.sides)[0], axis=0) % 2 == 1
            cell, wall, gap = self._near_walls(sheet.sides)
            inside.ravel()[cell[gap <= _WIDER * side]] = True
            columns, rows = np.nonzero(inside)
            self.number[k][inside] = count + np.arange(len(columns), dtype=np.int32)
            if sheet.walls is not sheet.sides:
                cell, wall, _ = self._near_walls(sheet.walls)
            lists.append((k, cell, sheet.walls[wall]))
            sees.append(self._runs(columns, rows, count))
            count += len(columns)
        self.sheet = np.repeat(np.arange(len(plan.sheets)), [len(s[0]) for s in sees])
        self.columns, self.rows = (np.concatenate([s[k] for s in sees]) for k in (0, 1))
        runs = [np.concatenate([s[k] for s in sees]) for k in (2, 3, 4)]
        for joint in plan.joints:
            for own, other in (joint.sheets, joint.sheets[::-1]):
                runs = self._runs_over_joint(runs, own, other, joint.ends)
                lists.append((own, *self._walls_over_joint(plan.sheets[own].beyond[other], joint.ends)))
        self.arrays = self._floor_cells(plan, device)
        self.neighbourhoods = self._neighbourhoods(runs, lists, device)

    def __len__(self) -> int:
        return len(self.columns)

    def cells_of(self, positions: np.ndarray, sheet: np.ndarray | int = 0) -> np.ndarray:
        """(n,) the cell of each place (n, 2) of a sheet; -1 off the floor."""
        index = np.floor((positions - self.low) / self.side).astype(int)
        within = ((index >= 0) & (index < self.shape)).all(axis=1)
        index = np.where(within[:, None], index, 0)
        return np.where(within, self.number[sheet, index[:, 0], index[:, 1]], -1)

    def _floor_cells(self, plan: AnyPlan, device: wp.Device) -> FloorCells:
        f = FloorCells()
        f.low, f.side = wp.vec2d(*self.low), self.side
        f.columns, f.sheets = self.shape[0], len(plan.sheets)
        f.number = wp.array(self.number.reshape(-1, self.shape[1]), dtype=wp.int32, device=device)
        f.sheet = wp.array(self.sheet.astype(np.int32), dtype=wp.int32, device=device)
        slopes = [(*sheet.slope, sheet.up, sheet.down) for sheet in plan.sheets]
        f.slope = wp.array(np.array(slopes, float), dtype=wp.vec4d, device=device)
        ways = [(own, a + b - own, j.ends) for j in plan.joints for a, b in [j.sheets] for own in (a, b)]
        ways.sort(key=lambda way: way[0])
        first = np.searchsorted([own for own, _, _ in ways], np.arange(len(plan.sheets) + 1))
        # A little longer, so that nobody slips by the ends.
        ends = [(e + _LONGER * (e - e[::-1]) / np.linalg.norm(e[1] - e[0])).ravel() for _, _, e in ways]
        f.joint_first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
        f.joint = wp.array(np.array(ends).reshape(-1, 4), dtype=wp.vec4d, device=device)
        f.joint_to = wp.array(np.array([to for _, to, _ in ways], np.int32), dtype=wp.int32, device=device)
        return f

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

    def _runs(
        self, columns: np.ndarray, rows: np.ndarray, base: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Columns and rows of the cells of a sheet, and the runs that they see: (cell, first, last)."""
        parts = self.range / self.side + _WIDER
        offsets = np.arange(-int(parts) - 1, int(parts) + 2)
        aside = np.maximum(np.abs(offsets) - 1, 0)
        offsets, aside = offsets[aside <= parts], aside[aside <= parts]
        up = np.floor(np.sqrt(parts**2 - aside**2) + _WIDER).astype(int) + 1
        column = columns[:, None] + offsets
        known = (column >= 0) & (column < self.shape[0])
        column = np.clip(column, 0, self.shape[0] - 1)
        height = self.shape[1] + 1
        # How many cells have a lower number than (column, row).
        before = np.searchsorted(columns * height + rows, np.arange(self.shape[0] * height)).reshape(-1, height)
        low = np.clip(rows[:, None] - up, 0, self.shape[1])
        high = np.clip(rows[:, None] + up + 1, 0, self.shape[1])
        first, last = before[column, low], before[column, high] - 1
        known &= last >= first
        cell = np.repeat(np.arange(len(columns)), known.sum(axis=1))
        return columns, rows, base + cell, base + first[known], base + last[known]

    def _gaps_to(self, ends: np.ndarray, sheet: int) -> tuple[np.ndarray, np.ndarray]:
        """Cells of a sheet within the range of a line, and how far they surely are not from it [m]."""
        node, _, gap = self._near_walls(ends[None])
        cell = self.number[sheet].ravel()[node]
        return cell[cell >= 0], gap[cell >= 0]

    def _runs_over_joint(self, runs: list[np.ndarray], own: int, other: int, ends: np.ndarray) -> list[np.ndarray]:
        """The same, and the cells of another sheet that are seen over a joint, each a run."""
        reach = self.range * (1.0 + 1.0e-6)
        cell, gap = self._gaps_to(ends, own)
        there, beyond = self._gaps_to(ends, other)
        order = np.argsort(there)
        there, beyond = there[order], beyond[order]
        i, j = np.nonzero(gap[:, None] + beyond <= reach)
        away = np.abs(np.stack([k[cell[i]] - k[there[j]] for k in (self.columns, self.rows)])) - 1
        near = np.linalg.norm(np.maximum(away, 0), axis=0) * self.side <= reach
        i, j = i[near], j[near]
        # Consecutive numbers of one column are one run.
        begins = np.ones(len(i), bool)
        begins[1:] = (i[1:] != i[:-1]) | (there[j[1:]] != there[j[:-1]] + 1)
        begins[1:] |= self.columns[there[j[1:]]] != self.columns[there[j[:-1]]]
        start = np.flatnonzero(begins)
        end = np.append(start[1:], len(i)) - 1 if len(i) else start
        more = [cell[i[start]], there[j[start]], there[j[end]]]
        joined = [np.concatenate(pair) for pair in zip(runs, more, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        return [values[order] for values in joined]

    def _walls_over_joint(self, walls: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of cells, and the walls beyond a joint that they see."""
        reach = self.range * (1.0 + 1.0e-6) + _WIDER * self.side
        shapely = shapely_library()
        behind = shapely.distance(shapely.linestrings(walls), shapely.linestrings(ends)) if len(walls) else np.empty(0)
        walls, behind = walls[behind <= reach], behind[behind <= reach]
        if len(walls) == 0:
            return np.empty(0, int), walls
        node, wall, _ = self._near_walls(walls)
        near, _, gap = self._near_walls(ends[None])
        at = np.minimum(np.searchsorted(near, node), len(near) - 1)
        seen = (near[at] == node) & (gap[at] + behind[wall] <= reach)
        return node[seen], walls[wall[seen]]

    def _neighbourhoods(
        self, runs: list[np.ndarray], lists: list[tuple[int, np.ndarray, np.ndarray]], device: wp.Device
    ) -> Neighbourhoods:
        """Runs: cell, first, last, by cell. lists: a sheet, nodes of cells, and a wall that each of them sees."""
        count = len(self)
        seen = wp.zeros(count, dtype=CellNeighbourhood, device="cpu").numpy()
        begin = np.searchsorted(runs[0], np.arange(count + 1))
        seen["run"], seen["runs"] = begin[:-1], np.diff(begin)
        first, last = runs[1:]
        run = wp.zeros(len(first), dtype=CellRun, device="cpu").numpy()
        run["first"], run["last"] = first, last
        for name, number, more in (("low", first, 0), ("high", last, 1)):
            corner = self.low + self.side * (np.stack([self.columns[number], self.rows[number]], axis=1) + more)
            wider = (2 * more - 1) * (_WIDER * self.side + _ROUNDING * np.abs(corner))
            run[name][:, :2] = corner + wider
        cell = np.concatenate([self.number[sheet].ravel()[node] for sheet, node, _ in lists])
        wall = np.concatenate([walls for _, _, walls in lists])
        order = np.argsort(np.where(cell < 0, count, cell), kind="stable")[: int((cell >= 0).sum())]
        cell, wall = cell[order], wall[order]
        if len(lists) > 1:
            cell, wall = _once(cell, wall)
        s = Neighbourhoods()
        begin = np.searchsorted(cell, np.arange(count + 1))
        self.static_walls = np.diff(begin)
        place = np.arange(len(wall)) + self.more * cell
        if self.more and (len(wall) + self.more * count) > _MOST_WALLS:
            raise InputError(f"obstacles: {self.more} sides are too many for the {count} cells of this plan")
        seen["wall"], seen["walls"] = begin[:-1] + self.more * np.arange(count), self.static_walls
        edge = wp.zeros(len(wall) + self.more * count, dtype=WallEdge, device="cpu").numpy()
        edge["a"][place, :2], edge["b"][place, :2] = wall[:, 0], wall[:, 1]
        s.cell = wp.array(seen, dtype=CellNeighbourhood, device=device)
        s.run = wp.array(run, dtype=CellRun, device=device)
        s.walls.edge = wp.array(edge, dtype=WallEdge, device=device)
        s.walls.top, s.walls.space = wp.empty(0, dtype=wp.vec3d, device=device), 0
        s.walls.own = wp.empty(0, dtype=wp.int32, device=device)
        s.walls.reach, s.walls.opaque = self.range, 1
        return s


@wp.func
def sheet_of(f: FloorCells, cell: int) -> int:
    """The sheet that a cell is on."""
    if f.sheets == 1:
        return 0
    return f.sheet[cell]


@wp.func
def crossing(line: wp.vec4d, p: wp.vec3d, q: wp.vec3d) -> wp.float64:
    """One more than the part of pq at which it crosses a line, negative from right to left of it; inf: nowhere."""
    ax = line[0]
    ay = line[1]
    dx = line[2] - ax
    dy = line[3] - ay
    s0 = dx * (p[1] - ay) - dy * (p[0] - ax)
    s1 = dx * (q[1] - ay) - dy * (q[0] - ax)
    if (s0 > _ZERO) == (s1 > _ZERO):
        return wp.float64(wp.inf)
    part = s0 / (s0 - s1)
    along = (p[0] + part * (q[0] - p[0]) - ax) * dx + (p[1] + part * (q[1] - p[1]) - ay) * dy
    if along < _ZERO or along > dx * dx + dy * dy:
        return wp.float64(wp.inf)
    if s0 > _ZERO:
        return part + _ONE
    return -part - _ONE


@wp.func
def _first_joint(f: FloorCells, sheet: int, from_sheet: int, p: wp.vec3d, q: wp.vec3d) -> wp.vec2d:
    """The joint of a sheet that a way crosses first, -1: none, and at which part of it; not those to `from_sheet`."""
    found = wp.vec2d(-_ONE, wp.float64(wp.inf))
    for k in range(f.joint_first[sheet], f.joint_first[sheet + 1]):
        if f.joint_to[k] != from_sheet:
            part = wp.abs(crossing(f.joint[k], p, q)) - _ONE
            if part < found[1]:
                found = wp.vec2d(wp.float64(k), part)
    return found


@wp.func
def place_after(f: FloorCells, sheet: int, p: wp.vec3d, q: wp.vec3d) -> wp.vec4d:
    """Where a way from p on a sheet to q ends, and on which sheet: it crosses one joint, and ends before a second."""
    out = wp.vec4d(q[0], q[1], _ZERO, wp.float64(sheet))
    if f.sheets == 1:
        return out
    first = _first_joint(f, sheet, -1, p, q)
    if first[0] < _ZERO:
        return out
    other = f.joint_to[int(first[0])]
    out[3] = wp.float64(other)
    second = _first_joint(f, other, sheet, p, q)
    if second[0] >= _ZERO and second[1] > first[1]:
        part = wp.float64(0.5) * (first[1] + second[1])
        out[0] = p[0] + part * (q[0] - p[0])
        out[1] = p[1] + part * (q[1] - p[1])
    return out


@wp.func
def floor_cell(f: FloorCells, sheet: int, x: wp.vec3d) -> int:
    """The cell of a place on a sheet; -1: no floor."""
    i = int(wp.floor((x[0] - f.low[0]) / f.side))
    j = int(wp.floor((x[1] - f.low[1]) / f.side))
    if i < 0 or j < 0 or i >= f.columns or j >= f.number.shape[1]:
        return -1
    return f.number[sheet * f.columns + i, j]


def _once(cell: np.ndarray, wall: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walls by cell without those that are there already, in either direction."""
    a, b = wall[:, 0], wall[:, 1]
    turned = (a[:, 0] > b[:, 0]) | ((a[:, 0] == b[:, 0]) & (a[:, 1] > b[:, 1]))
    ends = np.where(turned[:, None, None], wall[:, ::-1], wall).reshape(-1, 4)
    rows = np.column_stack([cell, ends])
    kept = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return cell[kept], wall[kept]


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
