"""What moves together: the links of a robot between two moving joints, and their bodies in one frame.

Question: which bodies can move against each other, and by which joints?
Method:   fixed joints are left out: links that they hold together make a group, which hangs on one moving joint. A
          body is baked into the frame of its group. Group 0 stands on the base.
Known as: merging fixed joints, lumping (URDF readers of Drake, MuJoCo, Isaac).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.motion import as_poses
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh
from tangere.shape.robot import Joint, RobotDescription


@dataclass(frozen=True, eq=False)
class RigidGroups:
    """The groups of a robot, parents first, and its bodies."""

    names: tuple[str, ...]  #: of the links that have a body
    meshes: tuple[Mesh, ...]  #: of these, in the frames of their groups
    parts: tuple[tuple[Mesh | Analytic, ...], ...]  #: what these are made of, there
    group: tuple[int, ...]  #: of these
    links: tuple[tuple[str, ...], ...]  #: the links of each group
    parents: tuple[int, ...]  #: of each group, -1 for the base
    joints: tuple[Joint, ...]  #: that move the groups from 1 on
    origins: np.ndarray  #: (groups - 1, 4, 4) where these joints are in the frames of the parents' groups
    place: dict[str, tuple[int, np.ndarray]]  #: of each link: its group, and its pose in the group's frame

    @classmethod
    def of(cls, robot: RobotDescription) -> RigidGroups:
        """The groups of a robot."""
        links: list[list[str]] = [[]]
        parents, joints, origins = [-1], [], []
        place: dict[str, tuple[int, np.ndarray]] = {}
        names, meshes, parts, group = [], [], [], []
        rows = zip(robot.links, robot.parents, robot.joints, robot.shapes, strict=True)
        for link, (name, parent, joint, mesh) in enumerate(rows):
            above, pose = place[robot.links[parent]] if parent >= 0 else (0, np.eye(4))
            pose = pose @ joint.origin
            if joint.kind != "fixed":
                links.append([])
                parents.append(above)
                joints.append(joint)
                origins.append(pose)
                above, pose = len(links) - 1, np.eye(4)
            place[name] = above, pose
            links[above].append(name)
            if mesh is not None:
                names.append(name)
                meshes.append(_baked(mesh, pose))
                parts.append(tuple(_baked(part, pose) for part in robot.parts_of(link)))
                group.append(above)
        return cls(
            tuple(names),
            tuple(meshes),
            tuple(parts),
            tuple(group),
            tuple(map(tuple, links)),
            tuple(parents),
            tuple(joints),
            as_poses(np.array(origins).reshape(-1, 4, 4), f"Robot {robot.name!r}: joints"),
            place,
        )

    def path(self, group: int) -> tuple[int, ...]:
        """The joints that move a group, from the base on, by their numbers."""
        joints = []
        while group > 0:
            joints.append(group - 1)
            group = self.parents[group]
        return tuple(reversed(joints))


def _baked(mesh: Any, pose: np.ndarray) -> Any:
    """A part in another frame: kept with a mesh, for robots that differ little share most of their links."""
    if np.array_equal(pose, np.eye(4)):
        return mesh
    if isinstance(mesh, Analytic):
        return mesh.at(pose)
    key = (RigidGroups, pose.tobytes())
    baked = mesh.cache.get(key)
    if baked is None:
        baked = mesh.cache[key] = mesh.at(pose)
    return baked
