"""Files a command is to write: what is wrong with them is said before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path

from tangere.runtime import InputError

__all__ = ["check_out_file", "make_out_folder"]


def check_out_file(path: Path | None, option: str, suffix: str) -> None:
    """Raise unless `path`, given with `option`, ends in `suffix` and can be written; None is a file nobody wants."""
    if path is None:
        return
    if path.suffix.lower() != suffix:
        raise InputError(f"{path}: {option} writes a {suffix} file, so its name must end in {suffix}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"{path}: cannot be written: it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written: permission denied")


def make_out_folder(path: Path) -> None:
    """Make the folder `path`, and those above it, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: the folder cannot be made: {error.strerror or error}") from error
