"""A placed body as kernels see it: how far it reaches in a direction, and where a vertical line enters it.

All coordinates are relative to the body's origin, along the axes of the world. The functions come in one per kind, so
that a kernel made for one kind carries nothing of the others (`support_of`, `column_of`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from tangere.runtime import SOUND, InputError
from tangere.shape.analytic import CYLINDER, AnalyticShape
from tangere.shape.analytic_hull import Hull

wp.set_module_options(SOUND)

__all__ = ["Body", "Bounds", "Column", "Hulls", "bounds_of", "column_of", "hull_tables", "place", "support_of"]

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
#: Directions this near to vertical or level count as such: the quadratics below lose their leading term.
_LEVEL = wp.constant(real(1.0e-12))


@wp.struct
class Hulls:
    """The tables of a batch of HULL bodies: see `analytic_hull.Hull`."""

    corners: wp.array[wp.vec3d]
    edges: wp.array[wp.vec4i]
    planes: wp.array[wp.vec4d]


@wp.struct
class Body:
    """A body of any kind, turned as it is in the world."""

    radius: wp.float64
    reach: wp.float64  #: half the length along the axis
    axis: wp.vec3d  #: unit; of a body that is the same upside down, the end that points up
    half: wp.vec3d  #: what the table of a hull is scaled by
    rotation: wp.mat33d


@wp.struct
class Column:
    """What a vertical line has in common with a body: from `low` to `high`; nothing where low > high."""

    low: wp.float64
    high: wp.float64
    normal: wp.vec3d  #: unit, at `low`, into the body


@wp.struct
class Bounds:
    """A box along the axes of the world."""

    lower: wp.vec3d
    upper: wp.vec3d


@wp.func
def place(shape: AnalyticShape, pose: wp.mat44d) -> Body:
    """The body turned as `pose` says; of a symmetric body both ways up give the same bits."""
    body = Body()
    body.radius = shape.radius
    body.reach = shape.half[2]
    body.half = shape.half
    body.rotation = wp.mat33d(
        pose[0, 0], pose[0, 1], pose[0, 2], pose[1, 0], pose[1, 1], pose[1, 2], pose[2, 0], pose[2, 1], pose[2, 2]
    )
    axis = vec(pose[0, 2], pose[1, 2], pose[2, 2])
    if shape.kind <= CYLINDER:
        down = axis[2] < _ZERO
        if axis[2] == _ZERO:
            down = axis[1] < _ZERO or (axis[1] == _ZERO and axis[0] < _ZERO)
        if down:
            axis = -axis
    body.axis = axis
    return body


@cache
def hull_tables(hull: Hull, device: str) -> Any:
    """The tables of a hull on a device, by its alias."""
    tables: Any = Hulls()
    tables.corners = wp.array(hull.corners, dtype=wp.vec3d, device=device)
    tables.edges = wp.array(hull.edges, dtype=wp.vec4i, device=device)
    tables.planes = wp.array(hull.planes, dtype=wp.vec4d, device=device)
    return tables


def support_of(kind: int) -> wp.Function:
    """`support(body, hulls, u) -> vec3d`: the point of the body that is farthest along u (not zero)."""
    return _chosen(kind, _round_support, _cylinder_support, _cone_support, _hull_support)


def bounds_of(kind: int) -> wp.Function:
    """`bounds(body, hulls) -> Bounds`: the smallest box along the axes of the world."""
    return _chosen(kind, _round_bounds, _cylinder_bounds, _cone_bounds, _hull_bounds)


def column_of(kind: int) -> wp.Function:
    """`column(body, hulls, x, y) -> Column`: what the vertical line through (x, y) has in common with the body."""
    return _chosen(kind, _round_column, _cylinder_column, _cone_column, _hull_column)


def _chosen(kind: int, *of: wp.Function) -> wp.Function:
    if not 0 <= kind < len(of):
        raise InputError(f"kind must be ROUND, CYLINDER, CONE or HULL, not {kind}")
    return of[kind]


# -- how far a body reaches -------------------------------------------------------------------------------------------


@wp.func
def _round_support(body: Body, hulls: Hulls, u: vec) -> vec:
    return wp.where(wp.dot(u, body.axis) < _ZERO, -body.reach, body.reach) * body.axis + body.radius * wp.normalize(u)


@wp.func
def _cylinder_support(body: Body, hulls: Hulls, u: vec) -> vec:
    along = wp.dot(u, body.axis)
    return wp.where(along < _ZERO, -body.reach, body.reach) * body.axis + body.radius * wp.normalize(
        u - along * body.axis
    )


@wp.func
def _cone_support(body: Body, hulls: Hulls, u: vec) -> vec:
    rim = -body.reach * body.axis + body.radius * wp.normalize(u - wp.dot(u, body.axis) * body.axis)
    tip = body.reach * body.axis
    return wp.where(wp.dot(u, tip) > wp.dot(u, rim), tip, rim)


@wp.func
def _hull_support(body: Body, hulls: Hulls, u: vec) -> vec:
    along = wp.cw_mul(wp.transpose(body.rotation) * u, body.half)
    best = int(0)
    most = -_FAR
    for k in range(hulls.corners.shape[0]):
        here = wp.dot(along, hulls.corners[k])
        if here > most:
            most = here
            best = k
    return body.rotation * wp.cw_mul(body.half, hulls.corners[best])


@wp.func
def _both_ways(extent: vec) -> Bounds:
    bounds = Bounds()
    bounds.lower = -extent
    bounds.upper = extent
    return bounds


@wp.func
def _disc_extent(v: vec, radius: real) -> vec:
    """Half the sides of the box of a disc across v; no special case for an upright one (spec ERR-1)."""
    x = v[0] * v[0]
    y = v[1] * v[1]
    z = v[2] * v[2]
    return radius * vec(wp.sqrt(y + z), wp.sqrt(x + z), wp.sqrt(x + y))


@wp.func
def _round_bounds(body: Body, hulls: Hulls) -> Bounds:
    return _both_ways(body.reach * wp.abs(body.axis) + vec(body.radius, body.radius, body.radius))


@wp.func
def _cylinder_bounds(body: Body, hulls: Hulls) -> Bounds:
    return _both_ways(body.reach * wp.abs(body.axis) + _disc_extent(body.axis, body.radius))


@wp.func
def _cone_bounds(body: Body, hulls: Hulls) -> Bounds:
    tip = body.reach * body.axis
    disc = _disc_extent(body.axis, body.radius)
    bounds = Bounds()
    bounds.lower = wp.min(tip, -tip - disc)
    bounds.upper = wp.max(tip, disc - tip)
    return bounds


@wp.func
def _hull_bounds(body: Body, hulls: Hulls) -> Bounds:
    bounds = _both_ways(vec(-_FAR, -_FAR, -_FAR))
    for k in range(hulls.corners.shape[0]):
        p = body.rotation * wp.cw_mul(body.half, hulls.corners[k])
        bounds.lower = wp.min(bounds.lower, p)
        bounds.upper = wp.max(bounds.upper, p)
    return bounds


# -- where a vertical line enters -------------------------------------------------------------------------------------


@wp.func
def _nothing() -> Column:
    column = Column()
    column.low = _ONE
    column.high = -_ONE
    return column


@wp.func
def _side_column(body: Body, x: real, y: real) -> Column:
    """The endless cylinder: (1 - vz^2) z^2 - 2 vz s z + x^2 + y^2 - s^2 - r^2 <= 0 with s = vx x + vy y."""
    v = body.axis
    s = v[0] * x + v[1] * y
    column = Column()
    column.low = -_FAR
    column.high = _FAR
    a = v[0] * v[0] + v[1] * v[1]
    c = x * x + y * y - s * s - body.radius * body.radius
    if a <= _LEVEL:
        if c > _ZERO:
            return _nothing()
        return column
    b = v[2] * s
    inside = b * b - a * c
    if inside < _ZERO:
        return _nothing()
    root = wp.sqrt(inside)
    column.low = (b - root) / a
    column.high = (b + root) / a
    p = vec(x, y, column.low)
    column.normal = (wp.dot(p, v) * v - p) / body.radius
    return column


@wp.func
def _cylinder_column(body: Body, hulls: Hulls, x: real, y: real) -> Column:
    column = _side_column(body, x, y)
    if column.low > column.high:
        return column
    v = body.axis
    s = v[0] * x + v[1] * y
    if v[2] > _LEVEL:
        base = (-body.reach - s) / v[2]
        if base > column.low:
            column.low = base
            column.normal = v
        column.high = wp.min(column.high, (body.reach - s) / v[2])
    elif wp.abs(s) > body.reach:
        return _nothing()
    return column


@wp.func
def _ball_column(body: Body, centre: vec, x: real, y: real) -> Column:
    dx = x - centre[0]
    dy = y - centre[1]
    inside = body.radius * body.radius - dx * dx - dy * dy
    if inside < _ZERO:
        return _nothing()
    column = Column()
    root = wp.sqrt(inside)
    column.low = centre[2] - root
    column.high = centre[2] + root
    column.normal = vec(-dx, -dy, root) / body.radius
    return column


@wp.func
def _round_column(body: Body, hulls: Hulls, x: real, y: real) -> Column:
    """The union of two balls and the cylinder between them: lowest and highest of what belongs to it."""
    v = body.axis
    column = _ball_column(body, -body.reach * v, x, y)
    if body.reach == _ZERO:
        return column
    if column.low > column.high:
        column.low = _FAR
        column.high = -_FAR
    s = v[0] * x + v[1] * y
    for k in range(2):
        part = _side_column(body, x, y)
        # Of the endless cylinder only what lies between the ends; a vertical one has no lowest point.
        lowest = wp.abs(s + v[2] * part.low) <= body.reach
        highest = wp.abs(s + v[2] * part.high) <= body.reach
        if k == 1:
            part = _ball_column(body, body.reach * v, x, y)
            lowest = True
            highest = True
        if part.low <= part.high:
            if lowest and part.low < column.low:
                column.low = part.low
                column.normal = part.normal
            if highest and part.high > column.high:
                column.high = part.high
    return column


@wp.func
def _in_cone(body: Body, p: vec, slope: real) -> bool:
    along = wp.dot(p, body.axis)
    beside = wp.length(p - along * body.axis)
    slack = real(1.0e-9) * (body.radius + body.reach)
    return along >= -body.reach - slack and beside <= (body.reach - along) * slope + slack


@wp.func
def _cone_column(body: Body, hulls: Hulls, x: real, y: real) -> Column:
    """Where the line crosses the base or the side, as far as these points belong to the cone."""
    v = body.axis
    slope = body.radius / (real(2.0) * body.reach)
    s = v[0] * x + v[1] * y
    t = body.reach - s
    # x^2 + y^2 + z^2 - (p.v)^2 = slope^2 (reach - p.v)^2
    a = v[0] * v[0] + v[1] * v[1] - slope * slope * v[2] * v[2]
    b = v[2] * (slope * slope * t - s)
    c = x * x + y * y - s * s - slope * slope * t * t
    column = _nothing()
    column.low = _FAR
    column.high = -_FAR
    for k in range(3):
        z = _FAR + _ZERO
        if k == 2:
            if wp.abs(v[2]) > _LEVEL:
                z = (-body.reach - s) / v[2]
        elif wp.abs(a) > _LEVEL:
            inside = b * b - a * c
            if inside >= _ZERO:
                z = (-b + wp.where(k == 0, -_ONE, _ONE) * wp.sqrt(inside)) / a
        elif wp.abs(b) > _LEVEL:
            z = -c / (real(2.0) * b)
        if wp.abs(z) < _FAR:
            p = vec(x, y, z)
            if _in_cone(body, p, slope):
                if z < column.low:
                    column.low = z
                    if k == 2:
                        column.normal = v
                    else:
                        column.normal = -wp.normalize(wp.normalize(p - wp.dot(p, v) * v) + slope * v)
                column.high = wp.max(column.high, z)
    return column


@wp.func
def _hull_column(body: Body, hulls: Hulls, x: real, y: real) -> Column:
    column = Column()
    column.low = -_FAR
    column.high = _FAR
    steepest = int(0)
    for k in range(hulls.planes.shape[0]):
        plane = hulls.planes[k]
        n = body.rotation * wp.cw_div(vec(plane[0], plane[1], plane[2]), body.half)
        room = plane[3] - n[0] * x - n[1] * y
        if wp.abs(n[2]) <= _LEVEL * wp.length(n):
            if room < _ZERO:
                return _nothing()
        elif n[2] < _ZERO:
            if room / n[2] > column.low:
                column.low = room / n[2]
                steepest = k
        else:
            column.high = wp.min(column.high, room / n[2])
    plane = hulls.planes[steepest]
    column.normal = -wp.normalize(body.rotation * wp.cw_div(vec(plane[0], plane[1], plane[2]), body.half))
    return column
