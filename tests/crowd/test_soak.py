"""Crowds on random plans with narrow doors, slivers and spikes, millions of steps: nobody through a wall or lost."""

from __future__ import annotations

import numpy as np
import pytest

from bench.crowd_soak import WayCheck, soak
from tangere.crowd import CollisionFreeSpeed, FloorPlan, Simulation

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.release


def test_the_check_sees_a_way_through_a_wall():
    """People who are put beyond a wall between two looks."""
    plan = FloorPlan(shapely.box(0, 0, 10, 4).difference(shapely.box(5, 0, 5.01, 3)))
    simulation = Simulation(plan, dt=0.05, device="cpu", behaviour=CollisionFreeSpeed())
    simulation.add_people(np.array([[4.9, 1.0], [2.0, 2.0]]), to=simulation.add_exit(shapely.box(9, 0, 10, 4)))
    check = WayCheck(simulation)
    check.step()
    check.look()
    assert check.crossings == 0
    place = simulation.people.arrays.position.numpy()
    place[place[:, 0] > 4.0, 0] = 5.2  # a view of the state: the next step begins beyond the wall
    check.step()
    check.look()
    assert (check.crossings, check.exact) == (2, 2)  # both sides of the wall


@pytest.mark.parametrize(
    ("plans", "steps"),
    [(10, 100_000), pytest.param(40, 250_000, marks=pytest.mark.slow)],
    ids=["million", "ten million"],
)
def test_nobody_passes_a_wall_is_lost_or_stuck(plans, steps, effort):
    done = [soak(1000 + number, effort(steps, least=50_000)) for number in range(effort(plans, least=4))]
    assert sum(plan.agent_steps for plan in done) >= effort(plans * steps, least=200_000)
    assert [plan for plan in done if plan.crossings or plan.lost or plan.stuck or plan.mistold] == []
    assert sum(plan.told for plan in done) > 0  # some have no way, and are told
    assert sum(plan.left for plan in done) > 0
