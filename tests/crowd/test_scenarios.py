"""Every scenario of the thesis runs: nobody leaves the ground or gets lost, and crowds get where they want to."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.cells.maps import CellMap
from tangere.crowd import scenarios
from tangere.runtime import InputError

FLAT = {
    "corridor": lambda: scenarios.corridor(120, 6, length=60.0, width=24.0, device="cpu"),
    "circle": lambda: scenarios.circle(80, 8, size=80.0, device="cpu"),
    "city": lambda: scenarios.city(60, 2, blocks=2, device="cpu"),
    "snake": lambda: scenarios.snake(150, 1, device="cpu"),
}
CURVED = {
    "planet": lambda: scenarios.planet(80, 4, device="cpu"),
    "knot": lambda: scenarios.knot(80, 4, device="cpu"),
    "potatoid": lambda: scenarios.potatoid(80, 4, device="cpu"),
}


def off_ground(map: CellMap, points, darts):
    """How far points are from the plane of a triangle of their dart's cell, and the least of their weights in it.

    In the plane that triangle is any of the cell, on a surface that of the dart.
    """
    if map.flat:
        around, where = map.darts, map.numpy("cell")
        found = []
        for point, cell in zip(points, where[darts], strict=True):
            own = around[where[around] == cell]
            found.append(_weights(map, np.broadcast_to(point, (len(own), 3)), own)[1].max())
        return np.abs(points[:, 2]), np.array(found)
    return _weights(map, points, darts)


def _weights(map: CellMap, points, darts):
    c = map.numpy("centre")[map.numpy("cell")[darts]]
    s, e = (map.positions[map.numpy("origin")[d]] for d in (darts, map.numpy("phi1")[darts]))
    n = np.cross(s - c, e - c)
    area = (n * n).sum(axis=1)
    weights = [(np.cross(b - a, points - a) * n).sum(axis=1) / area for a, b in ((c, s), (s, e), (e, c))]
    return np.abs(((points - c) * n).sum(axis=1)) / np.sqrt(area), np.min(weights, axis=0)


@pytest.mark.feature("F-P-61", "F-P-46")
@pytest.mark.parametrize("name", [*FLAT, *CURVED])
def test_every_scenario_runs_and_everybody_stays_on_the_ground(name):
    simulation = {**FLAT, **CURVED}[name]()
    start = simulation.positions
    for _ in range(4):
        simulation.run(steps=30)
        for points, darts in (
            (simulation.positions, simulation.points.by_number("dart")),
            (simulation.bodies.positions, simulation.bodies.arrays.dart.numpy()),
        ):
            assert np.isfinite(points).all()
            away, least = off_ground(simulation.map, points, darts)
            assert away.max() < 1e-9
            assert least.min() > -1e-6
            assert not simulation.map.arrays.obstacle.numpy()[simulation.map.arrays.cell.numpy()[darts]].any()
    walked = np.linalg.norm(simulation.positions - start, axis=1)
    assert np.median(walked) > (0.05 if name == "snake" else 1.0)


@pytest.mark.feature("F-P-66")
def test_a_crowd_in_space_changes_sides_of_its_sphere_while_cubes_split_and_merge():
    points = scenarios.coulomb_sphere(60)
    away = np.linalg.norm(points[:, None] - points[None], axis=2) + 9 * np.eye(60)
    random = np.random.default_rng(0).normal(size=(60, 3))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    random_away = np.linalg.norm(random[:, None] - random[None], axis=2) + 9 * np.eye(60)
    assert away.min() > 3 * random_away.min()  # the charges have pushed each other apart
    simulation = scenarios.swarm(500, device="cpu")  # as many as in the thesis, in a cube of 64 m
    start = simulation.positions
    np.testing.assert_allclose(np.linalg.norm(start - 32.0, axis=1), 28.0)
    simulation.run(steps=30 * 66)
    assert np.isfinite(simulation.arrived).mean() > 0.95
    assert np.median(np.linalg.norm(simulation.positions - (64.0 - start), axis=1)) < 1.0
    assert min(simulation.operations) > 0
    fast = simulation.points.traits["speed"] > 2.0
    assert np.median(simulation.arrived[fast]) < np.median(simulation.arrived[~fast])


def test_too_many_agents_for_the_room_are_refused():
    with pytest.raises(InputError, match="do not fit"):
        scenarios.corridor(100_000, 0, device="cpu")
    with pytest.raises(InputError, match="multiples"):
        scenarios.city(10, street=7.0, device="cpu")
