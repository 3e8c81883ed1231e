"""Cells of any shape, criteria of any kind, and large things on coarse levels."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import check_map, check_registration, check_rings, owners, segment_cells
from oracles.families.cell_operations import inside
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import CellMap
from tangere.cells.registration import NearPoint, Registration, adapt, things_around
from tangere.cells.tracking import locate, move

#: A pentagon, a triangle, a quadrilateral that is not convex and a hexagon around it.
FLAT = (
    [[0, 0], [3, 0], [3, 2], [1.5, 3], [0, 2], [5, 0], [5, 4], [3.6, 2.2], [0, 5], [5, 5]],
    [[0, 1, 2, 3, 4], [1, 5, 2], [2, 5, 6, 7], [4, 3, 2, 7, 6, 9, 8]],
)
#: A hexahedron, a wedge on its side, a pyramid on top, a tetrahedron beside that.
SOLID = (
    [
        *[
            [x, y, z]
            for x, y, z in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
        ],
        *[[2, 0, 0], [2, 1, 0], [0.5, 0.5, 2], [1.8, 0.5, 1.6]],
    ],
    [[0, 1, 2, 3, 4, 5, 6, 7], [1, 8, 5, 2, 9, 6], [4, 5, 6, 7, 10], [5, 6, 10, 11]],
)


@pytest.mark.feature("F-P-76")
@pytest.mark.parametrize("dimension", [2, 3])
def test_maps_of_mixed_cells_are_walked_registered_and_adapted_by_any_criterion(dimension, rng):
    if dimension == 2:
        map = CellMap.from_polygons(*FLAT)
        points = inside(rng, map, 5, 400)
    else:
        map = CellMap.from_polyhedra(*SOLID)
        points = rng.uniform(0, 2, (3000, 3))
    assert len({int((map.numpy("cell")[map.darts] == c).sum()) for c in map.leaves}) >= 3
    check_map(map)
    points = points[[len(cells) == 1 for cells in owners(map, points)]][:60]
    assert len(points) > 30
    registration = Registration(map, points, rng.integers(0, len(points), (10, 2)))
    check_registration(registration)
    middle = points.mean(axis=0)

    def left_half(of):
        """Split what is on the left, merge what is not."""
        wish = middle[0] - of.map.numpy("centre")[:, 0]
        wish = np.resize(wish, of.map.cell_capacity)
        return wish, -wish

    for criterion in (left_half, NearPoint(points[0], 0.5, 2), left_half):
        adapt(registration, criterion, level_limit=2)
        check_map(map)
        check_rings(map)
        check_registration(registration)
        found = locate(map, points, registration.darts)
        assert all(c in cells for c, cells in zip(found.cell.tolist(), owners(map, points)))
    there = move(map, points, points[::-1].copy(), registration.darts)
    ends = points + there.time[:, None] * (points[::-1] - points)
    np.testing.assert_allclose(there.position, ends, atol=1e-12)
    assert all(c in cells for c, cells in zip(there.cell.tolist(), owners(map, there.position, slack=1e-7)))


@pytest.mark.feature("F-P-80")
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_large_thing_on_a_coarser_level_is_in_fewer_cells_and_has_the_same_contacts(dimension, rng):
    size, reach = 4, 0.3

    def make(n):
        return quad_grid(n, n) if dimension == 2 else hex_grid(n, n, n)

    map = make(size)
    points = inside(rng, map, size, 300)
    ends = inside(rng, map, size, 20)
    rows = np.stack([np.arange(300, 310), np.arange(310, 320)], axis=1)
    registration = Registration(map, np.concatenate([points, ends]), rows)
    for _ in range(2):
        registration.split(map.leaves)
    for number, (a, b) in enumerate(rows):
        x, y = registration.points[a], registration.points[b]
        part = np.clip((points - x) @ (y - x) / ((y - x) @ (y - x)), 0, 1)
        away = np.linalg.norm(x + part[:, None] * (y - x) - points, axis=1)
        contacts = np.flatnonzero(away <= reach)
        cells = [registration.crossed("segments", number, level=k) for k in (2, 1, 0)]
        expected = segment_cells(make(size), x, y, 0.0)  # in the map as it was before it was split
        assert set(cells[-1].tolist()) == expected
        assert len(cells[0]) >= len(cells[1]) >= len(cells[2])
        assert len(cells[2]) < len(cells[0]) or len(cells[0]) == 1
        # Coarse cells are wider than the reach: whoever is in contact is among those around, and nobody else is near.
        for level in (0, 1):
            candidates = things_around(registration, "segments", number, "points", level=level)
            candidates = candidates[candidates < len(points)]
            assert np.array_equal(candidates[away[candidates] <= reach], contacts)
        assert np.isin(things_around(registration, "segments", number, "points"), np.r_[candidates, 300:320]).all()
