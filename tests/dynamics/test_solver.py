"""The solver of contact problems: laws of single contacts, islands, threads, input that is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

from oracles.contact_problems import Problem, boxes, dimple, heap, tower, wall
from tangere.dynamics.solver import Solver, contact_rows, frames, reserve, rigid_bodies
from tangere.runtime import InputError

UP = [0.0, 0.0, 1.0]
#: One of each kind, on the CPU.
SOLVERS = [Solver(device="cpu", method=method, sweeps=60) for method in ("auto", "gauss_seidel", "interior_point")]


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


@pytest.mark.parametrize("make", [lambda: tower(12), lambda: wall(4, 3), lambda: heap(60), lambda: dimple(100)])
def test_without_friction_the_answer_is_scipy_s(make, device):
    problem = make()
    problem.rows["friction"][:] = 0.0
    expected = problem.frictionless()
    for method in ("auto", "interior_point"):
        solved = problem.solve(device, method=method, sweeps=2000, tolerance=1e-11)
        if method == "interior_point":
            np.testing.assert_allclose(solved.velocity.reshape(-1), expected, atol=1e-8)
        np.testing.assert_allclose(solved.velocity.reshape(-1), expected, atol=1e-5)


@pytest.mark.parametrize(
    "make", [lambda: tower(25), lambda: wall(4, 3), lambda: heap(75), lambda: dimple(100), lambda: dimple(8)]
)
def test_convex_friction_is_solved_as_well_as_clarabel_solves_it(make, device):
    pytest.importorskip("clarabel", reason="Clarabel is compared with where it is installed")
    problem = make()
    solved, theirs = problem.solve(device, law="convex", tolerance=1e-10), problem.by_clarabel()
    assert problem.residual(solved, coulomb=False) <= problem.residual(theirs, coulomb=False)
    assert solved.report.worst == pytest.approx(problem.residual(solved, coulomb=False), rel=1e-3, abs=1e-12)
    np.testing.assert_allclose(solved.velocity, theirs.velocity, atol=2e-5)  # it is unique


@pytest.mark.feature("F-R-62")
def test_convex_friction_has_one_answer_from_any_start(device, rng):
    problem = heap(50)
    first = problem.solve(device, law="convex", tolerance=1e-10)
    problem.rows["impulse"] = rng.uniform(0.0, 1.0, (50, 3))
    np.testing.assert_allclose(problem.solve(device, law="convex", tolerance=1e-10).velocity, first.velocity, atol=1e-7)


def test_sweeps_and_interior_point_agree_where_the_answer_is_unique(device):
    for problem in (tower(4), wall(2, 2), dimple(3)):
        sweeps = problem.solve(device, method="gauss_seidel", sweeps=20_000, tolerance=1e-12)
        points = problem.solve(device, method="interior_point", tolerance=1e-12)
        assert max(sweeps.report.worst, points.report.worst) <= 1e-9
        assert points.report.interior == points.report.islands == 1
        np.testing.assert_allclose(points.velocity, sweeps.velocity, atol=1e-7)


def test_tall_towers_are_solved_where_sweeps_stagnate(device):
    problem = tower(60)
    sweeps, auto = problem.solve(device, method="gauss_seidel"), problem.solve(device)
    assert sweeps.report.worst > 1e-3
    assert (auto.report.interior, auto.report.islands) == (1, 1)
    assert auto.report.worst <= 1e-6
    assert auto.report.worst == pytest.approx(problem.residual(auto), rel=1e-3, abs=1e-12)
    assert np.abs(auto.velocity).max() <= 1e-4  # it stands


def test_islands_whose_factors_cost_too_much_go_on_with_sweeps(device, monkeypatch):
    problem = tower(60)
    sweeps = problem.solve(device, method="gauss_seidel")
    monkeypatch.setattr("tangere.dynamics.solver.api.MOST_PRODUCTS", 0.0)
    auto = problem.solve(device)
    assert auto.report.interior == 0
    assert auto.report.iterations[0] == sweeps.report.iterations[0] == 150
    assert auto.report.worst == pytest.approx(sweeps.report.worst, rel=1e-6)


def test_lazy_sweeps_of_many_rows_come_to_what_all_sweeps_come_to(device, monkeypatch):
    """A wall is solved lazily; with more patience no contact is left out, and the answer is the same."""
    problem = wall(8, 9)
    options = {"method": "gauss_seidel", "sweeps": 20_000, "tolerance": 1e-9}
    lazy = problem.solve(device, **options)
    monkeypatch.setattr("tangere.dynamics.solver.api.PATIENT", 1_000_000)
    eager = problem.solve(device, **options)
    assert problem.contacts > 200
    assert max(lazy.report.worst, eager.report.worst) <= 1e-7
    np.testing.assert_allclose(lazy.velocity, eager.velocity, atol=1e-6)
    assert lazy.report.worst == pytest.approx(problem.residual(lazy), rel=1e-3, abs=1e-12)


def test_an_answer_is_a_good_start_for_the_next_step(device):
    for problem in (tower(3), wall(2, 2)):
        first = problem.solve(device, method="gauss_seidel", sweeps=20_000, tolerance=1e-7)
        problem.rows["impulse"] = first.impulse
        again = problem.solve(device, method="gauss_seidel", sweeps=20_000, tolerance=1e-7)
        assert again.report.iterations[0] <= 0.1 * first.report.iterations[0]


def test_islands_without_new_contacts_keep_their_answer(device):
    """Two particles on the ground; a wall in the way of the second is new."""
    sides = np.array([UP, UP, [-1.0, 0.0, 0.0]])
    velocity = np.zeros((2, 6))
    velocity[:, :3] = [[0.3, 0.0, -0.1], [0.5, 0.0, -0.1]]
    one = {"inverse_mass": np.ones(2), "inverse_inertia": np.zeros((2, 3, 3))}
    place = wp.get_device(device)
    rows = contact_rows(place, body_a=[0, 1, 1], arm_a=np.zeros((3, 3)), frame=frames(sides), friction=[0.5, 0.5, 0.0])
    solver = Solver(device=device)
    solver.solve(rigid_bodies(place, velocity=velocity, **one), rows, 2)
    kept = rows.impulse.numpy()
    kept[0] *= 1.5  # not what another solve would come to
    rows.impulse.assign(kept)
    bodies = rigid_bodies(place, velocity=velocity, **one)
    report = solver.solve(bodies, rows, 3, since=2)
    assert report.iterations[0] == 0 < report.iterations[1]
    assert report.residual[0] > 0.01 > 1e-9 > report.residual[1]
    np.testing.assert_array_equal(rows.impulse.numpy()[0], kept[0])
    np.testing.assert_allclose(bodies.velocity.numpy()[0, :3], [0.3 - 0.05 * 1.5, 0.0, 0.05], atol=1e-12)
    np.testing.assert_allclose(bodies.velocity.numpy()[1, :3], 0.0, atol=1e-9)
    assert solver.solve(bodies, rows, 3).iterations[0] > 0


def jointed_heaps(rng) -> Problem:
    """Two heaps of which only the first is large, with bodies that are tied to each other and to the world."""
    problem, small = heap(400), heap(40, seed=1)
    count = len(problem.bodies["inverse_mass"])
    for name, column in small.bodies.items():
        problem.bodies[name] = np.concatenate([problem.bodies[name], column])
    for name, column in small.rows.items():
        moved = np.where(column >= 0, column + count, -1) if name.startswith("body") else column
        problem.rows[name] = np.concatenate([problem.rows[name], moved])
    ties = np.array([[3, 20], [11, -1], [20, 21], [3, 40], [count + 1, count + 2]])
    jacobian = rng.normal(0.0, 1.0, (2, len(ties), 6))
    problem.joints = {"body_a": ties[:, 0], "body_b": ties[:, 1], "jacobian_a": jacobian[0], "jacobian_b": jacobian[1]}
    problem.joints["bias"] = rng.normal(0.0, 0.01, len(ties))
    return problem


@pytest.mark.parametrize("make", [lambda rng: tower(80), lambda rng: wall(8, 6), lambda rng: heap(400), jointed_heaps])
def test_large_islands_by_levels_have_the_bits_of_one_row_after_the_other(make, rng):
    """As blocks of threads of a GPU solve them; here a block has one thread."""
    problem, found = make(rng), []
    for blocks in (False, True):
        solver = Solver(device="cpu", sweeps=60)
        if blocks:
            solver._use_blocks()
        found.append(problem.solve_by(solver))
    for name in ("velocity", "impulse", "joint_impulse"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))
    np.testing.assert_array_equal(found[0].report.residual, found[1].report.residual)
    np.testing.assert_array_equal(found[0].report.iterations, found[1].report.iterations)
    islands, levels = solver.islands, solver._large._levels.arrays
    contacts, joints = islands.read("contact_first", 2)[1], islands.read("joint_first", 2)[1]
    rows, ends = contacts + joints, []
    for side in ("body_a", "body_b"):
        tied = problem.joints[side][islands.read("joint_order", joints)] if joints else np.zeros(0, int)
        ends.append(np.concatenate([tied, problem.rows[side][islands.read("contact_order", contacts)]]))
    ends, level = np.array(ends), levels.level.numpy()[:rows]
    assert sorted(levels.order.numpy()[:rows]) == list(range(rows))
    for number in range(levels.count.numpy()[0]):
        of_level = ends[:, level == number].ravel()
        of_level = of_level[of_level >= 0]
        assert 0 < len(of_level) == len(set(of_level))  # no two share a body


def test_the_bits_are_the_same_for_any_number_of_threads(device):
    problem = Problem(boxes(0))
    parts = [heap(30, seed=k) for k in range(6)] + [tower(30), tower(2)]
    shift = 0
    for part in parts:
        for side in ("body_a", "body_b"):
            part.rows[side] = np.where(part.rows[side] >= 0, part.rows[side] + shift, -1)
        shift += len(part.bodies["inverse_mass"])
    problem.bodies = {name: np.concatenate([p.bodies[name] for p in parts]) for name in parts[0].bodies}
    problem.rows = {name: np.concatenate([p.rows[name] for p in parts]) for name in parts[0].rows}
    one, other = problem.solve(device, threads=1), problem.solve(device, threads=2)
    assert one.report.islands >= 8
    assert one.report.interior >= 1
    np.testing.assert_array_equal(one.velocity, other.velocity)
    np.testing.assert_array_equal(one.impulse, other.impulse)


@pytest.mark.parametrize("method", ["auto", "gauss_seidel", "interior_point"])
def test_impulses_never_add_energy_without_bias(rng, device, effort, method):
    for seed in range(effort(12)):
        problem = heap(int(rng.integers(5, 60)), friction=rng.choice([0.0, 0.4, 1.5]), seed=seed)
        for sweeps in (5, 150):
            solved = problem.solve(device, method=method, sweeps=sweeps)
            before, after = problem.kinetic_energy(problem.free), problem.kinetic_energy(solved.velocity)
            # Impulses do work on what is left of the approach, which the residual bounds.
            left = 2.0 * solved.report.worst * np.abs(solved.impulse).sum()
            assert after <= before * (1.0 + 1e-12) + left


def test_a_thousand_redundant_contacts_of_one_body_stop_it(device):
    angle = np.linspace(0.0, 6.0, 1000)
    arms = np.stack([np.cos(angle), np.sin(angle), np.full(1000, -0.5)], axis=1)
    bodies = boxes(1)
    bodies["velocity"][0] = [0.01, 0.0, -1.0, 0.0, 0.0, 0.0]
    rows = {"body_a": np.zeros(1000, int), "arm_a": arms, "frame": np.tile(frames([UP]), (1000, 1, 1))}
    problem = Problem(bodies, rows | {"friction": np.full(1000, 0.5)})
    for method in ("auto", "interior_point"):
        solved = problem.solve(device, method=method)
        np.testing.assert_allclose(solved.velocity, 0.0, atol=1e-6)
        assert solved.impulse[:, 0].sum() == pytest.approx(1.0, rel=1e-6)


def test_a_mass_a_million_times_larger_rests_on_a_small_one(device):
    for heavy, light in ((0, 1), (1, 0)):
        problem = tower(2)
        problem.bodies["inverse_mass"][heavy] *= 1e-6
        problem.bodies["inverse_inertia"][heavy] *= 1e-6
        solved = problem.solve(device)
        assert solved.report.worst <= 1e-5, (heavy, light)
        assert np.abs(solved.velocity).max() <= 1e-4, (heavy, light)


@pytest.mark.parametrize("friction", [0.0, 1e3])
@pytest.mark.parametrize("method", ["auto", "interior_point"])
def test_no_friction_slides_on_and_much_friction_sticks(device, friction, method):
    problem = tower(3, friction=friction)
    solved = problem.solve(device, method=method, sweeps=1000)
    assert solved.report.worst <= 1e-7 * (1.0 + friction)  # friction times sliding counts as approach
    sideways = problem.bodies["velocity"][:, 0] if friction == 0.0 else np.zeros(3)
    np.testing.assert_allclose(solved.velocity[:, 0], sideways, atol=1e-4)


def test_fixed_and_driven_bodies_keep_their_velocity_and_carry_others(device):
    problem = tower(3)
    problem.bodies["inverse_mass"][0] = 0.0
    problem.bodies["inverse_inertia"][0] = 0.0
    problem.bodies["velocity"][0] = [0.03, 0.0, 0.2, 0.0, 0.0, 0.0]  # lifts the two above
    solved = problem.solve(device)
    np.testing.assert_array_equal(solved.velocity[0], problem.bodies["velocity"][0])
    np.testing.assert_allclose(solved.velocity[1:], np.tile(problem.bodies["velocity"][0], (2, 1)), atol=1e-5)


def test_bodies_that_only_turn_or_only_move_are_solved(device):
    """A wheel on a fixed axle, and a ball that does not turn, pressed together."""
    bodies = boxes(2)
    bodies["inverse_mass"][0] = 0.0
    bodies["inverse_inertia"][0] = np.diag([0.0, 6.0, 0.0])
    bodies["inverse_inertia"][1] = 0.0
    bodies["velocity"][1] = [0.1, 0.0, -1.0, 0.0, 0.0, 0.0]
    rows = {"body_a": np.array([1]), "body_b": np.array([0]), "arm_a": np.array([[0.0, 0.0, -0.5]])}
    rows |= {"arm_b": np.array([[0.3, 0.0, 0.4]]), "frame": frames([UP]), "friction": np.array([0.2])}
    problem = Problem(bodies, rows)
    for method in ("auto", "interior_point"):
        solved = problem.solve(device, method=method)
        assert problem.residual(solved) <= 1e-7
        assert problem.unbalance(solved) <= 1e-12
        np.testing.assert_array_equal(solved.velocity[0, [0, 1, 2, 3, 5]], 0.0)
        assert solved.impulse[0, 0] > 0.0


def test_rows_between_a_body_and_itself_and_normals_nobody_can_follow_do_no_harm(device):
    bodies = boxes(1)
    bodies["inverse_mass"][:] = 0.0  # turns, but its centre stays: nothing gives way along a normal through it
    bodies["velocity"][0, 2] = -1.0
    rows = {"body_a": np.array([0, 0]), "body_b": np.array([-1, 0]), "arm_a": np.array([[0.0, 0.0, 0.5]] * 2)}
    problem = Problem(bodies, rows | {"frame": frames([UP, UP]), "friction": np.full(2, 0.5)})
    for method in ("auto", "gauss_seidel", "interior_point"):
        solved = problem.solve(device, method=method)
        assert np.isfinite(solved.velocity).all()
        assert solved.report.worst == pytest.approx(1.0)  # and it is told


def test_rooms_grow_and_keep_what_is_in_them(device):
    place = wp.get_device(device)
    rows = contact_rows(place, body_a=[0, 1], arm_a=np.ones((2, 3)), frame=frames([UP, UP]))
    assert reserve(rows, 5, place)
    assert not reserve(rows, 5, place)
    np.testing.assert_array_equal(rows.body_a.numpy()[:2], [0, 1])
    np.testing.assert_array_equal(rows.frame.numpy()[:2], frames([UP, UP]))
    assert len(rows.impulse) >= 5


def test_one_solver_solves_problems_of_any_size_in_turn(device):
    solver = Solver(device=device)
    for problem in (tower(2), heap(80), tower(30), heap(10), dimple(40), tower(2)):
        bodies, rows, _ = problem.on(device)
        solver.solve(bodies, rows)
        alone = problem.solve(device)
        np.testing.assert_array_equal(bodies.velocity.numpy(), alone.velocity)
        np.testing.assert_array_equal(rows.impulse.numpy(), alone.impulse)


def test_rows_beyond_the_count_are_not_read(device):
    problem = tower(2)
    bodies, rows, _ = problem.on(device)
    reserve(rows, 20, bodies.velocity.device)
    rows.body_a.fill_(99)
    rows.body_a.assign(np.concatenate([problem.rows["body_a"], np.full(len(rows.body_a) - 8, 99)]).astype(np.int32))
    Solver(device=device).solve(bodies, rows, 8)
    np.testing.assert_array_equal(bodies.velocity.numpy(), problem.solve(device).velocity)


@given(
    seed=st.integers(0, 2**31),
    bodies=st.integers(1, 6),
    contacts=st.integers(1, 25),
    masses=st.sampled_from([1.0, 1e3, 1e6]),
    friction=st.sampled_from([0.0, 0.3, 1.0, 1e3]),
    fixed=st.floats(0.0, 0.9),
    repeated=st.booleans(),
)
def test_whatever_is_asked_impulses_stay_in_their_cones_and_the_residual_told_is_true(
    seed, bodies, contacts, masses, friction, fixed, repeated
):
    rng = np.random.default_rng(seed)
    columns = boxes(bodies)
    scale = masses ** rng.uniform(-1.0, 1.0, bodies) * (rng.random(bodies) >= fixed)
    columns["inverse_mass"] *= scale
    columns["inverse_inertia"] *= scale[:, None, None]
    columns["velocity"] = rng.normal(size=(bodies, 6)) * rng.choice([0.0, 1.0], (bodies, 1))
    normals = rng.normal(size=(contacts, 3))
    rows = {
        "body_a": rng.integers(-1, bodies, contacts),
        "body_b": rng.integers(-1, bodies, contacts),
        "arm_a": rng.normal(size=(contacts, 3)) * rng.choice([0.0, 1.0], (contacts, 1)),
        "arm_b": rng.normal(size=(contacts, 3)),
        "frame": frames(normals / np.linalg.norm(normals, axis=1, keepdims=True)),
        "friction": np.full(contacts, friction),
        "bias": rng.uniform(-0.1, 0.5, (contacts, 3)) * [1.0, 0.0, 0.0],
    }
    if repeated:
        rows = {name: np.repeat(column, 3, axis=0) for name, column in rows.items()}
    problem = Problem(columns, rows)
    for solver in SOLVERS:
        solved = problem.solve_by(solver)
        assert np.isfinite(solved.velocity).all()
        impulse = solved.impulse
        assert (impulse[:, 0] >= 0.0).all()
        assert (np.linalg.norm(impulse[:, 1:], axis=1) <= friction * impulse[:, 0] * (1.0 + 1e-9)).all()
        size = 1.0 + np.abs(impulse).max() * scale.max()
        assert problem.unbalance(solved) <= 1e-9 * size
        moving = np.append(scale > 0.0, False)
        involved = moving[rows["body_a"]] | moving[rows["body_b"]]
        assert solved.report.worst == pytest.approx(problem.residual(solved, rows=involved), rel=1e-4, abs=1e-9 * size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "method must be one of"),
        ({"law": "none"}, "law must be one of"),
        ({"law": "convex", "method": "gauss_seidel"}, "interior point"),
        ({"sweeps": -1}, "sweeps"),
        ({"tolerance": np.nan}, "tolerance"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Solver(device="cpu", **options)


@pytest.mark.cuda
def test_cuda_and_cpu_agree():
    for problem in (tower(30), heap(80), wall(3, 3)):
        ours, theirs = problem.solve("cpu"), problem.solve("cuda:0")
        assert theirs.report.worst == pytest.approx(problem.residual(theirs), rel=1e-3, abs=1e-10)
        assert theirs.report.worst <= 10.0 * ours.report.worst + 1e-7
        np.testing.assert_allclose(theirs.velocity, ours.velocity, atol=50.0 * (ours.report.worst + 1e-6))
