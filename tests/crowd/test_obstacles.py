"""A moving obstacle: cells get finer along its rim, it is blocked where nobody is, and everything comes back."""

from __future__ import annotations

import numpy as np
import pytest

from cells.verifier import check_map
from tangere.cells.maps import quad_grid
from tangere.cells.registration import Density
from tangere.crowd import Obstacle, Simulation
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
            obstacle.settle()
            cells = simulation.cells
            assert not np.isin(cells, obstacle.cells).any()
        check_map(simulation.map)
        blocked = np.flatnonzero(simulation.map.arrays.obstacle.numpy())
        assert sorted(blocked) == sorted(obstacle.cells)
        away = np.linalg.norm(simulation.map.numpy("centre")[blocked] - obstacle.centre, axis=1)
        assert len(blocked) > 10
        assert (away <= 4.0).all()
    obstacle.remove()
    simulation.step(200)
    assert not simulation.map.arrays.obstacle.numpy().any()
    assert len(simulation.map.leaves) < 80  # what it had split has merged again


def test_bad_obstacles_are_refused():
    with pytest.raises(InputError, match="radius"):
        Obstacle(scene(), [15.0, 15.0], 0.0)
