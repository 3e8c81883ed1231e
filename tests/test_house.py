"""The house stands as docs/architecture.md says: floors, doors, sizes and names."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import tangere
from tools.api import ROOMS

SOURCE = Path(tangere.__path__[0])
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in SOURCE.rglob("*.py")
}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
#: Words of the public face that several systems use.
SHARED_NAMES = {"Body", "Simulation", "Recorder", "Recording"}
#: Imports of another room's inner modules: docs/architecture.md says why.
INNER_DOORS = {
    ("soft.validation", "query.first_contact.deforming.culling"),
    ("soft.validation", "query.first_contact.primitives.edge_face"),
}
#: Where C++ stands in strings: what the compiler turns into SIMD instructions, and the thread pool.
NATIVE = ("geometry/simd/", "runtime/thread_pool/", "/cpu/")


def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imported(tree: ast.Module) -> set[str]:
    """Modules of the library that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tangere":
            stem = node.module.removeprefix("tangere").lstrip(".")
            inner = {f"{stem}.{alias.name}".lstrip(".") for alias in node.names}
            found |= {name if name in MODULES else stem for name in inner}
    return found - {""}


def test_other_rooms_come_in_by_the_door():
    doors = set()
    for name, tree in trees().items():
        room = name.split(".")[0]
        if room in ("", "published"):
            continue
        for other in imported(tree):
            inner = other.count(".") >= 2 or (other.count(".") == 1 and other not in PACKAGES)
            inner = inner and f"tangere.{other}" not in ROOMS
            if other.split(".")[0] != room and inner:
                doors.add((name, other))
    assert doors <= INNER_DOORS


def test_one_class_name_is_one_class():
    places = defaultdict(list)
    for name, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SHARED_NAMES} == {}


def test_no_folder_and_no_file_is_too_large():
    folders = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")
    assert [folder for folder, count in folders.items() if count > 15] == []
    assert [name for name, path in MODULES.items() if len(path.read_text(encoding="utf-8").splitlines()) > 600] == []


def test_imports_by_string_are_few():
    """They hide what a call loads: only the face, the lookup of documents, commands and optional packages do it.

    `tangere warm` goes through all modules there are.
    """
    allowed = {"", "cli", "cli.shared.kernels", "runtime.lookup"}
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            if getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
                argument = node.args[0]
                own = not isinstance(argument, ast.Constant) and "tangere" in ast.unparse(argument)
                assert not own or name in allowed, name


def test_the_glossary_has_the_words_of_the_field():
    page = (SOURCE.parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    # The line above the dashes is a table's header.
    rows = [line for line, below in zip(lines, [*lines[1:], ""]) if line[:1] == "|" and below[:2] != "|-"]
    terms = Counter(row.split("|")[1].strip() for row in rows if row[:2] != "|-")
    assert len(terms) > 40
    assert [term for term, count in terms.items() if count > 1] == []
    for word in ("conservative advancement", "time of impact", "thread pool", "SIMD", "island", "BVH", "narrow phase"):
        assert word.lower() in page.lower(), word


@pytest.mark.parametrize("word", ["desk", "story", "newspaper"])
def test_no_name_is_a_metaphor(word):
    named = [name for name in MODULES if word in name.split(".")[-1].split("_")]
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and word in node.name.lower().split("_"):
                named.append(f"{name}.{node.name}")
    assert named == []
