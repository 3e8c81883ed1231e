"""Ground that a body cannot touch: nodes of the pyramid it is clear of, then single faces and edges.

Question: is there a plane with the body on one side and this piece of ground on the other?
Method:   a node is the column [x0, x1] x [y0, y1] x (-inf, top] relative to the body's origin, and the body is grown by
          the margin: a plane aimed at the middle of the column's top decides almost all (`clear_of`; for a cylinder see
          `intersection.cylinder_heightfield`). For a face or an edge (`apart_of`) the plane is across the shortest way
          from its middle to the body (of a cone: to the cylinder around it; of a hull: to its box).
Sound:    what a plane parts is decided by how far the body really reaches along it, so the aim costs no soundness.
          Planes never lean over: ground below one is below the body. A contact may have a gap up to the margin, along
          its normal n; the body is above the ground there by as much over n_z. The normal of a face is known, that of
          an edge lies between those of its faces: what is farther than the margin over the least n_z has no contact.
          Walls count beyond their borders, and at an edge with ground on one side only the normal may lean as
          it likes: these are never left out.
Known as: separating planes (separating axis test).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.bvh.height_pyramid import Terrain
from tangere.query.intersection.cylinder_heightfield import UprightCylinder, farthest, node_is_clear
from tangere.query.manifold.narrow_phase.contact import BodyPlace, Edge, has_ground
from tangere.query.manifold.reduction import STEEP
from tangere.runtime import SOUND
from tangere.shape.analytic import CYLINDER, Hulls, PlacedBody, function_for_kind, support_of, support_value_of

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_THIRD = wp.constant(real(1.0 / 3.0))
#: A face with a smaller n_z^2 may be a wall.
_STEEP = wp.constant(real(float(STEEP) ** 2 * (1.0 + 1.0e-9)))
#: The normal at an edge may lean on a face by a hair.
_MOST = wp.constant(real(0.98))
#: Rounding of a plane, relative to the lengths that make it.
_ROUNDING = wp.constant(real(1.0e-12))


def clear_of(kind: int) -> wp.Function:
    """`is_clear(body, hulls, grown, margin, column) -> bool`; `grown` is the cylinder with its margin."""
    return (_round_clear, _cylinder_clear, _cone_clear, _hull_clear)[kind]


@wp.struct
class GroundColumn:
    """Ground under a rectangle, without end below, relative to the body's origin."""

    x0: wp.float64
    x1: wp.float64
    y0: wp.float64
    y1: wp.float64
    top: wp.float64


@wp.func
def ground_reach(u: vec, column: GroundColumn) -> real:
    """How far the ground of a column reaches along u, which does not point down."""
    return farthest(u, column.x0, column.x1, column.y0, column.y1, column.top)


@wp.func
def middle_of(column: GroundColumn) -> vec:
    """The middle of its top."""
    return vec(_HALF * (column.x0 + column.x1), _HALF * (column.y0 + column.y1), column.top)


@wp.func
def _cylinder_clear(body: PlacedBody, hulls: Hulls, grown: UprightCylinder, margin: real, column: GroundColumn) -> bool:
    return node_is_clear(grown, column.x0, column.x1, column.y0, column.y1, column.top)


_round_support = support_of(0)
_cone_support = support_of(2)


@wp.func
def _round_clear(body: PlacedBody, hulls: Hulls, grown: UprightCylinder, margin: real, column: GroundColumn) -> bool:
    middle = middle_of(column)
    u = wp.clamp(wp.dot(middle, body.axis), -body.reach, body.reach) * body.axis - middle
    if u[2] < _ZERO or wp.length(u) <= body.radius:
        return False
    u = wp.normalize(u)
    return ground_reach(u, column) < wp.dot(u, _round_support(body, hulls, -u)) - margin


@wp.func
def _cone_clear(body: PlacedBody, hulls: Hulls, grown: UprightCylinder, margin: real, column: GroundColumn) -> bool:
    v = body.axis
    if v[2] >= _ZERO and ground_reach(v, column) < -body.reach - margin:
        return True
    middle = middle_of(column)
    u = wp.dot(middle, v) * v - middle
    length = wp.length(u)
    if length <= _ZERO:
        return False
    u = u / length
    if u[2] >= _ZERO and ground_reach(u, column) < wp.dot(u, _cone_support(body, hulls, -u)) - margin:
        return True
    u = wp.normalize(u - (_HALF * body.radius / body.reach) * v)
    return u[2] >= _ZERO and ground_reach(u, column) < wp.dot(u, _cone_support(body, hulls, -u)) - margin


@wp.func
def _hull_clear(body: PlacedBody, hulls: Hulls, grown: UprightCylinder, margin: real, column: GroundColumn) -> bool:
    for k in range(hulls.planes.shape[0]):
        plane = hulls.planes[k]
        n = body.rotation * wp.cw_div(vec(plane[0], plane[1], plane[2]), body.half)
        if n[2] <= _ZERO:
            if ground_reach(-n, column) < -plane[3] - margin * wp.length(n):
                return True
    return False


class Apart(NamedTuple):
    """Functions for one kind of body: whether it certainly does not touch a feature."""

    face: wp.Function  #: (t, body, hulls, place, node, heights, part) -> bool: of a cell or of planar ground
    edge: wp.Function  #: (t, body, hulls, place, edge) -> bool


@cache
def apart_of(kind: int) -> Apart:
    """The functions for ROUND, CYLINDER, CONE or HULL."""
    reach, way_to = support_value_of(kind), function_for_kind(kind, _to_segment, _to_cylinder, _to_cylinder, _to_box)
    has_no_point = _is_within_rims if kind == CYLINDER else _is_not_known

    @wp.func
    def is_apart(
        body: PlacedBody, hulls: Hulls, place: BodyPlace, lean: real, aim: vec, a: vec, b: vec, c: vec
    ) -> bool:
        """Whether the plane aimed at a point parts the body from a, b and c, whose normals have `lean` = n_z^2."""
        u = way_to(body, aim)
        if u[2] < _ZERO:
            return False
        away = -reach(body, hulls, -u) - wp.max(wp.dot(u, a), wp.max(wp.dot(u, b), wp.dot(u, c)))
        near = place.margin + place.slack + _ROUNDING * (size_of(body, hulls) + extent(aim) + extent(a))
        return away > _ZERO and away * away * lean > near * near * wp.length_sq(u)

    @wp.func
    def face(
        t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, node: wp.vec3i, h: wp.vec4d, part: int
    ) -> bool:
        x0 = real(node[2] << node[0]) * t.dx - place.centre[0]
        y0 = real(node[1] << node[0]) * t.dy - place.centre[1]
        wide = real(1 << node[0]) * t.dx
        deep = real(1 << node[0]) * t.dy
        n = vec(deep * (h[0] - h[1]), wide * (h[0] - h[2]), wide * deep)
        a = vec(x0, y0, h[0] - place.centre[2])
        if part == 1:
            n = vec(deep * (h[2] - h[3]), wide * (h[1] - h[3]), wide * deep)
            a = vec(x0 + wide, y0 + deep, h[3] - place.centre[2])
        lean = n[2] * n[2] / wp.length_sq(n)
        if lean < _STEEP:
            height = wp.dot(a, n)
            rounding = _ROUNDING * wp.length(n) * (size_of(body, hulls) + extent(a))
            if height < rounding and height + reach(body, hulls, -n) > -rounding:
                return False
        if has_no_point(body, place, x0, x0 + wide, y0, y0 + deep):
            return True
        if part == 2:
            return False
        b = vec(x0 + wide, y0, h[1] - place.centre[2])
        c = vec(x0, y0 + deep, h[2] - place.centre[2])
        return is_apart(body, hulls, place, lean, _THIRD * (a + b + c), a, b, c)

    @wp.func
    def edge(t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, along: Edge) -> bool:
        one = wp.cross(along.way, along.one)
        two = wp.cross(along.way, along.two)
        lean = wp.min(one[2] * one[2] / wp.length_sq(one), two[2] * two[2] / wp.length_sq(two))
        end = along.start + along.way
        if not is_apart(body, hulls, place, _MOST * lean, along.start + _HALF * along.way, along.start, end, end):
            return False
        return has_ground(t, along.row, along.column) and has_ground(t, along.row_beyond, along.column_beyond)

    return Apart(face, edge)


@wp.func
def size_of(body: PlacedBody, hulls: Hulls) -> real:
    """No less than any of the body's lengths."""
    return body.radius + hulls.size * (body.half[0] + body.half[1] + body.half[2])


@wp.func
def extent(p: vec) -> real:
    return wp.abs(p[0]) + wp.abs(p[1]) + wp.abs(p[2])


@wp.func
def _is_within_rims(body: PlacedBody, place: BodyPlace, x0: real, x1: real, y0: real, y1: real) -> bool:
    """Whether a rectangle, seen from above, is inside both rims of a cylinder: it rests on points of those only."""
    most = body.radius * wp.abs(body.axis[2]) - place.slack - _ROUNDING * (body.radius + body.reach)
    x = wp.max(wp.abs(x0), wp.abs(x1)) + body.reach * wp.abs(body.axis[0])
    y = wp.max(wp.abs(y0), wp.abs(y1)) + body.reach * wp.abs(body.axis[1])
    return most > _ZERO and x * x + y * y < most * most


@wp.func
def _is_not_known(body: PlacedBody, place: BodyPlace, x0: real, x1: real, y0: real, y1: real) -> bool:
    return False


@wp.func
def _to_segment(body: PlacedBody, q: vec) -> vec:
    """The way from q to the axis of a round body."""
    return wp.clamp(wp.dot(q, body.axis), -body.reach, body.reach) * body.axis - q


@wp.func
def _to_cylinder(body: PlacedBody, q: vec) -> vec:
    along = wp.dot(q, body.axis)
    across = q - along * body.axis
    u = (wp.clamp(along, -body.reach, body.reach) - along) * body.axis
    beside = wp.length(across)
    if beside > body.radius:
        u += (body.radius / beside - real(1.0)) * across
    return u


@wp.func
def _to_box(body: PlacedBody, q: vec) -> vec:
    local = wp.transpose(body.rotation) * q
    return body.rotation * (wp.min(wp.max(local, -body.half), body.half) - local)
