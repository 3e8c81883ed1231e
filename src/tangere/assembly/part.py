"""A part of an assembly: a shape, where it is, and what it is called."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tangere.motion import Rest
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def triangle_digest(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """Equal for triangles of equal bits."""
    whole = hashlib.sha256(np.ascontiguousarray(vertices, np.float64))
    whole.update(np.ascontiguousarray(faces, np.int32))
    return whole.digest()


def with_shared_shapes(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The same parts; those of equal bits have one shape."""
    known: dict[bytes, Mesh] = {}
    digests: dict[Mesh, bytes] = {}
    made = []
    for part in parts:
        shape = part.shape
        if shape not in digests:
            digests[shape] = triangle_digest(shape.vertices, shape.faces)
        own = known.setdefault(digests[shape], shape)
        made.append(part if own is shape else replace(part, shape=own))
    return tuple(made)


@dataclass(frozen=True, eq=False)
class Part:
    """A part; parts of equal bits share their shape."""

    name: str  #: no other part of its assembly has it
    path: str  #: names of the assemblies it is in, from the outermost, and its own, with / between them
    shape: Mesh  #: in its own frame
    pose: np.ndarray  #: (4, 4) rigid, where it is in the world

    def __repr__(self) -> str:
        return f"Part({self.path!r}, {len(self.shape.faces)} triangles)"

    @property
    def body(self) -> Moving:
        """The shape where it is, as queries take it."""
        return self.shape.moving(Rest(self.pose))

    @property
    def mesh(self) -> Mesh:
        """The shape in the world."""
        return self.shape.at(self.pose)
