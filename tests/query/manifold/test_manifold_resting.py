"""What a solver needs of a manifold: few points that span the footprint, steady normals, the right way out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from oracles.bodies_on_terrain import ground, random_rotations
from tangere.query.contacts import Contacts
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield

LYING = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])


def at(*place: float, turn: np.ndarray | None = None) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = np.eye(3) if turn is None else turn
    pose[:3, 3] = place
    return pose


def tilted(angle: float, heading: float = 0.7) -> np.ndarray:
    c, s, ch, sh = np.cos(angle), np.sin(angle), np.cos(heading), np.sin(heading)
    about_z = np.array([[ch, -sh, 0.0], [sh, ch, 0.0], [0.0, 0.0, 1.0]])
    return about_z @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def flat(cell: float, size: float = 6.0) -> Heightfield:
    cells = round(size / cell)
    return Heightfield(np.zeros((cells + 1, cells + 1)), cell)


@pytest.mark.parametrize("cell", [0.41, 0.1, 0.04, 0.01])
def test_on_flat_ground_four_points_span_the_footprint_at_any_cell_size(cell, rng):
    field = flat(cell, 4.1)
    poses = np.stack([at(*xy, 0.595) for xy in rng.uniform(1.2, 2.8, (50, 2))])
    upright = manifold(Cylinder(0.5, 1.2).at(poses), field, device="cpu")
    assert (np.bincount(upright.query) == 4).all()
    np.testing.assert_allclose(upright.gap, -0.005, atol=1e-12)
    for k in range(50):
        points = upright.point_a[upright.query == k, :2]
        assert ConvexHull(points).volume >= 0.999 * 2.0 * 0.5**2  # the largest square in the circle
    poses[:, :3, :3] = tilted(0.5 * np.pi)
    poses[:, 2, 3] = 0.495
    lying = manifold(Cylinder(0.5, 1.2).at(poses), field, device="cpu")
    assert (np.bincount(lying.query) == 2).all()
    np.testing.assert_allclose(lying.gap, -0.005, atol=1e-12)
    ends = lying.point_a.reshape(-1, 2, 3)
    np.testing.assert_allclose(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1), 1.2, atol=1e-12)
    poses[:, :3, :3] = tilted(0.6)
    poses[:, 2, 3] = 0.6 * np.cos(0.6) + 0.5 * np.sin(0.6) - 0.005
    oblique = manifold(Cylinder(0.5, 1.2).at(poses), field, device="cpu")
    assert (np.bincount(oblique.query) == 1).all()
    np.testing.assert_allclose(oblique.gap, -0.005, atol=1e-12)


@pytest.mark.feature("F-S-21")
def test_a_lying_barrel_on_subdivided_flat_ground_has_exactly_two_points_at_its_ends(rng):
    heights = np.zeros((61, 61))
    heights[0, 0] = 1e-3  # far away; nothing is one plane as a whole
    field = Heightfield(heights, 0.1)
    for heading in (*rng.uniform(0.0, 6.3, 40), 0.0, 0.5 * np.pi):
        turn = tilted(0.5 * np.pi, heading)
        centre = np.array([*rng.uniform(2.0, 4.0, 2), 0.49])
        found = manifold(Cylinder(0.5, 1.2).at(at(*centre, turn=turn)), field, device="cpu")
        assert len(found) == 2
        ends = np.sort((found.point_a - centre) @ turn[:, 2])
        np.testing.assert_allclose(ends, [-0.6, 0.6], atol=1e-12)


def test_on_ground_that_is_flat_but_for_dust_nothing_is_lost(rng):
    field = Heightfield(ground("dust", 100, 0.05, rng), 0.05)
    poses = np.stack([at(*xy, 0.595) for xy in rng.uniform(1.2, 3.8, (100, 2))])
    found = manifold(Cylinder(0.5, 1.2).at(poses), field, device="cpu")
    assert (np.bincount(found.query) == 4).all()
    for k in range(100):
        assert ConvexHull(found.point_a[found.query == k, :2]).volume >= 0.9 * 2.0 * 0.5**2


def test_over_seams_of_coplanar_cells_the_normal_never_tilts(rng):
    for slope in ((0.0, 0.0), (0.3, -0.17)):
        x, y = np.meshgrid(np.arange(81) * 0.1, np.arange(81) * 0.1)
        field = Heightfield(slope[0] * x + slope[1] * y, 0.1)
        up = np.array([-slope[0], -slope[1], 1.0])
        up /= np.linalg.norm(up)
        poses = np.tile(np.eye(4), (3000, 1, 1))
        poses[:, :3, :3] = random_rotations(3000, rng)
        poses[:, :2, 3] = rng.uniform(2.0, 6.0, (3000, 2))
        axis = poses[:, :3, 2]
        along = axis @ up
        support = 0.6 * np.abs(along) + 0.5 * np.sqrt(np.maximum(0.0, 1.0 - along**2))
        foot = poses[:, :3, 3] * [1.0, 1.0, 0.0]
        foot[:, 2] = slope[0] * foot[:, 0] + slope[1] * foot[:, 1]
        poses[:, :3, 3] = foot + (support - 0.01)[:, None] * up
        for margin, tie in ((0.0, 1e-9), (0.005, 0.1 * 0.005)):
            found = manifold(Cylinder(0.5, 1.2).at(poses), field, distance=margin, device="cpu")
            np.testing.assert_allclose(found.normal, np.tile(up, (len(found), 1)), atol=1e-9)
            deepest = np.full(3000, -np.inf)
            np.maximum.at(deepest, found.query, -found.gap)
            np.testing.assert_allclose(deepest, 0.01, atol=tie)


def test_a_body_that_rocks_by_a_fraction_of_a_degree_keeps_its_four_points():
    field = flat(0.1)
    turn = tilted(np.radians(0.3))
    pose = at(3.0, 3.0, 0.6, turn=turn)
    found = manifold(Cylinder(0.5, 1.2).at(pose), field, device="cpu")
    assert len(found) == 4
    assert (found.gap > 0.0).any()
    assert found.gap.max() <= 0.005
    without = manifold(Cylinder(0.5, 1.2).at(pose), field, distance=0.0, device="cpu")
    whole, part = (ConvexHull(contacts.point_a[:, :2]).volume for contacts in (found, without))
    assert whole > 0.85 * 2.0 * 0.5**2 > 1.2 * part


def test_keys_are_unique_and_stay_while_a_body_slides_and_sinks_a_little():
    field = flat(0.1)
    before = manifold(Cylinder(0.5, 1.2).at(at(3.02, 3.03, 0.598)), field, device="cpu")
    after = manifold(Cylinder(0.5, 1.2).at(at(3.021, 3.031, 0.597)), field, device="cpu")
    assert len(set(before.key)) == 4
    np.testing.assert_array_equal(before.key, after.key)
    np.testing.assert_allclose(after.point_a - before.point_a, [[0.001, 0.001, -0.001]] * 4, atol=1e-12)


@pytest.mark.parametrize("lying", [False, True])
def test_keys_stay_while_a_body_rocks_by_a_hair(lying):
    """By 1e-4 in every direction, touching or hovering: the same points of the body on the same ground."""
    field = flat(0.1)
    rest = tilted(0.5 * np.pi, 0.3) if lying else np.eye(3)
    for height in (0.498, 0.5002) if lying else (0.598, 0.6002):
        keys = set()
        for heading in np.linspace(0.0, 2.0 * np.pi, 37):
            about = 1e-4 * np.array([np.cos(heading), np.sin(heading), 0.0])
            turn = Rotation.from_rotvec(about).as_matrix() @ rest
            found = manifold(Cylinder(0.5, 1.2).at(at(3.02, 3.03, height, turn=turn)), field, device="cpu")
            assert len(found) == (2 if lying else 4)
            keys.add(tuple(found.key))
        assert len(keys) == 1


def kerb(cell: float = 0.01, height: float = 0.15) -> Heightfield:
    """Level ground with a kerb from x = 2 on, its wall one cell wide."""
    x = np.arange(round(4.0 / cell) + 1) * cell
    return Heightfield(np.tile(np.where(x > 2.0 - 0.5 * cell, height, 0.0), (round(4.0 / cell) + 1, 1)), cell)


@pytest.mark.parametrize("turn", [np.eye(3), tilted(0.02, 0.3), tilted(0.01, 3.0)])
def test_a_barrel_that_overlaps_a_kerb_goes_out_sideways_and_keeps_its_stand(turn):
    pose = at(1.51, 2.0, 0.597, turn=turn)  # one centimetre into the kerb's top, three millimetres into the ground
    found = manifold(Cylinder(0.5, 1.2).at(pose), kerb(), device="cpu")
    assert -found.gap.min() < 0.04  # not the 0.15 of the kerb
    side = found.normal[:, 0] < -0.9
    assert side.sum() == 1
    stand = found[~side]
    np.testing.assert_allclose(stand.normal, np.tile([0.0, 0.0, 1.0], (len(stand), 1)), atol=1e-9)
    assert stand.point_b[:, 2].max() < 0.01
    assert ConvexHull(stand.point_a[:, :2]).volume > 0.75 * 2.0 * 0.5**2
    assert stand.point_a[:, 0].max() > 1.8  # the foot near the kerb stays
    # Out along the wall it is clear of the kerb.
    pose[:3, 3] += -found.gap[side][0] * 1.01 * found.normal[side][0] + [0.0, 0.0, 0.02]
    assert not touches(Cylinder(0.5, 1.2).at(pose), kerb(), device="cpu").hit.any()


def test_a_barrel_half_on_a_kerb_shows_its_top_and_its_edge():
    found = manifold(Cylinder(0.5, 1.2).at(at(2.0, 2.0, 0.745)), kerb(), device="cpu")
    np.testing.assert_allclose(found.normal, np.tile([0.0, 0.0, 1.0], (len(found), 1)), atol=1e-9)
    np.testing.assert_allclose(found.gap, -0.005, atol=1e-9)
    assert found.point_a[:, 0].min() < 2.001 < 2.3 < found.point_a[:, 0].max()


def way_out(found: Contacts) -> np.ndarray:
    """A translation that satisfies every contact."""
    move = np.zeros(3)
    for _ in range(200):
        for depth, normal in zip(-found.gap, found.normal, strict=True):
            move += max(0.0, depth - normal @ move) * normal
    return move


@pytest.mark.feature("F-S-28")
@pytest.mark.parametrize("kind", ["flat", "hills", "rough", "kerbs", "spikes"])
def test_a_body_half_a_metre_under_ground_comes_out_upward(kind, rng):
    field = Heightfield(ground(kind, 60, 0.2, rng, 0.5), 0.2)
    for turn in random_rotations(12, rng):
        x, y = rng.uniform(4.0, 8.0, 2)
        start = float(field.height_at(np.array([[x, y]]))[0]) - 0.5 - 0.9
        body = Cylinder(0.3, 0.9)
        pose = at(x, y, start, turn=turn)
        for _ in range(30):
            found = manifold(body.at(pose), field, distance=0.0, device="cpu")
            if not len(found) or found.gap.min() > -1e-6:
                break
            pose[:3, 3] += way_out(found)
        assert pose[2, 3] > start + 0.5
        pose[2, 3] += 1e-5
        shrunk = Cylinder(0.3 - 1e-4, 0.9 - 2e-4)
        assert not touches(shrunk.at(pose), field, device="cpu").hit.any()


def test_each_group_of_like_normals_has_at_most_four_points(rng):
    field = Heightfield(ground("spikes", 100, 0.04, rng, 0.5), 0.04)
    poses = np.tile(np.eye(4), (100, 1, 1))
    poses[:, :3, :3] = random_rotations(100, rng)
    poses[:, :2, 3] = rng.uniform(1.0, 3.0, (100, 2))
    poses[:, 2, 3] = 0.3
    found = manifold(Cylinder(0.4, 1.0).at(poses), field, device="cpu")
    for k in range(100):
        normals = found.normal[found.query == k]
        like = normals @ normals.T > np.cos(np.radians(0.3))
        assert like.sum(axis=1).max(initial=0) <= 8  # four of a group, and of a neighbouring group
    flat_found = manifold(Cylinder(0.4, 1.0).at(poses), flat(0.04), device="cpu")
    assert np.bincount(flat_found.query).max() <= 4
