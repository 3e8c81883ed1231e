"""Splits and merges: laws after every operation, sizes kept, everything reversible, every level reachable."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import Snapshot, check_map, check_rings
from oracles.families.cell_operations import GRIDS, merge_all, mergeable, random_operation
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import CellMap, ancestors, level_links, merge, split
from tangere.cells.maps.refinement.sequential import operations_of
from tangere.cells.tracking import locate
from tangere.published.pitiot_trackers import explicit_levels
from tangere.runtime import InputError, UnsupportedError


@pytest.mark.feature("F-P-10", "F-P-11")
@pytest.mark.parametrize("jitter", [0.0, 0.15])
@pytest.mark.parametrize("name", GRIDS)
def test_random_splits_and_merges_keep_every_law_and_come_back(name, jitter, rng, device, effort):
    make, _, size, deepest = GRIDS[name]
    map = make(jitter=jitter, device=device)
    darts, vertices, before = map.darts, map.vertex_count, Snapshot(map)
    warped = jitter > 0 and map.dimension == 3
    for _ in range(effort(60 if map.dimension == 2 else 25)):
        random_operation(map, rng, deepest)
        check_map(map, area=None if warped else size)
        check_rings(map)
    merge_all(map)
    check_map(map, area=size, tolerance=1e-9 if warped else 1e-12)
    # The same darts, and each of them in the same cell with the same simplex.
    assert np.array_equal(map.darts, darts)
    assert map.vertex_count == vertices
    after = Snapshot(map)
    assert np.array_equal(after.cell[darts], before.cell[darts])
    for name in ("phi1", "origin"):
        assert np.array_equal(getattr(after, name)[darts], getattr(before, name)[darts])
    np.testing.assert_allclose(after.corners, before.corners, atol=1e-14)


@pytest.mark.feature("F-P-9")
@pytest.mark.parametrize("name", GRIDS)
def test_every_level_is_a_map_and_level_zero_is_the_first_mesh(name, rng):
    make, _, _, deepest = GRIDS[name]
    map = make()
    first = {key: map.numpy(key) for key in ("phi1", "phi2", "phi3")}
    count = map.dart_count
    for _ in range(12):
        random_operation(map, rng, deepest)
    level = map.numpy("tag") & 255
    explicit = explicit_levels(map)
    for k in range(map.levels.max() + 1):
        links = level_links(map, k)
        here = map.darts[level[map.darts] <= k]
        assert np.array_equal(np.sort(links.phi1[here]), here)  # a permutation
        for phi in (links.phi2, links.phi3):
            inside = here[phi[here] >= 0]
            assert np.array_equal(phi[phi[inside]], inside)
        inside = here[links.phi3[here] >= 0]
        assert np.array_equal(links.phi1[links.phi3[links.phi1[inside]]], links.phi3[inside])
        assert np.array_equal(explicit.phi1(here, k), links.phi1[here])
        assert np.array_equal(explicit.phi2(here, k), links.phi2[here])
        assert np.array_equal(explicit.phi3(here, k), links.phi3[here])
    level0 = level_links(map, 0)
    for key in first:
        assert np.array_equal(getattr(level0, key)[:count], first[key])


@pytest.mark.parametrize("name", GRIDS)
def test_independent_sets_make_the_same_cells_as_one_after_the_other(name, rng, device):
    make, _, size, deepest = GRIDS[name]
    one, other = make(device="cpu"), make(device=device)
    for step in range(8):
        for map, method in ((one, "sequential"), (other, "sets")):
            choice = np.random.default_rng(step)
            centres = map.arrays.centre.numpy()
            ready = mergeable(map)
            if step % 4 == 3:
                ready = ready[np.lexsort(np.round(centres[ready], 9).T)]
                merge(map, choice.choice(ready, max(1, len(ready) // 2), replace=False), method=method)
            else:
                leaves = map.leaves[map.levels[map.leaves] < deepest]
                leaves = leaves[np.lexsort(np.round(centres[leaves], 9).T)]
                split(map, choice.choice(leaves, -(-len(leaves) // 3), replace=False), method=method)
            check_map(map, area=size)
            check_rings(map)
        a, b = (np.round(Snapshot(m).corners.reshape(m.dart_count, -1), 9) for m in (one, other))
        assert np.array_equal(np.unique(a, axis=0), np.unique(b, axis=0))
        assert one.dart_count == other.dart_count


def test_a_map_on_the_host_is_the_same_and_comes_back(rng, device):
    map = GRIDS["hexahedra"][0](device=device)
    split(map, map.leaves[::3], balanced=True)
    before, rows, home = map.snapshot(), map.rings.rows(map.leaves), map.device
    with map.on_host():
        assert map.device.is_cpu
        assert map.arrays.phi3.device.is_cpu
        np.testing.assert_array_equal(map.rings.rows(map.leaves), rows)
        check_map(map)
    assert map.device == home == map.arrays.phi3.device == map.rings.table.cells.device
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(map.arrays, name).numpy(), array.numpy())
    assert map.bytes > sum(array.size for array in before.values())


@pytest.mark.parametrize("name", ["quads", "triangles", "hexahedra"])
def test_balance_keeps_neighbours_within_one_level(name, rng):
    make, _, size, deepest = GRIDS[name]
    map = make()
    for _ in range(10):
        random_operation(map, rng, deepest, balanced=True)
        check_map(map, area=size)
        for c in map.leaves:
            assert (np.abs(map.levels[map.rings.row(c)] - map.levels[c]) <= 1).all()
    if name == "quads":
        assert max(len(map.rings.row(c)) for c in map.leaves) <= 12


def test_deep_unbalanced_refinement_widens_the_ring_table():
    map = quad_grid(2, 1)
    for _ in range(5):
        finest = map.leaves[map.levels[map.leaves] == map.levels.max()]
        near = finest[np.abs(map.numpy("centre")[finest, 0] - 1) < 1]
        split(map, near[map.numpy("centre")[near, 0] < 1] if map.levels.max() else [0])
    check_map(map, area=2.0)
    check_rings(map)
    assert len(map.rings.row(1)) == 32


def test_children_know_their_parent_and_ancestors_are_found():
    map = hex_grid(1, 1, 1)
    split(map, [0])
    assert len(map.children(0)) == 8
    split(map, [map.children(0)[3]])
    grandchildren = map.children(map.children(0)[3])
    assert (ancestors(map, 0)[grandchildren] == 0).all()
    assert (ancestors(map, 1)[grandchildren] == map.children(0)[3]).all()


def test_cells_that_cannot_be_split_or_merged_are_refused():
    map = quad_grid(2, 2)
    split(map, [0])
    with pytest.raises(InputError, match="cell 0 is not a leaf"):
        split(map, [0])
    with pytest.raises(InputError, match="cell 1 is not a cell whose children"):
        merge(map, [1])
    with pytest.raises(InputError, match="cells: number 0 is 99999, but cells are numbered 0 to"):
        split(map, [99999])
    split(map, [map.children(0)[0]])
    with pytest.raises(InputError, match="cell 0 is not a cell whose children"):
        merge(map, [0])


@pytest.mark.parametrize("method", ["sequential", "sets"])
def test_a_split_that_is_refused_leaves_everything_as_it_was(method):
    angle = 2 * np.pi * np.arange(40) / 40
    round_one = np.c_[5 + np.cos(angle), np.sin(angle)]
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], *round_one]
    bent = hex_grid(1, 1, 1)
    x = bent.positions.copy()
    x[np.argmax(x.sum(axis=1))] = 0.45
    bent.move(x)
    for map, message in (
        (CellMap.from_polygons(corners, [[0, 1, 2, 3], list(range(4, 44))]), "cell 1 has too many corners"),
        (bent, "would not be star-shaped: .* to be split"),
    ):
        before, darts, leaves = Snapshot(map).corners, map.darts, map.leaves
        with pytest.raises(UnsupportedError, match=message):
            split(map, leaves, method=method)
        assert np.array_equal(map.leaves, leaves)
        assert np.array_equal(map.darts, darts)
        np.testing.assert_allclose(Snapshot(map).corners, before, atol=1e-14)
        check_map(map)
        check_rings(map)


def test_a_balanced_split_that_is_refused_takes_back_the_splits_before_it():
    angle = 2 * np.pi * np.arange(1, 40) / 40  # a polygon of 41 corners beside two squares
    arc = np.c_[2 + 0.5 * np.sin(angle / 2), angle / (2 * np.pi)]
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], [2, 0], [2, 1], *arc, [-1, 0], [-1, 1]]
    map = CellMap.from_polygons(corners, [[0, 1, 2, 3], [45, 0, 3, 46], [1, 4, *range(6, 45), 5, 2]])
    split(map, [0])
    leaves = map.leaves
    with pytest.raises(UnsupportedError, match="too many corners"):
        split(map, map.children(0), balanced=True)  # cell 1 first, then cell 2
    assert np.array_equal(map.leaves, leaves)
    check_map(map)
    check_rings(map)


def test_a_merge_that_is_refused_leaves_everything_as_it_was():
    map = CellMap.from_polygons([[0, 0], [4, 0], [2, 3]], [[0, 1, 2]])
    split(map, [0])
    # Every part is counter-clockwise, but the corners alone are not.
    there = {(2, 3): (2, -0.5), (2, 0): (2, -3), (3, 1.5): (3, -1.2), (1, 1.5): (1, -1.2)}
    map.move([[*there.get((x, y), (x, y)), 0] for x, y, _ in map.positions.tolist()])
    children, before = map.children(0), Snapshot(map).corners
    with pytest.raises(UnsupportedError, match="star-shaped"):
        merge(map, [0])
    assert map.children(0) == children
    assert np.array_equal(Snapshot(map).corners, before)
    check_map(map)
    check_rings(map)
    split(map, children)
    check_map(map)


def test_cells_are_not_split_beyond_what_their_coordinates_can_tell():
    map = quad_grid(2, 2)
    assert map.level_limit == 30
    map.move(map.positions + [1e7, 0, 0])
    point = [[1e7 + 0.7, 0.3]]
    for _ in range(16):
        split(map, locate(map, point).cell)
    check_map(map)
    with pytest.raises(InputError, match="not a leaf below level 16"):
        split(map, locate(map, point).cell)


def turns_inwards(map) -> bool:
    """Whether a cell of a planar map has a corner of more than 180 degrees."""
    d, origin, phi1, phi_1 = map.darts, map.numpy("origin"), map.numpy("phi1"), map.numpy("phi_1")
    before, here, after = (map.positions[origin[x]] for x in (phi_1[d], d, phi1[d]))
    return bool((np.cross(here - before, after - here)[:, 2] < -1e-9).any())


@pytest.mark.parametrize("corner", [3.0, 2.4])
def test_a_map_knows_whether_its_cells_are_convex_whatever_is_split_and_merged(corner, rng, device):
    corners = [[0, 0], [2, 0], [2, 2], [0, 2], [4, 0], [corner, 1], [4, 2]]
    map = CellMap.from_polygons(corners, [[0, 1, 2, 3], [1, 4, 5, 2], [2, 5, 6]], device=device)
    assert map.has_convex_cells == (corner == 3.0)
    for _ in range(30):
        random_operation(map, rng, 3)
        assert map.has_convex_cells != turns_inwards(map)
    merge_all(map)
    bent = map.positions.copy()
    bent[5, 0] = 2.4 if corner == 3.0 else 3.0  # the other way round
    map.move(bent)
    for _ in range(10):
        random_operation(map, rng, 3)
        assert map.has_convex_cells != turns_inwards(map)


@pytest.mark.slow
@pytest.mark.feature("F-P-37")
def test_three_dimensional_maps_survive_many_random_operations(rng, effort):
    map = hex_grid(2, 2, 2, jitter=0.2)
    darts = map.dart_count
    for _ in range(effort(300)):
        random_operation(map, rng, 4)
        check_map(map)
        check_rings(map)
    merge_all(map)
    assert map.dart_count == darts


@pytest.mark.parametrize("name", GRIDS)
def test_operations_say_which_cells_they_touched_and_are_packed_once(name, rng):
    make, _, _, deepest = GRIDS[name]
    map = make(jitter=0.1, device="cpu")
    map.reserve(40_000, 8_000, 4_000)
    packed = None
    for _ in range(20):
        before = {int(c): frozenset(map.rings.row(c).tolist()) for c in map.leaves}
        random_operation(map, rng, deepest)
        after = {int(c): frozenset(map.rings.row(c).tolist()) for c in map.leaves}
        changed = {c for c in before.keys() | after.keys() if before.get(c) != after.get(c)}
        operations = operations_of(map)
        assert changed <= set(operations.touched.tolist())
        assert len(set(operations.touched.tolist())) == len(operations.touched)
        assert packed is None or packed is operations._launch
        packed = operations._launch
