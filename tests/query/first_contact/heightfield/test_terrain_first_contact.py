"""First contact of moving bodies with the ground: never late, near enough, and the awkward cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from oracles.cylinders_on_terrain import body_distance, ground_triangles, outside_distance, placed_at, surface_points
from tangere.bvh.height_pyramid import PagedPyramid
from tangere.motion import Rest, Screw, Twist
from tangere.published.redon_screws import CosineScrew
from tangere.query.contacts import Status
from tangere.query.first_contact.heightfield.api import heightfield_first_contact
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.runtime import InputError, UnsupportedError, choose_device
from tangere.shape.analytic import Box, Capsule, Cone, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield, TiledHeightfield

BODIES = {
    "cylinder": (Cylinder(0.5, 1.2), (0.5, 1.2)),
    "sphere": (Sphere(0.5), (0.5,)),
    "capsule": (Capsule(0.3, 0.8), (0.3, 0.8)),
    "box": (Box([0.5, 0.3, 0.6]), (0.5, 0.3, 0.6)),
}
TOLERANCE = 1e-5


def rough_ground(rng, cell=0.5, size=12.0, bump=0.3) -> Heightfield:
    count = int(size / cell) + 1
    holes = rng.random((count - 1, count - 1)) < 0.05
    return Heightfield(rng.normal(0.0, bump, (count, count)), (cell, 1.1 * cell), (-3.0, 2.0, 5.0), holes)


def fast_and_tumbling(rng, field, count):
    """Start poses above the ground, velocities of some metres and turns of some radians a step."""
    lower, upper = field.bounds
    starts = rng.uniform(lower + [3.0, 3.0, 0.0], [*(upper[:2] - 3.0), upper[2]], (count, 3))
    starts[:, 2] = upper[2] + rng.uniform(0.95, 3.0, count)
    velocity = rng.normal(0.0, 2.0, (count, 3))
    velocity[:, 2] = -rng.uniform(0.0, 8.0, count)
    turns = Rotation.random(count, random_state=int(rng.integers(1 << 30)))
    return placed_at(starts, turns), velocity, rng.normal(0.0, 4.0, (count, 3))


@pytest.mark.parametrize("separation", [0.01, 0.3])
def test_a_separation_is_reached_as_surely_as_a_contact(separation, rng, device, effort):
    field = rough_ground(rng)
    starts, velocity, rotation = fast_and_tumbling(rng, field, effort(100))
    moving = Cylinder(0.5, 1.2).moving(Twist(starts, velocity, rotation))
    near = heightfield_first_contact(moving, field, separation=separation, tolerance=TOLERANCE, device=device)
    touching = heightfield_first_contact(moving, field, tolerance=TOLERANCE, device=device)
    assert set(near.status.tolist()) <= {Status.FREE, Status.CONTACT}
    assert (near.time <= touching.time).all()
    # What is within a distance of the ground touches it when it is grown by that distance.
    hit = np.flatnonzero(near.status == Status.CONTACT)
    grown = 1.001 * (separation + TOLERANCE)
    poses = [Twist(starts[k], velocity[k], rotation[k]).pose(near.time[k]) for k in hit]
    barrels = Cylinder(0.5 + grown, 1.2 + 2.0 * grown).at(np.array(poses).reshape(-1, 4, 4))
    assert len(hit)
    assert touches(barrels, field, device=device).surface.all()
    assert not touches(Cylinder(0.5, 1.2).at(barrels.poses), field, device=device).surface.any()


@pytest.mark.parametrize("name", list(BODIES))
def test_time_is_never_late_and_the_gap_there_is_within_tolerance(name, rng, device, effort):
    body, size = BODIES[name]
    field = rough_ground(rng)
    starts, velocity, rotation = fast_and_tumbling(rng, field, effort(30))
    motion = Twist(starts, velocity, rotation)
    found = heightfield_first_contact(body.moving(motion), field, tolerance=TOLERANCE, device=device)
    assert set(found.status.tolist()) == {Status.FREE, Status.CONTACT}
    cloud = surface_points(field)
    measured = 0
    for k in range(len(starts)):
        end = min(found.time[k], 1.0)
        poses = Twist(starts[k], velocity[k], rotation[k]).pose(np.linspace(0.0, end, 80))
        way = poses[:, :3, 3]
        near = cloud[((cloud > way.min(0) - 0.9) & (cloud < way.max(0) + 0.9)).all(axis=1)]
        local = np.einsum("tmc,tcd->tmd", near - way[:, None], poses[:, :3, :3])
        assert (outside_distance(name, size, local) > 0.0).all(), f"body {k} was in the ground before {end}"
        if found.status[k] == Status.CONTACT and measured < effort(6):
            measured += 1
            gap = body_distance(name, size, poses[-1], ground_triangles(field, way[-1], 1.0))
            assert 0.0 < gap <= TOLERANCE
            assert np.linalg.norm(found.point_a[k] - found.point_b[k]) <= TOLERANCE * (1.0 + 1e-9)
            assert np.isclose(np.linalg.norm(found.normal[k]), 1.0)
            if found.time_upper[k] <= 1.0:
                after = Twist(starts[k], velocity[k], rotation[k]).pose(found.time_upper[k])
                assert body_distance(name, size, after, ground_triangles(field, after[:3, 3], 1.0)) <= 1e-7


def check_fast_cylinders(rng, device, count, samples):
    """Sampled before each answer with the exact test, at a tolerance of 1e-5; bases land on peaks, too."""
    body = BODIES["cylinder"][0]
    field = rough_ground(rng, cell=0.25, size=16.0, bump=0.1)
    motion = Twist(*fast_and_tumbling(rng, field, count))
    found = heightfield_first_contact(body.moving(motion), field, tolerance=TOLERANCE, device=device)
    end = np.minimum(found.time, 1.0)
    for share in np.linspace(0.0, 1.0, samples):
        assert not touches(body.at(motion.pose(share * end)), field, device=device).surface.any()
    hit = found.status == Status.CONTACT
    assert hit.sum() > count // 3
    grown = Cylinder(0.5 + 2.0 * TOLERANCE, 1.2 + 4.0 * TOLERANCE).at(motion.pose(end)[hit])
    assert touches(grown, field, device=device).surface.all()


def test_fast_cylinders_never_tunnel_and_are_never_late(rng, device, effort):
    check_fast_cylinders(rng, device, effort(600), 60)


@pytest.mark.slow
@pytest.mark.feature("F-S-27")
def test_ten_thousand_fast_cylinders_never_tunnel_and_are_never_late(rng, device, effort):
    check_fast_cylinders(rng, device, effort(10_000), 400)


def test_a_cylinder_lowered_on_flat_ground_arrives_when_it_must(device):
    field = Heightfield(np.zeros((40, 40)), 0.25)
    pose = placed_at(np.array([[5.0, 5.0, 2.6]]))
    found = heightfield_first_contact(
        Cylinder(0.5, 1.2).moving(Twist(pose, [3.0, 0.0, -4.0], [0.0, 0.0, 9.0])), field, tolerance=1e-9, device=device
    )
    assert 0.5 - 1e-9 <= found.time[0] <= 0.5
    assert 0.5 <= found.time_upper[0] <= 0.5 + 1e-8
    assert np.allclose(found.normal[0], [0.0, 0.0, 1.0])


def test_a_wheel_rolling_close_over_flat_ground_is_free(device):
    """Ten turns and 30 m at a height of a tenth of a millimetre."""
    field = Heightfield(np.zeros((401, 401)), 0.1)
    pose = placed_at(np.array([[3.0, 20.0, 0.5001]]), Rotation.from_euler("x", [np.pi / 2]))
    motion = Twist(pose, [30.0, 0.0, 0.0], [0.0, 60.0, 0.0])
    found = heightfield_first_contact(Cylinder(0.5, 0.3).moving(motion), field, tolerance=1e-6, device=device)
    assert found.status[0] == Status.FREE
    lower = Twist(
        placed_at(np.array([[3.0, 20.0, 0.5001]]), Rotation.from_euler("x", [np.pi / 2])), [30, 0, -2e-4], [0, 60, 0]
    )
    found = heightfield_first_contact(Cylinder(0.5, 0.3).moving(lower), field, tolerance=1e-6, device=device)
    assert found.status[0] == Status.CONTACT
    assert 0.5 - 0.006 <= found.time[0] <= 0.5


def test_overlap_and_burial_at_the_start_are_told(device):
    field = Heightfield(np.zeros((11, 11)), 1.0)
    poses = placed_at(np.array([[5.0, 5.0, 0.3], [5.0, 5.0, -4.0], [5.0, 5.0, 3.0]]))
    for name, (body, _) in BODIES.items():
        found = heightfield_first_contact(
            body.moving(Twist(poses, [0.0, 0.0, 1.0], [0.0, 0.0, 0.0])), field, device=device
        )
        assert found.status.tolist() == [Status.START, Status.START, Status.FREE], name
        assert found.time.tolist() == [0.0, 0.0, np.inf]


def test_a_body_that_just_touches_the_ground_has_started_and_one_within_tolerance_has_not(rng, device):
    field = Heightfield(np.zeros((7, 7)), (1.0, 2.0))
    bodies = {Cylinder(0.25, 0.5): [0.25] * 3, Cone(0.25, 0.5): [0.25] * 3, Box([0.5, 0.25, 1.0]): [0.5, 0.25, 1.0]}
    turns = np.round(Rotation.create_group("O").as_matrix())
    for body, half in bodies.items():
        poses = np.tile(np.eye(4), (len(turns), 1, 1))
        poses[:, :3, :3] = turns
        poses[:, :2, 3] = rng.integers(4, 20, (len(turns), 2)) / 4.0
        poses[:, 2, 3] = np.abs(turns[:, 2]) @ half
        for height, status in ((0.0, Status.START), (1e-7, Status.CONTACT), (1e-3, Status.FREE)):
            poses[:, 2, 3] += height
            found = heightfield_first_contact(body.moving(Rest(poses)), field, tolerance=1e-6, device=device)
            assert (found.status == status).all(), (body, height)
            if status != Status.FREE:
                assert (found.time == 0.0).all()
                assert (found.time_upper == (0.0 if status == Status.START else np.inf)).all()


def test_a_body_in_a_hole_falls_through_and_meets_its_rim(device):
    holes = np.zeros((10, 10), bool)
    holes[3:7, 3:7] = True
    field = Heightfield(np.zeros((11, 11)), 1.0, holes=holes)
    poses = placed_at(np.array([[5.0, 5.0, 2.0], [6.8, 5.0, 2.0]]))
    found = heightfield_first_contact(
        Sphere(0.5).moving(Twist(poses, [0.0, 0.0, -4.0], [0.0, 0.0, 0.0])), field, device=device
    )
    assert found.status.tolist() == [Status.FREE, Status.CONTACT]
    assert found.point_b[1] == pytest.approx([7.0, 5.0, 0.0])
    under = Twist(placed_at(np.array([[5.0, 5.0, -2.0]])), [5.0, 0.0, 7.0], [0.0, 0.0, 0.0])
    found = heightfield_first_contact(Sphere(0.5).moving(under), field, tolerance=1e-9, device=device)
    assert found.status[0] == Status.CONTACT
    # The centre is half a metre from the rim, and above it: (5 t - 2)^2 + (7 t - 2)^2 = 1 / 4.
    met = (48.0 - np.sqrt(48.0**2 - 4.0 * 74.0 * 7.75)) / 148.0
    assert met - 1e-8 <= found.time[0] <= met
    assert found.point_b[0] == pytest.approx([7.0, 5.0, 0.0])


def test_walls_of_holes_and_the_border_are_contacts_and_have_a_depth(device):
    """`touches` knows the surface only: beside it what is in the ground is below, not on it."""
    holes = np.zeros((10, 10), bool)
    holes[5, 5] = True
    field = Heightfield(np.zeros((11, 11)), 1.0, holes=holes)
    starts = placed_at(np.array([[5.5, 5.5, -1.0], [-2.0, 3.0, -1.0]]))
    body, motion = Cylinder(0.3, 0.3), Twist(starts, [[-2.5, 0, 0], [5.0, 0, 0]], [0.0, 0.0, 0.0])
    found = heightfield_first_contact(body.moving(motion), field, tolerance=1e-6, device=device)
    assert found.status.tolist() == [Status.CONTACT, Status.CONTACT]
    np.testing.assert_allclose(found.time, [0.2 / 2.5, 1.7 / 5.0], atol=1e-6)
    assert (found.time <= [0.2 / 2.5, 1.7 / 5.0]).all()
    np.testing.assert_allclose(found.normal, [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], atol=1e-3)
    within = body.at(motion.pose(np.array([0.19, 0.38])))  # nearly half of each in the wall, in the border
    assert not touches(within, field, device=device).hit.any()
    assert manifold(within, field, device=device).gap.min() < 0.0
    inside = body.at(motion.pose(np.ones(2)))
    assert touches(inside, field, device=device).buried.all()
    assert manifold(inside, field, device=device).gap.min() == pytest.approx(-1.15)
    begun = heightfield_first_contact(body.moving(Rest(motion.pose(np.ones(2)))), field, device=device)
    assert begun.status.tolist() == [Status.START, Status.START]


def test_separation_is_kept(device):
    field = Heightfield(np.zeros((21, 21)), 0.5)
    pose = placed_at(np.array([[5.0, 5.0, 3.0]]))
    for name, (body, size) in BODIES.items():
        half = {"cylinder": 0.6, "sphere": 0.5, "capsule": 0.7, "box": 0.6}[name]
        motion = Twist(pose, [0.0, 0.0, -4.0], [0.0, 0.0, 0.0])
        found = heightfield_first_contact(body.moving(motion), field, separation=0.25, tolerance=1e-8, device=device)
        assert found.time[0] == pytest.approx((3.0 - half - 0.25) / 4.0, abs=1e-8), size


def test_screws_and_placed_bodies_move_as_their_poses_say(rng, device):
    field = rough_ground(rng, cell=0.8)
    starts, velocity, rotation = fast_and_tumbling(rng, field, 20)
    ends = placed_at(starts[:, :3, 3] + velocity, Rotation.random(20, random_state=3))
    offset = placed_at(np.array([[0.1, -0.2, 0.3]]), Rotation.from_euler("x", [0.7]))[0]
    for kind in (Screw, CosineScrew):
        motion = kind(starts, ends)
        found = heightfield_first_contact(
            Cylinder(0.5, 1.2).at(offset).moving(motion), field, tolerance=TOLERANCE, device=device
        )
        end = np.minimum(found.time, 1.0)
        started = touches(Cylinder(0.5, 1.2).at(motion.pose(np.zeros(20)) @ offset), field, device=device).hit
        assert (started == (found.status == Status.START)).all()
        for share in np.linspace(0.0, 1.0, 100):
            placed = Cylinder(0.5, 1.2).at(motion.pose(share * end) @ offset)
            assert not (touches(placed, field, device=device).surface & ~started).any()
        hit = found.status == Status.CONTACT
        grown = Cylinder(0.5 + 2.0 * TOLERANCE, 1.2 + 4.0 * TOLERANCE).at((motion.pose(end) @ offset)[hit])
        assert hit.any()
        assert touches(grown, field, device=device).surface.all()


def test_tiles_give_the_bits_of_one_grid(rng, device):
    heights = rng.normal(0.0, 0.2, (150, 150))
    whole, tiles = Heightfield(heights, 0.1), TiledHeightfield(heights, 0.1)
    on = choose_device(device)
    tiles.cache["pyramid", on.alias] = PagedPyramid(tiles, on, resident=16)  # of 25
    starts, velocity, rotation = fast_and_tumbling(rng, whole, 40)
    velocity[:, :2] *= 0.3
    for body in (Cylinder(0.2, 0.3), Box([0.2, 0.1, 0.3])):
        moving = body.moving(Twist(starts, velocity, rotation))
        one, many = (heightfield_first_contact(moving, field, device=device) for field in (whole, tiles))
        for name in ("time", "time_upper", "status", "point_a", "point_b", "normal"):
            assert np.array_equal(getattr(one, name), getattr(many, name))


def test_the_number_of_threads_and_the_order_change_no_bit(rng):
    field = rough_ground(rng)
    starts, velocity, rotation = fast_and_tumbling(rng, field, 120)
    one, two = (
        heightfield_first_contact(
            Cylinder(0.5, 1.2).moving(Twist(starts, velocity, rotation)), field, device="cpu", threads=n
        )
        for n in (1, 2)
    )
    back = heightfield_first_contact(
        Cylinder(0.5, 1.2).moving(Twist(starts[::-1], velocity[::-1], rotation[::-1])), field, device="cpu"
    )
    for name in ("time", "time_upper", "status", "point_a", "normal"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
        assert np.array_equal(getattr(one, name), getattr(back, name)[::-1])


def test_what_cannot_be_asked_is_refused():
    field, pose = Heightfield(np.zeros((3, 3))), np.eye(4)
    with pytest.raises(UnsupportedError, match="takes moving"):
        heightfield_first_contact(Cylinder(1.0, 1.0), field, device="cpu")
    with pytest.raises(InputError, match="start must be"):
        heightfield_first_contact(Sphere(1.0).moving(Rest(pose)), field, start="maybe", device="cpu")
    with pytest.raises(InputError, match=r"^2 bodies and 3 motions do not pair off: as many of both, or one of either"):
        heightfield_first_contact(
            Sphere([1.0, 2.0]).at(np.stack([pose, pose])).moving(Rest(np.stack([pose] * 3))), field, device="cpu"
        )
    with pytest.raises(InputError, match="tolerance"):
        heightfield_first_contact(Sphere(1.0).moving(Rest(pose)), field, tolerance=-1.0, device="cpu")
