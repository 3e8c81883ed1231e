"""Where the links of a robot are at given configurations, and how joints move them, on the host.

Known as: forward kinematics; geometric (space) Jacobian.
"""

from __future__ import annotations

import math

import numpy as np

from tangere.runtime import Arrays, InputError, to_numpy
from tangere.shape.robot import RobotDescription


def link_poses(robot: RobotDescription, q: Arrays) -> np.ndarray:
    """(…, links, 4, 4) in the frame of the base; q: (…, dof)."""
    rows, front = _configurations(robot, q)
    return _poses(robot, rows).reshape(*front, len(robot.links), 4, 4)


def link_jacobians(robot: RobotDescription, q: Arrays) -> np.ndarray:
    """(…, links, 6, dof) of the velocity of each link's origin and its angular velocity, in the frame of the base."""
    rows, front = _configurations(robot, q)
    poses, names = _poses(robot, rows), robot.joint_names
    found = np.zeros((len(rows), len(robot.links), 6, len(names)))
    for k, (parent, joint) in enumerate(zip(robot.parents, robot.joints, strict=True)):
        if parent >= 0:
            found[:, k] = found[:, parent]
            arm = poses[:, k, :3, 3] - poses[:, parent, :3, 3]
            found[:, k, :3] += np.cross(found[:, parent, 3:], arm[:, :, None], axis=1)
        if joint.kind != "fixed":
            way = slice(0, 3) if joint.kind == "sliding" else slice(3, 6)
            found[:, k, way, names.index(joint.follows)] += joint.factor * (poses[:, k, :3, :3] @ joint.axis)
    return found.reshape(*front, len(robot.links), 6, len(names))


def joint_poses(origin: np.ndarray, axis: np.ndarray, values: np.ndarray, *, sliding: bool) -> np.ndarray:
    """(n, 4, 4) of what hangs on a joint, in its parent's frame (Rodrigues)."""
    poses = np.tile(origin, (len(values), 1, 1))
    along = origin[:3, :3] @ axis
    if sliding:
        poses[:, :3, 3] += values[:, None] * along
        return poses
    x, y, z = along
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, half = np.sin(values)[:, None, None], np.sin(0.5 * values)[:, None, None]
    poses[:, :3, :3] = (np.eye(3) + sine * across + 2.0 * half * half * (across @ across)) @ origin[:3, :3]
    return poses


def _configurations(robot: RobotDescription, q: Arrays) -> tuple[np.ndarray, tuple[int, ...]]:
    """(n, dof), and what was in front."""
    values, dof = to_numpy(q, "q"), len(robot.joint_names)
    if not values.ndim or values.shape[-1] != dof:
        raise InputError(f"{robot.name}: q must end with {dof} joints, not {values.shape}")
    return values.reshape(math.prod(values.shape[:-1]), dof), values.shape[:-1]


def _poses(robot: RobotDescription, rows: np.ndarray) -> np.ndarray:
    """(n, links, 4, 4)"""
    names = robot.joint_names
    poses = np.zeros((len(rows), len(robot.links), 4, 4))
    for k, (parent, joint) in enumerate(zip(robot.parents, robot.joints, strict=True)):
        local = joint.origin
        if joint.kind != "fixed":
            value = joint.factor * rows[:, names.index(joint.follows)] + joint.offset
            local = joint_poses(joint.origin, joint.axis, value, sliding=joint.kind == "sliding")
        poses[:, k] = local if parent < 0 else poses[:, parent] @ local
    return poses
