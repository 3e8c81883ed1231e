"""Crossing points that are followed: always the cells a march finds, however the segments move and cells change."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import Snapshot, crossed_bounds
from oracles.families.cell_operations import mergeable
from tangere.cells.generate import hex_grid, quad_grid, triangle_grid
from tangere.cells.maps import merge, split
from tangere.cells.tracking import crossed_cells, locate
from tangere.published.pitiot_trackers import CrossingPoints
from tangere.runtime import InputError, UnsupportedError

GRIDS = {"quads": quad_grid, "triangles": triangle_grid}


def adaptive(make, rng, size, device=None, **options):
    map = make(size, size, device=device, **options)
    for _ in range(3):
        split(map, rng.choice(map.leaves, size, replace=False))
    return map


def check(followed, a, b):
    """Against brute force: no cell is missing that is crossed for certain, none is there that is not even touched."""
    first, cells = followed.cells
    least, most = crossed_bounds(Snapshot(followed.map), a, b, 1e-9)
    found = np.zeros_like(least)
    found[np.repeat(np.arange(len(a)), np.diff(first)), cells] = True
    assert found.sum() == len(cells), "a cell is there once"
    assert not (least & ~found).any(), f"segment {np.argwhere(least & ~found)[0]} lacks a cell"
    assert not (found & ~most).any(), f"segment {np.argwhere(found & ~most)[0]} has a cell it does not cross"


@pytest.mark.feature("F-P-82")
@pytest.mark.parametrize("name", GRIDS)
def test_followed_segments_cross_the_cells_that_marches_find(name, rng, device, effort):
    size, count = 6, 200
    map = adaptive(GRIDS[name], rng, size, device)
    a = rng.uniform(0.1, size - 0.1, (count, 2))
    b = np.clip(a + rng.normal(0, 1.5, (count, 2)), 0.1, size - 0.1)
    followed = CrossingPoints(map, a, b)
    passed = 0
    for step in range(effort(24)):
        # Slow, quick, and farther than a cell.
        far = (0.01, 0.2, 1.0)[step % 3]
        a, b = (np.abs(size - 1e-3 - np.abs(x + rng.normal(0, far, x.shape) - size) % size) for x in (a, b))
        followed.move(a, b)
        check(followed, a, b)
        first, cells = followed.cells
        offsets, marched, _ = crossed_cells(map, a, b, locate(map, a).dart)
        assert np.array_equal(first, offsets)
        assert np.array_equal(cells, marched)
        assert followed.counters["marched"] == 0
        passed += followed.counters["vertices passed"]
    assert passed > 100


def test_crossing_points_merge_at_a_vertex_and_leave_it_on_the_other_side():
    map = quad_grid(2, 2)
    here, right, above, across = locate(map, [[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 1.5]]).cell
    followed = CrossingPoints(map, [[0.2, 0.9]], [[1.1, 1.9]])
    assert followed.cells[1].tolist() == sorted([here, above, across])
    followed.move([[0.9, 0.2]], [[1.9, 1.1]])  # both ends stay in their cells
    assert followed.counters == {"vertices passed": 1, "marched": 0}
    assert followed.cells[1].tolist() == sorted([here, right, across])
    followed.move([[0.2, 0.9]], [[1.1, 1.9]])
    assert followed.counters == {"vertices passed": 1, "marched": 0}
    assert followed.cells[1].tolist() == sorted([here, above, across])


def test_cells_that_split_and_merge_are_followed_as_well(rng):
    map = quad_grid(4, 4)
    a, b = rng.uniform(0.1, 3.9, (2, 60, 2))
    followed = CrossingPoints(map, a, b)
    for step in range(10):
        if step % 2:
            merge(map, mergeable(map)[:2])
        else:
            split(map, rng.choice(map.leaves, 4, replace=False))
        a, b = (np.clip(x + rng.normal(0, 0.1, x.shape), 0.1, 3.9) for x in (a, b))
        followed.move(a, b)
        check(followed, a, b)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_degenerate_segments_are_followed_at_any_scale(scale, device):
    map = quad_grid(4, 4, size=scale, device=device)
    frames = [
        [[[0.5, 1.0], [3.5, 1.0]], [[1.0, 0.5], [1.0, 3.5]], [[0.5, 0.5], [3.5, 3.5]], [[2.0, 2.0], [2.0, 2.0]]],
        [[[0.5, 1.0], [3.5, 2.0]], [[1.0, 1.0], [3.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [3.0, 3.0]]],
        [[[3.5, 2.0], [0.5, 1.0]], [[3.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [4.0, 4.0]], [[0.0, 4.0], [4.0, 0.0]]],
        [[[0.0, 0.0], [4.0, 0.0]], [[4.0, 0.0], [4.0, 4.0]], [[0.0, 4.0], [0.0, 4.0]], [[2.0, 0.0], [2.0, 4.0]]],
    ]
    followed = CrossingPoints(map, *scale * np.array(frames[0]).transpose(1, 0, 2))
    for frame in frames:
        a, b = scale * np.array(frame).transpose(1, 0, 2)
        followed.move(a, b)
        check(followed, a, b)


def test_a_segment_across_very_many_cells_finds_room(rng):
    map = quad_grid(60, 60)
    followed = CrossingPoints(map, [[0.5, 0.5]], [[0.6, 0.6]])
    for end in ([59.4, 58.3], [59.4, 1.2], [1.2, 59.4]):
        followed.move([[0.5, 0.5]], [end])
        check(followed, np.array([[0.5, 0.5]]), np.array([end]))


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(UnsupportedError, match="flat maps of convex cells"):
        CrossingPoints(hex_grid(1, 1, 1), [[0.5, 0.5, 0.5]], [[0.6, 0.5, 0.5]])
    walled = quad_grid(2, 1)
    walled.block("cell", [1])
    with pytest.raises(UnsupportedError, match="without walls"):
        CrossingPoints(walled, [[0.5, 0.5]], [[0.6, 0.5]])
    map = quad_grid(2, 2)
    with pytest.raises(InputError, match="point 1 is outside"):
        CrossingPoints(map, [[0.5, 0.5], [3.0, 0.5]], [[0.6, 0.5], [1.0, 0.5]])
    followed = CrossingPoints(map, [[0.5, 0.5]], [[0.6, 0.5]])
    with pytest.raises(InputError, match="segment 0 leaves the map"):
        followed.move([[0.5, 0.5]], [[2.5, 0.5]])
    with pytest.raises(InputError, match="there are 2 and 1 for 1 segments"):
        followed.move([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5]])
    with pytest.raises(InputError, match="not finite"):
        followed.move([[0.5, np.nan]], [[0.5, 0.5]])
