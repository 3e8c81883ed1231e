"""Robots looked at in many instants: poses by SciPy's rotations, distances by an engine for bodies at rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.motion import Rest


def link_frames(robot, q: np.ndarray) -> dict[str, np.ndarray]:
    """(n, 4, 4) of each link at configurations (n, dof), each joint by a rotation vector or a slide."""
    names, frames = robot.joint_names, {}
    for link, parent, joint in zip(robot.links, robot.parents, robot.joints, strict=True):
        local = np.tile(joint.origin, (len(q), 1, 1))
        if joint.kind != "fixed":
            value = joint.factor * q[:, names.index(joint.follows)] + joint.offset
            step = np.tile(np.eye(4), (len(q), 1, 1))
            if joint.kind == "sliding":
                step[:, :3, 3] = value[:, None] * joint.axis
            else:
                step[:, :3, :3] = Rotation.from_rotvec(value[:, None] * joint.axis).as_matrix()
            local = local @ step
        frames[link] = local if parent < 0 else frames[robot.links[parent]] @ local
    return frames


class SampledCell:
    """Bodies of a robot and of the world at the instants of one joint-space segment."""

    def __init__(self, robot, world: Mapping[str, object] | None = None, base=None) -> None:
        self.robot, self.world, self.base = robot, dict(world or {}), base
        self.meshes = {link: mesh for link, mesh in zip(robot.links, robot.shapes, strict=True) if mesh is not None}
        self.meshes |= {name: getattr(thing, "shape", thing) for name, thing in self.world.items()}

    def poses(self, q: np.ndarray, times: np.ndarray) -> dict[str, np.ndarray]:
        """Of all bodies at configurations (n, dof), and at times of the whole trajectory, (n,)."""
        frames = link_frames(self.robot, q)
        if self.base is not None:
            frames = {name: self.base.pose(times) @ frame for name, frame in frames.items()}
        for name, thing in self.world.items():
            still = np.tile(np.eye(4), (len(q), 1, 1))
            frames[name] = thing.motion.pose(times) if hasattr(thing, "motion") else still
            frames[name] = np.broadcast_to(frames[name], (len(q), 4, 4))
        return {name: frames[name] for name in self.meshes}

    def distances(self, pair: tuple[str, str], q: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(n,) of two bodies, 0 where they meet."""
        poses = self.poses(q, times)
        a, b = (self.meshes[name].moving(Rest(poses[name])) for name in pair)
        return np.atleast_1d(tg.distance(a, b, device="cpu").upper)


def within(q: np.ndarray, segment: int, share: np.ndarray) -> np.ndarray:
    """(n, dof) on a segment of a trajectory (k, dof)."""
    return q[segment] + share[:, None] * (q[segment + 1] - q[segment])
