"""Islands at rest sleep, cost nothing, and wake when something is done to them."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tests.oracles.rigid_worlds import meeting_pairs

BOX = tg.generate.box((1.0, 1.0, 1.0))


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def stack(threads=1, **options):
    """A floor, three boxes on it, one far away that stays awake, and a ball above."""
    floor = Body(tg.generate.box((40.0, 20.0, 1.0)), at(z=-0.5), fixed=True, name="floor")
    boxes = [Body(BOX, at(z=0.51 + 1.01 * k), name=f"box {k}") for k in range(3)]
    ball = Body(tg.generate.icosphere(subdivisions=1), at(0.0, -6.0, 500.0), name="ball")
    return World([floor, *boxes, ball], device="cpu", threads=threads, **options)


def fall_asleep(world):
    for _ in range(200):
        world.step()
        if world.asleep[1:4].all():
            return
    raise AssertionError("the stack never slept")


def test_a_stack_sleeps_without_rows_and_pairs_and_stands_still():
    world = stack()
    fall_asleep(world)
    poses = world.poses
    world.run(steps=20)
    assert world._step.rows.count == 0
    assert world._step.tally.pairs == 0
    on_floor = world.contacts.body_a == 0  # which carries the stack still
    np.testing.assert_allclose(world.forces[on_floor].sum(axis=0), [0.0, 0.0, -3 * 9810.0], atol=1.0)
    assert (world.poses[:4] == poses[:4]).all()
    assert not world.velocities[:4].any()
    assert world.asleep.tolist() == [False, True, True, True, False]
    assert world.velocities[4, 2] < -5.0  # what falls does not sleep


@pytest.mark.parametrize("speed", [3.0, 200.0])
def test_a_thrown_ball_wakes_the_stack_and_moves_it(speed):
    """The fast one goes farther in a step than contacts are gathered: the walk meets the sleepers."""
    world = stack()
    fall_asleep(world)
    world["ball"].set_state(pose=at(0.0, -4.0, 1.5), velocity=[0.0, speed, 0.0])
    before = world.positions
    for _ in range(round(6.0 / speed / world.dt) + 10):
        world.step()
        if not world.asleep[1:4].any():
            break
    assert not world.asleep.any()
    world.run(steps=5)
    assert world.positions[2, 1] > before[2, 1] + 1e-3
    momentum = world.momentum[1] / (world.bodies[4].mass * speed)
    assert 0.0 < momentum <= 1.0 + 1e-9
    assert meeting_pairs(world) == []


@pytest.mark.parametrize(
    "act",
    [
        lambda world: world.push(1, force=[1.0, 0.0, 0.0]),
        lambda world: world.pull(2, world[2].position, [0.0, 0.0, 9.0]),
        lambda world: world.join("ball", 3, at=world[3].position),
        lambda world: world[2].set_state(spin=[0.0, 0.0, 0.1]),
        lambda world: world["floor"].set_state(pose=at(z=-0.6)),
    ],
    ids=["push", "pull", "join", "set_state", "floor"],
)
def test_what_users_do_to_one_wakes_all_that_sleep_with_it(act):
    world = stack()
    fall_asleep(world)
    act(world)
    assert not world.asleep.any()
    world.step()
    assert not world.asleep.any()


def test_a_step_that_fails_wakes_nobody():
    world = stack()
    fall_asleep(world)
    world["ball"].set_state(pose=at(0.0, 0.0, 4.02), velocity=[0.0, 0.0, -2.0])

    def broken(step):
        assert not step.sleepers.asleep.any()
        raise KeyboardInterrupt

    walk, world.phases["walk"] = world.phases["walk"], broken
    with pytest.raises(KeyboardInterrupt):
        world.step()
    assert world.asleep[1:4].all()
    world.phases["walk"] = walk
    world.step()
    assert not world.asleep.any()


def test_what_a_motor_turns_does_not_sleep():
    world = stack()
    world.join("hinge", 3, at=world[3].position, axis=[0.0, 0.0, 1.0], force=1e-3, speed=0.0)
    world.run(steps=150)
    assert world.asleep.tolist() == [False, True, True, False, False]  # the boxes below it do


def test_one_and_two_threads_sleep_and_wake_alike():
    found = []
    for threads in (1, 2):
        world = stack(threads)
        fall_asleep(world)
        world["ball"].set_state(pose=at(0.0, -4.0, 1.5), velocity=[0.0, 20.0, 0.0])
        world.run(steps=40)
        found.append((world.steps, world.poses.tobytes(), world.velocities.tobytes(), world.asleep.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4, 2e-5])
def test_what_slides_without_friction_never_sleeps_however_small_the_steps(dt):
    """Of a slope of 30 degrees: half of gravity, whatever is gone in a step."""
    slope = at()
    slope[:3, :3] = [[np.sqrt(0.75), 0.0, 0.5], [0.0, 1.0, 0.0], [-0.5, 0.0, np.sqrt(0.75)]]
    lower, upper = slope @ at(z=-0.5), slope @ at(z=0.5001)
    wedge = Body(tg.generate.box((20.0, 20.0, 1.0)), lower, fixed=True)
    along = slope[:3, 0]
    world = World([wedge, Body(BOX, upper)], device="cpu", dt=dt, friction=0.0)
    world.run(steps=100)
    assert not world.asleep.any()
    assert world[1].velocity @ along == pytest.approx(100 * dt * 9.81 * 0.5, rel=1e-6)


@pytest.mark.parametrize("dt", [1e-3, 1e-4])
def test_a_stack_sleeps_in_small_steps(dt):
    world = stack(dt=dt)
    for k in range(1, 4):
        world[k].set_state(pose=at(z=0.5005 + 1.0005 * (k - 1)))
    fall_asleep(world)


def test_what_approaches_slowly_bounces_in_small_steps():
    floor = Body(tg.generate.box((4.0, 4.0, 1.0)), at(z=-0.5), fixed=True)
    box = Body(BOX, at(z=0.5005), velocity=[0.0, 0.0, -0.1])
    world = World([floor, box], device="cpu", dt=1e-5, restitution=0.7)
    fell = world[1].velocity[2]
    for _ in range(400):
        world.step()
        if world[1].velocity[2] > 0.0:
            break
        fell = world[1].velocity[2]
    assert world[1].velocity[2] == pytest.approx(-0.7 * fell, rel=0.01)
