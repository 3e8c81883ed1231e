"""Robots made on the spot, for examples, tests and benchmarks."""

from __future__ import annotations

import numpy as np

from tangere.robot.robot import Robot
from tangere.runtime import number
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.robot import Joint


def arm(*, gripper: bool = False, sides: int = 12) -> Robot:
    """An arm of six turning joints in the manner of an industrial one, 1.3 m high when it stands up.

    Args:
        gripper: with two fingers at its end, of which one slides and the other mimics it.
        sides: of its round links.
    """
    number(sides, "sides")
    links: list[str] = []
    parents: list[int] = []
    joints: list[Joint] = []
    shapes: list[Mesh | None] = []

    def add(link: str, kind: str, at: tuple[float, float, float], axis: str, shape: Mesh | None, **more) -> None:
        origin = np.eye(4)
        origin[:3, 3] = at
        name = f"{link} joint"
        unit = np.eye(3)["xyz".index(axis)]
        follows = "" if kind == "fixed" else more.pop("follows", name)
        joints.append(Joint(name, kind, origin, unit, follows, **more))
        parents.append(len(links) - 1 if not more.get("factor") else len(links) - 2)
        links.append(link)
        shapes.append(shape)

    def column(radius: float, height: float, low: float, name: str) -> Mesh:
        return generate.prism(sides, radius=radius, height=height, name=name).at(_up(low + 0.5 * height))

    turn = (-np.pi, np.pi)
    add("base", "fixed", (0.0, 0.0, 0.0), "z", column(0.09, 0.08, 0.0, "base"))
    add("shoulder", "turning", (0.0, 0.0, 0.1), "z", column(0.07, 0.14, 0.0, "shoulder"), limits=turn)
    add("upper_arm", "turning", (0.0, 0.13, 0.1), "y", column(0.05, 0.45, -0.02, "upper_arm"), limits=(-2.4, 2.4))
    add("forearm", "turning", (0.0, -0.11, 0.42), "y", column(0.04, 0.36, -0.02, "forearm"), limits=(-2.6, 2.6))
    add("wrist_1", "turning", (0.0, 0.09, 0.33), "y", column(0.035, 0.1, -0.04, "wrist_1"), limits=turn)
    add("wrist_2", "turning", (0.0, 0.0, 0.1), "z", column(0.034, 0.07, -0.03, "wrist_2"), limits=turn)
    add("flange", "turning", (0.0, 0.0, 0.07), "y", column(0.03, 0.04, -0.015, "flange"), limits=turn)
    add("tool", "fixed", (0.0, 0.0, 0.03), "z", None)
    if gripper:
        finger = generate.box((0.02, 0.01, 0.06), name="finger").at(_up(0.045))
        add("left_finger", "sliding", (0.0, 0.015, 0.0), "y", finger, limits=(0.0, 0.03))
        add("right_finger", "sliding", (0.0, -0.015, 0.0), "y", finger, follows="left_finger joint", factor=-1.0)
    return Robot("arm", tuple(links), tuple(parents), tuple(joints), tuple(shapes))


def _up(height: float) -> np.ndarray:
    pose = np.eye(4)
    pose[2, 3] = height
    return pose
