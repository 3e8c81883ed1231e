"""Whole trajectories of robots against brute force: many instants, each body placed and measured by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tangere as tg
from oracles.robot_samples import SampledCell, within
from robot.cells import place, trajectories, world
from tangere.query.contacts import Status
from tangere.runtime import InputError, UnsupportedError
from tangere.shape.robot import Joint

ARM = tg.robot.generate.arm(gripper=True)
WORLD = world()


def compared(robot, found, things) -> list[tuple[str, str]]:
    """The pairs that a check is to compare, by its promise."""
    group = {name: k for k, names in enumerate(robot.groups) for name in names} | dict.fromkeys(things, 0)
    names = [*robot.bodies, *things]
    return [pair for pair in combinations(names, 2) if group[pair[0]] != group[pair[1]] and pair not in found.ignored]


@pytest.mark.parametrize("reduced", [True, False])
def test_every_sampled_contact_is_found_and_none_is_told_too_late_or_where_there_is_none(rng, effort, reduced):
    """Frames of common ancestors and whole chains from the world have to give the same statuses."""
    cell = SampledCell(ARM, WORLD)
    checker = tg.robot.TrajectoryChecker(
        tg.robot.Workcell({"": ARM}, world=WORLD), ARM.default_allowed(), device="cpu", reduced=reduced
    )
    q = trajectories(rng, ARM, effort(4, 2), 5)
    found = checker.check(q)
    kinds = np.bincount(found.segments.status.ravel(), minlength=3)
    assert (kinds[:2] > 0).all(), "the sample has free segments and contacts"
    share = np.linspace(0.0, 1.0, 25)
    for i, one in enumerate(found):
        pairs = compared(ARM, one, WORLD)
        assert len(pairs) == one.compared
        for k in range(4):
            status, time = one.segments.status[k], one.segments.time[k]
            at = (k + share) / 4.0
            apart = {pair: cell.distances(pair, within(q[i], k, share), at) for pair in pairs}
            least = np.min(list(apart.values()), axis=0)
            if status == Status.FREE:
                assert least.min() > 0.0
                continue
            assert (least[at < time - 1e-12] > 0.0).all()
            where = np.array([time * 4.0 - k])
            gap = cell.distances(one.segments.pair[k], within(q[i], k, where), np.array([time]))
            assert gap[0] <= 1.1 * 1e-6 * 3.0
            if status == Status.START:
                assert where[0] == 0.0
        touching = np.flatnonzero(one.segments.status != Status.FREE)
        assert one.segment == (touching[0] if len(touching) else None)


def test_statuses_do_not_depend_on_the_frame_that_pairs_are_asked_in(rng, effort):
    q = trajectories(rng, ARM, effort(30, 6), 6)
    cell = tg.robot.Workcell({"": ARM}, world=WORLD)
    one, other = (
        tg.robot.TrajectoryChecker(cell, ARM.default_allowed(), device="cpu", reduced=reduced).check(q).segments
        for reduced in (True, False)
    )
    assert (one.status == other.status).all()
    hit = one.status != Status.FREE
    assert hit.any()
    assert np.abs(one.time[hit] - other.time[hit]).max() < 1e-3 / 5


def test_a_contact_is_told_in_the_world_where_both_bodies_are(rng):
    """Of links whose nearest common ancestor moves, too."""
    q = trajectories(rng, ARM, 40, 3)
    found = ARM.check(q, world=WORLD, device="cpu")
    kinds = set()
    for i in np.flatnonzero(found.status == Status.CONTACT):
        one = found[i]
        assert len(one.contact) == 1
        at = np.interp(one.time, [0.0, 0.5, 1.0], [0.0, 1.0, 2.0])
        where = within(q[i], min(int(at), 1), np.array([at - min(int(at), 1)]))
        poses = SampledCell(ARM, WORLD).poses(where, np.array([one.time]))
        for name, point in zip(one.pair, (one.contact.point_a[0], one.contact.point_b[0]), strict=True):
            mesh = SampledCell(ARM, WORLD).meshes[name].at(poses[name][0])
            assert abs(tg.signed_distance(point[None], mesh, device="cpu").distance[0]) < 1e-5
        assert abs(np.linalg.norm(one.contact.normal[0]) - 1.0) < 1e-9
        kinds.add(any(name in WORLD for name in one.pair))
    assert kinds == {True, False}


@pytest.mark.parametrize("accuracy", [0.5, 0.2])
def test_no_sampled_distance_is_below_the_clearance_and_the_least_is_near_it(rng, effort, accuracy):
    q = trajectories(rng, ARM, effort(4, 2), 4)
    found = ARM.check(q, world=WORLD, clearance=0.05, accuracy=accuracy, device="cpu")
    verdict = ARM.check(q, world=WORLD, device="cpu")
    assert (found.segments.status == verdict.segments.status).all()
    share, cell, near = np.linspace(0.0, 1.0, 60), SampledCell(ARM, WORLD), 0
    for i, one in enumerate(found):
        for k in range(3):
            low, high = one.segments.clearance_lower[k], one.segments.clearance_upper[k]
            at = (k + share) / 3.0
            least = min(cell.distances(pair, within(q[i], k, share), at).min() for pair in compared(ARM, one, WORLD))
            assert low <= least
            if one.segments.status[k] != Status.FREE:
                assert low <= high < 1e-5
            elif np.isfinite(high):
                near += 1
                assert (1.0 - accuracy) * high <= low * (1.0 + 1e-12)
                time = one.segments.clearance_time[k]
                where = within(q[i], k, np.array([time * 3.0 - k]))
                there = cell.distances(one.segments.clearance_pair[k], where, np.array([time]))
                assert there[0] <= high * (1.0 + 1e-9) + 1e-12
            else:
                assert low == pytest.approx((1.0 - accuracy) * 0.05)
    assert near > 0


def boxes_and_cylinders() -> tg.Robot:
    """The arm, its links boxes, cylinders and balls instead of meshes."""
    arm, pose = tg.robot.generate.arm(), np.eye(4)
    shapes = {"upper_arm": tg.Box([0.1, 0.1, 0.3]), "wrist_1": tg.Cylinder(0.04, 0.1), "flange": tg.Sphere(0.03)}
    bare = replace(arm, shapes=(None,) * len(arm.links), parts=())
    for link, shape in shapes.items():
        bare = bare.attach(f"{link}_body", shape, link, pose)
    return bare


@pytest.mark.parametrize("robot", [tg.robot.generate.arm(), boxes_and_cylinders()], ids=["meshes", "formulas"])
def test_fine_accuracies_are_kept_down_to_what_rounding_allows_and_what_was_reached_is_told(robot):
    """Against distances at many instants about the one that is told to be the nearest."""
    q = np.cumsum(np.random.default_rng(3).normal(size=(4, 6)) * 0.2, axis=0) + [0.0, 0.8, 0.5, 0.2, 0.0, 0.0]
    before = None
    for accuracy in (1e-4, 1e-5, 1e-6, 1e-8):
        found = robot.check(q, clearance=3.0, accuracy=accuracy, device="cpu").segments
        low, high = found.clearance_lower, found.clearance_upper
        assert (low > 0.0).all()
        assert (low <= high).all()
        assert (found.clearance_accuracy <= accuracy * (1.0 + 1e-6)).all(), accuracy
        assert np.allclose(low, (1.0 - found.clearance_accuracy) * high, rtol=1e-15)
        if before is not None:  # all bounds are of one number
            assert (before[0] <= high).all()
            assert (low <= before[1]).all()
        before = low, high
        for k in range(3):
            share = np.clip(3.0 * found.clearance_time[k] - k + np.linspace(-1e-3, 1e-3, 41), 0.0, 1.0)
            near = robot.distances(q[k] + share[:, None] * (q[k + 1] - q[k]), device="cpu")
            assert low[k] <= near.upper.min() * (1.0 + 1e-13)
            assert near.lower.min() <= high[k] * (1.0 + 1e-9)


def test_many_trajectories_are_answered_as_one_by_one_by_any_number_of_threads(rng, effort):
    q = trajectories(rng, ARM, effort(12, 4), 4)
    found = ARM.check(q, world=WORLD, clearance=0.02, device="cpu", threads=1)
    shared = ARM.check(q, world=WORLD, clearance=0.02, device="cpu", threads=3)
    for name in ("status", "time", "body_a", "clearance_lower", "clearance_upper", "clearance_time"):
        assert getattr(found.segments, name).tobytes() == getattr(shared.segments, name).tobytes(), name
    for i, one in enumerate(found):
        alone = ARM.check(q[i], world=WORLD, device="cpu")
        assert (alone.status, alone.time, alone.pair, alone.segment) == (one.status, one.time, one.pair, one.segment)
        assert alone.segments.status.tolist() == one.segments.status.tolist()


def test_until_the_first_contact_the_answer_is_the_same_and_the_rest_is_said_not_to_be_asked(rng):
    q = trajectories(rng, ARM, 20, 12)
    whole, short = (ARM.check(q, world=WORLD, until=until, device="cpu") for until in ("end", "contact"))
    assert (whole.status == short.status).all()
    assert whole.time.tobytes() == short.time.tobytes()
    assert whole.pair == short.pair
    assert whole.segments.asked.all()
    assert not short.segments.asked.all()
    left = ~short.segments.asked
    assert (short.segments.status[left] == Status.UNRESOLVED).all()
    assert (short.segments.status[~left] == whole.segments.status[~left]).all()


def test_a_robot_that_stands_still_is_asked_about_where_it_is():
    """One configuration, or several that are the same."""
    free, low = np.zeros(7), np.array([0.0, 2.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    for rows in (1, 3):
        up = ARM.check(np.tile(free, (rows, 1)), world=WORLD, device="cpu")
        down = ARM.check(np.tile(low, (rows, 1)), world=WORLD, device="cpu")
        assert up.status == Status.FREE
        assert up.last_valid is not None
        assert down.status == Status.START
        assert down.time == 0.0
        assert "table" in down.pair
        assert down.last_valid is None
    checks = ARM.check(np.stack([[free], [low]]), world=WORLD, device="cpu")
    assert checks.status.tolist() == [Status.FREE, Status.START]


def test_fingers_that_mimic_each_other_close_on_what_is_between_them():
    """Both slide by the same way; it is 30 mm wide, and their inner faces are 10 mm from the middle at 0."""
    bar = tg.generate.box((0.01, 0.03, 0.01))
    q = np.zeros((2, 7))
    q[:, 6] = 0.03, 0.0
    reach = ARM.poses(q[0])[list(ARM.links).index("tool")]
    around = {"bar": bar.at(reach @ place(z=0.05))}
    found = ARM.check(q, world=around, device="cpu")
    assert found.status == Status.CONTACT
    assert found.pair[0] in ("left_finger", "right_finger")
    assert found.time == pytest.approx(25.0 / 30.0, abs=1e-5)
    gap = SampledCell(ARM, around).distances(found.pair, within(q, 0, np.array([found.time])), np.array([found.time]))
    assert gap[0] < 1e-6


def test_a_moving_base_and_things_on_paths_are_where_they_are_at_each_time(rng):
    """Segments are cut where paths have their poses; what is told is told of the segments that were given."""
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, :3, 3] = [[0.9, -0.6, 0.5], [0.9, 0.0, 0.5], [0.3, 0.1, 0.6], [0.9, 0.5, 0.5]]
    ball = tg.generate.icosphere(subdivisions=2, radius=0.08).moving(tg.Path(poses, [0.0, 0.23, 0.6, 1.0]))
    base = tg.Twist(place(0.1, 0.0, 0.0), [0.0, 0.1, 0.05], [0.0, 0.0, 0.4])
    things = {"ball": ball, "wall": tg.generate.box((0.02, 1.0, 1.0)).moving(tg.Rest(place(-0.6, 0.0, 0.6)))}
    cell = SampledCell(ARM, things, base)
    q = trajectories(rng, ARM, 6, 5)
    found = ARM.check(q, world=things, base=base, clearance=0.03, device="cpu")
    assert found.segments.status.shape == (6, 4)
    share, seen = np.linspace(0.0, 1.0, 41), set()
    for i, one in enumerate(found):
        pairs = [(a, b) for a in ARM.bodies for b in things]
        for k in range(4):
            at = (k + share) / 4.0
            apart = {pair: cell.distances(pair, within(q[i], k, share), at) for pair in pairs}
            least = np.min(list(apart.values()), axis=0)
            if one.segments.status[k] == Status.FREE:
                assert least.min() >= one.segments.clearance_lower[k]
            else:
                assert (least[at < one.segments.time[k] - 1e-12] > 0.0).all()
                seen.add(one.segments.pair[k][1])
    assert "ball" in seen


def test_two_robots_are_checked_against_each_other_and_named():
    arm = tg.robot.generate.arm()
    still, lean = np.zeros((3, 6)), np.linspace([0.0] * 6, [0.0, 1.4, 0.0, 0.0, 0.0, 0.0], 3)
    found = tg.robot.check(
        {"left": (arm, lean), "right": (arm, still)}, bases={"right": place(x=0.9)}, device="cpu", clearance=0.05
    )
    assert found.status == Status.CONTACT
    assert [name.partition("/")[0] for name in found.pair] == ["left", "right"]
    away = tg.robot.check({"left": (arm, lean), "right": (arm, still)}, bases={"right": place(x=3.0)}, device="cpu")
    assert away.status == Status.FREE
    assert away.compared == found.compared


def test_what_is_attached_moves_with_its_link_and_may_touch_what_it_is_told_to():
    arm = tg.robot.generate.arm()
    q = np.linspace([0.0] * 6, [0.0, 0.9, 0.0, 0.0, 0.0, 0.0], 4)
    wall = {"wall": tg.generate.box((0.02, 1.0, 1.0)).at(place(0.9, 0.0, 0.8))}
    rod = tg.generate.box((0.02, 0.02, 0.3))
    holding = arm.attach("rod", rod, link="tool", pose=place(z=0.16))
    assert arm.check(q, world=wall, device="cpu").status == Status.FREE
    found = holding.check(q, world=wall, device="cpu")
    assert found.pair == ("rod", "wall")
    assert ("flange", "rod") not in [tuple(sorted(pair)) for pair in compared(holding, found, wall)]
    assert holding.detach("rod").check(q, world=wall, device="cpu").status == Status.FREE
    low = arm.attach("plate", tg.generate.box((0.3, 0.3, 0.01)), link="forearm", pose=place(z=0.3))
    assert low.check(q[:1], allowed=[], device="cpu").status == Status.START
    assert ("plate", "wrist_1") in low.check(q[:1], device="cpu").ignored
    spared = arm.attach(
        "plate", tg.generate.box((0.3, 0.3, 0.01)), "forearm", place(z=0.3), may_touch=["wrist_1", "wrist_2"]
    )
    assert spared.check(q[:1], allowed=[], device="cpu").status == Status.FREE
    with pytest.raises(InputError, match="there is no link 'hand'"):
        arm.attach("rod", rod, link="hand")
    with pytest.raises(InputError, match="there is a link 'tool' already"):
        arm.attach("tool", rod, link="flange")
    with pytest.raises(InputError, match="nothing is attached as 'forearm'"):
        arm.detach("forearm")


def test_limits_are_told_and_the_last_valid_configuration_is_before_them():
    arm = tg.robot.generate.arm()
    q = np.linspace([0.0] * 6, [0.0, 0.0, 3.0, 0.0, 0.0, 0.0], 7)
    found = arm.check(q, device="cpu", allowed=[], times=np.arange(7.0))
    assert found.limits_broken == ("forearm joint",)
    assert found.segments.limit_broken.tolist() == [False] * 5 + [True]
    assert not found.valid
    if found.status == Status.FREE:
        assert found.last_valid.time == pytest.approx(2.6 / 0.5)
        assert found.last_valid.configuration[2] == pytest.approx(2.6)
        assert found.last_valid.segment == 5
    outside = arm.check(q[::-1], device="cpu", allowed=[])
    assert outside.last_valid is None


@settings(max_examples=15)
@given(turn=st.floats(0.3, 3.0), thickness=st.floats(1e-4, 0.02))
def test_an_arm_that_sweeps_through_a_thin_plate_in_one_segment_is_stopped_where_geometry_says(turn, thickness):
    """A box on a stick turns about the vertical: it reaches the plate at a known angle, however thin that is."""
    origin = np.eye(4)
    base = Joint("base in the world", "fixed", origin, np.array([0.0, 0.0, 1.0]), "")
    hinge = Joint("hinge", "turning", origin, np.array([0.0, 0.0, 1.0]), "hinge")
    needle = tg.generate.box((0.02, 0.02, 0.02), name="tip").at(place(x=1.0))
    robot = tg.Robot("stick", ("base", "tip"), (-1, 0), (base, hinge), (None, needle))
    plate = tg.generate.box((0.5, thickness, 0.5)).at(place(1.0, 0.5 * thickness))
    found = robot.check([[-turn], [turn]], world={"plate": plate}, device="cpu")
    # The inner front corner at (0.99, 0.01) from the axis comes to y = 0 first.
    angle = -np.arctan2(0.01, 0.99)
    assert found.status == Status.CONTACT
    assert found.time <= (angle + turn) / (2.0 * turn) + 1e-12
    assert found.time == pytest.approx((angle + turn) / (2.0 * turn), abs=4e-6)


def test_input_that_makes_no_sense_is_told_in_one_sentence():
    arm = tg.robot.generate.arm()
    q = np.zeros((2, 6))
    with pytest.raises(InputError, match=r"q must have shape \(k, 6\) or \(n, k, 6\)"):
        arm.check(np.zeros(6), device="cpu")
    with pytest.raises(InputError, match=r"q must have shape \(k, 6\) or \(n, k, 6\) for the joints shoulder joint"):
        arm.check(np.zeros((2, 5)), device="cpu")
    with pytest.raises(InputError, match=r"q\[0, 1\] has nan for joint 'shoulder joint'"):
        arm.check([[0.0] * 6, [np.nan] + [0.0] * 5], device="cpu")
    with pytest.raises(InputError, match="allowed names 'elbow', which is no body"):
        arm.check(q, allowed=[("base", "elbow")], device="cpu")
    with pytest.raises(InputError, match="two bodies 'base'"):
        arm.check(q, world={"base": tg.generate.box()}, device="cpu")
    with pytest.raises(InputError, match="world: bodies are named by texts, not by 3"):
        arm.check(q, world={3: tg.generate.box()}, device="cpu")
    with pytest.raises(UnsupportedError, match="world: 'ball' must be a Mesh, analytic bodies"):
        arm.check(q, world={"ball": "a ball"}, device="cpu")
    with pytest.raises(InputError, match="world must be meshes by name, a dict, not "):
        arm.check(q, world=[tg.generate.box()], device="cpu")
    with pytest.raises(InputError, match=r"q turns joint 'forearm joint' by 1e\+09 rad in one segment, 200 at most"):
        arm.check([[0.0] * 6, [0.0, 0.0, -1e9, 0.0, 0.0, 0.0]], device="cpu")
    with pytest.raises(InputError, match="times must be 2 numbers that rise"):
        arm.check(q, times=[0.0, 0.0], device="cpu")
    with pytest.raises(InputError, match="times must not be so far apart"):
        arm.check(np.linspace(q[0], q[0] + 0.1, 2), times=[-1e308, 1e308], device="cpu")
    with pytest.raises(InputError, match="until must be 'end' or 'contact'"):
        arm.check(q, until="now", device="cpu")
    with pytest.raises(InputError, match="accuracy"):
        arm.check(q, clearance=0.1, accuracy=1.5, device="cpu")
    with pytest.raises(InputError, match="tolerance 1e-30 is below"):
        arm.check(np.linspace(q[0], q[0] + 1.0, 2), tolerance=1e-30, device="cpu")
    with pytest.raises(InputError, match="as long as each other"):
        tg.robot.check({"a": (arm, q), "b": (arm, np.zeros((3, 6)))}, device="cpu")
    with pytest.raises(InputError, match="bases must be poses or motions by name, a dict, not 3"):
        tg.robot.check({"a": (arm, q)}, bases=3, device="cpu")
    ball = tg.Sphere(0.1)
    for name in (3, None, ""):
        with pytest.raises(InputError, match="name must be a text, not "):
            arm.attach(name, ball, "flange")
    for links in ("base", 3):
        with pytest.raises(InputError, match="may_touch must be names of links, not "):
            arm.attach("ball", ball, "flange", may_touch=links)
    with pytest.raises(InputError, match="an SRDF file is named by a path, not by a int"):
        arm.allowed(srdf=3)
    assert 3 not in arm.default_allowed()
    with pytest.raises(InputError, match="base must have shape"):
        arm.scene(q, base=3)


def test_files_that_are_no_robots_are_told(tmp_path):
    with pytest.raises(InputError, match="a robot is named by a path, not by a NoneType"):
        tg.Robot.load(None)
    with pytest.raises(InputError, match="is a folder; its URDF or MJCF file is meant"):
        tg.Robot.load(tmp_path)
    file = tmp_path / "one.urdf"
    file.write_text('<robot name="one"><link name="base"/></robot>')
    with pytest.raises(InputError, match="packages must be a dict of folders, not 3"):
        tg.Robot.load(file, packages=3)
    with pytest.raises(InputError, match=r"packages\['a'\] is named by a path, not by a NoneType"):
        tg.Robot.load(file, packages={"a": None})


def test_a_robot_without_a_joint_that_moves_answers_about_configurations_of_no_numbers():
    base = tg.generate.box()
    joint = Joint("root", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), "")
    robot = tg.Robot("block", ("base",), (-1,), (joint,), (base,))
    assert robot.joint_names == ()
    assert np.array_equal(robot.poses([]), np.eye(4)[None])
    assert robot.poses(np.zeros((2, 3, 0))).shape == (2, 3, 1, 4, 4)
    assert robot.jacobians(np.zeros((2, 0))).shape == (2, 1, 6, 0)
    near = np.eye(4)
    near[0, 3] = 0.9
    # Nothing moves, and what cannot move against each other is not compared.
    assert not robot.check(np.zeros((2, 0)), {"other": base.at(near)}, device="cpu")
    assert len(robot.distances(np.zeros((2, 0)), device="cpu").pairs) == 0
    with pytest.raises(InputError, match=r"q must have shape \(k, 0\) or \(n, k, 0\) for no joint that moves, not"):
        robot.check(np.zeros((2, 3)), device="cpu")
    assert len(robot.scene(np.zeros((2, 0))).things) == 1


def test_no_configurations_have_no_poses_and_no_distances():
    arm = tg.robot.generate.arm()
    assert arm.poses(np.zeros((0, 6))).shape == (0, 8, 4, 4)
    found = arm.distances(np.zeros((0, 6)), {"ball": tg.Sphere(0.1)}, device="cpu")
    assert found.upper.shape == (0, len(found.pairs))
    assert found.gradient.shape == (0, len(found.pairs), 6)


@pytest.mark.cuda
def test_the_gpu_agrees_with_the_cpu(rng):
    q = trajectories(rng, ARM, 40, 8)
    cpu, cuda = (ARM.check(q, world=WORLD, clearance=0.05, device=device) for device in ("cpu", "cuda"))
    assert (cpu.segments.status == cuda.segments.status).all()
    hit = cpu.segments.status != Status.FREE
    assert np.abs(cpu.segments.time[hit] - cuda.segments.time[hit]).max() < 1e-3 / 7
    assert (cuda.segments.clearance_lower <= cpu.segments.clearance_upper + 1e-9).all()
    assert (cpu.segments.clearance_lower <= cuda.segments.clearance_upper + 1e-9).all()


@pytest.mark.cuda
@pytest.mark.parametrize("block", [1 << 20, 1 << 12])
def test_the_gpu_agrees_with_the_cpu_about_thousands_of_segments(rng, monkeypatch, block):
    """More questions than there are blocks for, so that they are searched in rounds; in one part and in many."""
    monkeypatch.setattr("tangere.robot.trajectory_checker.CUDA_BLOCK", block)
    q = trajectories(rng, ARM, 300, 8)
    cell = tg.robot.Workcell({"": ARM}, world=WORLD)
    cpu, cuda = (
        tg.robot.TrajectoryChecker(cell, ARM.default_allowed(), device=device).check(q, tolerance=1e-6)
        for device in ("cpu", "cuda")
    )
    assert (cpu.segments.status == cuda.segments.status).all()
    both = np.isfinite(cpu.segments.time)
    assert 0 < both.sum() < both.size
    assert (cpu.segments.time[both] <= cuda.segments.time_upper[both]).all()
    assert (cuda.segments.time[both] <= cpu.segments.time_upper[both]).all()
    assert np.abs(cpu.contacts.gap - cuda.contacts.gap).max() <= 2e-6


@pytest.mark.parametrize("rows", [2, 5, 1000])
def test_boxes_about_whole_bodies_leave_the_same_for_any_number_of_threads_of_a_step(rng, monkeypatch, rows):
    """Where a GPU has threads left several look at the pairs of one step."""
    monkeypatch.setattr("tangere.query.articulated.pair_questions.rows_of_step", lambda device, steps, pairs: rows)
    q = trajectories(rng, ARM, 2, 4)
    cell = tg.robot.Workcell({"": ARM}, world=WORLD)
    many = tg.robot.TrajectoryChecker(cell, ARM.default_allowed(), device="cpu").check(q, tolerance=1e-6)
    monkeypatch.undo()
    one = tg.robot.TrajectoryChecker(cell, ARM.default_allowed(), device="cpu").check(q, tolerance=1e-6)
    assert 0 < (one.segments.status != Status.FREE).sum() < one.segments.status.size
    assert (many.segments.status == one.segments.status).all()
    assert (many.segments.time == one.segments.time).all()


def test_round_things_and_ground_in_the_world_are_met_as_what_they_are():
    """The oracle: where a tool that slides straight meets a sphere, a capsule, a cone, a box and a slope of ground."""
    arm = tg.robot.generate.arm()
    tip = arm.attach("tip", tg.Sphere(0.02), link=arm.links[-1], pose=place(z=0.3))
    q = np.linspace([-1.2, 0.7, 0.5, 0.0, 0.0, 0.0], [1.2, 0.7, 0.5, 0.0, 0.0, 0.0], 9)
    way = tip.poses(q)[:, tip.links.index("tip"), :3, 3]
    spot = place(*way[4])
    heights = np.full((5, 5), way[4, 2])
    ground = tg.Heightfield(heights, spacing=0.05, origin=(way[4, 0] - 0.1, way[4, 1] - 0.1, 0.0))
    for thing in (
        tg.Sphere(0.05).at(spot),
        tg.Capsule(0.05, 0.2).at(spot),
        tg.Cylinder(0.05, 0.2).at(spot),
        tg.Cone(0.05, 0.2).at(spot),
        tg.Box([0.05, 0.05, 0.05]).at(spot),
        tg.Sphere(0.05).moving(tg.Rest(spot)),
        ground,
    ):
        found = tip.check(q, {"thing": thing}, [*combinations(tip.bodies, 2)], device="cpu")
        assert found.status == Status.CONTACT
        at = found.time * 8.0
        where = tip.poses(within(q, int(at), np.array([at - int(at)])))[0, tip.links.index("tip"), :3, 3]
        apart = np.linalg.norm(where - spot[:3, 3])
        assert apart > 0.02, "before the tip is in the middle"
        if isinstance(thing, tg.Sphere):
            assert apart == pytest.approx(0.07, abs=1e-6)


def test_a_base_that_is_moved_in_place_is_another_one():
    q, base = np.zeros((2, len(ARM.joint_names))), np.eye(4)
    cell = {"wall": tg.generate.box((0.02, 4.0, 4.0)).at(place(x=3.0))}
    assert not ARM.check(q, world=cell, base=base, device="cpu")
    base[0, 3] = 3.0
    assert ARM.check(q, world=cell, base=base, device="cpu").status == Status.START
    assert ARM.check(q, world=cell, base=base.tolist(), device="cpu").status == Status.START


def test_where_there_is_nothing_to_compare_everything_is_free():
    bodies = (None, tg.generate.box((1.0, 1.0, 1.0)))
    foot = Joint("foot", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), "")
    joints = foot, Joint("turn", "turning", np.eye(4), np.array([0.0, 0.0, 1.0]), "turn")
    robot = tg.Robot("one", ("foot", "arm"), (-1, 0), joints, bodies)
    found = robot.check([[0.0], [1.0]], clearance=0.1, device="cpu")
    assert found.status == Status.FREE
    assert (found.pair, found.compared) == (None, 0)
    assert len(robot.check(np.zeros((3, 2, 1)), device="cpu")) == 3


@pytest.mark.parametrize("clearance", [None, 0.1])
def test_no_trajectories_have_no_answers(clearance):
    found = ARM.check(np.zeros((0, 3, len(ARM.joint_names))), clearance=clearance, device="cpu")
    assert len(found) == 0
    assert found.segments.status.shape == (0, 2)
    assert found.segments.clearance_lower.shape == (0, 2)


def test_what_an_attached_thing_may_touch_is_left_out_however_it_is_asked():
    held = ARM.attach("ball", tg.Sphere(0.02), ARM.links[-1], may_touch=[ARM.links[0]])
    q = np.zeros((2, len(ARM.joint_names)))
    alone = held.check(q, allowed=[], device="cpu").ignored
    among = tg.robot.check({"l": (held, q)}, allowed=[], device="cpu").ignored
    assert alone.prefixed("l/").reasons == among.reasons
