"""A mesh where it rests or, within its motion, where it is at given times: what the instantaneous queries take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.motion import Path, Rest, Rigid, RigidPose
from tangere.runtime import SOUND, Arrays, InputError, UnsupportedError, to_numpy
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

_ROUNDING = wp.constant(wp.float64(2.0**-49))


@dataclass(frozen=True, eq=False)
class Posed:
    """A rigid mesh in n poses."""

    mesh: Mesh
    poses: np.ndarray  #: (n, 4, 4)
    single: bool  #: one pose, not a batch of one


def as_posed(thing: Mesh | Moving, time: Arrays = 0.0) -> Posed:
    """Where `thing` is at `time`, one or (n,) times in [0, 1]."""
    times = as_instants(time)
    if isinstance(thing, Mesh):
        return _posed(thing, _still(np.eye(4), times))
    if isinstance(thing, Moving) and isinstance(thing.motion, Rest):
        return _posed(thing.shape, _still(_rest_pose(thing.motion), times))
    if isinstance(thing, Moving) and isinstance(thing.motion, (Rigid, Path)):
        return _posed(thing.shape, thing.motion.pose(times))
    if isinstance(thing, Moving) and times.ndim == 0:
        return _posed(thing.at(float(times)), np.eye(4))
    if isinstance(thing, Moving):
        kind = type(thing.motion).__name__
        raise UnsupportedError(f"{kind} motion is asked about at one time: many times at once need a rigid motion")
    raise UnsupportedError(f"{type(thing).__name__} is neither a Mesh nor a Moving one")


def as_instants(time: Arrays) -> np.ndarray:
    """Times in [0, 1], of shape () or (n,)."""
    times = np.array(time) if isinstance(time, float) else to_numpy(time, "time")
    if times.ndim > 1:
        raise InputError(f"time must be one number or have shape (n,), not {times.shape}")
    inside = 0.0 <= time <= 1.0 if isinstance(time, float) else ((times >= 0.0) & (times <= 1.0)).all()
    if not inside:
        raise InputError(f"time must be in [0, 1], not {times.tolist()}")
    return times


def paired(a: Posed, b: Posed, device: wp.Device) -> wp.array:
    """The poses of a and of b of each query, (n, 2) mat44d: n with n, or n with 1."""
    counts = {len(a.poses), len(b.poses)} - {1}
    if len(counts) > 1:
        counts = f"{len(a.poses)} poses of a do not pair off with {len(b.poses)} poses of b"
        raise InputError(f"{counts}: as many of both, or one of either")
    rows = np.empty((counts.pop() if counts else 1, 2, 4, 4))
    rows[:, 0], rows[:, 1] = a.poses, b.poses
    return wp.array(rows, dtype=wp.mat44d, device=device, copy=not device.is_cpu)


def world_scale(a: Posed, b: Posed) -> np.ndarray:
    """(n,) bound of the coordinates in the world; of one pose of each a number."""
    away = [np.abs(body.poses[:, :3, 3]).max(axis=1) for body in (a, b)]
    sizes = [float(np.abs(body.mesh.bounds).max()) for body in (a, b)]
    return np.maximum(*away) + max(sizes)


def _posed(mesh: Mesh, poses: np.ndarray) -> Posed:
    return Posed(mesh, poses.reshape(-1, 4, 4), poses.ndim == 2)


def _rest_pose(motion: Rest) -> np.ndarray:
    """The pose of a body at rest, read from its record: evaluating a motion costs as much as a small query."""
    records = motion.records()
    poses = np.zeros((len(records), 4, 4))
    poses[:, :3, :3] = records["rotation"]
    poses[:, :3, 3] = records["origin"] - (records["rotation"] @ records["pivot"][..., None])[..., 0]
    poses[:, 3, 3] = 1.0
    return poses.reshape(*motion.shape, 4, 4)


def _still(poses: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Poses that do not depend on time, paired off with the times."""
    if times.ndim == 1 and poses.ndim == 2:
        return np.broadcast_to(poses, (len(times), 4, 4))
    return poses


@wp.func
def pose_of(matrix: wp.mat44d) -> RigidPose:
    """Rotation and translation of a (4, 4) matrix."""
    pose = RigidPose()
    for row in range(3):
        for column in range(3):
            pose.rotation[row, column] = matrix[row, column]
        pose.translation[row] = matrix[row, 3]
    return pose


@wp.func
def relative_pose(a: RigidPose, b: RigidPose) -> RigidPose:
    """Where body b is in the frame of body a."""
    pose = RigidPose()
    pose.rotation = wp.transpose(a.rotation) * b.rotation
    pose.translation = wp.transpose(a.rotation) * (b.translation - a.translation)
    return pose


@wp.func
def placement_error(a: RigidPose, b: RigidPose) -> wp.float64:
    """More than what rounding does to corners in the world and to a relative pose, apart from the bodies' own size."""
    sizes = wp.abs(a.translation) + wp.abs(b.translation)
    return _ROUNDING * (sizes[0] + sizes[1] + sizes[2])


@wp.func
def world_corners(corners: wp.array[wp.vec3d], triangle: int, pose: RigidPose) -> wp.mat33d:
    """The corners of a triangle in the world; exact for a body at the identity."""
    return wp.matrix_from_rows(
        pose.rotation * corners[3 * triangle] + pose.translation,
        pose.rotation * corners[3 * triangle + 1] + pose.translation,
        pose.rotation * corners[3 * triangle + 2] + pose.translation,
    )
