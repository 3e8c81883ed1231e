"""Drake (PyPI: drake): the collision checker of its planners, which samples an edge between two configurations.

The robot is written as a URDF file of its collision bodies alone. Meshes are their convex hulls to Drake's checker, as
its documentation says.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from pydrake.geometry import Mesh as DrakeMesh
from pydrake.math import RigidTransform
from pydrake.multibody.plant import CoulombFriction
from pydrake.planning import RobotDiagramBuilder, SceneGraphCollisionChecker
from scipy.spatial.transform import Rotation

import tangere as tg

__all__ = ["DrakeRobot"]

_KINDS = {"fixed": "fixed", "turning": "revolute", "sliding": "prismatic"}


class DrakeRobot:
    """A robot and things around it, and which pairs of their names are compared.

    Args:
        compared: names of two links, or of a link and a thing.
        folder: for files.
    """

    def __init__(
        self, robot: tg.Robot, world: Mapping[str, tg.Mesh], compared: Sequence[tuple[str, str]], folder: Path
    ) -> None:
        self._robot = robot
        builder = RobotDiagramBuilder(time_step=0.0)
        plant = builder.plant()
        (model,) = builder.parser().AddModels(str(_written(robot, folder)))
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(_written_name(robot.links[0]), model))
        for name, mesh in world.items():
            thing = plant.AddRigidBody(_written_name(name), model)
            plant.WeldFrames(plant.world_frame(), thing.body_frame())
            path = folder / f"{name}.obj"
            mesh.save(path)
            friction = CoulombFriction(1.0, 1.0)
            plant.RegisterCollisionGeometry(thing, RigidTransform(), DrakeMesh(str(path)), name, friction)
        plant.Finalize()
        self._checker = SceneGraphCollisionChecker(
            model=builder.Build(),
            robot_model_instances=[model],
            edge_step_size=1.0,
            env_collision_padding=0.0,
            self_collision_padding=0.0,
        )
        kept = {frozenset(pair) for pair in compared}
        plant = self._checker.plant()
        bodies = {name: plant.GetBodyByName(_written_name(name)) for name in (*robot.links, *world)}
        for one, other in combinations(bodies, 2):
            both = bodies[one], bodies[other]
            if any(map(self._checker.IsPartOfRobot, both)):
                self._checker.SetCollisionFilteredBetween(*both, frozenset((one, other)) not in kept)
        self._place = [
            (plant.GetJointByName(joint.name).position_start(), joint)
            for joint in robot.joints
            if joint.kind != "fixed"
        ]

    def touches(self, q: np.ndarray, instants: int) -> np.ndarray:
        """(segments,) whether an edge is told to collide, looked at in so many instants about."""
        values = np.array([self._positions(each) for each in q])
        found = np.zeros(len(q) - 1, bool)
        for k, (one, other) in enumerate(pairwise(values)):
            length = self._checker.ComputeConfigurationDistance(one, other)
            self._checker.set_edge_step_size(max(length / instants, 1e-9))
            found[k] = not self._checker.CheckEdgeCollisionFree(one, other)
        return found

    def _positions(self, q: np.ndarray) -> np.ndarray:
        values = np.zeros(self._checker.plant().num_positions())
        for place, joint in self._place:
            values[place] = joint.factor * q[self._robot.joint_names.index(joint.follows)] + joint.offset
        return values


def _written(robot: tg.Robot, folder: Path) -> Path:
    """A URDF file of the links, joints and bodies."""
    lines = ['<robot name="robot">']
    for k, link in enumerate(robot.links):
        lines.append(f"<link name={quoteattr(_written_name(link))}><inertial><mass value='1'/>")
        lines.append("<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>")
        for n, part in enumerate(robot.parts_of(k)):
            lines.append(_collision(part, folder / f"{k}-{n}.obj"))
        lines.append("</link>")
    for link, parent, joint in zip(robot.links, robot.parents, robot.joints, strict=True):
        if parent < 0:
            continue
        lines.append(f"<joint name={quoteattr(joint.name)} type='{_KINDS[joint.kind]}'>{_origin(joint.origin)}")
        lines.append(f"<parent link={quoteattr(_written_name(robot.links[parent]))}/>")
        lines.append(f"<child link={quoteattr(_written_name(link))}/>")
        lines.append(
            f"<axis xyz='{_numbers(joint.axis)}'/><limit lower='-99' upper='99' effort='1' velocity='1'/></joint>"
        )
    path = folder / "robot.urdf"
    path.write_text("\n".join([*lines, "</robot>"]))
    return path


def _written_name(name: str) -> str:
    """Of a link or a thing: "world" is taken."""
    return f"body {name}"


def _collision(part: Any, path: Path) -> str:
    if isinstance(part, tg.Mesh):
        part.save(path)
        return f"<collision><geometry><mesh filename={quoteattr(str(path))}/></geometry></collision>"
    record, place = part.records[0], np.asarray(part.poses)[0]
    if not isinstance(part, tg.Box):
        raise TypeError(f"{part!r} is not written here")
    size = _numbers(2.0 * np.asarray(record["half"], float))
    return f"<collision>{_origin(place)}<geometry><box size='{size}'/></geometry></collision>"


def _origin(pose: np.ndarray) -> str:
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of a third angle that may be any
        roll = Rotation.from_matrix(pose[:3, :3]).as_euler("xyz")
    return f"<origin xyz='{_numbers(pose[:3, 3])}' rpy='{_numbers(roll)}'/>"


def _numbers(values: np.ndarray) -> str:
    return " ".join(f"{value:.17g}" for value in values)
