"""`tangere hand` holds parts of ready scenes with devices, records, replays traces, and tells how it went."""

from __future__ import annotations

import re

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.dynamics import Recording
from tangere.hand import Hand, LedWay, SimulatedDevice, led_part
from tangere.runtime import InputError
from tangere.soft import Recording as SoftRecording
from tests.oracles.rigid_worlds import meeting_pairs


def hand(*words: str):
    return CliRunner().invoke(main, ["hand", *words, "--compute", "cpu"])


def test_a_simulated_run_is_recorded_drawn_and_traced_and_its_trace_gives_the_same_bits(tmp_path):
    pytest.importorskip("PIL.Image")
    names = {
        name: str(tmp_path / name) for name in ("run.npz", "strip.png", "me.csv", "again.npz", "run.glb", "copy.csv")
    }
    words = ["--seconds", "1.2", "--record", names["run.npz"], "--png", names["strip.png"], "--width", "80"]
    first = hand("wheel", "--device", "simulated", "--trace", names["me.csv"], *words, "--out", names["run.glb"])
    assert first.exception is None, first.output
    for told in ("1.20 s, 1,200 and 1,200 ticks", "work given to the hand", "clearance", "walks stopped", "0 of 1,200"):
        assert told in first.output
    assert (tmp_path / "strip.png").stat().st_size > 500
    assert (tmp_path / "run.glb").stat().st_size > 500
    again = hand("wheel", "--device", names["me.csv"], "--record", names["again.npz"], "--trace", names["copy.csv"])
    assert again.exception is None, again.output
    runs = [Recording.load(names[name]) for name in ("run.npz", "again.npz")]
    assert len(runs[0]) == 1 + 1200 // 33
    np.testing.assert_array_equal(runs[0].poses, runs[1].poses)
    assert (tmp_path / "copy.csv").read_text() == (tmp_path / "me.csv").read_text()
    assert np.abs(runs[0].poses[-1, 1] - runs[0].poses[0, 1]).max() > 0.001


def test_a_blade_cuts_a_block_on_the_command_line(tmp_path):
    pytest.importorskip("PIL.Image")
    names = {name: str(tmp_path / name) for name in ("cut.npz", "cut.png", "me.csv", "again.npz")}
    words = ["--seconds", "0.9", "--record", names["cut.npz"], "--png", names["cut.png"], "--width", "80"]
    first = hand("cut", "--device", "simulated", "--trace", names["me.csv"], *words)
    assert first.exception is None, first.output
    for told in ("ToolHand('blade'", "0.90 s, 900 and 90 ticks", "work given to the hand", "force"):
        assert told in first.output
    assert (tmp_path / "cut.png").stat().st_size > 500
    again = hand("cut", "--device", names["me.csv"], "--record", names["again.npz"])
    assert again.exception is None, again.output
    runs = [SoftRecording.load(names[name]) for name in ("cut.npz", "again.npz")]
    assert any("cut" in thing.name for thing, _, _ in runs[0].bodies)
    for one, other in zip(runs[0].bodies, runs[1].bodies, strict=True):
        np.testing.assert_array_equal(one[2], other[2])


def test_the_fast_loop_runs_in_a_process_of_its_own_and_the_table_tells_its_rate(tmp_path):
    file = str(tmp_path / "run.npz")
    result = hand("wheel", "--device", "simulated", "--real-time", "--hard", "--seconds", "0.5", "--record", file)
    assert result.exception is None, result.output
    for told in (
        "fast loop: rate",
        "1000 Hz, hard, scheduling:",
        "slow loop: ticks",
        "overruns",
        "recording",
        "postponed",
    ):
        assert told in result.output
    assert len(Recording.load(file)) >= 1


@pytest.mark.parametrize(("scene", "name"), [("wheel", "part"), ("press", "tool")])
def test_a_page_is_served_for_the_mouse_so_long(scene, name):
    pytest.importorskip("viser")
    result = hand(scene, "--seconds", "0.2")
    assert result.exception is None, result.output
    assert re.search(rf"http://\S+ shows {name}", result.output)
    assert "pictures: ticks" in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device", "glove"], "'glove' is not one of"),
        (["--device", "udp:here"], "no number of a port"),
        (["--device", "udp:99999"], "at most 65535"),
        (["--device", "udp:5005", "--trace", "t.csv"], "--trace"),
        (["--device", "keyboard", "--real-time"], "--real-time"),
        (["--device", "mouse", "--png", "a.png"], "--seconds"),
        (["--device", "none.csv"], "no such file"),
        (["--device", "simulated", "--seconds", "-1"], "--seconds"),
        (["--device", "simulated", "--png", "a.gif"], "--png"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = hand("wheel", *words)
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize("name", ["lifter", "pylon", "door"])
@pytest.mark.release
def test_a_hand_that_knows_the_way_gets_the_part_where_it_is_to_be_without_passing_through_anything(name):
    scene = led_part(name, device="cpu")
    held = Hand(scene.world, scene.body, SimulatedDevice(scene.way), slow_rate=100.0, **scene.options)
    held.run(scene.way.seconds + 1.0)
    assert np.linalg.norm(held.handle[:3, 3] - scene.way.poses[-1][:3, 3]) < 5e-3
    assert held.report.walks_stopped == 0
    assert held.report.passive
    assert meeting_pairs(held.world) == []


def test_a_way_goes_from_pose_to_pose_and_stays(rng):
    from scipy.spatial.transform import Rotation, Slerp

    turns, places = Rotation.random(4, random_state=5), rng.normal(size=(4, 3))
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = turns.as_matrix(), places
    way, slerp = LedWay(poses, 3.0, wait=0.5), Slerp(np.arange(4.0), turns)
    for time in (0.0, 0.5, 0.9, 1.7, 2.5, 3.49, 3.5, 9.0):
        along = np.clip(time - 0.5, 0.0, 3.0)
        np.testing.assert_allclose(way(time)[:3, :3], slerp(along).as_matrix(), atol=1e-9)
        expected = [np.interp(along, np.arange(4.0), places[:, k]) for k in range(3)]
        np.testing.assert_allclose(way(time)[:3, 3], expected, atol=1e-12)
    with pytest.raises(InputError, match="scenes door"):
        led_part("car")
