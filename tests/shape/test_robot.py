"""Robots from URDF files: links where another reader's kinematics puts them, bodies that hold the round shapes."""

from __future__ import annotations

import builtins
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tangere.query.contacts import Status
from tangere.query.first_contact import first_contact
from tangere.runtime import InputError, MissingExtraError, UnsupportedError
from tangere.shape import generate
from tangere.shape.robot import RobotDescription

ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link>
  <link name="mast">
    <collision><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1.0"/></geometry></collision>
  </link>
  <link name="slide"><visual><geometry><mesh filename="bar.stl" scale="2 1 1"/></geometry></visual></link>
  <link name="frame"/>
  <link name="hand">
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
    <collision><origin xyz="0.3 0 0" rpy="0 1.0 0"/><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
  </link>
  <link name="finger"><collision><geometry><box size="0.1 0.02 0.02"/></geometry></collision></link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="mast"/><origin xyz="0 0 0.05"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="reach" type="prismatic">
    <parent link="mast"/><child link="slide"/><origin xyz="0 0 1.0" rpy="0.1 0.2 0.3"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="mount" type="fixed">
    <parent link="slide"/><child link="frame"/><origin xyz="0.5 0 0" rpy="0 0 0.4"/>
  </joint>
  <joint name="wrist" type="revolute">
    <parent link="frame"/><child link="hand"/><origin xyz="0 0.1 0" rpy="0.3 0 0"/><axis xyz="0 1 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/>
  </joint>
  <joint name="grip" type="revolute">
    <parent link="hand"/><child link="finger"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/><mimic joint="wrist" multiplier="-0.5" offset="0.1"/>
  </joint>
</robot>
"""


@pytest.fixture
def arm_file(tmp_path):
    generate.box((1.0, 0.1, 0.1)).save(tmp_path / "bar.stl")
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def test_links_are_where_another_reader_puts_them(arm_file, rng):
    """The reader's own kinematics at the start, at the end, and at every configuration in between."""
    yourdfpy = pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    robot = RobotDescription.load(arm_file)
    assert robot.joint_names == ("turn", "reach", "wrist")
    peer = yourdfpy.URDF.load(str(arm_file), load_meshes=False)
    start, end = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3) + [9.0, 0.0, 0.0]
    chain = robot.chain(start, end)
    for t in (0.0, 0.3, 1.0):
        values = (1 - t) * start + t * end
        peer.update_cfg(dict(zip(robot.joint_names, values, strict=True)))
        for k, name in enumerate(robot.links):
            assert np.allclose(chain.link(k).pose(t), peer.get_transform(name, "base"), atol=1e-9), name


def test_bodies_hold_the_shapes_the_file_tells(arm_file):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    robot = RobotDescription.load(arm_file)
    shapes: dict[str, Any] = dict(zip(robot.links, robot.shapes, strict=True))
    assert shapes["frame"] is None
    assert np.allclose(shapes["base"].bounds, [[-0.2, -0.2, -0.05], [0.2, 0.2, 0.05]])
    assert np.allclose(shapes["slide"].bounds, [[-1.0, -0.05, -0.05], [1.0, 0.05, 0.05]])
    mast = shapes["mast"].mass_properties().volume
    assert np.pi * 0.01 < mast < 1.02 * np.pi * 0.01
    hand = shapes["hand"].mass_properties().volume
    assert 4 / 3 * np.pi * 0.008 + 0.001 < hand < 1.05 * 4 / 3 * np.pi * 0.008 + 0.001
    assert all(shape.topology.is_closed for shape in robot.shapes if shape is not None)


def test_neighbours_are_told_across_links_without_a_body(arm_file):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    robot = RobotDescription.load(arm_file)
    moving = robot.moving({"turn": 0.5}, {"turn": 1.0, "reach": 0.2})
    assert [body.shape.name for body in moving] == ["base", "mast", "slide", "hand", "finger"]
    assert robot.linked_pairs().tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_a_robot_and_its_cell_are_asked_about_in_one_call(arm_file):
    """As the first page says: what its joints hold together may touch, the rest and the cell may not."""
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    robot = RobotDescription.load(arm_file)
    pose = np.eye(4)
    pose[:3, 3] = 0.0, 0.9, 1.0
    wall = generate.box((4.0, 0.2, 4.0), name="wall").at(pose)
    hit = first_contact([*robot.moving([0, 0, 0], [np.pi / 2, 0, 0]), wall], allowed=robot.linked_pairs(), device="cpu")
    assert hit.status == Status.CONTACT
    assert 5 in (hit.contacts.body_a[0], hit.contacts.body_b[0])


def test_configurations_and_files_that_make_no_sense_are_refused(arm_file, tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    robot = RobotDescription.load(arm_file)
    with pytest.raises(InputError, match="arm: start has 2 values for 3 joints"):
        robot.chain([0, 0], [0, 0, 0])
    with pytest.raises(InputError, match="arm: end names joint 'elbow'; there are turn, reach, wrist"):
        robot.chain({}, {"elbow": 1.0})
    with pytest.raises(InputError, match="arm: start has nan for joint 'turn'"):
        robot.chain({"turn": np.nan}, {})
    with pytest.raises(InputError, match="there is no file"):
        RobotDescription.load(tmp_path / "none.urdf")
    (tmp_path / "odd.urdf").write_text(ARM.replace('type="continuous"', 'type="floating"'))
    with pytest.raises(UnsupportedError, match="joint 'turn' is floating"):
        RobotDescription.load(tmp_path / "odd.urdf")
    for radius in ("-1", "0", "nan"):
        (tmp_path / "ball.urdf").write_text(ARM.replace('sphere radius="0.2"', f'sphere radius="{radius}"'))
        with pytest.raises(InputError, match="radius must be positive"):
            RobotDescription.load(tmp_path / "ball.urdf")
    (tmp_path / "loop.urdf").write_text(
        '<robot name="loop"><link name="a"/><link name="b"/><joint name="x" type="fixed"><parent link="a"/><child'
        ' link="b"/></joint><joint name="y" type="fixed"><parent link="b"/><child link="a"/></joint></robot>'
    )
    with pytest.raises(InputError, match="links a, b hang in a loop"):
        RobotDescription.load(tmp_path / "loop.urdf")


MIMICS = """<robot name="mimics"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
  <joint name="third" type="revolute"><parent link="c"/><child link="d"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/><mimic joint="second" multiplier="3" offset="0.2"/></joint>
  <joint name="first" type="revolute"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/></joint>
  <joint name="second" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/><mimic joint="first" multiplier="-2" offset="0.5"/></joint>
</robot>
"""


def test_a_joint_that_mimics_one_that_mimics_another_follows_both(tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    (tmp_path / "mimics.urdf").write_text(MIMICS)
    robot = RobotDescription.load(tmp_path / "mimics.urdf")
    assert robot.joint_names == ("first",)
    chain = robot.chain([0.1], [0.7])
    for t, first in ((0.0, 0.1), (0.5, 0.4), (1.0, 0.7)):
        second = -2.0 * first + 0.5
        third = 3.0 * second + 0.2
        expected = np.eye(4)
        expected[:3, :3] = Rotation.from_rotvec([first, 0, 0]).as_matrix()
        expected[:3, 3] = expected[:3, :3] @ [0.0, second, 0.0]
        expected[:3, :3] = expected[:3, :3] @ Rotation.from_rotvec([0, 0, third]).as_matrix()
        assert np.allclose(chain.link(robot.links.index("d")).pose(t), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('joint="first"', 'joint="second"', "joint 'second' mimics itself"),
        ('joint="first"', 'joint="third"', "joint 'second' mimics 'third', which mimics it in turn"),
        ('child link="c"', 'child link="b"', "link 'b' hangs on two joints, 'first' and 'second'"),
        ('child link="c"', 'child link="e"', "the child 'e' of joint 'second' is not there"),
        ('parent link="b"', 'parent link="e"', "the parent 'e' of joint 'second' is not there"),
        ('joint name="second"', 'joint name="first"', "there are two joints 'first'"),
        ('link name="c"', 'link name="b"', "there are two links 'b'"),
    ],
)
def test_robots_whose_names_do_not_fit_together_are_refused(old, new, reason, tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    assert old in MIMICS
    (tmp_path / "odd.urdf").write_text(MIMICS.replace(old, new, 1))
    with pytest.raises(InputError, match=reason):
        RobotDescription.load(tmp_path / "odd.urdf")


@pytest.mark.parametrize("number", ["nan", "inf", "1e400"])
@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('multiplier="-2"', 'multiplier="{}"', "multiplier of joint 'second'"),
        ('offset="0.5"', 'offset="{}"', "offset of joint 'second'"),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 {} 0"/>', "axis of joint 'second'"),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><origin xyz="{} 0 0"/>', "origin of joint 'second'"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_joints_with_numbers_that_are_not_finite_are_refused_by_name(old, new, what, number, tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    assert old in MIMICS
    (tmp_path / "odd.urdf").write_text(MIMICS.replace(old, new.format(number), 1))
    with pytest.raises(InputError, match=f"odd.urdf': the {what} is not finite"):
        RobotDescription.load(tmp_path / "odd.urdf")


def test_a_joint_that_mimics_a_fixed_one_is_warned_of_and_moves_by_itself(tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    text = MIMICS.replace('name="first" type="revolute"', 'name="first" type="fixed"')
    (tmp_path / "odd.urdf").write_text(text)
    with pytest.warns(UserWarning, match="joint 'second' mimics 'first', which is fixed"):
        robot = RobotDescription.load(tmp_path / "odd.urdf")
    assert robot.joint_names == ("second",)
    assert robot.chain([0.0], [0.3]).link(robot.links.index("c")).pose(1.0)[1, 3] == 0.3


def test_a_joint_that_mimics_one_that_is_not_there_is_warned_of_and_moves_by_itself(tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    (tmp_path / "odd.urdf").write_text(MIMICS.replace('joint="first"', 'joint="typo"', 1))
    with pytest.warns(UserWarning, match="joint 'second' mimics 'typo', which is not there"):
        robot = RobotDescription.load(tmp_path / "odd.urdf")
    assert set(robot.joint_names) == {"first", "second"}
    moved = robot.chain({}, {"second": 0.3}).link(robot.links.index("d")).pose(1.0)
    expected = np.eye(4)
    expected[:3, :3] = Rotation.from_rotvec([0, 0, 3 * 0.3 + 0.2]).as_matrix()  # the third follows the second still
    expected[:3, 3] = [0.0, 0.3, 0.0]
    assert np.allclose(moved, expected, atol=1e-12)


def test_a_robot_prints_as_one_line(arm_file):
    robot = RobotDescription.load(arm_file)
    assert "\n" not in repr(robot)
    assert len(repr(robot)) < 120
    assert robot.name in repr(robot)


WITH_NAME = ["package://arm/meshes/hand.stl", "package:///arm/meshes/hand.stl"]
#: Without the name of the package, or with one that is not its folder's.
WITHOUT = ["package://meshes/hand.stl", "package://arm_description/meshes/hand.stl"]


@pytest.mark.parametrize(
    ("folder", "address"),
    [
        *product(["arm/urdf", "arm"], WITH_NAME + WITHOUT),
        *product(["."], WITH_NAME),  # beside the package, nothing else says where it is
    ],
)
def test_meshes_of_packages_are_found_with_two_slashes_and_with_three(address, folder, tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / folder).mkdir(exist_ok=True)
    generate.box((1.0, 2.0, 3.0)).save(tmp_path / "arm" / "meshes" / "hand.stl")
    text = ONE_LINK.format(f'<geometry><mesh filename="{address}"/></geometry>')
    (tmp_path / folder / "one.urdf").write_text(text)
    (hand,) = RobotDescription.load(tmp_path / folder / "one.urdf").shapes
    assert hand is not None
    assert np.allclose(hand.bounds[1] - hand.bounds[0], [1.0, 2.0, 3.0])


ONE_LINK = '<robot name="one"><link name="hand"><collision>{}</collision></link></robot>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<robot>\n<link></robot>", "is not XML: Opening and ending tag mismatch: link .*, line 2, column 15"),
        ("", "is not XML: Document is empty"),
        ("hello", "is not XML: Start tag expected, '<' not found, line 1"),
        ("<mesh/>", "begins with <mesh>, not with <robot>"),
        ("<robot/>", "an element has no attribute 'name'"),
        *[
            (ONE_LINK.format(f"{origin}<geometry>{part}</geometry>"), f"link 'hand': {reason}")
            for part, origin, reason in (
                ('<box size="-1 1 1"/>', "", r"box: size\[0\] must be positive and finite, not -1.0"),
                ('<box size="1 1"/>', "", "box: size must be 3 lengths"),
                ('<cylinder radius="-1" length="1"/>', "", "cylinder: radius must be positive and finite, not -1.0"),
                ('<cylinder radius="1" length="0"/>', "", "cylinder: length must be positive and finite, not 0.0"),
                ('<mesh filename="no.stl"/>', "", "Mesh 'no.stl': there is no file"),
                ('<mesh filename="package://no/no.stl"/>', "", "Mesh 'no.stl': there is no file 'package:/"),
                ('<box size="1 1 1"/>', '<origin xyz="nan 0 0"/>', "Box: poses contains numbers that are not finite"),
            )
        ],
    ],
)
def test_what_is_wrong_with_a_file_is_said_once_with_the_file_and_the_link(text, reason, tmp_path, capfd, caplog):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    (tmp_path / "odd.urdf").write_text(text)
    with pytest.raises(InputError, match=f"^Robot 'odd.urdf': .*{reason}"):
        RobotDescription.load(tmp_path / "odd.urdf")
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def test_a_file_with_elements_of_a_namespace_that_it_does_not_define_is_read(tmp_path, capfd, caplog):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    (tmp_path / "odd.urdf").write_text('<robot name="odd"><link name="hand"/><sensor:camera/></robot>')
    assert RobotDescription.load(tmp_path / "odd.urdf").links == ("hand",)
    assert (capfd.readouterr().err, caplog.text) == ("", "")


@pytest.mark.parametrize(
    "declaration",
    [
        '<?xml version="0.0" ?>',
        "\n \n<?xml version='1.0'?>",
        '<!-- mine -->\n<?xml version="0.1" encoding="iso-8859-1"?>',
    ],
)
def test_a_declaration_that_xml_does_not_allow_is_passed_over_and_errors_name_the_lines_of_the_file(
    declaration, tmp_path
):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    path = tmp_path / "odd.urdf"
    path.write_bytes(f'{declaration}\n<robot name="odd"><link name="h\xe4nd"/></robot>'.encode("latin-1"))
    if "iso" in declaration:
        assert RobotDescription.load(path).links == ("h\xe4nd",)
    else:
        with pytest.raises(InputError, match="is not XML"):
            RobotDescription.load(path)
    path.write_text(f'{declaration}\n<robot name="odd">\n<link name="hand"/><sensor:camera/></robot>')
    assert RobotDescription.load(path).links == ("hand",)
    path.write_text(f'{declaration}\n<robot name="odd">\n<link></robot>')
    line = declaration.count("\n") + 3
    with pytest.raises(InputError, match=f"is not XML: Opening and ending tag mismatch: link .*, line {line}"):
        RobotDescription.load(path)


def test_a_scale_of_four_numbers_is_refused_by_name(tmp_path):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    generate.box().save(tmp_path / "hand.stl")
    text = ONE_LINK.format('<geometry><mesh filename="hand.stl" scale="1 1 1 1"/></geometry>')
    (tmp_path / "odd.urdf").write_text(text)
    with pytest.raises(InputError, match=r"link 'hand': .*its scale must be one or three numbers, not 4"):
        RobotDescription.load(tmp_path / "odd.urdf")


@pytest.mark.parametrize("value", [None, "x", [1.0, 2.0], np.inf])
def test_joint_values_that_are_no_numbers_are_refused_by_name(value, arm_file):
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    robot = RobotDescription.load(arm_file)
    with pytest.raises(InputError, match=r"arm: end has .* for joint 'turn'"):
        robot.chain({}, {"turn": value})
    with pytest.raises(InputError, match=r"arm: start has .* for joint 'reach'"):
        robot.moving([0.0, value, 0.0], {})
    for configuration in (None, 3.0, "turn"):
        with pytest.raises(InputError, match="arm: start must be joint values, by name or in a row"):
            robot.chain(configuration, {})


def test_without_the_extra_a_robot_says_what_to_install(arm_file, monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments, **settings):
        if name == "yourdfpy":
            raise ImportError(name)
        return real(name, *arguments, **settings)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"'yourdfpy': pip install 'tangere\[robot\]'"):
        RobotDescription.load(arm_file)
