"""Motors that ask for what joints, limits and walls do not allow: they give way, and nothing comes apart."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tests.oracles.rigid_worlds import joint_error, meeting_pairs


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def bar(start, end, aside, size, **options):
    """A thin box between two points of the plane y = 0, moved aside."""
    start, end = np.array([start[0], 0.0, start[1]]), np.array([end[0], 0.0, end[1]])
    along = (end - start) / np.linalg.norm(end - start)
    pose = at()
    pose[:3, :3] = np.stack([along, [0.0, 1.0, 0.0], np.cross(along, [0.0, 1.0, 0.0])], axis=1)
    pose[:3, 3] = size * (0.5 * (start + end) + [0.0, aside, 0.0])
    return Body(tg.generate.box(size * np.array([np.linalg.norm(end - start), 0.04, 0.04])), pose, **options)


def four_bar(size=1.0, speed=3.0, load=1.0, limits=None, **options):
    """A crank of 0.5 of its ground cannot turn round: coupler and rocker of 0.6 each do not reach so far."""
    crank, ground = 0.5 * np.array([0.5, 0.75**0.5]), np.array([1.0, 0.0])
    middle, apart = 0.5 * (crank + ground), ground - crank
    up = np.array([-apart[1], apart[0]]) / np.linalg.norm(apart)
    top = middle + up * np.sqrt(0.36 - 0.25 * apart @ apart)
    bodies = [bar((0, 0), crank, 0.0, size, name="crank"), bar(crank, top, 0.1, size, name="coupler")]
    bodies.append(bar(ground, top, 0.2, size, density=1000.0 * load, name="rocker"))
    gravity = (0.0, 0.0, -9.81 * size)
    world = World(bodies, gravity=gravity, device="cpu", allowed=[(0, 1), (1, 2), (0, 2)], **options)
    for name, (a, b, place) in {
        "motor": (0, None, (0, 0)), "knee": (0, 1, crank), "top": (1, 2, top), "rocker": (2, None, ground)
    }.items():  # fmt: skip
        drive = {"speed": speed} if name == "motor" else {"limits": limits} if name == "rocker" else {}
        world.join("hinge", a, b, at=size * np.array([place[0], 0, place[1]]), axis=[0, 1, 0], name=name, **drive)
    return world


def arm(size=1.0, load=1.0, **options):
    """Two rods in a row, that a wall may stand in the way of."""
    rod = tg.generate.box((size, 0.1 * size, 0.1 * size))
    bodies = [Body(rod, at(0.5 * size)), Body(rod, at(1.5 * size), density=1000.0 * load), *options.pop("more", ())]
    return World(bodies, gravity=(0.0, 0.0, -9.81 * size), device="cpu", **options)


#: What joints may be off, of the size: a tenth of what is asked of them.
CLOSED = 5e-5
#: Where the crank has turned to when coupler and rocker are in line.
DEAD = np.arccos((1.0 + 0.25 - 1.44) / (2.0 * 0.5)) - np.arccos(0.5)


def errors_of(world, steps, size):
    """How far joints are off in sizes, step by step."""
    found = []
    for _ in range(steps):
        world.step()
        found.append(joint_error(world, size))
    return np.array(found)


def drive_beyond_reach(size, dt, speed, load):
    """A linkage is driven until it stalls, and on."""
    world = four_bar(size, speed, load, dt=dt)
    steps = round(1.05 * (DEAD if speed < 0.0 else 2.809) / abs(speed * dt)) + 10
    assert errors_of(world, steps, size).max() < CLOSED
    assert world.truncation.joint_error < CLOSED * size
    assert world.truncation.stalled == ("motor",)
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.feature("F-R-53")
@pytest.mark.parametrize(("size", "load"), [(1e-3, 1.0), (1.0, 1e3), (1e3, 1.0)])
@pytest.mark.parametrize(("dt", "speed"), [(0.01, -3.0), (0.01, 30.0), (0.001, -30.0)])
def test_a_linkage_that_is_driven_beyond_its_reach_stays_closed(size, dt, speed, load):
    drive_beyond_reach(size, dt, speed, load)


@pytest.mark.slow
@pytest.mark.parametrize("load", [1e-3, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("speed", [-30.0, -3.0, 3.0, 30.0])
@pytest.mark.parametrize("dt", [0.01, 0.001])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_linkages_of_all_sizes_that_are_driven_beyond_their_reach_stay_closed(size, dt, speed, load):
    drive_beyond_reach(size, dt, speed, load)


def test_a_stalled_linkage_comes_to_rest_at_its_dead_point_and_can_be_driven_back():
    world = four_bar(speed=-3.0)
    world.run(0.6)
    assert world.truncation.stalled == ("motor",)
    assert world.coordinates["motor"] == pytest.approx(-DEAD, abs=2e-3)
    world.drive_joint("motor", speed=2.0)
    world.run(0.5)
    assert world.truncation.stalled == ()
    assert world.coordinates["motor"] == pytest.approx(1.0 - DEAD, abs=0.1)
    assert world.velocities[0, 4] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(("size", "load"), [(1e-3, 1e4), (1.0, 1.0), (1e3, 1e4)])
def test_motors_that_contradict_each_other_meet_in_the_middle(size, load):
    world = arm(size, load)
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 1, 0], speed=3.0, name="up")
    world.join("weld", 0, 1, at=[size, 0, 0])
    world.join("hinge", 1, at=[0, 0, 0], axis=[0, 1, 0], speed=-1.0, name="down")
    assert errors_of(world, 20, size).max() < CLOSED
    assert world.truncation.stalled == ("up", "down")
    assert world.coordinates["up"] == pytest.approx(0.2, rel=3e-2)
    assert world.velocities[:, 4] == pytest.approx([1.0, 1.0], rel=3e-2)


@pytest.mark.parametrize(("size", "load"), [(1e-3, 1e4), (1.0, 1.0), (1e3, 1e4)])
def test_a_motor_stands_still_at_a_limit(size, load):
    world = arm(size, load)
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 1, 0], speed=-3.0, limits=(-0.1, 0.1), name="motor")
    world.join("ball", 0, 1, at=[size, 0, 0])
    assert errors_of(world, 20, size).max() < CLOSED
    assert world.coordinates["motor"] == pytest.approx(-0.1, abs=1e-3)
    assert world.truncation.stalled == ("motor",)
    linkage = four_bar(size, 10.0, load, limits=(-0.3, 0.3))
    assert errors_of(linkage, 25, size).max() < CLOSED
    assert abs(linkage.coordinates["rocker"]) == pytest.approx(0.3, abs=1e-3)
    assert linkage.truncation.stalled == ("motor",)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_motor_presses_what_hangs_on_it_against_a_wall(size):
    wall = Body(tg.generate.box((3 * size, 3 * size, 0.1 * size)), at(0, 0, -0.6 * size), fixed=True)
    world = arm(size, 1e2, more=[wall])
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 1, 0], speed=3.0, name="motor")
    world.join("hinge", 0, 1, at=[size, 0, 0], axis=[0, 1, 0])
    assert errors_of(world, 40, size).max() < CLOSED
    assert not meeting_pairs(world)
    assert world.truncation.stalled == ("motor",)
    assert 0.4 < world.coordinates["motor"] < 0.65


def test_every_joint_of_a_ring_may_want_something_else():
    places = [(np.cos(angle), np.sin(angle)) for angle in np.arange(6) * np.pi / 3.0]
    bodies = [bar(places[k], places[(k + 1) % 6], 0.06 * (k % 3), 1.0) for k in range(6)]
    world = World(bodies, device="cpu", allowed=[(i, j) for i in range(6) for j in range(i)])
    for k in range(6):
        x, z = places[(k + 1) % 6]
        world.join(
            "hinge", k, (k + 1) % 6, at=[x, 0, z], axis=[0, 1, 0], speed=3.0 * (1.0 + 0.3 * k) * (-1) ** (k // 2)
        )
    world.join("hinge", 0, at=[1.0, 0, 0], axis=[0, 1, 0])
    assert errors_of(world, 20, 1.0).max() < CLOSED
    assert len(world.truncation.stalled) == 6


def test_a_motor_that_nothing_contradicts_keeps_its_speed_to_rounding():
    """Also with what weighs a thousand times as much, and fast."""
    world = arm(load=1e3, dt=0.005)
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 1, 0], speed=-20.0, name="motor")
    world.join("hinge", 0, 1, at=[1.0, 0, 0], axis=[0, 1, 0], speed=1.0, name="elbow")
    for _ in range(60):
        world.step()
        assert world.truncation.stalled == ()
    assert world.coordinates["motor"] == pytest.approx(-6.0, abs=1e-6)
    assert world.coordinates["elbow"] == pytest.approx(0.3, abs=1e-6)


def test_a_stalled_motor_goes_on_with_the_same_bits():
    first, second = (four_bar(speed=-3.0, threads=threads) for threads in (1, 2))
    first.run(steps=30)
    assert first.truncation.stalled
    second.resume(first.checkpoint())
    for _ in range(5):
        first.step()
        second.step()
        assert first.poses.tobytes() == second.poses.tobytes()
        assert first.velocities.tobytes() == second.velocities.tobytes()


def test_a_stalled_copy_leaves_the_others_alone():
    """One copy is driven against its dead point, the other one begins far from it."""
    world = four_bar(speed=-3.0)
    start = world.poses
    world.run(steps=20)  # not yet stalled
    copies, alone = world.copies(2), four_bar(speed=-3.0)
    copies.set_state(
        poses=np.stack([world.poses, start]), velocities=np.stack([world.velocities, 0.0 * world.velocities])
    )
    for _ in range(6):
        copies.step()
        alone.step()
    assert copies.truncation.stalled == ("motor 0",)
    np.testing.assert_allclose(copies.poses[1], alone.poses, atol=1e-9)


@pytest.mark.slow
def test_a_linkage_that_is_driven_to_and_fro_stays_closed_for_ten_thousand_steps():
    world, rng, stalls = four_bar(), np.random.default_rng(0), 0
    for step in range(10_000):
        if step % 50 == 0:
            world.drive_joint("motor", speed=float(rng.uniform(-10.0, 10.0)))
        world.step()
        stalls += bool(world.truncation.stalled)
        assert joint_error(world) < CLOSED
    assert stalls > 1000
