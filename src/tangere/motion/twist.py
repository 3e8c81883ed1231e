"""Constant velocities: a body at rest, or one whose pivot goes straight while it turns steadily about it.

Known as: linear interpolation of position with a constant angular velocity; the motion of one step of a rigid-body
integrator. A screw (`screw`) with the same ends differs from it by an arc of the pivot.
"""

from __future__ import annotations

import numpy as np

from tangere.motion.poses import as_poses, as_vectors
from tangere.motion.rigid_motion import Rigid, blank_records
from tangere.runtime import Arrays, InputError


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
