"""Nobody ever passes a wall, whatever the plan, the behaviour and the speed: every way is checked exactly."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.floor_plans import crossings, random_plan, segments_meet
from tangere.crowd import Bubbles, CollisionFreeSpeed, FloorPlan, FloorSimulation, Orca, Simulation, SocialForce

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug


def crowd_in(plan, random, people, *, speed=1.3, radius=0.15, **settings) -> FloorSimulation | None:
    """People anywhere on a random plan, with an exit somewhere."""
    simulation = Simulation(FloorPlan(plan), no_way="stay", device="cpu", **settings)
    room = plan.buffer(-2 * radius)
    if room.is_empty:
        return None
    x, y = room.representative_point().coords[0]
    way_out = simulation.add_exit(shapely.box(x - 0.5, y - 0.5, x + 0.5, y + 0.5))
    simulation.add_people(people, to=way_out, radius=radius, speed=speed, seed=int(random.integers(1000)))
    return simulation


def run_and_check(simulation: FloorSimulation, steps: int) -> int:
    """Agent-steps done; every one of them met no wall, and nobody was lost or came twice."""
    walls, polygon = simulation.plan.walls, simulation.plan.polygon
    before = np.full((len(simulation.people), 2), np.nan)
    before[simulation.numbers] = simulation.positions
    starts, ends, done = [], [], 0
    for _ in range(steps):
        simulation.step()
        numbers, now = simulation.numbers, simulation.positions
        assert np.isfinite(now).all()
        assert len(np.unique(numbers)) == len(numbers)
        assert len(numbers) + np.isfinite(simulation.people.trait("left")).sum() == len(simulation.people)
        moved = (before[numbers] != now).any(axis=1)
        starts.append(before[numbers][moved])
        ends.append(now[moved])
        before[numbers] = now
        done += len(numbers)
    assert crossings(walls, np.concatenate(starts), np.concatenate(ends)) == 0
    if simulation.count:
        assert shapely.contains_xy(polygon, *simulation.positions.T).all()
    return done


def test_the_oracle_knows_what_meets():
    assert segments_meet((0, 0), (1, 1), (0, 1), (1, 0))
    assert segments_meet((0, 0), (1, 0), (1, 0), (2, 5))
    assert not segments_meet((0, 0), (1, 0), (1.0000000000000002, 0), (2, 0))
    assert crossings(np.array([[[1.0, -1.0], [1.0, 1.0]]]), np.array([[0.0, 0.0]]), np.array([[2.0, 0.0]])) == 1


@pytest.mark.parametrize("dt", [0.01, 0.1])
def test_nobody_passes_a_wall_of_random_plans(rng, effort, dt):
    done = 0
    for _ in range(effort(8, least=2)):
        simulation = crowd_in(random_plan(rng), rng, 40, dt=dt)
        if simulation is not None:
            done += run_and_check(simulation, effort(120, least=20))
    assert done > 500


@pytest.mark.parametrize("behaviour", [SocialForce(), Orca(), Bubbles()], ids=lambda b: type(b).__name__)
def test_nobody_passes_a_wall_by_any_behaviour(rng, effort, behaviour):
    for _ in range(effort(3, least=1)):
        simulation = crowd_in(random_plan(rng), rng, 30, dt=0.05, behaviour=behaviour)
        if simulation is not None:
            run_and_check(simulation, effort(80, least=20))


def test_nobody_passes_a_wall_at_a_hundred_metres_per_second(rng, effort):
    simulation = crowd_in(random_plan(rng), rng, 20, dt=0.1, speed=100.0, behaviour=CollisionFreeSpeed(cutoff=2.0))
    assert simulation is not None
    run_and_check(simulation, effort(60, least=20))


def test_nobody_passes_many_walls_in_one_cell(rng, effort):
    """More than 63 walls within the range: the comb's teeth are 3 cm apart."""
    teeth = [shapely.box(1 + 0.03 * k, 2.0, 1.01 + 0.03 * k, 2.6 + 0.2 * (k % 2)) for k in range(100)]
    plan = shapely.box(0, 0, 5, 5).difference(shapely.union_all(teeth))
    simulation = crowd_in(plan, rng, 40, dt=0.05)
    assert simulation is not None
    run_and_check(simulation, effort(100, least=20))


def test_who_slides_along_a_wall_gets_on():
    """Straight at a wall at an angle: nobody sticks to it."""
    plan = FloorPlan("POLYGON ((0 0, 10 0, 10 1, 0 1, 0 0))")
    simulation = Simulation(plan, dt=0.05, behaviour=Orca(range=1.0, wall_horizon=1e-6), device="cpu")
    way_out = simulation.add_exit(shapely.box(9, 0, 10, 1))
    point = simulation.add_waypoint(shapely.Point(9.5, 0.001).buffer(0.0009), to=way_out, straight=True)
    simulation.add_people(np.array([[0.5, 0.9], [0.5, 0.1]]), to=point, radius=0.05, speed=1.0)
    simulation.run(10.0, record=None)
    assert (simulation.positions[:, 0] > 8.0).all()


@pytest.mark.slow
def test_nobody_passes_a_wall_in_ten_million_steps(rng, effort):
    done, wanted = 0, effort(10_000_000, least=100_000)
    while done < wanted:
        dt = float(rng.choice([0.01, 0.05, 0.2]))
        simulation = crowd_in(random_plan(rng, 20.0), rng, 100, dt=dt)
        if simulation is not None:
            done += run_and_check(simulation, 500)
