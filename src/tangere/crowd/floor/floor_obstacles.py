"""Obstacles of any polygon that move over a floor, turn, and wait for people who are in their way.

Question: where is an obstacle now, who is stopped by it, and may it go on?
Method:   an obstacle is a polygon and a path: places and angles at times, straight between. Its sides are walls of the
          cells that see them, listed anew after each step. People go first, around the obstacles as they are; then each
          obstacle goes on, unless it would get nearer than touching to somebody, or over him: then its clock stops.
Sound:    nobody passes a side: people are stopped by those as they are, and an obstacle goes on only if in its frame
          nobody's way meets a side, with more than the arc of a turn to spare.
Known as: kinematic obstacles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.crowd.agents.arrays import CrowdArrays
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.crowd.agents.walls import nearest_on_segment
from tangere.crowd.floor.cell_grid import CellGrid, FloorCells, sheet_of
from tangere.crowd.floor.plans.building import AnyPlan
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.crowd.floor.plans.sheets import segments_of
from tangere.runtime import SOUND, InputError, PreparedLaunch

wp.set_module_options(SOUND)

_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
#: How near nobody's way gets to a side of an obstacle that goes on [m]: more than who is on it would need to get away.
_MARGIN = wp.constant(wp.float64(4.0e-6))
#: Of a turn by an angle, how far an arc is from its chord: this part of its square, times the distance.
_ARC = wp.constant(wp.float64(0.125))


@dataclass(eq=False)
class FloorObstacle:
    """An obstacle on a floor; `add_obstacle` of a simulation makes it."""

    number: int
    area: Any  #: the polygon where its path is (0, 0) and no turn
    path: np.ndarray  #: (k, 4) time [s], displacement [m, m] and turn about its middle [rad]
    sheet: int
    name: str
    _times: tuple[float, float] = (0.0, 0.0)
    _table: ObstacleTable | None = None

    @property
    def clock(self) -> float:
        """How far it is on its path [s]."""
        return self._times[0] if self._table is None else float(self._table.clock.numpy()[self.number])

    @property
    def waited(self) -> float:
        """For people [s]."""
        return self._times[1] if self._table is None else float(self._table.waited.numpy()[self.number])

    def follow(self, table: ObstacleTable) -> None:
        """Be where a table says from now on."""
        self._times, self._table = (self.clock, self.waited), table

    def __repr__(self) -> str:
        return f"FloorObstacle({self.name}, {self.clock:.2f} s on its path, waited {self.waited:.2f} s)"

    @property
    def pose(self) -> tuple[float, float, float]:
        """Displacement and turn now [m, m, rad]."""
        x, y, turn = (float(np.interp(self.clock, self.path[:, 0], self.path[:, k])) for k in (1, 2, 3))
        return x, y, turn

    @property
    def middle(self) -> tuple[float, float]:
        """What it turns about, before it moves [m]."""
        point = self.area.centroid
        return point.x, point.y

    @property
    def area_now(self) -> Any:
        """The polygon where it is now."""
        return posed(self.area, self.pose)


def posed(area: Any, pose: Any) -> Any:
    """A polygon moved by (x, y) and turned about its middle."""
    x, y, turn = pose
    about, (cosine, sine) = np.array(area.centroid.coords[0]), (np.cos(turn), np.sin(turn))
    turned = np.array([[cosine, -sine], [sine, cosine]])
    return shapely_library().transform(area, lambda p: (p - about) @ turned.T + about + [x, y])


def checked_path(path: Any) -> np.ndarray:
    """(k, 4) of rows (time, x, y) or (time, x, y, turn); None: it stays."""
    try:
        rows = np.array([[0.0, 0.0, 0.0, 0.0]] if path is None else path, float)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.ndim != 2 or rows.shape[1] not in (3, 4) or len(rows) == 0 or not np.isfinite(rows).all():
        raise InputError("path must be rows of (time, x, y) or (time, x, y, turn)")
    if (np.diff(rows[:, 0]) <= 0).any() or rows[0, 0] < 0:
        raise InputError("path: times must rise from 0 on")
    return rows if rows.shape[1] == 4 else np.column_stack([rows, np.zeros(len(rows))])


@wp.struct
class ObstacleTable:
    """By obstacle; sides and paths one after the other."""

    side_first: wp.array[int]  # and one more
    side: wp.array[wp.vec4d]  # about the middle of the obstacle
    middle: wp.array[wp.vec2d]
    size: wp.array[wp.float64]  # how far its farthest corner is from its middle [m]
    path_first: wp.array[int]  # and one more
    path: wp.array[wp.vec4d]
    sheet: wp.array[int]
    joined: wp.array2d[int]  # by sheet: whether two are one or joined
    clock: wp.array[wp.float64]
    waited: wp.array[wp.float64]
    unmoving: wp.array[int]  # by cell: walls that do not move
    corner: wp.array[wp.vec2d]  # by cell: the least one


def obstacle_table(obstacles: list[FloorObstacle], plan: AnyPlan, grid: CellGrid, device: wp.Device) -> ObstacleTable:
    """The obstacles for kernels, as they are now."""
    t = ObstacleTable()
    middles = np.array([o.middle for o in obstacles]).reshape(-1, 2)
    sides = [(segments_of(o.area) - middle).reshape(-1, 4) for o, middle in zip(obstacles, middles, strict=True)]
    joined = np.eye(len(plan.sheets), dtype=np.int32)
    for joint in plan.joints:
        joined[joint.sheets], joined[joint.sheets[::-1]] = 1, 1
    whole = {
        "side_first": np.cumsum([0, *map(len, sides)]),
        "path_first": np.cumsum([0, *(len(o.path) for o in obstacles)]),
        "sheet": [o.sheet for o in obstacles],
        "unmoving": grid.static_walls,
    }
    for name, values in whole.items():
        setattr(t, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=device))
    t.side = wp.array(np.concatenate([np.empty((0, 4)), *sides]), dtype=wp.vec4d, device=device)
    t.path = wp.array(np.concatenate([np.empty((0, 4)), *(o.path for o in obstacles)]), dtype=wp.vec4d, device=device)
    t.middle = wp.array(middles, dtype=wp.vec2d, device=device)
    sizes = [float(np.linalg.norm(s.reshape(-1, 2), axis=1).max()) for s in sides]
    t.size = wp.array(sizes, dtype=wp.float64, device=device)
    t.joined = wp.array(joined, dtype=wp.int32, device=device)
    t.clock = wp.array([o.clock for o in obstacles], dtype=wp.float64, device=device)
    t.waited = wp.array([o.waited for o in obstacles], dtype=wp.float64, device=device)
    corners = grid.low + grid.side * np.stack([grid.columns, grid.rows], axis=1)
    t.corner = wp.array(corners, dtype=wp.vec2d, device=device)
    return t


def obstacle_launches(
    t: ObstacleTable, crowd: CrowdArrays, cells: FloorCells, live: wp.array, device: wp.Device
) -> list[PreparedLaunch]:
    """What to run after people have been sorted: obstacles go on, and sides are listed; the last alone at first."""
    moving = PreparedLaunch(_go_on, [t, crowd, cells, live], device, dim=len(t.clock), grain=1)
    inputs = [t, cells, crowd.neighbourhoods]
    return [moving, PreparedLaunch(_list_sides, inputs, device, dim=len(t.corner), grain=256)]


@wp.func
def _pose(t: ObstacleTable, o: int, clock: wp.float64) -> wp.vec3d:
    """Displacement and turn at a time of the path."""
    first = t.path_first[o]
    last = t.path_first[o + 1] - 1
    k = int(first)
    while k < last and t.path[wp.min(k + 1, last)][0] <= clock:
        k += 1
    a = t.path[k]
    if k == last or clock <= a[0]:
        return wp.vec3d(a[1], a[2], a[3])
    b = t.path[k + 1]
    part = (clock - a[0]) / (b[0] - a[0])
    return wp.vec3d(a[1] + part * (b[1] - a[1]), a[2] + part * (b[2] - a[2]), a[3] + part * (b[3] - a[3]))


@wp.func
def _into_frame(t: ObstacleTable, o: int, pose: wp.vec3d, x: wp.vec3d) -> wp.vec3d:
    """A place as seen from an obstacle."""
    dx = x[0] - t.middle[o][0] - pose[0]
    dy = x[1] - t.middle[o][1] - pose[1]
    cosine = wp.cos(pose[2])
    sine = wp.sin(pose[2])
    return wp.vec3d(cosine * dx + sine * dy, cosine * dy - sine * dx, _ZERO)


@wp.func
def _out_of_frame(t: ObstacleTable, o: int, pose: wp.vec3d, x: wp.float64, y: wp.float64) -> wp.vec3d:
    cosine = wp.cos(pose[2])
    sine = wp.sin(pose[2])
    return wp.vec3d(
        t.middle[o][0] + pose[0] + cosine * x - sine * y, t.middle[o][1] + pose[1] + sine * x + cosine * y, _ZERO
    )


@wp.func
def is_in_obstacle(t: ObstacleTable, sheet: int, x: wp.vec3d, radius: wp.float64) -> bool:
    """Whether somebody at a place would be in an obstacle, or touch it."""
    for o in range(t.clock.shape[0]):
        if t.sheet[o] == sheet:
            p = _into_frame(t, o, _pose(t, o, t.clock[o]), x)
            if wp.length(p) <= t.size[o] + radius:
                odd = int(0)
                for k in range(t.side_first[o], t.side_first[o + 1]):
                    w = t.side[k]
                    a = wp.vec3d(w[0], w[1], _ZERO)
                    b = wp.vec3d(w[2], w[3], _ZERO)
                    if wp.length(p - nearest_on_segment(a, b, p)) <= radius:
                        return True
                    if (w[1] > p[1]) != (w[3] > p[1]):
                        if p[0] < w[0] + (p[1] - w[1]) / (w[3] - w[1]) * (w[2] - w[0]):
                            odd = 1 - odd
                if odd == 1:
                    return True
    return False


@wp.func
def _cross(a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def _segments_apart(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """How far two segments are from each other [m]."""
    s0 = _cross(b - a, p - a)
    s1 = _cross(b - a, q - a)
    t0 = _cross(q - p, a - p)
    t1 = _cross(q - p, b - p)
    if ((s0 > _ZERO) != (s1 > _ZERO)) and ((t0 > _ZERO) != (t1 > _ZERO)):
        return _ZERO
    least = wp.min(wp.length(p - nearest_on_segment(a, b, p)), wp.length(q - nearest_on_segment(a, b, q)))
    return wp.min(least, wp.min(wp.length(a - nearest_on_segment(p, q, a)), wp.length(b - nearest_on_segment(p, q, b))))


@wp.func
def _stands_in_the_way(
    t: ObstacleTable, o: int, before: wp.vec3d, after: wp.vec3d, x: wp.vec3d, radius: wp.float64
) -> bool:
    """Whether an obstacle that goes from one pose to another would meet somebody, or come nearer than touching."""
    p = _into_frame(t, o, before, x)
    way = wp.length(_into_frame(t, o, after, x) - p)
    if wp.length(p) > t.size[o] + radius + way + _MARGIN:
        return False
    q = _into_frame(t, o, after, x)
    turn = after[2] - before[2]
    spare = _MARGIN + _ARC * turn * turn * (wp.max(wp.length(p), wp.length(q)) + way)
    near = wp.float64(wp.inf)
    then = wp.float64(wp.inf)
    for k in range(t.side_first[o], t.side_first[o + 1]):
        a = wp.vec3d(t.side[k][0], t.side[k][1], _ZERO)
        b = wp.vec3d(t.side[k][2], t.side[k][3], _ZERO)
        if _segments_apart(p, q, a, b) <= spare:
            return True
        near = wp.min(near, wp.length(p - nearest_on_segment(a, b, p)))
        then = wp.min(then, wp.length(q - nearest_on_segment(a, b, q)))
    return then < radius and then < near


@wp.kernel
def _go_on(first: int, t: ObstacleTable, c: CrowdArrays, f: FloorCells, live: wp.array[int]):
    o = first + wp.tid()
    before = _pose(t, o, t.clock[o])
    after = _pose(t, o, t.clock[o] + c.dt)
    free = bool(True)
    if before[0] != after[0] or before[1] != after[1] or before[2] != after[2]:
        for i in range(live[0]):
            if free and t.joined[sheet_of(f, c.cell[i]), t.sheet[o]] == 1:
                if _stands_in_the_way(t, o, before, after, c.position[i], c.radius[c.number[i]]):
                    free = False
    if free:
        t.clock[o] = t.clock[o] + c.dt
    else:
        t.waited[o] = t.waited[o] + c.dt


@wp.kernel
def _list_sides(first: int, t: ObstacleTable, f: FloorCells, s: Neighbourhoods):
    cell = first + wp.tid()
    low = t.corner[cell]
    middle = wp.vec3d(low[0] + wp.float64(0.5) * f.side, low[1] + wp.float64(0.5) * f.side, _ZERO)
    reach = s.walls.reach * wp.float64(1.0 + 1.0e-6) + f.side  # more than from the middle of a cell to its corner
    begin = s.cell[cell].wall
    count = int(t.unmoving[cell])
    for o in range(t.clock.shape[0]):
        if t.joined[sheet_of(f, cell), t.sheet[o]] == 1:
            pose = _pose(t, o, t.clock[o])
            away = wp.length(_into_frame(t, o, pose, middle))
            if away <= t.size[o] + reach:
                for k in range(t.side_first[o], t.side_first[o + 1]):
                    side = t.side[k]
                    a = _out_of_frame(t, o, pose, side[0], side[1])
                    b = _out_of_frame(t, o, pose, side[2], side[3])
                    if wp.length(middle - nearest_on_segment(a, b, middle)) <= reach:
                        s.walls.edge[begin + count].a = a
                        s.walls.edge[begin + count].b = b
                        count += 1
    s.cell[cell].walls = count
