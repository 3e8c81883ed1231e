"""A blade: a driven tool whose edge cuts bodies that are `cuttable`, and whose flanks push whatever they meet.

The edge is a polyline of the mesh. It pushes what it has reached with a line load of at most the toughness of a cut,
the energy of a new wall by its area [J/m^2 = N/m]; what needs more is cut (`cutting.blade_edge`). Behind a narrow band
along the edge, where the blade is thinner than the cut is wide, its surface is that of an obstacle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.runtime import Arrays, InputError, check_kind, positive, to_numpy, whole
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body

#: How thick a blade may be where its surface begins, as part of the width of a cut.
_THIN = 0.5
#: How wide the band along the edge is at most, as part of the shortest edge of the mesh that leaves it.
_BAND = 0.1


@dataclass(frozen=True, eq=False)
class Blade:
    """A tool that cuts; in the list of bodies of a `Simulation`, and moved by `simulation[number].drive(velocity)`.

    Args:
        mesh: the blade at the start.
        edge: numbers of the vertices of the mesh along its edge, in order, at least 2.
        toughness: line load that the edge cuts with, energy of a new wall by its area [N/m = J/m^2].
        lead: how far ahead of the edge the body opens [m]; None means twice the median edge of its elements.
        name: what to call it; None means the name of the mesh.

    Example:
        >>> from tangere.soft import Blade
        >>> Blade.wedge(length=1.2, height=1.0, thickness=0.05, toughness=50.0)
        Blade('blade', edge of 1.2 m, 50 N/m)
    """

    mesh: Mesh
    edge: Arrays
    toughness: float
    lead: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        check_kind(self.mesh, Mesh, "Blade: mesh")
        if self.name is None:
            object.__setattr__(self, "name", self.mesh.name)
        positive(self.toughness, f"Blade {self.name!r}: toughness")
        if self.lead is not None:
            positive(self.lead, f"Blade {self.name!r}: lead")
        edge = to_numpy(self.edge, f"Blade {self.name!r}: edge", dtype=None)
        if edge.ndim != 1 or len(edge) < 2 or not np.issubdtype(edge.dtype, np.integer):
            raise InputError(f"Blade {self.name!r}: edge is a list of at least 2 vertex numbers")
        if edge.min() < 0 or edge.max() >= len(self.mesh.vertices):
            raise InputError(f"Blade {self.name!r}: the mesh has {len(self.mesh.vertices)} vertices, not all of {edge}")
        object.__setattr__(self, "edge", edge.astype(np.int64))
        if not self.length > 0.0:
            raise InputError(f"Blade {self.name!r}: the edge has no length")

    def __repr__(self) -> str:
        return f"Blade({self.name!r}, edge of {self.length:g} m, {self.toughness:g} N/m)"

    @staticmethod
    def wedge(
        *,
        length: float,
        height: float,
        thickness: float,
        toughness: float,
        at: Arrays = (0.0, 0.0, 0.0),
        pieces: int = 12,
        lead: float | None = None,
        name: str = "blade",
    ) -> Blade:
        """A wedge that looks down: its edge along y, its back above it.

        Args:
            length, height, thickness: of the blade, along y, z and x [m].
            toughness, lead: see `Blade`.
            at: the middle of its edge [m].
            pieces: that the edge and the flanks are divided in along y.
        """
        size = [
            positive(v, f"Blade: {w}") for v, w in ((length, "length"), (height, "height"), (thickness, "thickness"))
        ]
        pieces = whole(pieces, "Blade: pieces", 1)
        y = np.linspace(-0.5, 0.5, pieces + 1) * size[0]
        rows = [(0.0, 0.0), (-0.5, 1.0), (0.5, 1.0)]
        points = np.concatenate([np.stack([x * size[2] + 0 * y, y, z * size[1] + 0 * y], axis=1) for x, z in rows])
        n, faces = pieces + 1, []
        for k in range(pieces):
            e, left, right = k, n + k, 2 * n + k
            faces += [[e, left, left + 1], [e, left + 1, e + 1], [e, e + 1, right + 1], [e, right + 1, right]]
            faces += [[left, right, right + 1], [left, right + 1, left + 1]]
        faces += [[0, 2 * n, n], [n - 1, 2 * n - 1, 3 * n - 1]]
        middle = to_numpy(at, "Blade: at")
        if middle.shape != (3,) or not np.isfinite(middle).all():
            raise InputError(f"Blade: at must be three numbers, not {at!r}")
        return Blade(Mesh(points + middle, np.array(faces), name=name), np.arange(n), toughness, lead=lead)

    @property
    def edge_points(self) -> np.ndarray:
        """(k, 3) the edge at the start [m]."""
        return self.mesh.vertices[self.edge]

    @property
    def length(self) -> float:
        """Of the edge [m]."""
        return float(np.linalg.norm(np.diff(self.edge_points, axis=0), axis=1).sum())

    @property
    def forward(self) -> np.ndarray:
        """(3,) the unit vector from the middle of the blade to its edge."""
        way = self.edge_points.mean(axis=0) - self.mesh.vertices.mean(axis=0)
        return way / max(float(np.linalg.norm(way)), 1e-300)

    def obstacle(self, kerf: float | None) -> Body:
        """What of it bodies meet: all but a band along the edge, where it is thinner than a cut of this width [m]."""
        if kerf is None:
            return Body(self.mesh, fixed=True, name=self.name)
        widest = _BAND * self._shortest()
        width = self._trimmed(widest)[1]
        band = widest * min(1.0, _THIN * kerf / width if width > 0.0 else 1.0)
        return Body(self._trimmed(band)[0], fixed=True, name=self.name)

    def _shortest(self) -> float:
        """Of the edges of the mesh that leave the edge of the blade [m]."""
        on = np.zeros(len(self.mesh.vertices), bool)
        on[self.edge] = True
        leaving = self.mesh.edges[on[self.mesh.edges].sum(axis=1) == 1]
        ends = self.mesh.vertices[leaving]
        return float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).min())

    def _trimmed(self, band: float) -> tuple[Mesh, float]:
        """The mesh without what is within a band of the edge [m], and how thick it is there [m]."""
        points, on = list(self.mesh.vertices), set(self.edge.tolist())
        made: dict[tuple[int, int], int] = {}

        def beyond(e: int, o: int) -> int:
            if (e, o) not in made:
                way = self.mesh.vertices[o] - self.mesh.vertices[e]
                made[e, o] = len(points)
                points.append(self.mesh.vertices[e] + band / np.linalg.norm(way) * way)
            return made[e, o]

        faces = []
        for face in self.mesh.faces.tolist():
            off = [k for k in range(3) if face[k] not in on]
            if len(off) == 3:
                faces.append(face)
            elif len(off) == 2:
                e = next(k for k in range(3) if k not in off)
                one, other = face[(e + 1) % 3], face[(e + 2) % 3]
                a, b = beyond(face[e], one), beyond(face[e], other)
                faces += [[a, one, other], [a, other, b]]
            elif len(off) == 1:
                o = face[off[0]]
                faces.append([o, beyond(face[(off[0] + 1) % 3], o), beyond(face[(off[0] + 2) % 3], o)])
        if not faces:
            raise InputError(f"Blade {self.name!r}: every triangle of its mesh is within its edge")
        used, local = np.unique(faces, return_inverse=True)
        along = self.edge_points[-1] - self.edge_points[0]
        across = np.cross(along, self.forward)
        across /= max(float(np.linalg.norm(across)), 1e-300)
        rim = np.array([points[k] for k in made.values()]).reshape(-1, 3)
        width = float(np.ptp(rim @ across)) if len(rim) else 0.0
        return Mesh(np.array(points)[used], local.reshape(-1, 3), name=str(self.name)), width
