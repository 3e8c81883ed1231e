"""Tests of the RiMEA guideline and of IMO MSC.1/Circ.1238 for people on floor plans.

None of the criteria was read at its source. Those of RiMEA are as the test scripts of JuPedSim's own repository
(Utest/rimea_tests, for versions 2.2.1 and 3.0 of the guideline) tell them, those of IMO as they are commonly quoted.
docs/systems/floor-plans.md has the table.
"""

from __future__ import annotations

import numpy as np
import pytest

from tangere.crowd import CollisionFreeSpeed, FloorPlan, Simulation, SocialForce

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug

MODELS = [CollisionFreeSpeed(), SocialForce()]
NAMES = ["collision-free speed", "social force"]


@pytest.mark.parametrize("angle", [0.0, 30.0])
@pytest.mark.parametrize("behaviour", MODELS, ids=NAMES)
def test_rimea_1_one_person_keeps_his_speed_in_a_corridor(behaviour, angle):
    """40 m of a corridor 2 m wide at 1.33 m/s take 26 to 34 s, however the corridor is turned."""
    from shapely import affinity

    def turned(shape):
        return affinity.rotate(shape, angle, origin=(0, 0))

    simulation = Simulation(FloorPlan(turned(shapely.box(0, 0, 42, 2))), behaviour=behaviour, dt=0.02, device="cpu")
    way_out = simulation.add_exit(turned(shapely.box(41, 0, 42, 2)))
    start = np.array(turned(shapely.Point(1.0, 1.0)).coords)
    simulation.add_people(start, to=way_out, speed=1.33)
    done = simulation.run(60.0, until="empty")
    assert 26.0 <= done.evacuation_time <= 34.0
    assert done.evacuation_time == pytest.approx(40.0 / 1.33, rel=0.03)


def test_rimea_5_everybody_starts_when_he_is_told():
    """Ten people react after 10, 20, … 100 s: nobody moves before, and everybody at that moment, to two frames."""
    simulation = Simulation(FloorPlan(shapely.box(0, 0, 8, 5)), dt=0.1)
    way_out = simulation.add_exit(shapely.box(7.5, 2, 8, 3))
    for k in range(10):
        simulation.add_people(np.array([[1.0 + 0.5 * (k % 5), 1.0 + 2.0 * (k // 5)]]), to=way_out, start=10.0 * (k + 1))
    done = simulation.run(130.0, until="empty", record=0.1)
    for number in range(10):
        way, times = done.position[done.number == number], done.times[done.frame[done.number == number]]
        moving = np.flatnonzero((np.diff(way, axis=0) != 0).any(axis=1))[0]
        assert abs(times[moving] - 10.0 * (number + 1)) <= 0.2 + 1e-9


@pytest.mark.parametrize("behaviour", MODELS, ids=NAMES)
def test_rimea_6_people_go_round_a_corner_and_through_no_wall(behaviour):
    plan = FloorPlan("POLYGON ((0 0, 12 0, 12 12, 10 12, 10 2, 0 2, 0 0))")
    simulation = Simulation(plan, behaviour=behaviour, dt=0.02)
    way_out = simulation.add_exit(shapely.box(10, 11, 12, 12))
    simulation.add_people(20, shapely.box(0, 0, 6, 2), to=way_out, seed=1)
    done = simulation.run(90.0, until="empty", record=0.02)
    assert np.isfinite(done.left).all()
    order = np.lexsort((done.frame, done.number))
    place, number = done.position[order], done.number[order]
    same = number[1:] == number[:-1]
    ways = shapely.linestrings(np.stack([place[:-1][same], place[1:][same]], axis=1))
    assert not shapely.intersects(shapely.boundary(plan.polygon), ways).any()


def test_rimea_7_walking_speeds_are_those_of_the_population():
    """Free speeds of four groups of people stay within the bounds of Weidmann's table, as walked and not as drawn."""
    groups = [((1.095, 0.17), (0.58, 1.61)), ((1.475, 0.02), (1.41, 1.54)), ((1.045, 0.12), (0.68, 1.41))]
    groups.append(((0.61, 0.05), (0.46, 0.76)))
    for speed, (least, most) in groups:
        simulation = Simulation(
            FloorPlan(shapely.box(0, 0, 30, 102)), dt=0.05, behaviour=CollisionFreeSpeed(cutoff=0.9)
        )
        way_out = simulation.add_exit(shapely.box(29, 0, 30, 102))
        starts = np.stack([np.full(50, 2.0), 2.0 + 2.0 * np.arange(50)], axis=1)
        line = [simulation.add_line((x, 0), (x, 102)) for x in (5, 10)]
        simulation.add_people(starts, to=way_out, speed=speed, seed=2)
        simulation.run(40.0, until="empty", record=None)
        walked = 5.0 / (np.abs(line[1].crossings) - np.abs(line[0].crossings))
        assert walked.min() > least * 0.97
        assert walked.max() < most
        assert abs(walked.mean() - speed[0]) < 0.05


def big_room(exits: int, *, device: str = "cpu"):
    """30 x 20 m with doors of 1 m in the long sides, and outside of them where people leave."""
    doors = [(7.0, -1.0), (22.0, -1.0), (7.0, 20.0), (22.0, 20.0)][:exits]
    parts = [shapely.box(0, 0, 30, 20)]
    parts += [shapely.box(x, y - 0.01 if y > 0 else y, x + 1, y + 1.0 if y > 0 else y + 1.01) for x, y in doors]
    behaviour = CollisionFreeSpeed(restlessness=2.0)
    simulation = Simulation(FloorPlan(shapely.union_all(parts)), behaviour=behaviour, dt=0.05, device=device)
    outs = [
        simulation.add_exit(shapely.box(x, y + 0.4 if y > 0 else y, x + 1, y + (1.0 if y > 0 else 0.6)))
        for x, y in doors
    ]
    return simulation, outs


@pytest.mark.slow
def test_rimea_9_half_of_the_exits_take_twice_the_time():
    """1,000 people, four exits of 1 m and then two of them."""
    times = []
    for exits in (4, 2):
        simulation, outs = big_room(exits)
        simulation.add_people(1000, shapely.box(0.5, 0.5, 29.5, 19.5), to=outs, seed=1)
        times.append(simulation.run(1500.0, until="empty", record=None).evacuation_time)
    assert 1.5 < times[1] / times[0] < 2.5


def test_rimea_10_people_leave_by_the_exit_they_are_assigned():
    """23 people in 12 cabins along a corridor; the first eight cabins are assigned the main exit."""
    cabins = [
        shapely.box(2.5 * (k % 6), 0 if k < 6 else 5.4, 2.5 * (k % 6) + 2.3, 2.0 if k < 6 else 7.4) for k in range(12)
    ]
    doors = [
        shapely.box(2.5 * (k % 6) + 0.7, 1.99 if k < 6 else 5.19, 2.5 * (k % 6) + 1.6, 2.21 if k < 6 else 5.41)
        for k in range(12)
    ]
    plan = shapely.union_all([shapely.box(-2, 2.2, 17, 5.2), *cabins, *doors])
    simulation = Simulation(FloorPlan(plan), dt=0.05)
    main, second = (
        simulation.add_exit(shapely.box(-2, 2.2, -1, 5.2)),
        simulation.add_exit(shapely.box(16, 2.2, 17, 5.2)),
    )
    assigned = []
    for k, cabin in enumerate(cabins):
        count, to = (2 if k else 1), (main if k % 6 < 4 else second)
        simulation.add_people(count, cabin, to=to, seed=k)
        assigned += [to.number] * count
    done = simulation.run(120.0, until="empty", record=1.0)
    assert len(assigned) == 23
    assert np.isfinite(done.left).all()
    assert done.exits.tolist() == assigned


@pytest.mark.slow
def test_rimea_11_some_take_the_farther_exit_when_the_nearer_is_jammed():
    """1,000 people who choose the quickest of two exits."""
    simulation, outs = big_room(2)
    numbers = simulation.add_people(
        1000, shapely.box(0.5, 0.5, 14, 19.5), to=outs, choose="quickest", radius=0.15, seed=1
    )
    done = simulation.run(1500.0, until="empty", record=None)
    second = (done.exits[numbers] == outs[1].number).sum()
    assert np.isfinite(done.left).all()
    assert 100 < second < 600


def test_rimea_12_there_is_a_jam_before_the_first_bottleneck_and_none_before_the_last():
    """150 people, two rooms, a corridor of 1 m between them and an exit of 1 m."""
    parts = [shapely.box(0, 0, 10, 10), shapely.box(9.9, 4.5, 15.1, 5.5), shapely.box(15, 0, 25, 10)]
    parts.append(shapely.box(24.9, 4.5, 27, 5.5))
    simulation = Simulation(FloorPlan(shapely.union_all(parts)), dt=0.05)
    way_out = simulation.add_exit(shapely.box(26, 4.5, 27, 5.5))
    first, last = simulation.add_line((12, 4), (12, 6)), simulation.add_line((25.5, 4), (25.5, 6))
    simulation.add_people(150, shapely.box(0, 0, 9, 10), to=way_out, seed=1)
    done = simulation.run(600.0, until="empty", record=1.0)
    assert np.isfinite(done.left).all()
    assert last.flow <= first.flow + 0.05
    dense = done.density(1.0, end=60.0)
    assert np.nanmax(dense[6:10, 3:7]) > 2.0 * np.nanmax(dense[21:25, 3:7])


def test_imo_4_the_flow_through_a_door_is_at_most_what_the_circular_allows():
    """100 people in 8 x 5 m and an exit of 1 m: at most 1.33 people per second over the whole period."""
    plan = shapely.union_all([shapely.box(0, 0, 8, 5), shapely.box(7.99, 2, 10, 3)])
    simulation = Simulation(FloorPlan(plan), dt=0.02)
    way_out = simulation.add_exit(shapely.box(9, 2, 10, 3))
    line = simulation.add_line((8.2, 1.9), (8.2, 3.1))
    simulation.add_people(100, shapely.box(0, 0, 8, 5), to=way_out, radius=0.2, seed=1)
    simulation.run(300.0, until="empty", record=None)
    assert len(line.times) == 100
    assert 0.8 < line.flow <= 1.33


def counterflow(people: int) -> float:
    """When the last of 100 people is out who go through a corridor of 10 x 2 m that so many others come through."""
    parts = [shapely.box(0, 0, 10, 10), shapely.box(9.99, 4, 20.01, 6), shapely.box(20, 0, 30, 10)]
    simulation = Simulation(FloorPlan(shapely.union_all(parts)), dt=0.05, behaviour=CollisionFreeSpeed(time_gap=0.6))
    right, left = simulation.add_exit(shapely.box(28, 0, 30, 10)), simulation.add_exit(shapely.box(0, 0, 2, 10))
    going = simulation.add_people(100, shapely.box(2.5, 0, 9, 10), to=right, radius=0.15, seed=1)
    if people:
        simulation.add_people(people, shapely.box(21, 0, 27.5, 10), to=left, radius=0.15, seed=2)
    return float(simulation.run(600.0, until="empty", record=None).left[going].max())


def test_imo_8_a_counterflow_takes_time():
    """The more come the other way, the longer it takes. With 100 the corridor jams for good: see the docs."""
    assert counterflow(0) < counterflow(10) < counterflow(50) < 600.0
