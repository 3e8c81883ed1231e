"""Where the bodies of a work cell are at given configurations, how joints move them, and their motions over a step.

Method:   a body hangs on a path of frames; poses are products along it. A joint that turns moves a body's origin by its
          axis crossed with the arm to it, one that slides along its axis: the columns of the Jacobian.
Known as: forward kinematics; geometric (space) Jacobian.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tangere.motion import Path, Rest, Rigid, joined_records, motions_of
from tangere.robot.forward_kinematics import joint_poses
from tangere.robot.workcell import Workcell


class CellKinematics:
    """A cell at n configurations.

    Args:
        cell: the robots and things.
        q: configurations of the whole cell, (n, dof).
        times: of the given motions, in [0, 1], (n,).
    """

    def __init__(self, cell: Workcell, q: np.ndarray, times: np.ndarray) -> None:
        self._cell, self._q, self._times = cell, q, times
        count = len(q)
        still = np.broadcast_to(np.eye(4), (count, 4, 4)), np.zeros((count, 6, cell.dof))
        self._known: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {(): still}

    def pose(self, body: int) -> np.ndarray:
        """(n, 4, 4) of the frame that a body's mesh is in."""
        return self._frame(self._cell.paths[body])[0]

    def jacobian(self, body: int) -> np.ndarray:
        """(n, 6, dof) velocity of that frame's origin, and its angular velocity, in the world, for each joint value."""
        return self._frame(self._cell.paths[body])[1]

    def _frame(self, path: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        known = self._known.get(path)
        if known is not None:
            return known
        above, carried = self._frame(path[:-1])
        cell, number = self._cell, path[-1]
        if number >= len(cell.joints):
            pose = above @ cell.given[number - len(cell.joints)].pose(self._times)
        else:
            joint, origin = cell.joints[number], cell.origins[number]
            value = joint.factor * self._q[:, cell.value[number]] + joint.offset
            pose = above @ joint_poses(origin, joint.axis, value, sliding=joint.kind == "sliding")
        jacobian = carried.copy()
        jacobian[:, :3] += np.cross(carried[:, 3:], (pose - above)[:, :3, 3, None], axis=1)
        if number < len(cell.joints):
            along = cell.joints[number].factor * (pose[:, :3, :3] @ cell.joints[number].axis)
            rows = slice(0, 3) if cell.joints[number].kind == "sliding" else slice(3, 6)
            jacobian[:, rows, cell.value[number]] += along
        self._known[path] = pose, jacobian
        return pose, jacobian


def body_motion(cell: Workcell, body: int, q: tuple[np.ndarray, np.ndarray], span: tuple[float, float]) -> Rigid:
    """How a body moves while joints go from one configuration (dof,) to another, between two times of given motions.

    No pose of a given `Path` is strictly between these times.
    """
    parts: list[Any] = []
    for number in cell.paths[body]:
        if number >= len(cell.joints):
            motion = cell.given[number - len(cell.joints)]
            ends = np.array([span[0]]), np.array([span[1]])
            parts.append((motion.between(*ends) if isinstance(motion, Path) else motion.part(*ends)).records())
        else:
            joint, value = cell.joints[number], cell.value[number]
            parts.append(
                replace(joint, origin=cell.origins[number]).between(float(q[0][value]), float(q[1][value])).records()
            )
    if not parts:
        return Rest()
    records = joined_records(parts)
    return motions_of(records, len(records), ())
