"""Obstacles of any polygon move over a floor: nobody gets into one, it waits for people, ways lead around it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from oracles.floor_plans import segments_meet
from tangere.crowd import CollisionFreeSpeed, FloorPlan, Orca, Simulation
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug

HALL = FloorPlan(shapely.box(0, 0, 20, 10))
STAR = shapely.Polygon(
    [(r * np.cos(a), r * np.sin(a)) for k in range(10) for a in [k * np.pi / 5] for r in [1.5 - k % 2]]
)


def star_at(x: float, y: float):
    return shapely.transform(STAR, lambda p: p + [x, y])


@pytest.mark.parametrize("behaviour", [CollisionFreeSpeed(restlessness=2.0), Orca()], ids=lambda b: type(b).__name__)
def test_nobody_gets_into_an_obstacle_that_moves_and_turns(behaviour, effort):
    """In the frame of the obstacle no way of anybody meets a side of it, in rational arithmetic."""
    simulation = Simulation(HALL, dt=0.05, device="cpu", behaviour=behaviour)
    ends = simulation.add_exit(shapely.box(19, 0, 20, 10)), simulation.add_exit(shapely.box(0, 0, 1, 10))
    path = [(0.0, 0.0, 0.0, 0.0), (6.0, 0.0, 7.0, 4.0), (12.0, 3.0, 0.0, 0.0), (18.0, -3.0, 5.0, -6.0)]
    obstacle = simulation.add_obstacle(star_at(10, 1.7), path=path)
    simulation.add_people(effort(40, least=10), shapely.box(1.5, 0, 7, 10), to=ends[0], seed=1, speed=1.5)
    simulation.add_people(effort(40, least=10), shapely.box(13, 0, 18.5, 10), to=ends[1], seed=2, speed=1.5)
    before = dict(zip(simulation.numbers.tolist(), simulation.positions, strict=True))
    met = 0
    for _ in range(effort(360, least=60)):
        area = obstacle.area_now
        simulation.step()
        now = dict(zip(simulation.numbers.tolist(), simulation.positions, strict=True))
        sides = np.array(area.exterior.coords)
        for number, place in now.items():
            way = shapely.LineString([before[number], place])
            if shapely.distance(way, area.exterior) < 1e-5:
                met += any(segments_meet(before[number], place, a, b) for a, b in pairwise(sides))
        assert not shapely.intersects(obstacle.area_now, shapely.points(list(now.values()))).any()
        before = now
    assert met == 0
    assert obstacle.clock + obstacle.waited == pytest.approx(simulation.time)


def test_an_obstacle_goes_its_way_where_nobody_is():
    simulation = Simulation(HALL, dt=0.1)
    obstacle = simulation.add_obstacle(shapely.box(2, 2, 3, 4), path=[(0, 0, 0, 0), (5, 10, 2, np.pi / 2)])
    simulation.add_people(np.array([[18.0, 9.0]]), to=simulation.add_exit(shapely.box(0, 9, 1, 10)), speed=0.01)
    simulation.run(2.5)
    np.testing.assert_allclose(obstacle.pose, (5, 1, np.pi / 4), atol=1e-9)
    simulation.run(10.0)
    np.testing.assert_allclose(obstacle.area_now.centroid.coords[0], (12.5, 5), atol=1e-9)
    np.testing.assert_allclose(obstacle.area_now.bounds, (11.5, 4.5, 13.5, 5.5), atol=1e-9)
    assert obstacle.waited == 0.0


def test_an_obstacle_waits_for_who_does_not_go_away(device):
    simulation = Simulation(HALL, dt=0.05, device=device)
    hold = simulation.add_waiting_place(
        shapely.box(9, 4, 11, 6), to=simulation.add_exit(shapely.box(19, 0, 20, 10)), until=8.0
    )
    simulation.add_people(np.array([[10.0, 5.0]]), to=hold, speed=1.0)
    obstacle = simulation.add_obstacle(shapely.box(2, 4, 4, 6), path=[(0, 0, 0), (4, 8, 0)])
    simulation.run(7.0)
    assert obstacle.waited > 3.0
    assert 5.7 < obstacle.area_now.bounds[2] <= 9.8 + 1e-6
    simulation.run(20.0)
    assert obstacle.area_now.bounds[2] == pytest.approx(12.0)


def test_people_see_an_obstacle_come_and_are_hidden_by_it():
    """Somebody behind an obstacle changes nothing, bit for bit."""
    ends = []
    for more in (False, True):
        simulation = Simulation(HALL, dt=0.05, device="cpu")
        way_out = simulation.add_exit(shapely.box(19, 0, 20, 10))
        simulation.add_obstacle(shapely.box(5, 5.0, 12, 5.05))
        simulation.add_people(np.array([[6.0, 4.7]]), to=way_out, speed=1.2)
        if more:
            hold = simulation.add_waiting_place(shapely.box(5, 5.1, 9, 8), to=way_out, until=1e6)
            simulation.add_people(np.array([[6.7, 5.3], [7.5, 5.35]]), to=hold, speed=1.0)
        done = simulation.run(2.0)
        ends.append(done.position[done.number == 0])
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("reroute", [0.0, 1.0])
def test_ways_are_found_anew_around_an_obstacle(reroute):
    """A wall of 8 m across the hall holds people who do not know it; those who look again go round."""
    simulation = Simulation(HALL, dt=0.05, reroute=reroute, behaviour=CollisionFreeSpeed())
    way_out = simulation.add_exit(shapely.box(19, 4, 20, 6))
    simulation.add_obstacle(shapely.box(10, 1, 10.2, 10))
    simulation.add_people(np.array([[5.0, 5.0], [5.0, 8.0]]), to=way_out, speed=1.3)
    done = simulation.run(40.0, until="empty")
    assert np.isfinite(done.left).tolist() == [reroute > 0] * 2


def test_an_exit_that_is_shut_is_left_for_another():
    simulation = Simulation(HALL, dt=0.05)
    near, far = simulation.add_exit(shapely.box(19, 4, 20, 6)), simulation.add_exit(shapely.box(0, 0, 1, 10))
    simulation.add_people(np.array([[15.0, 5.0]]), to=[near, far], speed=1.3)
    simulation.run(0.5)
    simulation.add_obstacle(shapely.box(18, 0, 18.2, 10))
    simulation.reroute()
    done = simulation.run(40.0, until="empty")
    assert done.exits.tolist() == [far.number]


@pytest.mark.parametrize(
    ("area", "path", "told"),
    [
        (shapely.box(4.9, 4.9, 5.1, 5.1), None, "obstacle 0 stands where person 0 is"),
        ("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))", None, "does not cross itself"),
        (shapely.box(8, 8, 9, 9), [(0, 0)], "path must be rows"),
        (shapely.box(8, 8, 9, 9), [(1, 0, 0), (1, 1, 0)], "times must rise"),
        (shapely.box(8, 8, 9, 9), "there", "path must be rows"),
    ],
)
def test_an_obstacle_that_cannot_be_is_told(area, path, told):
    simulation = Simulation(HALL)
    simulation.add_people(np.array([[5.0, 5.0]]), to=simulation.add_exit(shapely.box(19, 4, 20, 6)))
    with pytest.raises(InputError, match=told):
        simulation.add_obstacle(area, path=path)
    assert simulation.obstacles == []


def test_nobody_is_put_or_comes_into_an_obstacle():
    simulation = Simulation(HALL, dt=0.05)
    way_out = simulation.add_exit(shapely.box(19, 4, 20, 6))
    obstacle = simulation.add_obstacle(shapely.box(2, 2, 8, 8))
    with pytest.raises(InputError, match="place 0 is in obstacle 0"):
        simulation.add_people(np.array([[5.0, 5.0]]), to=way_out)
    with pytest.raises(InputError, match="no room"):
        simulation.add_people(3, shapely.box(3, 3, 7, 7), to=way_out)
    simulation.add_people(30, shapely.box(1, 1, 9, 9), to=way_out, seed=1)
    simulation.add_source(shapely.box(1, 1, 9, 9), rate=5.0, count=20, to=way_out, seed=2)
    done = simulation.run(6.0, record=0.05)
    assert len(np.unique(done.number)) == 50
    assert shapely.distance(obstacle.area_now, shapely.points(done.position)).min() > 0.0


def test_a_run_knows_where_obstacles_were(tmp_path):
    simulation = Simulation(HALL, dt=0.1)
    simulation.add_obstacle(shapely.box(2, 2, 3, 4), path=[(0, 0, 0), (5, 10, 0)])
    simulation.add_people(np.array([[18.0, 9.0]]), to=simulation.add_exit(shapely.box(0, 9, 1, 10)), speed=0.01)
    done = simulation.run(5.0, record=1.0)
    np.testing.assert_allclose(done.obstacle_poses[:, 0, 0], 2.0 * np.arange(6), atol=1e-9)
    done.save(tmp_path / "run.npz")
    again = type(done).load(tmp_path / "run.npz")
    np.testing.assert_allclose(again.obstacles_at(3)[0].bounds, (8.0, 2.0, 9.0, 4.0), atol=1e-9)
