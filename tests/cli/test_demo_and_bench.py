"""The demo and the benchmark end by themselves and leave what they promise."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import bench, main
from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.showcase import cases, random_batch
from tangere.cli.shared.tables import markdown_table, quantity


def test_the_demo_leaves_a_picture_and_a_table_of_real_answers(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out"), "--queries", "2000", "--width", "160"])
    assert result.exception is None
    text = (tmp_path / "out" / "demo.md").read_text()
    for case in cases():
        row = next(line for line in text.splitlines() if f"| {case.name} |" in line)
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1] == str(case.triangles)
        assert 0.0 < float(cells[2].removeprefix("t = ")) < 1.0
        assert int(cells[4]) >= 1
    for name, bodies in (("27 boxes in a bin", 32), ("a soft block is cut", 3)):  # the block is two in the end
        row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert int(cells[1]) == bodies
        assert int(cells[4]) > 50
        assert cells[5] == "0"  # pairs that overlap
    image = np.asarray(image_module.open(tmp_path / "out" / "demo.png").convert("RGB"))
    assert image.shape[1] > 3 * 160
    assert image.std() > 10
    for kind in ("vertex-face", "edge-edge"):
        assert kind in text
        assert kind in result.stdout


def test_the_demo_refuses_a_folder_that_cannot_be_made_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("tangere.first_contact", lambda *_, **__: pytest.fail("the work was begun"))
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "file" / "out")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "folder cannot be made" in result.stderr


@pytest.mark.parametrize(("command", "module"), [("demo", "PIL"), ("bench", "matplotlib")])
def test_a_missing_package_is_told_before_the_work(command, module, tmp_path, monkeypatch):
    for name in ("tangere.check_path", "tangere.query.vertex_face"):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("the work was begun"))
    monkeypatch.setitem(sys.modules, module, None)
    option = ["--out", tmp_path / "out"] if command == "demo" else ["--png", tmp_path / "rates.png"]
    result = CliRunner().invoke(main, [command, *map(str, option)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'tangere[view]'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_bench_reports_every_query_with_its_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "_SIZES", (100, 1000))
    png = tmp_path / "rates.png"
    result = CliRunner().invoke(main, ["bench", "--seconds", "0", "--json", "--threads", "1", "--png", str(png)])
    assert result.exception is None
    data = json.loads(result.stdout)
    assert data["threads"] == 1
    names = [row["name"] for row in data["results"]]
    assert names[:4] == ["vertex-face", "vertex-face", "edge-edge", "edge-edge"]
    assert len(names) == 4 + len(cases())
    for row in data["results"]:
        assert row["runs"] >= 1
        assert row["per_second"] == pytest.approx(row["items"] / row["seconds"])
    assert png.stat().st_size > 1000


def test_numbers_that_json_lacks_are_null_at_any_depth():
    data = {"a": [float("nan"), 1.5, [float("-inf")]], "b": (True, "inf", 2), "c": float("inf")}
    assert json_text(data) == '{"a": [null, 1.5, [null]], "b": [true, "inf", 2], "c": null}'


def test_random_batches_repeat_and_hold_hits_and_misses():
    x0, x1 = random_batch(500)
    again, _ = random_batch(500)
    assert x0.shape == x1.shape == (500, 4, 3)
    assert (x0 == again).all()


def test_numbers_are_written_for_people_and_tables_as_markdown():
    assert [quantity(v) for v in (12.0, 12_345.0, 4_567_000.0, 2e9)] == ["12", "12.3 k", "4.57 M", "2 G"]
    assert markdown_table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
