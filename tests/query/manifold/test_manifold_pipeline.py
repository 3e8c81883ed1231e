"""The pipeline that CUDA runs gives what the traversal gives, bit for bit; here both run on the same device."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.bodies_on_terrain import GROUNDS, Scene, random_scene
from tangere.bvh.height_pyramid import HeightPyramid
from tangere.query.contacts import Contacts
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.query.manifold.cuda import pipeline
from tangere.query.manifold.cuda.reduction import IN_REGISTERS
from tangere.query.manifold.details import record_of
from tangere.runtime import InputError
from tangere.shape.analytic import Analytic, AnalyticShape, Box, Capsule, Cone, Cylinder, hull_tables
from tangere.shape.heightfield import Heightfield


def pipeline_contacts(bodies: Analytic, field: Heightfield, margin: float) -> Contacts:
    """The contacts of all chunks."""
    device = wp.get_device("cpu")
    inputs = [
        HeightPyramid.of(field, device).row,
        wp.array(bodies.records, dtype=AnalyticShape, device=device),
        wp.array(bodies.poses, dtype=wp.mat44d, device=device),
        wp.array(np.array([margin]), dtype=wp.float64, device=device),
        hull_tables(bodies.hull, "cpu"),
        wp.zeros(1, dtype=wp.int32, device=device),
    ]
    parts = pipeline.manifold_cuda(bodies.kind, pipeline.index_range(len(bodies), "cpu"), inputs, device)
    return record_of(parts, bodies.poses, ordered=True)


def assert_same(bodies: Analytic, field: Heightfield, margin: float) -> int:
    found = pipeline_contacts(bodies, field, margin)
    expected = manifold(bodies, field, distance=margin, device="cpu")
    assert_equal(found, expected)
    return len(found)


def assert_equal(found: Contacts, expected: Contacts) -> None:
    for name in Contacts.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def lowered(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """The poses of a scene, from half a radius in the ground to a little above it."""
    poses, count = scene.poses.copy(), len(scene.poses)
    low, high = (np.full(count, scene.field.bounds[k, 2] + away) for k, away in ((0, -10.0), (1, 10.0)))
    for _ in range(40):
        poses[:, 2, 3] = 0.5 * (low + high)
        hit = touches(Cylinder(scene.radius, scene.height).at(poses), scene.field, device="cpu").hit
        low, high = np.where(hit, poses[:, 2, 3], low), np.where(hit, high, poses[:, 2, 3])
    poses[:, 2, 3] = high - scene.radius * rng.uniform(-0.02, 0.5, count) ** 2
    return poses


@pytest.mark.parametrize("kind", GROUNDS)
def test_cylinders_have_the_same_contacts(kind, rng, effort):
    scene = random_scene(kind, effort(150), rng)
    assert assert_same(Cylinder(scene.radius, scene.height).at(lowered(scene, rng)), scene.field, 0.01) > 0


def test_other_bodies_have_the_same_contacts(rng, effort):
    scene = random_scene("rough", effort(60), rng)
    for body in (Capsule(0.3, 0.5), Cone(0.3, 0.8), Box([0.3, 0.3, 0.4])):
        assert assert_same(body.at(lowered(scene, rng)), scene.field, 0.01) > 0


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_steep_ground_far_below_the_margin_is_not_left_out(margin, rng, effort):
    """On spikes normals lean, and gaps along them are a small part of the height above the ground."""
    scene = random_scene("spikes", effort(40), rng, cell_per_radius=0.3)
    poses = lowered(scene, rng)
    for body in (Cylinder(scene.radius, scene.height), Capsule(0.3, 0.5), Cone(0.3, 0.8), Box([0.3, 0.3, 0.4])):
        assert assert_same(body.at(poses), scene.field, margin) > 0


def test_it_does_not_matter_in_how_many_parts_and_with_how_much_room(rng, effort, monkeypatch):
    scene = random_scene("rough", effort(80), rng)
    bodies = Cylinder(scene.radius, scene.height).at(lowered(scene, rng))
    whole = pipeline_contacts(bodies, scene.field, 0.02)
    assert len(whole)
    monkeypatch.setattr(pipeline, "MOST_CANDIDATES", 50)
    monkeypatch.setattr(pipeline, "MOST_CONTACT_POINTS", 20)
    monkeypatch.setattr(pipeline, "MOST_BODIES", 7)
    monkeypatch.setattr(pipeline, "INITIAL", {"candidates": 0.01, "contact points": 0.01, "contacts": 0.01})
    monkeypatch.setattr(pipeline, "SPARE", 1)
    pipeline._Demand._cached.cache_clear()
    assert_equal(pipeline_contacts(bodies, scene.field, 0.02), whole)


@pytest.mark.parametrize("expected", [0.01, 1.0, 1.1, 100.0])
def test_it_does_not_matter_how_many_contacts_were_expected(expected, rng, effort, monkeypatch):
    scene = random_scene("rough", effort(80), rng)
    bodies = Cylinder(scene.radius, scene.height).at(lowered(scene, rng))
    whole = pipeline_contacts(bodies, scene.field, 0.02)
    monkeypatch.setattr(pipeline, "MANY", 1)
    pipeline._Demand.of("contacts", bodies.kind, wp.get_device("cpu")).per_body = expected * len(whole) / len(bodies)
    for _ in range(2):  # then it is known
        assert_equal(pipeline_contacts(bodies, scene.field, 0.02), whole)


def test_a_pose_that_is_not_finite_is_named(rng):
    poses = np.tile(np.eye(4), (5, 1, 1))
    poses[3, 1, 3] = np.nan
    bodies = Cylinder(0.5, 1.0).at(np.tile(np.eye(4), (5, 1, 1)))
    object.__setattr__(bodies, "poses", poses)
    with pytest.raises(InputError, match="body 3"):
        pipeline_contacts(bodies, Heightfield(np.zeros((4, 4))), 0.0)


def test_more_contact_points_than_are_sorted_in_registers_are_all_there(rng):
    """Lying cylinders deep in noise touch it in many places with normals of their own, so that few are left out."""
    field = Heightfield(rng.uniform(0.0, 0.2, (61, 61)), 0.1)
    poses = np.tile(np.eye(4), (6, 1, 1))
    poses[:, :3, :3] = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    poses[:, :2, 3] = rng.uniform(2.0, 4.0, (6, 2))
    poses[:, 2, 3] = 0.9
    bodies = Cylinder(1.0, 1.5).at(poses)
    assert_same(bodies, field, 0.01)
    assert np.bincount(pipeline_contacts(bodies, field, 0.01).query).max() > IN_REGISTERS
