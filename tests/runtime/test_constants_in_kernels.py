"""A constant that a kernel casts is assigned where the cast stands: what reads it before reads an unset variable."""

from __future__ import annotations

import ast
from pathlib import Path

import tangere

SOURCES = sorted(Path(tangere.__file__).parent.rglob("*.py"))
CASTS = {"float64", "float32", "int32", "int64", "uint8", "uint64", "float", "int"}


def read_before_cast(source: str) -> list[tuple[str, int]]:
    """Names and lines of constants of a module that a kernel or function of Warp reads before it casts them."""
    tree = ast.parse(source)
    constants = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for part in node.targets
        for target in ast.walk(part)
        if isinstance(target, ast.Name) and target.id.lstrip("_").isupper()
    }
    found = []
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or not any(_is_warp(one) for one in function.decorator_list):
            continue
        read: dict[str, list[tuple[str, int]]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in CASTS and node.args[0].id in constants:
                    read.setdefault(node.args[0].id, []).append((name, node.lineno))
                if name in CASTS or name == "range":  # loops over constants are unrolled before anything is read
                    node.args[0].id = ""
            elif isinstance(node, ast.Name) and node.id in constants:
                read.setdefault(node.id, []).append(("", node.lineno))
        for name, uses in read.items():
            cast = [use for use in uses if use[0].startswith("float")]
            if cast and any(line < cast[0][1] and kind != cast[0][0] for kind, line in uses):
                found.append((f"{function.name}: {name}", cast[0][1]))
    return found


def _is_warp(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in ("func", "kernel")


def test_no_kernel_reads_a_constant_before_it_casts_it():
    found = {path.name: wrong for path in SOURCES if (wrong := read_before_cast(path.read_text(encoding="utf-8")))}
    assert found == {}


def test_such_a_kernel_would_be_found():
    kernel = "X = wp.constant(1.0)\n@wp.func\ndef f():\n    low = -X\n    high = wp.float64(X)\n"
    assert read_before_cast(kernel) == [("f: X", 5)]
    assert read_before_cast(kernel.replace("-X", "wp.float64(0.0)")) == []
