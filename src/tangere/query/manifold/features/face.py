"""Points of a body that can rest on a plane: the deepest one, and those that nearly share its depth.

A base that is almost parallel to the ground stands on its rim: eight points of it, fixed in the world, are offered
besides the deepest, because that runs round the rim when the ground turns by a hair. A point counts if the line from
the deepest to it rises by less than FLAT_ANGLE. So an upright cylinder has its rim, a lying one two points, a tilted
one has one. See Strashnov and Torgashev 2020, section IV.
"""

from __future__ import annotations

import warp as wp

from tangere.query.manifold.reduction import DIAGONAL
from tangere.runtime import SOUND
from tangere.shape.analytic import Hulls, PlacedBody

wp.set_module_options(SOUND)

__all__ = ["FLAT_ANGLE", "deepest_rim_point", "support_point_of"]

real = wp.float64
vec = wp.vec3d

#: Sine of the angle below which a base or a side lies on a plane: 11.5 degrees.
FLAT_ANGLE = wp.constant(real(0.2))
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
#: A level direction that few things are across to.
_HEADING = wp.constant(vec(0.8660254, 0.5, 0.0))
_TINY = wp.constant(real(1.0e-9))


def support_point_of(kind: int) -> tuple[wp.Function, wp.Function]:
    """`point(body, hulls, n, k)`: the k-th point that may rest on a plane of normal n; `count(body, hulls, n)` many.

    Point 0 of a round body, a cylinder or a cone need not be the deepest, but the deepest is among the first two.
    """
    points = (_round_point, _cylinder_point, _cone_point, _hull_point)
    counts = (_one_or_two, _two_or_ten, _two_or_ten, _corner_count)
    return points[kind], counts[kind]


@wp.func
def deepest_rim_point(body: PlacedBody, centre: vec, n: vec) -> vec:
    """The point of the rim about `centre` that is deepest below a plane with normal n (A of spec 4.1)."""
    v = body.axis
    w = wp.dot(v, n) * v - n
    length = wp.length(w)
    if length < _TINY:
        return centre + body.radius * body.side
    return centre + (body.radius / length) * w


@wp.func
def rim_point(body: PlacedBody, centre: vec, eighth: int) -> vec:
    """Eight points of a rim, fixed in the world."""
    e = body.side
    f = wp.cross(body.axis, e)
    if (eighth & 2) != 0:
        g = e
        e = f
        f = -g
    if (eighth & 1) != 0:
        e = (e + f) * DIAGONAL
    if (eighth & 4) != 0:
        e = -e
    return centre + body.radius * e


@wp.func
def first_end(body: PlacedBody, n: vec) -> real:
    """The end of the axis that is numbered first: the lower one, or of a lying body one that a hair's tilt leaves."""
    along = wp.dot(body.axis, n)
    if along * along < _HALF:
        along = wp.dot(body.axis, _HEADING)
    return wp.where(along < _ZERO, body.reach, -body.reach)


@wp.func
def _cylinder_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    end = first_end(body, n)
    if k < 2:
        return deepest_rim_point(body, wp.where(k == 0, end, -end) * body.axis, n)
    return rim_point(body, end * body.axis, k - 2)


@wp.func
def _cone_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    if k == 0:
        return deepest_rim_point(body, -body.reach * body.axis, n)
    if k == 1:
        return body.reach * body.axis
    return rim_point(body, -body.reach * body.axis, k - 2)


@wp.func
def _round_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    end = first_end(body, n)
    centre = wp.where(k == 0, end, -end) * body.axis
    if wp.dot(centre, n) <= _ZERO:
        return centre - body.radius * n
    return deepest_rim_point(body, centre, n)


@wp.func
def _hull_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    return body.rotation * wp.cw_mul(body.half, hulls.corners[k])


@wp.func
def _one_or_two(body: PlacedBody, hulls: Hulls, n: vec) -> int:
    return wp.where(body.reach == _ZERO, 1, 2)


@wp.func
def _two_or_ten(body: PlacedBody, hulls: Hulls, n: vec) -> int:
    """Without the eight of the rim where the base is far from parallel to the plane."""
    upright = wp.dot(body.axis, n)
    return wp.where(_ONE - upright * upright <= FLAT_ANGLE * FLAT_ANGLE, 10, 2)


@wp.func
def _corner_count(body: PlacedBody, hulls: Hulls, n: vec) -> int:
    return hulls.corners.shape[0]
