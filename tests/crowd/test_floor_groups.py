"""Groups on floor plans stay together, go to one exit, and are as fast as the slowest of them."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.crowd import CollisionFreeSpeed, FloorPlan, Simulation
from tangere.runtime import InputError, using_threads

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug

HALL = FloorPlan(shapely.box(0, 0, 40, 10))
LEFT, RIGHT = shapely.box(0, 0, 1, 10), shapely.box(39, 0, 40, 10)


def spread(groups, seed: int) -> np.ndarray:
    """How far members are from the middle of their group, at the most of times, as a mean over groups of four."""
    simulation = Simulation(HALL, dt=0.05, device="cpu")
    simulation.add_people(40, shapely.box(1, 0, 12, 10), to=simulation.add_exit(RIGHT), groups=groups, seed=seed)
    done = simulation.run(14.0, record=1.0)
    _, place = done.rows_at(-1)
    assert len(place) == 40
    middle = place.reshape(10, 4, 2).mean(axis=1, keepdims=True)
    return np.linalg.norm(place.reshape(10, 4, 2) - middle, axis=2).max(axis=1)


def test_groups_stay_together():
    together, alone = spread(4, 1), spread(None, 1)
    assert np.median(together) < 2.0
    assert np.median(together) < 0.5 * np.median(alone)


def test_a_group_waits_for_who_is_held_up(device):
    """Two of a group begin 8 m behind: those ahead wait, and all leave within a few seconds."""
    simulation = Simulation(HALL, dt=0.05, device=device)
    places = np.array([[14.0, 5.0], [14.0, 5.8], [6.0, 5.0], [6.0, 5.8]])
    simulation.add_people(places, to=simulation.add_exit(RIGHT), groups=4, speed=1.3)
    done = simulation.run(80.0, until="empty")
    assert np.isfinite(done.left).all()
    assert np.ptp(done.left) < 4.0  # 8 m at 1.3 m/s are 6.2 s


def test_a_group_is_as_fast_as_its_slowest():
    simulation = Simulation(HALL, dt=0.05)
    numbers = simulation.add_people(
        6, to=simulation.add_exit(RIGHT), groups=[2, 1, 3], speed=[1.0, 1.4, 0.9, 1.2, 0.8, 1.5]
    )
    assert simulation.people.speed[numbers].tolist() == [1.0, 1.0, 0.9, 0.8, 0.8, 0.8]
    assert simulation.people.group.tolist() == [0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize("choice", [{}, {"choose": "shares", "shares": [1, 1]}, {"choose": "quickest"}])
def test_a_group_goes_to_one_exit(choice):
    simulation = Simulation(HALL, dt=0.05)
    outs = [simulation.add_exit(LEFT), simulation.add_exit(RIGHT)]
    simulation.add_people(60, shapely.box(14, 0, 26, 10), to=outs, groups=3, radius=0.15, seed=2, **choice)
    done = simulation.run(120.0, until="empty")
    exits = done.exits.reshape(20, 3)
    assert np.isfinite(done.left).all()
    assert (exits == exits[:, :1]).all()
    assert len(np.unique(exits)) == 2


def test_who_is_in_no_group_is_not_changed_by_groups():
    """Bit for bit, where no group is near."""
    ends = []
    for groups in (None, 2):
        simulation = Simulation(HALL, dt=0.05, device="cpu", behaviour=CollisionFreeSpeed())
        way_out = simulation.add_exit(RIGHT)
        simulation.add_people(np.array([[30.0, 5.0]]), to=way_out, speed=1.2)
        simulation.add_people(np.array([[3.0, 2.0], [5.0, 8.0]]), to=way_out, speed=1.2, groups=groups)
        simulation.run(3.0)
        ends.append(simulation.positions)
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    assert not np.array_equal(ends[0][1], ends[1][1])


def test_threads_do_not_change_a_bit():
    ends = []
    for threads in (1, 2):
        with using_threads(threads):
            simulation = Simulation(HALL, dt=0.05, device="cpu")
            simulation.add_people(100, to=simulation.add_exit(RIGHT), groups=5, seed=1)
            simulation.run(4.0)
            ends.append(simulation.positions)
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    ("groups", "told"), [(0, "groups must"), ([2, 2], "make 4, not 5"), ("two", "groups must"), (2.5, "groups must")]
)
def test_groups_that_cannot_be_are_told(groups, told):
    simulation = Simulation(HALL)
    with pytest.raises(InputError, match=told):
        simulation.add_people(5, to=simulation.add_exit(RIGHT), groups=groups)
    assert len(simulation.people) == 0
