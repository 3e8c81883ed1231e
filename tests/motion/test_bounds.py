"""Bounds of moving points, edges, boxes and axes hold at every sampled time and are tight."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from oracles.families.rigid_scenes import KINDS, random_motion, random_poses
from tangere.motion import Linear, RigidMotion, Screw
from tangere.motion.bounds import (
    IntervalBox,
    box_bounds,
    boxes_apart,
    linear_bounds,
    point_bounds,
    point_box_bounds,
    span_of,
    union_of_boxes,
    vector_bounds,
    vector_box_bounds,
)
from tangere.motion.bounds.interval_bounds import (
    turning_arm,
    turning_vector,
)
from tangere.published.redon_intervals.moving_boxes import point_component_bounds, vector_component_bounds
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

SAMPLES = 101


@wp.kernel
def _bounds(
    first: int,
    what: int,
    motions: wp.array[RigidMotion],
    times: wp.array[wp.vec2d],
    p: wp.array[wp.vec3d],
    q: wp.array[wp.vec3d],
    frames: wp.array[wp.mat33d],
    out: wp.array[IntervalBox],
):
    i = first + wp.tid()
    span = span_of(motions[i], times[i][0], times[i][1])
    bounds = IntervalBox()
    if what == 0:
        bounds = point_bounds(span, p[i])
    elif what == 1:
        bounds = vector_bounds(span, p[i])
    elif what == 2:
        bounds = union_of_boxes(point_bounds(span, p[i]), point_bounds(span, q[i]))
    elif what == 3:
        bounds = box_bounds(span, p[i], frames[i], wp.max(q[i], -q[i]))
    elif what == 4:
        inner = IntervalBox()
        inner.lower = wp.min(p[i], q[i])
        inner.upper = wp.max(p[i], q[i])
        bounds = point_box_bounds(span, inner)
    elif what == 5:
        inner_vector = IntervalBox()
        inner_vector.lower = wp.min(p[i], q[i])
        inner_vector.upper = wp.max(p[i], q[i])
        bounds = vector_box_bounds(span, inner_vector)
    else:
        for k in range(3):
            row = wp.vec3d(frames[i][k, 0], frames[i][k, 1], frames[i][k, 2])
            reach = vector_component_bounds(span, turning_vector(span, p[i]), row, wp.float64(1.0))
            if what == 6:
                reach = point_component_bounds(span, turning_arm(span, p[i]), row, q[i])
            bounds.lower[k] = reach[0]
            bounds.upper[k] = reach[1]
    out[i] = bounds


def bounds_of(what: int, records, times, p, q, frames, device) -> tuple[np.ndarray, np.ndarray]:
    where = wp.get_device(device)
    columns = [(records, RigidMotion), (times, wp.vec2d), (p, wp.vec3d), (q, wp.vec3d), (frames, wp.mat33d)]
    inputs = [wp.array(np.ascontiguousarray(data), dtype=dtype, device=where) for data, dtype in columns]
    out = wp.empty(len(records), dtype=IntervalBox, device=where)
    launch(_bounds, len(records), [what, *inputs], [out], device=where)
    found = out.numpy()
    return found["lower"], found["upper"]


def random_times(rng, count: int) -> np.ndarray:
    start = rng.random(count) * (rng.random(count) > 0.2)
    return np.stack([start, start + (1.0 - start) * 10.0 ** rng.uniform(-4, 0, count)], axis=1).clip(0.0, 1.0)


def sampled_poses(motion, times) -> np.ndarray:
    """(SAMPLES, n, 4, 4)"""
    at = times[:, 0] + (times[:, 1] - times[:, 0]) * np.linspace(0, 1, SAMPLES)[:, None]
    return motion.pose(np.minimum(at, times[:, 1]))


def paths(poses, p) -> np.ndarray:
    """Sampled positions of one point of each body, (SAMPLES, n, 3)."""
    return np.einsum("snij,nj->sni", poses[..., :3, :3], p) + poses[..., :3, 3]


def assert_within(samples, lower, upper, doubt=0.0) -> None:
    assert (samples >= lower - doubt).all()
    assert (samples <= upper + doubt).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_at_every_sampled_time(kind, rng, effort, device):
    count = effort(2000)
    motion, times = random_motion(kind, rng, count), random_times(rng, count)
    p, q, frames = rng.normal(size=(count, 3)), rng.normal(size=(count, 3)), random_poses(rng, count)[:, :3, :3]
    poses = sampled_poses(motion, times)
    arguments = (motion.records(), times, p, q, frames, device)
    place, other = paths(poses, p), paths(poses, q)
    turn = poses.copy()
    turn[..., :3, 3] = 0.0
    doubt = 1e-14  # of the sampled poses, which are rounded themselves

    assert_within(place, *bounds_of(0, *arguments), doubt)
    assert_within(paths(turn, p), *bounds_of(1, *arguments), doubt)
    lower, upper = bounds_of(2, *arguments)
    for part in (0.0, 0.3, 1.0):
        assert_within((1 - part) * place + part * other, lower, upper, doubt)
    corners = rng.choice([-1.0, 1.0], (4, count, 3))
    lower, upper = bounds_of(3, *arguments)
    for corner in corners:
        inside = p + np.einsum("nij,nj->ni", frames, corner * np.abs(q))
        assert_within(paths(poses, inside), lower, upper, 4 * doubt)
    for what, moved in ((4, poses), (5, turn)):
        lower, upper = bounds_of(what, *arguments)
        for _ in range(4):
            mixed = np.where(rng.random((count, 3)) < 0.5, p, q)
            assert_within(paths(moved, mixed), lower, upper, 2 * doubt)
    projected = np.einsum("nki,sni->snk", frames, place - q)
    assert_within(projected, *bounds_of(6, *arguments), 4 * doubt)
    assert_within(np.einsum("nki,sni->snk", frames, paths(turn, p)), *bounds_of(7, *arguments), 2 * doubt)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_a_short_interval_close_on_the_place_of_the_point(kind, rng, device):
    """No slack stays behind: the width goes to zero with the interval."""
    motion, p = random_motion(kind, rng, 500), rng.normal(size=(500, 3))
    start = rng.uniform(0.1, 0.9, 500)
    lower, upper = bounds_of(
        0, motion.records(), np.stack([start, start + 1e-9], 1), p, p, np.zeros((500, 3, 3)), device
    )
    assert (upper - lower).max() < 1e-6
    exact = paths(motion.pose(start)[None], p)[0]
    assert np.abs(0.5 * (lower + upper) - exact).max() < 1e-6


def literal_bounds(motion_start, axis, angle, slide, centre, points) -> tuple[np.ndarray, np.ndarray]:
    """P^-1 V(I) P P_0 x over the whole step in plain interval arithmetic, as the thesis evaluates it."""
    to_screw = np.linalg.qr(np.column_stack([axis, np.eye(3)[np.argsort(np.abs(axis))[:2]].T]))[0].T[[1, 2, 0]]
    if to_screw[2] @ axis < 0:
        to_screw = -to_screw
    if np.linalg.det(to_screw) < 0:
        to_screw[0] *= -1
    y = to_screw @ (motion_start[:3, :3] @ points + motion_start[:3, 3] - centre)
    cos = np.array([np.cos(angle), 1.0])
    sin = np.array([0.0, np.sin(angle) if angle < np.pi / 2 else 1.0])
    product = lambda interval, x: np.sort(interval * x)  # noqa: E731
    x1 = product(cos, y[0]) - product(sin, y[1])[::-1]
    x2 = product(sin, y[0]) + product(cos, y[1])
    x3 = y[2] + np.sort([0.0, slide])
    back = to_screw.T
    total = sum(np.sort(back[:, [k]] * x, axis=1) for k, x in enumerate((x1, x2, x3)))
    return total[:, 0] + centre, total[:, 1] + centre


def test_bounds_are_tighter_than_the_literal_product_of_interval_matrices(rng, effort, device):
    """Mean width over the exact width, screws of 0.02 to 1.5 rad: about 1.16 against 1.55 (Redon 2002, chapter 3)."""
    count = effort(2000, least=500)
    start, points = random_poses(rng, count), rng.normal(size=(count, 3))
    axis = rng.normal(size=(count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    angle, slide, centre = rng.uniform(0.02, 1.5, count), rng.normal(size=count), rng.normal(size=(count, 3))
    turn = Rotation.from_rotvec(axis * angle[:, None]).as_matrix()
    end = np.tile(np.eye(4), (count, 1, 1))
    end[:, :3, :3] = turn @ start[:, :3, :3]
    end[:, :3, 3] = np.einsum("nij,nj->ni", turn, start[:, :3, 3] - centre) + centre + slide[:, None] * axis
    motion = Screw(start, end)
    times = np.tile([0.0, 1.0], (count, 1))
    samples = paths(sampled_poses(motion, times), points)
    exact = samples.max(axis=0) - samples.min(axis=0)
    lower, upper = bounds_of(0, motion.records(), times, points, points, start[:, :3, :3], device)
    literal = [literal_bounds(start[i], axis[i], angle[i], slide[i], centre[i], points[i]) for i in range(count)]
    literal_lower, literal_upper = (np.array(side) for side in zip(*literal, strict=True))
    assert_within(samples, literal_lower, literal_upper, 1e-12)
    tight, loose = np.median((upper - lower) / exact), np.median((literal_upper - literal_lower) / exact)
    mean_tight = (upper - lower).mean() / exact.mean()
    mean_loose = (literal_upper - literal_lower).mean() / exact.mean()
    print(f"width over exact width: {mean_tight:.3f} (median {tight:.3f}), literal {mean_loose:.3f} ({loose:.3f})")
    assert mean_tight < 1.16
    assert mean_loose > 1.4


def test_linear_bounds_are_the_hull_of_both_ends(rng, device):
    start, end, times = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)), random_times(rng, 200)

    @wp.kernel(module="unique")
    def ask(
        first: int,
        start: wp.array[wp.vec3d],
        end: wp.array[wp.vec3d],
        times: wp.array[wp.vec2d],
        out: wp.array[IntervalBox],
    ):
        i = first + wp.tid()
        out[i] = linear_bounds(start[i], end[i], times[i][0], times[i][1])

    where = wp.get_device(device)
    out = wp.empty(200, dtype=IntervalBox, device=where)
    inputs = [wp.array(start, dtype=wp.vec3d, device=where), wp.array(end, dtype=wp.vec3d, device=where)]
    launch(ask, 200, [*inputs, wp.array(times, dtype=wp.vec2d, device=where)], [out], device=where)
    lower, upper = out.numpy()["lower"], out.numpy()["upper"]
    for part in np.linspace(0, 1, 11):
        at = times[:, :1] + part * (times[:, 1:] - times[:, :1])
        assert_within(start * (1 - at) + end * at, lower, upper, 1e-16)
    ends = [Linear(end).positions(start, 0.0) * (1 - t[:, None]) + end * t[:, None] for t in times.T]
    np.testing.assert_allclose(lower, np.minimum(*ends), atol=1e-13)
    np.testing.assert_allclose(upper, np.maximum(*ends), atol=1e-13)


def test_boxes_that_are_not_numbers_are_never_called_apart(device):
    @wp.kernel(module="unique")
    def ask(first: int, out: wp.array[int]):
        nothing = wp.vec3d(wp.float64(wp.NAN), wp.float64(wp.NAN), wp.float64(wp.NAN))
        a = IntervalBox()
        b = IntervalBox()
        b.lower = wp.vec3d(wp.float64(5.0), wp.float64(0.0), wp.float64(0.0))
        b.upper = wp.vec3d(wp.float64(6.0), wp.float64(1.0), wp.float64(1.0))
        out[0] = int(boxes_apart(a, b, wp.float64(1.0)))
        out[1] = int(boxes_apart(b, a, wp.float64(5.5)))
        a.lower = nothing
        a.upper = nothing
        out[2] = int(boxes_apart(a, b, wp.float64(0.0)))

    where = wp.get_device(device)
    out = wp.empty(3, dtype=int, device=where)
    launch(ask, 1, [], [out], device=where)
    assert out.numpy().tolist() == [1, 0, 0]
