"""The solver of contact problems: laws of single contacts, islands, threads, input that is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from oracles.contact_problems import Problem, heap, tower
from tangere.dynamics.solver import Solver, contact_rows, frames, rigid_bodies
from tangere.runtime import InputError

UP = [0.0, 0.0, 1.0]


def particle(velocity, normals, friction=0.0) -> Problem:
    """A ball of 1 kg that does not turn, with contacts through its centre."""
    count = len(normals)
    bodies = {"inverse_mass": np.ones(1), "inverse_inertia": np.zeros((1, 3, 3)), "velocity": np.zeros((1, 6))}
    bodies["velocity"][0, :3] = velocity
    rows = {"body_a": np.zeros(count, int), "arm_a": np.zeros((count, 3)), "frame": frames(normals)}
    return Problem(bodies, rows | {"friction": np.full(count, friction)})


def test_a_particle_on_the_ground_takes_off_sticks_or_slides_as_coulomb_says(device):
    for velocity, after in (
        ([0.3, 0.0, 0.1], [0.3, 0.0, 0.1]),
        ([0.04, 0.0, -0.1], [0.0, 0.0, 0.0]),
        ([0.3, 0.4, -0.1], [0.3 - 0.6 * 0.05, 0.4 - 0.8 * 0.05, 0.0]),
    ):
        solved = particle(velocity, [UP], friction=0.5).solve(device)
        np.testing.assert_allclose(solved.velocity[0, :3], after, atol=1e-12)
        assert solved.report.worst <= 1e-12


def test_the_example_of_the_room_s_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "rooms" / "dynamics.md").read_text()
    names: dict = {}
    exec(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0], names)
    np.testing.assert_allclose(names["box"].velocity.numpy()[0], [0.25, 0, 0, 0, 0, 0], atol=1e-6)


def test_the_residual_told_is_that_of_the_natural_map(device):
    for problem in (tower(10), heap(60)):
        solved = problem.solve(device, method="gauss_seidel", sweeps=20)
        assert solved.report.worst == pytest.approx(problem.residual(solved), rel=1e-6)
        assert problem.unbalance(solved) <= 1e-13


def test_no_problem_and_rows_of_fixed_bodies_change_nothing(device):
    bodies = rigid_bodies(
        wp.get_device(device), inverse_mass=[0.0, 0.0], inverse_inertia=np.zeros((2, 3, 3)), velocity=np.ones((2, 6))
    )
    solver = Solver(device=device)
    assert solver.solve(bodies).islands == 0
    rows = contact_rows(
        bodies.velocity.device, body_a=[0], body_b=[1], arm_a=np.ones((1, 3)), frame=frames([UP]), impulse=[[1.0, 0, 0]]
    )
    report = solver.solve(bodies, rows)
    assert (report.islands, report.worst) == (0, 0.0)
    np.testing.assert_array_equal(rows.impulse.numpy(), 0.0)
    np.testing.assert_array_equal(bodies.velocity.numpy(), 1.0)


@pytest.mark.parametrize(
    ("what", "name", "value", "message"),
    [
        ("rows", "bias", np.nan, r"contacts.bias\[1\] is not finite"),
        ("rows", "friction", np.inf, r"contacts.friction\[1\] is not finite"),
        ("rows", "arm_a", np.nan, r"contacts.arm_a\[1\] is not finite"),
        ("bodies", "velocity", np.nan, r"bodies.velocity\[1\] is not finite"),
        ("bodies", "inverse_inertia", -1.0, "negative"),
        ("rows", "body_a", 9, r"contacts.body_a\[1\] is 9, but there are 3 bodies"),
    ],
)
def test_bad_input_is_named_and_nothing_is_changed(device, what, name, value, message):
    problem = tower(3)
    getattr(problem, what)[name][1] = value
    bodies, rows, _ = problem.on(device)
    before = bodies.velocity.numpy().copy()
    with pytest.raises(InputError, match=message):
        Solver(device=device).solve(bodies, rows)
    np.testing.assert_array_equal(bodies.velocity.numpy(), before)
    np.testing.assert_array_equal(rows.impulse.numpy(), 0.0)
