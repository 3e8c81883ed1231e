"""`tangere soft` runs scenes and your own tetrahedra, tells how long each phase took, records, replays and draws."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.shape.tets import solid_block
from tangere.soft import Recording


def soft(*words: str):
    return CliRunner().invoke(main, ["soft", *words])


def test_the_tori_are_run_recorded_drawn_and_replayed(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    files = [str(tmp_path / name) for name in ("strip.png", "run.npz", "again.png")]
    result = soft("tori", "--steps", "8", "--png", files[0], "--record", files[1], "--width", "90", "--device", "cpu")
    assert result.exception is None, result.output
    for told in ("detect", "solve", "truncate", "whole step", "contacts"):
        assert told in result.output
    recording = Recording.load(files[1])
    assert len(recording) == 9
    assert recording.seconds == pytest.approx(0.16)
    upper = recording.bodies[1][2]
    assert upper[-1, :, 2].mean() < upper[0, :, 2].mean() - 0.1  # it falls
    assert soft(files[1], "--png", files[2], "--width", "90").exit_code == 0
    images = [np.asarray(image_module.open(path).convert("RGB")) for path in (files[0], files[2])]
    assert images[0].shape == images[1].shape
    assert images[0].shape[1] >= 5 * 90
    assert np.abs(images[0].astype(int) - images[1]).mean() < 2.0  # the recording shows what was seen
    assert images[0].std() > 5


def test_a_run_is_written_for_other_programs_as_it_is_made_and_when_it_is_replayed(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    names = [str(tmp_path / name) for name in ("now.glb", "run.npz", "again.glb")]
    result = soft("drop", "--steps", "3", "--out", names[0], "--record", names[1], "--device", "cpu")
    assert result.exception is None, result.output
    assert soft(names[1], "--out", names[2]).exit_code == 0
    scenes = [trimesh.load(path) for path in (names[0], names[2])]
    assert len(scenes[0].geometry) == len(scenes[1].geometry) >= 4
    assert (scenes[0].bounds == scenes[1].bounds).all()
    assert "--out" in soft(names[1]).output
    assert ".glb" in soft("drop", "--out", str(tmp_path / "run.obj")).output


def test_a_block_is_cut_recorded_and_written(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    names = [str(tmp_path / name) for name in ("run.npz", "cut.glb")]
    words = ["--toughness", "10", "--depth", "0.4", "--steps", "14", "--record", names[0], "--out", names[1]]
    result = soft("cut", *words, "--device", "cpu")
    assert result.exception is None, result.output
    for told in ("cut", "press", "whole step"):
        assert told in result.output
    assert any(thing.name.endswith("walls") for thing, _, _ in Recording.load(names[0]).bodies)
    assert any("walls" in name for name in trimesh.load(names[1]).geometry)


def test_wrong_cuts_are_told():
    assert "only the scene cut" in soft("tori", "--toughness", "3").output
    assert "toughness" in soft("cut", "--toughness", "0", "--steps", "1").output
    assert "depth" in soft("cut", "--depth", "-1", "--steps", "1").output
    assert "too wide" in soft("cut", "--kerf", "1", "--steps", "1").output
    assert "--kerf: only the scene cut" in soft("drop", "--kerf", "1", "--steps", "1").output


def test_your_own_tetrahedra_are_dropped(tmp_path, monkeypatch):
    """With a reader in place of meshio, which is optional and has many formats of its own."""
    block = solid_block((3, 2, 2), size=(0.3, 0.2, 0.2))
    content = SimpleNamespace(points=block.vertices, cells=[SimpleNamespace(type="tetra", data=block.tets)])
    monkeypatch.setitem(sys.modules, "meshio", SimpleNamespace(read=lambda path: content))
    (tmp_path / "brick.vtu").write_text("")
    record = str(tmp_path / "run.npz")
    words = ["drop", "--mesh", str(tmp_path / "brick.vtu"), "--steps", "25", "--youngs-modulus", "2e4"]
    result = soft(*words, "--record", record, "--device", "cpu")
    assert result.exception is None, result.output
    recording = Recording.load(record)
    states, floor = recording.bodies[0][2], recording.bodies[1][2][0, :, 2].max()
    assert len(recording.contact_points(1.0)) > 0
    assert floor < states[-1, :, 2].min() < floor + 0.12  # it lies on the floor, a contact distance above


def test_the_live_page_gets_the_simulation_that_was_asked_for(monkeypatch):
    shown = []

    @contextmanager
    def page(simulation):
        shown.append(simulation)

        def run(_, steps, after_step):
            for _ in range(steps or 1):
                simulation.step()
                after_step()

        yield type("Page", (), {"url": "address", "run": run})()

    monkeypatch.setattr("tangere.view.LiveViewer", page)
    result = soft("knot", "--view", "--youngs-modulus", "7e3", "--device", "cpu")
    assert result.exception is None, result.output
    assert [body.youngs_modulus for body in shown[0].bodies] == [7e3]
    assert "whole step" in result.output
    result = soft("drop", "--view", "--steps", "4", "--device", "cpu")
    assert result.exception is None, result.output
    assert shown[1].steps == 4


def test_the_examples_of_the_help_have_a_line_each():
    lines = [line.strip() for line in soft("--help").output.splitlines()]
    assert "tangere soft tori.npz --view" in lines
    assert not any("\\b" in line for line in lines)


def test_a_package_that_pictures_need_is_asked_for_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr("tangere.soft.simulation.Simulation.step", lambda _: pytest.fail("ran"))
    result = soft("tori", "--png", str(tmp_path / "strip.png"), "--device", "cpu")
    assert result.exit_code == 2
    assert "pillow" in result.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["tory"], "a scene is tori, knot, drop, cloth"),
        (["tori", "--mesh", "brick.vtu"], "only the scenes drop and cut"),
        (["knot", "--triangles", "3200"], "only the tori"),
        (["drop", "--mesh", "nowhere.msh"], "there is no file"),
        (["tori", "--youngs-modulus", "-1"], "youngs_modulus must be positive"),
        (["tori", "--png", "strip.jpg"], "must end in .png"),
        (["tori", "--record", "nowhere/run.npz"], "there is no folder"),
        (["nowhere.npz", "--view"], "no such file"),
        (["nowhere.npz", "--steps", "3"], "replayed as it is"),
        (["nowhere.npz", "--response", "penalty"], "replayed as it is"),
        (["tori", "--view", "--record", "run.npz"], "say how many steps"),
        (["tori", "--youngs-modulus", "1e300"], "at most 1e+12 Pa"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(words, reason):
    result = soft(*words, "--device", "cpu")
    assert result.exit_code == 2
    assert reason in result.output
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_damaged_recording_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 not all of it")
    for name, reason in (("other.npz", "not a recorded run"), ("torn.npz", "damaged")):
        result = soft(str(tmp_path / name), "--view")
        assert result.exit_code == 2
        assert reason in result.output
