"""Where the links of a robot are at given configurations, on the host.

Known as: forward kinematics.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import Arrays, InputError, to_numpy
from tangere.shape.robot import RobotDescription


def link_poses(robot: RobotDescription, q: Arrays) -> np.ndarray:
    """(…, links, 4, 4) in the frame of the base; q: (…, dof)."""
    names = robot.joint_names
    values = to_numpy(q, "q")
    if not values.ndim or values.shape[-1] != len(names):
        raise InputError(f"{robot.name}: q must end with {len(names)} joints, not {values.shape}")
    rows = values.reshape(-1, len(names))
    poses = np.zeros((len(rows), len(robot.links), 4, 4))
    for k, (parent, joint) in enumerate(zip(robot.parents, robot.joints, strict=True)):
        local = np.tile(joint.origin, (len(rows), 1, 1))
        if joint.kind != "fixed":
            value = joint.factor * rows[:, names.index(joint.follows)] + joint.offset
            along = joint.origin[:3, :3] @ joint.axis
            if joint.kind == "sliding":
                local[:, :3, 3] += value[:, None] * along
            else:
                local[:, :3, :3] = _turns(along, value) @ joint.origin[:3, :3]
        poses[:, k] = local if parent < 0 else poses[:, parent] @ local
    return poses.reshape(*values.shape[:-1], len(robot.links), 4, 4)


def _turns(axis: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations about a unit axis (Rodrigues)."""
    x, y, z = axis
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, half = np.sin(angles)[:, None, None], np.sin(0.5 * angles)[:, None, None]
    return np.eye(3) + sine * across + 2.0 * half * half * (across @ across)
