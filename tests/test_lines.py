"""Tests of the count of lines of code by room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import lines
from tools.lines import code_lines, definition_lines, later_lines, lines_by_room

MODULE = '''"""A module."""

import os

NAME = 1  # a comment


@cache
def one():
    """What it does."""
    # why

    return os.name


class Two:
    """A class."""

    def three(self):
        return (
            1,
        )
'''


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    assert code_lines(MODULE) == 10


@pytest.mark.parametrize(("name", "count"), [("NAME", 1), ("one", 3), ("Two", 5), ("Two.three", 4), ("Four", 0)])
def test_definitions_are_counted_with_their_decorators(name: str, count: int) -> None:
    assert definition_lines(MODULE, name) == count


LATER = """
modules = {"rooms" = ["new", "old/added.py"], "gone" = ["gone"]}
before = {"old/grown" = 4}
definitions = {"old/kept.py" = ["one", "gone"], "gone.py" = ["one"]}
lines = {"__init__.py" = 2, "old/kept.py" = -1}
"""


def test_what_was_added_later_is_counted_by_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__init__.py", "new/module.py", "old/added.py", "old/kept.py", "old/grown/module.py"):
        path = tmp_path / "tangere" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE, encoding="utf-8")
    listed = tmp_path / "later.toml"
    listed.write_text(LATER, encoding="utf-8")
    monkeypatch.setattr(lines, "_LATER", listed)
    assert lines_by_room(tmp_path) == {"face": 10, "new": 10, "old": 30}
    assert +later_lines(tmp_path) == {"face": 2, "new": 10, "old": 10 + 6 + 3 - 1}
