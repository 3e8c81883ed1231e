"""Crowds on surfaces and in the plane after each of many random operations: everybody is on the ground and listed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cells.test_surface import weights_in
from oracles.cell_maps import check_map
from oracles.families.cell_operations import mergeable
from tangere.cells import Density
from tangere.cells.maps import merge, split
from tangere.crowd import Bubbles
from tangere.crowd.scenarios import knot, planet, potatoid

SURFACES = {"planet": planet, "knot": knot, "potatoid": potatoid}


def check(simulation):
    """Agents are on the triangles of their darts, and the lists of cells are those of these darts."""
    map, c = simulation.map, simulation.points.arrays
    darts, cells = c.dart.numpy(), map.numpy("cell")[c.dart.numpy()]
    assert (map.numpy("tag")[darts] >= 0).all()
    size = np.ptp(map.positions, axis=0).max()
    least, away = weights_in(map, c.position.numpy(), darts)
    assert (least > -1e-9).all()
    assert (away < 1e-9 * size).all()
    start = c.start.numpy()
    listed = np.repeat(np.arange(len(start) - 1), np.diff(start))
    assert np.array_equal(listed, cells)
    assert sorted(c.number.numpy().tolist()) == list(range(len(simulation.points)))


def operate(simulation, rng, done):
    """One random operation; splits and merges are counted in `done`."""
    map = simulation.map
    what = rng.choice(["step", "adapt", "split", "merge", "add", "retarget"])
    if what == "step":
        simulation.step()
    elif what == "adapt":
        done["adapted"] += simulation.adapt()
    elif what == "split":
        leaves = map.leaves[(map.levels[map.leaves] < simulation.levels)]
        done["split"] += len(split(map, rng.choice(leaves, min(3, len(leaves)), replace=False), balanced=True))
    elif what == "merge":
        ready = mergeable(map)
        merged = merge(map, rng.choice(ready, min(3, len(ready)), replace=False), balanced=True)
        assert np.isin(merged, map.leaves).all()
        done["merged"] += len(merged)
    elif what == "add" and len(simulation.points) < 60:
        simulation.add_points(simulation.positions[:1] + rng.normal(0, 1e-3, 3), goals=simulation.positions[1:2])
    elif what == "retarget":
        simulation.retarget([0], simulation.positions[-1:])
    if what != "step":
        simulation.step()
    if what in ("split", "merge", "adapt"):
        check_map(map)


def run(name, count, rng):
    # Who looks less far may be in finer cells: those of these surfaces are split once at most.
    options = {"behaviour": Bubbles(range=0.65), "adaptive": Density(2, 1), "seed": 1, "device": "cpu"}
    simulation = SURFACES[name](40, 0, **options)
    assert simulation.levels == 1
    done = Counter()
    for _ in range(count):
        operate(simulation, rng, done)
        check(simulation)
    assert min(done["split"], done["merged"], done["adapted"], *simulation.operations) > 0


@pytest.mark.parametrize("name", SURFACES)
def test_agents_on_surfaces_are_listed_rightly_after_each_random_operation(name, rng, effort):
    run(name, effort(40), rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", SURFACES)
def test_agents_on_surfaces_are_listed_rightly_after_each_of_ten_thousand_operations(name, rng, effort):
    run(name, effort(10_000), rng)
