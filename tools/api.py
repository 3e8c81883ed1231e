"""The API reference: writes docs/api.md from the `__all__` of the face and of its public rooms (`make api`).

Every class and function that is public is on the page once, under the shortest path that imports it; kernels' functions
and structs are not. The test suite fails when the page is stale.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import warp as wp

import tangere

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "api.md"

HEADER = """\
# API reference

`import tangere as tg` is the face. This page is generated from `__all__` by `make api`; the test suite fails when it is
stale.
"""

#: Rooms and parts of them that are used by name, and what they are used as.
ROOMS = {
    "tangere.query": "tg.query",
    "tangere.shape.generate": "tg.generate",
    "tangere.shape.generate.terrain": "tg.generate.terrain",
    "tangere.soft": "tg.soft",
    "tangere.soft.scenes": "tg.soft.scenes",
    "tangere.crowd": "tg.crowd",
    "tangere.crowd.scenarios": "tg.crowd.scenarios",
    "tangere.cells.generate": "tangere.cells.generate",
    "tangere.cells.maps": "tangere.cells.maps",
    "tangere.cells.tracking": "tangere.cells.tracking",
    "tangere.cells.registration": "tangere.cells.registration",
    "tangere.scene": "tg.scene",
    "tangere.view": "tg.view",
}


def page() -> str:
    """The text docs/api.md should have."""
    parts, seen = [HEADER], set[int]()
    face = [name for name in tangere.__all__ if not inspect.ismodule(getattr(tangere, name))]
    parts.append("## The face\n\n" + _entries("tangere", face, seen))
    for module, used_as in ROOMS.items():
        room = importlib.import_module(module)
        entries = _entries(module, public(room), seen)
        if entries:
            parts.append(f"## {used_as}\n\n{(room.__doc__ or '').strip().splitlines()[0]}\n\n{entries}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def public(module: Any) -> list[str]:
    """The names of a room that are on the page."""
    return sorted(getattr(module, "__all__", []), key=str.lower)


def _entries(module: str, names: list[str], seen: set[int]) -> str:
    return "\n\n".join(_directives(module, names, seen))


def _directives(module: str, names: list[str], seen: set[int]) -> Iterator[str]:
    for name in sorted(names, key=str.lower):
        value = getattr(importlib.import_module(module), name)
        if id(value) in seen or isinstance(value, wp.Function | wp.Kernel):
            continue
        kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else None
        if kind is None:
            continue
        seen.add(id(value))
        yield f"```{{eval-rst}}\n.. auto{kind}:: {module}.{name}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
