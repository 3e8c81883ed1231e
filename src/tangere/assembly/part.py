"""A part of an assembly: a shape, where it is, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.motion import Rest
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


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
