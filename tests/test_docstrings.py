"""The examples in docstrings run and print what they say, and what docstrings name exists."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import tangere

SOURCE = Path(tangere.__path__[0])
BENCH = Path(__file__).resolve().parents[1] / "bench"
MODULES = sorted(
    ".".join(("tangere", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)
#: Other packages whose names docstrings mention.
ELSEWHERE = {"concurrent", "dataclasses", "trimesh", "websockets"}


def test_there_are_examples():
    assert len(MODULES) >= 10


@pytest.mark.release
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted
    assert not results.failed


def test_what_docstrings_name_is_there():
    """Code in backticks, `tangere.x.y` and `module.py`: a name that nothing in the library has is of something gone."""
    names, texts = {path.stem for path in BENCH.glob("*.py")}, []
    for path in SOURCE.rglob("*.py"):
        names.update(path.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names.update(_identifiers(node))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                texts.append((path.relative_to(SOURCE).as_posix(), ast.get_docstring(node) or ""))
    gone = []
    for place, text in texts:
        for code in re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", text):
            known = code.split(".")[0] in ELSEWHERE or set(code.strip(".").split(".")) <= names
            gone += [] if known else [(place, code)]
        gone += [(place, code) for code in re.findall(r"\btangere(?:\.\w+)+", text) if not _exists(code)]
        gone += [(place, f"{stem}.py") for stem in re.findall(r"\b(\w+)\.py\b", text) if stem not in names]
    assert gone == []


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Every name that code defines, uses, imports or compares with as a short text."""
    for field in ("id", "attr", "arg", "name"):
        yield from str(getattr(node, field, "")).split(".")
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
        yield node.value


def _exists(code: str) -> bool:
    """Whether a dotted name is a module of the library, or something that one has."""
    value = tangere
    for k, name in enumerate(code.split(".")[1:], 2):
        with suppress(ImportError):
            importlib.import_module(".".join(code.split(".")[:k]))
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True
