"""A deforming mesh against a turning one, and other pairs without their own routine: never late, within tolerance."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.families.rigid_scenes import KINDS, random_motion, random_poses
from tangere.motion import Linear, Rest, Twist
from tangere.published.redon_intervals import IntervalOptions, first_contacts_by_intervals
from tangere.query.contacts import Status
from tangere.query.first_contact.mixed import api
from tangere.query.first_contact.mixed.api import first_contact_by_bounds
from tangere.runtime import InputError, UnsupportedError

fcl = pytest.importorskip("fcl")

EPS = 1e-6


def placed(mesh, motion, time):
    vertices = motion.positions(mesh.vertices, time).reshape(-1, 3)
    model = fcl.BVHModel()
    model.beginModel(len(vertices), len(mesh.faces))
    model.addSubModel(vertices, mesh.faces)
    model.endModel()
    return fcl.CollisionObject(model, fcl.Transform())


def collide(a, b) -> bool:
    return fcl.collide(a, b, fcl.CollisionRequest(), fcl.CollisionResult()) > 0


def distance(a, b) -> float:
    return fcl.distance(a, b, fcl.DistanceRequest(), fcl.DistanceResult())


@pytest.mark.parametrize("kind", KINDS)
def test_no_collision_is_sampled_before_the_answer_and_the_gap_there_is_small(kind, rng, effort, device):
    cloth, tool = tg.generate.sheet(72), tg.generate.torus(grid=(8, 6))
    hits = 0
    for _ in range(effort(8, least=5)):
        deforming = Linear(cloth.vertices + 0.1 * rng.normal(size=cloth.vertices.shape) + rng.normal(size=3))
        poses = random_motion(kind, rng, 1, 1.5)
        turning = type(poses).__new__(type(poses))
        turning._set(poses.records(), ())
        if collide(placed(cloth, deforming, 0.0), placed(tool, turning, 0.0)):
            continue
        found = first_contact_by_bounds(cloth.moving(deforming), tool.moving(turning), tolerance=EPS, device=device)
        until = min(found.time, 1.0)
        for t in np.linspace(0.0, until, 60)[:-1]:
            assert not collide(placed(cloth, deforming, t), placed(tool, turning, t)), (t, found.time)
        if np.isfinite(found.time):
            hits += 1
            assert distance(placed(cloth, deforming, until), placed(tool, turning, until)) <= 2 * EPS
            assert found.contacts.gap[0] <= 2 * EPS
    assert hits > 0


def test_two_rigid_bodies_give_what_the_tree_search_gives(rng, effort, device):
    a, b = tg.generate.torus(grid=(10, 6)), tg.generate.icosphere(subdivisions=1)
    for _ in range(effort(8)):
        pose = random_poses(rng, 1, 2.0)[0]
        motion = Twist(pose, -pose[:3, 3] * 1.5, rng.normal(size=3))
        one = first_contact_by_bounds(a.moving(motion), b, tolerance=EPS, device=device)
        other = first_contacts_by_intervals(a.moving(motion), b, IntervalOptions(tolerance=EPS), device=device)
        np.testing.assert_allclose(one.time, other.time[0], atol=1e-5)


def test_linear_motion_gives_what_the_linear_engine_gives(rng, effort, device):
    ball, sheet = tg.generate.icosphere(subdivisions=2), tg.generate.sheet(128, size=(2, 2))
    for _ in range(effort(5)):
        at = np.eye(4)
        at[:3, 3] = [0, 0, 1.5]
        start = ball.at(at)
        end = start.vertices + [*rng.normal(size=2) * 0.2, -1.0] + 0.05 * rng.normal(size=start.vertices.shape)
        moving = start.moving(Linear(end))
        found = first_contact_by_bounds(moving, sheet, tolerance=EPS, device=device)
        known = tg.first_contact(moving, sheet, device=device)
        np.testing.assert_allclose(found.time, known.time, atol=1e-5)


def test_the_same_answer_with_any_number_of_threads_and_either_way_round(rng, device):
    cloth, tool = tg.generate.sheet(288), tg.generate.torus(grid=(12, 8))
    pose = np.eye(4)
    pose[2, 3] = 1.0
    turning, falling = (
        tool.moving(Twist(pose, [0, 0, -2], [3, 0, 0])),
        cloth.moving(Linear(cloth.vertices + [0, 0, 0.5])),
    )
    one = first_contact_by_bounds(falling, turning, device=device, threads=1)
    two = first_contact_by_bounds(falling, turning, device=device, threads=2)
    assert one.status == Status.CONTACT
    assert one.time == two.time
    for column in ("feature_a", "feature_b", "point_a", "point_b"):
        np.testing.assert_array_equal(getattr(one.contacts, column), getattr(two.contacts, column))
    back = first_contact_by_bounds(turning, falling, device=device)
    np.testing.assert_allclose(back.time, one.time, atol=1e-6)


@pytest.mark.parametrize("start", ["checked", "trusted"])
def test_several_motions_against_one_that_takes_no_others_are_told_with_whose_and_how_many_they_are(start):
    box, poses = tg.generate.box(), np.tile(np.eye(4), (3, 1, 1))
    three = box.moving(Twist(poses, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
    deforming, along = box.moving(Linear(box.vertices + 1.0)), box.moving(tg.Path(poses))
    for one, told in ((deforming, "a mesh in Linear motion"), (along, "a Path")):
        for pair, name in (((one, three), "b"), ((three, one), "a")):
            with pytest.raises(InputError, match=f"^{name} has a batch of 3 motions, .*single one against {told}"):
                tg.first_contact(*pair, start=start, device="cpu")


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_faces_that_slide_in_their_common_plane_after_the_contact_do_not_take_all_intervals(
    scale, exchanged, device, monkeypatch
):
    taken = []

    def counting(*arguments):
        found = search(*arguments)
        taken.append(found[2])
        return found

    search = api._search
    monkeypatch.setattr(api, "_search", counting)
    box, way = tg.generate.box([scale] * 3), np.array([2.0 * scale, 0.0, 0.0])
    other = box.replace(vertices=box.vertices + 1.5 * way)
    bodies = [box.moving(Linear(box.vertices + way)), other.moving(Twist(np.eye(4), -way, [0.0, 0.0, 0.0]))]
    found = first_contact_by_bounds(*bodies[:: -1 if exchanged else 1], device=device)
    assert found.time <= 0.5
    assert found.time == pytest.approx(0.5, abs=1e-5)
    assert 0 < taken[0] < 20_000


@pytest.mark.parametrize("start", ["checked", "trusted"])
def test_a_path_against_linear_motion_is_asked_segment_by_segment(start):
    """Two faces of unit boxes, at 1/2 + t and at 9/2 - 5 t: they meet at 2/3, in the second segment."""
    box, poses = tg.generate.box((1.0, 1.0, 1.0)), np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = 5.0, 2.5, 0.0
    deforming, along = box.moving(Linear(box.vertices + [1.0, 0.0, 0.0])), box.moving(tg.Path(poses))
    for pair in ((deforming, along), (along, deforming)):
        found = tg.first_contact(*pair, start=start, tolerance=1e-6, device="cpu")
        assert found.status == tg.Status.CONTACT
        assert 2 / 3 - 1e-6 <= found.time <= 2 / 3


def test_what_it_cannot_take_is_named(device):
    box = tg.generate.box()
    with pytest.raises(InputError, match="2 motions: one at a time"):
        first_contact_by_bounds(box.moving(Rest(np.tile(np.eye(4), (2, 1, 1)))), box, device=device)

    class Odd:
        def positions(self, points, time):
            return points

    with pytest.raises(UnsupportedError, match="b moves by Odd"):
        first_contact_by_bounds(box, box.moving(Odd()), device=device)
