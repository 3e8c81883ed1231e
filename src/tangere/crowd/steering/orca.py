"""Optimal reciprocal collision avoidance: each pair shares the change of velocity that keeps it apart for a while.

Question: what is the next velocity of an agent?
Method:   each neighbour gives a half-plane of velocities; the velocity taken is the nearest to the preferred one in all
          of them and within the top speed, by incremental linear programming; where there is none, the one that breaks
          the worst half-plane least. Walls and edges of polygonal agents are half-planes nobody shares, and come first.
          Planar: in the tangent plane on surfaces. Unlike the paper's, a wall is represented by its nearest point.
Known as: ORCA (van den Berg, Guy, Lin, Manocha, Reciprocal n-body collision avoidance, 2011); own implementation. That
          avoidance does not depend on how neighbours are found: Pitiot 2015, section 8.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import (
    BodyEdges,
    CrowdArrays,
    ball_may_be_near,
    edge_may_be_near,
    is_first_cell_seen,
    squared_edge_reach,
)
from tangere.crowd.agents.neighbour_ranges import nearest_wall_of_cell, rounded_up, squared_gap
from tangere.crowd.agents.wall_crossings import is_hidden
from tangere.crowd.agents.walls import nearest_on_segment
from tangere.runtime import SOUND, InputError, positive, whole

wp.set_module_options(SOUND)

_ZERO, _HALF, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 0.5, 1.0))
_PARALLEL = wp.constant(wp.float64(1.0e-5))
#: Neighbours that count, and lines in all: with a wall and three edges. Lines are a local array, which functions get
#: by reference: a matrix would be copied at every call.
_MOST_NEIGHBOURS = 10
_MOST_LINES = wp.constant(_MOST_NEIGHBOURS + 4)
_RANGE, _HORIZON, _WALL_HORIZON, _MAX_SPEED_FACTOR, _COUNT = (wp.constant(i) for i in range(5))

NeighbourIndices = wp.types.vector(length=_MOST_NEIGHBOURS, dtype=wp.int32)
NeighbourDistances = wp.types.vector(length=_MOST_NEIGHBOURS, dtype=wp.float64)


@dataclass(frozen=True)
class Orca:
    """Reciprocal velocity obstacles.

    Args:
        range: neighbours farther do not count [m].
        neighbours: the nearest so many count, at most 10.
        horizon, wall_horizon: no collision within this time [s].
        max_speed_factor: the most speed, as a part of the preferred one.
    """

    range: float = 1.5
    neighbours: int = 10
    horizon: float = 2.0
    wall_horizon: float = 2.0
    max_speed_factor: float = 1.3

    def __post_init__(self) -> None:
        for name in ("range", "horizon", "wall_horizon", "max_speed_factor"):
            positive(getattr(self, name), f"Orca: {name}")
        if whole(self.neighbours, "Orca: neighbours") > _MOST_NEIGHBOURS:
            raise InputError(f"Orca: neighbours must be 0 to {_MOST_NEIGHBOURS}, not {self.neighbours}")

    @property
    def steer(self) -> Any:
        """The function a step calls for each agent."""
        return steer

    def parameters(self) -> np.ndarray:
        """What the function gets."""
        return np.array([self.range, self.horizon, self.wall_horizon, self.max_speed_factor, float(self.neighbours)])


@wp.func
def _det(a: wp.vec2d, b: wp.vec2d) -> wp.float64:
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def _point(line: wp.vec4d) -> wp.vec2d:
    return wp.vec2d(line[0], line[1])


@wp.func
def _direction(line: wp.vec4d) -> wp.vec2d:
    """Of a line; what is left of it is allowed."""
    return wp.vec2d(line[2], line[3])


@wp.func
def pair_line(
    between: wp.vec2d, relative: wp.vec2d, own: wp.vec2d, radius: wp.float64, horizon: wp.float64, dt: wp.float64
) -> wp.vec4d:
    """The half-plane of one neighbour: `between` from us to it, `relative` our velocity less its own."""
    square = wp.dot(between, between)
    direction = wp.vec2d()
    u = wp.vec2d()
    if square > radius * radius:
        w = relative - between / horizon
        w_square = wp.dot(w, w)
        along = wp.dot(w, between)
        if along < _ZERO and along * along > radius * radius * w_square:
            size = wp.sqrt(w_square)
            unit = w / size
            direction = wp.vec2d(unit[1], -unit[0])
            u = (radius / horizon - size) * unit
        else:
            leg = wp.sqrt(square - radius * radius)
            if _det(between, w) > _ZERO:
                direction = (
                    wp.vec2d(between[0] * leg - between[1] * radius, between[0] * radius + between[1] * leg) / square
                )
            else:
                direction = (
                    -wp.vec2d(between[0] * leg + between[1] * radius, -between[0] * radius + between[1] * leg) / square
                )
            u = wp.dot(relative, direction) * direction - relative
    else:
        w = relative - between / dt
        size = wp.max(wp.length(w), wp.float64(1.0e-12))
        unit = w / size
        direction = wp.vec2d(unit[1], -unit[0])
        u = (radius / dt - size) * unit
    point = own + _HALF * u
    return wp.vec4d(point[0], point[1], direction[0], direction[1])


@wp.func
def _best_on_line(lines: wp.array[wp.vec4d], k: int, most: wp.float64, wanted: wp.vec2d, outward: bool) -> wp.vec3d:
    """Best velocity on line k that all lines before allow; the third part is 1, or 0 if there is none."""
    point = _point(lines[k])
    direction = _direction(lines[k])
    along = wp.dot(point, direction)
    square = along * along + most * most - wp.dot(point, point)
    if square < _ZERO:
        return wp.vec3d()
    root = wp.sqrt(square)
    left = -along - root
    right = -along + root
    for i in range(k):
        across = _det(direction, _direction(lines[i]))
        offset = _det(_direction(lines[i]), point - _point(lines[i]))
        if wp.abs(across) <= _PARALLEL:
            if offset < _ZERO:
                return wp.vec3d()
        else:
            t = offset / across
            if across >= _ZERO:
                right = wp.min(right, t)
            else:
                left = wp.max(left, t)
            if left > right:
                return wp.vec3d()
    t = wp.dot(direction, wanted - point)
    if outward:
        t = left
        if wp.dot(wanted, direction) > _ZERO:
            t = right
    t = wp.clamp(t, left, right)
    return wp.vec3d(point[0] + t * direction[0], point[1] + t * direction[1], _ONE)


@wp.func
def _best_velocity(
    lines: wp.array[wp.vec4d], count: int, most: wp.float64, wanted: wp.vec2d, outward: bool
) -> wp.vec3d:
    """Best velocity that all lines allow; the third part is the first line that fails, or their number."""
    v = wanted
    if outward:
        v = wanted * most
    elif wp.dot(wanted, wanted) > most * most:
        v = wp.normalize(wanted) * most
    for k in range(count):
        if _det(_direction(lines[k]), _point(lines[k]) - v) > _ZERO:
            better = _best_on_line(lines, k, most, wanted, outward)
            if better[2] == _ZERO:
                return wp.vec3d(v[0], v[1], wp.float64(k))
            v = wp.vec2d(better[0], better[1])
    return wp.vec3d(v[0], v[1], wp.float64(count))


@wp.func
def _least_violation(
    lines: wp.array[wp.vec4d], hard: int, count: int, begin: int, most: wp.float64, start: wp.vec2d
) -> wp.vec2d:
    """The velocity that breaks the worst of the soft lines least and no hard one."""
    v = start
    worst = wp.float64(0.0)
    bisectors = wp.zeros(_MOST_LINES, dtype=wp.vec4d)
    for k in range(begin, count):
        here = _direction(lines[k])
        if _det(here, _point(lines[k]) - v) > worst:
            rows = int(0)
            for j in range(k):
                there = _direction(lines[j])
                across = _det(here, there)
                point = _point(lines[j])
                way = there
                useful = bool(True)
                if j >= hard:
                    if wp.abs(across) <= _PARALLEL:
                        if wp.dot(here, there) > _ZERO:
                            useful = False
                        else:
                            point = _HALF * (_point(lines[k]) + _point(lines[j]))
                    else:
                        t = _det(there, _point(lines[k]) - _point(lines[j])) / across
                        point = _point(lines[k]) + t * here
                    way = wp.normalize(there - here)
                if useful:
                    bisectors[rows] = wp.vec4d(point[0], point[1], way[0], way[1])
                    rows += 1
            found = _best_velocity(bisectors, rows, most, wp.vec2d(-here[1], here[0]), True)
            # Rounding may leave nothing; the velocity before is then as good as any.
            if int(found[2]) == rows:
                v = wp.vec2d(found[0], found[1])
            worst = _det(here, _point(lines[k]) - v)
    return v


@wp.func
def _flat(v: wp.vec3d, first: wp.vec3d, second: wp.vec3d) -> wp.vec2d:
    return wp.vec2d(wp.dot(v, first), wp.dot(v, second))


@wp.func
def _one_sided_line(away: wp.vec2d, gap: wp.float64, moving: wp.float64, horizon: wp.float64) -> wp.vec4d:
    """Do not come nearer than `squared_gap` within the horizon to something that comes at us at speed `moving`."""
    least = moving - gap / horizon
    return wp.vec4d(least * away[0], least * away[1], away[1], -away[0])


@wp.func
def steer(
    c: CrowdArrays,
    m: MapArrays,
    rings: RingTable,
    e: BodyEdges,
    p: wp.array[wp.float64],
    i: int,
    preferred: wp.vec3d,
    normal: wp.vec3d,
) -> wp.vec3d:
    """The next velocity of agent i."""
    x = c.position[i]
    cell = c.cell[i]
    number = c.number[i]
    radius = c.radius[number]
    r = p[_RANGE]
    first = wp.vec3d(_ONE, _ZERO, _ZERO)
    second = wp.vec3d(_ZERO, _ONE, _ZERO)
    if c.surface == 1:
        if wp.abs(normal[0]) > wp.float64(0.9):
            first = second
        first = wp.normalize(first - wp.dot(first, normal) * normal)
        second = wp.cross(normal, first)
    who = NeighbourIndices()
    near = NeighbourDistances()
    most = int(p[_COUNT])
    count = int(0)
    # Nobody beyond the range counts, nor beyond the farthest of as many as count.
    within = r * r
    if most == 0:
        within = wp.float64(0.0)
    lines = wp.zeros(_MOST_LINES, dtype=wp.vec4d)
    rows = int(0)
    wall = nearest_wall_of_cell(c.neighbourhoods, cell, x)
    if wall.distance < r:
        away = _flat(x - wall.point, first, second) / wp.max(wall.distance, wp.float64(1.0e-12))
        lines[rows] = _one_sided_line(away, wall.distance - radius, _ZERO, p[_WALL_HORIZON])
        rows += 1
    edges_within = wp.float32(-1.0)
    here = wp.vec3f(x)
    if e.entry.shape[0] > 0:
        edges_within = squared_edge_reach(e, r)
    row = c.neighbourhoods.cell[cell].run
    for k in range(row, row + c.neighbourhoods.cell[cell].runs):
        run = c.neighbourhoods.run[k]
        apart = squared_gap(run, here)
        j = int(c.start[run.first])
        end = c.start[run.last + 1]
        if apart > rounded_up(within):
            j = end
        while j < end:
            d = wp.length_sq(x - c.position[j])
            if d < within and j != i:
                if not is_hidden(c.neighbourhoods, cell, x, c.position[j]):
                    at = int(count)
                    if count == most:
                        at = most - 1
                    else:
                        count += 1
                    while at > 0 and near[wp.max(at - 1, 0)] > d:
                        near[at] = near[at - 1]
                        who[at] = who[at - 1]
                        at -= 1
                    near[at] = d
                    who[at] = j
                    if count == most:
                        within = near[most - 1]
            j += 1
        if apart <= edges_within:
            for q in range(e.start[run.first], e.start[run.last + 1]):
                if e.entry_owner[q] >= 0 and ball_may_be_near(e.entry_ball[q], x, r):
                    place = e.entry[q]
                    g = e.edge[place]
                    if rows < 4 and edge_may_be_near(e, g, x, r):
                        if is_first_cell_seen(e, c.neighbourhoods, cell, place, here, edges_within):
                            on = nearest_on_segment(e.a[g], e.b[g], x)
                            d = wp.length(x - on)
                            if d < r and d > _ZERO:
                                away = _flat(x - on, first, second) / d
                                part = wp.length(on - e.a[g]) / wp.max(wp.length(e.b[g] - e.a[g]), wp.float64(1.0e-12))
                                rate = _flat(
                                    e.velocity_a[g] + part * (e.velocity_b[g] - e.velocity_a[g]), first, second
                                )
                                lines[rows] = _one_sided_line(away, d - radius, wp.dot(rate, away), p[_WALL_HORIZON])
                                rows += 1
    hard = rows + 0
    own = _flat(c.velocity[i], first, second)
    for k in range(count):
        j = who[k]
        between = _flat(c.position[j] - x, first, second)
        relative = own - _flat(c.velocity[j], first, second)
        lines[rows] = pair_line(between, relative, own, radius + c.radius[c.number[j]], p[_HORIZON], c.dt)
        rows += 1
    top = p[_MAX_SPEED_FACTOR] * c.speed[number]
    found = _best_velocity(lines, rows, top, _flat(preferred, first, second), False)
    v = wp.vec2d(found[0], found[1])
    failed = int(found[2])
    if failed < rows:
        v = _least_violation(lines, hard, rows, failed, top, v)
    return v[0] * first + v[1] * second
