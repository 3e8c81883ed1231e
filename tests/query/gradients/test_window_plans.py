"""Plans through a window that clip its frame are repaired by gradients, and certified by the check of whole paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg

WALL = tg.generate.plate_with_hole(64, size=(1.2, 1.2, 0.05), radius=0.092, sides=4)
TURNED = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1.0]])
BAR = tg.generate.plate(332, size=(0.5, 0.08, 0.08)).at(TURNED)
TIMES, MARGIN = np.linspace(0.0, 1.0, 77), 0.01


def path(x: np.ndarray) -> tg.Path:
    poses = np.tile(np.eye(4), (len(x), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = Rotation.from_rotvec(x[:, 3:]).as_matrix(), x[:, :3]
    return tg.Path(poses)


def rough(seed: int) -> np.ndarray:
    """(20, 6) through the window: 5 cm and 20 degrees off, and every pose turned a little."""
    rng = np.random.default_rng(seed)
    x = np.zeros((20, 6))
    x[:, 2] = np.linspace(-0.6, 0.6, 20)
    x[:, :2] = rng.uniform(-0.05, 0.05, 2)
    x[:, 3], x[:, 4] = rng.choice([-0.3, 0.3]), rng.uniform(-0.2, 0.2)
    x[:, 3:] += rng.normal(0.0, 0.02, (20, 3))
    return x


def slope(x: np.ndarray) -> np.ndarray:
    moving = BAR.moving(path(x))
    near = tg.gradients.distance(
        tg.distance(moving, WALL, time=TIMES, device="cpu"), moving, WALL, time=TIMES, device="cpu"
    )
    places = np.concatenate([moving.at(t).vertices for t in TIMES])
    found = tg.signed_distance(places, WALL, device="cpu")
    depth, normal = found.distance.reshape(len(TIMES), -1), found.normal.reshape(len(TIMES), -1, 3)
    rows, k = np.arange(len(TIMES)), depth.argmin(axis=1)
    inside = tg.gradients.through(moving, TIMES, BAR.vertices[k], normal[rows, k])
    by = -np.tensordot(depth.min(axis=1) < MARGIN, inside.waypoints, 1)
    return by - 3.0 * np.tensordot(near.value < MARGIN, near.a.waypoints, 1)


def repaired(x: np.ndarray) -> np.ndarray:
    """By Adam; the first and the last pose stay."""
    x, mean, square = x.copy(), np.zeros_like(x), np.zeros_like(x)
    for step in range(1, 300):
        by = slope(x)
        if not by.any():
            break
        mean, square = 0.9 * mean + 0.1 * by, 0.999 * square + 0.001 * by * by
        x[1:-1] -= (0.01 * mean / (1.0 - 0.9**step) / np.sqrt(square / (1.0 - 0.999**step) + 1e-12))[1:-1]
    return x


@pytest.mark.release
@pytest.mark.parametrize("seed", range(6))
def test_a_plan_through_a_window_is_repaired_and_certified(seed):
    x = rough(seed)
    assert tg.check_path(BAR, WALL, path(x), device="cpu"), "the rough plan touches"
    y = repaired(x)
    found = tg.check_path(BAR, WALL, path(y), device="cpu")
    assert not found
    assert found.clearance.certain > 0.5 * MARGIN
    np.testing.assert_array_equal(y[[0, -1]], x[[0, -1]])
