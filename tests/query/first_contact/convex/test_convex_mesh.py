"""Analytic bodies and rigid meshes: the trees find what all triangles together say."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from oracles.convex_families import KINDS, bodies, poses, sizes
from oracles.rigid_distances import triangle_distances
from tangere.query.distance.convex.bodies import SHAPE, ConvexBodies
from tangere.query.distance.convex.narrow_phase import ConvexAnswer, distance_kernel
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.runtime import InputError, launch

TOLERANCE = 1e-6
MESH = tg.generate.bumpy_torus(24, 12)
SIZE = float(np.ptp(MESH.bounds, axis=0).max())


def placed(*place: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = place
    return pose


def least(body, place_body: np.ndarray, mesh, place_mesh: np.ndarray) -> tuple[float, float]:
    """Bounds of the distance of one body from a mesh, triangle by triangle: no tree."""
    cpu = wp.get_device("cpu")
    convex, corners = ConvexBodies.of(body, cpu), mesh.vertices[mesh.faces]
    shapes = np.zeros(len(corners), SHAPE)
    shapes["first"], shapes["count"] = 3 * np.arange(len(corners)), 3
    shapes["reach"] = np.linalg.norm(corners, axis=2).max(axis=1)
    out = wp.empty(len(corners), dtype=ConvexAnswer, device=cpu)
    inputs = [convex.shapes, convex.points, wp.array(place_body[None], dtype=wp.mat44d, device=cpu)]
    inputs += [wp.array(shapes, dtype=ConvexShape, device=cpu)]
    inputs += [wp.array(corners.reshape(-1, 3), dtype=wp.vec3d, device=cpu)]
    inputs += [wp.array(place_mesh[None], dtype=wp.mat44d, device=cpu), 1e-9]
    launch(distance_kernel(convex.kind, ConvexKind.TRIANGLE), len(corners), inputs, [out], device=cpu)
    found = out.numpy()
    return float(found["lower"].min()), float(found["upper"].min())


def small(kind: str, rng):
    given = {name: 0.4 * value for name, value in sizes(kind, 1, rng).items()}
    return bodies(kind, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_the_least_over_all_triangles(kind, rng, effort, device):
    count = effort(60)
    body = small(kind, rng)
    place, other = poses(count, rng, 0.7), poses(count, rng, 0.2)
    found = tg.distance(body.at(place), MESH.moving(tg.Rest(other)), device=device)
    for k in range(count):
        lower, upper = least(body, place[k], MESH, other[k])
        assert found.lower[k] <= upper + 1e-12
        assert found.upper[k] >= lower - 1e-12
        assert found.upper[k] - found.lower[k] <= 2e-9 * SIZE
        assert (found.kind[k] == tg.Kind.OVERLAP) == (upper == 0.0)
        assert tg.intersects(body.at(place[k]), MESH.moving(tg.Rest(other[k])), device=device) == (lower <= 0.0)
    assert (found.triangle_b >= 0).all()
    assert (found.triangle_a == -1).all()
    swapped = tg.distance(MESH.moving(tg.Rest(other)), body.at(place), device=device)
    np.testing.assert_array_equal(swapped.upper, found.upper)
    np.testing.assert_array_equal(swapped.triangle_a, found.triangle_b)
    np.testing.assert_array_equal(swapped.point_a, found.point_b)


def test_a_ball_is_as_far_as_its_centre_less_its_radius(rng):
    place = poses(30, rng, 1.0)
    found = tg.distance(tg.Sphere(0.05).at(place), MESH, device="cpu")
    corners = MESH.vertices[MESH.faces]
    for k in range(30):
        point = np.broadcast_to(place[k, :3, 3], (len(corners), 3, 3))  # a triangle without size
        expected = max(triangle_distances(point, corners).min() - 0.05, 0.0)
        assert found.lower[k] - 1e-12 <= expected <= found.upper[k] + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_none_is_late_and_none_is_missed(kind, rng, effort, device):
    count = effort(24)
    body = small(kind, rng)
    start = poses(count, rng, 0.0)
    way = rng.normal(size=(count, 3))
    start[:, :3, 3] = way / np.linalg.norm(way, axis=1)[:, None] * 1.2 * SIZE
    aim = MESH.vertices[rng.integers(0, len(MESH.vertices), count)] + rng.normal(size=(count, 3)) * 0.3
    thrown = body.moving(tg.Twist(start, 1.1 * (aim - start[:, :3, 3]), rng.normal(size=(count, 3)) * 2.0))
    turning = MESH.moving(tg.Twist(np.eye(4), [0.0, 0.1, 0.0], [0.3, 0.0, 0.5]))
    found = tg.first_contact(thrown, turning, tolerance=TOLERANCE, device=device)
    assert (found.status != tg.Status.UNRESOLVED).all()
    assert (found.status == tg.Status.CONTACT).any()
    swapped = tg.first_contact(turning, thrown, tolerance=TOLERANCE, device=device)
    np.testing.assert_array_equal(swapped.time, found.time)
    np.testing.assert_array_equal(swapped.normal, -found.normal)
    free = found.status == tg.Status.FREE
    end = np.where(free, 1.0, np.minimum(found.time, 1.0))
    for k in range(count):
        for part in (*np.linspace(0.0, 1.0, 12, endpoint=False), 0.999, 0.99999):
            where = thrown.motion[k].pose(end[k] * part), turning.motion.pose(end[k] * part)
            assert least(body, where[0], MESH, where[1])[1] > 0.0, "late or missed"
        if not free[k]:
            where = thrown.motion[k].pose(end[k]), turning.motion.pose(end[k])
            assert least(body, where[0], MESH, where[1])[0] <= TOLERANCE
            if np.isfinite(found.time_upper[k]):
                where = [motion.pose(min(found.time_upper[k], 1.0)) for motion in (thrown.motion[k], turning.motion)]
                assert least(body, where[0], MESH, where[1])[0] <= 1e-12


def test_bodies_are_solid_and_meshes_are_surfaces():
    box = tg.generate.box([1.0, 1.0, 1.0])
    large, tiny = tg.Sphere(5.0), tg.Sphere(0.1)
    assert tg.distance(large, box, device="cpu").kind == tg.Kind.OVERLAP
    assert tg.intersects(box, large, device="cpu")
    assert tg.first_contact(large, box, device="cpu").status == tg.Status.START
    assert tg.distance(tiny, box, device="cpu").upper > 0.3
    assert not tg.intersects(tiny, box, device="cpu")
    shaken = tiny.moving(tg.Twist(np.eye(4), [0.2, 0.0, 0.0], [0.0, 0.0, 3.0]))
    assert not tg.first_contact(shaken, box, device="cpu")


def test_one_throw_tells_its_triangle_and_where():
    box = tg.generate.box([1.0, 1.0, 1.0])
    ball = tg.Sphere(0.5).moving(tg.Twist(placed(0.1, 0.2, 3.0), [0.0, 0.0, -4.0], [9.0, 0.0, 0.0]))
    top = float(box.bounds[1, 2])
    hit = tg.first_contact(ball, box, device="cpu")
    expected = (3.0 - 0.5 - top) / 4.0
    assert expected - 1e-5 <= hit.time <= expected
    assert hit.contacts.feature_a[0] == -1
    assert (box.vertices[box.faces[hit.contacts.feature_b[0]]][:, 2] == top).all()
    np.testing.assert_allclose(hit.contacts.point_b[0], [0.1, 0.2, top], atol=1e-5)
    np.testing.assert_allclose(hit.contacts.normal[0], [0.0, 0.0, 1.0], atol=1e-6)
    other = tg.first_contact(box, ball, device="cpu")
    assert other.time == hit.time
    assert other.contacts.feature_a[0] == hit.contacts.feature_b[0]
    path = tg.Path(np.stack([placed(0.1, 0.2, 3.0), placed(0.1, 0.2, 1.5), placed(0.1, 0.2, -1.0)]))
    along = tg.first_contact(tg.Sphere(0.5).moving(path), box, device="cpu")
    assert path.pose(along.time)[2, 3] == pytest.approx(0.5 + top, abs=1e-5)


def test_a_deforming_mesh_is_asked_at_one_instant_for_distance():
    box = tg.generate.box([1.0, 1.0, 1.0])
    falling = box.moving(tg.Linear(box.vertices + [0.0, 0.0, 5.0]))
    found = tg.distance(tg.Sphere(0.5).at(placed(0.0, 0.0, 9.0)), falling, time=1.0, device="cpu")
    assert found.upper == pytest.approx(9.0 - 5.0 - 0.5 - float(box.bounds[1, 2]), abs=1e-9)
    with pytest.raises(InputError, match="pair off"):
        tg.distance(tg.Sphere(0.5).at(np.stack([np.eye(4)] * 3)), box.moving(tg.Rest(np.stack([np.eye(4)] * 2))))
