"""The continuous test of two oriented boxes: never apart when they meet, and it always ends."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.rigid_scenes import KINDS, random_motion, random_poses
from tangere.bvh.obb import ObbNode
from tangere.bvh.obb.overlap import boxes_overlap
from tangere.motion import Rest, RigidMotion, Twist
from tangere.published.redon_intervals import IntervalOptions
from tangere.published.redon_intervals.movers import mover_of
from tangere.published.redon_intervals.moving_boxes import Subdivision, first_unresolved
from tangere.query.first_contact.mixed.motion_chain import MotionRow
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@wp.kernel
def _ask(
    first: int,
    a: wp.array[ObbNode],
    motions_a: wp.array[RigidMotion],
    b: wp.array[ObbNode],
    motions_b: wp.array[RigidMotion],
    times: wp.array[wp.vec2d],
    how: Subdivision,
    out: wp.array[wp.vec2d],
):
    i = first + wp.tid()
    row = MotionRow()
    row.first = i
    row.last = i + 1
    a_by = mover_of(motions_a, row)
    b_by = mover_of(motions_b, row)
    out[i] = first_unresolved(a[i], motions_a, a_by, b[i], motions_b, b_by, times[i][0], times[i][1], how)


def boxes(rng, count, size=0.5):
    """Records of boxes: centres near the origin, of all proportions, some flat or without any size."""
    records = np.zeros(count, ObbNode.numpy_dtype())
    poses = random_poses(rng, count, 0.5)
    records["centre"] = poses[:, :3, 3]
    records["axes"] = poses[:, :3, :3]
    half = size * rng.random((count, 3)) * (rng.random((count, 3)) > 0.1)
    records["half"] = half
    records["radius"] = np.linalg.norm(half, axis=1) * (1 + 1e-6)
    return records


def unresolved_from(a, motion_a, b, motion_b, times, options, device):
    """Time before which each pair of boxes is apart, inf if for good."""
    return answers(a, motion_a, b, motion_b, times, options, device)[:, 0]


def answers(a, motion_a, b, motion_b, times, options, device):
    """(n, 2) that time, and how many intervals were looked at."""
    where = wp.get_device(device)
    out = wp.empty(len(a), dtype=wp.vec2d, device=where)
    columns = [(a, ObbNode), (motion_a.records(), RigidMotion), (b, ObbNode), (motion_b.records(), RigidMotion)]
    inputs = [wp.array(np.ascontiguousarray(data), dtype=dtype, device=where) for data, dtype in columns]
    inputs += [wp.array(times, dtype=wp.vec2d, device=where), options.subdivision()]
    launch(_ask, len(a), inputs, [out], device=where)
    return out.numpy()


def overlaps(a, motion_a, b, motion_b, times, samples=40):
    """(samples, n) whether the boxes overlap at each sampled time, and those times."""
    at = times[:, 0] + (times[:, 1] - times[:, 0]) * np.linspace(0, 1, samples)[:, None]
    found = []
    for t in np.minimum(at, times[:, 1]):
        placed = []
        for node, motion in ((a, motion_a), (b, motion_b)):
            pose = motion.pose(t)
            turn = pose[:, :3, :3]
            centre = np.einsum("nij,nj->ni", turn, node["centre"].astype(float)) + pose[:, :3, 3]
            axes = np.linalg.qr(turn @ node["axes"].astype(float))[0]  # orthonormal in double precision
            placed += [centre, node["half"].astype(float) * (1 - 1e-5), axes]
        found.append(boxes_overlap(*placed, device="cpu"))
    return np.array(found), at


def random_times(rng, count):
    start = rng.random(count) * 0.9
    return np.stack([start, start + (1 - start) * rng.random(count)], axis=1)


@pytest.mark.feature("F-R-27")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [6, 15])
def test_boxes_that_meet_at_any_sampled_time_are_never_called_apart(kind, axes, rng, effort, device):
    count = effort(600)
    a, b, times = boxes(rng, count), boxes(rng, count), random_times(rng, count)
    moving = random_motion(kind, rng, count, 0.4)
    for other in (Rest(random_poses(rng, count, 0.4)), random_motion("twist", rng, count, 0.4)):
        meets, at = overlaps(a, other, b, moving, times)
        first = np.where(meets.any(axis=0), at[np.argmax(meets, axis=0), np.arange(count)], np.inf)
        for criterion in ("never", "literal", "symmetric"):
            options = IntervalOptions(criterion=criterion, continuous_axes=axes)
            since = unresolved_from(a, other, b, moving, times, options, device)
            assert (since <= first).all()
        assert np.isfinite(first).any()
        if other.__class__ is Rest and kind != "rest" and axes == 15:
            assert np.isinf(since).sum() > 0.7 * np.isinf(first).sum()


@pytest.mark.parametrize("criterion", ["literal", "symmetric"])
@pytest.mark.parametrize("k", [0.0, 1e-6, 0.15, 10.0])
def test_halving_ends_on_all_inputs_and_only_removes_false_overlaps(criterion, k, rng, effort, device):
    count = effort(400)
    a, b, times = boxes(rng, count), boxes(rng, count), np.tile([0.0, 1.0], (count, 1))
    a["half"][:10] = 0.0  # points
    start = random_poses(rng, count, 1.0)
    spins = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-8, 2, (count, 1))
    spins[::7] = 0.0
    ways = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-8, 2, (count, 1))
    ways[::5] = 0.0  # some rest, some only turn
    moving, still = Twist(start, ways, spins), Rest(random_poses(rng, count, 1.0))
    plain = unresolved_from(a, still, b, moving, times, IntervalOptions(criterion="never"), device)
    options = IntervalOptions(criterion=criterion, k=k, depth=12 if k == 0.0 else 30)
    halved = unresolved_from(a, still, b, moving, times, options, device)
    assert (halved >= plain).all()
    if k < 10.0:
        assert np.isinf(halved).sum() > np.isinf(plain).sum()
    meets, at = overlaps(a, still, b, moving, times, 20)
    first = np.where(meets.any(axis=0), at[np.argmax(meets, axis=0), np.arange(count)], np.inf)
    assert (halved <= first).all()


@pytest.mark.feature("F-R-28")
@pytest.mark.parametrize("criterion", ["literal", "symmetric"])
@pytest.mark.parametrize("kind", KINDS)
def test_halving_ends_whatever_the_boxes_and_their_motions(kind, criterion, rng, effort, device):
    """Every interval is halved `depth` times at most, so looks are bounded: also for boxes that never part, points,
    boxes in each other, sizes from 1e-30 to 1e30 beside ways of any other size, and k from 0 on."""
    count = effort(60, least=12)
    still = Rest(random_poses(rng, count, 0.3))
    for size in (1e-30, 1e-6, 1.0, 1e30):
        a, b = boxes(rng, count, size), boxes(rng, count, size)
        a[: count // 6] = b[: count // 6]  # the same box twice
        a["half"][count // 6 : count // 3] = 0.0
        times = random_times(rng, count)
        times[::4, 1] = times[::4, 0]  # no time at all
        for spread in (0.0, 1e-12, 1.0, 1e12):
            moving = random_motion(kind, rng, count, spread)
            for other in (still, moving):
                for k, depth in ((0.0, 7), (1e-300, 7), (0.15, 9), (1e300, 9)):
                    options = IntervalOptions(criterion=criterion, k=k, depth=depth)
                    since, looks = answers(a, other, b, moving, times, options, device).T
                    assert (looks <= 2.0 ** (depth + 1)).all()
                    assert ((since >= times[:, 0]) & ((since <= times[:, 1]) | np.isinf(since))).all()


def test_the_time_returned_closes_on_when_the_boxes_meet(device):
    """Two unit cubes, one coming from 4 away at speed 4: they meet at t = 0.5."""
    cube = np.zeros(1, ObbNode.numpy_dtype())
    cube["half"], cube["axes"], cube["radius"] = 1.0, np.eye(3), 1.8
    start = np.eye(4)
    start[0, 3] = 4.0
    coming = Twist(start[None], [[-4.0, 0, 0]], [[0, 0, 0]])
    for k, off in ((1.0, 0.5), (0.15, 0.1), (0.001, 0.001)):
        options = IntervalOptions(k=k, depth=16)
        since = unresolved_from(cube, Rest(np.eye(4)[None]), cube, coming, np.array([[0.0, 1.0]]), options, device)
        assert 0.5 - off <= since[0] <= 0.5
