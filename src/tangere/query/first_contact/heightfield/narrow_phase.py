"""When does a moving body reach one piece of ground: a square of planar ground, or a triangle?

It is approached with the direction of the nearest points (`gap`) until `separation + tolerance` is reached; a step
leaves half of the tolerance, so the body cannot get past.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.height_pyramid import Terrain, node_heights
from tangere.query.contacts.record import Status
from tangere.query.first_contact.heightfield.gjk import Corners, Gap, gap_of
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapeBounds, outline_at, safe_time_of
from tangere.runtime import SOUND
from tangere.shape.analytic import support_value_of

wp.set_module_options(SOUND)

#: Steps after which ground that is neither reached nor left behind is given up as undecided from there on.
MOST_STEPS = wp.constant(10_000)
_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
CONTACT = wp.constant(int(Status.CONTACT))
START = wp.constant(int(Status.START))
UNRESOLVED = wp.constant(int(Status.UNRESOLVED))


@wp.struct
class Leaf:
    time: wp.float64
    status: wp.int32
    gap: Gap


@cache
def reached_of(kind: int) -> wp.Function:
    """`reached(m, corners, part, tau, until) -> Leaf` for bodies of a kind."""
    gap, reach, safe_time = gap_of(kind), support_value_of(kind), safe_time_of(kind)

    @wp.func
    def reached(m: MovingShapeBounds, corners: Corners, part: int, tau: wp.float64, until: wp.float64) -> Leaf:
        """When the body first comes within tolerance of a piece of ground; status FREE if not before `until`."""
        leaf = Leaf()
        leaf.time = tau
        contact = m.separation + m.tolerance
        keep = m.separation + _HALF * m.tolerance
        n = facing(corners, part)
        careful = bool(False)
        steps = int(0)
        while steps < MOST_STEPS:
            steps += 1
            o = outline_at(m, leaf.time)
            seen = seen_from(corners, o.centre, part)
            # Every other time the last direction will do: what it separates is evaluated all the same.
            low = -reach(o.core, m.hulls, -n) - wp.max(seen * n) - m.radius
            if careful:
                passing = keep + m.fastest * (until - leaf.time) + m.slack
                leaf.gap = gap(o.core, m.hulls, m.radius, seen, n, m.separation, wp.float64(0.1) * m.tolerance, passing)
                n = leaf.gap.normal
                low = leaf.gap.low
                if leaf.gap.high <= contact or not low > keep:
                    leaf.status = CONTACT
                    if leaf.gap.high > contact:
                        leaf.status = UNRESOLVED
                    elif leaf.gap.high <= _ZERO and leaf.time == _ZERO:
                        leaf.status = START
                    return leaf
            if low > keep:
                time = safe_time(m, o, n, low - keep, leaf.time)
                if time > until:
                    leaf.time = time
                    return leaf
                if careful and not time > leaf.time:
                    leaf.status = UNRESOLVED
                    return leaf
                leaf.time = wp.max(time, leaf.time)
            careful = not careful
        leaf.status = UNRESOLVED
        return leaf

    return reached


@wp.func
def facing(corners: Corners, part: int) -> wp.vec3d:
    """Upward unit normal of the square, or of its triangle T0 (part 1) or T1 (part 2)."""
    along_x = wp.vec3d(corners[1, 0] - corners[0, 0], _ZERO, corners[1, 2] - corners[0, 2])
    along_y = wp.vec3d(_ZERO, corners[2, 1] - corners[0, 1], corners[2, 2] - corners[0, 2])
    if part == 2:
        along_x[2] = corners[3, 2] - corners[2, 2]
        along_y[2] = corners[3, 2] - corners[1, 2]
    return wp.normalize(wp.cross(along_x, along_y))


@wp.func
def square_corners(t: Terrain, level: int, row: int, column: int) -> Corners:
    """Corners V0, V1, V2, V3 of a node, relative to the terrain's origin."""
    h = node_heights(t, level, row, column)
    x = wp.float64(column << level) * t.dx
    y = wp.float64(row << level) * t.dy
    far_x = wp.float64((column + 1) << level) * t.dx
    far_y = wp.float64((row + 1) << level) * t.dy
    return Corners(x, y, h[0], far_x, y, h[1], x, far_y, h[2], far_x, far_y, h[3])


@wp.func
def seen_from(corners: Corners, centre: wp.vec3d, part: int) -> Corners:
    """The square (part 0), or its triangle T0 (1) or T1 (2), relative to a body's origin."""
    seen = Corners()
    for k in range(4):
        own = wp.clamp(k, wp.where(part == 2, 1, 0), wp.where(part == 1, 2, 3))
        for c in range(3):
            seen[k, c] = corners[own, c] - centre[c]
    return seen
