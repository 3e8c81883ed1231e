"""Frames for oriented boxes: along an edge and a direction, of a triangle, of a covariance; always orthonormal."""

from __future__ import annotations

import math

import warp as wp

from tangere.bvh.obb.node import box_axis
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_SIXTH_OF_HALF_TURN = wp.constant(wp.float64(math.pi / 6.0))
_THIRD_OF_TURN = wp.constant(wp.float64(2.0 * math.pi / 3.0))


@wp.func
def frame_along(x: wp.vec3d, towards: wp.vec3d) -> wp.mat33d:
    """A right-handed orthonormal frame (columns) with its first axis along x and the second in the plane of both."""
    one = wp.float64(1.0)
    zero = wp.float64(0.0)
    u = wp.vec3d(one, zero, zero)
    size = wp.length(x)
    if size > zero:
        u = wp.normalize(x / size)
    side = wp.vec3d(zero, zero, zero)
    reach = wp.length(towards)
    if reach > zero:
        side = wp.cross(u, towards / reach)
    if not wp.length(side) > wp.float64(1.0e-7):
        # Parallel: any direction will do; the coordinate axis that is furthest from u.
        other = wp.vec3d(one, zero, zero)
        if wp.abs(u[0]) > wp.float64(0.6):
            other = wp.vec3d(zero, one, zero)
        side = wp.cross(u, other)
    side = wp.normalize(side)
    return wp.matrix_from_cols(u, wp.cross(side, u), side)


@wp.func
def triangle_frame(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.mat33d:
    """Along the longest edge, across it, and the normal."""
    edge = b - a
    other = c - a
    if wp.length_sq(c - b) > wp.length_sq(edge):
        edge = c - b
        other = a - b
    if wp.length_sq(a - c) > wp.length_sq(edge):
        edge = a - c
        other = b - c
    return frame_along(edge, other)


@wp.func
def principal_frame(m: wp.mat33d) -> wp.mat33d:
    """Eigenvectors of a symmetric matrix, as columns: the most isolated one in closed form, the others by one rotation.

    A third of the time of an iteration to the last bit, which a frame for a box does not need; it is orthonormal all
    the same.
    """
    one = wp.float64(1.0)
    half = wp.float64(0.5)
    mean = wp.trace(m) / wp.float64(3.0)
    rest = m - wp.diag(wp.vec3d(mean, mean, mean))
    size = wp.sqrt(wp.ddot(rest, rest) / wp.float64(6.0))
    isolated = wp.vec3d()
    if size > wp.float64(0.0):
        third = wp.acos(wp.clamp(half * wp.determinant(rest / size), -one, one)) / wp.float64(3.0)
        value = wp.float64(2.0) * size * wp.cos(third)  # the largest eigenvalue
        if third > _SIXTH_OF_HALF_TURN:
            value = wp.float64(2.0) * size * wp.cos(third + _THIRD_OF_TURN)  # the smallest is further from the middle
        x = wp.vec3d(rest[0, 0] - value, rest[0, 1], rest[0, 2])
        y = wp.vec3d(rest[1, 0], rest[1, 1] - value, rest[1, 2])
        z = wp.vec3d(rest[2, 0], rest[2, 1], rest[2, 2] - value)
        isolated = wp.cross(x, y)
        other = wp.cross(y, z)
        if wp.length_sq(other) > wp.length_sq(isolated):
            isolated = other
        other = wp.cross(z, x)
        if wp.length_sq(other) > wp.length_sq(isolated):
            isolated = other
    frame = frame_along(isolated, wp.vec3d())
    u = box_axis(frame, 1)
    v = box_axis(frame, 2)
    mixed = wp.dot(u, rest * v)
    if mixed != wp.float64(0.0):
        ratio = half * (wp.dot(v, rest * v) - wp.dot(u, rest * u)) / mixed
        tangent = one / (wp.abs(ratio) + wp.sqrt(ratio * ratio + one))
        if ratio < wp.float64(0.0):
            tangent = -tangent
        cosine = one / wp.sqrt(tangent * tangent + one)
        turned = cosine * u - (tangent * cosine) * v
        v = (tangent * cosine) * u + cosine * v
        u = turned
    return wp.matrix_from_cols(box_axis(frame, 0), u, v)
