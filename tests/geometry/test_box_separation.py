"""How far are two boxes certainly apart? Directions against the distance, by bounded least squares."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from tangere.geometry.obb import nearest_separation_of, separation_of
from tangere.runtime import SOUND, launch


@wp.kernel(module="unique", module_options=SOUND)
def separate(
    first: int,
    offsets: wp.array[wp.vec3d],
    turns: wp.array[wp.mat33d],
    halves: wp.array2d[wp.vec3d],
    gaps: wp.array2d[wp.float64],
    directions: wp.array2d[wp.vec3d],
):
    i = first + wp.tid()
    best = separation_of(offsets[i], turns[i], halves[i, 0], halves[i, 1])
    nearest = nearest_separation_of(offsets[i], turns[i], halves[i, 0], halves[i, 1])
    gaps[i, 0] = best.gap
    gaps[i, 1] = nearest.gap
    directions[i, 0] = best.direction
    directions[i, 1] = nearest.direction


def separated(offsets: np.ndarray, turns: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gaps, (n, 2), and directions, (n, 2, 3): of the best face or edge, and towards the nearest point."""
    cpu, count = wp.get_device("cpu"), len(offsets)
    gaps = wp.zeros((count, 2), dtype=wp.float64, device=cpu)
    directions = wp.zeros((count, 2), dtype=wp.vec3d, device=cpu)
    inputs = [
        wp.array(offsets, dtype=wp.vec3d, device=cpu),
        wp.array(turns, dtype=wp.mat33d, device=cpu),
        wp.array(halves, dtype=wp.vec3d, device=cpu),
    ]
    launch(separate, count, inputs, [gaps, directions], device=cpu)
    return gaps.numpy(), directions.numpy()


def distance(offset: np.ndarray, turn: np.ndarray, half: np.ndarray) -> float:
    """Of box a about 0 along the axes, and of box b about the offset."""
    high = half.reshape(-1)
    found = lsq_linear(np.hstack([np.eye(3), -turn]), offset, (-high, high), method="bvls", tol=1e-14)
    return float(np.sqrt(2.0 * found.cost))


def boxes(rng, count: int, aligned: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    turns = np.broadcast_to(np.eye(3), (count, 3, 3)) if aligned else Rotation.random(count, rng).as_matrix()
    return rng.normal(0.0, 2.0, (count, 3)), np.ascontiguousarray(turns), rng.uniform(0.0, 1.0, (count, 2, 3))


def test_no_gap_is_larger_than_the_distance(rng, effort):
    offsets, turns, halves = boxes(rng, effort(400, least=50))
    gaps, directions = separated(offsets, turns, halves)
    truth = np.array([distance(*each) for each in zip(offsets, turns, halves, strict=True)])
    apart = gaps[:, 1] > 0.0
    assert 0.3 < apart.mean() < 1.0
    assert (gaps <= (1.0 + 2e-6) * truth[:, None] + 1e-9).all()
    assert (np.linalg.norm(directions[apart, 1], axis=1) <= 1.0 + 2e-6).all()
    # All of b lies farther along the direction than all of a, by the gap.
    n = directions[apart, 1]
    reach = np.abs(n) * halves[apart, 0]
    other = np.abs(np.einsum("ni,nij->nj", n, turns[apart])) * halves[apart, 1]
    along = np.einsum("ni,ni->n", n, offsets[apart]) - reach.sum(axis=1) - other.sum(axis=1)
    assert (gaps[apart, 1] <= along + 1e-12).all()


def test_towards_the_nearest_point_is_never_shorter_than_the_best_face(rng, effort):
    gaps, _ = separated(*boxes(rng, effort(2000, least=200)))
    assert (gaps[:, 1] >= gaps[:, 0] - 1e-5).all()
    assert (gaps[:, 1] > 1.1 * gaps[:, 0])[gaps[:, 0] > 0.0].mean() > 0.2


def test_of_aligned_boxes_the_gap_is_the_distance(rng, effort):
    offsets, turns, halves = boxes(rng, effort(200, least=20), aligned=True)
    gaps, _ = separated(offsets, turns, halves)
    truth = np.linalg.norm(np.maximum(np.abs(offsets) - halves.sum(axis=1), 0.0), axis=1)
    assert gaps[truth > 0.0, 1] == pytest.approx(truth[truth > 0.0], rel=1e-12)
    assert (gaps[truth == 0.0, 1] <= 0.0).all()


def test_boxes_without_any_size_and_boxes_that_overlap(rng):
    point = np.zeros((1, 2, 3))
    gaps, _ = separated(np.array([[3.0, 4.0, 12.0]]), np.eye(3)[None], point)
    assert gaps[0, 1] == pytest.approx(13.0)
    gaps, _ = separated(np.zeros((1, 3)), np.eye(3)[None], point)
    assert not gaps[0, 1] > 0.0
