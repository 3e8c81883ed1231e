"""Procedural terrains and the scenes on them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tangere.query.intersection import touches
from tangere.runtime import InputError
from tangere.shape.generate import terrain, terrain_scenes

MAKERS = {
    "flat": terrain.flat,
    "slope": terrain.slope,
    "fractal": terrain.fractal,
    "dunes": terrain.dunes,
    "kerbs": terrain.kerbs,
    "stairs": terrain.stairs,
    "city_blocks": terrain.city_blocks,
}


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_terrain_has_its_size_and_the_same_bits_again(name):
    make = MAKERS[name]
    field = make((6.0, 4.0), 0.25)
    assert field.shape == (16, 24)
    assert field.bounds[1, :2].tolist() == [6.0, 4.0]
    assert np.array_equal(field.heights, make((6.0, 4.0), 0.25).heights)
    for size, cell, reason in (
        ((6.0, 4.0), 0.0, "cell must be positive"),
        ((6.0, 4.0), "a", "cell must be a number, not 'a'"),
        ((6.0, 4.0), 5.0, r"size \(6.0, 4.0\) cannot have cells of 5.0 m"),
        ((1,), 0.25, r"size must be 2 lengths, not \(1,\)"),
        (1.0, 0.25, "size must be 2 lengths, not 1.0"),
        ((6.0, np.nan), 0.25, r"size\[1\] must be positive"),
    ):
        with pytest.raises(InputError, match=f"^{name}: .*{reason}"):
            make(size, cell)


@pytest.mark.parametrize("name", ["fractal", "dunes", "city_blocks"])
def test_seeds_make_different_ground(name):
    size = (40.0, 40.0)
    for seed in (-1, 0.5, None):
        with pytest.raises(InputError, match=f"{name}: seed must be a whole number of at least 0, not {seed}"):
            MAKERS[name](size, 0.5, seed=seed)
    assert not np.array_equal(MAKERS[name](size, 0.5, seed=1).heights, MAKERS[name](size, 0.5, seed=2).heights)


def test_terrains_are_what_their_arguments_say():
    assert terrain.fractal(deviation=0.3).heights.std() == pytest.approx(0.3)
    assert np.unique(terrain.kerbs(height=0.12).heights).tolist() == [0.0, 0.12]
    steps = np.unique(np.diff(terrain.stairs(rise=0.2).heights, axis=1).round(12))
    assert steps.tolist() == [0.0, 0.2]
    normal = terrain.slope(angle=0.3, heading=1.0).planes()[0][5, 5, 0]
    assert math.acos(normal[2]) == pytest.approx(0.3)
    assert math.atan2(-normal[1], -normal[0]) == pytest.approx(1.0)
    lee = np.diff(terrain.dunes(seed=3).heights, axis=1)
    assert lee.min() < -2.0 * lee.max()
    assert terrain.city_blocks(tallest=9.0).heights.max() <= 9.0


@pytest.mark.parametrize(
    "scene",
    [
        terrain_scenes.barrels(),
        terrain_scenes.robot_with_trailer(drop=0.0),
        terrain_scenes.barrel_on_slope(0.3, rolling=True),
        terrain_scenes.barrel_on_slope(0.3, rolling=False),
    ],
    ids=["barrels", "robot", "rolling", "standing"],
)
def test_bodies_of_a_scene_lie_on_the_ground_within_a_centimetre(scene, device):
    assert len(scene.bodies) == len(scene.names)
    poses = scene.bodies.poses.copy()
    for shift, expected in ((0.01, False), (-0.01, True)):
        moved = poses.copy()
        moved[:, 2, 3] += shift
        assert (touches(scene.bodies._with(poses=moved), scene.terrain, device=device).hit == expected).all()


def test_lowered_wheels_hang_clear_of_the_dunes(device):
    scene = terrain_scenes.lowered_wheels(500)
    assert not touches(scene.bodies, scene.terrain, device=device).hit.any()
    assert np.allclose(np.linalg.det(scene.bodies.poses[:, :3, :3]), 1.0)
