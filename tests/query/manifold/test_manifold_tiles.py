"""Ground in tiles of which few are in memory: contacts have the same bits as on one grid."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.bodies_on_terrain import random_rotations
from tangere.bvh.height_pyramid import PagedPyramid
from tangere.motion import Twist
from tangere.query.first_contact.heightfield.api import heightfield_first_contact
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.runtime import UnsupportedError, choose_device
from tangere.shape.analytic import Box, Capsule, Cone, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield, TiledHeightfield

KINDS = {
    "cylinder": Cylinder(0.5, 1.2),
    "sphere": Sphere(0.6),
    "capsule": Capsule(0.4, 0.9),
    "box": Box([0.5, 0.4, 0.7]),
    "cone": Cone(0.5, 1.0),
}


def few_pages(land: TiledHeightfield, device: str, count: int) -> None:
    """Let no more than `count` tiles be in memory."""
    on = choose_device(device)
    land.cache["pyramid", on.alias] = PagedPyramid(land, on, resident=count)


@pytest.mark.feature("F-S-29")
@pytest.mark.parametrize("kind", KINDS)
def test_manifolds_on_tiles_have_the_bits_of_those_on_one_grid(kind, rng, device):
    heights = np.where(rng.random((180, 150)) < 0.5, rng.normal(0.0, 0.3, (180, 150)), 0.0)
    heights[:, 70:140] = 0.2 * np.arange(70)  # a planar slope over two seams
    holes = rng.random((179, 149)) < 0.03
    whole, tiles = Heightfield(heights, (0.3, 0.25), holes=holes), TiledHeightfield(heights, (0.3, 0.25), holes=holes)
    few_pages(tiles, device, 9)  # of 30: bodies come in groups
    count = 3000
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    poses[:, :2, 3] = rng.uniform(-0.5, [45.5, 45.5], (count, 2))
    seam = rng.choice(32 * np.arange(1, 5), count)  # each second on a seam of tiles
    poses[::2, 0, 3] = 0.3 * seam[::2] + rng.uniform(-0.3, 0.3, count // 2)
    ground = whole.height_at(poses[:, :3, 3])
    poses[:, 2, 3] = np.where(np.isnan(ground), 0.0, ground) + rng.uniform(0.2, 0.8, count)
    one, many = (manifold(KINDS[kind].at(poses), field, device=device) for field in (whole, tiles))
    assert len(np.unique(one.query)) > 500
    for name in ("query", "point_a", "point_b", "normal", "gap", "feature_a", "feature_b", "kind", "key"):
        assert np.array_equal(getattr(one, name), getattr(many, name)), name
    with pytest.raises(UnsupportedError, match="in memory"):
        manifold(Cylinder(0.5, 1.2).at(poses), tiles, mode="published")


def test_planar_ground_beyond_the_resident_tiles_is_known_by_its_corners(rng, device):
    """A body over 3 x 3 tiles of a plane: the square that holds them all reaches to tiles that are not resident."""
    x, y = np.meshgrid(np.arange(257), np.arange(257))
    heights = 0.25 * x - 0.125 * y  # exact
    whole, tiles = Heightfield(heights, 0.5), TiledHeightfield(heights, 0.5)
    few_pages(tiles, device, 25)  # of 81
    poses = np.tile(np.eye(4), (40, 1, 1))
    poses[:, :2, 3] = rng.uniform(30.0, 98.0, (40, 2))
    poses[:, 2, 3] = whole.height_at(poses[:, :3, 3]) + rng.uniform(5.0, 25.0, 40)
    bodies = Cylinder(15.0, 20.0).at(poses)
    assert np.array_equal(touches(bodies, whole, device=device).surface, touches(bodies, tiles, device=device).surface)
    one, many = (manifold(bodies, field, device=device) for field in (whole, tiles))
    assert len(one) > 20
    assert np.array_equal(one.key, many.key)
    assert np.array_equal(one.point_a, many.point_a)
    moving = bodies.at(np.eye(4)).moving(Twist(np.eye(4), [1.0, 2.0, -10.0], [0.0, 0.0, 0.0]))
    assert np.array_equal(*(heightfield_first_contact(moving, field, device=device).time for field in (whole, tiles)))
