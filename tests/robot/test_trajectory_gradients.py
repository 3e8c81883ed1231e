"""Gradients by joints against differences: distances at a configuration, contacts and clearances on a trajectory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import tangere as tg
from oracles.differences import least_error
from oracles.robot_samples import SampledCell, link_frames, within
from robot.cells import place, trajectories, world
from tangere.query.contacts import Status
from tangere.query.gradients import GradientStatus
from tangere.runtime import InputError

ARM = tg.robot.generate.arm(gripper=True)
WORLD = world()
SMOOTH = GradientStatus.SMOOTH


def configurations(rng, count: int) -> np.ndarray:
    low, high = np.clip(ARM.limits, -1.5, 1.5).T
    return rng.uniform(low, high, (count, len(low)))


def test_jacobians_are_the_differences_of_poses(rng):
    q = configurations(rng, 1)[0]
    told, h = ARM.jacobians(q), 1e-6
    for k in range(len(q)):
        up, down = (link_frames(ARM, (q + sign * h * np.eye(len(q))[k])[None]) for sign in (1.0, -1.0))
        for number, link in enumerate(ARM.links):
            change = (up[link][0] - down[link][0]) / (2.0 * h)
            turn = change[:3, :3] @ link_frames(ARM, q[None])[link][0, :3, :3].T
            np.testing.assert_allclose(told[number, :3, k], change[:3, 3], atol=1e-8)
            np.testing.assert_allclose(told[number, 3:, k], [turn[2, 1], turn[0, 2], turn[1, 0]], atol=1e-8)


def test_distances_by_joints(rng, effort):
    """A gripper whose fingers follow one value, and things in the world."""
    rows, seen = configurations(rng, effort(4, 2)), 0
    found = ARM.distances(rows, WORLD, tie=1e-5, device="cpu")
    sampled = SampledCell(ARM, WORLD)
    for i, q in enumerate(rows):
        for k, pair in enumerate(found.pairs):
            if found.status[i, k] != SMOOTH or found.upper[i, k] < 5e-3 or k % 3:
                continue
            seen += 1

            def asked(d, q=q, pair=pair):
                return sampled.distances(pair, q + d, np.zeros(len(d)))

            assert least_error(found.gradient[i, k], asked, (1e-4, 1e-5, 1e-6)) < 1e-8, pair
            assert found.upper[i, k] == pytest.approx(asked(np.zeros((1, len(q))))[0], abs=1e-9)
    assert seen > effort(30, 10)
    alone = ARM.distances(rows[0], WORLD, tie=1e-5, device="cpu")
    np.testing.assert_array_equal(alone.gradient, found.gradient[0])


def test_the_time_of_a_contact_by_the_configurations_of_a_plan(rng, effort):
    q = trajectories(rng, ARM, effort(60, 20), 4)
    checks, seen = ARM.check(q, WORLD, device="cpu"), 0
    clock = np.array([0.0, 1.0, 2.5, 4.0])
    for i in np.flatnonzero(checks.status == Status.CONTACT):
        found = ARM.check(q[i], WORLD, times=clock, device="cpu")
        slope = ARM.time_gradient(found, q[i], WORLD, times=clock, device="cpu")
        if slope.status != SMOOTH or found.time - clock[found.segment] < 1e-3:
            continue
        k = found.segment
        told = slope.configurations[k : k + 2].reshape(-1)
        if np.linalg.norm(told) > 50.0:
            continue  # nearly grazing

        def asked(d, i=i, k=k):
            plans = np.tile(q[i], (len(d), 1, 1))
            plans[:, k : k + 2] += d.reshape(len(d), 2, -1)
            return ARM.check(plans, WORLD, times=clock, tolerance=1e-10, device="cpu").time

        assert not np.delete(slope.configurations, [k, k + 1], axis=0).any()
        assert least_error(told, asked, (1e-2, 1e-3, 1e-4)) < 1e-5 * max(np.linalg.norm(told), 1.0), found.pair
        seen += 1
    assert seen >= effort(5, 1)


def test_a_moving_base_and_moving_things_count(rng):
    base = tg.Path(np.array([place(), place(x=0.1), place(x=0.15, y=0.1)]), [0.0, 0.3, 1.0])
    ball = {"ball": WORLD["ball"].moving(tg.Twist(place(x=0.9, y=0.5), (-0.3, 0.0, 0.0), (0.0, 0.0, 0.4)))}
    seen = 0
    for q in trajectories(rng, ARM, 30, 3):
        found = ARM.check(q, ball, base=base, device="cpu")
        if found.status != Status.CONTACT:
            continue
        slope = ARM.time_gradient(found, q, ball, base=base, device="cpu")
        k = found.segment
        told = slope.configurations[k : k + 2].reshape(-1)
        if slope.status != SMOOTH or np.linalg.norm(told) > 20.0:
            continue

        def asked(d, q=q, k=k):
            plans = np.tile(q, (len(d), 1, 1))
            plans[:, k : k + 2] += d.reshape(len(d), 2, -1)
            return ARM.check(plans, ball, base=base, tolerance=1e-10, device="cpu").time

        assert least_error(told, asked, (1e-2, 1e-3, 1e-4)) < 1e-5 * max(np.linalg.norm(told), 1.0)
        seen += 1
    assert seen >= 2


def test_clearances_by_both_ends_of_each_segment(rng):
    """The oracle minimises the distance of the two bodies over the segment itself."""
    sampled, seen = SampledCell(ARM, WORLD), 0
    own = list(combinations(ARM.bodies, 2))  # links beside each other are as near everywhere
    for q in trajectories(rng, ARM, 20, 4):
        found = ARM.check(q, WORLD, own, clearance=0.5, accuracy=0.3, device="cpu")
        if found:
            continue
        slope = ARM.clearance_gradients(found, q, WORLD, device="cpu")
        assert (slope.value <= found.segments.clearance_upper * (1.0 + 1e-9)).all()
        for k in np.flatnonzero(slope.status == SMOOTH):
            pair, share = slope.pair[k], found.segments.clearance_time[k] * 3.0 - k

            def asked(d, q=q, k=k, pair=pair, share=share):
                values = []
                for row in d:
                    bent = q.copy()
                    bent[k : k + 2] += row.reshape(2, -1)

                    def apart(t, bent=bent):
                        return sampled.distances(pair, within(bent, k, np.array([t])), np.array([(k + t) / 3.0]))[0]

                    near = np.linspace(0.0, 1.0, 9)
                    best = near[np.argmin([apart(t) for t in near])]
                    ends = max(best - 0.125, 0.0), min(best + 0.125, 1.0)
                    least = minimize_scalar(apart, bounds=ends, method="bounded", options={"xatol": 1e-10})
                    values.append(min(least.fun, apart(ends[0]), apart(ends[1])))
                return values

            if abs(slope.value[k] - asked(np.zeros((1, 2 * q.shape[1])))[0]) > 1e-9:
                continue  # another time of the segment is nearer: the least near the time found is told
            assert least_error(slope.ends[k].reshape(-1), asked, (1e-4,)) < 1e-6
            seen += 1
        if seen >= 2:
            break
    assert seen >= 2


def test_what_has_no_gradient_is_marked_and_what_does_not_fit_is_told():
    q = np.linspace(ARM.limits.mean(axis=1), ARM.limits.mean(axis=1) + 0.01, 3)
    q[:, 1:3] = [0.5, 0.4]
    free = ARM.check(q, device="cpu")
    assert ARM.time_gradient(free, q, device="cpu").status == GradientStatus.FREE
    with pytest.raises(InputError, match="no clearance"):
        ARM.clearance_gradients(free, q, device="cpu")
    with pytest.raises(InputError, match="two configurations at least"):
        ARM.time_gradient(free, q[:1], device="cpu")
    with pytest.raises(InputError, match="q must be finite"):
        ARM.distances(np.zeros(2), device="cpu")
    near = ARM.check(q, clearance=0.1, device="cpu")
    with pytest.raises(InputError, match="2 segments, but q has 1"):
        ARM.clearance_gradients(near, q[:2], device="cpu")
