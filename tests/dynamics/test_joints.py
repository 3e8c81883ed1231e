"""Joints of rigid worlds: what they hold, where they end, what drives them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.runtime import InputError, UnsupportedError

ROD = tg.generate.box((1.0, 0.1, 0.1))


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def point_of(world, body, local):
    pose = world.poses[body]
    return pose[:3, :3] @ np.asarray(local, float) + pose[:3, 3]


@pytest.mark.feature("F-R-53")
def test_a_hinged_pendulum_neither_drifts_nor_gains_energy():
    world = World([Body(ROD, at(0.5), name="rod")], dt=0.005, device="cpu")
    world.join("hinge", "rod", at=[0, 0, 0], axis=[0, 1, 0], name="pin")
    start, energies, errors = world.energy.total, [], []
    for _ in range(2000):
        world.step()
        energies.append(world.energy.total)
        errors.append(np.linalg.norm(point_of(world, 0, [-0.5, 0, 0])))
    span = 2 * 9.81 * 0.5 * world.bodies[0].mass
    assert max(errors) < 5e-4
    assert max(energies) - start < 5e-3 * span
    assert min(energies) - start > -0.2 * span
    assert abs(world.positions[0, 1]) < 1e-9


def test_the_period_of_a_pendulum_is_that_of_its_inertia():
    world = World([Body(ROD, at(0.0, 0.0, -0.5), spin=[0, 0.1, 0], velocity=[-0.05, 0, 0])], dt=0.002, device="cpu")
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 1, 0])
    found = world.bodies[0].mass_properties
    moment = found.inertia[1, 1] + found.mass * 0.25
    period = 2 * np.pi * np.sqrt(moment / (found.mass * 9.81 * 0.5))
    signs, last = [], None
    for step in range(round(2.2 * period / world.dt)):
        world.step()
        now = np.sign(world.positions[0, 0])
        if last is not None and now != last:
            signs.append(step)
        last = now
    half = np.diff(signs).mean() * world.dt
    assert 2 * half == pytest.approx(period, rel=5e-3)


def test_a_four_bar_loop_stays_closed():
    """Two cranks and a coupler on the ground, driven by one crank."""
    crank, coupler = tg.generate.box((0.1, 0.1, 0.4)), tg.generate.box((1.0, 0.1, 0.1))
    bodies = [Body(crank, at(0, 0, 0.2), name="left"), Body(crank, at(1.0, 0, 0.2), name="right")]
    bodies.append(Body(coupler, at(0.5, 0.2, 0.4), name="coupler"))
    world = World(bodies, dt=0.005, device="cpu", allowed=[("left", "right")])
    world.join("hinge", "left", at=[0, 0, 0], axis=[0, 1, 0], speed=3.0, name="motor")
    world.join("hinge", "right", at=[1, 0, 0], axis=[0, 1, 0])
    world.join("hinge", "left", "coupler", at=[0, 0, 0.4], axis=[0, 1, 0])
    world.join("hinge", "right", "coupler", at=[1, 0, 0.4], axis=[0, 1, 0])
    worst = 0.0
    for _ in range(1000):
        world.step()
        for crank_body, local in ((0, [-0.5, -0.2, 0.0]), (1, [0.5, -0.2, 0.0])):
            top = point_of(world, crank_body, [0, 0, 0.2])
            worst = max(worst, float(np.linalg.norm(top - point_of(world, 2, local))))
    assert worst < 5e-4
    assert world.coordinates["motor"] == pytest.approx(3.0 * 5.0, rel=1e-3)


def test_a_slider_slides_to_its_limit_and_stays():
    world = World([Body(ROD, at(), name="rod")], gravity=(3.0, 0.0, -9.81), dt=0.01, device="cpu")
    world.join("slider", "rod", at=[0, 0, 0], axis=[1, 0, 0], limits=(-0.1, 0.5), name="rail")
    world.run(2.0)
    assert world.coordinates["rail"] == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_allclose(world.positions[0], [0.5, 0, 0], atol=1e-4)
    np.testing.assert_allclose(world.poses[0, :3, :3], np.eye(3), atol=1e-6)


def test_hinge_limits_hold_a_swinging_door():
    world = World(
        [Body(ROD, at(0.5), spin=[0, 0, 2.0], velocity=[0, 1.0, 0])], gravity=(0, 0, 0), dt=0.01, device="cpu"
    )
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 0, 1], limits=(-0.5, 1.0), name="door")
    most = 0.0
    for _ in range(200):
        world.step()
        most = max(most, world.coordinates["door"])
    assert most == pytest.approx(1.0, abs=2e-3)


def test_a_weld_is_stiff_and_a_ball_is_not():
    pair = [Body(ROD, at(0.5), name="a"), Body(ROD, at(1.5), name="b")]
    for kind, falls in (("weld", False), ("ball", True)):
        world = World(pair, dt=0.01, device="cpu")
        world.join("weld", "a", at=[0, 0, 0])
        world.join(kind, "a", "b", at=[1.0, 0, 0])
        world.run(0.5)
        assert (world.positions[1, 2] < -0.1) == falls
        gap = point_of(world, 0, [0.5, 0, 0]) - point_of(world, 1, [-0.5, 0, 0])
        assert np.linalg.norm(gap) < 5e-4


def test_a_rod_keeps_two_points_at_their_distance():
    ball = tg.generate.icosphere(subdivisions=1, radius=0.1)
    world = World([Body(ball, at(1.0, 0, 0), name="bob")], dt=0.005, device="cpu")
    world.join("distance", "bob", at=[1.0, 0, 0], to=[0, 0, 0])
    for _ in range(400):
        world.step()
        assert np.linalg.norm(world.positions[0]) == pytest.approx(1.0, abs=5e-4)


def test_a_motor_gives_no_more_than_its_torque():
    wheel = tg.generate.prism(24, radius=0.5, height=0.2)
    world = World([Body(wheel, name="wheel")], gravity=(0, 0, 0), dt=0.01, device="cpu")
    world.join("hinge", "wheel", at=[0, 0, 0], axis=[0, 0, 1], speed=1000.0, force=10.0)
    world.run(0.5)
    moment = world.bodies[0].mass_properties.inertia[2, 2]
    assert world.velocities[0, 5] == pytest.approx(10.0 * 0.5 / moment, rel=1e-6)
    world.drive_joint("hinge 0", force=-10.0)
    world.run(0.5)
    assert world.velocities[0, 5] == pytest.approx(0.0, abs=1e-6)


def joint_error(world):
    """How far apart the points of joints are, how far axes and turns are off, at most, in sizes of the bodies."""
    worst, poses = 0.0, world.poses
    for joint in world.joints:
        a, b = poses[joint.body_a], np.eye(4) if joint.body_b < 0 else poses[joint.body_b]
        size = world.bodies[joint.body_a].mesh.extent
        apart = a[:3, :3] @ joint.anchor_a + a[:3, 3] - b[:3, :3] @ joint.anchor_b - b[:3, 3]
        axis = b[:3, :3] @ joint.axis_b
        if joint.kind == "slider":
            apart = apart - axis * (axis @ apart)
        if joint.kind == "distance":
            apart = np.linalg.norm(apart) - joint.length
        worst = max(worst, float(np.linalg.norm(apart)) / size)
        if joint.kind in ("hinge", "slider"):
            worst = max(worst, float(np.linalg.norm(np.cross(axis, a[:3, :3] @ joint.axis_a))))
        if joint.kind in ("weld", "slider"):
            worst = max(worst, float(np.abs(a[:3, :3] @ joint.relative.T @ b[:3, :3].T - np.eye(3)).max()))
        if joint.name in world.coordinates:
            low, high = joint.limits
            way = world.coordinates[joint.name]
            worst = max(worst, low - way, way - high)
    return worst


def machine():
    """All kinds of joints: a four-bar loop with a motor, a carriage with limits and a swing on it, a rod, a weld."""
    crank, coupler = tg.generate.box((0.1, 0.1, 0.4)), tg.generate.box((1.0, 0.1, 0.1))
    bodies = [Body(crank, at(0, 0, 0.2), name="left"), Body(crank, at(1.0, 0, 0.2), name="right")]
    bodies.append(Body(coupler, at(0.5, 0.2, 0.4), name="coupler"))
    bodies.append(Body(tg.generate.box((0.3, 0.3, 0.2)), at(4.0, 0.0, 0.0), name="carriage"))
    bodies.append(Body(ROD, at(4.5, 0.5, 0.0), spin=[0.0, 0.0, 1.0], name="swing"))
    bodies.append(Body(ROD, at(5.5, 0.5, 0.0), name="tail"))
    bodies.append(Body(tg.generate.icosphere(subdivisions=1, radius=0.1), at(8.0, 0.0, 0.0), name="bob"))
    bodies.append(Body(ROD, at(10.0, 0.0, 0.0), spin=[0.0, 3.0, 0.0], name="door"))
    world = World(bodies, dt=0.005, device="cpu", allowed=[("left", "right"), ("carriage", "swing")])
    world.join("hinge", "left", at=[0, 0, 0], axis=[0, 1, 0], speed=3.0, name="motor")
    world.join("hinge", "right", at=[1, 0, 0], axis=[0, 1, 0])
    world.join("hinge", "left", "coupler", at=[0, 0, 0.4], axis=[0, 1, 0])
    world.join("hinge", "right", "coupler", at=[1, 0, 0.4], axis=[0, 1, 0])
    world.join("slider", "carriage", at=[4.0, 0.0, 0.0], axis=[1, 0, 0], limits=(-0.5, 0.5), name="rail")
    world.join("ball", "swing", "carriage", at=[4.0, 0.5, 0.0])
    world.join("weld", "swing", "tail", at=[5.0, 0.5, 0.0])
    world.join("distance", "bob", at=[8.0, 0, 0], to=[7.0, 0, 0])
    world.join("hinge", "door", at=[9.5, 0, 0], axis=[0, 1, 0], limits=(-1.0, 2.0), name="door hinge")
    return world


def keep_joined(steps):
    """Errors of a machine that is kicked now and then, and drives its carriage to and fro."""
    world, rng, errors = machine(), np.random.default_rng(0), []
    for step in range(steps):
        if step % 500 == 250:
            world.drive_joint("rail", speed=float(rng.uniform(-1.0, 1.0)), force=3000.0)
            world.drive_joint("motor", speed=float(rng.uniform(-4.0, 4.0)))
        world.step()
        errors.append(joint_error(world))
    return errors


def test_all_joints_of_a_machine_hold():
    assert max(keep_joined(600)) < 5e-4


@pytest.mark.slow
def test_all_joints_of_a_machine_hold_for_ten_thousand_steps():
    assert max(keep_joined(10_000)) < 5e-4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": [1e300, 0, 0], "axis": [0, 0, 1]}, "at is 1e\\+300 m away"),
        ({"at": [0, 0, 0], "axis": [0, 0, 1], "limits": (-1e308, 1e308)}, "inf means that there is none"),
        ({"at": [0, 0, 0], "axis": [0, 0, 1], "speed": 1e300}, "a speed of 1e\\+300"),
    ],
)
def test_joints_that_are_beyond_all_bounds_are_refused_in_words(options, said):
    world = World([Body(ROD), Body(ROD, at(z=2.0))], device="cpu")
    with pytest.raises(InputError, match=said):
        world.join("hinge", 0, 1, **options)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_an_axis_of_any_length_is_a_direction(size):
    world = World([Body(ROD)], gravity=(0, 0, 0), device="cpu")
    assert world.join("hinge", 0, at=[0, 0, 0], axis=[0, size, size]).axis_a.tolist() == pytest.approx(
        [0, 0.5**0.5, 0.5**0.5]
    )


@pytest.mark.parametrize("size", [1e150, 1e300])
def test_forces_beyond_all_bounds_are_told_with_the_body(size):
    for load in ({"force": [0, 0, size]}, {"torque": [0, size, 0]}):
        world = World([Body(ROD, name="rod")], device="cpu")
        world.join("hinge", "rod", at=[0.3, 0, 0], axis=[0, 1, 0])
        world.push("rod", **load)
        with pytest.raises(InputError, match=r"step 0: body 0 \('rod'\) would go faster than"):
            world.step()


def test_a_handle_of_a_body_says_that_it_cannot_be_pickled():
    with pytest.raises(UnsupportedError, match="keep its number or its name"):
        pickle.dumps(World([Body(ROD)], device="cpu")[0])


def test_a_joint_knows_its_coordinate_at_once_where_its_body_is_put_elsewhere():
    world = World(Body(ROD, name="bar"), device="cpu")
    world.join("hinge", "bar", at=[0, 0, 0], axis=[0, 0, 1], name="pin")
    turned = np.eye(4)
    turned[:2, :2] = [[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]]
    world["bar"].set_state(pose=turned)
    assert world.coordinates["pin"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("force", [None, 1e6])
def test_a_motor_that_is_strong_enough_turns_as_far_as_it_is_told(force):
    world = World(Body(ROD, at(0.5)), device="cpu", gravity=(0, 0, 0))
    world.join("hinge", 0, at=[0, 0, 0], axis=[0, 0, 1], name="pin", speed=40.0, force=force)
    world.run(0.5)
    assert world.coordinates["pin"] == pytest.approx(20.0, rel=1e-6)
