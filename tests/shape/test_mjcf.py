"""Robots from MJCF files are where MuJoCo puts them (`make test-extras` installs it)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tangere as tg
from tangere.runtime import InputError, UnsupportedError

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: make test-extras")

ARM = """<!-- a comment first -->
<mujoco model="arm">
  <compiler angle="degree"/>
  <asset><mesh name="wedge" vertex="0 0 0  .1 0 0  0 .2 0  0 0 .3"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <geom type="box" size=".2 .2 .05" pos="0 0 -.05"/>
    <body name="shoulder" pos="0 0 .1" quat=".9 .1 .2 .3">
      <joint name="pan" type="hinge" axis="0 0 1" pos=".01 .02 .03" range="-90 90"/>
      <joint name="lift" type="hinge" axis="0 1 .2" ref="20"/>
      <geom type="capsule" size=".03 .1" pos="0 0 .1"/>
      <geom type="sphere" size=".05" contype="0" conaffinity="0"/>
      <body name="wrist" pos=".1 0 .3">
        <joint name="reach" type="slide" axis="1 0 0" pos="0 .1 0" range="0 .2"/>
        <geom type="cylinder" size=".03 .05"/>
        <geom type="ellipsoid" size=".02 .03 .04" pos="0 0 .1"/>
        <body name="finger" pos="0 .05 0">
          <joint name="left" type="slide" axis="0 1 0"/><geom type="mesh" mesh="wedge"/>
        </body>
        <body name="thumb" pos="0 -.05 0">
          <joint name="right" type="slide" axis="0 1 0"/><geom type="box" size=".01 .01 .02"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="right" joint2="left" polycoef="0.01 -1 0 0 0"/></equality>
</mujoco>
"""


@pytest.fixture
def arm_file(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def load(path) -> tg.Robot:
    with pytest.warns(UserWarning, match="planes are left out: floor"):
        return tg.Robot.load(path)


def test_bodies_are_where_mujoco_puts_them(arm_file, rng):
    robot, model = load(arm_file), mujoco.MjModel.from_xml_path(str(arm_file))
    data = mujoco.MjData(model)
    assert robot.name == "arm"
    assert robot.joint_names == ("pan", "lift", "reach", "left")
    for _ in range(10):
        q = rng.uniform(-1.0, 1.0, 4)
        data.qpos[:4], data.qpos[4] = q, 0.01 - q[3]
        mujoco.mj_kinematics(model, data)
        poses = robot.poses(q)
        for name in ("shoulder", "wrist", "finger", "thumb"):
            body, link = model.body(name).id, robot.links.index(name)
            np.testing.assert_allclose(poses[link, :3, 3], data.xpos[body], atol=1e-12)
            np.testing.assert_allclose(poses[link, :3, :3], data.xmat[body].reshape(3, 3), atol=1e-12)


def test_shapes_hold_what_mujoco_collides(arm_file):
    """Points on each geom, by MuJoCo's frames, are inside the link's mesh or on it."""
    robot, model = load(arm_file), mujoco.MjModel.from_xml_path(str(arm_file))
    shapes = dict(zip(robot.links, robot.shapes, strict=True))
    assert shapes["world"] is not None
    capsule = shapes["shoulder"]
    directions = np.random.default_rng(0).normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    on_capsule = 0.03 * directions + np.where(directions[:, 2:] > 0.0, 0.1, -0.1) * [0.0, 0.0, 1.0] + [0.0, 0.0, 0.1]
    apart = tg.signed_distance(on_capsule, capsule, device="cpu").distance
    assert apart.max() < 1e-9, "it holds the capsule"
    assert apart.min() > -0.03 * 0.03, "and is little larger"
    np.testing.assert_allclose(capsule.bounds[:, 2], [-0.03, 0.23], atol=0.002)
    ellipsoid = directions * [0.02, 0.03, 0.04] + [0.0, 0.0, 0.1]
    assert tg.signed_distance(ellipsoid, shapes["wrist"], device="cpu").distance.max() < 1e-9
    wedge = model.mesh_vert[:4]
    assert len(shapes["finger"].vertices) == len(wedge)
    placed = shapes["finger"].bounds
    np.testing.assert_allclose(placed[1] - placed[0], [0.1, 0.2, 0.3], atol=1e-6)


def test_limits_and_checks(arm_file):
    robot = load(arm_file)
    np.testing.assert_allclose(robot.limits[0], np.radians([-90, 90]))
    np.testing.assert_allclose(robot.limits[2], [0.0, 0.2])
    assert np.isinf(robot.limits[1]).all()
    q = np.zeros((2, 4))
    q[1, 3] = -0.1  # the fingers close
    found = robot.check(q, allowed=[("world", "shoulder"), ("shoulder", "wrist")], device="cpu")
    assert found.compared > 2


def test_what_is_not_read_is_told(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(
        '<mujoco><worldbody><body name="b"><joint name="j" type="ball"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(UnsupportedError, match="joint 'j' is a ball"):
        tg.Robot.load(path)
    path.write_text("<mujoco><worldbody><body><geom/></body></worldbody></mujoco>")
    with pytest.raises(InputError, match=r"'x\.xml': MuJoCo cannot read it"):
        tg.Robot.load(path)
    with pytest.raises(InputError, match="there is no file"):
        tg.Robot.load(tmp_path / "nothing.xml")


def test_a_robot_that_floats_stands_where_it_is_put(tmp_path):
    path = tmp_path / "free.xml"
    path.write_text(
        '<mujoco><worldbody><body name="b" pos="0 0 1"><freejoint/><geom size=".1"/>'
        '<body name="c" pos=".5 0 0"><joint axis="0 0 1"/><geom size=".1"/></body></body></worldbody></mujoco>'
    )
    robot = tg.Robot.load(path)
    assert robot.joint_names == ("joint 1",)
    np.testing.assert_allclose(robot.poses([0.0])[0, :3, 3], [0.0, 0.0, 1.0])


def test_what_moves_freely_among_other_things_is_told(tmp_path):
    """`base=` moves a robot with a free joint; where the file has other things as well, it moves them along."""
    path = tmp_path / "free.xml"
    torso = '<body name="torso"><freejoint/><geom type="sphere" size=".1"/></body>'
    wall = '<geom type="box" size=".01 1 1" pos="2 0 0"/>'
    ball = '<body name="ball" pos="0 0 5"><freejoint/><geom type="sphere" size=".1"/></body>'
    for more, told in ((wall, "torso can move freely"), (ball, "torso, ball can move freely")):
        path.write_text(f"<mujoco><worldbody>{torso}{more}</worldbody></mujoco>")
        with pytest.warns(UserWarning, match=told):
            tg.Robot.load(path)
    path.write_text(f"<mujoco><worldbody>{torso}</worldbody></mujoco>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.Robot.load(path)
