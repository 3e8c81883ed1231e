"""Who is near: rings, radius and nearest, against all pairs; and cells that adapt to where points are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from oracles.cell_maps import check_map, check_registration
from oracles.families.cell_operations import GRIDS, inside
from tangere.cells import Density
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import ring
from tangere.cells.registration import NearPoint, Registration, adapt, in_ring, in_ring_at, nearest, pairs_within
from tangere.runtime import InputError


def clustered(rng, map, size, count):
    points = inside(rng, map, size, count)
    half = count // 2
    points[:half] = np.clip(size / 3 + rng.normal(0, 0.05 * size, (half, 3)), 0.01, size - 0.01)
    points[:, 2] *= map.dimension == 3
    return points


def adapted(name, rng, count=300, **options):
    make, size, _, deepest = GRIDS[name]
    map = make(jitter=0.1 * (name != "tetrahedra"), **options)
    registration = Registration(map, clustered(rng, map, size, count))
    for _ in range(3):
        adapt(registration, Density(), level_limit=deepest)
    return registration, size


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("radius", [0.0, 0.05, 0.3, 1.5])
def test_everyone_within_a_radius_is_found(name, radius, rng, device):
    registration, size = adapted(name, rng, device=device)
    found = pairs_within(registration, radius * size / 3)
    tree = cKDTree(registration.points).query_pairs(radius * size / 3, output_type="ndarray")
    assert np.array_equal(found, tree[np.lexsort((tree[:, 1], tree[:, 0]))])


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("count", [1, 6, 299, 320])
def test_the_nearest_are_found_in_order(name, count, rng, device):
    registration, _ = adapted(name, rng, device=device)
    numbers, distances = nearest(registration, count)
    expected, _ = cKDTree(registration.points).query(registration.points, k=min(count, 299) + 1)
    np.testing.assert_allclose(distances[:, :299], expected[:, 1:], atol=1e-12)
    points = registration.points
    for k in range(min(count, 299)):
        np.testing.assert_allclose(np.linalg.norm(points[numbers[:, k]] - points, axis=1), distances[:, k], atol=1e-12)
    assert (numbers[:, 299:] == -1).all()


def test_the_ring_of_a_point_holds_everyone_nearer_than_a_cell(rng):
    map = quad_grid(8, 8)
    registration = Registration(map, inside(rng, map, 8, 200))
    apart = np.linalg.norm(registration.points[:, None] - registration.points[None], axis=2)
    for i in range(200):
        found = in_ring(registration, "points", i)
        assert i not in found
        assert set(np.flatnonzero(apart[i] < 1)) - {i} <= set(found.tolist())


def test_the_ring_on_a_coarser_level_sees_further(rng):
    registration, _ = adapted("quads", rng)
    map = registration.map
    deepest = map.leaves[np.argmax(map.levels[map.leaves])]
    seen = [set(in_ring_at(registration, "points", int(deepest), k).tolist()) for k in (0, 1, 2)]
    assert seen[2] <= seen[1] <= seen[0]
    cells = np.append(ring(map, [deepest], level=0), 0)
    assert len(seen[0]) > len(seen[2]) or len(cells) == 9


@pytest.mark.feature("F-P-30")
@pytest.mark.parametrize("name", ["quads", "triangles", "hexahedra"])
def test_density_bounds_how_many_points_a_cell_holds(name, rng, device):
    make, size, _, _ = GRIDS[name]
    map = make(device=device)
    count = 600 if map.dimension == 2 else 200
    registration = Registration(map, clustered(rng, map, size, count))
    for _ in range(8):
        adapt(registration, Density(split=8, merge=4))
    check_map(map)
    check_registration(registration, near=False)
    assert np.bincount(registration.cells).max() <= 8
    fixed = Registration(make(device=device), registration.points)
    assert np.bincount(fixed.cells).max() > count // 10
    for c in map.leaves:
        assert (np.abs(map.levels[map.rings.row(c)] - map.levels[c]) <= 1).all()
    registration.move(np.tile(registration.points[:1], (count, 1)))
    before = len(map.leaves)
    for _ in range(9):
        adapt(registration, Density(split=8, merge=4), level_limit=3)
    assert len(map.leaves) < before  # empty cells went back
    check_registration(registration, near=False)


def test_a_settled_crowd_does_not_make_cells_flicker(rng):
    registration, _ = adapted("quads", rng, 200)
    for _ in range(6):
        adapt(registration, Density())
    merged, split = adapt(registration, Density())
    assert len(merged) == len(split) == 0


def test_a_budget_grants_the_most_crowded_cells_first(rng):
    map = quad_grid(3, 3)
    registration = Registration(map, clustered(rng, map, 3, 200))
    most = np.argsort(-np.bincount(registration.cells, minlength=9), kind="stable")[:2]
    _, split = adapt(registration, Density(), budget=2)
    assert sorted(split) == sorted(most)


def test_a_budget_does_not_starve_merges_of_those_that_may_not_merge_yet():
    map = quad_grid(8, 8)
    registration = Registration(map, [[0.5, 0.5]])
    for x in np.linspace(1.0, 7.0, 60):
        adapt(registration, NearPoint([x, 4.0], 0.4, 4), budget=4)
    along = len(map.leaves)
    for _ in range(60):
        adapt(registration, NearPoint([7.0, 4.0], 0.4, 4), budget=4)
    settled = len(map.leaves)
    # What is left is what the same tip needs that never was elsewhere.
    fresh = Registration(quad_grid(8, 8), [[0.5, 0.5]])
    for _ in range(8):
        adapt(fresh, NearPoint([7.0, 4.0], 0.4, 4))
    assert settled <= 1.5 * len(fresh.map.leaves)
    assert along <= 3 * settled


@pytest.mark.parametrize("dimension", [2, 3])
def test_cells_near_a_tip_are_fine_and_grow_back_behind_it(dimension, rng):
    map = quad_grid(4, 4) if dimension == 2 else hex_grid(2, 2, 2)
    size = 4 if dimension == 2 else 2
    registration = Registration(map, inside(rng, map, size, 20))
    sizes = []
    for x in np.linspace(0.3, 0.8, 4) * size:
        tip = np.array([x, 0.4 * size, 0.45 * size * (dimension == 3)])
        for _ in range(3):
            adapt(registration, NearPoint(tip, 0.1 * size, 3), level_limit=3)
        from tangere.cells.tracking import locate

        assert map.levels[locate(map, tip[None]).cell[0]] == 3
        sizes.append(len(map.leaves))
    check_map(map)
    check_registration(registration, near=False)
    assert max(sizes) < 3 * min(sizes)


def test_any_function_can_be_a_criterion():
    map = quad_grid(4, 4)
    registration = Registration(map, [[0.5, 0.5]])

    def left(state):
        x = state.map.arrays.centre.numpy()[:, 0]
        return 1.0 * (x < 1), np.zeros(len(x))

    adapt(registration, left, level_limit=1)
    assert map.levels[map.leaves][map.numpy("centre")[map.leaves, 0] < 1].min() == 1
    with pytest.raises(InputError, match="2 merge <= split"):
        Density(split=4, merge=3)
    with pytest.raises(InputError, match="radius"):
        pairs_within(registration, -1.0)
    with pytest.raises(InputError, match="at least 1"):
        nearest(registration, 0)
