"""Many worlds in one batch: each goes as it would alone, on CPU and on CUDA."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from tangere.dynamics import Body, World
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.runtime import InputError

BOX = tg.generate.box((0.5, 0.4, 0.3))


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def small_world(device="cpu", **options):
    """Three boxes that fall onto a floor, and a pendulum."""
    floor = Body(tg.generate.box((6.0, 6.0, 1.0)), at(z=-0.5), fixed=True, name="floor")
    boxes = [Body(BOX, at(0.05 * k, 0.02 * k, 0.2 + 0.45 * k), name=f"box {k}") for k in range(3)]
    rod = Body(tg.generate.box((1.0, 0.1, 0.1)), at(2.0, 0.0, 1.5), name="rod")
    world = World([floor, *boxes, rod], device=device, **options)
    world.join("hinge", "rod", at=[1.5, 0.0, 1.5], axis=[0, 1, 0], name="pin")
    return world


def meeting(copies, bodies, copy):
    poses = copies.poses[copy]
    moving = [body.mesh.moving(Rest(pose)) for body, pose in zip(bodies, poses, strict=True)]
    return [(i, j) for i in range(len(moving)) for j in range(i) if intersects(moving[i], moving[j], device="cpu")]


def test_copies_go_as_their_world_does():
    world = small_world()
    world.run(steps=5)
    copies = world.copies(3)
    for _ in range(40):
        world.step()
        copies.step()
    assert len(copies) == 3
    assert copies.steps == 40
    for k in range(3):
        np.testing.assert_allclose(copies.positions[k], world.positions, atol=1e-6)
        np.testing.assert_allclose(copies.velocities[k], world.velocities, atol=1e-4)
    np.testing.assert_array_equal(copies.poses[0], copies.poses[2])
    np.testing.assert_allclose(copies.energy, world.energy.total, rtol=1e-6)
    found = copies.contacts
    assert set(found.query.tolist()) == {0, 1, 2}
    assert found.body_b.max() < len(world)


def test_copies_know_how_often_their_hinges_have_turned():
    """A wheel that has gone round is stopped by its limit where that of its world is."""
    world = World(Body(BOX, at(0.5)), device="cpu", gravity=(0, 0, 0))
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 0, 1], name="pin", limits=(-20.0, 7.0), speed=6.0, force=1e4)
    world.run(0.8)
    assert world.coordinates["pin"] > np.pi
    copies = world.copies(2)
    for one in (world, copies):
        one.run(0.6)
    assert world.coordinates["pin"] == pytest.approx(7.0, abs=1e-6)
    np.testing.assert_allclose(copies.poses, np.broadcast_to(world.poses, (2, 1, 4, 4)), atol=1e-9)


def test_each_copy_goes_its_own_way():
    world = small_world()
    copies = world.copies(4)
    speeds = copies.velocities
    speeds[:, 1, 0] = [0.0, 1.0, 2.0, 3.0]
    copies.set_state(velocities=speeds)
    loads = np.zeros((4, len(world), 6))
    loads[3, 2, 2] = 2 * 9.81 * world.bodies[2].mass  # lifts the second box of the last one
    copies.push(loads)
    copies.run(0.3)
    alone = small_world()
    alone["box 0"].set_state(velocity=[2.0, 0.0, 0.0])
    alone.run(0.3)
    np.testing.assert_allclose(copies.positions[2], alone.positions, atol=1e-5)
    assert (np.diff(copies.positions[:, 1, 0]) > 0.01).all()
    assert copies.positions[3, 2, 2] > copies.positions[2, 2, 2] + 0.2
    assert [meeting(copies, world.bodies, k) for k in range(4)] == [[]] * 4
    assert set(copies.timings) == {"predict", "gather", "respond", "walk", "truncate", "record"}


def test_a_copy_that_runs_into_something_changes_no_other(device):
    """What is hit is solved for again, in its own copy only: the other one has the bits that it has without."""
    world, found = small_world(device), []
    world.run(0.4)  # all has come down
    for speed in (0.0, 50.0):
        copies = world.copies(2)
        poses, speeds = copies.poses, copies.velocities
        poses[1, 3, 2, 3] = 3.0  # a box from above
        speeds[1, 3] = [0.3, 0.2, -speed, 3.0, 2.0, 1.0]
        copies.set_state(poses=poses, velocities=speeds)
        again = 0
        for _ in range(10):
            copies.step()
            again += copies.truncation.solved_again
            assert copies.truncation.parts == 1
        found.append((again, copies.poses, copies.velocities))
    assert found[0][0] == 0 < found[1][0]
    np.testing.assert_array_equal(found[0][1][0], found[1][1][0])
    np.testing.assert_array_equal(found[0][2][0], found[1][2][0])
    assert np.abs(found[0][1][1] - found[1][1][1]).max() > 0.1
    assert meeting(copies, world.bodies, 1) == []


def test_copies_stand_on_ground():
    field = tg.Heightfield(np.zeros((21, 21)), 0.5)
    world = World([Body(field), Body(tg.Cylinder(0.3, 0.6), at(5.0, 5.0, 0.5), name="barrel")], device="cpu")
    copies = world.copies(2)
    copies.run(0.8)
    np.testing.assert_allclose(copies.positions[:, 1, 2], 0.3 + world.separation, atol=1e-6)


def test_bad_states_of_copies_are_refused():
    world = small_world()
    copies = world.copies(2)
    with pytest.raises(InputError, match="velocities must be finite, of shape"):
        copies.set_state(velocities=np.zeros((3, len(world), 6)))
    poses = copies.poses
    poses[1, 2] = poses[1, 1]
    copies.set_state(poses=poses)
    with pytest.raises(InputError, match="overlap"):
        copies.step()
    with pytest.raises(InputError, match="count"):
        world.copies(0)


@pytest.mark.cuda
def test_cpu_and_cuda_agree_for_ten_steps():
    found = []
    for device in ("cpu", "cuda:0"):
        world = small_world(device)
        world.run(steps=20)  # in contact
        state = world.poses, world.velocities
        if device != "cpu":
            for k, (pose, velocity) in enumerate(zip(*found[0][:2], strict=True)):
                world[k].set_state(pose=pose, velocity=velocity[:3], spin=velocity[3:])
            state = found[0][:2]
        world.run(steps=10)
        found.append((*state, world.positions, world.velocities))
    np.testing.assert_allclose(found[0][2], found[1][2], atol=1e-6)
    np.testing.assert_allclose(found[0][3], found[1][3], atol=1e-4)


@pytest.mark.cuda
def test_many_copies_on_cuda_keep_apart_what_is_apart():
    world = small_world("cuda:0")
    copies = world.copies(64)
    speeds = copies.velocities
    speeds[:, 1:4, :2] = np.random.default_rng(0).uniform(-1.0, 1.0, (64, 3, 2))
    copies.set_state(velocities=speeds)
    copies.run(0.5)
    assert np.isfinite(copies.poses).all()
    for k in range(0, 64, 9):
        assert meeting(copies, world.bodies, k) == []
    wp.synchronize()
