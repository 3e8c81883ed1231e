"""Which links may touch: by name, from SRDF, from samples, and by proof."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.robot_samples import SampledCell
from robot.cells import place
from tangere.query.contacts import Status
from tangere.runtime import InputError
from tangere.shape.robot import Joint

ARM = tg.robot.generate.arm(gripper=True)

SRDF = """<?xml version="1.0"?>
<robot name="arm">
  <disable_collisions link1="base" link2="shoulder" reason="Adjacent"/>
  <disable_collisions link1="wrist_2" link2="forearm" reason="Never"/>
  <disable_collisions link1="tool" link2="forearm" reason="Never"/>
  <disable_collisions link1="camera" link2="forearm"/>
</robot>
"""


def test_a_file_of_disabled_pairs_is_read_and_what_it_names_wrongly_is_told(tmp_path):
    file = tmp_path / "arm.srdf"
    file.write_text(SRDF)
    with pytest.warns(UserWarning, match=r"arm.srdf.*not there: camera"):
        allowed = ARM.allowed([("base", "ball")], srdf=file)
    assert set(allowed) == {("base", "shoulder"), ("forearm", "wrist_2"), ("ball", "base")}
    assert allowed.reasons["forearm", "wrist_2"] == "arm.srdf: Never"
    assert allowed.unknown == ("camera",)
    assert allowed.bodiless == ("tool",)
    assert ("wrist_2", "forearm") in allowed
    assert "1 unknown names" in repr(allowed)
    found = ARM.check(
        np.zeros((2, 7)), world={"ball": tg.generate.box().at(place(z=9.0))}, allowed=allowed, device="cpu"
    )
    assert found.ignored is allowed
    everything = ARM.check(
        np.zeros((2, 7)), world={"ball": tg.generate.box().at(place(z=9.0))}, allowed=[], device="cpu"
    )
    assert everything.compared - found.compared == 2  # the base and the ball do not move against each other


def test_files_and_pairs_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"SRDF 'none.srdf': there is no file"):
        ARM.allowed(srdf=tmp_path / "none.srdf")
    (tmp_path / "odd.srdf").write_text("<robot>")
    with pytest.raises(InputError, match=r"SRDF 'odd.srdf': is not XML"):
        ARM.allowed(srdf=tmp_path / "odd.srdf")
    (tmp_path / "half.srdf").write_text('<robot><disable_collisions link1="base"/></robot>')
    with pytest.raises(InputError, match="lacks link1 or link2"):
        ARM.allowed(srdf=tmp_path / "half.srdf")
    for pairs in (["base"], [("base", "base")], [("base", 1)], "base"):
        with pytest.raises(InputError, match="allowed"):
            ARM.allowed(pairs)


def test_samples_count_what_an_engine_for_bodies_at_rest_counts(effort):
    samples = effort(60, 10)
    table = ARM.touching(samples, device="cpu")
    rng = np.random.default_rng(0)
    q = rng.uniform(*ARM.limits.T, (samples, 7))
    cell = SampledCell(ARM)
    touched = 0
    for row in table:
        apart = cell.distances(row.pair, q, np.zeros(samples))
        assert (apart <= 0.0).sum() <= row.count <= (apart < 1e-5).sum(), row.pair
        assert row.verdict == ("always" if row.count == samples else "touches" if row.count else "open")
        if row.count:
            touched += 1
            assert cell.distances(row.pair, row.configuration[None], np.zeros(1))[0] < 1e-5
    assert 0 < touched < len(table)
    assert table["shoulder", "base"].adjacent
    assert not table["base", "forearm"].adjacent
    assert sum(table.counts().values()) == len(table)
    assert str(samples) in repr(table)


def test_links_that_always_touch_are_left_out_unless_asked_for_and_that_is_said():
    """A cuff about the forearm, fixed to the upper arm, touches it at any angle."""
    cuff = tg.generate.box((0.2, 0.3, 0.1))
    robot = tg.robot.generate.arm().attach("cuff", cuff, link="upper_arm", pose=place(0.0, -0.11, 0.42))
    q = np.zeros((2, 6))
    found = robot.check(q, device="cpu")
    assert found.status == Status.FREE
    assert ("cuff", "forearm") in found.ignored
    assert found.ignored.reasons["cuff", "forearm"] == "touched in all 200 samples"
    assert "touched in all 200 samples" in repr(found)
    assert robot.check(q, allowed=[], device="cpu").status == Status.START


def test_what_is_proved_never_to_touch_touches_in_no_sample_and_the_rest_has_a_configuration(rng, effort):
    table = ARM.touching(50, prove=True, cells=300, device="cpu")
    assert {"never", "touches"} <= set(table.counts())
    cell = SampledCell(ARM)
    q = rng.uniform(*ARM.limits.T, (effort(1000, 200), 7))
    for row in table:
        if row.verdict == "never":
            assert row.count == 0
            assert cell.distances(row.pair, q, np.zeros(len(q))).min() > 0.0, row.pair
            assert tuple(sorted(row.pair)) in table.allowed
        if row.verdict == "touches":
            assert cell.distances(row.pair, row.configuration[None], np.zeros(1))[0] < 1e-5, row.pair
            assert row.pair not in table.allowed


def test_a_proof_knows_how_far_sliding_joints_reach():
    """A block on a rail: it reaches a wall if the rail is 1.02 m long, and not if it is 0.9 m long."""
    at = Joint("rail in the world", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), "")
    wall = tg.generate.box((0.1, 1.0, 1.0)).at(place(x=1.1))
    for length, verdict in ((0.9, "never"), (1.02, "touches")):
        turn = Joint("turn", "turning", np.eye(4), np.array([1.0, 0.0, 0.0]), "turn", limits=(-1.0, 1.0))
        slide = Joint("slide", "sliding", np.eye(4), np.array([1.0, 0.0, 0.0]), "slide", limits=(0.0, length))
        block = tg.generate.box((0.1, 0.1, 0.1))
        robot = tg.Robot("rail", ("wall", "arm", "block"), (-1, 0, 1), (at, turn, slide), (wall, None, block))
        row = robot.touching(5, prove=True, cells=500, device="cpu")["wall", "block"]
        assert row.verdict == verdict


def test_a_joint_without_end_is_looked_at_within_one_turn():
    joints = [
        Joint("foot", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), ""),
        Joint("wheel", "turning", place(z=1.0), np.array([0.0, 0.0, 1.0]), "wheel", limits=(-1e16, 1e16)),
    ]
    boxes = tg.generate.box((0.5, 0.5, 0.5)), tg.generate.box((1.0, 0.2, 0.2)).at(place(x=0.6))
    robot = tg.Robot("cart", ("body", "arm"), (-1, 0), tuple(joints), boxes)
    assert robot.touching(20, prove=True, device="cpu")["body", "arm"].verdict == "never"


def _rail(slide: Joint) -> tg.Robot:
    """A block on a rail of which a wall stands 2.4 m away."""
    foot = Joint("foot", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), "")
    block, wall = tg.generate.box((0.2, 0.2, 0.2)), tg.generate.box((0.2, 2.0, 2.0)).at(place(x=2.5))
    return tg.Robot("rail", ("wall", "block"), (-1, 0), (foot, slide), (wall, block))


def test_nothing_is_proved_of_what_slides_without_end():
    """Only a metre of it was looked at."""
    along = np.array([1.0, 0.0, 0.0])
    endless = _rail(Joint("slide", "sliding", np.eye(4), along, "slide"))
    table = endless.touching(20, prove=True, device="cpu")
    assert table["wall", "block"].verdict == "open"
    assert endless.check([[0.0], [3.0]], allowed=table, device="cpu").status == Status.CONTACT
    half = _rail(Joint("slide", "sliding", np.eye(4), along, "slide", limits=(2.0, np.inf)))
    assert half.touching(200, prove=True, device="cpu")["wall", "block"].verdict == "touches"


def test_nothing_is_proved_of_a_joint_without_end_that_another_follows_at_another_rate():
    """The follower turns half as fast: within a turn of its leader it does not come round to the wall behind."""
    foot = Joint("foot", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), "")
    up = np.array([0.0, 0.0, 1.0])
    lead = Joint("lead", "turning", place(z=5.0), up, "lead")
    follow = Joint("follow", "turning", np.eye(4), up, "lead", factor=0.5)
    bar, wall = tg.generate.box((1.0, 0.1, 0.1)).at(place(x=0.6)), tg.generate.box((0.1, 0.1, 0.1)).at(place(x=-0.8))
    gear = tg.generate.box((0.1, 0.1, 0.1))
    robot = tg.Robot("gears", ("wall", "gear", "bar"), (-1, 0, 0), (foot, lead, follow), (wall, gear, bar))
    table = robot.touching(200, prove=True, device="cpu")
    assert table["wall", "bar"].verdict == "open"
    assert table["wall", "gear"].verdict == "open"
    assert robot.check([[0.0], [4.0 * np.pi]], allowed=table, device="cpu").pair == ("wall", "bar")


def test_a_proof_does_not_count_beyond_the_limits_it_is_for():
    robot = _rail(Joint("slide", "sliding", np.eye(4), np.array([1.0, 0.0, 0.0]), "slide", limits=(0.0, 1.0)))
    table = robot.touching(20, prove=True, device="cpu")
    assert table["wall", "block"].verdict == "never"
    within = robot.check([[0.0], [1.0]], allowed=table, device="cpu")
    assert not within
    assert within.compared == 0
    found = robot.check([[0.0], [3.0]], allowed=table, device="cpu")
    assert found.status == Status.CONTACT
    assert found.time == pytest.approx(2.3 / 3.0, abs=1e-5)
    assert robot.check([[[0.0], [1.0]], [[0.0], [3.0]]], allowed=table, device="cpu").status.tolist() == [0, 1]
    assert robot.distances([[0.0], [1.0]], allowed=table, device="cpu").pairs == ()
    past = robot.distances([3.0], allowed=table, device="cpu")
    assert past.pairs == (("wall", "block"),)
    assert past.upper == pytest.approx([0.3])  # the block went through the wall
