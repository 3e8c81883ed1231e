"""`tangere check`: verdicts, exit codes, and files left behind."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from tangere.cli import main
from tangere.motion import Path
from tangere.shape.generate import box


@pytest.fixture
def folder(tmp_path):
    """A box of side 1, two obstacles, and two paths from t = 10 to t = 20: one ends inside the first obstacle."""
    box(size=(1.0, 1.0, 1.0)).save(tmp_path / "part.ply")
    for name, place in (("near.ply", (4, 0, 0)), ("other.ply", (0, 6, 0))):
        pose = np.eye(4)
        pose[:3, 3] = place
        box(size=(1.0, 1.0, 1.0)).at(pose).save(tmp_path / name)
    for name, end in (("bad.csv", (4, 0, 0)), ("good.csv", (2, 0, 0))):
        poses = np.tile(np.eye(4), (2, 1, 1))
        poses[1, :3, 3] = end
        Path(poses, clock=(10.0, 20.0)).save(tmp_path / name)
    return tmp_path


def call(folder, path: str, *more: str):
    obstacles = [str(folder / name) for name in ("other.ply", "near.ply")]
    words = ["check", str(folder / "part.ply"), "--against", *obstacles, "--path", str(folder / path), *more]
    return CliRunner().invoke(main, words)


def test_a_path_that_touches_says_when_and_with_what_and_exits_with_1(folder):
    result = call(folder, "bad.csv")
    assert result.exit_code == 1
    assert "contact at t = 17.4999" in result.stdout or "contact at t = 17.5" in result.stdout
    assert "near.ply" in result.stdout


def test_a_free_path_tells_its_clearance_and_exits_with_0(folder):
    result = call(folder, "good.csv")
    assert result.exit_code == 0
    assert result.stdout.startswith("free")
    assert "clearance: 1 m at t = 20 (near.ply)" in result.stdout


def test_names_that_look_like_markup_are_printed_as_they_are_and_a_sentence_is_one_line(folder):
    name = "[left] [red]door " + 50 * "x" + ".ply"
    folder.joinpath("odd").mkdir()
    for old, new in (("near.ply", name), ("part.ply", "[bold]part.ply")):
        (folder / "odd" / new).write_bytes((folder / old).read_bytes())
    part, obstacle = str(folder / "odd" / "[bold]part.ply"), str(folder / "odd" / name)
    result = CliRunner().invoke(main, ["check", part, "--against", obstacle, "--path", str(folder / "bad.csv")])
    assert result.exit_code == 1, result.output
    assert f"with {name}   ([bold]part.ply along bad.csv)\n" in result.stdout
    assert f"({name})\n" in result.stdout
    told = CliRunner().invoke(main, ["info", part])
    assert "[bold]part.ply" in told.stdout


def test_json_has_times_of_the_file_verdicts_and_clearances(folder):
    answer = json.loads(call(folder, "bad.csv", "--json", "--instants", "2").stdout)
    assert answer["status"] == "contact"
    assert answer["time"] == pytest.approx(17.5, abs=1e-4)
    assert [segment["obstacle"] for segment in answer["segments"]] == ["near.ply"]
    clearance = answer["clearance"]
    regular = [row for row, time in enumerate(clearance["time"]) if time in (10.0, 15.0, 20.0)]
    assert [clearance["upper"][row] for row in regular] == pytest.approx([3.0, 1.0, 0.0], abs=1e-9)
    assert (clearance["least"], clearance["certain"]) == (0.0, 0.0)
    assert clearance["least_time"] == answer["time"]
    touching = clearance["time"].index(answer["time"])
    assert clearance["upper"][touching] == pytest.approx(0.0, abs=1e-5)
    assert clearance["obstacle"][touching] == "near.ply"
    assert abs(answer["contacts"][0]["normal"][0]) == pytest.approx(1.0)


def test_times_since_1970_keep_their_decimals_and_contacts_are_not_told_late(folder):
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, 0, 3] = 4.0
    Path(poses, clock=(1.7e9, 1.7e9 + 1.0)).save(folder / "epoch.csv")
    out = call(folder, "epoch.csv").stdout
    assert "contact at t = 1700000000.749999" in out
    assert "clearance: 0 m at t = 1700000000.74999 (near.ply)\n" in out
    row = next(line for line in out.splitlines() if line.startswith("│ 0"))
    assert row.split("│")[2:6] == [" 1700000000 ", " 1700000001 ", " contact ", " 1700000000.74999 "]


def test_a_thin_wall_that_no_instant_sees_leaves_no_clearance(folder):
    wall = np.eye(4)
    wall[0, 3] = 2.0
    box(size=(0.01, 3.0, 3.0)).at(wall).save(folder / "near.ply")
    result = call(folder, "bad.csv", "--instants", "1")
    assert result.exit_code == 1
    told = re.search(r"clearance: (\S+) m at t = (\S+) \(near.ply\)\n", result.stdout)
    assert told is not None
    assert float(told[1]) <= 1e-5  # the gap at which the contact was found
    assert 13.737 < float(told[2]) <= 13.7375


def test_a_free_path_is_certain_to_keep_the_separation_that_was_asked_for(folder):
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[:, :2, 3] = [(0.0, 1.6), (8.0, 1.6)]
    Path(poses).save(folder / "past.csv")
    out = call(folder, "past.csv", "--separation", "0.4", "--instants", "1").stdout
    assert out.startswith("free")
    assert "certainly 0.54 m all the way" in out
    out = call(folder, "past.csv", "--separation", "0.4", "--instants", "1", "--accuracy", "0.9").stdout
    assert "certainly 0.4 m all the way" in out


def test_the_plot_comes_down_to_the_contact_and_marks_it(folder, monkeypatch):
    plots = []
    monkeypatch.setattr("tangere.view.plot_lines", lambda path, series, **_: plots.append(series))
    call(folder, "bad.csv", "--instants", "1", "--plot", str(folder / "plot.png"))
    call(folder, "good.csv", "--plot", str(folder / "plot.png"))
    touching, free = plots
    (time,), (gap,) = touching["first contact"]
    assert time == pytest.approx(17.5, abs=1e-4)
    assert gap == pytest.approx(0.0, abs=1e-5)
    assert time in touching["measured"][0]
    assert min(touching["measured"][1]) == 0.0
    assert "first contact" not in free


def test_the_plot_is_nowhere_above_what_is_certain(folder, monkeypatch):
    plots = []
    monkeypatch.setattr("tangere.view.plot_lines", lambda path, series, **_: plots.append(series))
    call(folder, "good.csv", "--instants", "3", "--plot", str(folder / "plot.png"))
    answer = json.loads(call(folder, "good.csv", "--instants", "3", "--json").stdout)
    x, y = plots[0]["certain between two measurements"]
    assert np.array(x)[::2].tolist() == answer["clearance"]["time"][:-1]
    assert np.array(x)[1::2].tolist() == answer["clearance"]["time"][1:]
    assert y[::2] == y[1::2]
    assert min(y) == answer["clearance"]["certain"]


@pytest.fixture
def mounted(tmp_path):
    """A peg of 24 sides in the round hole of a block, its facets across those of the hole, and a lid above it."""
    peg = trimesh.creation.cylinder(radius=0.01, height=0.04, sections=24)
    block = trimesh.creation.annulus(r_min=0.01, r_max=0.03, height=0.04, sections=36)
    lid = trimesh.creation.box((0.02, 0.02, 0.01), transform=trimesh.transformations.translation_matrix((0, 0, 0.065)))
    for name, solid in (("peg", peg), ("block", block), ("lid", lid)):
        solid.export(tmp_path / f"{name}.stl")
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, 2, 3] = 0.1
    Path(poses, clock=(0.0, 2.0)).save(tmp_path / "out.csv")

    def run(*more):
        words = ["check", "peg.stl", "--against", "block.stl", *more, "--path", "out.csv"]
        return CliRunner().invoke(
            main, [f"{tmp_path}/{word}" if word.endswith((".stl", ".csv")) else word for word in words]
        )

    return run


def test_a_mounted_part_comes_out_but_for_a_skin_and_meets_the_lid(mounted):
    assert mounted().exit_code == 1
    free = mounted("--leaving")
    assert free.exit_code == 0, free.output
    skin = json.loads(mounted("--leaving", "--json").stdout)["skin"]
    sagitta = 0.01 * (1.0 - np.cos(np.pi / 24)) + 0.03 * (1.0 - np.cos(np.pi / 36))  # the largest of each
    assert sagitta < skin["depth"] < 1.1 * sagitta
    assert free.stdout.startswith(f"free but for {skin['depth']:.3g} m ({skin['deepest']:.3g} m at edges)")
    blocked = mounted("lid.stl", "--leaving")
    assert blocked.exit_code == 1
    assert re.match(r"contact, deeper than .* at t = 0\.80\d* with lid.stl", blocked.stdout)
    assert mounted("--leaving", "--skin=1e-6").exit_code == 1  # less than the facets cross
    assert "skin" in mounted("--skin=1e-6").stderr


@pytest.mark.parametrize("suffix", ["glb", "usda", "pvd"])
def test_the_whole_path_is_written_for_other_programs(suffix, folder):
    result = call(folder, "bad.csv", "--out", str(folder / f"way.{suffix}"))
    assert result.exit_code == 1
    assert f"way.{suffix}" in result.stderr
    assert (folder / f"way.{suffix}").stat().st_size > 200
    refused = call(folder, "bad.csv", "--out", str(folder / "way.doc"))
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_pictures_and_plots_are_written(folder):
    result = call(folder, "bad.csv", "--png", str(folder / "out.png"), "--plot", str(folder / "plot.png"))
    assert result.exit_code == 1
    for name in ("out.png", "plot.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("path", "more", "reason"),
    [
        ("missing.csv", (), "no such file"),
        ("part.ply", (), "cannot be read as a CSV file"),
        ("bad.csv", ("--png", "x.jpg"), ".png"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, path, more, reason):
    result = call(folder, path, *more)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_prepared_parts_give_the_same_verdict(folder):
    runner = CliRunner()
    meshes = [str(folder / name) for name in ("part.ply", "near.ply", "other.ply")]
    result = runner.invoke(main, ["convert", *meshes, "--out", str(folder / "parts"), "--density", "7800"])
    assert result.exit_code == 0, result.output
    parts = [str(folder / "parts" / name) for name in ("part.npz", "other.npz", "near.npz")]
    path = ["--path", str(folder / "bad.csv"), "--json"]
    prepared = json.loads(runner.invoke(main, ["check", parts[0], "--against", *parts[1:], *path]).stdout)
    plain = json.loads(call(folder, "bad.csv", "--json").stdout)
    assert prepared["time"] == plain["time"]
    assert prepared["contacts"][0]["obstacle"] == "near.npz"


def test_a_foreign_archive_is_refused_as_a_part(folder):
    np.savez(folder / "foreign.npz", a=np.zeros(3))
    result = CliRunner().invoke(main, ["info", str(folder / "foreign.npz")])
    assert result.exit_code == 2
    assert "foreign.npz" in result.stderr


def test_two_meshes_with_one_name_are_not_written_over_each_other(folder):
    (folder / "b").mkdir()
    box().save(folder / "b" / "part.ply")
    words = ["convert", str(folder / "part.ply"), str(folder / "b" / "part.ply"), "--out", str(folder / "parts")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "part.npz" in result.stderr


@pytest.mark.parametrize(("option", "module"), [("--png", "PIL"), ("--plot", "matplotlib"), ("--view", "viser")])
def test_a_missing_package_is_told_before_the_work(option, module, folder, monkeypatch):
    monkeypatch.setattr("tangere.check_path", lambda *_, **__: pytest.fail("the work was begun"))
    monkeypatch.setitem(sys.modules, module, None)
    result = call(folder, "bad.csv", option, *([] if option == "--view" else [str(folder / "x.png")]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'tangere[view]'" in result.stderr


def test_a_path_with_w_last_and_no_header_needs_its_order(folder):
    (folder / "tum.txt").write_text("# t x y z qx qy qz qw\n10 0 0 0 0 0 0 1\n20 4 0 0 0 0 0 1\n")
    told = call(folder, "tum.txt", "--quaternion", "xyzw", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["time"] == pytest.approx(17.5, abs=1e-4)
    assert call(folder, "tum.txt").exit_code == 2
