"""Ground and analytic bodies as things: the meshes that are drawn of them are where the bodies are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles.families.drawn_scenes import contacts_at, square
from tangere.motion import Twist
from tangere.runtime import InputError
from tangere.scene import Scene, Thing
from tangere.shape.analytic import Box, Capsule, Cone, ConvexMesh, Cylinder, Sphere
from tangere.shape.generate import box
from tangere.shape.heightfield import Heightfield, TiledHeightfield

BODIES = {
    "cylinder": (Cylinder(0.5, 1.2), math.pi * 0.25 * 1.2),
    "sphere": (Sphere(0.7), 4.0 / 3.0 * math.pi * 0.343),
    "capsule": (Capsule(0.4, 1.0), math.pi * 0.16 + 4.0 / 3.0 * math.pi * 0.064),
    "cone": (Cone(0.6, 0.9), math.pi * 0.36 * 0.3),
    "box": (Box([0.5, 0.3, 0.2]), 0.24),
    "convex mesh": (ConvexMesh(box(size=(1.0, 0.5, 0.25))), 0.125),
}


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """By the divergence theorem: positive only if the triangles face outward and leave no gap."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def turned(rng: np.random.Generator, count: int) -> np.ndarray:
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    poses[:, :3, 0] *= np.sign(np.linalg.det(poses[:, :3, :3]))[:, None]
    poses[:, :3, 3] = rng.normal(size=(count, 3))
    return poses


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_is_drawn_closed_outward_and_nearly_as_large_as_it_is(kind, rng):
    body, size = BODIES[kind]
    thing = Thing("body", body.at(turned(rng, 3)))
    share = volume(thing.vertices(0.0), thing.faces) / (3.0 * size)
    assert 0.98 < share < 1.0 + 1e-12


def test_the_vertices_of_cylinders_of_all_sizes_lie_on_them(rng):
    radius, height = rng.uniform(0.1, 2.0, (2, 5))
    poses = turned(rng, 5)
    drawn = Thing("wheels", Cylinder(radius, height).at(poses)).vertices(0.0).reshape(5, -1, 3)
    local = np.einsum("nkj,nji->nki", drawn - poses[:, None, :3, 3], poses[:, :3, :3])
    around = np.hypot(local[..., 0], local[..., 1])
    assert around.max(axis=1) == pytest.approx(radius)
    assert np.abs(local[..., 2]) == pytest.approx(np.tile(height[:, None] / 2.0, local.shape[1]))


def test_moving_bodies_are_where_their_motion_has_them(rng):
    start = turned(rng, 4)
    motion = Twist(start, rng.normal(size=(4, 3)), rng.normal(size=(4, 3)))
    thing = Thing("balls", Cylinder(0.2, 0.1).moving(motion))
    assert thing.moves
    drawn = thing.vertices(0.3).reshape(4, -1, 3)
    assert (drawn.max(axis=1) + drawn.min(axis=1)) / 2.0 == pytest.approx(motion.pose(0.3)[:, :3, 3], abs=1e-2)
    at_rest = Thing("balls", Cylinder(0.2, 0.1).at(motion.pose(0.3)))
    assert thing.vertices(0.3) == pytest.approx(at_rest.vertices(0.0))
    assert (thing.faces == at_rest.faces).all()


def test_a_body_with_many_motions_is_drawn_as_often():
    motion = Twist(np.tile(np.eye(4), (6, 1, 1)), np.arange(18.0).reshape(6, 3), np.zeros(3))
    thing = Thing("ball", Sphere(0.5).moving(motion))
    middles = thing.vertices(1.0).reshape(6, -1, 3).mean(axis=1)
    assert middles == pytest.approx(np.arange(18.0).reshape(6, 3), abs=1e-9)


def test_ground_is_drawn_at_its_heights_and_not_where_there_is_none(rng):
    heights = rng.normal(size=(4, 5))
    holes = np.zeros((3, 4), bool)
    holes[1, 2] = True
    ground = Heightfield(heights, (0.5, 0.25), (1.0, 2.0, 3.0), holes)
    thing = Thing("ground", ground)
    assert thing.vertices(0.0) == pytest.approx(ground.vertices.reshape(-1, 3))
    assert len(thing.faces) == 2 * (12 - 1)


def test_scenes_take_ground_and_bodies_and_name_them(tmp_path):
    ground = Heightfield(np.zeros((3, 3)), name="yard")
    scene = Scene.of(ground, Cylinder(0.3, 0.9), Sphere(0.5).at(turned(np.random.default_rng(0), 7)))
    assert [thing.name for thing in scene.things] == ["yard", "1 x cylinder", "7 x sphere"]
    assert len(Scene.around(ground).things) == 1


def test_a_recording_keeps_the_surfaces_and_the_size_of_marks(tmp_path):
    things = (Thing("yard", Heightfield(np.eye(3))), Thing("wheel", Cylinder(0.3, 0.2)))
    Scene(things, mark_size=0.4).save(tmp_path / "scene.npz")
    again = Scene.load(tmp_path / "scene.npz")
    assert again.mark_size == 0.4
    for old, new in zip(things, again.things, strict=True):
        assert (old.vertices(0.0) == new.vertices(0.0)).all()
        assert (old.faces == new.faces).all()


def test_what_cannot_be_drawn_and_marks_without_size_are_refused():
    with pytest.raises(InputError, match="not TiledHeightfield"):
        Thing("moon", TiledHeightfield(np.zeros((3, 3))))
    for size in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="mark_size"):
            Scene.of(square(0.0), mark_size=size)


def test_marks_half_as_large_cover_a_quarter_of_the_picture():
    pytest.importorskip("PIL")
    from tangere.view import picture

    contacts = contacts_at([0.0], np.zeros((1, 3)), np.zeros((1, 3)))
    shown = [picture(Scene.of(square(-1.0), contacts=contacts, mark_size=size), size=(480, 480)) for size in (2.0, 1.0)]
    without = picture(Scene.of(square(-1.0)), size=(480, 480)).astype(int)
    large, small = (int((np.abs(image - without).sum(axis=2) > 60).sum()) for image in shown)
    assert small > 20
    assert large / small == pytest.approx(4.0, rel=0.25)
