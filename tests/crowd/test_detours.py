"""Whoever does not see his waypoint goes around the wall, at what is near that costs, and keeps to his way."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.cells.generate import quad_grid
from tangere.cells.maps import CellMap, MapArrays, split
from tangere.cells.tracking import locate, move, move_darts
from tangere.crowd import Bubbles, Obstacle, Orca, Planner, Simulation
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods, neighbourhoods_of
from tangere.crowd.navigation.line_of_sight import line_of_sight
from tangere.crowd.navigation.local_planning import LocalPlanner, cells_between
from tangere.crowd.scenarios import city
from tangere.runtime import InputError, launch


@wp.kernel
def _looks(
    first: int,
    m: MapArrays,
    s: Neighbourhoods,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    darts: wp.array[int],
    end: wp.array[wp.vec2i],
):
    i = first + wp.tid()
    way = line_of_sight(m, s, a[i], b[i], darts[i])
    end[i] = wp.vec2i(way.dart, way.status)


def maps(rng):
    """A grid, one with finer cells, one of bent quads, one of triangles; a fifth of the cells are obstacles."""
    grid, finer = (quad_grid(20, 14, size=3.0, device="cpu") for _ in range(2))
    split(finer, rng.choice(280, 40, replace=False), balanced=True)
    places = np.array([[x, y] for y in range(15) for x in range(21)]) * 3.0
    inner = (places > 0).all(axis=1) & (places < [60, 42]).all(axis=1)
    places[inner] += rng.uniform(-0.4, 0.4, (inner.sum(), 2))
    corner = [y * 21 + x for y in range(14) for x in range(20)]
    quads = [[a, a + 1, a + 22, a + 21] for a in corner]
    halves = [t for a, b, c, d in quads for t in ([a, b, c], [a, c, d])]
    all_maps = [grid, finer, *(CellMap.from_polygons(places, faces, device="cpu") for faces in (quads, halves))]
    for map in all_maps:
        map.block("cell", rng.choice(map.leaves, len(map.leaves) // 5, replace=False))
    return all_maps


def test_a_look_ends_where_the_march_does(rng, effort):
    count = effort(20_000)
    for map in maps(rng):
        a, b = (np.concatenate([rng.uniform(0, [60, 42], (count, 2)), np.zeros((count, 1))], axis=1) for _ in range(2))
        # Some along lines of the grid and through its corners.
        a[: count // 10], b[: count // 10] = (
            np.round(a[: count // 10] / 1.5) * 1.5,
            np.round(b[: count // 10] / 1.5) * 1.5,
        )
        here = locate(map, a)
        free = ~here.blocked & (map.arrays.obstacle.numpy()[here.cell] == 0)
        a, b, here = a[free], b[free], here.dart[free]
        ends = [wp.array(x, dtype=wp.vec3d, device="cpu") for x in (a, b)]
        darts = wp.array(here, dtype=wp.int32, device="cpu")
        found = wp.empty(len(a), dtype=wp.vec2i, device="cpu")
        launch(_looks, len(a), [map.arrays, neighbourhoods_of(map, 1.0), *ends, darts], [found], device=map.device)
        dart, _, status = (x.numpy() for x in move_darts(map, *ends, darts))
        cell, found = map.numpy("cell"), found.numpy()
        inside = status == 0
        assert inside.any()
        assert (~inside).any()
        np.testing.assert_array_equal(found[:, 1] == 0, inside)
        on_a_side = (np.abs(b / 1.5 - np.round(b / 1.5)) < 1e-9)[:, :2].any(axis=1)  # there any cell around it will do
        same = cell[found[:, 0]] == cell[dart]
        assert same[inside & ~on_a_side].all()


def test_whoever_is_sent_around_sees_where_he_goes_first(rng):
    simulation = city(400, blocks=3, device="cpu", adaptive=None)
    free = simulation.map.leaves[simulation.map.arrays.obstacle.numpy()[simulation.map.leaves] == 0]
    place = simulation.map.numpy("centre")[rng.choice(free, 400)] + [*rng.uniform(-1.99, 1.99, 2), 0.0]
    here = locate(simulation.map, place)
    order = simulation.points.arrays.number.numpy()
    simulation.points.arrays.position.assign(place[order])
    simulation.points.arrays.dart.assign(here.dart[order])
    simulation.points.relocate()
    for _ in range(3):
        sent = simulation.reroute()
        assert len(sent) > 100
        first = simulation.points.routes.detour.numpy()[sent]
        ends = move(simulation.map, simulation.positions[sent], first, simulation.points.by_number("dart")[sent])
        assert not ends.blocked.any()
        simulation.run(steps=20)


def test_two_who_meet_at_a_corner_get_past_each_other():
    map = quad_grid(8, 8, size=4.0, device="cpu")
    centre = map.numpy("centre")
    map.block("cell", np.flatnonzero((centre[:, :2] > 12).all(axis=1) & (centre[:, 1] < 24)))
    simulation = Simulation(map, adaptive=None)
    simulation.add_points([[11.44, 12.3], [12.3, 11.6]], goals=[[30.0, 11.4], [11.4, 23.0]])
    simulation.run(steps=30 * 30)
    assert np.isfinite(simulation.arrived).all()


def test_a_way_around_is_planned_once(monkeypatch):
    map = quad_grid(30, 30, size=3.0, device="cpu")
    centre = map.numpy("centre")
    comb = (centre[:, 0] > 30) & (centre[:, 0] < 60) & (np.floor(centre[:, 1] / 3) % 4 == 1) & (centre[:, 1] > 12)
    map.block("cell", np.flatnonzero(comb | ((centre[:, 0] > 57) & (centre[:, 0] < 60) & (centre[:, 1] > 12))))
    planned = []
    routes = LocalPlanner.routes
    monkeypatch.setattr(LocalPlanner, "routes", lambda self, *ends: planned.append(len(ends[0])) or routes(self, *ends))
    simulation = Simulation(map, adaptive=None)
    simulation.add_points([[46.0, 46.5]], goals=[[80.0, 46.5]])  # between two teeth of the comb
    simulation.run(steps=30 * 90)
    assert np.isfinite(simulation.arrived).all()
    assert planned == [1]


def test_walls_far_away_are_seen_in_time():
    map = quad_grid(60, 20, size=3.0, device="cpu")
    centre = map.numpy("centre")
    map.block("cell", np.flatnonzero((np.abs(centre[:, 0] - 121.5) < 1) & (centre[:, 1] > 30)))
    simulation = Simulation(map, adaptive=None)
    simulation.add_points([[4.0, 28.0]], goals=[[170.0, 28.0]])
    assert len(simulation.reroute()) == 0
    aside = np.array([[4.0, 50.0, 0.0]])
    simulation.points.arrays.position.assign(aside)
    simulation.points.arrays.dart.assign(locate(map, aside).dart)
    simulation.points.relocate()
    assert len(simulation.reroute(ahead=30.0)) == 0
    assert simulation.reroute().tolist() == [0]
    simulation.run(steps=30 * 150)
    assert np.isfinite(simulation.arrived).all()


def test_ways_are_kept_when_cells_change_and_looked_for_again_when_walls_do():
    map = quad_grid(12, 12, size=6.0, device="cpu")
    centre = map.numpy("centre")
    map.block("cell", np.flatnonzero((np.abs(centre[:, 0] - 33) < 1) & (centre[:, 1] > 12)))
    simulation = Simulation(map)
    simulation.add_points([[20.0, 50.0]], goals=[[50.0, 50.0]])
    assert simulation.reroute().tolist() == [0]
    kept, first = simulation._detours, simulation.points.routes.detour.numpy()[0].copy()
    y, x = np.mgrid[0:6, 0:6]
    simulation.run(steps=1)
    split(map, simulation.cells[:1], balanced=True)
    simulation.run(steps=1)
    assert simulation._detours is None  # not by itself: it may have been walls
    assert simulation.reroute().tolist() == [0]
    crowd = simulation.add_points(np.stack([4 + 0.8 * x.ravel(), 4 + 0.8 * y.ravel()], axis=1))
    simulation.reroute()
    kept = simulation._detours
    assert simulation.adapt() > 0
    assert simulation._detours is kept
    np.testing.assert_allclose(simulation.points.routes.detour.numpy()[0], first, atol=0.5)
    simulation.block([int(locate(map, [[33.0, 3.0]]).cell[0])])
    assert simulation.reroute().tolist() == [0]
    assert simulation._detours is not kept
    simulation.run(steps=30 * 90)
    assert np.isfinite(simulation.arrived[0])
    assert len(crowd) == 36


def test_who_is_on_a_way_around_stays_on_it_when_others_join_and_leaves_it_for_a_new_goal():
    map = quad_grid(12, 12, size=6.0, device="cpu")
    centre = map.numpy("centre")
    map.block("cell", np.flatnonzero((np.abs(centre[:, 0] - 33) < 1) & (centre[:, 1] > 12)))
    simulation = Simulation(map, adaptive=None)
    simulation.add_points([[20.0, 50.0], [22.0, 50.0]], goals=[[50.0, 50.0], [52.0, 50.0]])
    assert simulation.reroute().tolist() == [0, 1]
    places = simulation.points.routes.detour.numpy().copy()
    simulation.add_points([[5.0, 5.0]], goals=[[9.0, 9.0]])
    assert simulation.points.routes.has_detour.numpy().tolist() == [1, 1, 0]
    np.testing.assert_array_equal(simulation.points.routes.detour.numpy()[:2], places)
    simulation.retarget([0], [[20.0, 20.0]])
    assert simulation.points.routes.has_detour.numpy().tolist() == [0, 1, 0]


def test_two_who_stand_face_to_face_in_a_maze_step_aside():
    """Scene and places of a maze in which two of twelve stood for ever, each pulled to the same wall."""
    random = np.random.default_rng(80)
    map = quad_grid(12, 12, size=3.0, device="cpu")
    map.block("cell", random.choice(map.leaves, int(0.35 * 144), replace=False))
    centre = map.numpy("centre")[:, :2]
    free = np.flatnonzero(map.arrays.obstacle.numpy() == 0)
    a, b = (centre[random.choice(free, 48)] + random.uniform(-0.3, 0.3, (48, 2)) for _ in range(2))
    chosen, taken = [], set()
    for k, way in enumerate(Planner(map, clearance=0.6).routes(a, b, partial=True)):
        spots = {tuple(np.floor(a[k]).astype(int)), ("goal", *np.floor(b[k] / 2).astype(int))}
        if len(way) and not spots & taken:
            taken |= spots
            chosen.append(k)
    simulation = Simulation(map, adaptive=None, seed=80)
    simulation.add_points(a[chosen[:12]], goals=b[chosen[:12]])
    simulation.run(steps=30 * 200)
    assert np.isfinite(simulation.arrived).all()


def two_islands():
    """Two squares of 5 x 5 cells that do not hang together, with a wall on the first."""
    vertices, quads = [], []
    for x0 in (0.0, 50.0):
        base = len(vertices)
        vertices += [(x0 + 3.0 * x, 3.0 * y) for y in range(6) for x in range(6)]
        corner = [base + 6 * y + x for y in range(5) for x in range(5)]
        quads += [[a, a + 1, a + 7, a + 6] for a in corner]
    map = CellMap.from_polygons(np.array(vertices), quads, device="cpu")
    map.block("cell", [12])
    return map


def test_to_another_island_there_is_no_way():
    map = two_islands()
    simulation = Simulation(map, adaptive=None)
    simulation.add_points([[1.0, 1.0], [1.0, 7.5]], goals=[[52.0, 3.0], [14.0, 7.5]])
    assert simulation.reroute().tolist() == [1]
    simulation.run(steps=30 * 20)
    assert np.isfinite(simulation.arrived).tolist() == [False, True]


def test_when_the_last_wall_is_gone_all_go_straight_again():
    simulation = Simulation(quad_grid(20, 20, size=2.0, device="cpu"))
    simulation.add_points([[10.0, 20.5]], goals=[[30.0, 20.0]])
    obstacle = Obstacle(simulation, [16.0, 20.0], 4.0)
    simulation.run(steps=60)
    assert simulation.points.routes.has_detour.numpy().tolist() == [1]
    obstacle.remove()
    simulation.run(steps=30 * 20)
    assert np.isfinite(simulation.arrived).all()


def test_whoever_has_got_on_asks_again_for_a_way():
    """There is none through a door of 1 m that keeps 0.6 m clear; behind it there is."""
    map = quad_grid(40, 30, size=1.0, device="cpu")
    x, y = np.floor(map.numpy("centre")[:, :2]).astype(int).T
    map.block("cell", np.flatnonzero(((x == 10) & (y != 15)) | ((x == 25) & (y >= 5))))
    rule = Bubbles(range=0.9, wall_range=0.3)
    simulation = Simulation(map, adaptive=None, behaviour=rule, clearance=0.6)
    simulation.add_points([[5.0, 15.5]], goals=[[35.0, 15.5]], radius=0.2)
    assert simulation.reroute().tolist() == []
    simulation.run(steps=30 * 60)
    assert np.isfinite(simulation.arrived).all()


def test_clearance_is_twice_the_radius_unless_one_is_given_which_is_kept():
    map = quad_grid(20, 20, size=1.0, device="cpu")
    x, y = np.floor(map.numpy("centre")[:, :2]).astype(int).T
    map.block("cell", np.flatnonzero((x == 10) & (y != 3)))  # a door of 1 m
    for radius, clearance, sent in ((0.2, None, [0]), (0.3, None, []), (0.3, 0.4, [0]), (0.2, 0.7, [])):
        simulation = Simulation(map, adaptive=None, behaviour=Bubbles(range=0.9), clearance=clearance)
        simulation.add_points([[5.0, 15.0]], goals=[[15.0, 15.0]], radius=radius)
        assert simulation.reroute().tolist() == sent
    assert simulation.reroute(clearance=0.2).tolist() == [0]
    assert simulation.reroute().tolist() == [0]
    for wrong in ({"clearance": -1.0}, {"clearance": np.nan}, {"ahead": 0.0}, {"ahead": np.nan}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            simulation.reroute(**wrong)


def test_whoever_is_shut_in_is_known_to_be_without_looking_at_the_whole_map():
    for count in (60, 150):
        map = quad_grid(count, count, size=1.0, device="cpu")
        x, y = np.floor(map.numpy("centre")[:, :2]).astype(int).T
        map.block("cell", np.flatnonzero(np.maximum(np.abs(x - 20), np.abs(y - 20)) == 3))
        here, there = np.array([[20.5, 20.5, 0.0]]), np.array([[50.5, 50.5, 0.0]])
        for a, b in ((here, there), (there, here)):
            nearby = LocalPlanner(map, 0.3)
            (way,) = nearby.routes(a, locate(map, a).dart, b, locate(map, b).dart)
            assert len(way) == 0
            assert nearby._planner is not None
            assert len(nearby._planner.leaves) < 2500


def test_ways_are_the_same_whether_goals_are_looked_at_together_or_one_by_one(rng, monkeypatch):
    map = quad_grid(24, 24, size=2.0, device="cpu")
    map.block("cell", rng.choice(576, 150, replace=False))
    free = map.leaves[map.arrays.obstacle.numpy()[map.leaves] == 0]
    a, b = (map.numpy("centre")[rng.choice(free, 40)] for _ in range(2))
    together = Planner(map, clearance=0.3).routes(a, b, partial=True)
    monkeypatch.setattr("tangere.crowd.navigation.planning._COSTS_AT_ONCE", 1)
    monkeypatch.setattr("tangere.crowd.navigation.planning._WAYPOINTS_AT_ONCE", 9)
    for one, other in zip(together, Planner(map, clearance=0.3).routes(a, b, partial=True), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sum(len(way) > 1 for way in together) > 10


def test_cells_between_places_are_as_many_in_a_map_of_any_size_and_all_if_they_are_many(rng):
    counts = []
    for count in (60, 120):
        map = quad_grid(count, count, size=2.0, device="cpu")
        here, there = np.array([[40.0, 50.0, 0.0]]), np.array([[70.0, 55.0, 0.0]])
        cells, _ = cells_between(map, here, locate(map, here).dart, there)
        assert np.isin(locate(map, np.concatenate([here, there])).cell, cells).all()
        counts.append(len(cells))
        many = np.concatenate([rng.uniform(0, 119, (900, 2)), np.zeros((900, 1))], axis=1)
        cells, _ = cells_between(map, many, locate(map, many).dart, many[::-1].copy())
        np.testing.assert_array_equal(cells, map.leaves)
    assert counts[0] == counts[1] < 500


def test_ways_planned_nearby_cost_what_the_cheapest_in_the_whole_map_do(rng):
    map = quad_grid(60, 60, size=2.0, device="cpu")
    map.block("cell", rng.choice(3600, 1100, replace=False))
    split(map, rng.choice(3600, 30, replace=False), balanced=True)
    free = map.leaves[map.arrays.obstacle.numpy()[map.leaves] == 0]
    begin = rng.choice(free, 25)
    centre, anchor = map.numpy("centre"), map.numpy("anchor")
    away = np.linalg.norm(centre[begin][:, None] - centre[free][None], axis=2)
    end = free[np.argsort(away, axis=1)[np.arange(25), rng.integers(1, 300, 25)]]
    whole = Planner(map, clearance=0.3)
    ways = whole.known_routes(centre[begin], anchor[begin], centre[end], anchor[end])[0]
    largest = 0
    for k in range(25):
        nearby, few = LocalPlanner(map, 0.3), slice(k, k + 1)
        (near,) = nearby.routes(centre[begin[few]], anchor[begin[few]], centre[end[few]], anchor[end[few]])
        assert (len(near) == 0) == (len(ways[k]) == 0)
        known = nearby._planner
        assert known is not None
        costs = [p._search(p._leaf_index[end[few]])[0][0, p._leaf_index[begin[k]]] for p in (known, whole)]
        assert costs[0] == pytest.approx(costs[1], rel=1e-12)
        largest = max(largest, len(known.leaves) if len(near) else 0)
    assert 0 < largest < len(map.leaves)


def test_whoever_is_pushed_behind_a_corner_finds_his_way_again():
    arrived = {}
    for reroute in (0.0, 1.0):
        map = quad_grid(8, 8, size=3.0, device="cpu")
        centre = map.numpy("centre")
        map.block("cell", np.flatnonzero((np.abs(centre[:, 0] - 12) < 3) & (np.abs(centre[:, 1] - 12) < 6)))
        simulation = Simulation(map, reroute=reroute)
        simulation.add_points([[8.0, 12.0]], goals=[[16.0, 12.0]])  # straight through the obstacle
        simulation.run(steps=30 * 30)
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
        simulation.run(steps=30 * 50)
        arrived[every] = bool(np.isfinite(simulation.arrived).all())
    assert arrived == {0.0: False, 1.0: True}


def test_the_way_around_a_wall_is_looked_for_among_as_many_cells_in_a_map_of_any_size():
    known = []
    for count in (40, 120):
        map = quad_grid(count, count, size=3.0, device="cpu")
        centre = map.numpy("centre")
        map.block("cell", np.flatnonzero((np.abs(centre[:, 0] - 55.5) < 1) & (np.abs(centre[:, 1] - 57) < 6)))
        simulation = Simulation(map, adaptive=None)
        simulation.add_points([[53.0, 57.0]], goals=[[61.0, 57.0]])
        assert simulation.reroute().tolist() == [0]
        kept = simulation._detours
        assert kept is not None
        planner = kept._planner._planner
        assert planner is not None
        known.append(len(planner.leaves))
        simulation.run(steps=60)
        assert simulation._detours is kept
        map.block("cell", [0])
        simulation.run(steps=30)
        assert simulation._detours is not kept
    assert known[0] == known[1] < 900


def floor_plan(*rectangles, lean=0.0):
    """A map of squares of 3 m, the union of rectangles (low and high corner): its border is its only wall.

    Above y = 6 m it leans to the left by so much for every metre.
    """
    squares = sorted({(x, y) for a, b, c, d in rectangles for x in range(a, c, 3) for y in range(b, d, 3)})
    corners = sorted({(x + i, y + j) for x, y in squares for i in (0, 3) for j in (0, 3)})
    number = {corner: k for k, corner in enumerate(corners)}
    cells = [[number[x, y], number[x + 3, y], number[x + 3, y + 3], number[x, y + 3]] for x, y in squares]
    places = [(x - lean * max(y - 6, 0), y) for x, y in corners]
    return CellMap.from_polygons(np.array(places, float), cells, device="cpu")


#: Maps, starts, and a goal; the straight way between them leads through the border.
_FLOORS = {
    "L": (floor_plan((0, 0, 30, 6), (24, 0, 30, 30), lean=1.0), [[3.0, 3.0], [5.0, 2.0], [7.0, 4.0]], [4.0, 28.0]),
    "U": (
        floor_plan((0, 0, 6, 24), (0, 0, 30, 6), (24, 0, 30, 24)),
        [[2.0, 20.0], [4.0, 22.0], [3.0, 17.0]],
        [27.0, 22.0],
    ),
    "court": (
        floor_plan((0, 0, 30, 9), (0, 21, 30, 30), (0, 0, 9, 30), (21, 0, 30, 30)),
        [[3.0, 14.0], [5.0, 15.0], [4.0, 16.5]],
        [26.0, 15.0],
    ),
}


@pytest.mark.parametrize("rule", [Bubbles(), Orca()], ids=["bubbles", "orca"])
@pytest.mark.parametrize("name", _FLOORS)
def test_whoever_walks_in_a_floor_plan_gets_around_its_corners(name, rule):
    """Its walls are the border of the map: nothing in it is blocked."""
    map, starts, goal = _FLOORS[name]
    arrived = {}
    for every in (0.0, 1.0):
        simulation = Simulation(map, adaptive=None, reroute=every, behaviour=rule)
        simulation.add_points(starts, goals=[[goal[0] + 0.8 * k, goal[1] - k] for k in range(3)])
        simulation.run(steps=30 * 75)
        arrived[every] = np.isfinite(simulation.arrived).tolist()
    assert arrived == {0.0: [False] * 3, 1.0: [True] * 3}


def test_in_a_map_without_walls_and_bays_nobody_looks_for_a_way():
    corners = np.array([[8.0, 0.0], [14.0, 4.0], [14.0, 10.0], [8.0, 14.0], [2.0, 10.0], [2.0, 4.0]])
    sixths = np.concatenate([corners, [[8.0, 7.0]]])
    wheel = CellMap.from_polygons(sixths, [[k, (k + 1) % 6, 6] for k in range(6)], device="cpu")
    for map in (quad_grid(9, 7, size=3.0, jitter=0.2, device="cpu"), wheel):
        simulation = Simulation(map, adaptive=None, behaviour=Bubbles(range=1.0))
        simulation.add_points([[6.0, 6.0]], goals=[[99.0, 6.0]])
        assert simulation.reroute().tolist() == []
        assert simulation._detours is not None
        assert not simulation._detours.has_walls


def test_whoever_stands_on_a_slanted_wall_is_not_looked_for_again(rng):
    """Rounding may put him behind it, where from scratch he would be found in the obstacle."""
    count, size = 6, 7.3
    v = np.array([[x, y] for y in range(count + 1) for x in range(count + 1)]) * size * [1.0, 0.83]
    corner = [y * (count + 1) + x for y in range(count) for x in range(count)]
    halves = [t for a in corner for t in ([a, a + 1, a + count + 2], [a, a + count + 2, a + count + 1])]
    map = CellMap.from_polygons(v, halves, device="cpu")
    map.block("cell", np.arange(1, len(halves), 6))
    open_cell = map.arrays.obstacle.numpy() == 0
    place = rng.uniform(0.1, 0.82 * count * size, (4000, 2))
    place = place[open_cell[locate(map, place).cell]]
    simulation = Simulation(map, adaptive=None)
    simulation.add_points(place, goals=place[::-1].copy())
    here = locate(map, place)
    ends = move(map, place, place + rng.normal(0, 9.0, place.shape), here.dart)
    # As a step leaves those whom a wall stops.
    order = simulation.points.arrays.number.numpy()
    simulation.points.arrays.position.assign(ends.position[order])
    simulation.points.arrays.dart.assign(ends.dart[order])
    behind = ~open_cell[locate(map, ends.position).cell] | locate(map, ends.position).blocked
    assert behind.sum() > 20
    assert np.isin(np.flatnonzero(behind), simulation.reroute()).any()
    chosen = np.flatnonzero(behind)
    goals = np.tile(place[:1], (len(chosen), 1))
    with pytest.raises(InputError, match="starts: point"):
        Planner(map).routes(ends.position[chosen], goals, partial=True)
    ways = Planner(map).routes(ends.position[chosen], goals, darts=ends.dart[chosen], partial=True)
    assert any(len(way) for way in ways)
