"""What callers give: wrong numbers, shapes and files are named, and scenes too small for their agents are refused."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from tangere.cells import Density
from tangere.cells.generate import hex_grid, quad_grid
from tangere.crowd import (
    Body,
    Bubbles,
    Cage,
    Obstacle,
    Orca,
    Planner,
    Simulation,
    Trajectories,
    box,
    chain,
    deformable,
    scenarios,
)
from tangere.crowd.scenarios.plane import spread_points
from tangere.runtime import InputError
from tangere.view import top_view

TWO = [[4.0, 4.0], [8.0, 8.0]]
SQUARE = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]


def ground(**options):
    return Simulation(quad_grid(5, 5, size=3.0, device="cpu"), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"dt": np.inf},
        {"dt": 0.0},
        {"goal_radius": np.nan},
        {"anticipation": np.nan},
        {"anticipation": -1.0},
        {"reroute": np.nan},
        {"levels": -3},
        {"budget": -1},
        {"adapt_every": 0},
        {"adaptive": 3},
        {"adaptive": (8, 4)},
        {"seed": 1.5},
        {"seed": -1},
        {"seed": None},
        {"behaviour": 3},
        {"behaviour": Bubbles},
        {"behaviour": SimpleNamespace(range=np.nan, steer=None, parameters=None)},
    ],
)
def test_options_that_make_no_sense_are_named(options):
    with pytest.raises(InputError, match=next(iter(options))):
        ground(**options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"speed": [1.0, 2.0, 3.0]}, r"speed must be one number or 2 of them, not an array of shape \(3,\)"),
        ({"radius": [0.3, np.nan]}, "radius: that of agent 1 is nan"),
        ({"radius": [0.3, 5.0]}, "radius: that of agent 1 is more than half the range"),
        ({"groups": [0]}, "groups must be 2 whole numbers"),
        ({"groups": [0.5, 1.0]}, "groups must be 2 whole numbers"),
        ({"goals": [[1.0], [2.0]]}, "goals: those of agent 0"),
        ({"goals": 3}, "goals must be one for each agent, not 3"),
        ({"goals": ["a", "b"]}, "goals: that of agent 0 is not an array of numbers"),
        ({"goals": np.array([["a", "b"], ["c", "d"]])}, "goals is not an array of numbers"),
        ({"goals": [[[1.0, 2.0]], [[1.0, 2.0], [3.0]]]}, "goals: that of agent 1 is not an array of numbers"),
    ],
)
def test_what_is_wrong_with_points_is_named(options, reason):
    with pytest.raises(InputError, match=reason):
        ground().add_points(TWO, **options)


def test_what_is_wrong_with_bodies_numbers_and_times_is_named():
    simulation = ground()
    simulation.add_points(TWO)
    for wrong in ([1, 0], [[1, 0], [0, 1]], [[np.nan, 0]]):
        with pytest.raises(InputError, match="headings"):
            simulation.add_bodies(box(2.0, 1.0), [[7.0, 7.0]], headings=wrong)
    for wrong in ([-1], [99], [0.5]):
        with pytest.raises(InputError, match="numbers"):
            simulation.retarget(wrong, [[1.0, 1.0]])
    for wrong in (np.nan, -1.0, 0.0):
        with pytest.raises(InputError, match="seconds"):
            simulation.run(wrong)
    for wrong in ({"stiffness": -1.0}, {"noise": np.nan}, {"panic_factor": 0.0}, {"range": 0.5, "wall_range": 0.6}):
        with pytest.raises(InputError, match=list(wrong)[-1]):
            Bubbles(**wrong)
    with pytest.raises(InputError, match="horizon"):
        Orca(horizon=np.inf)
    assert Bubbles(range=0.7).parameters()[-1] == 0.7  # walls no farther than anybody


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Simulation(None), "map must be a CellMap, not NoneType"),
        (lambda: Planner(None), "map must be a CellMap, not NoneType"),
        (lambda: top_view(None), "simulation must be a Simulation, not NoneType"),
        (lambda: ground().add_bodies(None, [[7.0, 7.0]], headings=[[1, 0]]), "body must be a Body, not NoneType"),
    ],
)
def test_what_is_of_another_kind_is_named(make, reason):
    with pytest.raises(InputError, match=f"^{reason}$"):
        make()


NO_NUMBERS = "a", "1.5", None, True, 2j, [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("length", lambda wrong: box(wrong, 1.0)),
        ("width", lambda wrong: box(2.0, wrong)),
        ("length", lambda wrong: chain(2, wrong, 1.0)),
        ("width", lambda wrong: chain(2, 2.0, wrong)),
        ("Bubbles: range", lambda wrong: Bubbles(range=wrong)),
        ("Bubbles: relaxation", lambda wrong: Bubbles(relaxation=wrong)),
        ("Bubbles: view", lambda wrong: Bubbles(view=wrong)),
        ("alpha", lambda wrong: deformable(SQUARE, alpha=wrong)),
        ("dt", lambda wrong: ground(dt=wrong)),
    ],
)
def test_what_is_no_positive_number_is_refused_by_name(name, make):
    for wrong in (*NO_NUMBERS, np.nan, np.inf, 0.0, -1.0):
        with pytest.raises(InputError, match=f"^{name} must "):
            make(wrong)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("Bubbles: noise", lambda wrong: Bubbles(noise=wrong)),
        ("beta_linear", lambda wrong: deformable(SQUARE, beta_linear=wrong)),
        ("plastic_yield", lambda wrong: deformable(SQUARE, plastic_yield=wrong)),
        ("plastic_max", lambda wrong: deformable(SQUARE, plastic_max=wrong)),
        ("anticipation", lambda wrong: ground(anticipation=wrong)),
    ],
)
def test_what_is_no_number_from_0_on_is_refused_by_name(name, make):
    for wrong in (*NO_NUMBERS, np.nan, -1.0):
        with pytest.raises(InputError, match=f"^{name} must "):
            make(wrong)


@pytest.mark.parametrize("wrong", ["a", "2", None, True, 2j, [2], 2.5, np.nan, 0, -3])
def test_a_chain_has_a_whole_number_of_sections(wrong):
    with pytest.raises(InputError, match=r"^count must "):
        chain(wrong, 2.0, 1.0)


def test_numbers_of_any_library_are_numbers():
    for two in (2, 2.0, np.float32(2.0), np.int64(2), np.array(2.0)):
        assert box(two, two).width == 2.0
        assert Bubbles(range=two).parameters()[2] == 2.0
    for two in (2, np.int64(2), np.uint8(2), np.array(2)):
        assert len(chain(two, 2.0, 1.0).sections) == 2
    assert Bubbles(wall_range=None).wall_range is None


@pytest.mark.parametrize("wrong", ["yes", None, 2, np.nan])
def test_bubbles_are_careful_or_not(wrong):
    with pytest.raises(InputError, match="Bubbles: careful must be True or False"):
        Bubbles(careful=wrong)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Body(SQUARE, None), "sections: a body has at least one"),
        (lambda: Body(SQUARE, 4), "sections: a body has at least one"),
        (lambda: Body(SQUARE, ("abcd",)), "sections: section 0"),
        (lambda: Cage(SQUARE, [1.0, 2.0, 3.0]), r"vertices must be finite with shape \(n, 3\), not \(3,\)"),
        (lambda: Cage(SQUARE, [[1.0, np.nan, 3.0]]), r"vertices must be finite"),
        (
            lambda: Cage([[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0, 0.0]]),
            r"outline must be finite with shape \(k, 2\), k >= 3",
        ),
        (lambda: Cage("abc", [[0.0, 0.0, 0.0]]), "outline is not an array of numbers"),
        (
            lambda: Cage(SQUARE, [[0.0, 0.0, 0.0]]).follow(SQUARE[:3]),
            r"outline must have shape \(4, 2\) or \(4, 3\), not \(3, 2\)",
        ),
    ],
)
def test_what_is_wrong_with_bodies_and_cages_is_named(make, reason):
    with pytest.raises(InputError, match=reason):
        make()


def test_goals_in_space_have_three_numbers(rng):
    simulation = Simulation(hex_grid(3, 3, 3, size=4.0, device="cpu"))
    for goals in (np.array([[1.0, 2.0]]), [[1.0, 2.0]]):
        with pytest.raises(InputError, match=r"goals.*\(., 3\)"):
            simulation.add_points([[6.0, 6.0, 6.0]], goals=goals)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("positions", np.zeros(3)),
        ("velocities", np.zeros((2, 4, 3))),
        ("particles", np.zeros((2, 9, 3))),
        ("bodies", np.array([0, 5, 4])),
        ("bodies", np.empty(0, np.int64)),
        ("times", np.zeros((1, 2))),
        ("arrived", np.array(["a", "b", "c"])),
        ("measure_speed", np.zeros(5)),
    ],
)
def test_arrays_of_other_shapes_are_no_trajectories(name, wrong, tmp_path):
    arrays = {"times": np.zeros(2), "positions": np.zeros((2, 3, 3)), "velocities": np.zeros((2, 3, 3))}
    arrays |= {"particles": np.zeros((2, 4, 3)), "bodies": np.array([0, 4]), "arrived": np.ones(3)}
    arrays |= {"measure_speed": np.zeros(2), "measure_arrived": np.zeros(2)}
    np.savez(tmp_path / "old.npz", **arrays)
    assert Trajectories.load(tmp_path / "old.npz").travel_time == 1.0  # of files that do not say when points set off
    np.savez(tmp_path / "wrong.npz", **(arrays | {name: wrong}))
    with pytest.raises(InputError, match=rf"wrong\.npz: .*{name if name != 'times' else 'numbers of shape'}"):
        Trajectories.load(tmp_path / "wrong.npz")


def test_other_files_are_no_trajectories(tmp_path):
    np.savez(tmp_path / "other.npz", times=np.zeros(3), pressure=np.zeros(3))
    with pytest.raises(InputError, match=r"other\.npz.*pressure"):
        Trajectories.load(tmp_path / "other.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("no zip")
    for name in ("array.npy", "text.npz", "none.npz"):
        with pytest.raises(InputError, match=name):
            Trajectories.load(tmp_path / name)


def test_a_scene_without_points_runs_and_is_noted():
    simulation = ground()
    assert simulation.run(0.2).positions.shape == (2, 0, 3)
    simulation.add_bodies(box(2.0, 1.0), [[4.0, 7.0]], headings=[[1, 0]], goals=[[10.0, 7.0]])
    found = simulation.run(1.0)
    assert found.particles[-1, :, 0].mean() > found.particles[0, :, 0].mean() + 0.5
    assert found.measures["stalling"].tolist() == [0.0] * 3


def test_sizes_of_scenarios_are_those_of_whole_cells():
    simulation = scenarios.corridor(50, 2, length=100.0, device="cpu")
    assert np.ptp(simulation.map.positions, axis=0).tolist() == [96.0, 40.0, 0.0]
    assert simulation.positions[:, 0].max() < 96.0
    assert len(scenarios.corridor(1, 0, device="cpu").points) == 1
    assert spread_points(0, (0, 0), (1, 1), 0.5, np.random.default_rng(0)).shape == (0, 2)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: scenarios.snake(10, 30, device="cpu"), "30 snakes do not fit"),
        (lambda: scenarios.circle(10, 400, device="cpu"), "400 boxes do not fit"),
        (lambda: scenarios.circle(10, 100, shape=(9.0, 2.0), device="cpu"), "100 boxes do not fit"),
        (lambda: scenarios.circle(10, 10, shape=(-0.1, 2.0), device="cpu"), "length must be positive"),
        (lambda: scenarios.circle(10, 10, speed=-1.0, device="cpu"), "speed"),
        (lambda: scenarios.corridor(10, 10, shape=(4.0, 0.0), device="cpu"), "width must be positive"),
        (lambda: scenarios.city(10, 20, blocks=2, device="cpu"), "20 cars do not fit on 9"),
        (lambda: scenarios.city(10, blocks=0, device="cpu"), "blocks"),
        (lambda: scenarios.field(10, per_area=0.0, device="cpu"), "per_area"),
        (lambda: scenarios.planet(10, 0, buildings=1000, device="cpu"), "buildings"),
        (lambda: scenarios.planet(10, 5000, device="cpu"), "slugs do not fit"),
    ],
)
def test_scenes_too_small_for_their_agents_are_refused(make, reason):
    with pytest.raises(InputError, match=reason):
        make()


@pytest.mark.parametrize("size", [200.0, 400.0])
def test_boxes_on_a_circle_start_apart(size):
    simulation = scenarios.circle(10, 300 if size == 400.0 else 100, size=size, device="cpu")
    middles = np.array([simulation.bodies.outline(k).mean(axis=0) for k in range(len(simulation.bodies))])
    away = np.linalg.norm(middles[:, None] - middles[None], axis=2) + 99 * np.eye(len(middles))
    assert away.min() > 4.0  # as long as they are
    small = scenarios.circle(10, 400, size=size, shape=(1.0, 0.5), device="cpu")
    np.testing.assert_allclose(np.ptp(small.bodies.outline(0), axis=0)[:2], [0.5, 1.0])  # ahead is along y there


@pytest.mark.parametrize("speed", [1.0, 6.0])
def test_boxes_on_a_circle_are_as_fast_as_told(speed):
    simulation = scenarios.circle(10, 8, speed=speed, device="cpu")
    simulation.run(steps=90)
    np.testing.assert_allclose(np.linalg.norm(simulation.bodies.velocities, axis=1), speed, rtol=0.1)


def test_numbers_of_any_kind_are_taken():
    many = scenarios.corridor(np.uint64(200), 4, device="cpu")
    assert len(many.points) == len(scenarios.field(200.0, device="cpu").points) == 200
    assert Simulation(quad_grid(4, 4, size=3.0, device="cpu"), dt=Fraction(1, 32), budget=1e6).dt == 1 / 32
    assert len(chain(6, np.uint8(40), np.int8(20)).sections) == 6
    simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"), adapt_every=np.uint8(5))
    simulation.add_points([[1.0, 1.0]])
    simulation.run(steps=300.0)
    assert simulation.steps == 300


@pytest.mark.parametrize("count", [2.5, "a", None, -1, True, np.nan, np.inf])
def test_numbers_of_steps_and_agents_are_whole(count):
    simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"))
    with pytest.raises(InputError, match="run takes either" if count is None else "steps must be a whole number"):
        simulation.run(steps=count)
    for make in (
        scenarios.circle,
        scenarios.corridor,
        scenarios.city,
        scenarios.swarm,
        scenarios.field,
        scenarios.planet,
    ):
        with pytest.raises(InputError, match="points must be a whole number"):
            make(count, device="cpu")
    with pytest.raises(InputError, match="neighbours must be a whole number"):
        Orca(neighbours=count)
    with pytest.raises(InputError, match="Density"):
        Density(count, count)
    with pytest.raises(InputError, match="adapt_every must be a whole number"):
        Simulation(quad_grid(4, 4, size=3.0, device="cpu"), adapt_every=count)


@pytest.mark.parametrize("wrong", ["a", None, -1.0, 0.0, np.nan])
def test_radii_and_horizons_are_positive_numbers(wrong):
    simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"))
    with pytest.raises(InputError, match="radius"):
        Obstacle(simulation, (5.0, 5.0), wrong)
    with pytest.raises(InputError, match="Orca: horizon"):
        Orca(horizon=wrong)
