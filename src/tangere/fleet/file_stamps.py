"""What files are: digests of their bytes and of what they name, so that jobs that have changed are told.

A robot's file names meshes, which are looked for beside and above it; a .gltf scene has .bin files beside it; a
folder is the meshes in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ASSEMBLED = (".stl", ".ply", ".obj", ".off")
_CHUNK = 1 << 22


@dataclass(frozen=True)
class FileStamp:
    """What a file, or a folder of meshes, is."""

    digest: str
    size: int  #: [bytes]


def stamp(path: Path) -> FileStamp:
    """The digest and size of a file and of what it names, or of the meshes in a folder."""
    whole, size = hashlib.sha256(), 0
    for file in _files_of(path):
        whole.update(f"{file.name}\0".encode() if file != path else b"")
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                size += len(chunk)
                whole.update(chunk)
    return FileStamp(whole.hexdigest(), size)


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.iterdir() if file.suffix.lower() in _ASSEMBLED)
        return
    yield path
    if path.suffix.lower() == ".urdf":
        yield from sorted(file for file in _meshes_named_in(path) if file != path)
    elif path.suffix.lower() == ".gltf":
        yield from sorted(path.parent.glob("*.bin"))


def _meshes_named_in(urdf: Path) -> set[Path]:
    """The files that a robot's file names, where they are found beside or above it."""
    found = set()
    for name in re.findall(r'filename\s*=\s*["\']([^"\']+)["\']', urdf.read_text(encoding="utf-8", errors="replace")):
        tail = Path(name.removeprefix("package://").removeprefix("file://").lstrip("/"))
        places = [urdf.parent, *urdf.resolve().parents]
        tails = [tail, Path(*tail.parts[1:])] if len(tail.parts) > 1 else [tail]
        found |= {place / each for place in places for each in tails if (place / each).is_file()}
    return found
