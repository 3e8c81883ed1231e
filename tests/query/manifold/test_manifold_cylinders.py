"""Contact manifolds of cylinders on height grids against exact tests and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.bodies_on_terrain import GROUNDS, Scene, ground, meets_ground, random_rotations, random_scene
from tangere.query.contacts import Contacts, Kind
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield


def lowered(scene: Scene, depth: np.ndarray, device: str) -> Cylinder:
    """The cylinders of a scene as deep in the ground as `depth` says; as they are where there is no ground below."""
    cylinders = Cylinder(scene.radius, scene.height)
    poses = scene.poses.copy()
    low = np.full(len(poses), scene.field.bounds[0, 2] - 10.0)
    high = np.full(len(poses), scene.field.bounds[1, 2] + 10.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        poses[:, 2, 3] = middle
        hit = touches(cylinders.at(poses), scene.field, device=device).hit
        low, high = np.where(hit, middle, low), np.where(hit, high, middle)
    poses[:, 2, 3] = high - depth
    return cylinders.at(poses)


def deepest(found: Contacts, count: int) -> np.ndarray:
    most = np.full(count, -np.inf)
    np.maximum.at(most, found.query, -found.gap)
    return most


def check(scene: Scene, rng: np.random.Generator, device: str) -> int:
    """One contact at least where the exact test hits, none deeper than the depth filter allows, ≤ 4 a group."""
    count = len(scene.poses)
    depth = np.where(rng.random(count) < 0.7, 0.05, 0.6) * scene.radius * rng.uniform(-0.2, 1.0, count)
    cylinders = lowered(scene, depth, device)
    found = manifold(cylinders, scene.field, device=device)
    hit = touches(cylinders, scene.field, device=device).hit
    most = deepest(found, count)
    assert (most[hit] >= 0.0).all(), f"{int((most[hit] < 0).sum())} of {int(hit.sum())} touch but have no contact"
    assert (found.normal[:, 2] >= 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(
        np.einsum("ij,ij->i", found.point_a - found.point_b, found.normal), found.gap, rtol=0.0, atol=1e-9
    )
    # Lifted by the vertical penetration the cylinder is free: `depth` is that penetration where it was lowered.
    over_ground = depth > 0.0
    allowed = 1.01 * depth[found.query] + 1e-6 * scene.radius[found.query]
    too_deep = (-found.gap > allowed) & over_ground[found.query] & hit[found.query]
    assert not too_deep.any(), f"{int(too_deep.sum())} contacts are deeper than the vertical penetration"
    # Where the axis is beside the ground, the exact test cannot tell a cylinder under the ground from one that is free.
    free = ~hit & ~np.isnan(scene.field.height_at(cylinders.poses[:, :3, 3]))
    assert (most[free] <= 1e-9).all()
    return int(hit.sum())


@pytest.mark.feature("F-S-18b")
def test_a_cylinder_that_touches_has_a_contact_and_none_is_deeper_than_the_vertical_penetration(rng, effort, device):
    touched = sum(check(random_scene(kind, effort(420), rng), rng, device) for kind in GROUNDS for _ in range(3))
    assert touched > effort(5000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROUNDS)
@pytest.mark.parametrize("cell", [0.05, 0.2, 1.0, 4.0, 20.0])
def test_a_million_cylinders_that_touch_have_contacts(kind, cell, rng, effort, device):
    rng = np.random.default_rng([int(100 * cell), GROUNDS.index(kind)])
    for _ in range(10):
        check(random_scene(kind, effort(2500), rng, cell), rng, device)


def test_contacts_and_touching_agree_with_brute_force_over_all_triangles(rng, effort):
    compared = 0
    for kind in GROUNDS:
        scene = random_scene(kind, effort(12), rng, cell_per_radius=rng.choice([0.5, 1.5, 4.0]))
        cylinders = lowered(scene, 0.02 * scene.radius * rng.choice([-1.0, 1.0], len(scene.poses)), "cpu")
        found = manifold(cylinders, scene.field, distance=0.0, device="cpu")
        most = deepest(found, len(cylinders))
        for k, pose in enumerate(cylinders.poses):
            slightly = np.array([0.0, 0.0, 1e-7])
            up, down = pose.copy(), pose.copy()
            up[:3, 3] += slightly
            down[:3, 3] -= slightly
            both = [meets_ground(scene.field, p, scene.radius[k], scene.height[k]) for p in (up, down)]
            level = scene.field.height_at(pose[None, :3, 3])[0]
            if both[0] == both[1] and not np.isnan(level):
                assert (most[k] >= 0.0) == (both[0] or level > pose[2, 3]), (kind, k)
                compared += 1
    assert compared > effort(12) * len(GROUNDS) // 2


def test_lifting_by_the_largest_penetration_found_frees_the_cylinder(rng, effort, device):
    for kind in GROUNDS:
        scene = random_scene(kind, effort(200), rng)
        cylinders = lowered(scene, 0.1 * scene.radius, device)
        found = manifold(cylinders, scene.field, distance=0.0, device=device)
        up = np.zeros(len(cylinders))
        np.maximum.at(up, found.query, -found.gap / found.normal[:, 2])
        poses = cylinders.poses.copy()
        poses[:, 2, 3] += up * (1.0 + 1e-6) + 1e-5 * scene.radius
        assert not touches(Cylinder(scene.radius, scene.height).at(poses), scene.field, device=device).surface.any()


@pytest.mark.feature("F-S-8")
def test_turning_the_axis_round_changes_no_bit(rng, effort):
    for kind in GROUNDS:
        scene = random_scene(kind, effort(150), rng)
        cylinders = lowered(scene, 0.05 * scene.radius, "cpu")
        flipped = cylinders.poses.copy()
        flipped[:, :3, 1:3] *= -1.0
        one = manifold(cylinders, scene.field, device="cpu")
        two = manifold(Cylinder(scene.radius, scene.height).at(flipped), scene.field, device="cpu")
        assert len(one) == len(two) > 0
        np.testing.assert_array_equal(one.point_a, two.point_a)
        np.testing.assert_array_equal(one.gap, two.gap)
        np.testing.assert_array_equal(one.key, two.key)


def test_moving_terrain_and_cylinders_together_moves_the_contacts(rng, effort):
    offset = np.array([1024.0, -256.0, 64.0])
    for kind in ("rough", "kerbs", "hills"):
        scene = random_scene(kind, effort(150), rng)
        field = Heightfield(scene.field.heights, scene.field.spacing, (0.0, 0.0, 0.0), scene.field.holes)
        away = Heightfield(field.heights, field.spacing, tuple(offset), field.holes)
        poses = scene.poses.copy()
        poses[:, :3, 3] -= scene.field.origin
        here = lowered(Scene(field, scene.radius, scene.height, poses), 0.05 * scene.radius, "cpu")
        moved = here.poses.copy()
        moved[:, :3, 3] += offset
        one = manifold(here, field, device="cpu")
        two = manifold(Cylinder(scene.radius, scene.height).at(moved), away, device="cpu")
        same = np.bincount(one.query, minlength=len(here)) == np.bincount(two.query, minlength=len(here))
        assert same.mean() > 0.99  # a gap at the margin, or two equal depths, may go either way
        rows, others = same[one.query], same[two.query]
        close = np.abs(one.gap[rows] - two.gap[others]) < 1e-7
        assert close.mean() > 0.99


def test_results_are_equal_whatever_the_tile_a_cell_is_in(rng, effort):
    heights = ground("rough", 40, 0.2, rng)
    padded = np.pad(heights, ((29, 40), (31, 17)), mode="edge")
    one_field = Heightfield(heights, 0.25)
    two_field = Heightfield(padded, 0.25, (-31 * 0.25, -29 * 0.25, 0.0))
    poses = np.tile(np.eye(4), (effort(400), 1, 1))
    poses[:, :3, :3] = random_rotations(len(poses), rng)
    poses[:, :2, 3] = np.round(rng.uniform(2.0, 8.0, (len(poses), 2)) * 256) / 256  # exact in both frames
    scene = Scene(one_field, np.full(len(poses), 0.5), np.full(len(poses), 1.0), poses)
    cylinders = lowered(scene, np.full(len(poses), 0.05), "cpu")
    one, two = manifold(cylinders, one_field, device="cpu"), manifold(cylinders, two_field, device="cpu")
    assert len(one) == len(two)
    for contacts in (one, two):
        assert len(contacts) > len(poses)
    order_one = np.lexsort((one.point_a[:, 1], one.point_a[:, 0], one.query))
    order_two = np.lexsort((two.point_a[:, 1], two.point_a[:, 0], two.query))
    np.testing.assert_allclose(one.gap[order_one], two.gap[order_two], atol=1e-12)
    np.testing.assert_allclose(one.point_a[order_one], two.point_a[order_two], atol=1e-12)


def test_the_same_bits_for_any_number_of_threads_and_batch_size(rng, effort):
    scene = random_scene("spikes", 600, rng, 0.5)
    cylinders = lowered(scene, 0.1 * scene.radius, "cpu")
    one, two = (manifold(cylinders, scene.field, device="cpu", threads=n) for n in (1, 3))
    few = manifold(cylinders[:40], scene.field, device="cpu")
    for name in ("query", "point_a", "point_b", "normal", "gap", "feature_a", "feature_b", "kind", "key"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        np.testing.assert_array_equal(getattr(one, name)[one.query < 40], getattr(few, name))


def test_holes_and_borders_hold_bodies_by_their_edges():
    holes = np.zeros((8, 8), bool)
    holes[3:5, 3:5] = True
    field = Heightfield(np.zeros((9, 9)), 0.5, holes=holes)
    pose = np.eye(4)
    pose[:3, 3] = [2.0, 2.0, 0.59]  # a barrel wider than the hole it stands over
    over = manifold(Cylinder(0.7, 1.2).at(pose), field, device="cpu")
    assert len(over) == 4
    np.testing.assert_allclose(over.gap, -0.01, atol=1e-12)
    inside = manifold(Cylinder(0.4, 1.2).at(pose), field, device="cpu")
    assert len(inside) == 0
    pose[:3, 3] = [-0.1, 2.0, 0.59]  # its axis is beyond the border
    beyond = manifold(Cylinder(0.5, 1.2).at(pose), field, device="cpu")
    assert len(beyond) > 0
    assert (beyond.gap <= 0.0).all()
    assert (beyond.point_b[:, 0] >= -1e-9).all()


def test_a_ninth_normal_finds_room():
    rng = np.random.default_rng(5)
    field = Heightfield(rng.uniform(0.0, 0.6, (60, 60)), 0.4)
    poses = np.tile(np.eye(4), (200, 1, 1))
    poses[:, :3, :3] = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    poses[:, :2, 3] = rng.uniform(8.0, 16.0, (200, 2))
    poses[:, 2, 3] = 3.2
    barrels = Cylinder(3.0, 8.0).at(poses)
    found = manifold(barrels, field, device="cpu")
    counts = np.bincount(found.query, minlength=200)
    mine = found[found.query == counts.argmax()]
    apart = mine.normal @ mine.normal.T < np.cos(np.radians(2.0))
    assert len(np.unique(apart, axis=0)) > 8
    one = manifold(barrels[int(counts.argmax())], field, device="cpu")
    np.testing.assert_array_equal(one.point_a, mine.point_a)
    assert (np.diff(found.query) >= 0).all()


def test_several_worlds_in_one_call(rng):
    fields = [Heightfield(np.full((5, 5), level), 2.0) for level in (0.0, 1.0, 2.0)]
    poses = np.tile(np.eye(4), (300, 1, 1))
    poses[:, :2, 3] = rng.uniform(2.0, 6.0, (300, 2))
    world = rng.integers(0, 3, 300)
    poses[:, 2, 3] = world + 0.59
    found = manifold(Cylinder(0.5, 1.2).at(poses), fields, world=world, device="cpu")
    assert len(found) == 1200
    np.testing.assert_array_equal(found.body_b, world[found.query])
    np.testing.assert_allclose(found.gap, -0.01, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"world": [0]}, "world must be 2 whole numbers"),
        ({"world": [0, 3]}, r"world\[1\] is 3"),
        ({"distance": -1.0}, "distance must be finite and not negative"),
        ({"distance": np.nan}, "distance must be finite and not negative"),
        ({"mode": "fast"}, "mode must be"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        manifold(Cylinder([0.5, 0.5], 1.0), Heightfield(np.zeros((3, 3))), device="cpu", **arguments)


def test_poses_on_a_device_are_refused_when_they_are_not_finite():
    import warp as wp

    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[1, 0, 3] = np.nan
    bodies = Cylinder(0.5, 1.0).at(wp.array(poses, dtype=wp.mat44d, device="cpu"))
    with pytest.raises(ValueError, match="body 1: its pose is not finite"):
        manifold(bodies, Heightfield(np.zeros((3, 3))), device="cpu")


def test_no_bodies_and_bodies_beside_the_terrain_have_no_contacts():
    field = Heightfield(np.zeros((3, 3)))
    assert len(manifold(Cylinder(0.5, 1.0).at(np.zeros((0, 4, 4))), field, device="cpu")) == 0
    pose = np.eye(4)
    pose[0, 3] = 1e6
    assert len(manifold(Cylinder(0.5, 1.0).at(pose), field, device="cpu")) == 0


def test_kinds_say_what_meets():
    ridge = Heightfield(np.array([[0.0, 1.0, 0.0]] * 5), 1.0)
    lying = np.eye(4)
    lying[:3, :3] = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    lying[:3, 3] = [1.0, 2.5, 1.49]  # across the ridge
    found = manifold(Cylinder(0.5, 1.0).at(lying), ridge, device="cpu")
    assert set(found.kind) == {Kind.EDGE_EDGE}
    np.testing.assert_allclose(found.normal, [[0.0, 0.0, 1.0]] * len(found), atol=1e-12)
    np.testing.assert_allclose(found.gap, -0.01, atol=1e-12)
