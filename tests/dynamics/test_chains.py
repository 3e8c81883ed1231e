"""Chains of all kinds of joints with loads that are up to a million times as heavy as their links, and fast limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tests.oracles.rigid_worlds import joint_error, meeting_pairs

LENGTH = 0.35
LINK = tg.generate.box((0.3, 0.1, 0.1))
ALL_KINDS = ("hinge", "ball", "slider", "distance", "weld")


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def chain(kinds, count, ratio, **options):
    """Links in a row from a ball joint with the world on, that fall from level; the last is `ratio` times as heavy."""
    bodies = [Body(LINK, at(LENGTH * k), mass=1.0 if k < count - 1 else ratio) for k in range(count)]
    world = World(bodies, device="cpu", threads=1, **options)
    world.join("ball", 0, at=[-LENGTH / 2, 0, 0])
    for k, kind in zip(range(count - 1), itertools.cycle(kinds), strict=False):
        place = np.array([LENGTH * k + LENGTH / 2, 0.0, 0.0])
        if kind == "hinge":
            world.join(kind, k, k + 1, at=place, axis=[0, 1, 0], limits=(-1.5, 1.5))
        elif kind == "slider":
            world.join(kind, k, k + 1, at=place, axis=[1, 0, 0], limits=(-0.01, 0.05))
        elif kind == "distance":
            world.join(kind, k, k + 1, at=place - [0.02, 0, 0], to=place + [0.02, 0, 0])
        else:
            world.join(kind, k, k + 1, at=place)
    return world


def hang(kinds, count, ratio, steps, **options):
    """Errors and energies of a chain that falls and swings, and what crossed."""
    world = chain(kinds, count, ratio, **options)
    energies, errors, crossed = [world.energy.total], [], []
    for step in range(steps):
        world.step()
        energies.append(world.energy.total)
        errors.append(joint_error(world))
        if step % 10 == 0:
            joined = {(joint.body_a, joint.body_b) for joint in world.joints}
            crossed += [pair for pair in meeting_pairs(world) if tuple(pair) not in joined]
    assert world.truncation.worst_joint_error == pytest.approx(max(errors), abs=1e-5)
    return np.array(errors), np.array(energies), crossed


@pytest.mark.parametrize("ratio", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("count", [3, 8, 20])
@pytest.mark.parametrize("kinds", [("hinge",), ("ball",), ALL_KINDS], ids=["hinge", "ball", "all"])
def test_chains_hold_whatever_hangs_on_them(kinds, count, ratio):
    errors, energies, crossed = hang(kinds, count, ratio, 100)
    fallen = 9.81 * LENGTH * count * (count - 1 + ratio)
    assert errors.max() < 5e-4 * 0.3
    assert energies.max() - energies[0] < 5e-3 * fallen
    assert np.diff(energies).max() < 1e-6 * fallen
    assert not crossed


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "count", "ratio"), [(("hinge",), 8, 1.0), (ALL_KINDS, 8, 100.0)])
def test_chains_hold_for_ten_thousand_steps(kinds, count, ratio):
    errors, energies, crossed = hang(kinds, count, ratio, 10_000)
    assert errors.max() < 5e-4 * 0.3
    assert energies.max() - energies[0] < 5e-3 * 9.81 * LENGTH * count * (count - 1 + ratio)
    assert not crossed


@pytest.mark.feature("F-R-53")
@pytest.mark.parametrize("speed", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("limits", [(-0.5, 0.5), (-1.5, 0.5), (-0.1, 0.5)])
def test_limits_hold_at_any_speed(speed, limits):
    """Limits that are gone past in the middle of a step, also where the other one is nearer."""
    rod = tg.generate.box((1.0, 0.1, 0.1))
    turning = Body(rod, spin=[0.0, speed, 0.0], velocity=[0.0, 0.0, -0.5 * speed], name="turning")
    sliding = Body(rod, at(0.0, 5.0), velocity=[speed, 0.0, 0.0], name="sliding")
    world = World([turning, sliding], gravity=(0.0, 0.0, 0.0), device="cpu")
    world.join("hinge", 0, at=[-0.5, 0, 0], axis=[0, 1, 0], limits=limits, name="hinge")
    world.join("slider", 1, at=[0.0, 5.0, 0], axis=[1, 0, 0], limits=limits, name="slider")
    start = world.energy.total
    for _ in range(30):
        world.step()
        assert joint_error(world) < 1e-6
        assert world.energy.total <= start * (1.0 + 1e-9)
        for name in ("hinge", "slider"):
            assert limits[0] - 1e-6 <= world.coordinates[name] <= limits[1] + 1e-6
    assert world.coordinates["slider"] == pytest.approx(limits[1], abs=1e-6)


def torn():
    """Two drivers go apart with a body between them."""
    rod = tg.generate.box((1.0, 0.1, 0.1))
    bodies = [Body(rod, driven=True, velocity=[1.0, 0.0, 0.0]), Body(rod, at(z=1.0))]
    bodies.append(Body(rod, at(z=2.0), driven=True, velocity=[-1.0, 0.0, 0.0]))
    world = World(bodies, device="cpu")
    world.join("ball", 0, 1, at=[0, 0, 0.5])
    world.join("ball", 1, 2, at=[0, 0, 1.5])
    return world


def test_what_contradicts_itself_is_told():
    """What drives it gives way before its joints do, and the world says who was held back."""
    world, told, held = torn(), [], set()
    for _ in range(40):
        world.step()
        told.append(world.truncation.joint_error)
        held |= set(world.truncation.bodies)
        assert joint_error(world) < 5e-4
    assert held & {number for number, body in enumerate(world.bodies) if body.driven}
    assert world.truncation.all_lost_time > 0.0
    assert world.truncation.worst_joint_error == max(told)


def test_a_copy_that_contradicts_itself_leaves_the_others_closed():
    copies = torn().copies(3)
    velocities = copies.velocities
    velocities[[0, 2]] = 0.0
    velocities[[0, 2], 1, 4] = 5.0  # what hangs between the drivers turns
    copies.set_state(velocities=velocities)
    for _ in range(20):
        copies.step()
        poses = copies.poses
        tips = poses[:, 1, :3, :3] @ [0.0, 0.0, -0.5] + poses[:, 1, :3, 3]
        tops = poses[:, 0, :3, :3] @ [0.0, 0.0, 0.5] + poses[:, 0, :3, 3]
        assert np.linalg.norm(tips - tops, axis=1)[[0, 2]].max() < 1e-5
    assert copies.truncation.all_bodies > 0
    assert copies.truncation.worst_joint_error < 5e-4
