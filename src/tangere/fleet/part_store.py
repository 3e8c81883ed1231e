"""Prepared parts by the hash of their files: made once, mapped into memory by every worker.

Question: the mesh of this file, with its trees.
Method:   a part lies in the folder of the run under the hash of its file's bytes and unit. Who needs one that is not
          there makes it, under another name, and renames it: two who do so write the same bits. Workers on one
          machine share the pages of its arrays.
Sound:    digests within are checked when arrays are first used; a damaged part is made anew.
Known as: a content-addressed store.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tangere.bvh.prepared import PreparedPart
from tangere.runtime import InputError, writing
from tangere.shape.mesh import DOUBTFUL, Mesh, says_its_unit

_MOST = 256  #: parts that a process keeps open
#: Parts that this process has opened and their files, by folder, digest and unit, the last used at the end.
_opened: dict[tuple[str, str, str], tuple[Mesh, Path]] = {}


@dataclass(frozen=True)
class JobTools:
    """What a job is answered with: parts, where to compute, with how many threads."""

    folder: Path  #: of the run
    files: Mapping[str, str]  #: digest by path
    units: str | None
    device: str
    threads: int | None

    def part(self, path: str) -> Mesh:
        """The mesh of a file, prepared, and mapped into memory."""
        key = str(self.folder), self.files[path], str(self.units)
        found = _opened.pop(key, None)
        if found is None or not found[1].is_file():  # trees are read from it when they are first asked for
            found = self._open(Path(path), self.files[path])
        _opened[key] = found
        if len(_opened) > _MOST:
            _opened.pop(next(iter(_opened)))
        return found[0]

    def units_of(self, path: str) -> str | None:
        """The unit that was told for a file that does not say its own."""
        return None if says_its_unit(Path(path).suffix) else self.units

    def doubted(self, paths: Sequence[str]) -> str:
        """What to say of bodies of one job whose sizes are too different; nothing where units are known."""
        unsure = [path for path in paths if not says_its_unit(Path(path).suffix)]
        sizes = sorted((self.part(path).extent, Path(path).name) for path in paths)
        if self.units is not None or not unsure or len(sizes) < 2 or sizes[-1][0] < DOUBTFUL * sizes[0][0]:
            return ""
        (small, one), (large, other) = sizes[0], sizes[-1]
        return f"{other} ({large:.3g} m) and {one} ({small:.3g} m): are both in metres? units='mm' or what they are"

    def _open(self, path: Path, digest: str) -> tuple[Mesh, Path]:
        if path.suffix.lower() == ".npz":
            return PreparedPart.load(path, mapped=True).mesh, path
        units = self.units_of(str(path))
        name = hashlib.sha256(f"{digest} {units} {path.name}".encode()).hexdigest()[:40]
        kept = self.folder / "parts" / f"{name}.npz"
        if kept.is_file():
            try:
                return PreparedPart.load(kept, mapped=True).mesh, kept
            except InputError:
                pass  # damaged: made anew
        mesh = Mesh.load(path, units=units)
        own = self.folder / "unfinished" / f"{name}.{socket.gethostname()}.{os.getpid()}.npz"
        with writing(kept):
            try:
                PreparedPart(mesh).save(own)
                os.replace(own, kept)
            finally:
                own.unlink(missing_ok=True)
        return PreparedPart.load(kept, mapped=True).mesh, kept
