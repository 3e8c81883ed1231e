"""Slopes by differences: a function asked on either side, at many steps, the answers extrapolated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

STEPS = (1e-3, 1e-4, 1e-5, 1e-6)


def slopes(function: Callable[[np.ndarray], np.ndarray], count: int, step: float) -> np.ndarray:
    """(count,) central differences of a function of (n, count) rows, extrapolated from this step and its half."""
    table = np.concatenate([sign * part * step * np.eye(count) for part in (1.0, 0.5) for sign in (1.0, -1.0)])
    far_up, far_down, up, down = np.asarray(function(table)).reshape(4, count)
    return (4.0 * (up - down) / step - (far_up - far_down) / (2.0 * step)) / 3.0


def least_error(told: np.ndarray, function: Callable[[np.ndarray], np.ndarray], steps=STEPS) -> float:
    """How far slopes are off at the best of the steps: large ones are bent, small ones drown in rounding."""
    return min(float(np.abs(told - slopes(function, len(told), step)).max()) for step in steps)


def displaced(pose: np.ndarray, by: np.ndarray) -> np.ndarray:
    """(n, 4, 4) a pose moved by (n, 6): its origin along three numbers, turned by the others."""
    poses = np.tile(pose, (len(by), 1, 1))
    poses[:, :3, :3] = Rotation.from_rotvec(by[:, 3:]).as_matrix() @ pose[:3, :3]
    poses[:, :3, 3] += by[:, :3]
    return poses


def random_pose(rng: np.random.Generator, away: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    way = rng.normal(size=3)
    pose[:3, 3] = away * way / np.linalg.norm(way)
    return pose
