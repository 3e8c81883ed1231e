"""Robots of the wheel example-robot-data, a cell to put them in, and random trajectories."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

import tangere as tg
from bench.harness import SkippedError

URDF = {
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "Panda": "panda_description/urdf/panda.urdf",
    "Talos": "talos_data/robots/talos_reduced.urdf",
    "PR2": "pr2_description/urdf/pr2.urdf",
    "Baxter": "baxter_description/urdf/baxter.urdf",
    "Tiago": "tiago_description/robots/tiago.urdf",
}
SEGMENTS = 50
#: Where the wheel puts its robots, below a folder of packages.
BELOW = Path("cmeel.prefix/share/example-robot-data/robots")


def load(name: str) -> tg.Robot:
    """A robot of the wheel, or of a copy of its folder `robots` in the one that TANGERE_DATA names."""
    places = [Path(place) / BELOW for place in sys.path]
    if data := os.environ.get("TANGERE_DATA"):
        places.insert(0, Path(data) / "robots")
    found = next((place / URDF[name] for place in places if (place / URDF[name]).is_file()), None)
    if found is None:
        raise SkippedError("the wheel example-robot-data is not installed")
    return tg.Robot.load(found)


def cell() -> dict[str, tg.Mesh]:
    """A table under the robot and a box on it."""
    table, box = np.eye(4), np.eye(4)
    table[2, 3], box[:3, 3] = -0.037, (0.45, 0.1, 0.14)
    return {"table": tg.generate.box((1.6, 1.6, 0.05)).at(table), "box": tg.generate.box((0.15, 0.25, 0.3)).at(box)}


def linked(robot: tg.Robot) -> list[tuple[str, str]]:
    """The bodies with only one joint between them, by name."""
    return [(robot.bodies[a], robot.bodies[b]) for a, b in robot.linked_pairs()]


def splines(rng: np.random.Generator, robot: tg.Robot, count: int) -> np.ndarray:
    """(count, 51, dof) through four random configurations each."""
    low, high = robot.limits.T
    half = np.minimum(0.45 * (high - low), 2.0)
    points = 0.5 * (low + high) + rng.uniform(-1.0, 1.0, (4, count, len(low))) * half
    curve = CubicSpline(np.linspace(0.0, 1.0, 4), points, bc_type="clamped")
    return np.clip(curve(np.linspace(0.0, 1.0, SEGMENTS + 1)).transpose(1, 0, 2), low, high)


def boxes_meet(meshes: Sequence[tg.Mesh], pairs: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """(instants, pairs) whether boxes along the axes of the world about two bodies meet.

    Args:
        frames: of the bodies, (instants, bodies, 4, 4).
    """
    bounds = np.array([mesh.bounds for mesh in meshes])
    middle, half = bounds.mean(axis=1), 0.5 * (bounds[:, 1] - bounds[:, 0]) + 1e-9
    centre = np.einsum("nbij,bj->nbi", frames[..., :3, :3], middle) + frames[..., :3, 3]
    reach = np.einsum("nbij,bj->nbi", np.abs(frames[..., :3, :3]), half)
    a, b = pairs.T
    return (np.abs(centre[:, a] - centre[:, b]) <= reach[:, a] + reach[:, b]).all(axis=2)
