"""The search for a body's first contact with the ground: one thread per body, depth first through the pyramid.

Each node of the pyramid has its own time until which the body certainly stays clear of it: a plane between the body now
and the node's box, kept for as long as the body's motion allows (`motion_bounds`). A node is tried again from there as
long as that takes the body on; then its children are. What comes after the earliest contact known is dropped, and one
that is known beforehand, from some instants, makes that bound tight from the start. Measured at 4 cm cells: trying a
node again, and directions from the body's axis, leave 31 of 355 triangles to approach (`narrow_phase`).

Known as: conservative advancement (Mirtich 1996) over a maximum-minimum pyramid of heights.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.height_pyramid import (
    GAP,
    PLANAR,
    NodeStack,
    Terrain,
    cell_window,
    height_at,
    node_bounds,
    node_column,
    node_flags,
    node_key,
    node_level,
    node_row,
    start_level,
)
from tangere.motion.bounds import reparametrised_time
from tangere.query.contacts.record import Status
from tangere.query.first_contact.heightfield.gjk import Corners, gap_of
from tangere.query.first_contact.heightfield.motion_bounds import (
    MovingShapeBounds,
    MovingShapes,
    Outline,
    moving_shape_bounds_of,
    outline_at,
    safe_time_of,
)
from tangere.query.first_contact.heightfield.narrow_phase import Leaf, reached_of, seen_from, square_corners
from tangere.query.intersection.cylinder_heightfield import cylinder_touches, upright_cylinder
from tangere.runtime import SOUND
from tangere.shape.analytic import CYLINDER, support_of, support_value_of

wp.set_module_options(SOUND)

#: Attempts to prove that contact does happen, each twice as long after the first time.
PROOFS = wp.constant(5)

#: A node is tried again after a step that is this part of the time left, else its children are.
ON = wp.constant(wp.float64(0.1))
#: Directions tried between a body and a node.
DIRECTIONS = wp.constant(6)

#: The body is looked at so many times, evenly, until it is in the ground, then so often, halving the time before.
SAMPLES = wp.constant(16)
HALVINGS = wp.constant(10)

TimeStack = wp.types.vector(length=80, dtype=wp.float64)

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
_NEVER = wp.constant(wp.float64(1.0e30))
_INFINITE = wp.constant(wp.float64(float("inf")))

FREE = wp.constant(int(Status.FREE))
CONTACT = wp.constant(int(Status.CONTACT))
START = wp.constant(int(Status.START))


@wp.struct
class Answer:
    """What one body finds; lengths in metres, world."""

    time: wp.float64
    time_upper: wp.float64
    status: wp.int32
    point_a: wp.vec3d  # of the body
    point_b: wp.vec3d  # of the ground
    normal: wp.vec3d
    tolerance: wp.float64  # that was kept
    rise: wp.float64  # how far up all ground is below the body, where a part of it may be below at the start; else 0


@wp.struct
class EarliestGroundHit:
    """The piece of ground that is reached first."""

    leaf: Leaf
    key: wp.int64
    corners: Corners
    part: wp.int32


@wp.func
def comes_before(leaf: Leaf, key: wp.int64, best: EarliestGroundHit) -> bool:
    """Whether a contact is to be reported instead of the one known: earlier, or an overlap, or first in the grid."""
    if best.leaf.status == FREE or leaf.time != best.leaf.time:
        return best.leaf.status == FREE or leaf.time < best.leaf.time
    if (leaf.status == START) != (best.leaf.status == START):
        return leaf.status == START
    return key < best.key


@wp.func
def direction_of(k: int, x: wp.vec3d, y: wp.vec3d, nearest: wp.vec3d, axis: wp.vec3d) -> wp.vec3d:
    """The k-th unit direction that may separate a body at the origin from the box [x, y]; zero where there is none.

    Up or down; from the box's nearest point to the axis; along the axis; from the nearest point to the origin; along x
    and along y.
    """
    n = wp.vec3d()
    if k == 0:
        n[2] = wp.where(x[2] > _ZERO, -_ONE, _ONE)
    elif k == 1:
        n = wp.normalize(wp.dot(nearest, axis) * axis - nearest)
    elif k == 2:
        n = wp.where(wp.dot(nearest, axis) > _ZERO, -axis, axis)
    elif k == 3:
        n = -wp.normalize(nearest)
    else:
        n[k - 4] = wp.where(x[k - 4] + y[k - 4] > _ZERO, -_ONE, _ONE)
    return n


@wp.func
def sample(k: int) -> wp.float64:
    """1, 1/2, 3/4, 1/4, 7/8, …: the k-th of SAMPLES times, each half-way between those before."""
    bits = (k & 1) * 8 + (k & 2) * 2 + ((k & 4) >> 1) + ((k & 8) >> 3)
    return _ONE - wp.float64(bits) / wp.float64(SAMPLES)


@wp.func
def _cylinder_is_touching(t: Terrain, o: Outline) -> bool:
    return cylinder_touches(t, upright_cylinder(o.centre, o.core.axis, o.core.radius, o.core.reach))


@wp.func
def _is_touching_unknown(t: Terrain, o: Outline) -> bool:
    return False


@wp.func
def rise_beside_gaps(t: Terrain, centre: wp.vec3d, reach: wp.float64) -> wp.float64:
    """How far up a ball is above all ground around it; 0 if it is so already, or no cell around it lacks ground.

    Where none lacks it, a body that does not touch the surface is above it or below, all of it.
    """
    around = wp.vec3d(reach, reach, reach)
    window = cell_window(t, centre - around, centre + around)
    highest = centre[2] - reach
    gaps = centre[0] < reach or centre[1] < reach  # beyond the far borders there are cells, without ground
    if window[0] <= window[1] and window[2] <= window[3]:
        level = start_level(t, window)
        for i in range(window[0] >> level, (window[1] >> level) + 1):
            for j in range(window[2] >> level, (window[3] >> level) + 1):
                gaps = gaps or (node_flags(t, level, i, j) & GAP) != 0
                highest = wp.max(highest, wp.float64(node_bounds(t, level, i, j)[1]))
    return wp.where(gaps, highest - (centre[2] - reach), _ZERO)


@cache
def search_kernel(kind: int) -> wp.Kernel:
    """The search for bodies of a kind (ROUND, CYLINDER, CONE or HULL)."""
    support, reach = support_of(kind), support_value_of(kind)
    gap, reached, safe_time = gap_of(kind), reached_of(kind), safe_time_of(kind)
    is_touching = _cylinder_is_touching if kind == CYLINDER else _is_touching_unknown

    @wp.func
    def clear_until(
        t: Terrain, m: MovingShapeBounds, o: Outline, level: int, row: int, column: int, tau: wp.float64
    ) -> wp.float64:
        """Until when the body certainly stays clear of a node; tau itself where nothing separates them now."""
        bounds = node_bounds(t, level, row, column)
        if bounds[0] > bounds[1]:
            return _NEVER
        low = wp.vec3d(wp.float64(column << level) * t.dx, wp.float64(row << level) * t.dy, wp.float64(bounds[0]))
        high = wp.vec3d(
            wp.float64((column + 1) << level) * t.dx,
            wp.float64((row + 1) << level) * t.dy,
            wp.float64(bounds[1]),
        )
        x = low - o.centre
        y = high - o.centre
        keep = m.radius + m.separation + _HALF * m.tolerance + m.slack
        nearest = wp.vec3d(wp.clamp(_ZERO, x[0], y[0]), wp.clamp(_ZERO, x[1], y[1]), wp.clamp(_ZERO, x[2], y[2]))
        best = wp.vec3d()
        most = _ZERO + _ZERO
        k = int(0)
        while k < DIRECTIONS:  # not a range, which would be unrolled
            n = direction_of(k, x, y, nearest, o.core.axis)
            k += 1
            ground = wp.max(n[0] * x[0], n[0] * y[0]) + wp.max(n[1] * x[1], n[1] * y[1])
            ground += wp.max(n[2] * x[2], n[2] * y[2])
            spare = -reach(o.core, m.hulls, -n) - ground - keep
            if spare > most:
                most = spare
                best = n
        until = tau + _ZERO  # a copy
        if most > _ZERO:
            until = safe_time(m, o, best, most, tau)
        return until

    @wp.func
    def is_in_ground(t: Terrain, m: MovingShapeBounds, tau: wp.float64) -> bool:
        """Whether the body touches the surface or its lowest point is below."""
        down = wp.vec3d(_ZERO, _ZERO, -_ONE)
        o = outline_at(m, tau)
        lowest = o.centre + support(o.core, m.hulls, down) + m.radius * down
        if height_at(t, lowest[0], lowest[1]) > lowest[2] + m.slack:
            return True
        return is_touching(t, o)

    @wp.func
    def is_on_ground(t: Terrain, m: MovingShapeBounds, o: Outline, n: wp.vec3d) -> bool:
        """Whether the body just touches the ground, n pointing away from it: as a rule the search finds 1e-10 instead.

        A cylinder is tested exactly, others by whether their farthest point is on the surface.
        """
        farthest = o.centre + support(o.core, m.hulls, -n) - m.radius * n
        depth = height_at(t, farthest[0], farthest[1]) - farthest[2]
        return (depth >= _ZERO and depth <= m.slack) or is_touching(t, o)

    @wp.func
    def in_ground_by(t: Terrain, m: MovingShapeBounds) -> wp.float64:
        """A time when the body is in the ground; 1 if none was found.

        What touches the ground later need not be looked at. Sampled, from the end on, then halved towards the start.
        """
        above = _ZERO + _ZERO
        below = _TWO + _ZERO
        looks = int(0)
        while looks < SAMPLES + HALVINGS:
            tau = _HALF * (above + below)
            if below > _ONE:
                if looks == SAMPLES:
                    return _ONE
                tau = sample(looks)
            looks += 1
            if is_in_ground(t, m, tau):
                below = tau
                looks = wp.max(looks, SAMPLES)
            elif below <= _ONE:
                above = tau
        return below

    @wp.func
    def first_reached(t: Terrain, m: MovingShapeBounds, window: wp.vec4i, latest: wp.float64) -> EarliestGroundHit:
        """The ground the body reaches first, not after `latest`; ties go to what comes first in the grid."""
        nodes = NodeStack()
        times = TimeStack()
        count = int(0)
        level = start_level(t, window)
        for a in range(window[0] >> level, (window[1] >> level) + 1):
            for b in range(window[2] >> level, (window[3] >> level) + 1):
                nodes[count] = node_key(level, a, b)
                times[count] = _ZERO
                count += 1
        until = latest + _ZERO
        best = EarliestGroundHit()
        while count > 0:
            count -= 1
            key = nodes[count]
            tau = times[count]
            if tau > until:
                continue
            level = node_level(key)
            row = node_row(key)
            column = node_column(key)
            flags = node_flags(t, level, row, column)
            now = outline_at(m, tau)
            if (flags & PLANAR) == 0:
                # As long as the node as a whole takes the body on, its parts need not be tried one by one.
                later = clear_until(t, m, now, level, row, column, tau)
                if later - tau > ON * (until - tau):
                    if later <= until:
                        times[count] = later
                        count += 1
                    continue
            if (flags & PLANAR) != 0 or level == 0:
                if (flags & GAP) == 0:
                    corners = square_corners(t, level, row, column)
                    part = int(0)
                    last = int(0)
                    if (flags & PLANAR) == 0:
                        part = 1
                        last = 2
                    while part <= last:
                        leaf = reached(m, corners, part, tau, until)
                        if leaf.status != FREE and comes_before(leaf, key, best):
                            best.leaf = leaf
                            best.key = key
                            best.corners = corners
                            best.part = part
                            until = leaf.time
                        part += 1
                continue
            level -= 1
            clear = wp.vec4d(_NEVER, _NEVER, _NEVER, _NEVER)
            q = int(0)
            while q < 4:
                a = 2 * row + (q >> 1)
                b = 2 * column + (q & 1)
                if (a << level) <= window[1] and ((a + 1) << level) > window[0]:
                    if (b << level) <= window[3] and ((b + 1) << level) > window[2]:
                        clear[q] = clear_until(t, m, now, level, a, b, tau)
                q += 1
            for _turn in range(4):  # the earliest comes last: it is visited first
                latest_q = int(-1)
                for k in range(4):
                    if clear[k] <= until and (latest_q < 0 or clear[k] > clear[latest_q]):
                        latest_q = k
                if latest_q >= 0:
                    nodes[count] = node_key(level, 2 * row + (latest_q >> 1), 2 * column + (latest_q & 1))
                    times[count] = clear[latest_q]
                    count += 1
                    clear[latest_q] = _NEVER
        return best

    @wp.func
    def touches_after(m: MovingShapeBounds, best: EarliestGroundHit) -> wp.float64:
        """A time not much after a contact when the body certainly touches that ground; inf if none was found."""
        leaf = best.leaf
        o = outline_at(m, leaf.time)
        speed = -wp.dot(leaf.gap.normal, o.velocity + wp.cross(o.turning, leaf.gap.point))
        if not speed > _ZERO:
            return _INFINITE
        wait = _TWO * (leaf.gap.high - m.separation + m.slack) / speed
        tries = int(0)
        while tries < PROOFS:
            tries += 1
            tau = wp.min(leaf.time + wait, _ONE)
            o = outline_at(m, tau)
            seen = seen_from(best.corners, o.centre, best.part)
            later = gap(o.core, m.hulls, m.radius, seen, leaf.gap.normal, m.separation, m.slack, _INFINITE)
            if later.high <= wp.max(m.separation - m.slack, _ZERO):
                return reparametrised_time(m.smooth, tau)
            wait = wait * _TWO
        return _INFINITE

    @wp.kernel(module="unique", module_options=SOUND)
    def search(
        first: int,
        t: Terrain,
        queries: MovingShapes,
        lengths: wp.array[wp.float64],
        centres: wp.array[wp.vec3d],
        ways: wp.array[wp.float64],
        ground_error: wp.float64,
        trusted: int,
        answers: wp.array[Answer],
    ):
        i = first + wp.tid()
        queries.separation = lengths[0]
        queries.tolerance = lengths[1]
        m = moving_shape_bounds_of(queries, i, ground_error, t.origin)
        around = wp.vec3d(ways[i], ways[i], ways[i])
        window = cell_window(t, centres[i] - t.origin - around, centres[i] - t.origin + around)
        answer = Answer()
        answer.time = _INFINITE
        answer.time_upper = _INFINITE
        answer.normal = wp.vec3d(_ZERO, _ZERO, _ONE)
        answer.tolerance = m.tolerance
        now = outline_at(m, _ZERO)
        if trusted == 0:
            up = wp.vec3d(_ZERO, _ZERO, _ONE)
            top = now.centre + support(now.core, m.hulls, up) + m.radius * up
            if height_at(t, top[0], top[1]) > top[2]:
                answer.status = START
            else:
                answer.rise = rise_beside_gaps(t, now.centre, m.reach + m.radius)
        until = in_ground_by(t, m)
        best = EarliestGroundHit()
        if answer.status != START:
            best = first_reached(t, m, window, until)
            if best.leaf.status == FREE and until < _ONE:
                # It got below the ground beside the surface: through a hole or from beyond the border.
                best = first_reached(t, m, window, _ONE)
        if answer.status == START:
            answer.time = _ZERO
            answer.time_upper = _ZERO
            answer.point_a = now.centre + t.origin
            answer.point_b = answer.point_a
        elif best.leaf.status != FREE:
            leaf = best.leaf
            if leaf.status == CONTACT and leaf.time == _ZERO and is_on_ground(t, m, now, leaf.gap.normal):
                leaf.status = START
            answer.status = leaf.status
            answer.time = reparametrised_time(m.smooth, leaf.time)
            if leaf.status == START:
                answer.time_upper = _ZERO
            if leaf.status == CONTACT:
                answer.time_upper = touches_after(m, best)
            now = outline_at(m, leaf.time)
            answer.normal = leaf.gap.normal
            answer.point_b = leaf.gap.point + now.centre + t.origin
            answer.point_a = answer.point_b + leaf.gap.high * leaf.gap.normal
        answers[i] = answer

    return search
