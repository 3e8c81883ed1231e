"""Where a vertical line enters a placed body, and where it leaves: one function per kind, as in `placed_body`.

Question: which interval of z does the vertical line through (x, y) have in common with a body, and which way is out
          where it enters?
Method:   the quadric of the side cut by the planes of the ends; hulls by clipping the line at every plane.
Known as: ray casting against convex primitives (line-quadric intersection; Cyrus and Beck 1978 for hulls).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.shape.analytic.placed_body import Hulls, PlacedBody, function_for_kind

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
#: Directions this near to vertical or level count as such: the quadratics below lose their leading term.
_LEVEL = wp.constant(real(1.0e-12))


@wp.struct
class VerticalInterval:
    """What a vertical line has in common with a body: from `low` to `high`; nothing where low > high."""

    low: wp.float64
    high: wp.float64
    normal: wp.vec3d  #: unit, at `low`, into the body


def vertical_interval_of(kind: int) -> wp.Function:
    """`interval(body, hulls, x, y) -> VerticalInterval`: what the vertical line through (x, y) has of the body."""
    return function_for_kind(kind, _round_interval, _cylinder_interval, _cone_interval, _hull_interval)


@wp.func
def _nothing() -> VerticalInterval:
    interval = VerticalInterval()
    interval.low = _ONE
    interval.high = -_ONE
    return interval


@wp.func
def _side_interval(body: PlacedBody, x: real, y: real) -> VerticalInterval:
    """The endless cylinder: (1 - vz^2) z^2 - 2 vz s z + x^2 + y^2 - s^2 - r^2 <= 0 with s = vx x + vy y."""
    v = body.axis
    s = v[0] * x + v[1] * y
    interval = VerticalInterval()
    interval.low = -_FAR
    interval.high = _FAR
    a = v[0] * v[0] + v[1] * v[1]
    c = x * x + y * y - s * s - body.radius * body.radius
    if a <= _LEVEL:
        if c > _ZERO:
            return _nothing()
        return interval
    b = v[2] * s
    inside = b * b - a * c
    if inside < _ZERO:
        return _nothing()
    root = wp.sqrt(inside)
    interval.low = (b - root) / a
    interval.high = (b + root) / a
    p = vec(x, y, interval.low)
    interval.normal = (wp.dot(p, v) * v - p) / body.radius
    return interval


@wp.func
def _cylinder_interval(body: PlacedBody, hulls: Hulls, x: real, y: real) -> VerticalInterval:
    interval = _side_interval(body, x, y)
    if interval.low > interval.high:
        return interval
    v = body.axis
    s = v[0] * x + v[1] * y
    if v[2] > _LEVEL:
        base = (-body.reach - s) / v[2]
        if base > interval.low:
            interval.low = base
            interval.normal = v
        interval.high = wp.min(interval.high, (body.reach - s) / v[2])
    elif wp.abs(s) > body.reach:
        return _nothing()
    return interval


@wp.func
def _ball_interval(body: PlacedBody, centre: vec, x: real, y: real) -> VerticalInterval:
    dx = x - centre[0]
    dy = y - centre[1]
    inside = body.radius * body.radius - dx * dx - dy * dy
    if inside < _ZERO:
        return _nothing()
    interval = VerticalInterval()
    root = wp.sqrt(inside)
    interval.low = centre[2] - root
    interval.high = centre[2] + root
    interval.normal = vec(-dx, -dy, root) / body.radius
    return interval


@wp.func
def _round_interval(body: PlacedBody, hulls: Hulls, x: real, y: real) -> VerticalInterval:
    """The union of two balls and the cylinder between them: lowest and highest of what belongs to it."""
    v = body.axis
    interval = _ball_interval(body, -body.reach * v, x, y)
    if body.reach == _ZERO:
        return interval
    if interval.low > interval.high:
        interval.low = _FAR
        interval.high = -_FAR
    s = v[0] * x + v[1] * y
    for k in range(2):
        part = _side_interval(body, x, y)
        # Of the endless cylinder only what lies between the ends; a vertical one has no lowest point.
        lowest = wp.abs(s + v[2] * part.low) <= body.reach
        highest = wp.abs(s + v[2] * part.high) <= body.reach
        if k == 1:
            part = _ball_interval(body, body.reach * v, x, y)
            lowest = True
            highest = True
        if part.low <= part.high:
            if lowest and part.low < interval.low:
                interval.low = part.low
                interval.normal = part.normal
            if highest and part.high > interval.high:
                interval.high = part.high
    return interval


@wp.func
def _in_cone(body: PlacedBody, p: vec, slope: real) -> bool:
    along = wp.dot(p, body.axis)
    beside = wp.length(p - along * body.axis)
    slack = real(1.0e-9) * (body.radius + body.reach)
    return along >= -body.reach - slack and beside <= (body.reach - along) * slope + slack


@wp.func
def _cone_interval(body: PlacedBody, hulls: Hulls, x: real, y: real) -> VerticalInterval:
    """Where the line crosses the base or the side, as far as these points belong to the cone."""
    v = body.axis
    slope = body.radius / (real(2.0) * body.reach)
    s = v[0] * x + v[1] * y
    t = body.reach - s
    # x^2 + y^2 + z^2 - (p.v)^2 = slope^2 (reach - p.v)^2
    a = v[0] * v[0] + v[1] * v[1] - slope * slope * v[2] * v[2]
    b = v[2] * (slope * slope * t - s)
    c = x * x + y * y - s * s - slope * slope * t * t
    interval = _nothing()
    interval.low = _FAR
    interval.high = -_FAR
    for k in range(3):
        z = _FAR + _ZERO
        if k == 2:
            if wp.abs(v[2]) > _LEVEL:
                z = (-body.reach - s) / v[2]
        elif wp.abs(a) > _LEVEL:
            inside = b * b - a * c
            if inside >= _ZERO:
                z = (-b + wp.where(k == 0, -_ONE, _ONE) * wp.sqrt(inside)) / a
        elif wp.abs(b) > _LEVEL * body.reach:
            z = -c / (real(2.0) * b)
        if wp.abs(z) < _FAR:
            p = vec(x, y, z)
            if _in_cone(body, p, slope):
                if z < interval.low:
                    interval.low = z
                    if k == 2:
                        interval.normal = v
                    else:
                        interval.normal = -wp.normalize(wp.normalize(p - wp.dot(p, v) * v) + slope * v)
                interval.high = wp.max(interval.high, z)
    return interval


@wp.func
def _hull_interval(body: PlacedBody, hulls: Hulls, x: real, y: real) -> VerticalInterval:
    interval = VerticalInterval()
    interval.low = -_FAR
    interval.high = _FAR
    steepest = int(0)
    for k in range(hulls.planes.shape[0]):
        plane = hulls.planes[k]
        n = body.rotation * wp.cw_div(vec(plane[0], plane[1], plane[2]), body.half)
        room = plane[3] - n[0] * x - n[1] * y
        if wp.abs(n[2]) <= _LEVEL * wp.length(n):
            if room < _ZERO:
                return _nothing()
        elif n[2] < _ZERO:
            if room / n[2] > interval.low:
                interval.low = room / n[2]
                steepest = k
        else:
            interval.high = wp.min(interval.high, room / n[2])
    plane = hulls.planes[steepest]
    interval.normal = -wp.normalize(body.rotation * wp.cw_div(vec(plane[0], plane[1], plane[2]), body.half))
    return interval
