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


def test_groups_from_a_source_come_together_and_stay_together(device):
    """Four every 4 s: they enter in one step within two metres, as fast as the slowest, and leave by one exit."""
    simulation = Simulation(FloorPlan(shapely.box(0, 0, 40, 12)), dt=0.05, device=device, seed=3)
    ends = [simulation.add_exit(shapely.box(39, y, 40, y + 4)) for y in (0, 8)]
    numbers = simulation.add_source(
        shapely.box(0.5, 0.5, 10, 11.5),
        rate=1.0,
        count=22,
        to=ends,
        choose="shares",
        shares=(0.5, 0.5),
        groups=4,
        seed=2,
    )
    done = simulation.run(120.0, until="empty", record=0.05)
    group = simulation.people.group[numbers]
    assert np.bincount(group).tolist() == [4, 4, 4, 4, 4, 2]
    assert np.isfinite(done.left).all()
    for k in range(6):
        mine = np.flatnonzero(group == k)
        assert np.ptp(done.entered[mine]) <= 1.0  # where there is no room at once they wait a little
        assert done.entered[mine].min() == pytest.approx(4.0 * k, abs=0.051)
        assert len(set(done.exits[mine].tolist())) == 1
        assert len(set(simulation.people.speed[mine].tolist())) == 1
        first = [done.position[np.flatnonzero(done.number == number)[0]] for number in mine]
        assert np.linalg.norm(np.array(first) - first[0], axis=1).max() < 3.0
        assert np.ptp(done.left[mine]) < 6.0
    assert len(set(done.exits.tolist())) == 2


def test_groups_of_a_source_are_checked_and_do_not_wait_for_ever():
    simulation = Simulation(FloorPlan(shapely.box(0, 0, 10, 4)), dt=0.05, device="cpu")
    way_out = simulation.add_exit(shapely.box(9, 0, 10, 4))
    with pytest.raises(InputError, match="their sizes make 5, not 6 people"):
        simulation.add_source(shapely.box(0, 0, 4, 4), rate=1.0, count=6, to=way_out, groups=[2, 3])
    # A place for one at a time: the others come when he has gone.
    simulation.add_source(shapely.box(0, 0, 0.5, 0.5), rate=1.0, count=6, to=way_out, groups=[2, 4])
    assert np.isfinite(simulation.run(120.0, until="empty", record=None).left).all()
    # Groups beside people who stand where their places are.
    crowded = Simulation(FloorPlan(shapely.box(0, 0, 20, 4)), dt=0.05, device="cpu")
    way_out = crowded.add_exit(shapely.box(19, 0, 20, 4))
    crowded.add_people(30, shapely.box(0, 0, 6, 4), to=way_out, start=40.0, seed=1)
    crowded.add_source(shapely.box(0, 0, 8, 4), rate=2.0, count=12, to=way_out, groups=4, seed=1)
    done = crowded.run(200.0, until="empty", record=None)
    assert np.isfinite(done.left).all()
    assert done.entered[30:].max() < 40.0
