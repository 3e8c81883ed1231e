"""Whether a way or a look meets a wall, and what is left of a way that does.

Question: how far may somebody go who must not pass a wall; does a wall stand between two people?
Method:   a way and a wall are apart if a line along either of them, or a line along an axis, has them on its two sides,
          with a micrometre between. A way that is not apart from a wall goes along it instead, twice at most; then it
          is given up. Who moves away from a wall that is near cannot meet it: the distance from a straight wall along a
          straight way only grows once it grows.
Sound:    every way returned keeps a micrometre from every wall given, or gets no nearer than its start is, so that it
          crosses none; rounding is far below that where coordinates are below 10^7 m.
Known as: segment intersection by separating lines; sliding contact.
"""

from __future__ import annotations

import warp as wp

from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.crowd.agents.walls import nearest_on_segment
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
#: How near to a wall nobody gets [m].
WALL_MARGIN = 1.0e-6
_MARGIN = wp.constant(wp.float64(WALL_MARGIN))
#: Ways shorter than this are too short to have a direction [m].
_SHORT = wp.constant(wp.float64(1.0e-14))
#: Walls that one way slides along.
_SLIDES = wp.constant(3)
#: Cosine of an angle that is surely outward.
_OUTWARD = wp.constant(wp.float64(1.0e-9))
#: How much who slides along a wall turns away from it: more than that, and nothing that is seen.
_TURN = wp.constant(wp.float64(4.0e-9))
#: Steps are at most this part of how far walls are listed.
_PART = wp.constant(wp.float64(0.9))
#: Walls of a cell whose nearness is kept in one word.
MASKED = 63
_MASKED = wp.constant(MASKED)


@wp.func
def _cross(a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def may_meet(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> bool:
    """Whether the segments pq and ab meet, or nearly; never false when they do."""
    ab = b - a
    s0 = _cross(ab, p - a)
    s1 = _cross(ab, q - a)
    margin = _MARGIN * wp.length(ab)
    if (s0 > margin and s1 > margin) or (s0 < -margin and s1 < -margin):
        return False
    pq = q - p
    t0 = _cross(pq, a - p)
    t1 = _cross(pq, b - p)
    margin = _MARGIN * wp.length(pq) + _SHORT
    if (t0 > margin and t1 > margin) or (t0 < -margin and t1 < -margin):
        return False
    if wp.min(a[0], b[0]) > wp.max(p[0], q[0]) + _MARGIN or wp.max(a[0], b[0]) < wp.min(p[0], q[0]) - _MARGIN:
        return False
    return not (wp.min(a[1], b[1]) > wp.max(p[1], q[1]) + _MARGIN or wp.max(a[1], b[1]) < wp.min(p[1], q[1]) - _MARGIN)


@wp.func
def clipped_way(s: Neighbourhoods, cell: int, p: wp.vec3d, way: wp.vec3d) -> wp.vec3d:
    """What is left of a way from p in a cell: shorter than walls are listed, and along the walls it would meet."""
    size = wp.length(way)
    out = way
    if not size < wp.float64(1.0e30):  # also what is no number
        return wp.vec3d()
    if size > _PART * s.walls.reach:
        out = way * (_PART * s.walls.reach / size)
    seen = s.cell[cell]
    for _slide in range(_SLIDES + 1):
        met = int(-1)
        normal = wp.vec3d()
        least = wp.float64(wp.inf)
        for k in range(seen.wall, seen.wall + seen.walls):
            a = s.walls.edge[k].a
            b = s.walls.edge[k].b
            if may_meet(p, p + out, a, b):
                away = p - nearest_on_segment(a, b, p)
                distance = wp.length(away)
                if wp.dot(out, away) <= _OUTWARD * wp.length(out) * distance and distance < least:
                    met = k
                    least = distance
                    normal = wp.normalize(wp.vec3d(a[1] - b[1], b[0] - a[0], _ZERO))
                    if wp.abs(wp.dot(normal, away)) < wp.float64(0.5) * distance:
                        normal = away / wp.max(distance, _SHORT)  # at the end of a wall: around it
        if met < 0:
            return out
        if wp.dot(normal, p - s.walls.edge[met].a) < _ZERO:
            normal = -normal
        out = out - wp.dot(out, normal) * normal
        out = out + normal * (_TURN * wp.length(out))
    return wp.vec3d()


@wp.func
def is_hidden(s: Neighbourhoods, cell: int, x: wp.vec3d, y: wp.vec3d) -> bool:
    """Whether a wall listed in the cell of x stands between x and y; never where walls let look through."""
    if s.walls.opaque == 0:
        return False
    seen = s.cell[cell]
    for k in range(seen.wall, seen.wall + seen.walls):  # noqa: SIM110
        if may_meet(x, y, s.walls.edge[k].a, s.walls.edge[k].b):
            return True
    return False


@wp.func
def is_hidden_by(s: Neighbourhoods, cell: int, near: wp.int64, x: wp.vec3d, y: wp.vec3d) -> bool:
    """The same where bit k of `near` says whether wall k of the cell is near enough to matter."""
    seen = s.cell[cell]
    rest = near
    wall = int(seen.wall)
    while rest != wp.int64(0):
        if (rest & wp.int64(1)) != wp.int64(0):
            if may_meet(x, y, s.walls.edge[wall].a, s.walls.edge[wall].b):
                return True
        rest = rest >> wp.int64(1)
        wall += 1
    for k in range(seen.wall + _MASKED, seen.wall + seen.walls):
        if may_meet(x, y, s.walls.edge[k].a, s.walls.edge[k].b):
            return True
    return False
