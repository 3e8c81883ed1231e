"""`tangere clash`: verdicts, exit codes, and files left behind."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.shape.generate import box


@pytest.fixture
def folder(tmp_path):
    """Millimetres: a base, a block on it, a bar through the block, and something in the base."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for name, size, place in (
        ("base", (100, 100, 20), (0, 0, 0)),
        ("block [1]", (40, 40, 40), (0, 0, 30)),
        ("bar", (80, 10, 10), (0, 0, 30)),
        ("lost", (5, 5, 5), (30, 30, 0)),
    ):
        pose = np.eye(4)
        pose[:3, 3] = place
        box(size=size).at(pose).save(parts / f"{name}.ply")
    return parts


def call(*words: object):
    return CliRunner().invoke(main, ["clash", *(str(word) for word in words), "--device", "cpu"])


def test_clashes_are_listed_by_kind_with_their_depth_and_exit_with_1(folder):
    result = call(folder, "--units", "mm")
    assert result.exit_code == 1
    assert result.stdout.startswith("1 inside, 1 hard, 1 touching")
    assert "block [1]" in result.stdout
    assert re.search(r"hard, 0\.0\d+ to 0\.0\d+ m", result.stdout)


def test_json_has_every_row_and_allowed_pairs_are_left_out(folder):
    words = (folder, "--units", "mm", "--json", "--allow", "bar", "block [1]", "--allow", "base", "lost")
    result = call(*words, "--removal", "bar")
    assert result.exit_code == 0  # touching is no clash
    data = json.loads(result.stdout)
    assert data["counts"] == {"duplicate": 0, "inside": 0, "hard": 0, "touching": 1, "near": 0}
    assert [part["name"] for part in data["parts"]] == ["bar", "base", "block [1]", "lost"]
    (row,) = data["clashes"]
    assert {row["a"], row["b"]} == {"base", "block [1]"}
    assert row["depth_lower"] is None
    ways = data["removal"]["directions"]
    assert len(ways) == 6
    assert all(way["blockers"][0] == "block [1]" and not way["free"] for way in ways)


def test_a_page_has_a_picture_of_each_clash_and_a_sheet_the_worst(folder, tmp_path):
    image_module = pytest.importorskip("PIL.Image", reason="needs the extra [view]")
    page, sheet = tmp_path / "clashes.html", tmp_path / "clashes.png"
    files = ("--html", page, "--png", sheet)
    result = call(folder, "--units", "mm", *files, "--removal", "block [1]", "--directions", "26")
    assert result.exit_code == 1
    assert "free but for" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == 3
    assert "1 inside, 1 hard, 1 touching" in text
    assert "block [1]" in text
    assert image_module.open(sheet).size[0] > 1200


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.step"], "there is no file"),
        (["--clearance", "-1"], "clearance must be"),
        (["--png", "a.jpg"], "--png"),
        (["--allow", "bar", "screw"], "of the name 'screw'"),
        (["--removal", "screw"], "of the name 'screw'"),
    ],
)
def test_bad_input_is_told_in_one_sentence(folder, words, told):
    result = call(*words) if words[0].endswith("step") else call(folder, "--units", "mm", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
