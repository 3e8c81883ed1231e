"""Things of every class in one map, and one map for everything."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.spatial
import warp as wp

from tangere.cells import Density
from tangere.cells.generate import quad_grid
from tangere.crowd import Simulation, box, deformable
from tangere.crowd.scenarios import swarm
from tangere.view import top_view


def ring_of(count, radius):
    angle = 2 * np.pi * np.arange(count) / count
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.feature("F-P-3")
def test_static_dynamic_rigid_deformable_and_dividing_things_live_in_one_map(rng):
    map = quad_grid(10, 10, size=3.0, device="cpu")
    simulation = Simulation(map, adaptive=Density(4, 2), adapt_every=1, seed=1)
    simulation.block([44])  # static: the cell from (12, 12) to (15, 15)
    start = np.stack([np.full(12, 4.0), np.linspace(11.5, 15.5, 12)], axis=1)
    simulation.add_points(start, goals=start + [20.0, 0.0])  # dynamic
    simulation.add_bodies(box(3.0, 1.0), [[6.0, 5.0]], headings=[[1, 0]], goals=[[24.0, 5.0]])  # rigid
    slug = deformable(ring_of(12, 1.2), alpha=0.3, beta_linear=0.7)
    simulation.add_bodies(slug, [[6.0, 28.5]], headings=[[1, 0]], goals=[[24.0, 24.0]], speed=2.0)
    rest = [np.linalg.norm(np.diff(simulation.bodies.outline(k), axis=0), axis=1) for k in (0, 1)]
    before, bent = simulation.bodies.positions, np.zeros(2)
    for _ in range(200):
        simulation.step()
        now = [np.linalg.norm(np.diff(simulation.bodies.outline(k), axis=0), axis=1) for k in (0, 1)]
        bent = np.maximum(bent, [np.abs(now[k] / rest[k] - 1.0).max() for k in (0, 1)])
        x = simulation.positions
        assert not ((x[:, :2] > 12.0) & (x[:, :2] < 15.0)).all(axis=1).any()  # nobody is in what is static
    assert (simulation.positions[:, 0] > 8.0).all()
    assert (np.linalg.norm(simulation.bodies.positions - before, axis=1) > 5.0).all()
    assert bent[0] < 0.02  # the box is rigid, the slug is pressed by the wall it starts beside
    assert bent[1] > 5 * bent[0]
    assert min(simulation.operations) > 0  # topology: cells were merged and split under way


@pytest.mark.feature("F-P-49")
def test_a_step_and_its_picture_use_the_map_and_no_other_structure(monkeypatch, tmp_path):
    def forbidden(*_, **__):
        raise AssertionError("a second spatial structure")

    plane = Simulation(quad_grid(8, 8, size=3.0, device="cpu"), adaptive=Density(4, 2), adapt_every=2)
    place = np.random.default_rng(0).uniform(1, 23, (150, 2))
    plane.add_points(place, goals=place[::-1].copy())
    plane.add_bodies(box(2.0, 1.0), [[12.0, 12.0]], headings=[[1, 0]], goals=[[20.0, 12.0]])
    space = swarm(100, device="cpu")
    for name in ("HashGrid", "Bvh", "Mesh"):
        monkeypatch.setattr(wp, name, forbidden)
    for name in ("cKDTree", "KDTree", "Delaunay"):
        monkeypatch.setattr(scipy.spatial, name, forbidden)
    for simulation in (plane, space):
        simulation.run(steps=10)
        assert simulation.observe().neighbours.shape == (len(simulation.points),)
    assert plane.operations[1] > 0
    top_view(plane, tmp_path / "plane.png")
    assert (tmp_path / "plane.png").stat().st_size > 1000
