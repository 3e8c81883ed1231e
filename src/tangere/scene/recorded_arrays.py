"""Files of what was recorded: one `.npz` of plain arrays with a format and a version, read without pickle."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tangere.runtime import InputError, TangereError, writing

Recorded = TypeVar("Recorded")


def write_recorded(path: str | Path, kind: str, version: int, arrays: dict[str, Any]) -> None:
    """Write arrays, with the kind of recording they are, to `path`."""
    with writing(path), open(path, "wb") as file:
        np.savez_compressed(file, **{"format": kind, "version": version, **arrays})


def read_recorded(
    path: str | Path,
    what: str,
    kind: str,
    versions: Sequence[int],
    make: Callable[[dict[str, np.ndarray]], Recorded],
) -> Recorded:
    """What `make` makes of the arrays at `path`; whatever is wrong with them is told by the name of the file.

    Args:
        what: is read, as users call it: "a recorded run of soft bodies".
        kind: the format that the file must say.
        versions: of it that can be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files} if isinstance(file, np.lib.npyio.NpzFile) else {}
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise InputError(f"{path}: not {what}, or a damaged one: {error}") from error
    if str(arrays.get("format")) != kind:
        raise InputError(f"{path}: a file of arrays, but not {what}")
    version = str(arrays.get("version"))
    if version not in map(str, versions):
        told = " to ".join(str(v) for v in sorted({versions[0], versions[-1]}))
        raise InputError(f"{path}: recorded with version {version}; this tangere reads {told}")
    try:
        return make(arrays)
    except KeyError as error:
        raise InputError(f"{path}: the recording lacks {error}") from error
    except (TangereError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path}: the recording is damaged: {error}") from error
