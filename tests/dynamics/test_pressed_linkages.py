"""Driven bodies that ask of linkages what these cannot do are held back: nothing comes apart."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from tangere.dynamics import Body, World
from tangere.dynamics.solver import vec6d
from tangere.dynamics.stepping.jams import Jams
from tests.oracles.rigid_worlds import meeting_pairs

LINK = 1e-3


def scaled(*size: float) -> tg.Mesh:
    mesh = tg.generate.box(size)
    return tg.Mesh(LINK * mesh.vertices, mesh.faces)


def at(x: float, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = LINK * x, 0.0, LINK * z
    return pose


def straight_chain(count: int, kind: str, ahead: Body) -> World:
    bar = scaled(0.8, 0.2, 0.2)
    world = World([*(Body(bar, at(k + 0.5)) for k in range(count)), ahead], device="cpu")
    axis = (0.0, 1.0, 0.0) if kind == "hinge" else None
    world.join(kind, 0, at=(0.0, 0.0, 0.0), axis=axis)
    for k in range(1, count):
        world.join(kind, k - 1, k, at=(LINK * k, 0.0, 0.0), axis=axis)
    return world


def joint_errors(world: World) -> float:
    """How far the points of joints are apart, from poses and anchors alone, in links."""
    worst = 0.0
    for joint in world.joints:
        ends = []
        for body, anchor in ((joint.body_a, joint.anchor_a), (joint.body_b, joint.anchor_b)):
            pose = np.eye(4) if body < 0 else world.poses[body]
            ends.append(pose[:3, :3] @ anchor + pose[:3, 3])
        worst = max(worst, float(np.linalg.norm(ends[0] - ends[1])))
    return worst / LINK


@pytest.mark.parametrize(("count", "kind", "speed", "steps"), [(3, "ball", 0.1, 8), (3, "hinge", 1.0, 3)])
def test_a_press_against_a_straight_chain_gives_way_before_its_joints_do(count, kind, speed, steps):
    press = Body(scaled(1.0, 4.0, 4.0), at(count + 0.6), driven=True, velocity=(-speed, 0.0, 0.0), name="press")
    world = straight_chain(count, kind, press)
    for _ in range(steps):
        world.step()
        assert joint_errors(world) < 5e-4
        assert not meeting_pairs(world)
    assert count in world.truncation.bodies  # the press, told
    np.testing.assert_array_equal(world["press"].velocity, [-speed, 0.0, 0.0])  # it still wants to
    world.drive("press", velocity=(0.1, 0.0, 0.0))
    before = world["press"].position[0]
    world.run(steps=2)
    assert world["press"].position[0] - before == pytest.approx(2e-3, rel=1e-9)
    assert joint_errors(world) < 5e-4


def test_a_driven_body_that_pulls_a_chain_beyond_where_it_reaches_is_held_back():
    crane = Body(scaled(0.5, 0.5, 0.5), at(3.0), driven=True, velocity=(0.1, 0.0, 0.0), name="crane")
    world = straight_chain(3, "ball", crane)
    world.join("ball", 2, 3, at=(3.0 * LINK, 0.0, 0.0))
    for _ in range(6):
        world.step()
        assert joint_errors(world) < 5e-4
    assert 3 in world.truncation.bodies
    assert world["crane"].position[0] < 3.01 * LINK


def test_only_what_is_joined_and_stands_jammed_loses_its_speed():
    """A heavy chain of loose links that jams for the smallest parts of a step whirls on after it."""
    jams, speeds = Jams(4), np.arange(24.0).reshape(4, 6) + 1.0
    velocity = wp.array(speeds, dtype=vec6d, device="cpu")
    held, joined = wp.zeros(4, dtype=int, device="cpu"), np.array([True, False, True, True])
    parts = np.array([0.0, 0.0, 0.0, 1.0])
    for number in range(4):
        jams.rest(velocity, wp.array(parts, dtype=wp.float64, device="cpu"), held, joined)
        np.testing.assert_array_equal(velocity.numpy(), speeds, err_msg=f"after {number} parts")
        jams.count(parts, 0.25)
    parts[2] = 0.5
    jams.rest(velocity, wp.array(parts, dtype=wp.float64, device="cpu"), held, joined)
    np.testing.assert_array_equal(velocity.numpy(), speeds * np.array([[0.0], [1.0], [1.0], [1.0]]))
