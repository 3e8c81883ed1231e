"""What is within the width of cells is in the ring: all pairs of points, in cells of many shapes and levels."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial import Voronoi, cKDTree

from tangere.cells.generate import hex_grid, quad_grid, tet_grid, triangle_grid
from tangere.cells.maps import CellMap, split
from tangere.cells.tracking import locate
from tangere.crowd import Bubbles, Simulation, box
from tangere.crowd.agents.cell_sizes import cell_widths, finest_level
from tangere.runtime import InputError


def voronoi(seed, count=40, size=30.0):
    """The cells of random points of a square, closed at its border by their mirror images."""
    x = np.random.default_rng(seed).uniform(0, size, (count, 2))
    mirrored = [x] + [np.where(np.arange(2) == k, 2 * wall - x, x) for k in (0, 1) for wall in (0.0, size)]
    diagram = Voronoi(np.concatenate(mirrored))
    polygons = []
    for k in range(count):
        corners = np.array(diagram.regions[diagram.point_region[k]])
        away = diagram.vertices[corners] - x[k]
        polygons.append(corners[np.argsort(np.arctan2(away[:, 1], away[:, 0]))])
    used, numbers = np.unique(np.concatenate(polygons), return_inverse=True)
    cuts = np.cumsum([len(polygon) for polygon in polygons])[:-1]
    return CellMap.from_polygons(diagram.vertices[used], np.split(numbers, cuts), device="cpu")


def narrow_wedge():
    """Three cells side by side, the middle one with a side of 0.2 m."""
    corners = [[0, 0], [10, 0], [20, 0], [30, 0], [0, 10], [14.9, 10], [15.1, 10], [30, 10]]
    return CellMap.from_polygons(corners, [[0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6]], device="cpu")


def jittered_in_levels(seed):
    map = quad_grid(6, 6, size=8.0, jitter=0.25, seed=seed, device="cpu")
    random = np.random.default_rng(seed)
    for _ in range(2):
        split(map, random.choice(map.leaves, 8, replace=False))
    return map


MAPS = {
    "wedge": narrow_wedge,
    **{f"voronoi {k}": lambda k=k: voronoi(k) for k in range(3)},
    **{f"jitter {j}": lambda j=j: quad_grid(8, 8, size=4.0, jitter=j, seed=1, device="cpu") for j in (0.3, 0.35, 0.4)},
    "levels": lambda: jittered_in_levels(2),
    "triangles": lambda: triangle_grid(6, 6, size=4.0, jitter=0.3, seed=3, device="cpu"),
    "hexahedra": lambda: hex_grid(4, 4, 4, size=4.0, jitter=0.3, seed=1, device="cpu"),
    "tetrahedra": lambda: tet_grid(3, 3, 3, size=4.0, jitter=0.1, seed=1, device="cpu"),
}


def unseen(map, reach, rng, count=6000):
    """Pairs of points nearer than `reach` that are not in each other's rings, of how many; points crowd at corners."""
    low, high = map.positions.min(axis=0), map.positions.max(axis=0)
    corners = map.positions[np.unique(map.numpy("origin")[map.darts])]
    near = corners[rng.integers(0, len(corners), count)] + rng.normal(0, 0.6 * reach, (count, 3))
    x = np.concatenate([near, rng.uniform(low, high, (count, 3))]) * [1, 1, map.dimension == 3]
    found = locate(map, x)
    x, cell = x[~found.blocked], found.cell[~found.blocked]
    pairs = cKDTree(x).query_pairs(reach * (1 - 1e-9), output_type="ndarray")
    rows = map.rings.rows(np.arange(map.cell_capacity))
    a, b = cell[pairs].T
    return int((~((rows[a] == b[:, None]).any(axis=1) | (a == b))).sum()), len(pairs)


@pytest.mark.parametrize("name", MAPS)
def test_nobody_within_the_width_of_the_cells_is_beyond_the_ring(name, rng):
    map = MAPS[name]()
    leaves = map.leaves
    reach = float(cell_widths(map)[leaves].min()) if not map.levels.any() else 0.9
    deepest = finest_level(map, reach)
    assert deepest >= map.levels.max()
    missed, looked_at = unseen(map, reach, rng)
    assert looked_at > 1000
    assert missed == 0
    with pytest.raises(InputError, match="narrowest cell"):
        finest_level(map, 1000.0)


@pytest.mark.parametrize("name", ["voronoi 0", "jitter 0.3", "triangles", "wedge"])
def test_cells_show_as_much_on_every_level_they_may_be_split_to(name, rng):
    map = MAPS[name]()
    reach = float(cell_widths(map)[map.leaves].min()) / 8
    deepest = finest_level(map, reach)
    assert 1 <= deepest <= 3
    for k in range(deepest):
        chosen = map.leaves[map.levels[map.leaves] == k]
        split(map, rng.choice(chosen, -(-2 * len(chosen) // 3), replace=False))
        missed, looked_at = unseen(map, reach, rng)
        assert looked_at > 300
        assert missed == 0
    assert finest_level(map, reach) == deepest


def test_neighbours_in_skew_cells_are_those_of_all_pairs(rng):
    map = quad_grid(8, 8, size=4.0, jitter=0.35, seed=1, device="cpu")
    reach = float(cell_widths(map)[map.leaves].min())
    simulation = Simulation(map, behaviour=Bubbles(range=reach, wall_range=0.5), adaptive=None)
    simulation.add_points(rng.uniform(0.5, 31.5, (900, 2)), goals=rng.uniform(0.5, 31.5, (900, 2)))
    for _ in range(5):
        simulation.run(steps=5)
        away = np.linalg.norm(simulation.positions[:, None] - simulation.positions[None], axis=2)
        np.fill_diagonal(away, np.inf)
        np.testing.assert_array_equal(simulation.observe().neighbours, (away <= reach).sum(axis=1))


def test_widths_of_squares_cubes_rectangles_and_triangles_are_known():
    assert cell_widths(quad_grid(3, 2, size=3.0, device="cpu"))[:6] == pytest.approx(3.0)
    cubes = hex_grid(2, 2, 2, size=4.0, device="cpu")
    split(cubes, [0])
    assert sorted({round(w, 12) for w in cell_widths(cubes)[cubes.leaves]}) == [2.0, 4.0]
    assert finest_level(cubes, 1.0) == 2
    bar = CellMap.from_polygons([[0, 0], [7, 0], [7, 2], [0, 2]], [[0, 1, 2, 3]], device="cpu")
    assert cell_widths(bar)[0] == pytest.approx(2.0)
    even = CellMap.from_polygons([[0, 0], [3, 0], [1.5, 1.5 * 3**0.5]], [[0, 1, 2]], device="cpu")
    assert cell_widths(even)[0] == pytest.approx(3**0.5)  # two thirds of the height


def test_the_cell_that_is_named_is_as_narrow_as_is_said():
    map = quad_grid(4, 4, size=16.0, device="cpu")
    split(map, [5])
    split(map, map.children(5)[:1])
    with pytest.raises(InputError, match=r"^reach of edges 5 m .* narrowest cell, 4 m \(cell \d+\)$") as error:
        finest_level(map, 5.0, "reach of edges")
    named = int(re.findall(r"\d+", str(error.value))[-1])
    assert cell_widths(map)[named] == pytest.approx(4.0)
    corners = [[0, 0], [2, 0], [18, 0], [0, 16], [2, 16], [18, 16]]
    uneven = CellMap.from_polygons(corners, [[0, 1, 4, 3], [1, 2, 5, 4]], device="cpu")
    split(uneven, [1])
    with pytest.raises(InputError, match=r"1 m \(cell 0 split down to level 1, as others are\)"):
        finest_level(uneven, 1.5)


def test_a_body_whose_edges_reach_too_far_for_cells_that_were_split_is_refused(rng):
    simulation = Simulation(quad_grid(4, 4, size=16.0, device="cpu"), whole_edges=True)
    simulation.add_points(rng.uniform([22, 25], [42, 39], (300, 2)), radius=0.1)
    simulation.step()
    with pytest.raises(InputError, match=r"the reach of the body's edges, 4\.82.* m is more than") as error:
        simulation.add_bodies(box(14.0, 1.0), [[10.0, 60.0]], headings=[[1, 0]])
    said, named = re.findall(r"([\d.]+) m \(cell (\d+)\)", str(error.value))[0]
    assert cell_widths(simulation.map)[int(named)] == pytest.approx(float(said)) == 2.0


def test_a_grid_that_is_turned_is_as_wide_as_before():
    grid = quad_grid(6, 6, size=1.5, device="cpu")
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    cells = grid.numpy("origin")[grid.darts].reshape(-1, 4)
    turned = CellMap.from_polygons(grid.positions[:, :2] @ turn.T, cells, device="cpu")
    assert finest_level(turned, 1.5) == 0
    with pytest.raises(InputError, match=r"range 1\.50001 m .* 1\.5 m"):
        finest_level(turned, 1.50001)
