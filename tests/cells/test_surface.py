"""Moving on curved surfaces: lengths are kept, points stay on the surface, great circles close."""

from __future__ import annotations

import numpy as np
import pytest
from trimesh.triangles import closest_point

from oracles.cell_maps import Snapshot, check_registration
from tangere.cells.generate import map_of_mesh, quad_grid
from tangere.cells.maps import CellMap, split
from tangere.cells.registration import Registration
from tangere.cells.tracking import crossed_cells, glide, locate, move, on_surface
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import generate


def planted(map, rng, count):
    darts = rng.choice(map.darts, count)
    weights = rng.dirichlet([1, 1, 1], count)
    return on_surface(map, darts, weights), darts


def weights_in(map, points, darts):
    """Least weight of points in their dart triangles, and their distance from the planes of these."""
    c = map.numpy("centre")[map.numpy("cell")[darts]]
    s, e = (map.positions[map.numpy("origin")[d]] for d in (darts, map.numpy("phi1")[darts]))
    n = np.cross(s - c, e - c)
    area = (n * n).sum(axis=1)
    parts = [np.cross(b - a, points - a) for a, b in ((c, s), (s, e), (e, c))]
    least = np.min([(p * n).sum(axis=1) / area for p in parts], axis=0)
    return least, np.abs(((points - c) * n).sum(axis=1)) / np.sqrt(area)


def test_in_the_plane_gliding_is_moving(rng):
    map = quad_grid(5, 5, jitter=0.2)
    points, darts = planted(map, rng, 300)
    by = rng.normal(0, 1, (300, 3)) * [1, 1, 0]
    straight, along = move(map, points, points + by, darts), glide(map, points, by, darts)
    assert np.array_equal(straight.blocked, along.blocked)
    assert straight.blocked.any()
    np.testing.assert_allclose(along.position, straight.position, atol=1e-12)
    assert np.mean(along.cell == straight.cell) > 0.999  # at a wall's end either of two cells will do


def test_over_a_fold_the_length_and_the_angle_to_the_fold_are_kept():
    roof = CellMap.from_polygons(
        [[0, 0, 0], [0, 4, 0], [2, 4, 2], [2, 0, 2], [4, 0, 0], [4, 4, 0]], [[0, 3, 2, 1], [3, 4, 5, 2]]
    )
    start = np.array([[1.0, 2.0, 1.0]])
    by = np.array([[1.5, 0.5, 1.5]])
    found = glide(roof, start, by, [locate_on(roof, start[0])])
    np.testing.assert_allclose(found.position, [[2.5, 2.5, 1.5]], atol=1e-12)
    np.testing.assert_allclose(found.heading, [[1.5, 0.5, -1.5]], atol=1e-12)
    assert found.cell.tolist() == [1]


def locate_on(map, point):
    least, away = weights_in(map, np.repeat(point[None], len(map.darts), axis=0), map.darts)
    return map.darts[np.argmax(least - 1e6 * away)]


SURFACES = {
    "sphere": lambda: generate.icosphere(2),
    "torus": lambda: generate.torus(800),
    "knot": lambda: generate.trefoil_knot(2000),
    "blob": lambda: generate.bumpy_sphere(2000),
}


def wander(name, rng, steps):
    """Move points along a surface and check after every step that they are on it and in their cells."""
    map = map_of_mesh(SURFACES[name]())
    split(map, rng.choice(map.leaves, 20, replace=False))
    size = np.ptp(map.positions, axis=0).max()
    points, darts = planted(map, rng, 50)
    headings = rng.normal(0, 0.02 * size, (50, 3))
    for _ in range(steps):
        found = glide(map, points, headings, darts)
        points, darts, headings = found.position, found.dart, found.heading
        least, away = weights_in(map, points, darts)
        assert (least > -1e-9).all()
        assert away.max() < 1e-9 * size
        assert not found.blocked.any()


@pytest.mark.parametrize("name", SURFACES)
def test_points_stay_on_curved_surfaces_and_in_their_cells(name, rng):
    wander(name, rng, 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", SURFACES)
def test_points_stay_on_curved_surfaces_for_ten_thousand_steps(name, rng, effort):
    wander(name, rng, effort(10_000))


def test_a_great_circle_of_a_fine_sphere_nearly_closes():
    map = map_of_mesh(generate.icosphere(4))
    darts = map.darts[[5, 500, 3000]]
    points = on_surface(map, darts, np.full((3, 3), 1 / 3))
    radius = np.linalg.norm(points, axis=1)
    heading = np.cross(points, [0.3, 0.5, 0.8])
    heading *= (2 * np.pi * radius / np.linalg.norm(heading, axis=1))[:, None]
    found = glide(map, points, heading, darts)
    assert np.linalg.norm(found.position - points, axis=1).max() < 0.03 * radius.max()


def closest(map, points):
    """(n, 3) the nearest points of a surface, by trying every triangle."""
    corners = Snapshot(map).corners
    found = [closest_point(corners, np.repeat(x[None], len(corners), axis=0)) for x in points]
    return np.array([y[np.argmin(np.linalg.norm(y - x, axis=1))] for x, y in zip(points, found)])


def test_registered_points_are_put_on_the_nearest_triangle_and_glide_from_there(rng, device):
    map = map_of_mesh(generate.bumpy_sphere(320), device=device)
    off = rng.normal(0, 0.6, (60, 3))
    registration = Registration(map, off, [[0, 1], [2, 3]])
    np.testing.assert_allclose(registration.points, closest(map, off), atol=1e-12)
    before, darts, by = registration.points.copy(), registration.darts.copy(), rng.normal(0, 0.2, (60, 3))
    assert not registration.move(before + by).any()
    there = glide(map, before, by, darts)
    np.testing.assert_allclose(registration.points, there.position, atol=1e-12)
    assert np.array_equal(registration.cells, there.cell)
    assert registration.crossed("segments", 1).tolist() == np.unique(registration.cells[2:4]).tolist()
    check_registration(registration)


def test_an_obstacle_on_a_surface_stops_registered_points(rng):
    map = map_of_mesh(generate.icosphere(2))
    registration = Registration(map, on_surface(map, map.darts[::7], rng.dirichlet([1, 1, 1], len(map.darts[::7]))))
    around = np.setdiff1d(map.leaves, registration.cells[:1])
    map.block("cell", around)
    assert registration.move(registration.points + rng.normal(0, 2, registration.points.shape))[0]
    check_registration(registration)
    assert registration.cells[0] not in around


def test_a_surface_that_bends_carries_its_points(rng, device):
    map = map_of_mesh(generate.icosphere(2), device=device)
    registration = Registration(map, on_surface(map, map.darts[::9], rng.dirichlet([1, 1, 1], len(map.darts[::9]))))
    before, darts = registration.points.copy(), registration.darts.copy()
    registration.deform(map.positions @ np.diag([2.0, 1.0, 0.5]))
    np.testing.assert_allclose(registration.points, before @ np.diag([2.0, 1.0, 0.5]), atol=1e-12)
    assert np.array_equal(registration.cells, map.numpy("cell")[darts])


def test_what_needs_planes_is_refused_on_curved_surfaces():
    map = map_of_mesh(generate.icosphere(1))
    points = map.numpy("centre")[:3]
    for call in (locate, lambda m, x: move(m, x, x, map.darts[:3]), lambda m, x: crossed_cells(m, x, x, map.darts[:3])):
        with pytest.raises(UnsupportedError, match="curved surface"):
            call(map, points)
    with pytest.raises(UnsupportedError, match="curved surfaces"):
        Registration(map, points, None, [[0, 1, 2]], fill=True)


def test_gliding_is_for_surfaces():
    from tangere.cells.generate import hex_grid

    block = hex_grid(1, 1, 1)
    with pytest.raises(InputError, match="2-map"):
        glide(block, [[0.5, 0.5, 0.5]], [[1, 0, 0]], locate(block, [[0.5, 0.5, 0.5]]).dart)
