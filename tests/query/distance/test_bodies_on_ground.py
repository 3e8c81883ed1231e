"""Distances of analytic bodies and the ground: closed forms on a plane, all triangles one by one on rough ground."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.convex_families import bodies, poses, sizes
from tangere.query.contacts import Kind, Status

FLAT = tg.Heightfield(np.zeros((60, 60)), 0.5)
KINDS = ("sphere", "box", "cylinder")


def test_over_a_plane_the_lowest_point_tells(rng, effort, device):
    for kind in KINDS:
        count = effort(12, 4)
        place = poses(count, rng, 0.5)
        place[:, :3, 3] += (15.0, 15.0, 2.5)
        body = bodies(kind, **sizes(kind, count, rng)).at(place)
        found = tg.distance(body, FLAT, device=device)
        down = np.array([0.0, 0.0, -1.0])
        for row in range(count):
            turned = place[row, :3, :3].T @ down
            half, radius = (body.records[name][row] for name in ("half", "radius"))
            low = {
                "sphere": radius,
                "box": half @ np.abs(turned),
                "cylinder": half[2] * abs(turned[2]) + radius * np.hypot(*turned[:2]),
            }[kind]
            height = place[row, 2, 3] - low
            assert found.lower[row] - 1e-8 <= max(height, 0.0) <= found.upper[row] + 1e-8
        assert (tg.intersects(body, FLAT, device=device) == (found.lower == 0.0)).all()


def test_over_rough_ground_no_triangle_is_nearer(rng, effort, device):
    field = tg.Heightfield(2.0 * rng.random((41, 45)), 0.5, holes=rng.random((40, 44)) < 0.2)
    surface, count = field.to_mesh(), effort(10, 4)
    for kind in KINDS:
        place = poses(count, rng, 1.0)
        place[:, :3, 3] += (11.0, 10.0, 4.0)
        body = bodies(kind, **sizes(kind, count, rng)).at(place)
        found, whole = tg.distance(body, field, device=device), tg.distance(body, surface, device=device)
        np.testing.assert_allclose(found.upper, whole.upper, rtol=0, atol=1e-7)
        assert (found.lower <= whole.upper).all()
        assert (whole.lower <= found.upper).all()


def test_one_body_is_answered_as_in_a_batch_with_a_triangle_that_holds_the_point(rng, effort, device):
    """Over several squares of ground, the nearest one first: what comes after is asked within what is known."""
    field = tg.Heightfield(rng.random((70, 75)), 0.5, origin=(-3.0, 2.0, 1.0))
    mesh = field.to_mesh()
    corners = mesh.vertices[mesh.faces.reshape(2, -1, 3).swapaxes(0, 1).reshape(-1, 3)]  # T0 and T1 of each cell
    count = effort(12, 6)
    place = poses(count, rng, 2.0)
    place[:, :3, 3] += (13.0, 18.0, 5.0)  # where four squares of 32 by 32 cells meet
    for body in (tg.Sphere(0.5), tg.Box([0.4, 0.2, 0.3]), tg.Cone(0.5, 1.0)):
        batch = tg.distance(body.at(place), field, device=device)
        for row in range(count):
            alone = tg.distance(body.at(place[row]), field, device=device)
            for name in ("lower", "upper", "point_a", "point_b", "normal", "triangle_b"):
                assert np.array_equal(getattr(alone, name), getattr(batch, name)[row])
            a, b, c = corners[alone.triangle_b]
            weights = np.linalg.lstsq(np.stack([b - a, c - a], axis=1), alone.point_b - a, rcond=None)[0]
            assert np.linalg.norm(a + weights[0] * (b - a) + weights[1] * (c - a) - alone.point_b) < 1e-12
            assert min(*weights, 1.0 - weights.sum()) > -1e-12


def test_what_is_below_the_ground_is_inside_it(device):
    pose = np.eye(4)
    pose[:3, 3] = 10.0, 10.0, -4.0
    for body in (tg.Sphere(0.5), tg.Box([0.3, 0.3, 0.3]), tg.Cylinder(0.5, 1.0)):
        found = tg.distance(body.at(pose), FLAT, device=device)
        assert (found.upper, found.kind) == (0.0, Kind.INSIDE)
        assert tg.intersects(body.at(pose), FLAT, device=device)
        assert tg.first_contact(body.at(pose), FLAT, device=device).status == tg.Status.START


def test_what_reaches_below_the_ground_from_beside_it_is_in_it(rng, effort, device):
    """Bodies at the border and at holes, point by point: the ground is solid below its surface, and nowhere else."""
    heights = np.array([[0.0, 0.2, -0.1, 0.1]] * 4) + 0.1 * rng.random((4, 4))
    field = tg.Heightfield(heights, 1.0, holes=np.eye(3, dtype=bool))
    count, told = effort(150, 30), []
    points = rng.normal(size=(4000, 3))
    points /= np.maximum(1.0, np.linalg.norm(points, axis=1) / rng.random(4000) ** (1 / 3))[:, None]
    square = np.abs(rng.uniform(-1.0, 1.0, (4000, 3)))
    turn, out = rng.uniform(0.0, 2 * np.pi, 4000), 0.4 * np.sqrt(square[:, 0])
    round_ = np.stack([out * np.cos(turn), out * np.sin(turn), rng.uniform(-0.3, 0.3, 4000)], axis=1)
    pointed = round_ * np.stack([*[0.5 - round_[:, 2] / 0.6] * 2, np.ones(4000)], axis=1)
    ball = tg.generate.icosphere(subdivisions=1)
    for body, inside in (
        (tg.Sphere(0.4), 0.4 * points),
        (tg.Cylinder(0.4, 0.6), round_),
        (tg.Cone(0.4, 0.6), pointed),
        (tg.Box([0.4, 0.2, 0.3]), rng.uniform(-1.0, 1.0, (4000, 3)) * (0.4, 0.2, 0.3)),
        (tg.ConvexMesh(ball.replace(vertices=0.5 * ball.vertices)), 0.39 * points),
    ):
        place = poses(count, rng, 1.0)
        place[:, :2, 3] = rng.uniform(-0.8, 3.8, (count, 2))
        place[:, 2, 3] = rng.uniform(-1.6, 0.4, count)

        def is_below(samples, place=place):
            world = np.einsum("nij,pj->npi", place[:, :3, :3], samples) + place[:, None, :3, 3]
            return (world[..., 2] < field.height_at(world)).any(axis=1)  # no height, NaN, beside the ground

        below = is_below(inside)
        found = tg.distance(body.at(place), field, device=device)
        start = tg.first_contact(body.at(place).moving(tg.Rest(np.eye(4))), field, device=device)
        assert (found.upper[below] == 0.0).all()
        assert (start.status[below] == Status.START).all()
        # What twice as large is nowhere below is not below.
        assert is_below(2.0 * inside)[found.upper == 0.0].all()
        assert is_below(2.0 * inside)[start.status == Status.START].all()
        told.append(below)
    assert 0.05 < np.mean(told) < 0.95


def test_a_resting_body_is_asked_about_first_contact_too(device):
    pose = np.eye(4)
    pose[:3, 3] = 10.0, 10.0, 0.75
    assert not tg.first_contact(tg.Sphere(0.5).at(pose), FLAT, device=device)
    assert tg.first_contact(tg.Sphere(0.5).at(pose), FLAT, separation=0.3, device=device)
    assert tg.distance(tg.Sphere(0.5).at(pose), FLAT, device=device).upper == pytest.approx(0.25)


def test_no_bodies_have_no_distances(device):
    none = tg.Cylinder(0.5, 1.0).at(np.zeros((0, 4, 4)))
    found = tg.distance(none, FLAT, device=device)
    assert found.upper.shape == found.triangle_b.shape == (0,)
    assert found.point_a.shape == found.weights_b.shape == (0, 3)
    assert tg.intersects(none, FLAT, device=device).shape == (0,)
