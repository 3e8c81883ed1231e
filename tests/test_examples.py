"""Every example runs, is short, tells its title, and writes a picture only when it is given a path; notebooks run."""

from __future__ import annotations

import ast
import json
import runpy
import sys
from functools import partial
from pathlib import Path

import pytest

import tangere

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))
#: What an example is called with so that it ends by itself and soon.
QUICKLY = {"watch_it": ["--check"], "a_million_queries": []}


def run(path: Path, arguments: list[str], monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", [path.name, *arguments])
    runpy.run_path(str(path), run_name="__main__")


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_starts_with_its_title(path):
    text = path.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
    assert len(text.splitlines()) <= 40
    assert ":" in title
    assert title.endswith(".")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_its_own_checks_hold(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(path, QUICKLY.get(path.stem, []), monkeypatch)
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_writes_its_picture_where_it_is_told(path, tmp_path, monkeypatch):
    """A draft of it: the ray caster has tests of its own."""
    image_module = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(tangere, "picture", partial(tangere.picture, size=(420, 280), samples=1))
    more = ["2000"] if path.stem == "a_million_queries" else []
    run(path, [str(tmp_path / "picture.png"), *more], monkeypatch)
    assert image_module.open(tmp_path / "picture.png").size[0] >= 400


def test_there_is_a_notebook_for_each_system():
    systems = {"crowds", "cylinders-on-terrain", "first-contact", "part-along-a-path", "rigid-worlds", "soft-bodies"}
    assert systems <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_results_and_its_code_runs(path, tmp_path, monkeypatch):
    """The build of the documentation executes it in a kernel; here with drafts of its pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tangere, "picture", partial(_draft, tangere.picture))
    names: dict = {}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert "".join(cells[0]["source"]).startswith("# ")
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            assert cell["execution_count"] is None
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
    assert not list(tmp_path.iterdir())


def _draft(picture, *things, **options):
    return picture(*things, **{**options, "size": (120, 80), "samples": 1})
