"""Files that are to be written: what is wrong with them is said before the work where it can be, else after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from tangere.runtime.errors import InputError


def check_out_file(path: str | Path | None, option: str, suffix: str) -> None:
    """Raise unless `path`, given with `option`, ends in `suffix` and can be written; None is a file nobody wants."""
    if path is None:
        return
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise InputError(f"{path}: {option} writes a {suffix} file, so its name must end in {suffix}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"{path}: cannot be written: it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written: permission denied")


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[None]:
    """Write `path` inside: what the system refuses is told by the name of the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
