"""Scenes of bodies on ground: what the article about cylinders and terrain shows, and two with a known answer.

Bodies just touch, or hang `drop` above what they will rest on. The barrels and wheels are
those of Strashnov and Torgashev 2020, section VI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.runtime import InputError, random_source
from tangere.shape.analytic.bodies import Cylinder
from tangere.shape.generate.terrain import dunes, kerbs, slope
from tangere.shape.heightfield.heightfield import Heightfield

_KERB = 0.15  #: height of a kerb [m]


@dataclass(frozen=True)
class TerrainScene:
    """Ground and the cylinders on it, placed."""

    terrain: Heightfield
    bodies: Cylinder
    names: tuple[str, ...]  #: one for each body


def barrels(*, cell: float = 0.1, drop: float = 0.0) -> TerrainScene:
    """Three barrels (r 0.3, h 0.9): its rim on the road and its base on a kerb, on its side, on its base."""
    terrain = kerbs((12.0, 12.0), cell, height=_KERB)
    radius, height = 0.3, 0.9
    reach = 1.5 * radius  # from the rim on the road to the kerb's edge at x = 4, along the base
    kerb = _pose([4.0, 3.0, _KERB + drop], about_y=-math.asin(_KERB / reach))
    kerb[:3, 3] += (radius - reach) * kerb[:3, 0] + 0.5 * height * kerb[:3, 2]
    side = _pose([2.0, 6.0, radius + drop], about_y=0.5 * math.pi)
    base = _pose([2.0, 9.0, 0.5 * height + drop])
    return TerrainScene(
        terrain,
        Cylinder(radius, height).at(np.stack([kerb, side, base])),
        ("kerb barrel", "side barrel", "base barrel"),
    )


def robot_with_trailer(*, cell: float = 0.1, seed: int = 0, drop: float = 0.01) -> TerrainScene:
    """Four wheels of a robot at the foot of a sand heap, and two of its trailer behind, on rough grass.

    Wheels have radius 0.25 and width 0.15 and stand across the x axis, which is where the robot goes.
    """
    x, y = np.arange(0.0, 16.0 + 0.5 * cell, cell), np.arange(0.0, 8.0 + 0.5 * cell, cell)
    grass = random_source(seed, "robot_with_trailer: seed").normal(0.0, 0.01, (len(y), len(x)))
    heap = 0.8 * np.exp(-(((x[None, :] - 9.0) / 1.6) ** 2 + ((y[:, None] - 4.0) / 2.0) ** 2))
    terrain = Heightfield(grass + heap, cell, name="sand heap on grass")
    places = {
        "front left": (7.0, 4.4),
        "front right": (7.0, 3.6),
        "rear left": (6.0, 4.4),
        "rear right": (6.0, 3.6),
        "trailer left": (4.5, 4.4),
        "trailer right": (4.5, 3.6),
    }
    radius, width = 0.25, 0.15
    poses = []
    for where in places.values():
        pose = _pose([*where, 0.0], about_x=0.5 * math.pi)
        pose[2, 3] = _lift(terrain, radius, width, pose) + drop
        poses.append(pose)
    return TerrainScene(terrain, Cylinder(radius, width).at(np.stack(poses)), tuple(places))


def barrel_on_slope(
    angle: float, *, rolling: bool, radius: float = 0.3, height: float = 0.9, cell: float = 0.1
) -> TerrainScene:
    """One barrel on a plane that falls along x by `angle` [rad]: on its side to roll, or on its base, which topples it
    iff tan(angle) > 2 radius / height."""
    if not 0.0 <= angle < 0.5 * math.pi:
        raise InputError(f"barrel_on_slope: the angle must be between 0 and pi/2, not {angle!r}")
    terrain = slope((20.0, 8.0), cell, angle=-angle)
    up = np.array([math.sin(angle), 0.0, math.cos(angle)])
    foot = np.array([3.0, 4.0, -3.0 * math.tan(angle)])
    if rolling:
        pose = _pose(foot + radius * up, about_x=0.5 * math.pi)
    else:
        pose = _pose(foot + 0.5 * height * up, about_y=angle)
    return TerrainScene(terrain, Cylinder(radius, height).at(pose), ("barrel",))


def lowered_wheels(count: int = 10_000, *, seed: int = 0, cell: float = 0.1) -> TerrainScene:
    """Wheels (r 0.35, width 0.2) 2 m above a dune field, with random headings and camber: to be lowered on it."""
    terrain = dunes((40.0, 40.0), cell, seed=seed)
    rng = np.random.default_rng(seed + 1)
    heading, camber = rng.uniform(0.0, 2.0 * math.pi, count), rng.uniform(-0.3, 0.3, count)
    axle = np.stack([np.cos(heading) * np.cos(camber), np.sin(heading) * np.cos(camber), np.sin(camber)], axis=1)
    across = np.stack([-np.sin(heading), np.cos(heading), np.zeros(count)], axis=1)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = np.stack([across, np.cross(axle, across), axle], axis=2)
    poses[:, :2, 3] = rng.uniform(1.0, 39.0, (count, 2))
    poses[:, 2, 3] = terrain.height_at(poses[:, :2, 3]) + 2.0
    return TerrainScene(terrain, Cylinder(0.35, 0.2).at(poses), tuple(f"wheel {k}" for k in range(count)))


def _pose(centre, *, about_x: float = 0.0, about_y: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    c, s = math.cos(about_x), math.sin(about_x)
    turn_x = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    c, s = math.cos(about_y), math.sin(about_y)
    pose[:3, :3] = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]) @ turn_x
    pose[:3, 3] = centre
    return pose


def _lift(terrain: Heightfield, radius: float, height: float, pose: np.ndarray) -> float:
    """How far up the body must go to lie on the ground, sampled on its surface."""
    angle = np.linspace(0.0, 2.0 * math.pi, 181)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    along = np.linspace(-0.5, 0.5, 31)[:, None, None] * height * np.array([0.0, 0.0, 1.0])
    sides = (radius * ring + along).reshape(-1, 3)
    discs = (np.linspace(0.0, radius, 16)[:, None, None] * ring).reshape(-1, 3)
    ends = np.concatenate([discs + [0.0, 0.0, z] for z in (-0.5 * height, 0.5 * height)])
    points = np.concatenate([sides, ends]) @ pose[:3, :3].T + pose[:3, 3]
    return float(np.nanmax(terrain.height_at(points) - points[:, 2]))
