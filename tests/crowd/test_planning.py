"""Ways around obstacles: as short as can be, clear of walls, and everybody in the city arrives."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest

from tangere.cells.maps import quad_grid, split
from tangere.crowd import Planner, Simulation
from tangere.crowd.planning import pulled_tight
from tangere.crowd.scenarios import city
from tangere.crowd.scenarios.city import city_map
from tangere.runtime import InputError


def crosses_obstacle(map, a, b, shrink=1e-6):
    """Whether a straight way comes into an obstacle cell (squares), by clipping it against each."""
    leaves = map.leaves[map.arrays.obstacle.numpy()[map.leaves] != 0]
    for cell in leaves:
        corners = map.positions[map.numpy("origin")[map.darts[map.numpy("cell")[map.darts] == cell]]][:, :2]
        low, high = corners.min(axis=0) + shrink, corners.max(axis=0) - shrink
        t0, t1 = 0.0, 1.0
        for k in range(2):
            d = b[k] - a[k]
            if abs(d) < 1e-15:
                if not low[k] < a[k] < high[k]:
                    t1 = -1.0
            else:
                x, y = sorted(((low[k] - a[k]) / d, (high[k] - a[k]) / d))
                t0, t1 = max(t0, x), min(t1, y)
        if t0 < t1:
            return True
    return False


def length(points):
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def test_the_chain_of_cells_is_the_cheapest(rng):
    map = quad_grid(7, 6, size=2.0, device="cpu")
    split(map, [8, 9, 20])
    map.block("cell", [16, 17, 23])
    counts = rng.integers(0, 9, map.cell_capacity)
    planner = Planner(map, counts=counts, penalty=0.3)
    darts, cell, phi2 = map.darts, map.numpy("cell"), map.numpy("phi2")
    centre, origin, phi1 = map.numpy("centre"), map.numpy("origin"), map.numpy("phi1")
    obstacle = map.numpy("obstacle")
    corners = {c: map.positions[origin[darts[cell[darts] == c]]][:, :2] for c in map.leaves}
    area = {c: np.prod(np.ptp(x, axis=0)) for c, x in corners.items()}
    ways = {int(c): [] for c in map.leaves}
    for d in darts:
        if phi2[d] >= 0 and not obstacle[cell[d]] and not obstacle[cell[phi2[d]]]:
            middle = (map.positions[origin[d]] + map.positions[origin[phi1[d]]]) / 2
            cost = sum(
                np.linalg.norm(middle - centre[c]) * (1 + 0.3 * counts[c] / area[c]) for c in (cell[d], cell[phi2[d]])
            )
            ways[int(cell[d])].append((int(cell[phi2[d]]), cost))
    free = [int(c) for c in map.leaves if not obstacle[c]]
    for start, goal in rng.choice(free, (20, 2)):
        best, queue = {int(start): 0.0}, [(0.0, int(start))]
        while queue:
            here, c = heapq.heappop(queue)
            for b, cost in ways[c]:
                if here + cost < best.get(b, np.inf):
                    best[b] = here + cost
                    heapq.heappush(queue, (here + cost, b))
        chain = planner.cells(int(start), int(goal))
        found = sum(min(cost for b, cost in ways[int(x)] if b == y) for x, y in itertools.pairwise(chain))
        assert found == pytest.approx(best[int(goal)], rel=1e-12)


def test_a_way_pulled_tight_is_the_shortest_through_its_gates(rng):
    for _ in range(60):
        count = int(rng.integers(1, 7))
        x = np.arange(1, count + 1, dtype=float)
        low = rng.uniform(-2, 1.5, count)
        high = low + rng.uniform(0.3, 2.0, count)
        start, goal = np.array([0.0, 0.0, 0.0]), np.array([count + 1.0, rng.uniform(-1, 1), 0.0])
        gates = [np.stack([x, y, np.zeros(count)], axis=1) for y in (high, low)]
        way = np.concatenate([start[None], pulled_tight(start, goal, *gates)])
        at = np.interp(x, way[:, 0], way[:, 1])
        assert (at >= low - 1e-9).all()
        assert (at <= high + 1e-9).all()
        # Brute force: the shortest over all choices of gate ends to turn at.
        best = np.inf
        for turns in itertools.product((None, 0, 1), repeat=count):
            points = [start] + [gates[side][k] for k, side in enumerate(turns) if side is not None] + [goal]
            y = np.interp(x, [p[0] for p in points], [p[1] for p in points])
            if (y >= low - 1e-9).all() and (y <= high + 1e-9).all():
                best = min(best, length(np.array(points)))
        assert length(way) == pytest.approx(best, rel=1e-9)


def test_routes_keep_clear_of_buildings(rng):
    map = city_map(3)
    free = map.leaves[map.arrays.obstacle.numpy()[map.leaves] == 0]
    a, b = (map.numpy("centre")[rng.choice(free, 40)] for _ in range(2))
    for start, goal, way in zip(a, b, Planner(map, clearance=0.5).routes(a, b), strict=True):
        points = np.concatenate([start[None], way])
        np.testing.assert_array_equal(points[-1], goal)
        assert not any(crosses_obstacle(map, p, q) for p, q in itertools.pairwise(points))
        assert length(points) >= np.linalg.norm(goal - start) - 1e-9


@pytest.mark.feature("F-P-59")
def test_everybody_in_the_city_reaches_all_points_of_interest():
    simulation = city(60, 0, blocks=2, visits=1, building=8.0, device="cpu")
    obstacle = simulation.map.arrays.obstacle.numpy().copy()
    for _ in range(24):
        simulation.step(150)
        assert not simulation.map.arrays.obstacle.numpy()[simulation.cells].any()
        if np.isfinite(simulation.arrived).all():
            break
    assert obstacle.any()
    assert np.isfinite(simulation.arrived).all()


@pytest.mark.feature("F-P-81")
def test_ways_around_a_jam_take_less_time_than_through_it():
    taken = {}
    for penalty in (0.0, 8.0):
        map = quad_grid(14, 8, size=3.0, device="cpu")
        centre = map.numpy("centre")
        wall = (
            (np.abs(centre[:, 0] - 22.5) < 1) & ~(np.abs(centre[:, 1] - 10.5) < 1) & ~(np.abs(centre[:, 1] - 19.5) < 1)
        )
        map.block("cell", np.flatnonzero(wall))
        simulation = Simulation(map, adaptive=None)
        y, x = np.mgrid[0:4, 0:3]
        jam = np.stack([21.6 + 0.9 * x.ravel(), 9.2 + 0.85 * y.ravel()], axis=1)
        simulation.add_points(jam, goals=jam)  # they stand in the nearer gap
        start, goal = [[12.0, 10.5]], [[33.0, 10.5]]
        (way,) = simulation.plan(start, goal, penalty=penalty)
        one = simulation.add_points(start, goals=[way])
        simulation.step(30 * 45)
        taken[penalty] = float(simulation.arrived[one[0]])
    assert np.isfinite(taken[8.0])
    assert taken[8.0] < taken[0.0]


def test_a_goal_behind_walls_is_refused():
    map = quad_grid(5, 5, size=3.0, device="cpu")
    map.block("cell", [10, 11, 12, 13, 14])
    with pytest.raises(InputError, match="agent 0 cannot get to its goal"):
        Planner(map).routes([[1.0, 1.0]], [[14.0, 1.0]])
    with pytest.raises(InputError, match="goals: point 0 is outside the map or in an obstacle"):
        Planner(map).routes([[1.0, 1.0]], [map.numpy("centre")[12, :2]])


def test_whoever_is_pushed_behind_a_corner_finds_his_way_again():
    arrived = {}
    for reroute in (0.0, 1.0):
        map = quad_grid(8, 8, size=3.0, device="cpu")
        centre = map.numpy("centre")
        map.block("cell", np.flatnonzero((np.abs(centre[:, 0] - 12) < 3) & (np.abs(centre[:, 1] - 12) < 6)))
        simulation = Simulation(map, reroute=reroute)
        simulation.add_points([[8.0, 12.0]], goals=[[16.0, 12.0]])  # straight through the obstacle
        simulation.step(30 * 30)
        arrived[reroute] = bool(np.isfinite(simulation.arrived[0]))
    assert arrived == {0.0: False, 1.0: True}


def test_points_behind_a_wall_of_edges_find_the_gap_in_it():
    map = quad_grid(8, 8, size=3.0, device="cpu")
    origin, phi1, x = map.numpy("origin"), map.numpy("phi1"), map.positions
    wall = [d for d in map.darts if x[origin[d], 0] == 12 == x[origin[phi1[d]], 0]]
    map.block("dart", [d for d in wall if max(x[origin[d], 1], x[origin[phi1[d]], 1]) <= 21])
    arrived = {}
    for every in (0.0, 1.0):
        simulation = Simulation(map, adaptive=None, reroute=every)
        simulation.add_points([[4.0, 4.0]], goals=[[20.0, 4.0]])
        simulation.step(30 * 50)
        arrived[every] = bool(np.isfinite(simulation.arrived).all())
    assert arrived == {0.0: False, 1.0: True}
