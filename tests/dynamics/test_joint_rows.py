"""Joint rows: equations, limits, motors, springs, loops; by sweeps and by interior point."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.contact_problems import FALL, Problem, boxes
from tangere.dynamics.solver import frames

METHODS = ["auto", "interior_point"]


def ball_joint(a: int, b: int, arm_a, arm_b) -> dict[str, list]:
    """Three equations that hold a point of body a at one of body b; -1 is the world."""
    arm_a, arm_b = np.asarray(arm_a, float), np.asarray(arm_b, float)
    rows: dict[str, list] = {"body_a": [a] * 3, "body_b": [b] * 3, "jacobian_a": [], "jacobian_b": []}
    for axis in np.eye(3):
        rows["jacobian_a"].append(np.concatenate([axis, np.cross(arm_a, axis)]))
        rows["jacobian_b"].append(-np.concatenate([axis, np.cross(arm_b, axis)]))
    return rows


def axis_row(a: int, b: int, linear=(0, 0, 0), angular=(0, 0, 0), **options) -> dict[str, list]:
    """One row along an axis of relative motion."""
    row = np.concatenate([linear, angular]).astype(float)
    columns = {"body_a": [a], "body_b": [b], "jacobian_a": [row], "jacobian_b": [-row]}
    return columns | {name: [value] for name, value in options.items()}


def joined(*groups: dict[str, list]) -> dict[str, np.ndarray]:
    defaults = {"bias": 0.0, "lower": -np.inf, "upper": np.inf, "compliance": 0.0}
    names = ("body_a", "body_b", "jacobian_a", "jacobian_b", *defaults)
    found = {name: [] for name in names}
    for group in groups:
        for name in names:
            found[name] += group.get(name, [defaults.get(name)] * len(group["body_a"]))
    return {name: np.array(column) for name, column in found.items()}


def matrices(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Rows (k, 6 n) and M^-1."""
    n = len(problem.bodies["inverse_mass"])
    rows = np.zeros((len(problem.joints["body_a"]), n, 6))
    for i, (a, b) in enumerate(zip(problem.joints["body_a"], problem.joints["body_b"])):
        if a >= 0:
            rows[i, a] += problem.joints["jacobian_a"][i]
        if b >= 0:
            rows[i, b] += problem.joints["jacobian_b"][i]
    return rows.reshape(len(rows), -1), problem.inverse_mass


def exact(problem: Problem) -> np.ndarray:
    """Velocities with all rows as equations, by a dense solve."""
    rows, inverse = matrices(problem)
    system = rows @ inverse @ rows.T + np.diag(problem.joints["compliance"])
    impulse = np.linalg.lstsq(system, -(rows @ problem.free + problem.joints["bias"]), rcond=None)[0]
    return (problem.free + inverse @ rows.T @ impulse).reshape(-1, 6)


def chain(links: int, tip: float = 1.0) -> Problem:
    """Rods that hang from the world, end to end, swinging; the last one `tip` times as heavy."""
    bodies = boxes(links, (0.1, 0.1, 1.0))
    bodies["inverse_mass"][-1] /= tip
    bodies["inverse_inertia"][-1] /= tip
    bodies["velocity"][:, 2] = -FALL
    bodies["velocity"][:, 0] = np.linspace(0.1, 1.0, links)
    top, bottom = [0.0, 0.0, 0.5], [0.0, 0.0, -0.5]
    groups = [ball_joint(k, k - 1, top, bottom if k else [0.0, 0.0, 0.0]) for k in range(links)]
    return Problem(bodies, joints=joined(*groups))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tip", [1.0, 1e3])
def test_chains_are_closed_as_a_dense_solve_closes_them(device, method, tip):
    for links in (1, 2, 8):
        problem = chain(links, tip)
        solved = problem.solve(device, method=method)
        assert solved.report.worst <= 1e-5
        np.testing.assert_allclose(solved.velocity, exact(problem), atol=2e-4 if method == "auto" else 1e-7)
        rows, _ = matrices(problem)
        assert np.abs(rows @ solved.velocity.reshape(-1)).max() <= 2e-5


@pytest.mark.parametrize("method", METHODS)
def test_a_loop_with_redundant_equations_moves_as_it_can(device, method):
    """Four bars, ball joints at all corners: more equations than needed, all of them kept."""
    bodies = boxes(3, (0.2, 0.2, 1.0))
    bodies["velocity"][:] = np.random.default_rng(1).normal(size=(3, 6))
    up, down = np.array([0.0, 0.0, 0.5]), np.array([0.0, 0.0, -0.5])
    groups = [ball_joint(0, -1, down, down), ball_joint(1, 0, down, up), ball_joint(2, 1, up, up)]
    groups += [ball_joint(2, -1, down, down), ball_joint(2, -1, down, down)]
    problem = Problem(bodies, joints=joined(*groups))
    solved = problem.solve(device, method=method, sweeps=5000)
    assert solved.report.worst <= 1e-6
    np.testing.assert_allclose(solved.velocity, exact(problem), atol=1e-4 if method == "auto" else 1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_stops_one_way_only_and_a_motor_pushes_no_harder_than_it_can(device, method):
    bodies = boxes(1)
    for speed, after in ((-1.0, 0.0), (1.0, 1.0)):
        bodies["velocity"] = np.array([[0.0, 0.0, speed, 0.0, 0.0, 0.0]])
        limit = joined(axis_row(0, -1, linear=(0, 0, 1), lower=0.0))
        solved = Problem(bodies, joints=limit).solve(device, method=method)
        assert solved.velocity[0, 2] == pytest.approx(after, abs=1e-6)
        assert solved.joint_impulse[0] >= 0.0
    bodies["velocity"][:] = 0.0
    for most, after in ((10.0, 2.0), (0.5, 0.5), (0.0, 0.0)):
        motor = joined(axis_row(0, -1, linear=(1, 0, 0), bias=-2.0, lower=-most, upper=most))
        solved = Problem(bodies, joints=motor).solve(device, method=method)
        assert solved.velocity[0, 0] == pytest.approx(after, abs=1e-6)
        assert abs(solved.joint_impulse[0]) <= most
        assert solved.report.worst <= 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_compliance_gives_way_in_proportion(device, method):
    bodies = boxes(1)
    bodies["velocity"][0, 0] = 3.0
    spring = joined(axis_row(0, -1, linear=(1, 0, 0), compliance=2.0))
    solved = Problem(bodies, joints=spring).solve(device, method=method)
    assert solved.joint_impulse[0] == pytest.approx(-1.0, abs=1e-6)  # u + 2 r = 0 and u = 3 + r
    assert solved.velocity[0, 0] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_joints_and_contacts_are_solved_together(device, method):
    """A door on hinges pushed against a stop: the contact's impulse goes through the joint."""
    bodies = boxes(1, (1.0, 0.05, 2.0))
    bodies["velocity"][0] = [0.0, -0.5, 0.0, 0.0, 0.0, -1.0]
    hinge = [ball_joint(0, -1, [-0.5, 0.0, z], [0.0, 0.0, 0.0]) for z in (-0.8, 0.8)]
    rows = {"body_a": np.array([0]), "arm_a": np.array([[0.5, 0.0, 0.0]]), "frame": frames([[0.0, 1.0, 0.0]])}
    problem = Problem(bodies, rows | {"friction": np.array([0.3])}, joined(*hinge))
    solved = problem.solve(device, method=method, sweeps=3000)
    assert solved.report.worst <= 1e-5
    np.testing.assert_allclose(solved.velocity, 0.0, atol=1e-4)
    assert solved.impulse[0, 0] > 0.1
    energy = [problem.kinetic_energy(v) for v in (problem.free, solved.velocity)]
    assert energy[1] <= energy[0]


@pytest.mark.parametrize("method", METHODS)
def test_random_bounded_rows_obey_their_law(rng, device, effort, method):
    for _ in range(effort(20)):
        count = int(rng.integers(1, 25))
        bodies = boxes(4)
        bodies["velocity"] = rng.normal(size=(4, 6))
        lower, upper = np.sort(rng.normal(size=(2, count)), axis=0)
        lower[rng.random(count) < 0.3] = -np.inf
        upper[rng.random(count) < 0.3] = np.inf
        joints = {"body_a": rng.integers(-1, 4, count), "body_b": rng.integers(-1, 4, count), "lower": lower}
        joints |= {"jacobian_a": rng.normal(size=(count, 6)), "jacobian_b": rng.normal(size=(count, 6))}
        joints |= {"upper": upper, "bias": rng.normal(size=count), "compliance": rng.choice([0.0, 0.1], count)}
        problem = Problem(bodies, joints=joints)
        solved = problem.solve(device, method=method, sweeps=3000)
        rows, inverse = matrices(problem)
        u = rows @ solved.velocity.reshape(-1) + joints["bias"] + joints["compliance"] * solved.joint_impulse
        d = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        free = d > 0.0  # rows of the world with itself have no impulse
        d = d + joints["compliance"]
        r = solved.joint_impulse
        residual = np.abs(r - np.clip(r - u / np.where(free, d, 1.0), lower, upper)) * d
        assert residual[free].max(initial=0.0) <= 1e-4
        push = problem.free + inverse @ rows.T @ r
        np.testing.assert_allclose(solved.velocity.reshape(-1), push, atol=1e-10)
