"""`tangere crowd` runs scenarios, says how it went, and leaves pictures and trajectories."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.runtime import InputError


@pytest.mark.release
def test_a_corridor_leaves_its_pictures_and_trajectories(tmp_path):
    pytest.importorskip("matplotlib")
    command = ["crowd", "corridor", "--points", "40", "--bodies", "2", "--seconds", "1", "--save", "npz"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert "40 points, 2 bodies" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"corridor.png", "corridor-measures.png", "corridor.npz"}
    with np.load(tmp_path / "corridor.npz") as file:
        assert file["positions"].shape == (3, 40, 3)


def test_the_scene_of_a_crowd_is_saved_where_its_pictures_are(tmp_path):
    pytest.importorskip("matplotlib")
    trimesh = pytest.importorskip("trimesh")
    command = ["crowd", "corridor", "--points", "10", "--bodies", "1", "--seconds", "0.2", "--save", "glb"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert len(trimesh.load(tmp_path / "corridor.glb").geometry) >= 4  # ground, walls, points and a box


def test_what_does_not_go_together_is_told_in_a_sentence(tmp_path):
    for words, reason in (
        (["swarm", "--bodies", "3"], "have no shape"),
        (["swarm", "--behaviour", "orca"], "planar"),
        (["corridor", "--points", "100000"], "do not fit"),
        (["corridor", "--seconds", "nan"], "--seconds"),
        (["corridor", "--seed", "-1"], "--seed"),
        (["snake", "--bodies", "30"], "30 snakes do not fit"),
        (["circle", "--bodies", "400"], "400 boxes do not fit"),
    ):
        result = CliRunner().invoke(main, ["crowd", *words, "--out", str(tmp_path), "--device", "cpu"])
        assert result.exit_code == 2, result.output
        assert reason in result.output


def test_a_format_that_cannot_be_written_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    command = [
        "crowd",
        "corridor",
        "--points",
        "10",
        "--bodies",
        "0",
        "--save",
        "parquet",
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "pyarrow" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("module", "words"), [("matplotlib", []), ("viser", ["--view"])])
def test_a_missing_package_is_told_before_the_work(module, words, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("tangere.crowd.scenarios.corridor", lambda *_, **__: pytest.fail("the work was begun"))
    result = CliRunner().invoke(main, ["crowd", "corridor", *words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "pip install 'tangere[view]'" in result.output
    assert not (tmp_path / "out").exists()


def test_trajectories_are_kept_even_if_a_picture_cannot_be_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")

    def refuse(*_):
        raise InputError("no picture")

    monkeypatch.setattr("tangere.view.top_view", refuse)
    command = ["crowd", "corridor", "--points", "10", "--bodies", "0", "--seconds", "0.1", "--save", "csv"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 2
    assert "no picture" in result.output
    assert (tmp_path / "corridor.csv").read_text().count("\n") > 10


@pytest.mark.release
def test_a_page_shows_a_crowd_and_an_obstacle_dragged_through_it():
    pytest.importorskip("viser")
    from tangere.crowd.scenarios import corridor
    from tangere.view import CrowdViewer

    simulation = corridor(60, 2, length=60.0, width=24.0, device="cpu")
    before = len(simulation.map.leaves)
    with CrowdViewer(simulation) as viewer:
        assert viewer.run(3) == 3
        viewer.drag((30.0, 12.0, 0.0))
        viewer.run(2)
        assert len(simulation.map.leaves) > before
        assert "the obstacle blocks" in viewer.summary()
        viewer.drag((34.0, 12.0, 0.0))
        viewer.take_away()
        assert viewer.run(2) == 2
        assert not simulation.map.arrays.obstacle.numpy().any()


@pytest.mark.release
def test_the_page_is_there_while_the_crowd_is_recorded():
    pytest.importorskip("viser")
    from tangere.crowd.scenarios import planet, swarm
    from tangere.view import CrowdViewer

    for simulation in (planet(20, 2, device="cpu"), swarm(20, device="cpu")):
        with CrowdViewer(simulation) as viewer:
            found = viewer.record(0.4, record=0.1)
            assert found.positions.shape == (5, 20, 3)
            assert not viewer.ended
            assert {"/sides", "/points"} <= viewer._drawn.keys()


def test_bodies_are_drawn_above_their_ground():
    from tangere.crowd import cell_triangles
    from tangere.crowd.scenarios import planet
    from tangere.view.crowd_scene import prism

    simulation = planet(5, 3, device="cpu")
    for k in range(3):
        outline = simulation.bodies.outline(k)
        corners = prism(outline)
        assert (corners[: len(outline)] == outline).all()
        roof = corners[len(outline) : -1]
        assert (np.linalg.norm(roof, axis=1) > np.linalg.norm(outline, axis=1) + 0.2).all()
        assert np.linalg.norm(corners[-1]) > 30.0  # the radius of the planet
    flat, raised = (cell_triangles(simulation.map, raised=up)[0] for up in (False, True))
    assert np.linalg.norm(raised, axis=2).max() > np.linalg.norm(flat, axis=2).max() + 0.5
    assert len(simulation.scene().things) >= 5


PLAN = "POLYGON ((0 0, 9 0, 9 4, 4.5 4, 4.5 1, 4 1, 4 4, 0 4, 0 0))"


def test_a_floor_plan_is_run_told_and_drawn(tmp_path):
    pytest.importorskip("shapely")
    plan = tmp_path / "plan.wkt"
    plan.write_text(PLAN)
    command = ["crowd", str(plan), "--exits", "8,0,9,4", "--agents", "20", "--seconds", "60", "--save", "sqlite"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path / "out"), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert "the last one" in result.output
    assert "by exit 0" in result.output
    for name in ("plan.png", "plan-n-t.png", "plan.sqlite"):
        assert (tmp_path / "out" / name).stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--exits"),
        (["--exits", "1,2,3"], "x0,y0,x1,y1"),
        (["--exits", "20,0,21,1"], "off the plan"),
        (["--exits", "8,0,9,4", "--bodies", "3"], "--bodies"),
        (["--exits", "8,0,9,4", "--agents", "100000"], "people fit"),
    ],
)
def test_what_is_wrong_with_a_floor_plan_is_told_before_the_work(words, told, tmp_path):
    pytest.importorskip("shapely")
    plan = tmp_path / "plan.wkt"
    plan.write_text(PLAN)
    result = CliRunner().invoke(main, ["crowd", str(plan), *words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["--exits", "0,0,1,1"], ["--stay"], ["--behaviour", "speed"], ["--save", "sqlite"]])
def test_what_is_for_floor_plans_is_refused_for_scenarios(words, tmp_path):
    result = CliRunner().invoke(main, ["crowd", "corridor", *words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "plan" in result.output


def test_who_has_no_way_stays_if_told_so(tmp_path):
    pytest.importorskip("shapely")
    plan = tmp_path / "parts.wkt"
    plan.write_text("MULTIPOLYGON (((0 0, 6 0, 6 4, 0 4, 0 0)), ((8 0, 14 0, 14 4, 8 4, 8 0)))")
    command = ["crowd", str(plan), "--exits", "5,0,6,4", "--agents", "10", "--seconds", "20"]
    command += ["--out", str(tmp_path / "out"), "--device", "cpu"]
    told = CliRunner().invoke(main, command)
    assert told.exit_code == 2
    assert "no way for" in told.output
    assert "--stay" in told.output
    assert not (tmp_path / "out").exists()
    stayed = CliRunner().invoke(main, [*command, "--stay"])
    assert stayed.exit_code == 0, stayed.output
    assert "without a way" in stayed.output
