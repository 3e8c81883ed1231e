"""`tangere world` runs ready scenes and files, tells how long each phase took, records, replays, plots and draws."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.dynamics import Recording

SCENE = """
seconds = 0.2
[[body]]
name = "floor"
shape = {kind = "box", size = [4, 4, 0.2]}
fixed = true
[[body]]
name = "crate"
shape = {kind = "box", size = [1, 1, 1]}
position = [0, 0, 0.7]
"""


def world(*words: str):
    return CliRunner().invoke(main, ["world", *words])


@pytest.fixture
def scene_file(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE)
    return str(path)


def test_a_scene_file_is_run_recorded_drawn_plotted_and_replayed(scene_file, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    names = [str(tmp_path / name) for name in ("strip.png", "run.npz", "plot.png", "run.glb", "again.png")]
    words = ["--png", names[0], "--record", names[1], "--plot", names[2], "--out", names[3], "--width", "80"]
    result = world(scene_file, *words, "--device", "cpu")
    assert result.exception is None, result.output
    for told in ("gather", "walk", "whole step", "contacts", "held back: 0 bodies", f"wrote {names[3]}"):
        assert told in result.output
    recording = Recording.load(names[1])
    assert len(recording) == 21
    assert recording.poses[-1, 1, 2, 3] < 0.65
    assert world(names[1], "--png", names[4], "--width", "80").exit_code == 0
    images = [np.asarray(image_module.open(path).convert("RGB")) for path in (names[0], names[4])]
    assert images[0].shape == images[1].shape
    assert np.abs(images[0].astype(int) - images[1]).mean() < 2.0  # the recording shows what was seen
    assert image_module.open(names[2]).size[0] > 500
    assert (tmp_path / "run.glb").stat().st_size > 500
    assert "say what to do" in world(names[1]).output


def test_json_tells_where_everything_is_and_nothing_else_is_on_stdout(scene_file):
    result = world(scene_file, "--steps", "30", "--json", "--device", "cpu")
    told = json.loads(result.stdout)
    assert told["steps"] == 30
    assert told["time"] == pytest.approx(0.3)
    assert told["bodies"][1]["name"] == "crate"
    assert told["bodies"][1]["pose"][2][3] == pytest.approx(0.6, abs=1e-3)
    assert told["truncation"]["bodies"] == 0
    assert [row["time"] for row in told["course"]] == pytest.approx(np.arange(31) * 0.01)
    assert told["course"][0]["gravitational"] > told["energy"]["gravitational"]
    assert set(told["milliseconds"]) >= {"gather", "whole step"}


def test_a_ready_scene_runs_for_as_long_as_it_is_told():
    result = world("cradle", "--seconds", "0.05", "--dt", "0.01", "--json", "--device", "cpu", "--threads", "1")
    assert result.exception is None, result.output
    told = json.loads(result.stdout)
    assert (told["steps"], told["dt"]) == (5, 0.01)


def test_the_live_page_gets_the_world_that_was_asked_for(scene_file, monkeypatch):
    shown = []

    @contextmanager
    def page(made):
        shown.append(made)

        def run(_, steps, after_step):
            for _ in range(steps or 1):
                made.step()
                after_step()

        yield type("Page", (), {"url": "address", "run": run})()

    monkeypatch.setattr("tangere.view.WorldViewer", page)
    result = world(scene_file, "--view", "--dt", "0.02", "--device", "cpu")
    assert result.exception is None, result.output
    assert (shown[0].dt, shown[0].steps) == (0.02, 1)
    assert world(scene_file, "--view", "--steps", "4", "--device", "cpu").exception is None
    assert shown[1].steps == 4


def test_the_examples_of_the_help_have_a_line_each():
    lines = [line.strip() for line in world("--help").output.splitlines()]
    assert "tangere world arch.npz --view" in lines
    assert not any("\\b" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["towers"], "a scene is arch, barrels, body"),
        (["nowhere.toml"], "cannot be read"),
        (["nowhere.json"], "cannot be read"),
        (["scene.obj"], "or a file that ends in .toml"),
        (["stack", "--meshes", "here"], "has meshes of its own"),
        (["stack", "--dt", "0"], "dt must be positive"),
        (["stack", "--seconds", "-1"], "--seconds must be positive"),
        (["stack", "--steps", "3", "--seconds", "1"], "one of them is enough"),
        (["stack", "--png", "strip.jpg"], "must end in .png"),
        (["stack", "--record", "nowhere/run.npz"], "there is no folder"),
        (["stack", "--out", "run.obj"], ".glb"),
        (["nowhere.npz", "--view"], "no such file"),
        (["nowhere.npz", "--steps", "3"], "replayed as it is"),
        (["stack", "--view", "--record", "run.npz"], "say how long"),
        (["stack", "--view", "--json"], "somebody looks, or a program reads"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(words, reason):
    result = world(*words, "--device", "cpu")
    assert result.exit_code == 2
    assert reason in result.output
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_scene_that_says_no_length_must_be_told_one_and_an_overlap_is_told(scene_file, tmp_path):
    (tmp_path / "endless.toml").write_text(SCENE.replace("seconds = 0.2", ""))
    result = world(str(tmp_path / "endless.toml"), "--device", "cpu")
    assert (result.exit_code, "say it with --steps or --seconds" in result.output) == (2, True)
    (tmp_path / "overlap.toml").write_text(SCENE.replace("position = [0, 0, 0.7]", "position = [0, 0, 0.4]"))
    result = world(str(tmp_path / "overlap.toml"), "--device", "cpu")
    assert (result.exit_code, "overlap at the start" in result.output) == (2, True)


def test_bodies_that_overlap_at_the_start_are_refused_or_left_uncompared(scene_file, tmp_path):
    (tmp_path / "in.toml").write_text(SCENE.replace("[0, 0, 0.7]", "[0, 0, 0.3]"))
    refused = world(str(tmp_path / "in.toml"), "--device", "cpu")
    assert refused.exit_code == 2
    assert "bodies 0 ('floor') and 1 ('crate') overlap at the start" in refused.output
    taken = world(str(tmp_path / "in.toml"), "--allow-overlaps", "--json", "--device", "cpu")
    assert taken.exception is None, taken.output
    assert json.loads(taken.output)["truncation"]["overlapping"] == [[0, 1]]
    folder = world(scene_file, "--meshes", str(tmp_path / "nowhere"), "--device", "cpu")
    assert folder.exit_code == 2
    assert "there is no folder" in folder.output
