"""The file of a prepared part: a NumPy archive (.npz, no pickle) with a JSON header.

File:   the header has format, version, a digest of the mesh, and of every array its digest. Arrays are read when they
        are first asked for, and checked then.
Safe:   what is cut short, damaged, foreign or from a newer version is refused with the reason. Digests find damage, not
        malice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError
from tangere.shape.mesh import Mesh

FORMAT, VERSION = "tangere part", 1


def write_part(path: str | PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a part; a file that exists is replaced in one go."""
    whole = {
        "format": FORMAT,
        "version": VERSION,
        **header,
        "arrays": {name: _digest(array) for name, array in arrays.items()},
    }
    target = Path(path)
    unfinished = target.with_name(target.name + ".part")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, header=np.frombuffer(json.dumps(whole).encode(), np.uint8), **arrays)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def mesh_digest(mesh: Mesh) -> str:
    """What a mesh is, as 64 hexadecimal digits: equal for equal vertices and triangles, whatever the name."""
    return hashlib.sha256((_digest(mesh.vertices) + _digest(mesh.faces)).encode()).hexdigest()


class PartFile:
    """A file as `write_part` writes it; reads the header only, and arrays when they are asked for."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        with self._reading("header"):
            self.header: dict[str, Any] = self._read_header()

    def _read_header(self) -> dict[str, Any]:
        with self._archive() as archive:
            if "header" not in archive:
                raise self.refused("it is not a prepared part: it has no header")
            header = json.loads(archive["header"].tobytes().decode())
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self.refused("it is not a prepared part: its header says something else")
        version = header.get("version")
        if not isinstance(version, int) or version < 1:
            raise self.refused(f"its version {version!r} makes no sense")
        if version > VERSION:
            raise self.refused(f"it has version {version}, and this tangere reads versions up to {VERSION}")
        fields = {"name": str, "content": str, "cone_vectors": int, "arrays": dict}
        missing = [name for name, kind in fields.items() if not isinstance(header.get(name), kind)]
        if missing:
            raise self.refused(f"its header lacks {', '.join(missing)}")
        return header

    def array(self, name: str) -> np.ndarray:
        """One of the arrays."""
        with self._reading(name), self._archive() as archive:
            if name not in archive:
                raise self.refused(f"the array {name!r} is missing")
            array = archive[name]
        if _digest(array) != self.header["arrays"].get(name):
            raise self.refused(f"the array {name!r} is damaged")
        return array

    def _archive(self) -> Any:
        archive = np.load(self.path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise self.refused("it is not a prepared part")
        return archive

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except FileNotFoundError as error:
            raise self.refused("there is no such file") from error
        except Exception as error:  # damaged archives make zipfile and NumPy raise nearly anything
            raise self.refused(f"its {what} cannot be read, the file is cut short or damaged: {error}") from error

    def refused(self, reason: str) -> InputError:
        """The error that says why the file cannot be used."""
        return InputError(f"Prepared part {self.path.name!r}: {reason}")


def _digest(array: np.ndarray) -> str:
    content = np.ascontiguousarray(array)
    words = f"{content.dtype.descr} {content.shape}".encode()
    return hashlib.sha256(words + content.tobytes()).hexdigest()
