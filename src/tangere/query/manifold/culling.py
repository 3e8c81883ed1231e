"""Ground that a body is clear of: planes with the body on one side and a whole column of ground on the other.

The column [x0, x1] x [y0, y1] x (-inf, top] is relative to the body's origin, and the body is grown by the margin. A
plane aimed at the middle of the column's top decides almost all. For a cylinder see `intersection.cylinder_terrain`.
"""

from __future__ import annotations

import warp as wp

from tangere.query.intersection.cylinder_heightfield import UprightCylinder, farthest, node_is_clear
from tangere.runtime import SOUND
from tangere.shape.analytic import Hulls, PlacedBody, support_of

wp.set_module_options(SOUND)

__all__ = ["clear_of"]

real = wp.float64
vec = wp.vec3d
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))


def clear_of(kind: int) -> wp.Function:
    """`is_clear(body, hulls, grown, margin, x0, x1, y0, y1, top) -> bool`; `grown` is the cylinder with its margin."""
    return (_round_clear, _cylinder_clear, _cone_clear, _hull_clear)[kind]


@wp.func
def _cylinder_clear(
    body: PlacedBody,
    hulls: Hulls,
    grown: UprightCylinder,
    margin: real,
    x0: real,
    x1: real,
    y0: real,
    y1: real,
    top: real,
) -> bool:
    return node_is_clear(grown, x0, x1, y0, y1, top)


_round_support = support_of(0)
_cone_support = support_of(2)


@wp.func
def _round_clear(
    body: PlacedBody,
    hulls: Hulls,
    grown: UprightCylinder,
    margin: real,
    x0: real,
    x1: real,
    y0: real,
    y1: real,
    top: real,
) -> bool:
    middle = vec(_HALF * (x0 + x1), _HALF * (y0 + y1), top)
    u = wp.clamp(wp.dot(middle, body.axis), -body.reach, body.reach) * body.axis - middle
    if u[2] < _ZERO or wp.length(u) <= body.radius:
        return False
    u = wp.normalize(u)
    return farthest(u, x0, x1, y0, y1, top) < wp.dot(u, _round_support(body, hulls, -u)) - margin


@wp.func
def _cone_clear(
    body: PlacedBody,
    hulls: Hulls,
    grown: UprightCylinder,
    margin: real,
    x0: real,
    x1: real,
    y0: real,
    y1: real,
    top: real,
) -> bool:
    v = body.axis
    if v[2] >= _ZERO and farthest(v, x0, x1, y0, y1, top) < -body.reach - margin:
        return True
    middle = vec(_HALF * (x0 + x1), _HALF * (y0 + y1), top)
    u = wp.dot(middle, v) * v - middle
    length = wp.length(u)
    if length <= _ZERO:
        return False
    u = u / length
    if u[2] >= _ZERO and farthest(u, x0, x1, y0, y1, top) < wp.dot(u, _cone_support(body, hulls, -u)) - margin:
        return True
    u = wp.normalize(u - (_HALF * body.radius / body.reach) * v)
    return u[2] >= _ZERO and farthest(u, x0, x1, y0, y1, top) < wp.dot(u, _cone_support(body, hulls, -u)) - margin


@wp.func
def _hull_clear(
    body: PlacedBody,
    hulls: Hulls,
    grown: UprightCylinder,
    margin: real,
    x0: real,
    x1: real,
    y0: real,
    y1: real,
    top: real,
) -> bool:
    for k in range(hulls.planes.shape[0]):
        plane = hulls.planes[k]
        n = body.rotation * wp.cw_div(vec(plane[0], plane[1], plane[2]), body.half)
        if n[2] <= _ZERO:
            if farthest(-n, x0, x1, y0, y1, top) < -plane[3] - margin * wp.length(n):
                return True
    return False
