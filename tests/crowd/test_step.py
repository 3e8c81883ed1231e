"""A step against sums over all pairs, walls nobody passes, and the same bits for any number of threads."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from tangere.cells import Density
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import CellMap
from tangere.cells.tracking import locate
from tangere.crowd import Bubbles, Simulation, box
from tangere.runtime import InputError, UnsupportedError, using_threads


def crowd(rng, count=300, size=24.0, cell=6.0, **options):
    simulation = Simulation(quad_grid(round(size / cell), round(size / cell), size=cell, device="cpu"), **options)
    middle = rng.normal(size / 2, size / 8, (count, 2)).clip(1.6, size - 1.6)
    simulation.add_points(middle, goals=rng.uniform(1.6, size - 1.6, (count, 2)), speed=rng.uniform(1, 1.8, count))
    return simulation


def in_cells(simulation):
    """Whether everybody's cell holds him, by his coordinates alone."""
    map = simulation.map
    phi1, origin = map.numpy("phi1"), map.numpy("origin")
    for place, cell in zip(simulation.positions, simulation.cells, strict=True):
        start = d = int(map.numpy("anchor")[cell])
        while True:
            s, e = map.positions[origin[d]], map.positions[origin[phi1[d]]]
            if (e[0] - s[0]) * (place[1] - s[1]) - (e[1] - s[1]) * (place[0] - s[0]) < -1e-9:
                return False
            d = int(phi1[d])
            if d == start:
                break
    return True


def test_neighbours_are_those_of_all_pairs_while_cells_split_and_merge(rng):
    simulation = crowd(rng, size=36.0, adaptive=Density(8, 4), adapt_every=5)
    for _ in range(15):
        simulation.run(steps=20)
        seen = simulation.observe(1.5)
        away = np.linalg.norm(simulation.positions[:, None] - simulation.positions[None], axis=2)
        np.fill_diagonal(away, np.inf)
        np.testing.assert_array_equal(seen.neighbours, (away <= 1.5).sum(axis=1))
        np.testing.assert_array_equal(seen.overlaps, (away < 0.6).sum(axis=1))
        assert in_cells(simulation)
    assert min(simulation.operations) > 0
    assert simulation.map.levels.max() == simulation.levels == 2


@pytest.mark.feature("F-P-53")
def test_the_sum_over_the_ring_is_the_sum_over_everybody(rng):
    rule = Bubbles(noise=0.0, acceleration=1e9, max_speed_factor=1e9)
    simulation = crowd(rng, behaviour=rule)
    simulation.run(steps=20)
    x, v = simulation.positions, simulation.velocities
    at = simulation.points.routes.current.numpy()
    goal = simulation.points.routes.points.numpy()[at.clip(max=len(x) - 1)]
    speed, under_way = simulation.points.traits["speed"], ~np.isfinite(simulation.arrived)
    w = x[:, None] - x[None]
    d = np.linalg.norm(w, axis=2)
    np.fill_diagonal(d, np.inf)
    unit = w / d[..., None]
    rate = (unit * (v[:, None] - v[None])).sum(axis=2)
    d = np.where(np.isinf(d), 2 * rule.range, d)
    push = np.maximum(rule.stiffness * (rule.range - d) ** 2 - rule.damping * rate * (1 - d / rule.range), 0)
    force = (np.where(d < rule.range, push, 0)[..., None] * unit).sum(axis=1)
    way = goal - x
    length = np.linalg.norm(way, axis=1)
    fast = np.minimum(speed, length / 0.5)
    still_going = under_way & (length > simulation.goal_radius)
    wish = np.where(still_going[:, None], way / length[:, None] * fast[:, None], 0)
    expected = v + simulation.dt * (force + (wish - v) / rule.relaxation)
    simulation.step()
    free = (x[:, :2].min(axis=1) > 1.6) & (x[:, :2].max(axis=1) < 24 - 1.6)  # of walls
    np.testing.assert_allclose(simulation.velocities[free], expected[free], atol=1e-9)
    np.testing.assert_allclose(simulation.positions[free], x[free] + simulation.dt * expected[free], atol=1e-9)


def test_the_same_bits_come_out_for_any_number_of_threads(rng):
    results = []
    for threads in (1, 2, 7):
        with using_threads(threads):
            simulation = crowd(np.random.default_rng(5), count=1500, size=48.0)
            simulation.add_bodies(
                box(2.0, 1.0), [[10.0, 10.0], [30.0, 30.0]], headings=[[1, 0], [0, 1]], goals=[[40, 10], [30, 8]]
            )
            simulation.run(steps=15)
            results.append((simulation.positions, simulation.velocities, simulation.bodies.positions))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_steering_and_going_apart_is_the_same_step_and_has_its_times(rng):
    together, apart = (crowd(np.random.default_rng(1), separate=flag) for flag in (False, True))
    for simulation in (together, apart):
        simulation.run(steps=20)
    assert together.positions.tobytes() == apart.positions.tobytes()


@pytest.mark.feature("F-P-1")
def test_a_step_runs_its_five_stages_and_times_each(rng):
    simulation = crowd(rng, separate=True)
    simulation.add_bodies(box(2.0, 1.0), [[4.0, 4.0]], headings=[[1, 0]], goals=[[20, 4]])
    simulation.run(steps=10)
    last, total = simulation.timings, simulation.total_timings
    assert set(last) == set(total) == {"behaviour", "tracking", "registration", "bodies", "multiresolution"}
    assert all(seconds > 0 for seconds in total.values())
    assert last["multiresolution"] == 0  # cells were fitted in the first step, and later at every thirtieth
    assert all(0 < last[name] < total[name] for name in last if name != "multiresolution")
    simulation.step()
    for name, seconds in simulation.timings.items():
        assert simulation.total_timings[name] == pytest.approx(total[name] + seconds)


@pytest.mark.feature("F-P-54")
def test_two_agents_head_on_pass_each_other_thanks_to_the_noise():
    goals = [[28.0, 6.0], [2.0, 6.0]]
    arrived = {}
    for noise in (0.0, 0.2):
        simulation = Simulation(quad_grid(10, 4, size=3.0, device="cpu"), behaviour=Bubbles(noise=noise))
        simulation.add_points([[2.0, 6.0], [28.0, 6.0]], goals=goals, speed=1.4)
        simulation.run(steps=30 * 40)
        arrived[noise] = np.isfinite(simulation.arrived)
    assert not arrived[0.0].any()
    assert arrived[0.2].all()


def test_nobody_gets_into_an_obstacle_even_when_pushed(rng):
    map = quad_grid(8, 8, size=3.0, device="cpu")
    centre = map.numpy("centre")
    blocked = np.flatnonzero((np.abs(centre[:, 0] - 12) < 3) & (np.abs(centre[:, 1] - 12) < 3))
    map.block("cell", blocked)
    weak = Bubbles(stiffness=0.5, damping=0.0, range=1.0)
    simulation = Simulation(map, behaviour=weak)
    start = rng.uniform(0.2, 8.8, (150, 2))
    simulation.add_points(start, goals=24.0 - start, speed=3.0)  # straight through the obstacle and into the borders
    for _ in range(20):
        simulation.run(steps=10)
        x = simulation.positions
        assert (x[:, :2] >= 0).all()
        assert (x[:, :2] <= 24).all()
        assert not ((np.abs(x[:, 0] - 12) < 3 - 1e-12) & (np.abs(x[:, 1] - 12) < 3 - 1e-12)).any()
        assert not np.isin(simulation.cells, blocked).any()


def test_in_space_neighbours_and_walls_hold_as_well(rng):
    simulation = Simulation(hex_grid(3, 3, 3, size=4.0, device="cpu"), adaptive=Density(16, 6))
    simulation.add_points(rng.normal(6, 1.5, (200, 3)).clip(0.5, 11.5), goals=rng.uniform(-20, 30, (200, 3)), speed=2.0)
    for _ in range(8):
        simulation.run(steps=10)
        x = simulation.positions
        assert (x >= 0).all()
        assert (x <= 12).all()
        away = np.linalg.norm(x[:, None] - x[None], axis=2)
        np.fill_diagonal(away, np.inf)
        np.testing.assert_array_equal(simulation.observe().neighbours, (away <= 1.5).sum(axis=1))
    assert simulation.operations[1] > 0


@pytest.mark.feature("F-P-83")
def test_who_looks_ahead_only_does_not_mind_those_behind():
    for view, minds in ((360.0, True), (120.0, False)):
        rule = Bubbles(view=view, noise=0.0)
        simulation = Simulation(quad_grid(10, 10, size=3.0, device="cpu"), behaviour=rule, adaptive=None)
        simulation.add_points([[15.0, 15.0], [10.0, 15.0]], goals=[[28.0, 15.0], [28.0, 15.0]], speed=[1.0, 1.6])
        alone = Simulation(quad_grid(10, 10, size=3.0, device="cpu"), behaviour=rule, adaptive=None)
        alone.add_points([[15.0, 15.0]], goals=[[28.0, 15.0]], speed=1.0)
        for each in (simulation, alone):
            each.run(steps=30 * 7)
        assert (simulation.positions[0] != alone.positions[0]).any() == minds


def test_groups_stay_closer_together_than_strangers(rng):
    spread = {}
    for cohesion in (0.0, 2.0):
        simulation = Simulation(quad_grid(15, 15, size=3.0, device="cpu"), behaviour=Bubbles(cohesion=cohesion))
        start = np.random.default_rng(3).uniform(4, 41, (60, 2))
        simulation.add_points(start, groups=np.arange(60) % 4)
        simulation.run(steps=150)
        x = simulation.positions
        spread[cohesion] = np.mean([np.linalg.norm(x[k::4] - x[k::4].mean(axis=0), axis=1).mean() for k in range(4)])
    assert spread[2.0] < 0.7 * spread[0.0]


def test_groups_may_have_any_numbers(rng):
    ways = []
    for numbers in ([0, 1, 2, -1], [7, 2**40, 2**62, -1]):
        simulation = Simulation(quad_grid(5, 5, size=3.0, device="cpu"), behaviour=Bubbles(cohesion=2.0))
        place = np.random.default_rng(3).uniform(2, 13, (20, 2))
        simulation.add_points(place, groups=np.array(numbers)[np.arange(20) % 4])
        simulation.run(steps=10)
        ways.append(simulation.positions)
    np.testing.assert_array_equal(*ways)


def test_who_goes_round_in_circles_is_done_after_one_however_many_are_added():
    arrived = []
    for add in (False, True):
        simulation = Simulation(quad_grid(10, 4, size=3.0, device="cpu"), behaviour=Bubbles(noise=0.0), adaptive=None)
        simulation.add_points([[2.0, 6.0]], goals=[[[6.0, 6.0], [10.0, 6.0]]], repeat=True)
        simulation.run(steps=150)
        if add:
            simulation.add_points([[28.0, 2.0]])
        simulation.run(steps=150)
        arrived.append(simulation.arrived[0])
    assert arrived[0] == arrived[1] < 10.0


def test_agents_may_be_added_and_sent_elsewhere_while_it_runs(rng):
    simulation = crowd(rng, count=20)
    simulation.run(steps=30)
    before = simulation.positions
    new = simulation.add_points([[3.0, 3.0]], goals=[[20.0, 3.0]])
    assert new.tolist() == [20]
    np.testing.assert_array_equal(simulation.positions[:20], before)
    simulation.run(steps=60)
    simulation.retarget(new, [[3.0, 3.0]])
    simulation.run(steps=600)
    assert np.linalg.norm(simulation.positions[20, :2] - 3.0) < 1.0


def test_bad_input_is_named():
    map = quad_grid(4, 4, size=3.0, device="cpu")
    simulation = Simulation(map)
    with pytest.raises(InputError, match="point 1 is outside"):
        simulation.add_points([[1.0, 1.0], [99.0, 1.0]])
    with pytest.raises(InputError, match="point 0 is not finite"):
        simulation.add_points([[np.nan, 1.0]])
    with pytest.raises(InputError, match="goals: there are 1 for 2"):
        simulation.add_points([[1.0, 1.0], [2.0, 2.0]], goals=[[1.0, 1.0]])
    with pytest.raises(InputError, match="agent 0 has a waypoint that is not finite"):
        simulation.add_points([[1.0, 1.0]], goals=[[np.inf, 0.0]])
    with pytest.raises(InputError, match="speed: that of agent 1"):
        simulation.add_points([[1.0, 1.0], [2.0, 2.0]], speed=[1.0, -1.0])
    with pytest.raises(InputError, match="narrowest cell, 3 m"):
        Simulation(map, behaviour=Bubbles(range=4.0))
    with pytest.raises(InputError, match="more than cells are sure to show"):
        simulation.observe(2.5)


def test_who_repeats_a_single_waypoint_comes_back_when_pushed_away():
    simulation = Simulation(quad_grid(10, 4, size=3.0, device="cpu"), behaviour=Bubbles(noise=0.0))
    number = simulation.add_points([[8.0, 6.0]], goals=[[10.0, 6.0]], repeat=True)
    simulation.run(steps=90)
    assert np.isfinite(simulation.arrived[number]).all()
    assert np.linalg.norm(simulation.positions[0] - [10.0, 6.0, 0.0]) < 1.0
    simulation.add_points([[9.0, 6.1]], goals=[[9.6, 6.1]])  # gets in the way
    away = []
    for _ in range(30):
        simulation.run(steps=5)
        away.append(np.linalg.norm(simulation.positions[0] - [10.0, 6.0, 0.0]))
    assert max(away) > 0.5
    simulation.retarget([1], [[28.0, 1.0]])
    simulation.run(steps=150)
    assert np.linalg.norm(simulation.positions[0] - [10.0, 6.0, 0.0]) < 0.6


@pytest.mark.parametrize("radius", [0.1, 0.7])
def test_bubbles_keep_their_range_whatever_the_radius(radius):
    """As their description says; overlaps are those of the discs all the same."""
    ways = []
    for each in (radius, 0.3):
        simulation = Simulation(quad_grid(10, 4, size=3.0, device="cpu"))
        simulation.add_points([[2.0, 6.0], [28.0, 6.0]], goals=[[28.0, 6.0], [2.0, 6.0]], radius=each)
        ways.append(np.stack([(simulation.run(steps=10), simulation.positions)[1] for _ in range(40)]))
    np.testing.assert_array_equal(*ways)
    close = Simulation(quad_grid(10, 4, size=3.0, device="cpu"))
    close.add_points([[15.0, 6.0], [16.0, 6.0]], radius=radius)
    assert close.observe().overlaps.tolist() == [int(radius > 0.5)] * 2


def on_or_behind_walls(simulation):
    """How many agents are not on the own side of every wall of their cell, in exact arithmetic."""
    map, places, cells = simulation.map, simulation.positions, simulation.cells
    wall = map.darts[(map.numpy("phi2")[map.darts] < 0) | (map.numpy("tag")[map.darts] & 4096 != 0)]
    count = 0
    for dart in wall:
        a, b = (map.positions[map.numpy("origin")[d]] for d in (dart, map.numpy("phi1")[dart]))
        inside = places[cells == map.numpy("cell")[dart]]
        side = (b[0] - a[0]) * (inside[:, 1] - a[1]) - (b[1] - a[1]) * (inside[:, 0] - a[0])
        for x in inside[side < 1e-9]:
            (ax, ay), (bx, by), (px, py) = ([Fraction(float(c)) for c in p[:2]] for p in (a, b, x))
            count += (bx - ax) * (py - ay) - (by - ay) * (px - ax) <= 0
    return count


def test_nobody_ends_on_a_wall_not_even_in_a_sharp_corner(rng):
    n, size = 10, 6.0
    corners = np.array([[x, y] for y in range(n + 1) for x in range(n + 1)]) * size
    lower = [y * (n + 1) + x for y in range(n) for x in range(n)]
    triangles = [t for a in lower for t in ([a, a + 1, a + n + 2], [a, a + n + 2, a + n + 1])]
    map = CellMap.from_polygons(corners, triangles, device="cpu")
    map.block("cell", rng.choice(map.leaves, 50, replace=False))
    x = rng.uniform(0, n * size, (800, 2))
    x = x[map.numpy("obstacle")[locate(map, x).cell] == 0]
    rule = Bubbles(range=0.2, panic=0.0, wall_range=0.01, stiffness=0.1)
    simulation = Simulation(map, behaviour=rule, dt=0.1, reroute=0.0, adaptive=None)
    simulation.add_points(x, goals=x[::-1].copy(), speed=30.0, radius=0.1)
    for _ in range(12):
        simulation.run(steps=5)
        assert on_or_behind_walls(simulation) == 0


def test_in_space_nobody_ends_on_a_wall(rng):
    simulation = Simulation(hex_grid(2, 2, 2, size=4.0, device="cpu"), behaviour=Bubbles(noise=0.0), adaptive=None)
    simulation.add_points(rng.uniform(0, 8, (60, 3)), goals=rng.choice([-9.0, 4.0, 17.0], (60, 3)), speed=4.0)
    simulation.add_points([[0.0, 2.0, 2.0], [0.0, 8.0, 2.0], [0.0, 8.0, 0.0]])  # on one, two and three
    for _ in range(8):
        simulation.run(steps=10)
        assert (simulation.positions > 0.0).all()
        assert (simulation.positions < 8.0).all()


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_agents_slide_along_walls_far_from_the_origin_as_well(offset):
    grid = quad_grid(12, 12, size=1.5, device="cpu")
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    cells = grid.numpy("origin")[grid.darts].reshape(-1, 4)
    map = CellMap.from_polygons(grid.positions[:, :2] @ turn.T + offset, cells, device="cpu")
    map.block("cell", np.flatnonzero((np.abs(grid.numpy("centre")[:, :2] - 9.0) < 2.0).all(axis=1)))
    rule = Bubbles(range=1.0, noise=0.0, stiffness=1e-9, damping=0.0, wall_range=1e-3)
    simulation = Simulation(map, behaviour=rule, reroute=0.0, adaptive=None)
    random = np.random.default_rng(3)
    x = random.uniform(0.5, 17.5, (200, 2))
    x = x[(np.abs(x - 9.0) > 3.2).any(axis=1)][:100]
    simulation.add_points(x @ turn.T + offset, goals=random.uniform(-10, 28, (100, 2)) @ turn.T + offset, speed=2.0)
    stopped = 0
    for _ in range(150):
        simulation.step()
        stopped += int((simulation.velocities == 0).all(axis=1).sum())
        assert not map.numpy("obstacle")[simulation.cells].any()
    assert stopped < 100  # of 15,000


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_simulation_is_not_copied_in_part(how):
    with pytest.raises(UnsupportedError, match="keep the trajectories"):
        how(Simulation(quad_grid(2, 2, size=8.0, device="cpu")))
