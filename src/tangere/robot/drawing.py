"""What a trajectory looks like: links along their ways, the two bodies that touch lit.

Between two configurations links do not move by one screw; the scene has them at some instants in between, and screws
from one to the next, which is for the eye.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tangere.motion import Path, as_poses
from tangere.robot.forward_kinematics import link_poses
from tangere.robot.result import RobotCheck
from tangere.robot.trajectory_checker import clock_of
from tangere.runtime import Arrays, InputError, to_numpy
from tangere.scene import Scene, Thing
from tangere.shape import Moving
from tangere.shape.mesh import Mesh
from tangere.shape.robot import RobotDescription

#: Instants that are drawn of each segment.
INSTANTS = 8
LINK, AROUND, LIT = (0.42, 0.55, 0.72), (0.80, 0.81, 0.83), (0.85, 0.08, 0.12)
_GLASS = 0.45  #: opacity of what is around the robot


def trajectory_scene(
    robot: RobotDescription,
    q: Arrays,
    world: Mapping[str, Mesh | Moving] | None = None,
    found: RobotCheck | None = None,
    *,
    base: Any = None,
    times: Arrays | None = None,
    title: str = "",
) -> Scene:
    """A trajectory as a scene that the viewer plays and pictures show.

    Args:
        robot: whose links move.
        q: configurations, (k, dof).
        world: what is around it, as for `Robot.check`.
        found: what a check said; the bodies that touch first are lit, and the contact is marked.
        base, times: as for `Robot.check`.
        title: of the scene.
    """
    points = to_numpy(q, "q").astype(float)
    if points.ndim != 2 or not len(points):
        raise InputError(f"q must be one trajectory, (k, dof), not {points.shape}")
    clock = clock_of(times, len(points))
    if len(points) == 1:  # stands still, for one second
        points, clock = np.repeat(points, 2, axis=0), clock + [0.0, 1.0]
    share = (clock - clock[0]) / (clock[-1] - clock[0])
    number = np.arange((len(points) - 1) * INSTANTS + 1) / INSTANTS
    at = np.interp(number, np.arange(len(points)), share)
    rows = np.empty((len(number), points.shape[1]))
    for k, column in enumerate(points.T):
        rows[:, k] = np.interp(number, np.arange(len(points)), column)
    poses = link_poses(robot, rows)
    if base is not None:
        poses = (base.pose(at) if hasattr(base, "pose") else as_poses(base, "base"))[..., None, :, :] @ poses
    lit = set(found.pair or ()) if found is not None else set()
    ends = float(clock[0]), float(clock[-1])
    things = [
        Thing(name, mesh.moving(Path(poses[:, k], at, clock=ends)), LIT if name in lit else LINK)
        for k, (name, mesh) in enumerate(zip(robot.links, robot.shapes, strict=True))
        if mesh is not None
    ]
    for name, thing in (world or {}).items():
        things.append(Thing(name, thing, LIT if name in lit else AROUND, _GLASS))
    contacts = None
    if found is not None and len(found.contact):
        contacts = found.contact[:]
        contacts.time[:] = (contacts.time - clock[0]) / (clock[-1] - clock[0])
    named: dict[str, Any] = {} if contacts is None else {"contacts": contacts}
    return Scene(tuple(things), title=title or robot.name, clock=ends, **named)
