"""A moving obstacle: cells get finer along its rim, it is blocked where nobody is, and everything comes back."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import check_map
from tangere.cells import Density
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import split
from tangere.crowd import Bubbles, Obstacle, Simulation, box
from tangere.runtime import InputError


def scene():
    simulation = Simulation(quad_grid(5, 5, size=6.0, device="cpu"), adaptive=Density(8, 4), adapt_every=5)
    place = np.stack(np.meshgrid(np.linspace(2, 28, 9), np.linspace(2, 28, 9)), axis=-1).reshape(-1, 2)
    simulation.add_points(place, goals=place[::-1].copy())
    return simulation


def test_an_obstacle_refines_the_map_keeps_agents_out_and_is_forgotten_where_it_leaves():
    simulation = scene()
    obstacle = Obstacle(simulation, [15.0, 15.0], 4.0)
    assert simulation.map.levels.max() == simulation.levels
    for way in ([15.0, 15.0], [15.0, 15.0], [18.0, 12.0], [20.0, 10.0]):
        obstacle.move(way)
        for _ in range(20):
            simulation.step()
            obstacle.block_covered_cells()
            cells = simulation.cells
            assert not np.isin(cells, obstacle.cells).any()
        check_map(simulation.map)
        blocked = np.flatnonzero(simulation.map.arrays.obstacle.numpy())
        assert sorted(blocked) == sorted(obstacle.cells)
        away = np.linalg.norm(simulation.map.numpy("centre")[blocked] - obstacle.centre, axis=1)
        assert len(blocked) > 10
        assert (away <= 4.0).all()
    obstacle.remove()
    simulation.run(steps=200)
    assert not simulation.map.arrays.obstacle.numpy().any()
    assert len(simulation.map.leaves) < 80  # what it had split has merged again


def open_doors(map):
    """Darts that lead into an obstacle, or out of it, and are no walls."""
    across = map.numpy("phi3" if map.dimension == 3 else "phi2")[map.darts]
    cell, solid = map.numpy("cell"), map.numpy("obstacle")
    inner = map.darts[across >= 0]
    beside = solid[cell[inner]] | solid[cell[across[across >= 0]]]
    return inner[(beside != 0) & (map.numpy("tag")[inner] & 4096 == 0)]


@pytest.mark.parametrize("seed", [0, 3])
def test_nobody_gets_into_an_obstacle_that_is_dragged_about(seed):
    simulation, random = scene(), np.random.default_rng(seed)
    place = np.array([15.0, 15.0])
    obstacle = Obstacle(simulation, place, 4.0)
    for _ in range(12):
        place = np.clip(place + random.uniform(-2, 2, 2), 4, 26)
        obstacle.move(place)
        assert len(open_doors(simulation.map)) == 0
        for _ in range(10):
            simulation.step()
            assert not simulation.map.numpy("obstacle")[simulation.cells].any()
        assert len(open_doors(simulation.map)) == 0
        blocked = simulation.map.leaves[simulation.map.numpy("obstacle")[simulation.map.leaves] != 0]
        assert sorted(blocked) == sorted(obstacle.cells)


def test_in_space_an_obstacle_that_is_dragged_leaves_no_doors_open(rng):
    simulation = Simulation(hex_grid(4, 4, 4, size=4.0, device="cpu"), adaptive=Density(16, 6))
    simulation.add_points(rng.uniform(1, 15, (60, 3)), goals=rng.uniform(1, 15, (60, 3)))
    obstacle = Obstacle(simulation, [8.0, 8.0, 8.0], 3.0)
    for _ in range(4):
        obstacle.move(rng.uniform(5, 11, 3))
        simulation.run(steps=5)
        assert len(obstacle.cells) > 4
        assert len(open_doors(simulation.map)) == 0
        assert not simulation.map.numpy("obstacle")[simulation.cells].any()


def test_what_two_obstacles_cover_stays_blocked_when_one_is_taken_away():
    simulation = Simulation(quad_grid(5, 5, size=6.0, device="cpu"))
    first, second = Obstacle(simulation, [15.0, 15.0], 4.0), Obstacle(simulation, [17.0, 15.0], 4.0)
    first.remove()
    map = simulation.map
    solid = map.leaves[map.numpy("obstacle")[map.leaves] != 0]
    far = np.linalg.norm(map.numpy("centre")[map.leaves] - second.centre, axis=1)
    assert sorted(solid) == sorted(map.leaves[far <= 4.0]) == sorted(second.cells)
    assert len(open_doors(map)) == 0
    second.remove()
    assert not map.numpy("obstacle")[map.leaves].any()


def test_an_obstacle_and_its_rim_are_settled_by_steps_and_counted():
    simulation = Simulation(quad_grid(5, 5, size=6.0, device="cpu"), adaptive=None)
    simulation.add_points([[18.7, 15.2]], goals=[[28.0, 15.0]])  # within the rim, on its way out
    obstacle = Obstacle(simulation, [15.0, 15.0], 4.0)
    before = len(obstacle.cells)
    assert simulation.operations[1] > 0
    simulation.run(8.0)
    assert len(obstacle.cells) > before
    assert simulation.positions[0, 0] > 19.0


def test_no_cell_with_a_body_in_it_is_blocked():
    simulation = Simulation(quad_grid(10, 10, size=3.0, device="cpu"), adaptive=None, levels=0)
    simulation.add_bodies(box(12.0, 6.0), [[15.0, 15.0]], headings=[[1, 0]])
    simulation.step()
    obstacle = Obstacle(simulation, [15.0, 15.0], 2.2)  # covers four cells, all inside the box
    assert len(obstacle.cells) == 0
    centre = simulation.map.numpy("centre")
    inner = int(np.argmin(np.linalg.norm(centre[:, :2] - 16.5, axis=1)))
    edge = int(np.argmin(np.linalg.norm(centre[:, :2] - [10.5, 16.5], axis=1)))
    for cell in (inner, edge):
        with pytest.raises(InputError, match=f"agents in cell {cell}"):
            simulation.block([cell])


def test_a_cell_that_was_split_is_blocked_and_freed_as_a_whole():
    simulation = Simulation(quad_grid(5, 5, size=6.0, device="cpu"), adaptive=None)
    simulation.block([12])
    split(simulation.map, [12])
    simulation.block([12], blocked=False)
    assert not simulation.map.numpy("obstacle")[simulation.map.leaves].any()
    simulation.block([12])
    assert simulation.map.numpy("obstacle")[simulation.map.children(12)].all()
    for wrong in ([99999], [-1], [1.5]):
        with pytest.raises(InputError, match="cells"):
            simulation.block(wrong)


def test_cells_blocked_in_the_map_itself_are_walls_from_the_next_step_on():
    simulation = Simulation(quad_grid(10, 3, size=3.0, device="cpu"), behaviour=Bubbles(noise=0.0), adaptive=None)
    simulation.add_points([[2.0, 4.5]], goals=[[28.0, 4.5]])
    simulation.run(steps=10)
    column = np.flatnonzero(np.abs(simulation.map.numpy("centre")[:, 0] - 16.5) < 1)
    simulation.map.block("cell", column)
    simulation.run(steps=30 * 20)
    assert 13.5 < simulation.positions[0, 0] < 15.0 - 0.1  # walls push before they stop
    simulation.map.block("cell", column, blocked=False)
    simulation.run(steps=30 * 15)
    assert simulation.positions[0, 0] > 27.0


def test_a_crowd_does_not_merge_walls_away():
    map = quad_grid(4, 4, size=6.0, device="cpu")
    split(map, map.leaves)
    origin, phi1, x = map.numpy("origin"), map.numpy("phi1"), map.positions[:, 0]
    map.block("dart", [d for d in map.darts if x[origin[d]] == 9 == x[origin[phi1[d]]]])
    simulation = Simulation(map)
    y = np.linspace(3, 21, 5)
    simulation.add_points(np.c_[np.full(5, 4.0), y], goals=np.c_[np.full(5, 20.0), y])
    simulation.run(steps=600)
    assert simulation.operations[0] > 0
    assert (simulation.positions[:, 0] <= 9.0).all()


def test_an_obstacle_that_was_taken_away_stays_away():
    simulation = scene()
    obstacle = Obstacle(simulation, [15.0, 15.0], 4.0)
    obstacle.remove()
    obstacle.remove()
    for act in (lambda: obstacle.move([10.0, 10.0]), obstacle.block_covered_cells):
        with pytest.raises(InputError, match="taken away"):
            act()
    assert not simulation.map.numpy("obstacle")[simulation.map.leaves].any()


def test_bad_obstacles_are_refused():
    with pytest.raises(InputError, match="radius"):
        Obstacle(scene(), [15.0, 15.0], 0.0)
    for centre in ([1, 2, 3, 4], [np.nan, 1.0], [99.0, 1.0]):
        simulation = scene()
        with pytest.raises(InputError, match="centre"):
            Obstacle(simulation, centre, 2.0)
        assert simulation.obstacles == []


def test_an_obstacle_that_has_settled_costs_nothing_in_a_large_map(monkeypatch):
    simulation = Simulation(quad_grid(40, 40, size=4.0, device="cpu"), adaptive=None)
    simulation.add_points([[150.0, 150.0]], goals=[[10.0, 150.0]])
    obstacle = Obstacle(simulation, (60.0, 60.0), 6.0)
    simulation.step()
    looked, covers = [], Obstacle._covers
    monkeypatch.setattr(Obstacle, "_covers", lambda self, cells: looked.append(len(cells)) or covers(self, cells))
    simulation.run(steps=20)
    assert looked == []
    obstacle.move((70.0, 60.0))
    simulation.step()
    assert max(looked) > 1000
