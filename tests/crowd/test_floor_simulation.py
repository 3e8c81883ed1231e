"""People on floor plans come, choose, wait, queue and leave; nobody is lost, and what cannot be is told first."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tangere.crowd import CollisionFreeSpeed, FloorPlan, FloorSimulation, Orca, Simulation
from tangere.runtime import InputError, using_threads

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug

HALL = FloorPlan(shapely.box(0, 0, 12, 6))
LEFT, RIGHT = shapely.box(0, 0, 1, 6), shapely.box(11, 0, 12, 6)


def hall(**settings) -> FloorSimulation:
    return Simulation(HALL, **({"dt": 0.05} | settings))


def test_a_plan_makes_a_simulation_on_it():
    assert isinstance(hall(), FloorSimulation)
    with pytest.raises(TypeError, match="run returns"):
        copy.copy(hall())


def test_everybody_leaves_and_the_run_ends(device):
    simulation = hall(device=device)
    way_out = simulation.add_exit(RIGHT)
    numbers = simulation.add_people(40, shapely.box(0, 0, 6, 6), to=way_out, seed=3)
    done = simulation.run(60.0, until="empty", record=0.5)
    assert numbers.tolist() == list(range(40))
    assert simulation.count == 0
    assert simulation.is_empty
    assert done.evacuation_time == pytest.approx(done.left.max())
    assert done.times[-1] < 60.0
    assert (done.exits == way_out.number).all()
    # Nobody is faster than he wants, nor than the way is long.
    first = done.position[done.frame == 0]
    assert (done.travel_times + 0.1 >= (11.0 - first[:, 0]) / done.speeds).all()


@pytest.mark.parametrize("behaviour", [CollisionFreeSpeed(), Orca()], ids=["CollisionFreeSpeed", "Orca"])
def test_threads_do_not_change_a_bit(behaviour):
    ends = []
    for threads in (1, 2):
        with using_threads(threads):
            simulation = hall(behaviour=behaviour, device="cpu", dt=0.02)
            simulation.add_people(300, to=[simulation.add_exit(LEFT), simulation.add_exit(RIGHT)], radius=0.15, seed=1)
            simulation.add_source(shapely.box(4, 1, 8, 5), rate=5.0, count=20, to=simulation.stages[:2], seed=2)
            done = simulation.run(4.0)
            ends.append((done.number, done.position, done.left))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_seed_gives_the_same_people_and_another_gives_others():
    places = []
    for seed in (1, 1, 2):
        simulation = hall(seed=seed)
        simulation.add_people(20, to=simulation.add_exit(RIGHT), speed=(1.3, 0.2))
        places.append(np.column_stack([simulation.positions, simulation.people.speed]))
    np.testing.assert_array_equal(places[0], places[1])
    assert not np.array_equal(places[0], places[2])


def test_people_are_put_down_clear_of_each_other_and_of_walls():
    from scipy.spatial.distance import pdist

    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    for _ in range(2):
        simulation.add_people(80, shapely.box(0, 0, 8, 6), to=way_out, radius=0.2)
    assert pdist(simulation.positions).min() >= 0.4 - 1e-12
    assert HALL.distance_to_walls(simulation.positions).min() >= 0.2 - 1e-9


def test_entered_is_left_and_there_at_every_step():
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    numbers = simulation.add_source(LEFT, rate=4.0, until=6.0, to=way_out, speed=1.5)
    assert len(numbers) == 25  # at 0, 0.25, … 6 s
    for _ in range(400):
        simulation.step()
        entered, left = (np.isfinite(simulation.people.trait(name)) for name in ("entered", "left"))
        assert entered.sum() == left.sum() + simulation.count
        assert len(np.unique(simulation.numbers)) == simulation.count
    assert simulation.is_empty
    came = simulation.people.trait("entered")
    assert (came >= np.arange(25) / 4.0 - 1e-9).all()
    assert (came <= np.arange(25) / 4.0 + 1.0).all()


def test_nobody_enters_where_somebody_stands():
    """A source of one square metre fills up and waits: those who come do not overlap."""
    from scipy.spatial.distance import pdist

    simulation = hall(behaviour=CollisionFreeSpeed(time_gap=100.0))
    way_out = simulation.add_exit(RIGHT)
    simulation.add_source(shapely.box(0.2, 2, 1.2, 3), rate=50.0, count=60, to=way_out, speed=0.01)
    simulation.run(3.0)
    assert 3 <= simulation.count < 60
    assert pdist(simulation.positions).min() > 0.39


def test_random_arrivals_have_the_rate_and_random_gaps():
    simulation = hall()
    simulation.add_source(LEFT, rate=2.0, until=500.0, to=simulation.add_exit(RIGHT), regular=False, seed=5)
    gaps = np.diff(simulation._sources[0].due)
    assert abs(len(gaps) - 1000) < 130
    assert 0.8 < gaps.std() / gaps.mean() < 1.2


def test_the_nearest_exit_is_the_one_that_is_nearest_to_walk_to():
    """A wall makes the exit that is nearer by air the farther one."""
    wall = shapely.box(5.9, 0.8, 6.1, 6.1)
    plan = FloorPlan(shapely.box(0, 0, 12, 6).difference(wall))
    simulation = Simulation(plan, dt=0.05)
    left, right = simulation.add_exit(shapely.box(0, 5, 0.8, 6)), simulation.add_exit(shapely.box(7, 5, 8, 6))
    simulation.add_people(np.array([[5.0, 5.5], [7.0, 3.0]]), to=[left, right], speed=1.0)
    done = simulation.run(40.0, until="empty")
    assert done.exits.tolist() == [left.number, right.number]


def test_shares_are_those_asked_for():
    simulation = hall()
    left, right = simulation.add_exit(LEFT), simulation.add_exit(RIGHT)
    simulation.add_people(300, shapely.box(2, 0, 10, 6), to=[left, right], choose="shares", shares=[3, 1], radius=0.12)
    simulation.prepare()
    stage = simulation.people.trait("stage")
    assert 190 < (stage == left.number).sum() < 260
    assert ((stage == left.number) | (stage == right.number)).all()


def test_the_quickest_exit_is_another_when_the_nearest_is_crowded():
    plan = FloorPlan(
        shapely.union_all([shapely.box(0, 0, 20, 5), shapely.box(-2, 2.1, 0.1, 2.9), shapely.box(19.9, 1, 22, 4)])
    )
    chosen = {}
    for choose in ("nearest", "quickest"):
        simulation = Simulation(plan, dt=0.05)
        left, right = simulation.add_exit(shapely.box(-2, 2.1, -1, 2.9)), simulation.add_exit(shapely.box(21, 1, 22, 4))
        simulation.add_people(150, shapely.box(0, 0, 9, 5), to=[left, right], choose=choose, seed=1, speed=1.3)
        done = simulation.run(240.0, until="empty", record=1.0)
        chosen[choose] = (done.exits == right.number).sum(), done.evacuation_time
    assert chosen["nearest"][0] == 0
    assert chosen["quickest"][0] > 20
    assert chosen["quickest"][1] < 0.8 * chosen["nearest"][1]


def test_a_journey_goes_over_its_stages_and_waits_where_it_is_told():
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    wait = simulation.add_waiting_place(shapely.box(7, 4, 8, 5), to=way_out, wait=3.0)
    first = simulation.add_waypoint(shapely.box(2, 0.5, 3, 1.5), to=wait)
    simulation.add_people(np.array([[1.0, 5.0]]), to=first, speed=1.25, start=1.0)
    done = simulation.run(30.0, until="empty", record=0.05)
    way = done.position
    assert (shapely.contains_xy(first.area, *way.T)).any()
    inside = shapely.contains_xy(wait.area, *way.T)
    assert 3.0 <= inside.sum() * 0.05 < 4.5
    assert (way[: int(1.0 / 0.05)] == way[0]).all()  # nobody moves before he starts
    shortest = 5.0 / 1.25 * 0.75 + 1.0 + 3.0
    assert shortest < done.evacuation_time < 20.0


def test_a_waiting_place_holds_everybody_until_it_opens():
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    hold = simulation.add_waiting_place(shapely.box(5, 0, 8, 6), to=way_out, until=12.0)
    simulation.add_people(10, LEFT, to=hold, speed=1.3)
    done = simulation.run(60.0, until="empty")
    assert (done.left > 12.0).all()
    assert np.isfinite(done.left).all()


def test_a_queue_serves_one_after_the_other():
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    places = np.stack([8.0 - 0.5 * np.arange(8), np.full(8, 3.0)], axis=1)
    queue = simulation.add_queue(places, to=way_out, service=2.0)
    simulation.add_people(6, shapely.box(0, 1, 3, 5), to=queue, speed=1.3)
    done = simulation.run(90.0, until="empty")
    gaps = np.diff(np.sort(done.left))
    assert np.isfinite(done.left).all()
    assert (gaps > 1.4).all()  # 2 s of service each, less what the one behind may catch up on the way to the exit
    assert done.evacuation_time > 6 * 2.0


def test_a_queue_that_is_full_serves_everybody_in_the_end():
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    queue = simulation.add_queue([[8.0, 5.0], [7.5, 5.0], [7.0, 5.0]], to=way_out, service=1.0)
    simulation.add_people(20, shapely.box(0, 0, 5, 6), to=queue, speed=1.3, seed=1)
    done = simulation.run(240.0, until="empty")
    assert np.isfinite(done.left).all()
    assert done.evacuation_time > 20.0


def test_people_may_be_added_between_steps():
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    line = simulation.add_line((6, 0), (6, 6))
    simulation.add_people(10, LEFT, to=way_out, speed=1.3)
    simulation.run(5.0)
    crossed = len(line.times)
    other = simulation.add_exit(shapely.box(3, 0, 4, 1))
    simulation.add_people(10, shapely.box(4, 2, 5, 6), to=other, speed=1.3)
    done = simulation.run(60.0, until="empty")
    assert np.isfinite(done.left).all()
    assert len(line.times) >= crossed > 0
    assert (done.exits[10:] == other.number).all()


def test_people_do_not_see_each_other_through_a_thin_wall():
    """Somebody behind a centimetre of wall changes nothing, bit for bit."""
    wall = shapely.box(1, 2.995, 11, 3.005)
    plan = FloorPlan(shapely.box(0, 0, 12, 6).difference(wall))
    for behaviour in (CollisionFreeSpeed(), Orca()):
        ends = []
        for more in ([], [[4.2, 3.2], [4.6, 3.15], [5.5, 3.25]]):
            simulation = Simulation(plan, behaviour=behaviour, dt=0.05, device="cpu")
            way_out = simulation.add_exit(shapely.box(8, 0, 9, 2.9))
            stay = simulation.add_waiting_place(shapely.box(2, 3.1, 8, 6), to=way_out, until=1e9)
            simulation.add_people(np.array([[3.5, 2.7]]), to=way_out, speed=1.2)
            if more:
                simulation.add_people(np.array(more), to=stay, speed=1.0)
            done = simulation.run(2.0)
            ends.append(done.position[done.number == 0])
        np.testing.assert_array_equal(*ends)


def test_two_doors_and_narrow_ones_are_found_by_those_who_fit():
    """A door of 0.5 m is a way for a radius of 0.2 m and none for 0.3 m; those go round by the wide one."""
    wall = [shapely.box(5.9, -1, 6.1, 1.0), shapely.box(5.9, 1.5, 6.1, 5.0), shapely.box(5.9, 5.9, 6.1, 7)]
    plan = FloorPlan(shapely.box(0, 0, 12, 6).difference(shapely.union_all(wall)))
    crossed = {}
    for radius in (0.2, 0.3):
        simulation = Simulation(plan, dt=0.05)
        line = simulation.add_line((6, 1.0), (6, 1.5))
        way_out = simulation.add_exit(shapely.box(11, 0, 12, 2))
        simulation.add_people(np.array([[3.0, 1.2]]), to=way_out, radius=radius, speed=1.3)
        done = simulation.run(60.0, until="empty")
        assert np.isfinite(done.left).all()
        crossed[radius] = len(line.times)
    assert crossed == {0.2: 1, 0.3: 0}


def closed_room() -> FloorPlan:
    wall = shapely.union_all([shapely.box(5.9, -1, 6.1, 2.7), shapely.box(5.9, 3.1, 6.1, 7)])
    return FloorPlan(shapely.box(0, 0, 12, 6).difference(wall))


def test_who_has_no_way_is_told_before_the_run_with_the_door():
    simulation = Simulation(closed_room())
    simulation.add_people(5, shapely.box(0, 0, 5, 6), to=simulation.add_exit(RIGHT, name="the gate"), radius=0.25)
    with pytest.raises(InputError, match=r"no way for 5 of 5.*the gate; a door of 0\.400 m at \(5\.90, 2\.90\) is too"):
        simulation.run(1.0)
    assert simulation.steps == 0


def test_who_has_no_way_may_stay():
    simulation = Simulation(closed_room(), no_way="stay", dt=0.05)
    way_out = simulation.add_exit(RIGHT)
    simulation.add_people(5, shapely.box(0, 0, 5, 6), to=way_out, radius=0.25)
    simulation.add_people(5, shapely.box(7, 0, 10, 6), to=way_out, radius=0.25)
    done = simulation.run(30.0)
    assert done.no_way.tolist() == list(range(5))
    assert np.isfinite(done.left).tolist() == [False] * 5 + [True] * 5


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda s, out: s.add_people(np.array([[3.0, 0.0]]), to=out), "place 0 is on a wall or off the plan"),
        (lambda s, out: s.add_people(np.array([[3.0, 1e-7]]), to=out), "place 0 is on a wall"),
        (lambda s, out: s.add_people(np.array([[3.0, 3.0], [3.0, 3.0]]), to=out), "place 1 is taken already"),
        (lambda s, out: s.add_people(np.array([[3.0, np.nan]]), to=out), "place 0 is not finite"),
        (lambda s, out: s.add_people(5000, to=out), "only .* of 5000 people fit"),
        (lambda s, out: s.add_people(5, shapely.box(20, 0, 30, 1), to=out), "area lies off the plan"),
        (lambda s, out: s.add_people(5, shapely.box(0, 0, 0.1, 0.1), to=out), "nobody of radius 0.2 m has room"),
        (lambda s, out: s.add_people(0, to=out), "people"),
        (lambda s, out: s.add_people(5, to=None), "add_exit"),
        (lambda s, out: s.add_people(5, to=out, speed=-1.0), "speed"),
        (lambda s, out: s.add_people(5, to=out, radius=(0.0, 0.1)), "radius"),
        (lambda s, out: s.add_people(5, to=[out, out], choose="shares"), "shares"),
        (lambda s, out: s.add_people(5, to=[out, out], choose="shares", shares=[-1, 2]), "shares"),
        (lambda s, out: s.add_people(5, to=out, choose="best"), "'nearest', 'quickest' or 'shares'"),
        (lambda s, out: s.add_exit(shapely.box(20, 0, 30, 1)), "lies off the plan"),
        (lambda s, out: s.add_exit("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))"), "does not cross itself"),
        (lambda s, out: s.add_source(LEFT, rate=1.0, to=out), "until, count or both"),
        (lambda s, out: s.add_source(LEFT, rate=0.0, count=3, to=out), "rate"),
        (lambda s, out: s.add_line((0, 0), (0, 0)), "two different points"),
        (lambda s, out: s.add_queue([[30.0, 1.0]], to=out, service=1.0), "place 0 is off the plan"),
        (lambda s, out: s.run(1.0, until="done"), "until is 'empty'"),
        (lambda s, out: s.add_people("ten", to=out), "people must be numbers"),
        (lambda s, out: s.add_people(3, to=out, radius="big"), "radius must be numbers"),
        (lambda s, out: s.add_people(3, to=[out], choose="shares", shares=["a"]), "shares must be numbers"),
        (lambda s, out: s.add_line("a", "b"), "ends must be numbers"),
        (lambda s, out: s.add_queue("x", to=out, service=1.0), "places must be numbers"),
        (lambda s, out: s.add_people(3, to=hall().add_exit(RIGHT)), "exit 0 is of another simulation"),
        (lambda s, out: s.add_source(LEFT, rate=1e6, until=1e6, to=out), "too many"),
        (lambda s, out: s.run(), "either seconds or steps"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence_and_changes_nothing(call, told):
    simulation = hall()
    way_out = simulation.add_exit(RIGHT)
    with pytest.raises(InputError, match=told) as caught:
        call(simulation, way_out)
    assert "\n" not in str(caught.value)
    assert (len(simulation.people), len(simulation.stages), simulation.count, simulation.steps) == (0, 1, 0, 0)


def test_a_plan_in_millimetres_is_told_before_memory_is_full():
    simulation = Simulation(FloorPlan(shapely.box(0, 0, 20_000, 10_000)))
    simulation.add_people(np.array([[5.0, 5.0]]), to=simulation.add_exit(shapely.box(19_000, 0, 20_000, 10_000)))
    with pytest.raises(InputError, match=r"radius of 0\.2 m need .* are its lengths metres"):
        simulation.run(1.0)


def test_a_frame_that_is_not_there_is_told():
    simulation = hall()
    simulation.add_people(3, to=simulation.add_exit(RIGHT))
    done = simulation.run(1.0, record=0.5)
    assert len(done.rows_at(0)[0]) == 3
    with pytest.raises(InputError, match="there are 3 frames"):
        done.rows_at(3)
