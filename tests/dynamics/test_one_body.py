"""Projections of one body: against SciPy, degenerate rows, metrics, what cannot be satisfied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from tangere.dynamics.solver import INFEASIBLE, SOLVED, OneBodyProjection
from tangere.runtime import InputError

PROJECTION = OneBodyProjection()


def by_scipy(rows: np.ndarray, need: np.ndarray, wanted: np.ndarray) -> np.ndarray | None:
    """Least-distance programming over SciPy's non-negative least squares; None where no motion satisfies all rows."""
    system = np.vstack([rows.T, (need - rows @ wanted)[None]])
    target = np.eye(7)[6]
    residual = system @ nnls(system, target, maxiter=1000)[0] - target
    return None if abs(residual[6]) < 1e-9 else wanted - residual[:6] / residual[6]


def check_optimal(rows, need, wanted, metric, answer) -> None:
    """All conditions of the least distance: feasible, multipliers not negative, complementary, stationary."""
    scale = max(1.0, np.abs(answer.motion).max())
    slack = rows @ answer.motion - need
    assert slack.min(initial=0.0) >= -1e-10 * scale
    assert answer.impulse.min(initial=0.0) >= 0.0
    assert np.abs(answer.impulse * slack).max(initial=0.0) <= 1e-9 * scale * max(1.0, answer.impulse.max(initial=0.0))
    push = rows.T @ answer.impulse
    np.testing.assert_allclose(metric @ (answer.motion - wanted), push, atol=1e-9 * max(1.0, np.abs(push).max()))


def test_random_rows_give_what_scipy_gives(rng, effort):
    infeasible = 0
    for _ in range(effort(1000)):
        count = rng.integers(1, 60)
        rows = rng.normal(size=(count, 6)) + rng.choice([0.0, 1.0, 2.0]) * np.eye(6)[2]
        need, wanted = rng.uniform(-1.0, 0.2, count), rng.normal(size=6)
        answer, expected = PROJECTION.project(rows, need, wanted), by_scipy(rows, need, wanted)
        if expected is None:
            infeasible += 1
            assert answer.status == INFEASIBLE
        else:
            assert answer.status == SOLVED
            np.testing.assert_allclose(answer.motion, expected, rtol=0, atol=1e-8 * max(1.0, np.abs(expected).max()))
            check_optimal(rows, need, wanted, np.eye(6), answer)
    assert infeasible > 0


@given(seed=st.integers(0, 2**31), count=st.integers(1, 40), flat=st.booleans(), repeated=st.booleans())
def test_the_answer_is_optimal_in_any_metric_however_the_rows_lie(seed, count, flat, repeated):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 6))
    if flat:  # contacts of one face: many rows in three dimensions
        rows[:, [0, 1, 5]] = 0.0
        rows[:, 2] = 1.0
    if repeated:
        rows = np.concatenate([rows, rows * rng.uniform(0.5, 2.0, (count, 1))])
    spread = rng.normal(size=(6, 6))
    metric = spread @ spread.T + 0.1 * np.eye(6)
    need = -rng.uniform(0.0, 1.0, len(rows)) * rng.integers(0, 2, len(rows))
    wanted = rng.normal(size=6)
    projection = OneBodyProjection(metric)
    answer = projection.project(rows, need, wanted)
    assert answer.status == SOLVED  # resting is allowed by all rows
    check_optimal(rows, need, wanted, metric, answer)


def test_a_thousand_rows_of_one_plane_stop_what_goes_through_and_nothing_else():
    angle = np.linspace(0.0, 2.0 * np.pi, 1000)
    arm = np.stack([np.cos(angle), np.sin(angle), np.full(1000, -0.3)], axis=1)
    normal = np.tile([0.0, 0.0, 1.0], (1000, 1))
    rows = np.concatenate([normal, np.cross(arm, normal)], axis=1)
    answer = PROJECTION.project(rows, np.zeros(1000), np.array([0.1, 0.2, -1.0, 0.0, 0.0, 0.5]))
    np.testing.assert_allclose(answer.motion, [0.1, 0.2, 0.0, 0.0, 0.0, 0.5], atol=1e-12)
    assert np.count_nonzero(answer.impulse) <= 6
    assert answer.impulse.sum() == pytest.approx(1.0)


def test_no_rows_and_rows_that_are_kept_leave_the_motion_as_it_is():
    wanted = np.arange(6.0)
    for rows, need in ((np.zeros((0, 6)), np.zeros(0)), (np.eye(6), np.full(6, -1.0)), (np.zeros((3, 6)), np.zeros(3))):
        answer = PROJECTION.project(rows, need, wanted)
        assert answer.status == SOLVED
        np.testing.assert_array_equal(answer.motion, wanted)
        np.testing.assert_array_equal(answer.impulse, 0.0)


def test_rows_against_each_other_and_rows_nobody_can_obey_are_infeasible():
    opposite = np.array([np.eye(6)[2], -np.eye(6)[2]])
    assert PROJECTION.project(opposite, np.array([1e-3, 1e-3]), np.zeros(6)).status == INFEASIBLE
    assert PROJECTION.project(opposite, np.zeros(2), np.ones(6)).status == SOLVED
    assert PROJECTION.project(np.zeros((1, 6)), np.ones(1), np.zeros(6)).status == INFEASIBLE


def test_what_is_not_finite_or_has_another_shape_is_refused():
    for rows, need, wanted in (
        (np.full((1, 6), np.nan), np.zeros(1), np.zeros(6)),
        (np.ones((1, 6)), np.array([np.inf]), np.zeros(6)),
        (np.ones((1, 6)), np.zeros(1), np.full(6, np.nan)),
    ):
        with pytest.raises(InputError, match="finite"):
            PROJECTION.project(rows, need, wanted)
    with pytest.raises(InputError, match="rows, need and wanted"):
        PROJECTION.project(np.ones((2, 5)), np.zeros(2), np.zeros(6))
    with pytest.raises(InputError, match="positive definite"):
        OneBodyProjection(-np.eye(6))


@pytest.mark.cuda
def test_cuda_projects_as_the_cpu_does(rng):
    other = OneBodyProjection(device="cuda:0")
    for count in (1, 30, 300):
        rows, need = rng.normal(size=(count, 6)) + 3.0 * np.eye(6)[2], rng.uniform(-1.0, 0.2, count)
        wanted = rng.normal(size=6)
        ours, theirs = PROJECTION.project(rows, need, wanted), other.project(rows, need, wanted)
        assert ours.status == theirs.status
        np.testing.assert_allclose(ours.motion, theirs.motion, atol=1e-10)
