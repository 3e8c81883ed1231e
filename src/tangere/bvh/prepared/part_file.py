"""The file of a prepared part: a NumPy archive (.npz, no pickle) with a JSON header.

File:   the header has format, version, a digest of the mesh, and of every array its digest. Arrays are read when they
        are first asked for, and checked then. They are not compressed and begin at multiples of 64 bytes, so that
        processes may map them into memory and share the pages (`mapped`).
Safe:   what is cut short, damaged, foreign or from a newer version is refused with the reason. Digests find damage, not
        malice.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError
from tangere.shape.mesh import Mesh

FORMAT, VERSION = "tangere part", 1
_ALIGNED = 64  #: arrays begin at multiples of so many bytes
_LOCAL_HEADER = 30  #: bytes before the name of a file in an archive
_ZIP64 = 20  #: bytes of the field for files beyond 4 GB, which zipfile puts first


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
        with zipfile.ZipFile(unfinished, "w") as archive:
            _append(archive, "header", np.frombuffer(json.dumps(whole).encode(), np.uint8))
            for name, array in arrays.items():
                _append(archive, name, array)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def mesh_digest(mesh: Mesh) -> str:
    """What a mesh is, as 64 hexadecimal digits: equal for equal vertices and triangles, whatever the name."""
    return hashlib.sha256((_digest(mesh.vertices) + _digest(mesh.faces)).encode()).hexdigest()


def _append(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    """An array as `numpy.savez` stores it, but where it can be mapped."""
    entry = zipfile.ZipInfo(f"{name}.npy")
    begin = archive.start_dir + _LOCAL_HEADER + len(entry.filename) + _ZIP64 + 4
    entry.extra = struct.pack("<HH", 0x4154, -begin % _ALIGNED) + bytes(-begin % _ALIGNED)
    with archive.open(entry, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


class PartFile:
    """A file as `write_part` writes it; reads the header only, and arrays when they are asked for.

    Args:
        mapped: arrays are mapped into memory, where they begin at a fitting place; else they are read.
    """

    def __init__(self, path: str | PathLike[str], *, mapped: bool = False) -> None:
        self.path, self._mapped = Path(path), mapped
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
            array = self._map(archive, name) if self._mapped else None
            array = archive[name] if array is None else array
        if _digest(array) != self.header["arrays"].get(name):
            raise self.refused(f"the array {name!r} is damaged")
        return array

    def _map(self, archive: Any, name: str) -> np.ndarray | None:
        """The array in the pages of the file, not to be written to; None where it cannot be had so."""
        entry = archive.zip.getinfo(f"{name}.npy")
        with self.path.open("rb") as file:
            file.seek(entry.header_offset + _LOCAL_HEADER - 4)
            file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
            if entry.compress_type != zipfile.ZIP_STORED or np.lib.format.read_magic(file) != (1, 0):
                return None
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            if file.tell() % _ALIGNED or fortran or dtype.hasobject or not np.prod(shape):
                return None
            return np.memmap(file, dtype, "r", file.tell(), shape)

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
    digest = hashlib.sha256(f"{content.dtype.descr} {content.shape}".encode())
    digest.update(content.reshape(-1).view(np.uint8) if content.size else b"")
    return digest.hexdigest()
