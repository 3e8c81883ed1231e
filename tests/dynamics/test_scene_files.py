"""Worlds from files that people write: scene.toml and URDF; every error names the file and the key."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.runtime import InputError, UnsupportedError
from tests.oracles.rigid_worlds import meeting_pairs

SCENE = """
dt = 0.005
gravity = [0, 0, -10]
friction = 0.3
separation = 2e-4
seconds = 0.5
allowed = [["door", "floor"]]

[[material]]
between = ["rubber", "ice"]
friction = 0.9

[[body]]
name = "floor"
shape = {kind = "box", size = [4, 4, 0.2]}
position = [0, 0, -0.1]
fixed = true
material = "ice"

[[body]]
name = "door"
mesh = "door.stl"
units = "mm"
position = [0.5, 0, 1.01]
density = 600

[[body]]
name = "ball"
shape = {kind = "icosphere", subdivisions = 2, radius = 0.1}
scale = [1, 1, 1]
position = [-1, 0, 0.5]
rotation = [0, 0, 90]
velocity = [0.5, 0, 0]
material = "rubber"

[[joint]]
kind = "hinge"
a = "door"
at = [0.1, 0, 1]
axis = [0, 0, 1]
limits = [-1.5, 1.5]
speed = 1.0
name = "hinge"
"""


@pytest.fixture
def scene_file(tmp_path):
    tg.generate.box((800.0, 40.0, 1900.0)).save(tmp_path / "door.stl")
    path = tmp_path / "scene.toml"
    path.write_text(SCENE)
    return path


def test_a_scene_file_makes_the_world_that_it_describes(scene_file):
    world = World.load(scene_file, device="cpu")
    assert [body.name for body in world] == ["floor", "door", "ball"]
    assert world.dt == 0.005
    assert world.gravity.tolist() == [0, 0, -10]
    assert world["door"].body.mass == pytest.approx(600 * 0.8 * 0.04 * 1.9)
    np.testing.assert_array_equal(world["ball"].pose[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    world.run()  # as long as the file says
    assert world.time == pytest.approx(0.5)
    assert world.coordinates["hinge"] == pytest.approx(0.5, abs=1e-6)
    assert meeting_pairs(world) == []
    assert World.load(scene_file, dt=0.01, device="cpu").dt == 0.01


def test_a_saved_world_is_the_same_world_with_joints_where_they_are(scene_file, tmp_path):
    world = World.load(scene_file, device="cpu")
    world.run(steps=40)
    world.push("ball", force=[0.1, 0.0, 0.0])
    world.save(tmp_path / "later.toml")
    again = World.load(tmp_path / "later.toml", device="cpu")
    np.testing.assert_allclose(again.poses, world.poses, atol=1e-15)  # a pose is told by all its digits
    np.testing.assert_array_equal(again.velocities, world.velocities)
    np.testing.assert_array_equal(again.loads, world.loads)
    assert again.coordinates == world.coordinates
    assert again.motor("hinge") == (1.0, None)
    assert again.joints[0].limits == world.joints[0].limits
    assert again.told_options() == world.told_options()
    for one in (world, again):
        one.run(steps=30)
    np.testing.assert_allclose(again.poses, world.poses, atol=1e-6)  # it began without warm starts


def test_ground_and_bodies_by_formula_stand_in_a_file(tmp_path):
    tg.Heightfield(np.zeros((5, 5)), 1.0, origin=(-2.0, -2.0, 0.0)).save(tmp_path / "flat.npz")
    tg.generate.box((0.4, 0.4, 0.4)).save(tmp_path / "block.ply")
    (tmp_path / "scene.toml").write_text(
        '[[body]]\nname = "ground"\nground = "flat.npz"\n'
        '[[body]]\nname = "barrel"\nshape = {kind = "cylinder", radius = 0.3, height = 0.8}\nposition = [0, 0, 0.45]\n'
        '[[body]]\nname = "ball"\nshape = {kind = "sphere", radius = 0.2}\nposition = [1, 0, 0.25]\n'
        '[[body]]\nname = "block"\nmesh = "block.ply"\nconvex = true\nposition = [-1, 0, 0.25]\n'
    )
    world = World.load(tmp_path / "scene.toml", device="cpu")
    world.run(0.5)
    assert world["barrel"].position[2] == pytest.approx(0.4, abs=1e-3)
    assert world["ball"].position[2] == pytest.approx(0.2, abs=1e-3)
    world.save(tmp_path / "later.toml")
    again = World.load(tmp_path / "later.toml", device="cpu")
    for one, other in zip(world.bodies, again.bodies, strict=True):
        assert (one.ground is None, one.analytic is None) == (other.ground is None, other.analytic is None)
    np.testing.assert_allclose(again.poses, world.poses, atol=1e-15)
    again.step()


def replaced(old: str, new: str):
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (replaced("dt = 0.005", "dt = 0"), "dt must be positive"),
        (replaced("dt = 0.005", "time_step = 0.1"), "no key 'time_step'"),
        (replaced("density = 600", "densty = 600"), r"body\[1\] \('door'\): there is no key 'densty'; is 'density'"),
        (replaced("density = 600", "density = -1"), r"body\[1\] \('door'\): .*density must be positive"),
        (replaced("density = 600", "mass = 0.0"), r"'door' moves: mass must be positive"),
        (replaced("density = 600", "inertia = [[1,0,0],[0,1,0],[0,0,-1]]"), "no body has the moments of inertia"),
        (replaced("position = [0.5, 0, 1.01]", "position = [0.5, 0]"), "position must be three finite numbers"),
        (replaced("position = [0.5, 0, 1.01]", "pose = 3"), "pose"),
        (replaced("rotation = [0, 0, 90]", "quaternion = [0, 0, 0, 0]"), "quaternion is four numbers"),
        (replaced("rotation = [0, 0, 90]", "rotation = [0, 0, 90]\nquaternion = [1, 0, 0, 0]"), "one of them"),
        (replaced('mesh = "door.stl"', 'mesh = "gate.stl"'), r"body\[1\] \('door'\): there is no mesh '.*gate.stl'"),
        (replaced('mesh = "door.stl"', ""), "says mesh or ground, a file, or shape"),
        (replaced('units = "mm"', 'units = "parsec"'), "parsec"),
        (replaced('kind = "icosphere"', 'kind = "icosfere"'), "shape.kind is .*icosphere.*, not 'icosfere'"),
        (replaced("radius = 0.1", "raduis = 0.1"), "there is no key 'raduis'; is 'radius' meant"),
        (replaced("scale = [1, 1, 1]", "scale = 0"), "scale is a number or three"),
        (replaced("scale = [1, 1, 1]", "units = 'mm'"), "units are of a mesh file"),
        (replaced('mesh = "door.stl"', 'ground = "hills.npz"'), "units are of a mesh file"),
        (replaced('mesh = "door.stl"\nunits = "mm"', 'ground = "hills.npz"'), "there is no ground '.*hills.npz'"),
        (replaced('between = ["rubber", "ice"]', 'between = "rubber"'), r"material\[0\]: between is the names"),
        (replaced('between = ["rubber", "ice"]', 'between = ["rubber", "snow"]'), "no body is made of 'snow'"),
        (replaced('kind = "hinge"\n', ""), r"joint\[0\] says no kind"),
        (replaced('kind = "hinge"\n', 'kind = "screw"\n'), r"joint\[0\]: .*a joint is ball, hinge"),
        (replaced('a = "door"', 'a = "gate"'), r"joint\[0\]: there is no body called 'gate'"),
        (replaced('a = "door"', 'a = "floor"'), "neither of its bodies can move"),
        (replaced("limits = [-1.5, 1.5]", "limits = [2, 1]"), "the least coordinate 2 is above"),
        (replaced("at = [0.1, 0, 1]", "at = [nan, 0, 1]"), "at must be three finite numbers"),
        (replaced("velocity = [0.5, 0, 0]", "force = [nan, 0, 0]"), "force must be three finite numbers"),
        (replaced("seconds = 0.5", "seconds = 0.5\nsteps = 3"), "one of them is enough"),
        (replaced("seconds = 0.5", "steps = 0"), "steps must be a whole number"),
        (replaced('["door", "floor"]', '["door"]'), r"allowed\[0\] is a pair"),
        (replaced("[[body]]", "[body]"), "is not TOML"),
        (replaced('[["door", "floor"]]', '"all"'), "allowed is a list of pairs .*, or 'overlapping', not 'all'"),
        (replaced('["door", "floor"]', '["door", "gate"]'), "there is no body called 'gate'"),
        (replaced("dt = 0.005", "order = 3"), "order is 1"),
        (replaced("dt = 0.005", "second_order = 'no'"), "second_order is True or False"),
        (replaced("gravity = [0, 0, -10]", "gravity = 10"), "gravity must be three finite numbers"),
        (replaced("density = 600", "convex = 'yes'"), r"body\[1\] \('door'\): convex is True or False"),
        (replaced("density = 600", "driven = 1"), r"body\[1\] \('door'\): .*driven is True or False"),
        (replaced("density = 600", "group = 'a'"), r"body\[1\] \('door'\): .*group must be a whole number"),
        (lambda text: "dt = 0.1", "has no"),
        (lambda text: "dt =", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_scene_file_is_told_by_its_key(scene_file, change, told):
    scene_file.write_text(change(SCENE))
    with pytest.raises(InputError, match=told) as found:
        World.load(scene_file, device="cpu")
    assert len(str(found.value).splitlines()) == 1
    assert str(found.value).startswith(str(scene_file))


def test_overlaps_at_the_start_are_told_by_the_first_step_and_nothing_has_happened(scene_file):
    scene_file.write_text(SCENE.replace("position = [-1, 0, 0.5]", "position = [0.5, 0, 1]"))
    world = World.load(scene_file, device="cpu")
    with pytest.raises(InputError, match=r"bodies 1 \('door'\) and 2 \('ball'\) overlap at the start"):
        world.step()
    assert world.steps == 0


def test_a_folder_of_meshes_that_is_none_is_refused(scene_file, tmp_path):
    with pytest.raises(InputError, match=r"meshes: there is no folder '.*nowhere'"):
        World.load(scene_file, meshes=tmp_path / "nowhere", device="cpu")


def test_a_file_that_is_none_is_refused(tmp_path):
    for name, told in (("none.toml", "cannot be read"), ("scene.yaml", "loaded from a .toml, .json, .urdf or .npz")):
        with pytest.raises(InputError, match=told):
            World.load(tmp_path / name)


ARM = """<robot name="arm">
  <link name="world"/>
  <link name="base"><collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link>
  <link name="plate"><collision><geometry><box size="0.2 0.2 0.02"/></geometry></collision></link>
  <link name="upper">
    <inertial><origin xyz="0.25 0 0" rpy="0 0 1.5707963267948966"/><mass value="2"/>
      <inertia ixx="0.04" iyy="0.01" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.25 0 0"/><geometry><box size="0.4 0.05 0.05"/></geometry></collision>
  </link>
  <link name="flange"/>
  <link name="lower">
    <collision><origin xyz="0.25 0 0"/><geometry><box size="0.4 0.05 0.05"/></geometry></collision>
  </link>
  <link name="bit"><collision><geometry><box size="0.02 0.02 0.02"/></geometry></collision></link>
  <joint name="ground" type="fixed"><parent link="world"/><child link="base"/></joint>
  <joint name="on" type="fixed"><parent link="base"/><child link="plate"/><origin xyz="0 0 0.3"/></joint>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1"/>
    <axis xyz="0 1 0"/><limit lower="-0.5" upper="0.6" effort="9" velocity="9"/></joint>
  <joint name="mount" type="fixed"><parent link="upper"/><child link="flange"/><origin xyz="0.5 0 0"/></joint>
  <joint name="reach" type="prismatic"><parent link="flange"/><child link="lower"/>
    <axis xyz="1 0 0"/><limit lower="0.1" upper="0.2" effort="9" velocity="9"/></joint>
  <joint name="tip" type="fixed"><parent link="lower"/><child link="bit"/><origin xyz="0.5 0 0"/></joint>
</robot>
"""


def test_a_urdf_mechanism_swings_between_its_limits(tmp_path):
    pytest.importorskip("yourdfpy", reason="URDF needs the extra [robot]")
    (tmp_path / "arm.urdf").write_text(ARM)
    world = World.load(tmp_path / "arm.urdf", device="cpu")
    assert [(j.name, j.kind) for j in world.joints] == [("shoulder", "hinge"), ("reach", "slider"), ("tip", "weld")]
    assert [body.body.fixed for body in world] == [True, True, False, False, False]
    forms = [body.body.analytic for body in world]
    assert [type(form).__name__ for form in forms] == ["Box"] * 5
    np.testing.assert_allclose(forms[2].records["half"][0], [0.2, 0.025, 0.025])
    np.testing.assert_allclose(world["upper"].body.offset[:3, 3], [0.25, 0, 0])
    upper = world["upper"].body.mass_properties
    assert upper.mass == 2.0
    np.testing.assert_allclose(upper.inertia, np.diag([0.01, 0.04, 0.05]), atol=1e-12)
    np.testing.assert_allclose(upper.centre, [0.25, 0, 0])
    np.testing.assert_allclose(world["lower"].pose[:3, 3], [0.6, 0, 1.0])  # as far out as its limits ask at least
    world.run(1.0)
    values = world.coordinates
    assert values["shoulder"] == pytest.approx(0.6, abs=1e-3)  # it fell until its limit
    assert values["reach"] == pytest.approx(0.1, abs=1e-3)  # and slid down until its own
    down = world["upper"].pose[:3, 0]
    np.testing.assert_allclose(down, [np.cos(0.6), 0, -np.sin(0.6)], atol=2e-3)
    np.testing.assert_allclose(world["bit"].pose[:3, 3], [0, 0, 1] + (0.5 + 0.2 + 0.5) * down, atol=3e-3)


def test_links_fixed_to_neighbours_may_overlap_at_the_start_and_others_are_told(tmp_path):
    """A cover on the base round the shoulder, as robots have it, and a hook that reaches into the tip of the arm."""
    pytest.importorskip("yourdfpy", reason="URDF needs the extra [robot]")
    box = '<link name="{}"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>'
    fixed = '<joint name="to {0}" type="fixed"><parent link="{1}"/><child link="{0}"/><origin xyz="{2}"/></joint>'
    cover = box.format("cover") + fixed.format("cover", "base", "0.1 0 1")
    (tmp_path / "arm.urdf").write_text(ARM.replace("</robot>", cover + "</robot>"))
    world = World.load(tmp_path / "arm.urdf", device="cpu")
    world.step()
    pairs = {tuple(sorted((world.bodies[a].name, world.bodies[b].name))) for a, b in world.truncation.overlapping}
    assert pairs == {("cover", "upper")}
    assert ("plate", "upper") not in pairs  # which are apart, and stay compared
    hook = box.format("hook") + fixed.format("hook", "base", "1.05 0 1")
    (tmp_path / "hooked.urdf").write_text(ARM.replace("</robot>", cover + hook + "</robot>"))
    hooked = World.load(tmp_path / "hooked.urdf", device="cpu")
    with pytest.raises(InputError, match=r"overlap at the start, and so do .*allowed=\"overlapping\""):
        hooked.step()
    hooked = World.load(tmp_path / "hooked.urdf", device="cpu", allowed="overlapping")
    hooked.step()
    pairs = {tuple(sorted((hooked.bodies[a].name, hooked.bodies[b].name))) for a, b in hooked.truncation.overlapping}
    assert pairs == {("cover", "upper"), ("bit", "hook"), ("hook", "lower")}


@pytest.mark.parametrize("inertia", ['ixx="0" iyy="0" izz="0"', 'ixx="0.04" iyy="0.01" izz="0.5"'])
def test_a_link_with_an_inertia_that_no_body_has_gets_that_of_its_shape_with_a_warning(tmp_path, inertia):
    pytest.importorskip("yourdfpy", reason="URDF needs the extra [robot]")
    (tmp_path / "arm.urdf").write_text(ARM.replace('ixx="0.04" iyy="0.01" izz="0.05"', inertia))
    with pytest.warns(UserWarning, match="no body has the moments of inertia of 'upper'"):
        world = World.load(tmp_path / "arm.urdf", device="cpu")
    found = world["upper"].body.mass_properties
    assert found.mass == 2.0
    box = 2.0 / 12.0 * np.array([0.05**2 + 0.05**2, 0.4**2 + 0.05**2, 0.4**2 + 0.05**2])
    np.testing.assert_allclose(found.inertia, np.diag(box), atol=1e-9)


@pytest.mark.parametrize("dt", [None, 0.001])
def test_seconds_of_a_file_are_seconds_whatever_the_step(scene_file, dt):
    scene_file.write_text("seconds = 0.05\n" + "\n".join(
        line for line in scene_file.read_text().splitlines() if not line.startswith(("seconds", "steps"))
    ))  # fmt: skip
    world = World.load(scene_file, device="cpu", **({} if dt is None else {"dt": dt}))
    assert world.steps_told == round(0.05 / world.dt)


def test_a_link_without_a_body_and_a_mass_between_two_joints_is_refused(tmp_path):
    pytest.importorskip("yourdfpy", reason="URDF needs the extra [robot]")
    text = ARM.replace('name="mount" type="fixed"', 'name="mount" type="continuous"')
    (tmp_path / "arm.urdf").write_text(text)
    with pytest.raises(UnsupportedError, match="'flange' has no body and no mass, and joints move on both sides"):
        World.load(tmp_path / "arm.urdf", device="cpu")


def _link(name: str, box: str = "", inertial: str = "") -> str:
    body = f'<collision><geometry><box size="{box}"/></geometry></collision>' if box else ""
    return f'<link name="{name}">{inertial}{body}</link>'


def _urdf_joint(name: str, kind: str, parent: str, child: str, at: str, limit: float = 3.0) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>'
        f'<axis xyz="0 1 0"/><limit lower="{-limit}" upper="{limit}" effort="1" velocity="1"/></joint>'
    )


def _weighing(mass: float, moment: float, at: str = "0 0 0") -> str:
    moments = f'ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"'
    return f'<inertial><origin xyz="{at}"/><mass value="{mass}"/><inertia {moments}/></inertial>'


def test_links_without_a_shape_weigh_what_their_file_says(tmp_path):
    """A mass at the end of an arm and a rotor on it, neither of which has a shape."""
    pytest.importorskip("yourdfpy", reason="URDF needs the extra [robot]")
    links = _link("base", "0.1 0.1 0.1") + _link("arm", "0.1 0.1 0.1", _weighing(1.0, 0.01))
    links += _link("tool", inertial=_weighing(5.0, 0.02, "0.1 0 0")) + _link("rotor", inertial=_weighing(2.0, 0.03))
    joints = _urdf_joint("swing", "revolute", "base", "arm", "0 0 0.5")
    joints += _urdf_joint("bolt", "fixed", "arm", "tool", "0.5 0 0")
    joints += _urdf_joint("spin", "continuous", "tool", "rotor", "0 0 0")
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{links}{joints}</robot>')
    world = World.load(tmp_path / "arm.urdf", device="cpu")
    assert [body.name for body in world] == ["base", "arm", "rotor"]
    found = world["arm"].body.mass_properties
    assert found.mass == pytest.approx(6.0)
    np.testing.assert_allclose(found.centre, [5.0 * 0.6 / 6.0, 0, 0], atol=1e-12)
    about = 0.01 + 0.02 + 1.0 * 0.5**2 + 5.0 * 0.1**2
    np.testing.assert_allclose(np.diag(found.inertia), [0.03, about, about], atol=1e-12)
    rotor = world["rotor"].body
    assert rotor.mass == 2.0
    np.testing.assert_allclose(rotor.analytic.records["half"][0], np.sqrt(1.5 * 0.03 / 2.0) * np.ones(3))
    world.step()  # a rotor reaches far into the arm, and touches nothing
    angle = 0.01**2 * 9.81 * (6.0 * 0.5 + 2.0 * 0.5) / (about + 6.0 * 0.5**2 + 2.0 * 0.5**2)
    assert world.coordinates["swing"] == pytest.approx(angle, rel=1e-3)
    assert world.coordinates["spin"] == pytest.approx(-angle, rel=1e-3)  # it does not turn along
    assert len(world.contacts) == 0


def test_bodies_fixed_to_a_link_without_a_shape_move_as_one(tmp_path):
    pytest.importorskip("yourdfpy", reason="URDF needs the extra [robot]")
    links = "".join(_link(name, "0.1 0.1 0.1") for name in ("base", "left", "right")) + _link("frame")
    joints = _urdf_joint("swing", "revolute", "base", "frame", "0 0 0.5", 1e16)  # so large a limit is none
    joints += _urdf_joint("to left", "fixed", "frame", "left", "0.2 0.3 0")
    joints += _urdf_joint("to right", "fixed", "frame", "right", "0.2 -0.3 0")
    (tmp_path / "housing.urdf").write_text(f'<robot name="housing">{links}{joints}</robot>')
    world = World.load(tmp_path / "housing.urdf", device="cpu")
    assert [(j.name, j.kind, j.limits) for j in world.joints] == [
        ("swing", "hinge", (-np.inf, np.inf)),
        ("to right", "weld", (-np.inf, np.inf)),
    ]
    world.run(0.2)
    apart = world["left"].position - world["right"].position
    np.testing.assert_allclose(apart, [0.0, 0.6, 0.0], atol=1e-6)
    assert world.coordinates["swing"] > 0.2


IN_FRAMES = {"kind": "hinge", "a": 0, "anchor_a": [0, 0, 0], "anchor_b": [0, 0, 2]}
IN_FRAMES |= {"axis_a": [0, 1, 0], "axis_b": [0, 1, 0]}


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"kind": "hing"}, "a joint is ball, hinge"),
        ({"limits": [1, -1]}, "least coordinate 1 is above the largest -1"),
        ({"limits": [float("nan"), 1]}, "a least and a largest coordinate"),
        ({"limits": 3}, "a least and a largest coordinate"),
        ({"limits": ["a", "b"]}, "limits is not an array of numbers"),
        ({"axis_a": [0, 0, 0]}, "axis_a has no direction"),
        ({"relative": [[5, 0, 0], [0, 5, 0], [0, 0, 5]]}, "relative is a .3, 3. rotation"),
        ({"relative": [[-1, 0, 0], [0, 1, 0], [0, 0, 1]]}, "relative is a .3, 3. rotation"),
        ({"kind": "distance", "length": -1}, "length must be finite and not negative"),
        ({"kind": "distance"}, "says anchor_a and no length"),
        ({"coordinate": float("inf")}, "coordinate must be finite"),
        ({"a": 1}, "neither of its bodies can move"),
        ({"b": 0}, "cannot be joined with itself"),
        ({"anchor_a": [0, 0, 1e300]}, "anchor_a is 1e.300 m away"),
        ({"anchor_b": None}, "says anchor_a and no anchor_b"),
        ({"axis_b": None}, "says anchor_a and no axis_b"),
        ({"name": 3}, "the name of a joint is a text, not 3"),
    ],
)
def test_joints_in_the_frames_of_their_bodies_are_checked_as_all_are(told, reason):
    from tangere.dynamics.files.description import add_joint

    box = tg.generate.box((1, 1, 1))
    world = World([Body(box), Body(box, fixed=True)], device="cpu", allowed=[(0, 1)])
    entry = {key: value for key, value in {**IN_FRAMES, **told}.items() if value is not None}
    with pytest.raises(InputError, match=reason):
        add_joint(world, entry, "scene")
    assert not world.joints


def test_a_joint_in_the_frames_of_its_bodies_takes_axes_of_any_length():
    from tangere.dynamics.files.description import add_joint

    world = World(Body(tg.generate.box((1, 1, 1))), device="cpu")
    add_joint(world, {**IN_FRAMES, "axis_a": [0, 5, 0]}, "scene")
    np.testing.assert_array_equal(world.joints[0].axis_a, [0, 1, 0])


def test_quaternions_and_numbers_beyond_all_bounds_are_read_or_refused(scene_file):
    text, box = scene_file.read_text(), '[[body]]\nshape = {kind = "box", size = [1, 1, %s]}\nposition = [9, 9, 9]\n'
    scene_file.write_text(text.replace("[[body]]", box % ("1" + 400 * "0") + "\n[[body]]", 1))
    with pytest.raises(InputError, match="size"):
        World.load(scene_file, device="cpu")
    turned = box % "1" + "quaternion = [1e200, 0, 0, 1e200]\n"
    scene_file.write_text(text.replace("[[body]]", turned + "\n[[body]]", 1))
    pose = World.load(scene_file, device="cpu").poses[0]
    np.testing.assert_allclose(pose[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


def test_names_with_characters_that_toml_escapes_are_read_again(tmp_path):
    world = World(Body(tg.generate.box((1, 1, 1)), name='x\x7f\n"y\\'), device="cpu")
    world.save(tmp_path / "x.toml")
    assert World.load(tmp_path / "x.toml", device="cpu").bodies[0].name == world.bodies[0].name
