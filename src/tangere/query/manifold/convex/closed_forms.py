"""How deep are two cores in each other, where formulas tell: points in solids, segments in boxes, and two boxes.

Question: the least translation that parts two cores that have a point in common, or nearly.
Method:   a point leaves a solid across its nearest face, side or plane. A segment and a box, or two boxes, part across
          a normal of a face or a pair of edges, for the difference of two has no other faces; faces are preferred where
          an edge pair is no shorter than rounding. Points and segments among themselves have no depth, but a direction
          across both.
Sound:    the depth is the reach of the difference along the normal, from the supports of both: a translation by it
          parts the cores, whatever the quality of the normal. It is the least there is, exact to rounding; negative, a
          gap, where cores do not quite meet.
Known as: separating axis test (Gottschalk, Lin and Manocha 1996); projection of a point on the boundary of a solid.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.gjk import separating_direction
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of, core_value_of
from tangere.query.manifold.convex.features import HullFaces
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_FAR = wp.constant(real(1.0e300))
#: Crosses of edges shorter than this are noise: the edges are parallel.
_NO_DIRECTION = wp.constant(real(1.0e-9))
#: A way across two edges is shorter than one across a face by this part of the size, or not at all.
_SHORTER = wp.constant(real(1.0e-9))

box_value = core_value_of(ConvexKind.BOX)
box_support = core_support_of(ConvexKind.BOX)


@wp.struct
class WayOut:
    """The least way out of two cores, in a's frame."""

    depth: wp.float64  #: negative where they are apart [m]
    normal: wp.vec3d  #: unit, pushes a away from b
    point_a: wp.vec3d  #: deepest point of a's core; b's is `depth` farther along the normal


@cache
def point_in(kind: int) -> wp.Function:
    """`way_out(…)`, as `approach.way_out_of` says, of a point and a solid."""
    nearest_face, value = _NEAREST_FACES[ConvexKind(kind)], core_value_of(kind)

    @wp.func
    def way_out(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        faces_b: HullFaces,
        rotation: wp.mat33d,
        offset: vec,
    ) -> WayOut:
        p = -(offset * rotation)
        n = nearest_face(b, faces_b.planes, p)
        found = WayOut()
        found.depth = value(b, points_b, n) - wp.dot(n, p)
        found.normal = rotation * n
        return found

    return way_out


@wp.func
def _sign(x: real) -> real:
    return wp.where(x < _ZERO, -_ONE, _ONE)


@wp.func
def _face_of_box(b: ConvexShape, planes: wp.array[wp.vec4d], p: vec) -> vec:
    x = b.half[0] - wp.abs(p[0])
    y = b.half[1] - wp.abs(p[1])
    z = b.half[2] - wp.abs(p[2])
    if x <= y and x <= z:
        return vec(_sign(p[0]), _ZERO, _ZERO)
    if y <= z:
        return vec(_ZERO, _sign(p[1]), _ZERO)
    return vec(_ZERO, _ZERO, _sign(p[2]))


@wp.func
def _face_of_cylinder(b: ConvexShape, planes: wp.array[wp.vec4d], p: vec) -> vec:
    around = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    if b.half[2] - wp.abs(p[2]) <= b.radius - around:
        return vec(_ZERO, _ZERO, _sign(p[2]))
    if around > _ZERO:
        return vec(p[0] / around, p[1] / around, _ZERO)
    return vec(_ONE, _ZERO, _ZERO)


@wp.func
def _face_of_cone(b: ConvexShape, planes: wp.array[wp.vec4d], p: vec) -> vec:
    around = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    height = _TWO * b.half[2]
    up = p[2] + b.half[2]
    slope = wp.sqrt(height * height + b.radius * b.radius)
    if up * slope <= height * (b.radius - around) - b.radius * up:
        return vec(_ZERO, _ZERO, -_ONE)
    way = vec(_ONE, _ZERO, _ZERO)
    if around > _ZERO:
        way = vec(p[0] / around, p[1] / around, _ZERO)
    return vec(way[0] * height / slope, way[1] * height / slope, b.radius / slope)


@wp.func
def _face_of_hull(b: ConvexShape, planes: wp.array[wp.vec4d], p: vec) -> vec:
    best = int(0)
    least = _FAR + _ZERO
    for k in range(planes.shape[0]):
        plane = planes[k]
        here = plane[3] - (plane[0] * p[0] + plane[1] * p[1] + plane[2] * p[2])
        if here < least:
            least = here
            best = k
    plane = planes[best]
    return vec(plane[0], plane[1], plane[2])


_NEAREST_FACES = {
    ConvexKind.BOX: _face_of_box,
    ConvexKind.CYLINDER: _face_of_cylinder,
    ConvexKind.CONE: _face_of_cone,
    ConvexKind.HULL: _face_of_hull,
}


@wp.func
def segment_in_box(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    faces_b: HullFaces,
    rotation: wp.mat33d,
    offset: vec,
) -> WayOut:
    middle = -(offset * rotation)
    u = a.axis * rotation  # in b's frame
    half = a.half[2]
    size = a.reach + b.reach
    depth = _FAR + _ZERO
    normal = vec(_ZERO, _ZERO, _ONE)
    along = real(0.0)  # where on the segment its deepest point is
    for k in range(3):
        here = b.half[k] + half * wp.abs(u[k]) - wp.abs(middle[k])
        if here < depth:
            depth = here
            normal = vec(_ZERO, _ZERO, _ZERO)
            normal[k] = _sign(middle[k])
            along = wp.where(normal[k] * u[k] > _ZERO, -half, half)
    for k in range(3):
        e = vec(_ZERO, _ZERO, _ZERO)
        e[k] = _ONE
        n = wp.cross(u, e)
        long = wp.length(n)
        if long > _NO_DIRECTION:
            n = n * (_sign(wp.dot(n, middle)) / long)
            here = box_value(b, points_b, n) + half * wp.abs(wp.dot(u, n)) - wp.dot(n, middle)
            if here < depth - _SHORTER * size:
                depth = here
                normal = n
                # over the edge of the box that is farthest along n
                aside = wp.cross(e, n)
                across = wp.dot(u, aside)
                along = real(0.0)
                if across != _ZERO:
                    edge = box_support(b, points_b, n)
                    along = wp.clamp(wp.dot(edge - middle, aside) / across, -half, half)
    found = WayOut()
    found.depth = depth
    found.normal = rotation * normal
    found.point_a = along * a.axis
    return found


@wp.func
def box_in_box(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    faces_b: HullFaces,
    rotation: wp.mat33d,
    offset: vec,
) -> WayOut:
    size = a.reach + b.reach
    depth = _FAR + _ZERO
    normal = vec(_ZERO, _ZERO, _ONE)
    k = int(0)
    while k < 15:
        n = separating_direction(k, rotation)
        long = wp.length(n)
        if long > _NO_DIRECTION:
            n = n * (wp.where(wp.dot(n, offset) > _ZERO, -_ONE, _ONE) / long)
            here = box_value(a, points_a, n) + box_value(b, points_b, n * rotation) + wp.dot(n, offset)
            if here < depth - wp.where(k < 6, _ZERO, _SHORTER * size):
                depth = here
                normal = n
        k += 1
    found = WayOut()
    found.depth = depth
    found.normal = normal
    found.point_a = box_support(a, points_a, -normal)
    return found


@wp.func
def across(d: vec) -> vec:
    """A unit vector across d."""
    e = vec(_ONE, _ZERO, _ZERO)
    if wp.abs(d[0]) > wp.abs(d[1]):
        e = vec(_ZERO, _ONE, _ZERO)
    return wp.normalize(wp.cross(d, e))


@cache
def direction_across_of(kind_a: int, kind_b: int) -> wp.Function:
    """`direction(a, rotation, apart) -> vec3d`: a unit vector across two points or segments that nearly meet.

    In a's frame, along `apart`, from b's nearest point to a's, as far as that is across.
    """
    segment_a, segment_b = (wp.constant(int(kind == ConvexKind.SEGMENT)) for kind in (kind_a, kind_b))

    @wp.func
    def direction(a: ConvexShape, rotation: wp.mat33d, apart: vec) -> vec:
        w = vec(rotation[0, 2], rotation[1, 2], rotation[2, 2])
        if segment_b == 0:
            return vec(_ZERO, _ZERO, _ONE)
        n = across(w)
        if segment_a == 0:
            off = apart - wp.dot(apart, w) * w
            long = wp.length(off)
            if long > _ZERO:
                n = off / long
                n = wp.normalize(n - wp.dot(n, w) * w)
        else:
            both = wp.cross(a.axis, w)
            long = wp.length(both)
            if long > _NO_DIRECTION:
                n = both / long
        return wp.where(wp.dot(n, apart) < _ZERO, -n, n)

    return direction
