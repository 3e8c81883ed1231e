"""Mechanisms from URDF files: links become bodies, joints hold them together.

| URDF | here |
|---|---|
| revolute, continuous | hinge, with the limits of a revolute one |
| prismatic | slider, with its limits |
| fixed | weld |

The first link is fixed to the world. A link that is one box, cylinder or sphere is that body by formula; any other is a
mesh. It weighs what its `inertial` says, or is of the density of water; where the moments of inertia told are such as
no body has, they are those of its shape at its mass, which is warned of. A link without a shape adds what it weighs to
the body that it is fixed to; where that is none, as with rotors, it is a box of its moments that touches nothing.
Joints stand at 0, or as near to it as their limits allow; a coordinate is counted from there. Neighbours are not
compared, nor are links fixed to them that overlap at the start. A joint that mimics another is free here, which is
warned of.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tangere.dynamics.body import DENSITY, Body, possible_moments
from tangere.dynamics.files.description import SceneFile
from tangere.dynamics.joint import LARGEST
from tangere.runtime import UnsupportedError
from tangere.shape.analytic import Box
from tangere.shape.robot import Inertial, Joint, RobotDescription

_KINDS = {"fixed": "weld", "turning": "hinge", "sliding": "slider"}


@dataclass
class _Group:
    """Links that are fixed to each other, and so move as one."""

    root: int  #: the first of them, whose joint moves them all
    links: list[int] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)  #: links that are bodies; the first one bears the joint


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
    groups = _groups(robot)
    bodies, number, strange, bare = [], {}, [], []
    for k, mesh in enumerate(robot.shapes):
        group = groups[k]
        fixed = _stands(robot, group)
        if k not in group.bodies:
            continue
        number[k] = len(bodies)
        weight = None if fixed else _weight(robot, k, group, poses)
        told: dict[str, Any] = {}
        if weight is not None:
            told = {"mass": weight.mass, "centre": weight.centre, "inertia": weight.inertia}
            if not possible_moments(weight.inertia):
                strange.append(robot.links[k])
                del told["inertia"]
        if mesh is None:
            bare.append(number[k])
            shape: Any = _box_of(weight)
        else:
            parts = robot.parts_of(k)
            shape = parts[0] if len(parts) == 1 else mesh
        bodies.append(Body(shape, poses[k], fixed=fixed, name=robot.links[k], **told))
    if strange:
        links = ", ".join(map(repr, strange))
        message = f"Robot {robot.name!r}: no body has the moments of inertia of {links}; taken from the shape and mass"
        warnings.warn(message, UserWarning, stacklevel=2)
    found = (_joint(robot, k, groups, number, poses, start) for k in number)
    joints = [joint for joint in found if joint is not None]
    untouched = [(a, b) for a in bare for b in range(len(bodies)) if a != b]
    neighbours = _neighbours(robot, groups, number)
    return SceneFile({"bodies": bodies}, None, joints, neighbours=neighbours, untouched=untouched)


def _start(joint: Joint) -> float:
    return float(np.clip(0.0, *joint.limits))


# -- what moves as one -------------------------------------------------------------------------------------------------


def _groups(robot: RobotDescription) -> list[_Group]:
    """Of each link, the group that it moves with."""
    found: list[_Group] = []
    for link, parent in enumerate(robot.parents):
        joined = parent >= 0 and robot.joints[link].kind == "fixed"
        found.append(found[parent] if joined else _Group(link))
        found[link].links.append(link)
    for group in {id(group): group for group in found}.values():
        group.bodies = [link for link in group.links if robot.shapes[link] is not None]
        if not group.bodies and not _stands(robot, group):
            group.bodies = [link for link in group.links if _weighs(robot, link)][:1]
    return found


def _stands(robot: RobotDescription, group: _Group) -> bool:
    """Whether nothing moves between a group and the world."""
    return robot.parents[group.root] < 0


def _neighbours(robot: RobotDescription, groups: list[_Group], number: dict[int, int]) -> list[tuple[int, int]]:
    """Pairs of bodies that move as one, or that a single joint moves against each other."""
    links = list(number)
    above = {k: groups[robot.parents[groups[k].root]] if robot.parents[groups[k].root] >= 0 else None for k in links}
    found = []
    for at, link in enumerate(links):
        for other in links[at + 1 :]:
            a, b = groups[link], groups[other]
            if a is b or above[link] is b or above[other] is a:
                found.append((number[link], number[other]))
    return found


# -- what weighs -------------------------------------------------------------------------------------------------------


def _weighs(robot: RobotDescription, link: int) -> bool:
    told = robot.inertials[link]
    return told is not None and told.mass > 0.0


def _weight(robot: RobotDescription, link: int, group: _Group, poses: list[np.ndarray]) -> Inertial | None:
    """What a body weighs, with what the links without a shape add that the first body of a group carries."""
    own = robot.inertials[link] if _weighs(robot, link) else None
    carried = [k for k in group.links if k not in group.bodies and _weighs(robot, k)] if link == group.bodies[0] else []
    if not carried:
        return own
    if own is None:  # has a shape, of the density of water
        parts = robot.parts_of(link)
        uniform = Body(parts[0] if len(parts) == 1 else robot.shapes[link], np.eye(4)).mass_properties
        own = Inertial(uniform.mass, uniform.centre, uniform.inertia)
    back = np.linalg.inv(poses[link])
    return _together([own, *(_seen_from(back @ poses[k], robot.inertials[k]) for k in carried)])


def _seen_from(pose: np.ndarray, weight: Inertial | None) -> Inertial:
    """A weight in the frame that a pose leads to."""
    assert weight is not None
    turn = pose[:3, :3]
    return Inertial(weight.mass, turn @ weight.centre + pose[:3, 3], turn @ weight.inertia @ turn.T)


def _together(weights: list[Inertial]) -> Inertial:
    """Weights of one frame as one."""
    mass = sum(weight.mass for weight in weights)
    centre = sum(weight.mass * weight.centre for weight in weights) / mass
    inertia = np.zeros((3, 3))
    for weight in weights:
        arm = weight.centre - centre
        inertia += weight.inertia + weight.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertial(mass, centre, inertia)


def _box_of(weight: Inertial | None) -> Box:
    """The box of a mass and its moments of inertia, in the frame of the link; of water, where no body has them."""
    assert weight is not None
    pose, half = np.eye(4), np.full(3, 0.5 * np.cbrt(weight.mass / DENSITY))
    if possible_moments(weight.inertia):
        moments, turn = np.linalg.eigh(weight.inertia)
        squares = 1.5 * (moments.sum() - 2.0 * moments) / weight.mass  # of half the edges
        half = np.sqrt(np.maximum(squares, 1e-6 * squares.max()))
        pose[:3, :3] = turn * np.sign(np.linalg.det(turn))
    pose[:3, 3] = weight.centre
    return Box(half).at(pose)


# -- joints ------------------------------------------------------------------------------------------------------------


def _joint(
    robot: RobotDescription,
    link: int,
    groups: list[_Group],
    number: dict[int, int],
    poses: list[np.ndarray],
    start: dict[str, float],
) -> dict[str, Any] | None:
    """What holds a body: its group together, and the first body of a group to what is above; None for the rest."""
    group = groups[link]
    if _stands(robot, group):
        return None
    if link != group.bodies[0]:
        told = {"name": robot.joints[link].name, "kind": "weld", "a": number[link], "b": number[group.bodies[0]]}
        return told | {"at": poses[link][:3, 3]}
    joint, frame, above = robot.joints[group.root], poses[group.root], groups[robot.parents[group.root]]
    if not above.bodies and not _stands(robot, above):
        what = f"link {robot.links[above.root]!r} has no body and no mass, and joints move on both sides of it"
        raise UnsupportedError(f"Robot {robot.name!r}: {what}")
    told = {"name": joint.name, "kind": _KINDS[joint.kind], "a": number[link], "at": frame[:3, 3]}
    told |= {"b": number[above.bodies[0]] if above.bodies else None, "axis": frame[:3, :3] @ joint.axis}
    if joint.follows != joint.name:
        message = f"Robot {robot.name!r}: joint {joint.name!r} mimics {joint.follows!r}; in a world it moves freely"
        warnings.warn(message, UserWarning, stacklevel=2)
        return told
    limits = [limit if abs(limit) <= LARGEST else np.copysign(np.inf, limit) for limit in joint.limits]
    if np.isfinite(limits).any():
        told["limits"] = [limit - start[joint.name] for limit in limits]
    return told
