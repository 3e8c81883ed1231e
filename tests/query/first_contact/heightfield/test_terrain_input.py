"""Bodies on terrain with odd and bad input: a clear error, or the right answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tangere as tg
from tangere.query.first_contact.heightfield.api import heightfield_first_contact
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.runtime import InputError, UnsupportedError
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield, TiledHeightfield

BARREL = Cylinder(0.5, 1.2)
FLAT = Heightfield(np.zeros((4, 4)))


def at(x: float, y: float, z: float, count: int = 1) -> np.ndarray:
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, 3] = x, y, z
    return poses


def falling(poses: np.ndarray, speed: float) -> tg.Moving:
    start = np.tile(np.eye(4), (len(poses), 1, 1))
    way = np.tile([0.0, 0.0, -speed], (len(poses), 1))
    return BARREL.at(poses).moving(tg.Twist(start, way, np.zeros_like(way)))


@pytest.mark.parametrize("margin", [-1.0, np.nan, np.inf, True, "wide", np.array([0.1, 0.2])])
def test_a_margin_that_is_no_length_is_refused(margin):
    with pytest.raises(InputError, match="distance"):
        manifold(BARREL.at(at(1.5, 1.5, 0.5)), FLAT, distance=margin, device="cpu")


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("mode", ["sound", "published"])
def test_a_number_of_threads_that_is_none_is_refused_however_few_bodies_there_are(mode, count):
    with pytest.raises(InputError, match="threads"):
        manifold(BARREL.at(at(1.5, 1.5, 0.5, count)), FLAT, mode=mode, threads=0, device="cpu")


def test_the_method_as_printed_has_no_margin():
    bodies = BARREL.at(at(1.5, 1.5, 0.595))
    with pytest.raises(InputError, match="no distance"):
        manifold(bodies, FLAT, mode="published", distance=0.1, device="cpu")


@pytest.mark.parametrize("terrain", [None, 3.0, np.zeros((4, 4)), [FLAT, None]])
def test_what_is_no_terrain_is_refused(terrain):
    with pytest.raises(UnsupportedError, match=r"Heightfield|body 1 of b must be a mesh, an analytic body or ground"):
        manifold(BARREL.at(at(1.5, 1.5, 0.5)), terrain, device="cpu")
    assert len(manifold(BARREL.at(at(1.5, 1.5, 0.5)), [], device="cpu")) == 0


@pytest.mark.parametrize("heights", [None, [[0.0, 0.0], [0.0, 0.0]], np.zeros((1, 5)), np.zeros(4)])
def test_tiles_of_no_grid_are_refused(heights):
    with pytest.raises(InputError, match="heights"):
        TiledHeightfield(heights)


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("place", [(1e90, 1.0, 0.0), (1.0, -1e90, 0.0), (1.0, 1.0, 1e90), (1e99, 1e99, 1e99)])
def test_a_body_very_far_away_touches_nothing(place, count):
    bodies = BARREL.at(at(*place, count))
    assert len(manifold(bodies, FLAT, device="cpu")) == 0
    assert not touches(bodies, FLAT, device="cpu").hit.any()


def test_a_motion_whose_squares_overflow_is_refused_and_a_fast_one_is_not_missed():
    speeds = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, -1e90]])
    motion = tg.Twist(np.tile(np.eye(4), (2, 1, 1)), speeds, np.zeros((2, 3)))
    with pytest.raises(InputError, match="motion 1: its velocity"):
        heightfield_first_contact(BARREL.at(at(1.5, 1.5, 1.0, 2)).moving(motion), FLAT, device="cpu")
    for speed in (1e9, 1e30, 1e60):
        hit = heightfield_first_contact(falling(at(1.5, 1.5, 1.0), speed), FLAT, device="cpu")
        assert hit.time[0] <= 0.4 / speed


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_answers_scale(scale):
    ground, barrel = Heightfield(np.zeros((4, 4)), scale), Cylinder(0.5 * scale, 1.2 * scale)
    found = manifold(barrel.at(at(1.5 * scale, 1.5 * scale, 0.595 * scale)), ground, device="cpu")
    np.testing.assert_allclose(found.gap / scale, [-0.005] * 4, rtol=1e-9)


@pytest.mark.parametrize("number", [np.float16, np.float32, np.int16, np.int64])
def test_heights_may_be_of_any_number_type(number):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ground = Heightfield(np.full((4, 4), 2, number))
    np.testing.assert_allclose(manifold(BARREL.at(at(1.5, 1.5, 2.595)), ground, device="cpu").gap, [-0.005] * 4)


def test_without_bodies_or_without_ground_there_is_nothing():
    nobody, nowhere = BARREL.at(np.zeros((0, 4, 4))), Heightfield(np.zeros((4, 4)), holes=np.ones((3, 3), bool))
    assert len(manifold(nobody, FLAT, device="cpu")) == 0
    assert len(touches(nobody, FLAT, device="cpu")) == 0
    assert len(manifold(BARREL.at(at(1.5, 1.5, 0.1)), nowhere, device="cpu")) == 0
    assert not touches(BARREL.at(at(1.5, 1.5, 0.1)), nowhere, device="cpu").hit.any()
    assert np.isinf(heightfield_first_contact(falling(at(1.5, 1.5, 1.0), 9.0), nowhere, device="cpu").time[0])


def test_a_body_on_the_border_stands_on_what_is_there():
    inside = manifold(BARREL.at(at(0.0, 0.0, 0.595)), FLAT, device="cpu")
    assert (inside.point_b[:, :2] >= -1e-12).all()
    np.testing.assert_allclose(inside.gap, -0.005, rtol=1e-9)
    beside = BARREL.at(at(-0.5, 1.5, 0.595))  # its side touches the border line
    assert touches(beside, FLAT, device="cpu").hit.all()
    assert len(manifold(beside, FLAT, device="cpu")) == 1
    assert len(manifold(BARREL.at(at(-0.51, 1.5, 0.595)), FLAT, device="cpu")) == 0
