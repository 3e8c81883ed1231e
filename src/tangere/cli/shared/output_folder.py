"""Files a command is to write: what is wrong with them is said before the work, not after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tangere.runtime import InputError, writing


def make_out_folder(path: Path) -> None:
    """Make the folder `path`, and those above it, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: the folder cannot be made: {error.strerror or error}") from error


def write_report(path: Path, parts: Sequence[str]) -> None:
    """Write parts of a Markdown file, each a paragraph of its own."""
    with writing(path):
        path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
