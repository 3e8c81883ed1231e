"""The point of a solid that is nearest to a given one, and how fast the distance bends along a line: per kind.

All in the solid's own frame. `bend` is the second derivative of half the squared distance along a unit vector u, that
is u.(I - J)u with the derivative J of the projection: what Newton's method on a segment needs (`closed_forms`).
Known as: projection on a convex set; its generalised Jacobian.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.geometry.closest_points import closest_on_triangle
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_TINY = wp.constant(real(1.0e-300))


@wp.struct
class Projection:
    point: wp.vec3d
    bend: wp.float64


def projection_of(kind: int) -> Any:
    """`project(shape, points, p, u) -> Projection` on the core of a kind; None where there is no formula."""
    projections = {
        ConvexKind.POINT: _on_point,
        ConvexKind.SEGMENT: _on_segment,
        ConvexKind.BOX: _on_box,
        ConvexKind.CYLINDER: _on_cylinder,
        ConvexKind.CONE: _on_cone,
        ConvexKind.TRIANGLE: _on_triangle,
    }
    return projections.get(ConvexKind(kind))


@wp.func
def _on_point(shape: ConvexShape, points: wp.array[wp.vec3d], p: vec, u: vec) -> Projection:
    found = Projection()
    found.bend = _ONE
    return found


@wp.func
def _on_segment(shape: ConvexShape, points: wp.array[wp.vec3d], p: vec, u: vec) -> Projection:
    found = Projection()
    z = wp.clamp(p[2], -shape.half[2], shape.half[2])
    found.point = vec(_ZERO, _ZERO, z)
    found.bend = _ONE
    if z == p[2]:
        found.bend = u[0] * u[0] + u[1] * u[1]
    return found


@wp.func
def _on_box(shape: ConvexShape, points: wp.array[wp.vec3d], p: vec, u: vec) -> Projection:
    found = Projection()
    h = shape.half
    q = vec(wp.clamp(p[0], -h[0], h[0]), wp.clamp(p[1], -h[1], h[1]), wp.clamp(p[2], -h[2], h[2]))
    found.point = q
    found.bend = (
        wp.where(q[0] != p[0], u[0] * u[0], _ZERO)
        + wp.where(q[1] != p[1], u[1] * u[1], _ZERO)
        + wp.where(q[2] != p[2], u[2] * u[2], _ZERO)
    )
    return found


@wp.func
def _on_cylinder(shape: ConvexShape, points: wp.array[wp.vec3d], p: vec, u: vec) -> Projection:
    found = Projection()
    z = wp.clamp(p[2], -shape.half[2], shape.half[2])
    squared = p[0] * p[0] + p[1] * p[1]
    across = wp.sqrt(squared)
    part = _ONE
    if across > shape.radius:
        part = shape.radius / across
    found.point = vec(p[0] * part, p[1] * part, z)
    bend = wp.where(z != p[2], u[2] * u[2], _ZERO)
    if across > shape.radius:
        outward = p[0] * u[0] + p[1] * u[1]
        outward = outward * outward / squared
        bend += outward + (_ONE - part) * wp.max(u[0] * u[0] + u[1] * u[1] - outward, _ZERO)
    found.bend = bend
    return found


@wp.func
def _on_cone(shape: ConvexShape, points: wp.array[wp.vec3d], p: vec, u: vec) -> Projection:
    found = Projection()
    h = shape.half[2]
    radius = shape.radius
    across = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    # In the half plane (across, z): the base, or the side from (radius, -h) to (0, h).
    x = across
    z = p[2]
    flat = _ZERO  # part of a motion outwards, and of one along z, that the projection follows: J of the half plane
    steep = _ZERO
    both = _ZERO
    along = (radius - across) * radius + _TWO * h * (p[2] + h)
    whole = radius * radius + real(4.0) * h * h
    if p[2] <= -h and across <= radius:
        z = -h
        flat = _ONE
    elif p[2] > -h and _TWO * h * (across - radius) + radius * (p[2] + h) <= _ZERO:
        flat = _ONE
        steep = _ONE
    elif along <= _ZERO:
        x = radius
        z = -h
    elif along >= whole:
        x = _ZERO
        z = h
    else:
        t = along / whole
        x = radius * (_ONE - t)
        z = _TWO * h * t - h
        flat = radius * radius / whole
        steep = _ONE - flat
        both = -_TWO * h * radius / whole
    part = x / wp.max(across, _TINY)
    if across == _ZERO:
        part = _ZERO
    found.point = vec(p[0] * part, p[1] * part, z)
    if x == across:
        found.point = vec(p[0], p[1], z)
        part = _ONE
    outward = (p[0] * u[0] + p[1] * u[1]) / wp.max(across, _TINY)
    sideways = wp.max(u[0] * u[0] + u[1] * u[1] - outward * outward, _ZERO)
    bend = (_ONE - flat) * outward * outward + (_ONE - steep) * u[2] * u[2] - _TWO * both * outward * u[2]
    found.bend = wp.max(bend, _ZERO) + wp.max(_ONE - part, _ZERO) * sideways
    return found


@wp.func
def _on_triangle(shape: ConvexShape, points: wp.array[wp.vec3d], p: vec, u: vec) -> Projection:
    found = Projection()
    a = points[shape.first]
    b = points[shape.first + 1]
    c = points[shape.first + 2]
    w = closest_on_triangle(p, a, b, c)
    found.point = w[0] * a + w[1] * b + w[2] * c
    n = wp.cross(b - a, c - a)
    along = wp.dot(n, u)
    found.bend = _ONE
    if w[0] > _ZERO and w[1] > _ZERO and w[2] > _ZERO:
        found.bend = along * along / wp.max(wp.dot(n, n), _TINY)
    elif w[0] == _ZERO and w[1] > _ZERO and w[2] > _ZERO:
        found.bend = _across(c - b, u)
    elif w[1] == _ZERO and w[0] > _ZERO and w[2] > _ZERO:
        found.bend = _across(c - a, u)
    elif w[2] == _ZERO and w[0] > _ZERO and w[1] > _ZERO:
        found.bend = _across(b - a, u)
    return found


@wp.func
def _across(edge: vec, u: vec) -> real:
    """The squared part of a unit vector u across an edge."""
    along = wp.dot(edge, u)
    return wp.max(_ONE - along * along / wp.max(wp.dot(edge, edge), _TINY), _ZERO)
