"""Bodies over ground that move along chains and paths; one body alone, and none at all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.cylinders_on_terrain import placed_at
from tangere.motion import Chain, Path, Rest, Rigid, Screw, Twist
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact.heightfield.api import heightfield_first_contact
from tangere.query.intersection import touches
from tangere.runtime import InputError, text_below
from tangere.shape.analytic import Box, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield

BARREL = Cylinder(0.5, 1.2)
TOLERANCE = 1e-5
FLAT = Heightfield(np.zeros((11, 11)))


def rough_ground(rng) -> Heightfield:
    holes = rng.random((24, 24)) < 0.05
    return Heightfield(rng.normal(0.0, 0.2, (25, 25)), (0.5, 0.55), (-3.0, 2.0, 5.0), holes)


def pose(x: float, y: float, z: float) -> np.ndarray:
    return placed_at(np.array([[x, y, z]]))[0]


def assert_time_is_right(found, pose_at, field, device, samples: int = 150) -> None:
    """Sampled before each answer by the exact test; there, grown by the tolerance it touches."""
    end = np.minimum(found.time, 1.0)
    free = found.status != Status.START
    for share in np.linspace(0.0, 1.0, samples):
        placed = BARREL.at(pose_at(share * end))
        assert not (touches(placed, field, device=device).surface & free).any()
    hit = found.status == Status.CONTACT
    assert hit.sum() > len(found) // 4
    assert (found.time_upper[hit] >= found.time[hit]).all()
    grown = Cylinder(0.5 + 2.0 * TOLERANCE, 1.2 + 4.0 * TOLERANCE).at(pose_at(end)[hit])
    assert touches(grown, field, device=device).surface.all()


def test_a_body_on_the_link_of_a_chain_arrives_when_it_must(device):
    lowered = Chain([Rest(pose(5.0, 5.0, 3.0)), Twist(np.eye(4), [0.0, 0.0, -3.0], np.zeros(3))]).link(1)
    hit = tg.first_contact(Cylinder(0.5, 1.0).moving(lowered), FLAT, tolerance=1e-9, device=device)
    assert hit.status == Status.CONTACT
    assert 2.5 / 3.0 - 1e-9 <= hit.time <= 2.5 / 3.0 <= hit.time_upper


def test_bodies_on_arms_that_swing_and_extend_are_never_late(rng, device, effort):
    """Crane and pendulum: the outer link moves and turns, the inner one turns and slides at the end of an arm."""
    field, count = rough_ground(rng), effort(40)
    lower, upper = field.bounds
    places = np.column_stack(
        [rng.uniform(lower[:2] + 3.0, upper[:2] - 3.0, (count, 2)), np.full(count, upper[2] + 2.5)]
    )
    turns = Rotation.random(count, random_state=int(rng.integers(1 << 30)))
    down = np.column_stack([rng.normal(0.0, 1.0, (count, 2)), -rng.uniform(0.0, 3.0, count)])
    outer = Twist(placed_at(places, turns), down, rng.normal(0.0, 1.0, (count, 3)))
    elbow = placed_at(rng.normal(0.0, 0.5, (count, 3)))
    ends = placed_at(rng.normal(0.0, 1.0, (count, 3)), Rotation.random(count, random_state=5))
    inner = Screw(elbow, ends)
    links = Rigid.join([Chain([outer[k], inner[k]]).link(1) for k in range(count)])
    found = heightfield_first_contact(BARREL.moving(links), field, tolerance=TOLERANCE, device=device)
    assert_time_is_right(found, lambda t: outer.pose(t) @ inner.pose(t), field, device)


@pytest.fixture
def winding(rng):
    """A path of 30 stretches down to the ground, uneven in time."""
    field = rough_ground(rng)
    count = 31
    places = np.column_stack(
        [np.linspace(0.0, 6.0, count), 8.0 + np.sin(np.arange(count)), np.linspace(9.0, 5.0, count)]
    )
    times = np.concatenate([[0.0], np.cumsum(rng.uniform(0.01, 1.0, count - 1))])
    times /= times[-1]
    turns = Rotation.from_rotvec(np.cumsum(rng.normal(0.0, 0.3, (count, 3)), axis=0))
    return field, Path(placed_at(places, turns), times)


def test_bodies_on_a_path_are_never_late_in_the_time_of_the_path(winding, rng, device):
    field, path = winding
    offsets = placed_at(rng.normal(0.0, 0.5, (24, 3)) + [0.0, 0.0, 0.8])
    found = heightfield_first_contact(BARREL.at(offsets).moving(path), field, tolerance=TOLERANCE, device=device)
    assert_time_is_right(found, lambda t: path.pose(t) @ offsets, field, device, samples=300)
    hit = found.status == Status.CONTACT
    assert len(set(path.segment_of(found.time[hit])[0])) > 3


def test_a_body_off_the_path_is_free_all_along_it(winding, device):
    field, path = winding
    lifted = Path(path.poses + np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 6], [0, 0, 0, 0]]), path.times)
    assert not tg.first_contact(BARREL.moving(lifted), field, device=device)


def test_a_path_of_one_stretch_is_its_screw(device):
    ends = pose(3.0, 3.0, 2.0), pose(6.0, 5.0, -1.0)
    by_path, by_screw = (
        tg.first_contact(BARREL.moving(motion), FLAT, device=device) for motion in (Path(np.stack(ends)), Screw(*ends))
    )
    assert by_path.status == by_screw.status == Status.CONTACT
    assert by_screw.time - 1e-15 <= by_path.time <= by_screw.time
    np.testing.assert_array_equal(by_path.contacts.point_b, by_screw.contacts.point_b)


def test_only_the_start_of_a_path_is_a_start(device):
    buried = Path(np.stack([pose(5.0, 5.0, -3.0), pose(5.0, 5.0, -4.0), pose(5.0, 5.0, -3.0)]))
    assert tg.first_contact(Sphere(0.5).moving(buried), FLAT, device=device).status == Status.START
    assert not tg.first_contact(Sphere(0.5).moving(buried), FLAT, start="trusted", device=device)
    # Down through a hole and sideways: it meets the wall of the hole, a contact, not a start.
    holes = np.zeros((10, 10), bool)
    holes[3:7, 3:7] = True
    below = [pose(5.0, 5.0, 2.0), pose(5.0, 5.0, -2.0), pose(8.5, 5.0, -2.0), pose(8.5, 5.0, -1.0), pose(8.5, 5.0, 1.0)]
    through = Path(np.stack(below))
    hit = tg.first_contact(Sphere(0.5).moving(through), Heightfield(np.zeros((11, 11)), holes=holes), device=device)
    assert hit.status == Status.CONTACT
    assert hit.time == pytest.approx(0.25 + 0.25 * 1.5 / 3.5, abs=1e-5)
    assert hit.contacts.normal[0] == pytest.approx([-1.0, 0.0, 0.0], abs=1e-9)


def test_one_body_with_one_motion_gets_one_answer_that_is_true_or_false(device):
    falling = [Twist(pose(5.0, 5.0, 3.0), [0.0, 0.0, way], np.zeros(3)) for way in (-1.0, -4.0)]
    free, hit = (tg.first_contact(BARREL.moving(motion), FLAT, device=device) for motion in falling)
    assert isinstance(free, tg.FirstContact)
    assert not free
    assert len(free.contacts) == 0
    assert hit
    assert hit.contacts.point_b[0] == pytest.approx([5.0, 5.0, 0.0], abs=0.51)
    assert hit.contacts.point_b[0, 2] == 0.0
    assert 0.0 < hit.contacts.gap[0] <= 1e-5
    x, y, z = hit.contacts.point_b[0]
    assert repr(hit) == f"FirstContact(contact at t={text_below(hit.time, 9)}, around ({x:.6g}, {y:.6g}, {z:.6g}))"
    buried = tg.first_contact(BARREL.moving(Rest(pose(5.0, 5.0, 0.1))), FLAT, device=device)
    assert (buried.status, buried.contacts.kind[0]) == (Status.START, Kind.OVERLAP)


def test_a_batch_has_a_row_for_each_and_no_truth_of_its_own(device):
    poses = np.stack([pose(5.0, 5.0, 3.0)] * 2)
    for count in (1, 2):
        many = tg.first_contact(BARREL.moving(Twist(poses[:count], [0.0, 0.0, -4.0], np.zeros(3))), FLAT, device=device)
        assert len(many) == count
        assert many.hit.all()
        with pytest.raises(ValueError, match=r"hit\.any\(\)"):
            bool(many)


@pytest.mark.parametrize("body", [BARREL, Box([0.5, 0.3, 0.6])])
def test_no_bodies_and_no_motions_have_no_answers(body):
    nobody, no_motion = body.at(np.zeros((0, 4, 4))), Rest(np.zeros((0, 4, 4)))
    for moving in (nobody.moving(Rest()), nobody.moving(no_motion), body.moving(no_motion)):
        found = tg.first_contact(moving, FLAT, device="cpu")
        assert len(found) == 0
        assert (found.point_a.shape, found.status.dtype) == ((0, 3), np.uint8)
    followed = nobody.moving(Path(np.stack([np.eye(4), pose(1.0, 0.0, 0.0)])))
    assert len(tg.first_contact(followed, FLAT, device="cpu")) == 0
    with pytest.raises(InputError, match="2 bodies and 0 motions do not pair off"):
        tg.first_contact(body.at(np.stack([np.eye(4)] * 2)).moving(no_motion), FLAT, device="cpu")


@pytest.mark.parametrize("tolerance", [0.0, 1e-18, 1e-13])
def test_a_tolerance_that_rounding_would_hide_is_refused_with_one_that_can_be_kept(tolerance, rng, device):
    field = Heightfield(rng.normal(0.0, 0.1, (21, 21)), 0.5)
    moving = BARREL.moving(Twist(placed_at(np.tile([5.0, 5.0, 3.0], (3, 1))), [0.0, 0.0, -6.0], [1.0, 2.0, 3.0]))
    with pytest.raises(InputError, match=r"too small for body 0.* at least") as refused:
        heightfield_first_contact(moving, field, tolerance=tolerance, device=device)
    possible = 1.01 * float(str(refused.value).split("at least ")[1].split()[0])
    assert possible < 1e-9
    found = heightfield_first_contact(moving, field, tolerance=possible, device=device)
    close = np.linalg.norm(found.point_a - found.point_b, axis=1) <= possible
    assert (close | (found.status == Status.UNRESOLVED)).all()


def test_boxes_that_meet_edges_and_corners_are_decided_at_a_tolerance_of_a_tenth_of_a_nanometre(rng, effort, device):
    """Two points that nearly touch give no direction: the edges that meet must."""
    field = Heightfield(rng.normal(0.0, 0.1, (41, 41)), 0.25)
    count, tolerance = effort(600), 1e-10
    starts = placed_at(
        np.column_stack([rng.uniform(3.0, 7.0, (count, 2)), np.full(count, 1.6)]),
        Rotation.random(count, random_state=int(rng.integers(1 << 30))),
    )
    motion = Twist(starts, [0.3, 0.2, -3.0], rng.normal(0.0, 2.0, (count, 3)))
    half = np.array([0.5, 0.3, 0.6])
    found = heightfield_first_contact(Box(half).moving(motion), field, tolerance=tolerance, device=device)
    assert (found.status == Status.CONTACT).all()
    assert (np.linalg.norm(found.point_a - found.point_b, axis=1) <= tolerance).all()
    # By independent means: both points belong to their bodies.
    poses = motion.pose(found.time)
    local = np.einsum("nji,nj->ni", poses[:, :3, :3], found.point_a - poses[:, :3, 3])
    assert np.abs((np.abs(local) - half).max(axis=1)).max() < 1e-12
    assert np.abs(field.height_at(found.point_b) - found.point_b[:, 2]).max() < 1e-12
