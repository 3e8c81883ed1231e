"""Bodies that are put 1e-9 of their size apart, or nearer: they fall, come apart and rest like others."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tests.oracles.rigid_worlds import meeting_pairs

CUBE = tg.generate.box((1.0, 1.0, 1.0))


def at(x=0.0, y=0.0, z=0.0, angle=0.0):
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    pose[:3, 3] = x, y, z
    return pose


@pytest.mark.parametrize("angle", [0.0, 0.3])
@pytest.mark.parametrize("gap", [1e-8, 1e-9, 3e-10])
@pytest.mark.parametrize("count", [2, 5])
def test_a_stack_that_tight_comes_apart_and_rests(count, gap, angle):
    floor = Body(tg.generate.box((8.0, 8.0, 0.5)), at(z=-0.25), fixed=True)
    cubes = [Body(CUBE, at(0.1 * (k % 2), z=0.5 + gap + k * (1.0 + gap), angle=angle * k)) for k in range(count)]
    world = World([floor, *cubes], device="cpu")
    world.run(steps=60)
    assert not world.truncation.all_bodies
    assert not meeting_pairs(world)
    assert world.asleep[1:].all()
    np.testing.assert_allclose(world.positions[1:, 2], 0.5 + np.arange(count), atol=1e-3)
    world[count].push(force=(0.0, 0.0, 5e4))  # nothing holds the uppermost
    world.run(steps=20)
    assert world.velocities[count, 2] == pytest.approx(0.2 * (50.0 - 9.81), rel=1e-3)


def test_what_falls_together_falls_however_near_it_is():
    world = World([Body(CUBE, at(z=k * (1.0 + 1e-11))) for k in range(5)], device="cpu")
    world.run(steps=50)
    assert not world.truncation.all_bodies
    np.testing.assert_allclose(world.positions[:, 2], np.arange(5) - 0.5 * 9.81 * 0.25, atol=1e-9)


def test_faces_that_lie_edge_to_edge_have_contacts_whatever_rounding_makes_of_their_rims():
    """Shifted by less than what tells rims apart, and lifted by as little, they had none at all."""
    near, pairs = tg.PosedProximity([CUBE, CUBE], device="cpu"), np.array([[0, 1]])
    rng = np.random.default_rng(5)
    for _ in range(50):
        gap, (dx, dy), tilt = 10.0 ** rng.uniform(-11, -7), 10.0 ** rng.uniform(-12, -8, 2), rng.normal(size=3)
        pose = at(dx * rng.choice([-1, 1]), dy * rng.choice([-1, 1]), 1.0)
        pose[:3, :3] += np.cross(np.eye(3), 0.2 * gap * tilt / np.linalg.norm(tilt))
        pose[2, 3] += gap
        contacts = near.at(np.array([np.eye(4), pose]), pairs, 1e-3).contacts
        assert len(contacts)
        corners = [np.ptp(contacts.point_a[:, axis]) for axis in (0, 1)]
        np.testing.assert_allclose(corners, 1.0, atol=1e-6)  # it rests on all four
        np.testing.assert_allclose(np.abs(contacts.normal[:, 2]), 1.0, atol=0.02)
        assert (contacts.gap <= 1.5 * gap + 1e-12).all()


@pytest.mark.parametrize("gap", [1e-7, 1e-8, 1e-9, 3e-10])
def test_faces_that_are_parallel_but_for_rounding_part_without_a_contact(gap):
    """Between side faces above each other no face tells the direction, and the nearest points tell it to a digit."""
    lower = CUBE.moving(tg.Rest(np.eye(4)))
    for tilt in (0.0, 1e-11, 3e-11):
        pose = at(0.1, 2e-11, 1.0 + gap)
        pose[:3, :3] += np.cross(np.eye(3), (tilt, -0.5 * tilt, 0.0))
        upper = CUBE.moving(tg.Twist(pose, np.array([1e-9, 0.0, 1e-6]), np.zeros(3)))
        found = tg.first_contact(lower, upper, start="trusted", separation=0.85 * gap, tolerance=1e-11, device="cpu")
        assert not np.isfinite(found.time)
