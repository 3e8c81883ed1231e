"""`tangere check --robot`: verdicts, exit codes, and files left behind."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.shape.generate import box

pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")

ARM = """<robot name="crane">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="mast">
    <collision><origin xyz="0 0 0.5"/><geometry><box size="0.1 0.1 0.8"/></geometry></collision>
  </link>
  <link name="jib">
    <collision><origin xyz="0.5 0 0"/><geometry><box size="0.8 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="mast"/><axis xyz="0 0 1"/></joint>
  <joint name="lift" type="prismatic">
    <parent link="mast"/><child link="jib"/><origin xyz="0 0 0.6"/><axis xyz="0 0 1"/>
    <limit lower="-0.3" upper="0.3" effort="1" velocity="1"/>
  </joint>
</robot>
"""
SRDF = """<robot name="crane"><disable_collisions link1="base" link2="mast" reason="Adjacent"/>
<disable_collisions link1="mast" link2="jib" reason="Adjacent"/></robot>
"""


@pytest.fixture
def folder(tmp_path):
    """A crane, a pillar that it swings into when it has turned by a right angle, and trajectories from 10 to 12 s."""
    (tmp_path / "crane.urdf").write_text(ARM)
    (tmp_path / "crane.srdf").write_text(SRDF)
    pose = np.eye(4)
    pose[:3, 3] = 0.0, 0.7, 0.6
    box(size=(0.1, 0.1, 1.2)).at(pose).save(tmp_path / "pillar.stl")
    (tmp_path / "bad.csv").write_text("time,lift,turn\n10,0,-1\n11,0.1,0\n12,0.1,2\n")
    (tmp_path / "good.csv").write_text("0,0\n-1,0.1\n")
    (tmp_path / "high.csv").write_text("turn,lift\n0,0\n-1,0.4\n")
    return tmp_path


def call(folder, trajectory: str, *more: str):
    words = ["check", "--robot", str(folder / "crane.urdf"), "--trajectory", str(folder / trajectory)]
    return CliRunner().invoke(main, [*words, "--against", str(folder / "pillar.stl"), *more])


def test_a_trajectory_that_touches_says_what_when_and_exits_with_1(folder):
    result = call(folder, "bad.csv")
    assert result.exit_code == 1
    # The jib turns by 2 rad in that second and meets the pillar, a right angle away, some 0.15 rad before its middle.
    assert result.stdout.startswith("contact at t = 11.7")
    assert "jib and pillar.stl" in result.stdout
    assert "1 of 2 segments are free" in result.stdout


def test_the_answer_as_json_has_names_times_and_what_was_not_compared(folder):
    result = call(folder, "bad.csv", "--json", "--clearance", "1.0", "--srdf", str(folder / "crane.srdf"))
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["status"] == "contact"
    assert told["pair"] == ["jib", "pillar.stl"]
    assert told["segment"] == 1
    assert 11.0 < told["time"] == told["last_valid"]["time"] < 12.0
    assert [row["status"] for row in told["segments"]] == ["free", "contact"]
    assert 0.0 < told["segments"][0]["clearance_lower"] <= told["segments"][0]["clearance_upper"]
    assert {row["reason"] for row in told["ignored"]} == {"crane.srdf: Adjacent"}
    assert told["limits_broken"] == []
    assert abs(np.linalg.norm(told["normal"]) - 1.0) < 1e-9


def test_a_free_trajectory_exits_with_0_and_allowed_pairs_may_touch(folder):
    assert call(folder, "good.csv").exit_code == 0
    result = call(folder, "good.csv", "--clearance", "0.2")
    assert result.stdout.startswith("free")
    assert "certainly" in result.stdout
    assert call(folder, "bad.csv", "--allow", "jib,pillar.stl").exit_code == 0
    high = call(folder, "high.csv")
    assert high.exit_code == 0
    assert "beyond their limits: lift" in high.stdout


@pytest.mark.parametrize("gap", [0.0511036, 0.0511037, 0.3333331])
def test_a_certified_clearance_is_printed_no_larger_than_it_is(folder, gap):
    """Six digits of the certificate, rounded down: half of the gap at the accuracy that is asked for."""
    pose = np.eye(4)
    pose[:3, 3] = 0.95 + gap, 0.0, 0.6
    box(size=(0.1, 0.1, 0.1)).at(pose).save(folder / "pillar.stl")
    (folder / "still.csv").write_text("turn,lift\n0,0\n")
    words = ["still.csv", "--clearance", "0.5", "--allow", "base,mast", "--allow", "mast,jib", "--allow", "base,jib"]
    lower = min(row["clearance_lower"] for row in json.loads(call(folder, *words, "--json").stdout)["segments"])
    told = float(call(folder, *words).stdout.split("certainly ")[1].split(" m ")[0])
    assert lower * (1.0 - 1e-5) < told <= lower


def test_times_since_1970_keep_their_digits_and_are_printed_no_later_than_they_are(folder):
    (folder / "epoch.csv").write_text("t,turn,lift\n1763524234.5,-1,0\n1763524235.5,0,0.1\n1763524236.5,2,0.1\n")
    found = json.loads(call(folder, "epoch.csv", "--json").stdout)["time"]
    lines = call(folder, "epoch.csv").stdout.splitlines()
    table = next(line for line in lines if "pillar.stl" in line and "contact" in line and "t =" not in line)
    for text in (lines[0].split("t = ")[1].split(":")[0], table.split("contact")[1].split()[1]):
        assert found - 1e-4 < float(text) <= found, text


def test_one_configuration_with_a_time_has_that_time_and_a_picture(folder):
    pytest.importorskip("PIL", reason="pictures need the extra [view]")
    (folder / "one.csv").write_text("t,turn,lift\n1763524234.5,1.57,0\n")
    result = call(folder, "one.csv", "--png", str(folder / "one.png"))
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("start at t = 1763524234.5: ")
    assert (folder / "one.png").stat().st_size > 1000


def test_joints_that_turn_by_more_than_a_turn_in_a_segment_are_doubted_to_be_degrees(folder):
    """Of joints that turn, not of those that slide; the answer is that of radians."""
    (folder / "degrees.csv").write_text("turn,lift\n-90,0\n0,0.1\n")
    asked = call(folder, "degrees.csv")
    assert "degrees.csv turns joint 'turn' by 90 rad in one segment: are these degrees?" in asked.stderr
    assert asked.exit_code == 1
    (folder / "slide.csv").write_text("turn,lift\n0,0\n-1,9\n-6,0\n")
    assert "degrees" not in call(folder, "slide.csv").stderr


def test_pictures_are_left_behind(folder):
    pytest.importorskip("PIL", reason="pictures need the extra [view]")
    result = call(folder, "bad.csv", "--png", str(folder / "crane.png"), "--out", str(folder / "crane.glb"))
    assert result.exit_code == 1
    assert (folder / "crane.png").stat().st_size > 1000
    assert (folder / "crane.glb").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["good.csv", "--skin", "0.1"], "--skin does not go with --robot"),
        (["good.csv", "--allow", "jib"], "--allow takes two names"),
        (["good.csv", "--allow", "jib,boom"], "'boom', which is no body"),
        (["none.csv"], "there is no file"),
        (["named.csv"], "no column for lift"),
        (["odd.csv"], "row 3 is not 2 numbers"),
        (["wide.csv"], "has 4 columns for 2 joints"),
    ],
)
def test_bad_input_exits_with_2_and_one_sentence(folder, words, told):
    (folder / "odd.csv").write_text("turn,lift\n0,0\n1,x\n")
    (folder / "named.csv").write_text("turn,slew\n0,0\n")
    (folder / "wide.csv").write_text("0,0,0,0\n")
    result = call(folder, *words)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_part_and_a_robot_are_asked_about_in_their_own_words(folder):
    result = CliRunner().invoke(main, ["check", "--robot", str(folder / "crane.urdf")])
    assert (result.exit_code, "goes with --trajectory" in result.stderr) == (2, True)
    result = CliRunner().invoke(main, ["check", str(folder / "pillar.stl")])
    assert (result.exit_code, "a part goes with --path and --against" in result.stderr) == (2, True)
    result = CliRunner().invoke(main, ["check", str(folder / "pillar.stl"), "--clearance", "1"])
    assert (result.exit_code, "--clearance goes with --robot" in result.stderr) == (2, True)


def test_two_files_of_one_name_are_two_things(folder):
    """The pillar that is hit is the first of them, and is not forgotten for the second."""
    far = folder / "far"
    far.mkdir()
    box((0.1, 0.1, 0.1)).at(np.block([[np.eye(3), np.full((3, 1), 9.0)], [np.zeros(3), 1.0]])).save(far / "pillar.stl")
    run = call(folder, "bad.csv", "--against", str(far / "pillar.stl"), "--json")
    assert run.exit_code == 1
    assert json.loads(run.stdout)["pair"] == ["jib", str(folder / "pillar.stl")]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.npy", b"", "is no array of numbers"),
        ("cut.npy", b"\x93NUMPY\x01\x00v\x00{'descr'", "is no array of numbers"),
        ("bytes.csv", b"\x80\xff\x00", "is no table of numbers"),
        ("twice.csv", b"turn,lift,turn\n0,0,0\n", "has several columns for turn"),
        ("clocks.csv", b"t,turn,lift,t\n0,0,0,0\n", "has several columns for the time"),
        ("two_clocks.csv", b"time,turn,lift,t\n0,0,0,0\n", "has several columns for the time"),
        ("slew.csv", b"turn,slew,lift\n0,0,0\n", "column 'slew' would be ignored"),
        ("more.csv", b"turn,slew,lift,Turn\n0,0,0,0\n", "columns 'slew', 'Turn' would be ignored"),
        ("semicolons.csv", b"turn;lift\n0;0\n", "has no column for turn, lift; there are turn;lift"),
        ("back.csv", b"t,turn,lift\n0,0,0\n2,0,0\n2,1,0\n", "row 4 has time 2 after 2"),
        ("bare.csv", b"0,0,0\n-1,0,0\n", "row 2 has time -1 after 0"),
        ("comma.csv", b"turn,lift\n0,0,\n", "row 2 is not 2 numbers"),
        ("nameless.csv", b"turn,lift,\n0,0,1\n", "column '' would be ignored"),
        ("head.csv", b"turn,lift\n", "has no row below its header"),
        ("nan.csv", b"turn,lift\n0,0\nnan,0\n", "row 3 has a number that is not finite"),
    ],
)
def test_files_that_are_no_trajectories_are_told(folder, name, content, told):
    (folder / name).write_bytes(content)
    run = call(folder, name)
    assert run.exit_code == 2
    assert f"{name}: {told}" in run.output
    if "ignored" in told:
        assert "which are turn, lift" in run.output


def test_numbers_that_are_not_real_are_no_trajectory(folder):
    np.save(folder / "complex.npy", np.zeros((2, 2), complex))
    np.savez(folder / "several.npz", q=np.zeros((2, 2)))
    (folder / "several.npz").rename(folder / "several.npy")
    for name in ("complex.npy", "several.npy"):
        run = call(folder, name)
        assert run.exit_code == 2
        assert f"{name}: is no array of real numbers" in run.output


def test_the_mark_that_spreadsheets_put_before_a_table_is_no_name(folder):
    (folder / "marked.csv").write_bytes(b"\xef\xbb\xbfturn,lift\n0,0\n0.1,0\n")
    assert call(folder, "marked.csv").exit_code == 0
