"""The documents as printed, looked up by name when they are asked for: nothing on the main road imports them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["published"]


def published(document: str) -> ModuleType:
    """The package of `tangere.published` that reproduces a document: "course", "redon_intervals" …"""
    return import_module(f"tangere.published.{document}")
