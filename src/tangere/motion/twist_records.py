"""Twists written by kernels: the records of `Twist` from arrays of poses and velocities that stay on a device.

Method: what `Twist` does on the host, one body an index; a rotation block that is nearly one is mended as `as_poses`
        does. Kernels cannot raise, so `twist_fault` says in a word what is wrong with a row.
"""

from __future__ import annotations

import warp as wp

from tangere.motion.kinematics import RigidMotion
from tangere.motion.poses import LARGEST, NOT_A_ROTATION, ROUNDING
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: What is wrong with a twist, by the word of `twist_fault`.
TWIST_FAULTS = (
    "",
    "a pose that is not finite",
    "a pose that is not rigid: its rotation block is not orthogonal",
    "a pose that is not rigid: it mirrors",
    "a displacement that is not finite",
    "a rotation vector that is not finite",
    "a pivot that is not finite",
)

_LARGEST = wp.constant(wp.float64(LARGEST))
_NOT_A_ROTATION = wp.constant(wp.float64(NOT_A_ROTATION))
_ROUNDING = wp.constant(wp.float64(ROUNDING))
_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_THREE = wp.constant(wp.float64(3.0))


@wp.struct
class TwistArrays:
    """The twists of n bodies, one row each."""

    rotation: wp.array[wp.mat33d]  #: at t = 0
    origin: wp.array[wp.vec3d]  #: where the origin of the body is at t = 0, world [m]
    displacement: wp.array[wp.vec3d]  #: of the pivot over the step, world [m]
    turn: wp.array[wp.vec3d]  #: rotation vector over the step, world [rad]
    pivot: wp.array[wp.vec3d]  #: in the body's frame [m]


@wp.func
def twist_motion(twists: TwistArrays, i: int) -> RigidMotion:
    """The record of twist i."""
    motion = RigidMotion()
    rotation = mended(twists.rotation[i])
    turn = twists.turn[i]
    angle = wp.length(turn)
    motion.angle = angle
    motion.axis = wp.vec3d(_ZERO, _ZERO, _ONE)
    if angle > _ZERO:
        motion.axis = turn / angle
    motion.rotation = rotation
    motion.pivot = twists.pivot[i]
    motion.origin = twists.origin[i] + rotation * twists.pivot[i]
    motion.velocity = twists.displacement[i]
    motion.span = _ONE
    return motion


@wp.func
def twist_fault(twists: TwistArrays, i: int) -> int:
    """What is wrong with twist i: a place in `TWIST_FAULTS`, 0 for nothing."""
    rotation = twists.rotation[i]
    fault = int(0)
    if not is_finite(twists.pivot[i]):
        fault = 6
    if not is_finite(twists.turn[i]):
        fault = 5
    if not is_finite(twists.displacement[i]):
        fault = 4
    if wp.determinant(rotation) < _ZERO:
        fault = 3
    if not off_rotation(rotation) <= _NOT_A_ROTATION:
        fault = 2
    finite = is_finite(twists.origin[i])
    for k in range(3):
        finite = finite and is_finite(rotation[k])
    if not finite:
        fault = 1
    return fault


@wp.func
def mended(rotation: wp.mat33d) -> wp.mat33d:
    """The nearest rotation, where a matrix is one up to single precision (Newton's iteration)."""
    result = rotation
    if off_rotation(rotation) > _ROUNDING:
        for _k in range(3):
            gram = wp.transpose(result) * result
            result = _HALF * (result * (_THREE * wp.identity(3, dtype=wp.float64) - gram))
    return result


@wp.func
def off_rotation(rotation: wp.mat33d) -> wp.float64:
    """How far R^T R is from 1."""
    gram = wp.transpose(rotation) * rotation
    off = wp.float64(0.0)
    for i in range(3):
        for j in range(3):
            off = wp.max(off, wp.abs(gram[i, j] - wp.where(i == j, _ONE, _ZERO)))
    return off


@wp.func
def is_finite(v: wp.vec3d) -> bool:
    """Whether all numbers are, and small enough for their squares and cubes to be."""
    return wp.abs(v[0]) <= _LARGEST and wp.abs(v[1]) <= _LARGEST and wp.abs(v[2]) <= _LARGEST
