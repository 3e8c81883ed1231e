"""Rotations in kernels: matrices from rotation vectors, and back."""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_TWO_PI = wp.constant(wp.float64(6.283185307179586))


@wp.func
def turn(vector: wp.vec3d) -> wp.mat33d:
    """The rotation of a rotation vector; series where it is small, so that nothing cancels."""
    angle2 = wp.dot(vector, vector)
    s = wp.float64(0.0)
    c = wp.float64(0.0)
    if angle2 < wp.float64(1.0e-4):
        s = wp.float64(1.0) - angle2 / wp.float64(6.0) * (
            wp.float64(1.0) - angle2 / wp.float64(20.0) * (wp.float64(1.0) - angle2 / wp.float64(42.0))
        )
        c = wp.float64(0.5) - angle2 / wp.float64(24.0) * (
            wp.float64(1.0) - angle2 / wp.float64(30.0) * (wp.float64(1.0) - angle2 / wp.float64(56.0))
        )
    else:
        angle = wp.sqrt(angle2)
        s = wp.sin(angle) / angle
        half = wp.sin(wp.float64(0.5) * angle) / angle
        c = wp.float64(2.0) * half * half
    k = wp.skew(vector)
    return wp.identity(n=3, dtype=wp.float64) + s * k + c * (k * k)


@wp.func
def orthogonal(rotation: wp.mat33d) -> wp.mat33d:
    """The nearest rotation to one that is off by rounding: a step of Newton's iteration for the polar factor."""
    one = wp.identity(n=3, dtype=wp.float64)
    return wp.float64(0.5) * (rotation * (wp.float64(3.0) * one - wp.transpose(rotation) * rotation))


@wp.func
def rotation_vector(rotation: wp.mat33d) -> wp.vec3d:
    """The rotation vector of a rotation, by its quaternion: right for small turns and for half turns."""
    w = wp.float64(1.0) + rotation[0, 0] + rotation[1, 1] + rotation[2, 2]
    v = wp.vec3d(rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1])
    if w > wp.float64(0.5):
        s = wp.sqrt(w)
        half = wp.float64(0.5) * v / s  # sin(angle / 2) axis
        sine = wp.length(half)
        cosine = wp.float64(0.5) * s
        if sine < wp.float64(1.0e-9):
            return wp.float64(2.0) * half
        return half * (wp.float64(2.0) * wp.atan2(sine, cosine) / sine)
    # near half a turn: the largest diagonal tells the axis
    k = int(0)
    if rotation[1, 1] > rotation[k, k]:
        k = 1
    if rotation[2, 2] > rotation[k, k]:
        k = 2
    axis = wp.vec3d()
    for j in range(3):
        axis[j] = wp.float64(0.5) * (rotation[j, k] + rotation[k, j])
    axis[k] = rotation[k, k] - wp.float64(0.5) * (w - wp.float64(2.0))  # less the cosine
    axis = wp.normalize(axis)
    if wp.dot(axis, v) < wp.float64(0.0):
        axis = -axis
    return axis * wp.atan2(wp.float64(0.5) * wp.length(v), wp.float64(0.5) * (w - wp.float64(2.0)))


@wp.func
def nearest_branch(vector: wp.vec3d, near: wp.vec3d) -> wp.vec3d:
    """Of the rotation vectors of the same rotation, which differ by whole turns, the one nearest to another vector."""
    angle = wp.length(vector)
    axis = wp.normalize(near)
    if angle > wp.float64(0.0):
        axis = vector / angle
    return (angle + _TWO_PI * wp.round((wp.dot(near, axis) - angle) / _TWO_PI)) * axis
