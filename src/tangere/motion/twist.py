"""Constant velocities: a body at rest, or one whose pivot goes straight while it turns steadily about it.

Known as: linear interpolation of position with a constant angular velocity; the motion of one step of a rigid-body
integrator. A screw (`screw`) with the same ends differs from it by an arc of the pivot.

Kernels write the records of twists whose poses and velocities stay on a device (`twist_motion`): what `Twist` does on
the host, one body an index. They cannot raise, so `twist_fault` says in a word what is wrong with a row.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.motion.kinematics import RigidMotion
from tangere.motion.poses import LARGEST, NOT_A_ROTATION, ROUNDING, as_poses, as_vectors
from tangere.motion.rigid_motion import Rigid, blank_records
from tangere.runtime import SOUND, Arrays, InputError

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


class Rest(Rigid):
    """No motion.

    Args:
        pose: where the body stays, shape (4, 4) or (n, 4, 4); None means at the identity.
    """

    def __init__(self, pose: Arrays | None = None) -> None:
        poses = as_poses(np.eye(4) if pose is None else pose, "Rest: pose")
        records = blank_records(poses.size // 16)
        records["rotation"] = poses[..., :3, :3].reshape(-1, 3, 3)
        records["origin"] = poses[..., :3, 3].reshape(-1, 3)
        self._set(records, poses.shape[:-2])


class Twist(Rigid):
    """A pivot goes straight at constant velocity while the body turns about it at a constant rate, any number of turns.

    Args:
        start: pose at t = 0, shape (4, 4) or (n, 4, 4).
        displacement: how far the pivot goes over the step, shape (3,) or (n, 3), world [m]; for a velocity in m/s times
            the length of the step in seconds.
        rotation: rotation vector over the step (axis times angle), shape (3,) or (n, 3), world [rad]; its length may
            exceed a full turn.
        pivot: the point that goes straight, shape (3,) or (n, 3) in the body's frame [m]; None means its origin.
    """

    def __init__(self, start: Arrays, displacement: Arrays, rotation: Arrays, pivot: Arrays | None = None) -> None:
        poses = as_poses(start, "Twist: start")
        ways, rotations = as_vectors(displacement, "Twist: displacement"), as_vectors(rotation, "Twist: rotation")
        pivots = np.zeros(3) if pivot is None else as_vectors(pivot, "Twist: pivot")
        leading = [poses.shape[:-2], ways.shape[:-1], rotations.shape[:-1], pivots.shape[:-1]]
        try:
            shape = np.broadcast_shapes(*leading)
        except ValueError as error:
            raise InputError(f"Twist: start, displacement, rotation and pivot are not as many: {leading}") from error
        records = blank_records(int(np.prod(shape)))
        angle = np.broadcast_to(np.linalg.norm(rotations, axis=-1), shape).reshape(-1)
        turning = angle > 0.0
        records["angle"] = angle
        records["axis"][turning] = (
            np.broadcast_to(rotations, (*shape, 3)).reshape(-1, 3)[turning] / angle[turning, None]
        )
        records["rotation"] = poses[..., :3, :3]
        records["pivot"] = pivots
        records["origin"] = poses[..., :3, 3] + np.einsum("...ij,...j->...i", poses[..., :3, :3], pivots)
        records["velocity"] = ways
        self._set(records, shape)


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
