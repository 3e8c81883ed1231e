"""The cells a segment crosses, against clipping it at every simplex."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import Snapshot, crossed_bounds, segment_cells
from oracles.families.cell_operations import GRIDS, inside, random_operation
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.tracking import crossed_cells, locate


def check_sets(map, a, b):
    offsets, cells, blocked = crossed_cells(map, a, b, locate(map, a).dart)
    assert not blocked.any()
    for i in range(len(a)):
        found = set(cells[offsets[i] : offsets[i + 1]].tolist())
        least, most = (segment_cells(map, a[i], b[i], slack) for slack in (1e-9, -1e-9))
        assert least <= found, f"segment {i} lacks {least - found}"
        assert found <= most, f"segment {i} does not cross {found - most}"


@pytest.mark.feature("F-P-23")
@pytest.mark.parametrize("jitter", [0.0, 0.15])
@pytest.mark.parametrize("name", GRIDS)
def test_crossed_sets_are_exact_on_adaptive_maps(name, jitter, rng, device, effort):
    make, size, _, deepest = GRIDS[name]
    map = make(jitter=jitter, device=device)
    for _ in range(4):
        random_operation(map, rng, deepest)
    a, b = (inside(rng, map, size, effort(150)) for _ in range(2))
    check_sets(map, a, b)


@pytest.mark.parametrize("name", GRIDS)
def test_segments_through_vertices_and_along_edges_get_to_their_end(name, rng):
    map = GRIDS[name][0]()
    for _ in range(3):
        random_operation(map, rng, 2)
    corners = map.positions[np.unique(map.numpy("origin")[map.darts])]
    a, b = (corners[rng.integers(0, len(corners), 200)] for _ in range(2))
    check_sets(map, a, b)


def test_a_segment_is_the_same_both_ways_and_a_point_is_in_one_cell(rng):
    map = hex_grid(3, 3, 3, jitter=0.3)
    a, b = inside(rng, map, 3, 300), inside(rng, map, 3, 300)
    there, back = crossed_cells(map, a, b, locate(map, a).dart), crossed_cells(map, b, a, locate(map, b).dart)
    assert np.array_equal(there[0], back[0])
    assert np.array_equal(there[1], back[1])
    offsets, cells, _ = crossed_cells(map, a, a, locate(map, a).dart)
    assert np.array_equal(cells, locate(map, a).cell)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_size_does_not_matter(scale, rng):
    map = quad_grid(5, 5, size=scale, jitter=0.2)
    a, b = inside(rng, map, 5, 100) * scale, inside(rng, map, 5, 100) * scale
    check_sets(map, a, b)


@pytest.mark.slow
def test_a_million_random_segments_cross_exactly_the_cells_arithmetic_says(rng, effort):
    n, size = effort(1_000_000), 12
    map = quad_grid(size, size)
    a, b = inside(rng, map, size, n), inside(rng, map, size, n)
    offsets, cells, blocked = crossed_cells(map, a, b, locate(map, a).dart)
    assert not blocked.any()
    # A segment in general position crosses one cell more than it crosses grid lines.
    lines = np.abs(np.floor(a[:, :2]) - np.floor(b[:, :2])).sum(axis=1)
    assert np.array_equal(np.diff(offsets), lines + 1)
    rows = np.repeat(np.arange(n), np.diff(offsets))
    low = np.stack(np.divmod(cells, size), axis=1)
    d = b[rows, :2] - a[rows, :2]
    with np.errstate(divide="ignore"):
        t0, t1 = (low - a[rows, :2]) / d, (low + 1 - a[rows, :2]) / d
    enter, leave = np.minimum(t0, t1).max(axis=1), np.maximum(t0, t1).min(axis=1)
    assert (enter <= leave + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("jitter", [0.0, 0.15])
@pytest.mark.parametrize("name", GRIDS)
def test_a_million_random_segments_cross_what_clipping_them_at_every_simplex_says(name, jitter, rng, effort):
    make, size, _, deepest = GRIDS[name]
    map = make(jitter=jitter)
    for _ in range(3):
        random_operation(map, rng, deepest)
    now = Snapshot(map)
    for _ in range(-(-effort(1_000_000) // (8 * 2500))):  # two shapes of four grids, 2500 at a time
        a, b = (inside(rng, map, size, 2500) for _ in range(2))
        offsets, cells, blocked = crossed_cells(map, a, b, locate(map, a).dart)
        assert not blocked.any()
        found = np.zeros((len(a), len(now.centre)), bool)
        found[np.repeat(np.arange(len(a)), np.diff(offsets)), cells] = True
        least, most = crossed_bounds(now, a, b, 1e-9)
        assert not (least & ~found).any()
        assert not (found & ~most).any()
