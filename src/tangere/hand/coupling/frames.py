"""Frames, motions from one to another, and rotations as vectors: axis times angle, and back.

Known as: exponential and logarithm of SO(3). The logarithm goes through the quaternion, so that it is as precise for
the tiniest turns as for half turns.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver import vec6d
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class PlacedFrame:
    """A place and a rotation."""

    position: wp.vec3d  # [m]
    rotation: wp.mat33d


@wp.func
def rotation_of(vector: wp.vec3d) -> wp.mat33d:
    """The rotation of a rotation vector; a series where it is small."""
    square = wp.dot(vector, vector)
    s = wp.float64(1.0) - square / wp.float64(6.0) * (wp.float64(1.0) - square / wp.float64(20.0))
    c = wp.float64(0.5) - square / wp.float64(24.0) * (wp.float64(1.0) - square / wp.float64(30.0))
    if square > wp.float64(1.0e-5):
        angle = wp.sqrt(square)
        half = wp.sin(wp.float64(0.5) * angle) / angle
        s = wp.sin(angle) / angle
        c = wp.float64(2.0) * half * half
    k = wp.skew(vector)
    return wp.identity(n=3, dtype=wp.float64) + s * k + c * (k * k)


@wp.func
def vector_of(rotation: wp.mat33d) -> wp.vec3d:
    """The rotation vector of a rotation, of at most half a turn."""
    q = wp.quat_from_matrix(rotation)
    v = wp.vec3d(q[0], q[1], q[2])
    w = q[3]
    if w < wp.float64(0.0):
        v = -v
        w = -w
    length = wp.length(v)
    scale = wp.float64(2.0)
    if length > wp.float64(1.0e-12):
        scale = wp.float64(2.0) * wp.atan2(length, w) / length
    return scale * v


@wp.func
def orthonormal(rotation: wp.mat33d) -> wp.mat33d:
    """The rotation nearest to one that is off by rounding: a step of Newton's iteration for the polar factor."""
    one = wp.identity(n=3, dtype=wp.float64)
    return wp.float64(0.5) * (rotation * (wp.float64(3.0) * one - wp.transpose(rotation) * rotation))


@wp.func
def linear(motion: vec6d) -> wp.vec3d:
    """The linear part of a motion or a wrench."""
    return wp.vec3d(motion[0], motion[1], motion[2])


@wp.func
def angular(motion: vec6d) -> wp.vec3d:
    """The angular part of a motion or a wrench."""
    return wp.vec3d(motion[3], motion[4], motion[5])


@wp.func
def six(a: wp.vec3d, b: wp.vec3d) -> vec6d:
    """A motion or a wrench of its parts."""
    return vec6d(a[0], a[1], a[2], b[0], b[1], b[2])


@wp.func
def motion_between(start: PlacedFrame, end: PlacedFrame) -> vec6d:
    """Way and rotation vector."""
    return six(end.position - start.position, vector_of(end.rotation * wp.transpose(start.rotation)))
