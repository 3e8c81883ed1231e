"""Where discrete, backtracking and penalty simulations fail, and a world does not (Redon, chapters 1 and 2).

Three parts are thrown along one step of a screw: a thin plate over another one, a hoop into another one, a box beyond
the middle of a wall. Simulators that look at ends of steps let them through, a world does not. A peg in a hole with
0.1 mm of play is pulled sideways: springs at its corners are either so soft that it enters the walls, or so stiff that
steps of this length make it rattle; a world rests at once, outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.baselines import SCENES, Scene, backtracking, discrete
from bench.harness import Report
from tangere.dynamics import Body, World
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.shape import generate

__all__ = ["PegRun", "penalty_peg", "thrown", "world_peg"]

FEATURES = ["F-R-82"]

#: Half the sides of the peg, its play on each side, its mass, and what pulls it: stiffness, and how far sideways.
HALF, PLAY, MASS, PULL, ASIDE = np.array([0.05, 0.05, 0.15]), 1e-4, 1.0, 400.0, 0.01
DT = 0.01


@dataclass(frozen=True)
class PegRun:
    """What became of a peg that is pulled sideways in its hole."""

    deepest: float  #: it went into a wall, at most [m]
    speed: float  #: rms of its fastest point in the last half second [m/s]


def thrown(scene: Scene, parts: int = 4) -> tuple[World, np.ndarray]:
    """A world in which the part of a scene flies its motion in so many steps; and the poses it had after each."""
    start, end = scene.motion.pose(0.0), scene.motion.pose(1.0)
    turn = end[:3, :3] @ start[:3, :3].T
    vector = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine = 0.5 * np.linalg.norm(vector)
    angle = np.arctan2(sine, 0.5 * (np.trace(turn) - 1.0))
    spin = vector / (2.0 * sine) * angle if sine > 0.0 else np.zeros(3)
    part = Body(scene.part, start, density=1000.0, name="part")
    centre = part.mass_properties.centre
    way = (end[:3, :3] @ centre + end[:3, 3]) - (start[:3, :3] @ centre + start[:3, 3])
    part = Body(scene.part, start, density=1000.0, velocity=way / DT, spin=spin / DT, name="part")
    fixed = Body(scene.fixed, fixed=True, name="fixed")
    world = World([fixed, part], dt=DT, gravity=(0, 0, 0), friction=0.0, device="cpu")
    poses = []
    for _ in range(parts):
        world.step()
        poses.append(world.poses[1])
    return world, np.array(poses)


def overlaps(scene: Scene, pose: np.ndarray) -> bool:
    """Whether the part, where it is, meets the fixed one."""
    return bool(intersects(scene.part.moving(Rest(pose)), scene.fixed, device="cpu"))


def penalty_peg(stiffness: float, seconds: float = 2.0) -> PegRun:
    """Springs at the eight corners of the peg, each against its walls; semi-implicit Euler."""
    corners = HALF * np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    inertia = (
        MASS / 3.0 * np.diag([HALF[1] ** 2 + HALF[2] ** 2, HALF[0] ** 2 + HALF[2] ** 2, HALF[0] ** 2 + HALF[1] ** 2])
    )
    inverse = np.linalg.inv(inertia)
    x, rotation, v, w = np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3)
    deepest, speeds, steps = 0.0, [], round(seconds / DT)
    for step in range(steps):
        arms = corners @ rotation.T
        points = x + arms
        depth = np.abs(points[:, :2]) - (HALF[:2] + PLAY)
        deepest = max(deepest, float(depth.max()))
        force = np.zeros((8, 3))
        force[:, :2] = -np.sign(points[:, :2]) * stiffness * np.maximum(depth, 0.0)
        pull = PULL * (np.array([ASIDE, 0.0, 0.0]) - x) - 2.0 * np.sqrt(PULL * MASS) * v
        v = v + DT * (force.sum(axis=0) + pull) / MASS
        w = w + DT * inverse @ np.cross(arms, force).sum(axis=0)
        x = x + DT * v
        turn = np.eye(3) + np.cross(np.eye(3), -DT * w)
        rotation, _ = np.linalg.qr(turn @ rotation)
        rotation = rotation * np.sign(np.diag(rotation))
        if step >= steps - round(0.5 / DT):
            speeds.append(np.linalg.norm(v + np.cross(w, arms), axis=1).max())
        if not np.isfinite(v).all() or np.abs(v).max() > 1e6:
            return PegRun(np.inf, np.inf)
    return PegRun(deepest, float(np.sqrt(np.mean(np.square(speeds)))))


def world_peg(seconds: float = 2.0) -> tuple[World, PegRun]:
    """The same peg, pull and length of steps in a world."""
    peg = generate.box(tuple(2.0 * HALF), name="peg")
    wide = 0.02
    walls = []
    for axis in (0, 1):
        for side in (-1.0, 1.0):
            size = np.array([0.2, 0.2, 0.4])
            size[axis] = wide
            pose = np.eye(4)
            pose[axis, 3] = side * (HALF[axis] + PLAY + 0.5 * wide)
            walls.append(Body(generate.box(tuple(size)), pose, fixed=True, name=f"wall {axis}{side:+.0f}"))
    world = World([*walls, Body(peg, mass=MASS, name="peg")], dt=DT, gravity=(0, 0, 0), friction=0.0, device="cpu")
    world.pull("peg", [0.0, 0.0, 0.0], [ASIDE, 0.0, 0.0], stiffness=PULL)
    corners = HALF * np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    deepest, speeds, steps = -np.inf, [], round(seconds / DT)
    for step in range(steps):
        world.step()
        pose = world["peg"].pose
        points = corners @ pose[:3, :3].T + pose[:3, 3]
        deepest = max(deepest, float((np.abs(points[:, :2]) - (HALF[:2] + PLAY)).max()))
        if step >= steps - round(0.5 / DT):
            body = world["peg"]
            speeds.append(np.linalg.norm(body.velocity + np.cross(body.spin, points - body.position), axis=1).max())
    return world, PegRun(deepest, float(np.sqrt(np.mean(np.square(speeds)))))


def run(report: Report, quick: bool = False) -> None:
    report.section("Thrown in one step")
    rows = []
    for name, scene in SCENES.items():
        if "bar" in name:
            continue
        for method in (discrete, backtracking):
            time = method(scene.part, scene.fixed, scene.motion)
            rows.append([name, method.__name__, "gone through: " + scene.trap if time == 1.0 else "stopped", "-"])
        world, poses = thrown(scene)
        crossed = sum(overlaps(scene, pose) for pose in poses)
        rows.append([name, "world", "stopped" if not crossed else "entered", crossed])
    report.table(["scene", "simulation", "outcome", "states with an intersection"], rows)
    report.section("A peg with 0.1 mm of play, pulled sideways")
    rows = [[f"springs of {k:g} N/m", *_told(penalty_peg(k))] for k in (1e3, 4e3, 1.6e4, 6.4e4, 2.56e5)]
    report.table(["contact", "deepest [mm]", "speed at the end [mm/s]"], [*rows, ["world", *_told(world_peg()[1])]])
    report.note("Steps of 10 ms for all. Below 0 the peg is outside all walls.")


def _told(found: PegRun) -> list[str]:
    return [f"{1e3 * found.deepest:.4g}", f"{1e3 * found.speed:.4g}"]
