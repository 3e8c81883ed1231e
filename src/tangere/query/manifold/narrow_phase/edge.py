"""A body over a ridge: where along an edge of the ground is the vertical penetration largest?

At such a point one normal N is across the edge and points into the body there. With the edge A + t D:
* side of a cylinder or capsule: N is across D and the axis, so it is known; a 2 x 2 system in x and y gives t;
* rim of a base: the edge, projected vertically on the base plane, meets the circle at most twice;
* ball: the vertical plane of the edge cuts a circle, whose tangent along D is wanted;
* side of a cone: N is across D and makes the cone's angle with the axis (two of them), then as for a cylinder;
* edge of a hull: N is across both edges, which must cross when seen from above.
All closed forms, no root finding. Whether N fits between the faces beside the edge is left to the caller.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.shape.analytic import Hulls, PlacedBody

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TINY = wp.constant(real(1.0e-9))
_SLACK = wp.constant(real(1.0e-9))
#: An axis this near to level has vertical bases, on which nothing can be projected vertically.
_LEVEL = wp.constant(real(1.0e-6))


@wp.struct
class Crossing:
    """A point where a body may rest on an edge."""

    found: wp.bool
    neither: wp.bool  #: not found, nor is the next of its pair
    along: wp.float64  #: t of the edge A + t D, in [0, 1]
    point: wp.vec3d  #: of the body, above or below that of the edge
    normal: wp.vec3d  #: unit, up, into the body


@wp.func
def crossing_at(along: real, point: vec, normal: vec) -> Crossing:
    """One that is found."""
    crossing = Crossing()
    crossing.found = True
    crossing.along = along
    crossing.point = point
    crossing.normal = normal
    return crossing


def crossing_of(kind: int) -> tuple[wp.Function, wp.Function]:
    """`crossing(body, hulls, a, d, k) -> Crossing` and `count(hulls)`, the number of k to ask for."""
    crossings = (_round_crossing, _cylinder_crossing, _cone_crossing, _hull_crossing)
    counts = (_three, _five, _four, _edge_count)
    return crossings[kind], counts[kind]


@wp.func
def _round_crossing(body: PlacedBody, hulls: Hulls, a: vec, d: vec, k: int) -> Crossing:
    if k == 0:
        if body.reach == _ZERO:
            return Crossing()
        return side_crossing(body, a, d)
    return ball_crossing(body, wp.where(k == 1, -_ONE, _ONE), a, d)


@wp.func
def _cylinder_crossing(body: PlacedBody, hulls: Hulls, a: vec, d: vec, k: int) -> Crossing:
    if k == 0:
        return side_crossing(body, a, d)
    return rim_crossing(body, wp.where(k <= 2, _ONE, -_ONE), _ZERO, a, d, (k - 1) & 1)


@wp.func
def _cone_crossing(body: PlacedBody, hulls: Hulls, a: vec, d: vec, k: int) -> Crossing:
    slope = body.radius / (real(2.0) * body.reach)
    if k <= 1:
        return cone_side_crossing(body, slope, a, d, k)
    return rim_crossing(body, _ONE, slope, a, d, k & 1)


@wp.func
def meeting(a: vec, d: vec, p: vec, g: vec) -> wp.vec2d:
    """(t, s) with a + t d and p + s g one above the other; t is -1 where they are parallel seen from above."""
    det = d[1] * g[0] - d[0] * g[1]
    if wp.abs(det) <= _TINY * wp.length(d) * wp.length(g):
        return wp.vec2d(-_ONE, _ZERO)
    x = p[0] - a[0]
    y = p[1] - a[1]
    return wp.vec2d((y * g[0] - x * g[1]) / det, (d[0] * y - d[1] * x) / det)


@wp.func
def in_edge(t: real) -> bool:
    return t >= -_SLACK and t <= _ONE + _SLACK


@wp.func
def side_crossing(body: PlacedBody, a: vec, d: vec) -> Crossing:
    n = wp.cross(d, body.axis)
    length = wp.length(n)
    if length <= _TINY * wp.length(d):
        return Crossing()
    n = n * wp.where(n[2] < _ZERO, -_ONE, _ONE) / length
    if n[2] <= _TINY:
        return Crossing()
    at = meeting(a, d, -body.radius * n, body.axis)
    if in_edge(at[0]) and wp.abs(at[1]) <= body.reach * (_ONE + _SLACK):
        return crossing_at(at[0], at[1] * body.axis - body.radius * n, n)
    return Crossing()


@wp.func
def ball_crossing(body: PlacedBody, end: real, a: vec, d: vec) -> Crossing:
    centre = end * body.reach * body.axis
    level = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    e = vec(d[0] / level, d[1] / level, _ZERO)
    m = vec(-e[1], e[0], _ZERO)
    beside = wp.dot(centre - a, m) / body.radius
    if wp.abs(beside) >= _ONE:
        return Crossing()
    n = beside * m + (wp.sqrt(_ONE - beside * beside) / wp.length(d)) * (vec(_ZERO, _ZERO, level) - d[2] * e)
    p = centre - body.radius * n
    t = wp.dot(p - a, e) / level
    # Only the half of the ball that the cylinder leaves over.
    if in_edge(t) and end * wp.dot(n, body.axis) * body.reach <= _SLACK:
        return crossing_at(t, p, n)
    return Crossing()


@wp.func
def rim_crossing(body: PlacedBody, end: real, slope: real, a: vec, d: vec, root: int) -> Crossing:
    """The rim about -end * reach * axis; the side beyond it closes in by `slope` (0 for a cylinder)."""
    v = end * body.axis
    centre = -body.reach * v
    t = _ZERO + _ZERO
    p = vec()
    if wp.abs(v[2]) > _LEVEL:
        drop = (wp.dot(v, a) + body.reach) / v[2]
        fall = wp.dot(v, d) / v[2]
        x = a - vec(_ZERO, _ZERO, drop) - centre
        y = d - vec(_ZERO, _ZERO, fall)
        qa = wp.dot(y, y)
        qb = wp.dot(x, y)
        inside = qb * qb - qa * (wp.dot(x, x) - body.radius * body.radius)
        if inside < _ZERO:
            missed = Crossing()
            missed.neither = root == 0
            return missed
        t = (-qb + wp.where(root == 0, -_ONE, _ONE) * wp.sqrt(inside)) / qa
        p = centre + x + t * y
    else:
        through = wp.dot(v, d)
        if root == 1 or wp.abs(through) <= real(1.0e-12) * wp.length(d):
            return Crossing()
        t = (-body.reach - wp.dot(v, a)) / through
        x = a + t * d - centre
        inside = body.radius * body.radius - x[0] * x[0] - x[1] * x[1]
        if inside < _ZERO:
            return Crossing()
        p = vec(x[0] + centre[0], x[1] + centre[1], centre[2] - wp.sqrt(inside))
    if not in_edge(t):
        return Crossing()
    radial = (p - centre) / body.radius
    n = wp.cross(d, wp.cross(v, radial))
    length = wp.length(n)
    if length <= real(1.0e-12) * wp.length(d):
        return Crossing()
    n = n * wp.where(n[2] < _ZERO, -_ONE, _ONE) / length
    inward = wp.dot(n, radial)
    if n[2] > _TINY and inward <= _SLACK and wp.dot(n, v) >= slope * inward - _SLACK:
        return crossing_at(t, p, n)
    return Crossing()


@wp.func
def cone_side_crossing(body: PlacedBody, slope: real, a: vec, d: vec, root: int) -> Crossing:
    v = body.axis
    flat = d - wp.dot(d, v) * v
    length = wp.length(flat)
    if length <= _TINY * wp.length(d):
        return Crossing()
    flat = flat / length
    # n = -sine v + (across v, of length cosine), and n . d = 0
    sine = slope / wp.sqrt(_ONE + slope * slope)
    cosine = _ONE / wp.sqrt(_ONE + slope * slope)
    along = sine * wp.dot(d, v) / length
    rest = cosine * cosine - along * along
    if rest < _ZERO:
        return Crossing()
    beside = along * flat + wp.where(root == 0, -_ONE, _ONE) * wp.sqrt(rest) * wp.cross(v, flat)
    n = beside - sine * v
    if n[2] <= _TINY:
        return Crossing()
    down = -v - (slope / cosine) * beside
    at = meeting(a, d, body.reach * v, down)
    if in_edge(at[0]) and at[1] >= _ZERO and at[1] <= real(2.0) * body.reach * (_ONE + _SLACK):
        return crossing_at(at[0], body.reach * v + at[1] * down, n)
    return Crossing()


@wp.func
def _hull_crossing(body: PlacedBody, hulls: Hulls, a: vec, d: vec, k: int) -> Crossing:
    edge = hulls.edges[k]
    p = body.rotation * wp.cw_mul(body.half, hulls.corners[edge[0]])
    g = body.rotation * wp.cw_mul(body.half, hulls.corners[edge[1]]) - p
    at = meeting(a, d, p, g)
    if not in_edge(at[0]) or not in_edge(at[1]):
        return Crossing()
    n = wp.cross(d, g)
    length = wp.length(n)
    if length <= _TINY * wp.length(d) * wp.length(g):
        return Crossing()
    n = n * wp.where(n[2] < _ZERO, -_ONE, _ONE) / length
    if n[2] <= _TINY:
        return Crossing()
    one = hulls.planes[edge[2]]
    two = hulls.planes[edge[3]]
    n1 = wp.normalize(body.rotation * wp.cw_div(vec(one[0], one[1], one[2]), body.half))
    n2 = wp.normalize(body.rotation * wp.cw_div(vec(two[0], two[1], two[2]), body.half))
    e = wp.normalize(g)
    between = wp.dot(wp.cross(n1, n2), e)
    # -n between the outward normals of the faces beside the edge
    first = wp.dot(wp.cross(n, n1), e) * between
    last = wp.dot(wp.cross(n2, n), e) * between
    if first >= -_SLACK and last >= -_SLACK and wp.dot(n, n1 + n2) < _ZERO:
        return crossing_at(at[0], p + at[1] * g, n)
    return Crossing()


@wp.func
def _three(hulls: Hulls) -> int:
    return 3


@wp.func
def _four(hulls: Hulls) -> int:
    return 4


@wp.func
def _five(hulls: Hulls) -> int:
    return 5


@wp.func
def _edge_count(hulls: Hulls) -> int:
    return hulls.edges.shape[0]
