"""The four-state machine: right where faces are flat, and a control that fails where they are warped."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.cell_operations import inside
from tangere.cells.generate import hex_grid, quad_grid, tet_grid
from tangere.cells.tracking import locate
from tangere.published.pitiot_trackers import track_convex
from tangere.runtime import UnsupportedError


@pytest.mark.parametrize("make", [hex_grid, tet_grid])
def test_in_flat_cells_it_agrees_with_the_well_centred_tracker(make, rng, device):
    map = make(3, 3, 3, device=device)
    points = inside(rng, map, 3, 2000)
    darts = locate(map, points).dart
    for _ in range(3):
        targets = 0.6 * points + 0.4 * inside(rng, map, 3, 2000)
        tracked = track_convex(map, points, targets, darts)
        assert not tracked.lost.any()
        assert not tracked.blocked.any()
        assert np.array_equal(tracked.position, targets)
        assert np.array_equal(tracked.cell, locate(map, targets).cell)
        assert (tracked.state == 3).all()
        points, darts = targets, tracked.dart


def test_it_starts_and_ends_on_faces_edges_and_vertices(rng):
    map = hex_grid(3, 3, 3)
    special = np.array(np.meshgrid(*[np.arange(0.5, 3, 0.5)] * 3)).reshape(3, -1).T
    points = special[rng.integers(0, len(special), 600)]
    targets = special[rng.integers(0, len(special), 600)]
    tracked = track_convex(map, points, targets, locate(map, points).dart)
    assert not tracked.lost.any()
    assert not tracked.blocked.any()
    np.testing.assert_allclose(tracked.position, targets, atol=1e-9)
    whole = (np.abs(targets - np.round(targets)) < 1e-9).sum(axis=1)
    assert np.array_equal(tracked.state, 3 - whole)
    low = map.numpy("centre")[tracked.cell] - 0.5
    assert ((targets >= low - 1e-9) & (targets <= low + 1 + 1e-9)).all()


def test_it_stops_at_the_border():
    map = hex_grid(2, 2, 2)
    start = np.array([[0.5, 0.5, 0.5], [1.5, 1.5, 1.5]])
    tracked = track_convex(map, start, start + [[0, 0, -2], [3, 0, 0]], locate(map, start).dart)
    assert tracked.blocked.all()
    np.testing.assert_allclose(tracked.position, [[0.5, 0.5, 0], [2, 1.5, 1.5]], atol=1e-12)
    with pytest.raises(UnsupportedError, match="3-maps"):
        track_convex(quad_grid(2, 2), [[0.5, 0.5]], [[1, 1]], [0])


def test_on_warped_cells_it_is_a_control_that_fails_where_the_well_centred_tracker_does_not(rng):
    map = hex_grid(4, 4, 4, jitter=0.4)
    points = inside(rng, map, 4, 4000)
    targets = np.clip(points + rng.normal(0, 0.5, points.shape), 0.05, 3.95)
    found = locate(map, points)
    tracked = track_convex(map, points, targets, found.dart)
    right = locate(map, targets, found.dart)
    assert not right.blocked.any()
    assert (tracked.lost | (tracked.cell != right.cell)).any()
