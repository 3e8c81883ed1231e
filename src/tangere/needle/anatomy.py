"""What is embedded in a body: vessels and nerves, which are lines with a radius, and membranes, which are surfaces.

Question: what may a needle come near to, and to what does a segment or a triangle belong?
Method:   all points, segments and triangles in common arrays, registered in the cells they cross (`Registration`), the
          insides of triangles too; or carried along by a solid that deforms, each point by the corners of its
          tetrahedron.
Known as: filiform and surface entities (Pitiot 2015, section 9.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.cells.maps import CellMap
from tangere.cells.registration import Registration
from tangere.runtime import InputError, check_kind, positive
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh


@dataclass(frozen=True)
class Vessel:
    """A line with a radius: a vessel, a nerve.

    Args:
        points: (n, 3) along the line [m], two at least.
        radius: [m].
    """

    points: Any
    radius: float = 1e-3
    name: str = "vessel"

    def __post_init__(self) -> None:
        line = np.asarray(self.points, dtype=float)
        if line.ndim != 2 or line.shape[1] != 3 or len(line) < 2:
            raise InputError(f"Vessel {self.name!r}: points must have shape (n, 3) with n >= 2, not {line.shape}")
        if not np.isfinite(line).all():
            wrong = int(np.argwhere(~np.isfinite(line))[0, 0])
            raise InputError(f"Vessel {self.name!r}: point {wrong} is not finite")
        object.__setattr__(self, "points", line)
        positive(self.radius, f"Vessel {self.name!r}: radius")


@dataclass(frozen=True)
class Membrane:
    """A surface that a needle can go through: a capsule, the boundary of an organ.

    Args:
        mesh: where it is at rest.
        puncture: the force it takes to go through [N]; None: as of the tissue around.
    """

    mesh: Mesh
    puncture: float | None = None

    def __post_init__(self) -> None:
        check_kind(self.mesh, Mesh, "Membrane: mesh")
        if self.puncture is not None:
            positive(self.puncture, f"Membrane {self.mesh.name!r}: puncture")


class AnatomyArrays:
    """Vessels and membranes in common arrays."""

    def __init__(self, vessels: Sequence[Vessel | Any] = (), membranes: Sequence[Membrane | Mesh] = ()) -> None:
        self.vessels = tuple(v if isinstance(v, Vessel) else Vessel(v) for v in vessels)
        self.membranes = tuple(m if isinstance(m, Membrane) else Membrane(m) for m in membranes)
        points, segments, triangles, count = [np.empty((0, 3))], [], [], 0
        for vessel in self.vessels:
            first = count + np.arange(len(vessel.points) - 1)
            segments.append(np.stack([first, first + 1], axis=1))
            points.append(vessel.points)
            count += len(vessel.points)
        for membrane in self.membranes:
            triangles.append(membrane.mesh.faces + count)
            points.append(membrane.mesh.vertices)
            count += len(membrane.mesh.vertices)
        self.points = np.concatenate(points)  #: (n, 3) [m], at rest
        self.segments, self.triangles = _rows(segments, 2), _rows(triangles, 3)  #: (s, 2), (t, 3) numbers of points
        sizes = [len(rows) for rows in (*segments, *triangles)]
        self.owner = np.repeat(np.arange(len(sizes)), sizes)  #: (s + t,) vessel, or vessels + membrane, of each
        own = [np.arange(size) for size in sizes]
        self.own_number = np.concatenate([np.empty(0, int), *own])  #: (s + t,) number in its vessel or membrane
        radii = [vessel.radius for vessel in self.vessels] + [0.0] * len(self.membranes)
        self.radius = np.array(radii)[self.owner] if sizes else np.empty(0)  #: (s + t,) [m]

    @property
    def largest_radius(self) -> float:
        """[m]"""
        return float(self.radius.max(initial=0.0))


class Anatomy(AnatomyArrays):
    """Vessels and membranes, and where they are in a map."""

    def __init__(
        self,
        map: CellMap,
        vessels: Sequence[Vessel | Any] = (),
        membranes: Sequence[Membrane | Mesh] = (),
        *,
        threads: int | None = 1,
    ) -> None:
        super().__init__(vessels, membranes)
        # A registration has points.
        points = self.points if len(self.points) else map.arrays.centre.numpy()[map.leaves[:1]]
        entities = points, self.segments, self.triangles
        try:
            self.registration = Registration(map, *entities, form="incremental", fill=True, threads=threads)
        except InputError as error:
            raise InputError(f"vessels and membranes must be inside the body: {error}") from error


class CarriedAnatomy(AnatomyArrays):
    """Vessels and membranes that a solid carries along."""

    def __init__(
        self, solid: TetMesh, vessels: Sequence[Vessel | Any] = (), membranes: Sequence[Membrane | Mesh] = ()
    ) -> None:
        super().__init__(vessels, membranes)
        self._find(solid)

    def _find(self, solid: TetMesh) -> None:
        try:
            self._corners, self._weights = solid.weights_at(self.points)
        except InputError as error:
            raise InputError(f"vessels and membranes must be inside the body: {error}") from error

    def carried_by(self, solid: TetMesh) -> CarriedAnatomy:
        """The same, carried by what the solid has become by cuts."""
        found = copy(self)
        found._find(solid)
        return found

    def points_at(self, vertices: np.ndarray) -> np.ndarray:
        """(n, 3) where all points are when the vertices of the solid are there [m]."""
        return (self._weights[..., None] * vertices[self._corners]).sum(axis=1)


def _rows(parts: list[np.ndarray], width: int) -> np.ndarray:
    return np.concatenate([np.empty((0, width), np.int64), *parts]).astype(np.int64)
