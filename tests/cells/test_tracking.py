"""Where points are: walks against exhaustive search, on warped cells, on faces, edges and vertices, and at walls."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial import Delaunay

from oracles.cell_maps import Snapshot, owners
from oracles.families.cell_operations import GRIDS, inside, random_operation
from tangere.cells.generate import hex_grid, quad_grid, tet_grid, triangle_grid
from tangere.cells.maps import split
from tangere.cells.registration import Registration, pairs_within
from tangere.cells.tracking import classify, crossed_cells, glide, locate, move
from tangere.published.pitiot_trackers import Simplices, track_convex
from tangere.runtime import InputError, using_threads


def refined(name, rng, jitter=0.0, **options):
    map = GRIDS[name][0](jitter=jitter, **options)
    for _ in range(4):
        random_operation(map, rng, GRIDS[name][3])
    return map


def wrong(map, found, points):
    return [i for i, cells in enumerate(owners(map, points)) if found.cell[i] not in cells]


@pytest.mark.feature("F-P-16", "F-P-42")
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


@pytest.mark.feature("F-P-39")
@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.2, 0.3, 0.4])
def test_volumes_of_any_deformation_are_told_apart_where_convex_ones_are_not(jitter, rng):
    # E11: moves by half a cell, against all simplices; the machine for convex cells is the control.
    map = hex_grid(5, 5, 5, jitter=jitter)
    points = inside(rng, map, 5, 800)
    darts = locate(map, points).dart
    targets = np.clip(points + rng.normal(0, 0.3, points.shape), 0.02, 4.98)
    walked, moved = locate(map, targets, darts), move(map, points, targets, darts)
    assert wrong(map, walked, targets) == []
    assert wrong(map, moved, targets) == []
    assert not (walked.blocked | moved.blocked).any()
    control = track_convex(map, points, targets, darts)
    failed = len(wrong(map, control, targets)) + int(control.lost.sum())
    if jitter in (0.0, 0.4):  # in between it is a matter of luck: one move in a thousand
        assert (failed > 0) == (jitter > 0)


@pytest.mark.feature("F-P-40", "F-P-41")
@pytest.mark.parametrize("jitter", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("make", [quad_grid, triangle_grid, hex_grid, tet_grid])
def test_walks_from_and_to_faces_edges_and_vertices_are_right(make, jitter, rng, device):
    size, dimension = 3, 2 if make in (quad_grid, triangle_grid) else 3
    # Triangles and tetrahedra have flat sides, and turn inside out long before.
    map = make(*[size] * dimension, jitter=jitter if make in (quad_grid, hex_grid) else jitter / 2, device=device)
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
            check_states(grid, size, rng, n // 200, epsilon=1e-4)


def check_states(grid, size, rng, count, epsilon):
    """Points on or beside faces, edges and vertices, within twice their thickness: is each on what it is nearest to?"""
    d = grid.dimension
    points = inside(rng, grid, size, count)[:, :d]
    snapped = np.clip(np.round(points), 1, size - 1) + rng.uniform(-2 * epsilon, 2 * epsilon, points.shape)
    points = np.where(rng.random(points.shape) < 0.6, snapped, points)
    gap = np.sort(np.abs(points - np.round(points)), axis=1)
    # From k planes of the grid at once a point is as far as its k smallest gaps together.
    away = np.sqrt(np.cumsum(gap**2, axis=1))
    expected = d - (away <= epsilon).sum(axis=1)
    places = np.c_[points, np.zeros((count, 3 - d))]
    state = classify(grid, places, locate(grid, places).dart, epsilon=epsilon)
    assert np.array_equal(state, expected)
    assert (np.bincount(expected, minlength=d + 1) > count // 100).all()


@pytest.mark.parametrize("make", [quad_grid, hex_grid])
def test_the_state_of_a_point_is_the_smallest_thing_within_the_thickness(make, rng):
    size = 4
    check_states(make(*[size] * (2 if make is quad_grid else 3)), size, rng, 3000, epsilon=1e-4)


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


def test_the_plain_walk_goes_right_across_a_large_mesh(rng):
    delaunay = Delaunay(rng.random((20_000, 2)))
    mesh = Simplices(delaunay.points, delaunay.simplices)
    points = rng.uniform(0.9, 0.99, (40, 2))
    start = delaunay.find_simplex([[0.02, 0.02]])
    found = mesh.locate(points, np.repeat(start, 40))
    assert np.array_equal(found.cell, delaunay.find_simplex(points))


@pytest.mark.parametrize(
    ("points", "cells", "message"),
    [
        ([[0.1, 0.1]], [10**8], "cells: number 0 is 100000000, but cells are numbered 0 to 0"),
        ([[0.1, 0.1], [0.2, 0.2]], [0], "cells: there are 1 for 2 points"),
        ([[0.1, 0.1], [np.nan, 0.1]], [0, 0], "points: point 1 is not finite"),
        ([[0.1, 0.1, 0.1]], [0], r"points must have shape \(n, 2\)"),
    ],
)
def test_bad_starts_of_a_plain_walk_are_refused(points, cells, message):
    with pytest.raises(InputError, match=message):
        Simplices([[0, 0], [1, 0], [0, 1.0]], [[0, 1, 2]]).locate(points, cells)


def test_points_outside_and_bad_darts_are_told():
    map = quad_grid(3, 3)
    assert locate(map, [[1.5, 1.5], [9, 9], [-1, 0]]).blocked.tolist() == [False, True, True]
    with pytest.raises(InputError, match="point 1 is not finite"):
        locate(map, [[0.5, 0.5], [np.nan, 0]])
    with pytest.raises(InputError, match="point 0 aims at dart 999"):
        locate(map, [[0.5, 0.5]], [999])
    with pytest.raises(InputError, match="darts must be 1"):
        locate(map, [[0.5, 0.5]], [0, 1])
    with pytest.raises(InputError, match="point 1 is not finite"):
        locate(map, wp.array([[0.5, 0.5, 0], [np.nan, np.inf, 0]], dtype=wp.vec3d))
    with pytest.raises(InputError, match="targets: there are 2 for 3 points"):
        crossed_cells(map, np.ones((3, 2)), np.ones((2, 2)), np.zeros(3, int))
    with pytest.raises(InputError, match="headings: there are 1 for 2 points"):
        glide(map, [[0.5, 0.5, 0]] * 2, [[0.1, 0, 0]] * 2, [0, 0], headings=[[1.0, 0, 0]])
    split(map, [0])
    assert locate(map, np.empty((0, 2)), np.empty(0, int)).dart.shape == (0,)


@pytest.mark.parametrize("as_array", [list, lambda x: wp.array(x, dtype=wp.vec3d)])
def test_height_does_not_matter_in_a_flat_map(as_array):
    points = as_array([[0.5, 0.5, 0.0], [0.5, 0.5, 7.0]])
    map = quad_grid(2, 2)
    assert locate(map, points).cell.tolist() == [0, 0]
    registration = Registration(map, points)
    assert (registration.points[:, 2] == 0).all()
    assert pairs_within(registration, 1.0).tolist() == [[0, 1]]
    assert float(np.asarray(points.numpy() if isinstance(points, wp.array) else points)[1, 2]) == 7.0  # as it was


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
