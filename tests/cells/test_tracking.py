"""Where points are: walks against exhaustive search, on warped cells, on faces, edges and vertices, and at walls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import Delaunay

from cells.operations import GRIDS, inside, random_operation
from cells.verifier import Snapshot, owners
from tangere.cells.maps import hex_grid, quad_grid, split, tet_grid, triangle_grid
from tangere.cells.tracking import Simplices, classify, locate, move
from tangere.runtime import InputError, using_threads


def refined(name, rng, jitter=0.0, **options):
    map = GRIDS[name][0](jitter=jitter, **options)
    for _ in range(4):
        random_operation(map, rng, GRIDS[name][3])
    return map


def wrong(map, found, points):
    return [i for i, cells in enumerate(owners(map, points)) if found.cell[i] not in cells]


@pytest.mark.feature("F-P-16", "F-P-39", "F-P-42")
@pytest.mark.parametrize("jitter", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("dimension", [2, 3])
def test_walks_end_in_the_right_cell_on_jittered_maps(dimension, jitter, rng, device, effort):
    size = 6
    map = {2: quad_grid, 3: hex_grid}[dimension](*[size] * dimension, jitter=jitter, device=device)
    points = inside(rng, map, size, effort(150))
    found = locate(map, points)
    assert wrong(map, found, points) == []
    for _ in range(4):
        points = np.clip(points + rng.normal(0, 0.3, points.shape) * [1, 1, map.dimension == 3], 0.01, size - 0.01)
        points[:, 2] *= map.dimension == 3
        found = locate(map, points, found.dart)
        assert not found.blocked.any()
        assert wrong(map, found, points) == []


@pytest.mark.parametrize("name", GRIDS)
def test_walks_end_in_the_right_cell_on_adaptive_maps(name, rng, device):
    map = refined(name, rng, 0.1, device=device)
    size = GRIDS[name][1]
    points = inside(rng, map, size, 200)
    first = locate(map, points)
    assert wrong(map, first, points) == []
    points = inside(rng, map, size, 200)
    assert wrong(map, locate(map, points, first.dart), points) == []


@pytest.mark.feature("F-P-40", "F-P-41")
@pytest.mark.parametrize("jitter", [0.0, 0.3])
@pytest.mark.parametrize("make", [quad_grid, triangle_grid, hex_grid, tet_grid])
def test_walks_from_and_to_faces_edges_and_vertices_are_right(make, jitter, rng, device):
    size, dimension = 3, 2 if make in (quad_grid, triangle_grid) else 3
    map = make(*[size] * dimension, jitter=jitter if make in (quad_grid, hex_grid) else jitter / 3, device=device)
    darts = rng.choice(map.darts, 150)
    s, e = (map.positions[map.numpy("origin")[d]] for d in (darts, map.numpy("phi1")[darts]))
    places = {"vertex": s, "edge": 0.3 * s + 0.7 * e}
    if map.dimension == 3:
        places["face"] = (s + e + map.numpy("face_centre")[darts]) / 3
    for start in places.values():
        found = locate(map, start)
        assert wrong(map, found, start) == []
        for target in (*places.values(), inside(rng, map, size, len(start))):
            there = target[rng.permutation(len(target))]
            assert wrong(map, locate(map, there, found.dart), there) == []
            moved = move(map, start, there, found.dart)
            assert wrong(map, moved, there) == []
            assert not moved.blocked.any()


@pytest.mark.parametrize("name", GRIDS)
def test_states_say_what_a_point_is_on(name, rng):
    map = GRIDS[name][0]()
    darts = map.darts
    s, e = (map.positions[map.numpy("origin")[d]] for d in (darts, map.numpy("phi1")[darts]))
    centre = map.numpy("centre")[map.numpy("cell")[darts]]
    places = [(0, s), (1, 0.4 * s + 0.6 * e), (map.dimension, (centre + s + e) / 3 if map.dimension == 2 else None)]
    if map.dimension == 3:
        middle = (s + e + map.numpy("face_centre")[darts]) / 3
        places = [*places[:2], (2, middle), (3, 0.5 * centre + 0.5 * middle)]
    for state, points in places:
        assert (classify(map, points, locate(map, points).dart) == state).all()


@pytest.mark.slow
@pytest.mark.feature("F-P-15")
def test_a_million_moves_in_convex_cells_agree_with_arithmetic(rng, effort):
    map, n = quad_grid(30, 30), effort(1_000_000)
    block = hex_grid(10, 10, 10)
    for grid, size in ((map, 30), (block, 10)):
        points = inside(rng, grid, size, n // 20)
        found = locate(grid, points)
        for _ in range(10):
            points = np.clip(points + rng.normal(0, 0.3, points.shape), 0.001, size - 0.001)
            points[:, 2] *= grid.dimension == 3
            found = locate(grid, points, found.dart)
            index = np.floor(points).astype(int)
            cell = index[:, 0] * size + index[:, 1]
            if grid.dimension == 3:
                cell = cell * size + index[:, 2]
            assert np.array_equal(found.cell, cell)
            state = classify(grid, points[:1000], found.dart[:1000], epsilon=1e-4)
            gap = np.abs(points[:1000, : grid.dimension] - np.round(points[:1000, : grid.dimension])) <= 1e-4
            assert np.array_equal(state, grid.dimension - gap.sum(axis=1))


@pytest.mark.parametrize("dimension", [2, 3])
def test_the_plain_walk_agrees_with_scipy_on_delaunay_meshes(dimension, rng, device):
    vertices = np.vstack(
        [rng.random((400, dimension)), np.stack(np.meshgrid(*[[0, 1]] * dimension), -1).reshape(-1, dimension)]
    )
    delaunay = Delaunay(vertices)
    mesh = Simplices(vertices, delaunay.simplices, device=device)
    points = rng.uniform(0.05, 0.95, (2000, dimension))
    cells = delaunay.find_simplex(points)
    for _ in range(3):
        points = np.clip(points + rng.normal(0, 0.05, points.shape), 0.01, 0.99)
        found = mesh.locate(points, cells)
        cells = delaunay.find_simplex(points)
        assert np.array_equal(found.cell, cells)
    out = mesh.locate(np.full((1, dimension), 2.0), np.zeros(1, np.int32))
    assert out.blocked[0]


def test_points_outside_and_bad_darts_are_told():
    map = quad_grid(3, 3)
    assert locate(map, [[1.5, 1.5], [9, 9], [-1, 0]]).blocked.tolist() == [False, True, True]
    with pytest.raises(InputError, match="point 1 is not finite"):
        locate(map, [[0.5, 0.5], [np.nan, 0]])
    with pytest.raises(InputError, match="point 0 aims at dart 999"):
        locate(map, [[0.5, 0.5]], [999])
    with pytest.raises(InputError, match="darts must be 1"):
        locate(map, [[0.5, 0.5]], [0, 1])
    split(map, [0])
    assert locate(map, np.empty((0, 2)), np.empty(0, int)).dart.shape == (0,)


@pytest.mark.feature("F-P-17")
@pytest.mark.parametrize("name", ["quads", "hexahedra"])
def test_no_point_ever_enters_an_obstacle_or_leaves_the_map(name, rng, device):
    make, size, _, _ = GRIDS[name]
    map = make(jitter=0.2, device=device)
    obstacles = rng.choice(map.leaves, 2, replace=False)
    map.block("cell", obstacles)
    for _ in range(3):  # children of obstacles are obstacles
        random_operation(map, rng, 2)
    points = inside(rng, map, size, 300)
    found = locate(map, points)
    blocked = map.numpy("obstacle")[found.cell] == 1
    points, darts = points[~blocked], found.dart[~blocked]
    hits = 0
    for _ in range(15):
        targets = points + rng.normal(0, 0.6, points.shape) * [1, 1, map.dimension == 3]
        moved = move(map, points, targets, darts)
        assert not map.numpy("obstacle")[moved.cell].any()
        assert (
            np.linalg.norm(moved.position - points, axis=1) <= np.linalg.norm(targets - points, axis=1) + 1e-12
        ).all()
        assert (moved.position[:, : map.dimension] >= -1e-9).all()
        assert (moved.position[:, : map.dimension] <= size + 1e-9).all()
        weights = Snapshot(map).weights(moved.position)
        column = np.searchsorted(map.darts, moved.dart)
        assert (weights[np.arange(len(points)), column].min(axis=1) > -1e-9).all()  # hit exactly on the face
        hits += moved.blocked.sum()
        points, darts = moved.position, moved.dart
    assert hits > 100


def test_a_wall_between_two_cells_stops_the_straight_way_at_the_wall():
    map = quad_grid(4, 1)
    dart = next(d for d in map.darts if map.numpy("cell")[d] == 1 and map.numpy("cell")[map.numpy("phi2")[d]] == 2)
    map.block("dart", [dart])
    start = [[0.5, 0.5], [3.5, 0.25]]
    moved = move(map, start, [[3.5, 0.5], [0.5, 0.25]], locate(map, start).dart)
    assert moved.blocked.all()
    np.testing.assert_allclose(moved.position[:, 0], 2.0)
    np.testing.assert_allclose(moved.time, 0.5)
    assert moved.cell.tolist() == [1, 2]


def test_answers_do_not_depend_on_threads(rng):
    map = hex_grid(6, 6, 6, jitter=0.3)
    points, targets = inside(rng, map, 6, 20_000), inside(rng, map, 6, 20_000)
    answers = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            found = locate(map, points)
            answers.append(
                (found.dart, locate(map, targets, found.dart).dart, move(map, points, targets, found.dart).dart)
            )
    for other in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answers[0], other))
