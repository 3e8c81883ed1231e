"""Ways around obstacles: as short as can be, clear of walls, and everybody in the city arrives."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest

from tangere.cells.generate import quad_grid
from tangere.cells.maps import split
from tangere.crowd import Planner, Simulation
from tangere.crowd.navigation.string_pulling import pull_string
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
        way = np.concatenate([start[None], pull_string(start, goal, *gates)[0]])
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


def test_a_hall_is_crossed_straight():
    map = quad_grid(25, 25, size=4.0, device="cpu")
    split(map, [60, 312, 313])
    for way in Planner(map, clearance=0.4).routes([[2, 2], [1, 50], [30, 9]], [[98, 98], [99, 1], [7, 77.7]]):
        assert len(way) == 1


def test_ways_with_waypoints_left_out_are_shorter_and_keep_the_clearance_of_the_others(rng):
    size, count, clearance = 3.0, 14, 0.5
    map = quad_grid(count, count, size=size, device="cpu")
    map.block("cell", rng.choice(count**2, 30, replace=False))
    free = map.leaves[map.arrays.obstacle.numpy()[map.leaves] == 0]
    a, b = (map.numpy("centre")[rng.choice(free, 60)] + [*rng.uniform(-0.9, 0.9, 2), 0] for _ in range(2))
    planner = Planner(map, clearance=clearance)
    shorter = planner.routes(a, b, partial=True)
    planner._shortens = False
    longer = planner.routes(a, b, partial=True)
    solid = np.ones((count + 2, count + 2), bool)  # by column and row, with what is around the map
    column, row = (map.numpy("centre")[:, :2] / size + 1).astype(int).T
    solid[column, row] = map.arrays.obstacle.numpy() != 0
    wall = solid[1:, 1:] | solid[:-1, 1:] | solid[1:, :-1] | solid[:-1, :-1]  # by vertex
    gained = 0.0
    for way, other, start in zip(shorter, longer, a, strict=True):
        points, before = (np.concatenate([start[None], x]) for x in (way, other))
        assert length(points) <= length(before) + 1e-9
        for p, q in itertools.pairwise(points):
            assert not crosses_obstacle(map, p, q)
            # Every line of the grid is crossed where it is open, so far from the corners of walls.
            for k in range(2):
                low, high = sorted((p[k], q[k]))
                for line in range(int(np.ceil(low / size - 1e-9)), int(np.floor(high / size + 1e-9)) + 1):
                    if abs(q[k] - p[k]) < 1e-9:
                        continue
                    at = p[1 - k] + (line * size - p[k]) / (q[k] - p[k]) * (q[1 - k] - p[1 - k])
                    for end in (int(np.floor(at / size)), int(np.floor(at / size)) + 1):
                        if wall[(line, end) if k == 0 else (end, line)]:
                            assert abs(at - end * size) >= clearance - 1e-6
        gained += length(before) - length(points)
    assert gained > 5.0


@pytest.mark.feature("F-P-59")
def test_everybody_in_the_city_reaches_all_points_of_interest():
    simulation = city(60, 0, blocks=2, visits=1, building=8.0, device="cpu")
    obstacle = simulation.map.arrays.obstacle.numpy().copy()
    for _ in range(24):
        simulation.run(steps=150)
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
        simulation.run(steps=30 * 45)
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


def test_what_is_no_length_or_number_of_ways_is_refused():
    simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"))
    with pytest.raises(InputError, match="goals: there are 2 for 1 starts"):
        simulation.plan([[1.0, 1.0]], [[2.0, 2.0], [3.0, 3.0]])
    for wrong in (np.nan, -1.0, np.inf):
        for name in ("clearance", "penalty"):
            with pytest.raises(InputError, match=f"{name} must be finite and not negative"):
                simulation.plan([[1.0, 1.0]], [[2.0, 2.0]], **{name: wrong})
        with pytest.raises(InputError, match="reach"):
            simulation.observe(wrong)
