"""Mechanisms from URDF files: links become bodies, joints hold them together.

| URDF | here |
|---|---|
| revolute, continuous | hinge, with the limits of a revolute one |
| prismatic | slider, with its limits |
| fixed | weld |

The first link is fixed to the world. A link that is one box, cylinder or sphere is that body by formula; any other is a
mesh. It weighs what its `inertial` says, or is of the density of water; where the moments of inertia told are such as
no body has, they are those of its shape at its mass, which is warned of. Joints stand at 0, or as near to it as their
limits allow; a coordinate is counted from there. Neighbours are not compared, nor are links fixed to them that overlap
at the start. A joint that mimics another is free here, which is warned of.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tangere.dynamics.body import Body, possible_moments
from tangere.dynamics.files.description import SceneFile
from tangere.runtime import UnsupportedError
from tangere.shape.robot import Joint, RobotDescription

_KINDS = {"fixed": "weld", "turning": "hinge", "sliding": "slider"}


def read_mechanism(path: Path, meshes: Path | None) -> SceneFile:
    """The mechanism in a file.

    Args:
        meshes: not used: a URDF file says itself where its meshes are.
    """
    robot = RobotDescription.load(path)
    start = {
        joint.name: _start(joint) for joint in robot.joints if joint.kind != "fixed" and joint.follows == joint.name
    }
    chain = robot.chain(start, start)
    poses = [chain.link(k).pose(0.0) for k in range(len(robot.links))]
    bodies, number, strange = [], {}, []
    for k, mesh in enumerate(robot.shapes):
        if mesh is None:
            continue
        number[k] = len(bodies)
        told = robot.inertials[k]
        weight: dict[str, Any] = {}
        if told is not None and told.mass > 0.0:
            weight = {"mass": told.mass, "centre": told.centre, "inertia": told.inertia}
        fixed = _stands(robot, k)
        if weight and not fixed and not possible_moments(weight["inertia"]):
            strange.append(robot.links[k])
            del weight["inertia"]
        parts = robot.parts_of(k)
        shape = parts[0] if len(parts) == 1 else mesh
        bodies.append(Body(shape, poses[k], fixed=fixed, name=robot.links[k], **({} if fixed else weight)))
    if strange:
        links = ", ".join(map(repr, strange))
        message = f"Robot {robot.name!r}: no body has the moments of inertia of {links}; taken from the shape and mass"
        warnings.warn(message, UserWarning, stacklevel=2)
    joints = [told for k in number if (told := _joint(robot, k, number, poses, start)) is not None]
    return SceneFile({"bodies": bodies}, None, joints, neighbours=_neighbours(robot, number))


def _start(joint: Joint) -> float:
    return float(np.clip(0.0, *joint.limits))


def _stands(robot: RobotDescription, link: int) -> bool:
    """Whether nothing moves between a link and the world."""
    return robot.parents[link] < 0 or (robot.joints[link].kind == "fixed" and _stands(robot, robot.parents[link]))


def _root(robot: RobotDescription, link: int) -> int:
    """The first of the links that are fixed to each other, and so move as one."""
    while robot.parents[link] >= 0 and robot.joints[link].kind == "fixed":
        link = robot.parents[link]
    return link


def _neighbours(robot: RobotDescription, number: dict[int, int]) -> list[tuple[int, int]]:
    """Pairs of bodies that move as one, or that a single joint moves against each other."""
    links = list(number)
    roots = {link: _root(robot, link) for link in links}
    above = {root: _root(robot, robot.parents[root]) if robot.parents[root] >= 0 else -1 for root in roots.values()}
    found = []
    for at, link in enumerate(links):
        for other in links[at + 1 :]:
            a, b = roots[link], roots[other]
            if a == b or above[a] == b or above[b] == a:
                found.append((number[link], number[other]))
    return found


def _above(robot: RobotDescription, link: int) -> tuple[int, int]:
    """The next body up the tree, -1 for the world, and the link whose joint moves between the two."""
    moved, parent = link, robot.parents[link]
    while parent >= 0 and robot.shapes[parent] is None:
        if robot.parents[parent] >= 0 and robot.joints[parent].kind != "fixed":
            if robot.joints[moved].kind != "fixed":
                told = f"link {robot.links[parent]!r} has no body, and joints move on both sides of it"
                raise UnsupportedError(f"Robot {robot.name!r}: {told}")
            moved = parent
        parent = robot.parents[parent]
    return parent, moved


def _joint(
    robot: RobotDescription, link: int, number: dict[int, int], poses: list[np.ndarray], start: dict[str, float]
) -> dict[str, Any] | None:
    if _stands(robot, link):
        return None
    parent, moved = _above(robot, link)
    joint, frame = robot.joints[moved], poses[moved]
    told: dict[str, Any] = {"name": joint.name, "kind": _KINDS[joint.kind], "a": number[link]}
    told |= {"b": number[parent] if parent >= 0 else None, "at": frame[:3, 3]}
    if joint.kind == "fixed":
        return told
    told["axis"] = frame[:3, :3] @ joint.axis
    if joint.follows != joint.name:
        message = f"Robot {robot.name!r}: joint {joint.name!r} mimics {joint.follows!r}; in a world it moves freely"
        warnings.warn(message, UserWarning, stacklevel=2)
        return told
    if np.isfinite(joint.limits).any():
        told["limits"] = [limit - start[joint.name] for limit in joint.limits]
    return told
