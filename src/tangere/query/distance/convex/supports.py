"""Convex bodies as the narrow phase sees them: a core with a margin around it, and how far the core reaches.

A sphere is a point with a margin, a capsule a segment; boxes, cylinders, cones, hulls and triangles have none. All
functions are of the body's own frame, one per kind, so that a kernel made for a pair carries nothing of other kinds.
Known as: support mappings of GJK; the margin is the radius of a sphere-swept volume.
"""

from __future__ import annotations

from enum import IntEnum

import warp as wp

from tangere.geometry.simd.farthest_point import farthest_point, largest_along
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))


class ConvexKind(IntEnum):
    """What a core is. Kernels exist for pairs in this order: the smaller kind comes first."""

    POINT = 0  #: of a sphere
    SEGMENT = 1  #: of a capsule, along z
    BOX = 2
    CYLINDER = 3  #: about z
    CONE = 4  #: about z, tip up
    HULL = 5  #: the hull of `count` points of a table, from `first` on
    TRIANGLE = 6  #: three points of a table: a leaf of meshes and of ground


#: Kinds whose bodies are larger than their cores, by `radius`.
ROUNDED = (ConvexKind.POINT, ConvexKind.SEGMENT)
#: Kinds with a rim: their support moves with the direction.
CURVED = (ConvexKind.CYLINDER, ConvexKind.CONE)


@wp.struct
class ConvexShape:
    """One body in its own frame; lengths in metres."""

    radius: wp.float64  #: of a sphere, capsule, cylinder or cone
    half: wp.vec3d  #: of a box; half.z: half the length along z
    axis: wp.vec3d  #: of a segment, unit: z, unless a kernel lays its frame otherwise
    reach: wp.float64  #: no point of the core is farther from the origin
    inner: wp.float64  #: no point outside a core with a volume is nearer to it, up to rounding; zero without one
    first: wp.int32  #: of a hull or triangle: its first point in the table
    count: wp.int32  #: of a hull: how many


def margin_of(kind: int) -> wp.Function:
    """`margin(shape) -> float64`: what is around the core [m]."""
    return _radius if kind in ROUNDED else _no_margin


def core_support_of(kind: int) -> wp.Function:
    """`support(shape, points, d) -> vec3d`: the point of the core that is farthest along d, of any length."""
    supports = _point_support, _segment_support, _box_support, _cylinder_support, _cone_support, _hull_support
    return (*supports, _triangle_support)[kind]


def core_value_of(kind: int) -> wp.Function:
    """`value(shape, points, d) -> float64`: the largest d.p of the core's points p, for a d of any length."""
    values = _point_value, _segment_value, _box_value, _cylinder_value, _cone_value, _hull_value, _triangle_value
    return values[kind]


def rim_of(kind: int) -> wp.Function:
    """`rim(shape, d) -> vec3d`: the part of the support across the axis, where it is on the rim; zero without one."""
    return _disc_rim if kind in CURVED else _no_rim


def on_rim_of(kind: int) -> wp.Function:
    """`on_rim(core) -> float64`: 1 where a support whose part along the axis is `core` is on the rim, else 0."""
    return {ConvexKind.CYLINDER: _always_on_rim, ConvexKind.CONE: _base_on_rim}.get(ConvexKind(kind), _never_on_rim)


def label_of(kind: int) -> wp.Function:
    """`label(shape, points, d) -> int`: which corner of the core is farthest along d: one number for a whole rim."""
    return (_point_label, _segment_label, _box_label, _cylinder_label, _cone_label, _hull_label, _triangle_label)[kind]


def labelled_of(kind: int) -> wp.Function:
    """`corner(shape, points, label, rim) -> vec3d`: the corner of a label, with `rim` added where it is on a rim."""
    corners = _point_corner, _segment_corner, _box_corner, _cylinder_corner, _cone_corner, _hull_corner
    return (*corners, _triangle_corner)[kind]


def bends_of(kind: int) -> wp.Function:
    """`bends(label) -> float64`: 1 where the corner of a label is on a rim, else 0."""
    return {ConvexKind.CYLINDER: _bends, ConvexKind.CONE: _bends_below}.get(ConvexKind(kind), _bends_nowhere)


@wp.func
def _radius(shape: ConvexShape) -> real:
    return shape.radius


@wp.func
def _no_margin(shape: ConvexShape) -> real:
    return _ZERO


@wp.func
def _point_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    return vec(_ZERO, _ZERO, _ZERO)


@wp.func
def _segment_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    return wp.where(wp.dot(shape.axis, d) < _ZERO, -shape.half[2], shape.half[2]) * shape.axis


@wp.func
def _box_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    h = shape.half
    return vec(
        wp.where(d[0] < _ZERO, -h[0], h[0]),
        wp.where(d[1] < _ZERO, -h[1], h[1]),
        wp.where(d[2] < _ZERO, -h[2], h[2]),
    )


@wp.func
def _disc_rim(shape: ConvexShape, d: vec) -> vec:
    across = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    part = _ZERO
    if across > _ZERO:
        part = shape.radius / across
    return vec(d[0] * part, d[1] * part, _ZERO)


@wp.func
def _no_rim(shape: ConvexShape, d: vec) -> vec:
    return vec(_ZERO, _ZERO, _ZERO)


@wp.func
def _always_on_rim(core: vec) -> real:
    return _ONE


@wp.func
def _base_on_rim(core: vec) -> real:
    return wp.where(core[2] < _ZERO, _ONE, _ZERO)


@wp.func
def _never_on_rim(core: vec) -> real:
    return _ZERO


@wp.func
def _cylinder_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    rim = _disc_rim(shape, d)
    return vec(rim[0], rim[1], wp.where(d[2] < _ZERO, -shape.half[2], shape.half[2]))


@wp.func
def _cone_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    across = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    if _TWO * shape.half[2] * d[2] > shape.radius * across:
        return vec(_ZERO, _ZERO, shape.half[2])
    part = _ZERO
    if across > _ZERO:
        part = shape.radius / across
    return vec(d[0] * part, d[1] * part, -shape.half[2])


@wp.func
def _hull_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    return points[farthest_point(points, shape.first, shape.count, d)]


@wp.func
def _triangle_support(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> vec:
    p = points[shape.first]
    q = points[shape.first + 1]
    r = points[shape.first + 2]
    along_p = wp.dot(p, d)
    along_q = wp.dot(q, d)
    along_r = wp.dot(r, d)
    if along_p >= along_q and along_p >= along_r:
        return p
    return wp.where(along_q >= along_r, q, r)


@wp.func
def _point_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    return _ZERO


@wp.func
def _segment_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    return shape.half[2] * wp.abs(wp.dot(shape.axis, d))


@wp.func
def _box_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    return shape.half[0] * wp.abs(d[0]) + shape.half[1] * wp.abs(d[1]) + shape.half[2] * wp.abs(d[2])


@wp.func
def _cylinder_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    return shape.half[2] * wp.abs(d[2]) + shape.radius * wp.sqrt(d[0] * d[0] + d[1] * d[1])


@wp.func
def _cone_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    tip = shape.half[2] * d[2]
    return wp.max(tip, shape.radius * wp.sqrt(d[0] * d[0] + d[1] * d[1]) - tip)


@wp.func
def _hull_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    return largest_along(points, shape.first, shape.count, d)


@wp.func
def _triangle_value(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> real:
    most = wp.max(wp.dot(points[shape.first], d), wp.dot(points[shape.first + 1], d))
    return wp.max(most, wp.dot(points[shape.first + 2], d))


@wp.func
def _point_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    return int(0)


@wp.func
def _point_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    return vec(_ZERO, _ZERO, _ZERO)


@wp.func
def _segment_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    return wp.where(wp.dot(shape.axis, d) < _ZERO, 0, 1)


@wp.func
def _segment_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    return wp.where(label == 0, -shape.half[2], shape.half[2]) * shape.axis


@wp.func
def _box_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    return wp.where(d[0] < _ZERO, 0, 1) + wp.where(d[1] < _ZERO, 0, 2) + wp.where(d[2] < _ZERO, 0, 4)


@wp.func
def _box_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    h = shape.half
    return vec(
        wp.where(label & 1 == 0, -h[0], h[0]),
        wp.where(label & 2 == 0, -h[1], h[1]),
        wp.where(label & 4 == 0, -h[2], h[2]),
    )


@wp.func
def _cylinder_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    return wp.where(d[2] < _ZERO, 0, 1)


@wp.func
def _cylinder_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    return vec(rim[0], rim[1], wp.where(label == 0, -shape.half[2], shape.half[2]))


@wp.func
def _bends(label: int) -> real:
    return _ONE


@wp.func
def _cone_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    across = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    return wp.where(_TWO * shape.half[2] * d[2] > shape.radius * across, 1, 0)


@wp.func
def _cone_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    if label == 0:
        return vec(rim[0], rim[1], -shape.half[2])
    return vec(_ZERO, _ZERO, shape.half[2])


@wp.func
def _bends_below(label: int) -> real:
    return wp.where(label == 0, _ONE, _ZERO)


@wp.func
def _bends_nowhere(label: int) -> real:
    return _ZERO


@wp.func
def _hull_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    return farthest_point(points, shape.first, shape.count, d)


@wp.func
def _hull_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    return points[label]


@wp.func
def _triangle_label(shape: ConvexShape, points: wp.array[wp.vec3d], d: vec) -> int:
    along_p = wp.dot(points[shape.first], d)
    along_q = wp.dot(points[shape.first + 1], d)
    along_r = wp.dot(points[shape.first + 2], d)
    if along_p >= along_q and along_p >= along_r:
        return shape.first
    return wp.where(along_q >= along_r, shape.first + 1, shape.first + 2)


@wp.func
def _triangle_corner(shape: ConvexShape, points: wp.array[wp.vec3d], label: int, rim: vec) -> vec:
    return points[label]
