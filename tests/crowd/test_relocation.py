"""Agents stay where they are while cells split, merge and bend, and are put where they are told to be."""

from __future__ import annotations

import numpy as np
import pytest

from cells.test_surface import weights_in
from oracles.families.cell_operations import mergeable
from tangere.cells.generate import map_of_mesh, quad_grid
from tangere.cells.maps import CellMap, merge, split
from tangere.cells.tracking import on_surface
from tangere.crowd import Bubbles, Simulation
from tangere.runtime import InputError
from tangere.shape.generate import bumpy_sphere
from tangere.shape.mesh import Mesh


def hills():
    """Quadrilaterals of 5 m, bent by up to a metre."""
    grid = quad_grid(6, 6, size=5.0, device="cpu")
    x = grid.positions.copy()
    x[:, 2] = 3 * np.sin(x[:, 0] / 4) * np.cos(x[:, 1] / 5)
    return CellMap.from_polygons(x, grid.numpy("origin")[grid.darts].reshape(-1, 4), device="cpu")


def blob():
    mesh = bumpy_sphere(320)
    size = 30.0 / np.abs(mesh.vertices).max()
    return map_of_mesh(Mesh(np.asarray(mesh.vertices) * size, mesh.faces), device="cpu")


def anywhere(map, count, rng):
    return on_surface(map, rng.choice(map.darts, count), rng.dirichlet([1, 1, 1], count))


def crowd(map, places):
    simulation = Simulation(map, behaviour=Bubbles(range=0.9), adaptive=None)
    simulation.add_points(places)
    simulation.prepare()
    return simulation


@pytest.mark.parametrize("ground", [hills, blob])
def test_points_of_a_surface_are_put_exactly_where_they_are(ground, rng):
    map = ground()
    places = anywhere(map, 300, rng)
    simulation = crowd(map, places)
    np.testing.assert_allclose(simulation.positions, places, atol=1e-12 * np.abs(places).max())
    off = places + rng.normal(0, 0.05, places.shape)
    near = crowd(ground(), off).positions
    # No other point of the surface is nearer: nor are many random ones.
    sample = anywhere(map, 20_000, rng)
    away = np.linalg.norm(off[:, None] - sample[None, ::4], axis=2).min(axis=1)
    assert (np.linalg.norm(near - off, axis=1) <= away).all()


@pytest.mark.parametrize("ground", [hills, blob])
def test_agents_of_a_surface_come_back_exactly_when_what_was_split_is_merged(ground, rng):
    map = ground()
    simulation = crowd(map, anywhere(map, 300, rng))
    before = simulation.positions
    for turn in range(20):
        for _ in range(1 + turn % 2):
            split(map, rng.choice(map.leaves, len(map.leaves) // 2, replace=False))
            simulation.prepare()
            darts = simulation.points.by_number("dart")
            least, away = weights_in(map, simulation.positions, darts)
            assert (least > -1e-9).all()
            assert (away < 1e-9).all()
        while len(ready := mergeable(map)):
            merge(map, ready)
            simulation.prepare()
        np.testing.assert_allclose(simulation.positions, before, atol=1e-9)


def test_agents_of_flat_triangles_of_a_surface_do_not_move_when_these_split(rng):
    map = blob()
    simulation = crowd(map, anywhere(map, 300, rng))
    before = simulation.positions
    split(map, map.leaves)
    split(map, map.leaves)
    simulation.prepare()
    np.testing.assert_allclose(simulation.positions, before, atol=1e-12 * 30)


def test_points_far_off_a_surface_are_refused():
    simulation = Simulation(blob(), behaviour=Bubbles(range=0.9))
    with pytest.raises(InputError, match=r"point 1 is .* m off the surface"):
        simulation.add_points([simulation.map.numpy("centre")[0], [100.0, 100.0, 100.0]])
    with pytest.raises(InputError, match="off the surface"):
        simulation.add_points([[0.0, 0.0, 0.0]])


def test_agents_behind_walls_are_found_when_their_darts_are_used_for_other_cells():
    map = quad_grid(9, 1, size=6.0, device="cpu")
    map.block("cell", [4])
    simulation = Simulation(map, adaptive=None)
    split(map, [0])
    simulation.add_points([[4.0, 4.0], [1.0, 1.0], [5.0, 1.0]])
    simulation.run(steps=3)
    before = simulation.positions
    merge(map, [0])
    split(map, [8])  # takes the places of darts that are gone
    simulation.prepare()
    assert simulation.cells.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(simulation.positions, before)


def test_an_agent_that_a_shrinking_map_leaves_outside_is_told():
    map = quad_grid(4, 4, size=3.0, device="cpu")
    simulation = Simulation(map, adaptive=None)
    simulation.add_points([[1.0, 1.0], [11.0, 11.0]])
    map.move(map.positions * 0.75)
    with pytest.raises(InputError, match=r"agent at \[11.0, 11.0, 0.0\] is not in the map"):
        simulation.step()
