"""Spheres, capsules, boxes, cones and hulls on height grids: what is found is there, and nothing deeper is missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.bodies_on_terrain import ground, outside, random_rotations, surface_points
from tangere.query.manifold import manifold
from tangere.shape.analytic import Box, Capsule, Cone, ConvexMesh, Cylinder, Sphere
from tangere.shape.generate import icosphere
from tangere.shape.heightfield import Heightfield

SIZES = {
    "cylinder": np.array([0.4, 1.0]),
    "capsule": np.array([0.3, 0.8]),
    "cone": np.array([0.5, 0.9]),
    "box": np.array([0.3, 0.5, 0.4]),
}
SHAPES = {"cylinder": Cylinder, "capsule": Capsule, "cone": Cone}


def body(kind: str):
    return Box(SIZES[kind]) if kind == "box" else SHAPES[kind](*SIZES[kind])


def check_points(kind: str, field: Heightfield, poses: np.ndarray, found) -> np.ndarray:
    """Each contact is a point of the body below a point of the ground, by its depth; returns the penetrations."""
    local = np.einsum("nji,nj->ni", poses[found.query, :3, :3], found.point_a - poses[found.query, :3, 3])
    np.testing.assert_allclose(outside(kind, SIZES[kind], local), 0.0, atol=1e-7)
    level = field.height_at(found.point_a)
    penetration = -found.gap / found.normal[:, 2]
    sideways = (found.normal[:, 2] < 0.7) & (np.abs(level - found.point_a[:, 2] - penetration) > 1e-6)  # walls
    np.testing.assert_allclose((level - found.point_a[:, 2])[~sideways], penetration[~sideways], atol=3e-6)
    assert sideways.mean() < 0.2
    return np.where(sideways, 0.0, penetration)


@pytest.mark.feature("F-S-29")
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("land", ["hills", "rough", "kerbs", "flat"])
def test_no_sampled_point_of_a_body_is_deeper_than_the_contacts_found(kind, land, rng, effort):
    cell = 0.25
    field = Heightfield(ground(land, 48, cell, rng, 0.5), (cell, 0.8 * cell))
    count = effort(60)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    poses[:, :2, 3] = rng.uniform(2.0, 7.0, (count, 2))
    samples = surface_points(kind, SIZES[kind], rng, 4000)
    placed = np.einsum("nij,kj->nki", poses[:, :3, :3], samples) + poses[:, None, :3, 3]
    level = field.height_at(placed.reshape(-1, 3)).reshape(count, -1)
    poses[:, 2, 3] = (level - placed[..., 2]).max(axis=1) - rng.uniform(0.0, 0.1, count)  # in by up to 10 cm
    sampled = (level - placed[..., 2]).max(axis=1) - poses[:, 2, 3]
    found = manifold(body(kind).at(poses), field, distance=0.0, device="cpu")
    penetration = check_points(kind, field, poses, found)
    most = np.full(count, -np.inf)
    np.maximum.at(most, found.query, penetration)
    walled = np.zeros(count, bool)
    walled[found.query[found.normal[:, 2] < 0.7]] = True
    assert (most >= sampled - 3e-6)[~walled].all()
    assert (most[~walled] <= sampled[~walled] + 0.1).all()
    assert set(found.query) == set(range(count))


@pytest.mark.feature("F-S-29")
def test_a_sphere_on_a_plane_a_ridge_and_a_peak_touches_where_it_is_nearest(rng):
    heights = np.zeros((9, 9))
    heights[:, 4] = 0.5
    ridge = Heightfield(heights, 1.0)
    spheres, offsets = Sphere(0.7), rng.uniform(-0.3, 0.3, 50)
    poses = np.tile(np.eye(4), (50, 1, 1))
    poses[:, 0, 3], poses[:, 1, 3] = 4.0 + 0.2 * offsets, rng.uniform(3.0, 5.0, 50)
    poses[:, 2, 3] = 0.5 + np.sqrt(0.7**2 - (0.2 * offsets) ** 2) - 1e-4
    found = manifold(spheres.at(poses), ridge, distance=0.0, device="cpu")
    towards = poses[found.query, :3, 3] - np.column_stack(
        [np.full(len(found), 4.0), found.point_b[:, 1], np.full(len(found), 0.5)]
    )
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    assert len(found) == 50
    np.testing.assert_allclose(found.normal, towards, atol=1e-3)
    np.testing.assert_allclose(-found.gap, 0.7 - np.hypot(poses[:, 0, 3] - 4.0, poses[:, 2, 3] - 0.5), atol=1e-6)


def test_a_box_rests_on_four_corners_an_edge_or_a_corner():
    field = Heightfield(np.zeros((21, 21)), 0.2)
    pose = np.eye(4)
    pose[:3, 3] = [2.05, 2.05, 0.39]
    standing = manifold(Box([0.3, 0.5, 0.4]).at(pose), field, device="cpu")
    assert len(standing) == 4
    np.testing.assert_allclose(standing.gap, -0.01, atol=1e-12)
    a = 0.5
    pose[:3, :3] = [[np.cos(a), 0.0, np.sin(a)], [0.0, 1.0, 0.0], [-np.sin(a), 0.0, np.cos(a)]]
    pose[2, 3] = 0.3 * np.sin(a) + 0.4 * np.cos(a) - 0.01
    edge = manifold(Box([0.3, 0.5, 0.4]).at(pose), field, device="cpu")
    assert len(edge) == 2
    np.testing.assert_allclose(np.ptp(edge.point_a[:, 1]), 1.0, atol=1e-12)


@pytest.mark.feature("F-S-29")
def test_a_box_and_its_convex_mesh_have_the_same_contacts(rng):
    from tangere.shape.mesh import Mesh

    half = np.array([0.3, 0.5, 0.4])
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * half
    mesh = Mesh(corners, [[0, 1, 2]], name="corners")
    field = Heightfield(ground("rough", 40, 0.2, rng, 0.5), 0.2)
    poses = np.tile(np.eye(4), (80, 1, 1))
    poses[:, :3, :3] = random_rotations(80, rng)
    poses[:, :2, 3] = rng.uniform(2.0, 6.0, (80, 2))
    poses[:, 2, 3] = field.height_at(poses[:, :2, 3]) + 0.3
    box, hull = Box(half).at(poses), ConvexMesh(mesh).at(poses)
    one, two = (manifold(bodies, field, distance=0.0, device="cpu") for bodies in (box, hull))
    assert len(one) == len(two) > 80
    np.testing.assert_allclose(one.gap, two.gap, atol=1e-9)
    np.testing.assert_allclose(one.point_a, two.point_a, atol=1e-9)


def test_a_fine_hull_of_a_ball_rests_like_the_ball(rng):
    ball = icosphere(subdivisions=3)
    field = Heightfield(ground("hills", 40, 0.25, rng, 1.0), 0.25)
    poses = np.tile(np.eye(4), (30, 1, 1))
    poses[:, :2, 3] = rng.uniform(3.0, 7.0, (30, 2))
    poses[:, 2, 3] = field.height_at(poses[:, :2, 3]) + 0.9
    radius = float(np.linalg.norm(ball.vertices, axis=1).max())
    deepest = []
    for bodies in (ConvexMesh(ball), Sphere(radius)):
        found = manifold(bodies.at(poses), field, distance=0.0, device="cpu")
        most = np.zeros(30)
        np.maximum.at(most, found.query, -found.gap)
        deepest.append(most)
    np.testing.assert_allclose(*deepest, atol=0.02)


numbers = st.floats(-1.0, 1.0, allow_nan=False, width=32)


@given(
    heights=st.lists(numbers, min_size=25, max_size=25),
    place=st.tuples(st.floats(0.5, 3.5), st.floats(0.5, 3.5), st.floats(-1.5, 2.0)),
    turn=st.integers(0, 10_000),
    kind=st.sampled_from(sorted(SIZES)),
)
@settings(max_examples=60)
def test_any_body_with_a_point_under_the_ground_has_a_contact_that_deep(heights, place, turn, kind):
    rng = np.random.default_rng(turn)
    field = Heightfield(np.array(heights).reshape(5, 5), 1.0)
    pose = np.eye(4)
    pose[:3, :3] = random_rotations(1, rng)[0]
    pose[:3, 3] = place
    samples = surface_points(kind, SIZES[kind], rng, 500) @ pose[:3, :3].T + pose[:3, 3]
    sampled = np.nan_to_num((field.height_at(samples) - samples[:, 2]), nan=-1.0).max()
    found = manifold(body(kind).at(pose), field, device="cpu")
    if sampled > 1e-6:
        assert (found.gap <= 0.0).any()
        if (found.normal[:, 2] > 0.7).all():
            assert (-found.gap / found.normal[:, 2]).max() >= sampled - 1e-5
