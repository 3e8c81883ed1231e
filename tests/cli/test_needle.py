"""`tangere needle` drives needles, replays traces, records, draws and writes for other programs."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.needle import Recording
from tangere.shape.tets import solid_block


def needle(*words: str):
    return CliRunner().invoke(main, ["needle", *words])


@pytest.fixture
def hand(tmp_path) -> str:
    (tmp_path / "hand.csv").write_text("time,speed,spin\n0.0,0.05,0.0\n0.2,-0.05,1.0\n0.3,0.0,0.0\n")
    return str(tmp_path / "hand.csv")


def test_a_liver_is_punctured_recorded_drawn_and_shown_again(tmp_path, hand):
    pytest.importorskip("PIL")
    pytest.importorskip("matplotlib")
    names = ("run.npz", "force.png", "now.png", "trace.csv", "again.png", "again.glb")
    files = [str(tmp_path / name) for name in names]
    words = ["liver", "--trace", hand, "--record", files[0], "--plot", files[1], "--png", files[2]]
    result = needle(*words, "--save-trace", files[3], "--device", "cpu")
    assert result.exception is None, result.output
    for told in ("deepest [mm]", "largest force [N]", "a step, median and p99 [ms]", "wrote"):
        assert told in result.output
    assert "30 steps" in result.output
    recording = Recording.load(files[0])
    assert len(recording.curve) == 31  # every step, for the plot of the force
    assert recording.curve[:, 0].max() >= recording.numbers("force").max() > 0.9
    shown = needle(files[0], "--png", files[4], "--out", files[5])
    assert shown.exit_code == 0, shown.output
    assert all((tmp_path / name).stat().st_size > 50 for name in names)
    # The trace that was written does the same again.
    second = str(tmp_path / "second.npz")
    assert needle("liver", "--trace", files[3], "--record", second, "--device", "cpu").exit_code == 0
    again = Recording.load(second)
    assert all(
        np.array_equal(a.nodes, b.nodes) and a.numbers == b.numbers
        for a, b in zip(recording.frames, again.frames, strict=True)
    )


def test_cells_follow_the_tip_in_either_mode(hand):
    for words in (["self"], ["self", "--mode", "hard"], ["liver", "--mode", "soft"]):
        with_trace = [*words, "--trace", hand] if words[0] == "liver" else words
        result = needle(*with_trace)
        if words[0] == "liver":  # a hand that draws the needle out: not without tissue
            assert result.exit_code == 2
            assert "advance must be a length that is not negative" in result.output
        else:
            assert result.exception is None, result.output
            for told in ("cells split, merged", "late steps", "nearest part of the needle itself"):
                assert told in result.output


def test_a_needle_goes_into_your_own_tetrahedra(tmp_path, monkeypatch, hand):
    """With a reader in place of meshio, which is optional and has many formats of its own."""
    block = solid_block((3, 3, 3), size=(0.1, 0.1, 0.08), mirrored=True)
    content = SimpleNamespace(points=block.vertices, cells=[SimpleNamespace(type="tetra", data=block.tets)])
    monkeypatch.setitem(sys.modules, "meshio", SimpleNamespace(read=lambda path: content))
    (tmp_path / "own.vtu").write_text("")
    result = needle("liver", "--mesh", str(tmp_path / "own.vtu"), "--trace", hand, "--device", "cpu")
    assert result.exception is None, result.output
    assert "own: 0.3 s in 30 steps" in result.output


def test_a_needle_goes_into_a_vtu_file(tmp_path, hand):
    meshio = pytest.importorskip("meshio", reason="files of tetrahedra need the extra [tets]")
    block = solid_block((3, 3, 3), size=(0.1, 0.1, 0.08), mirrored=True)
    path = str(tmp_path / "own.vtu")
    meshio.Mesh(block.vertices, [("tetra", block.tets)]).write(path)
    for more in ([], ["--mode", "hard", "--save-trace", str(tmp_path / "in.csv")]):
        driven = ["--trace", hand] if not more else []
        result = needle("liver", "--mesh", path, *driven, *more, "--device", "cpu")
        assert result.exception is None, result.output
        assert "own: " in result.output
    meshio.Mesh(block.vertices, [("triangle", block.surface.faces)]).write(path)
    assert "contains no tetrahedra" in needle("liver", "--mesh", path).output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nose"], "nose: a scene is liver, brain, self, or a .npz file that --record wrote"),
        (["self", "--plot", "a.png"], "--plot: a needle that pushes no tissue feels no force"),
        (["liver", "--mode", "hard", "--plot", "a.png"], "--plot: a needle that pushes no tissue feels no force"),
        (["none.npz", "--mode", "hard"], "--mode: a recorded run is shown as it is"),
        (["none.npz"], "say what to do with a recorded run"),
        (["none.npz", "--view"], "none.npz: no such file"),
        (["liver", "--trace", "none.csv"], "none.csv: cannot be read"),
        (["liver", "--out", "run.obj"], ".glb"),
        (["self", "--mesh", "a.vtu"], "--mesh: the scene self has cells of its own"),
        (["liver", "--record", "run.txt"], "--record"),
    ],
)
def test_bad_input_is_told_in_one_sentence(words, message):
    result = needle(*words)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
