"""Rooms found by name, because nothing may import them: the documents as printed, and the room that draws.

The main road does without the documents; they are looked up when somebody asks for `mode="published"`. The room `view`
stands above all others, and things show themselves in notebooks and videos by it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def published(document: str) -> ModuleType:
    """The package of `tangere.published` that reproduces a document: "course", "redon_intervals" …"""
    return import_module(f"tangere.published.{document}")


def view_room() -> ModuleType:
    """`tangere.view`, loaded now."""
    return import_module("tangere.view")
