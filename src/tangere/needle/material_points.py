"""Points of a solid that go on through it, tetrahedron by tetrahedron, in material coordinates, and through its cuts.

Question: which point of the body is where the tip of a needle is after it cut on by so much?
Method:   in a tetrahedron with edges B where it is now, a step dx changes the weights by B^-1 dx. Where a weight gets
          to zero the way goes on in the neighbour, whose weights there are found at rest: the rest mesh is valid
          whatever the body does. A tetrahedron squeezed below a tenth of its volume is taken as it is at rest.
          A cut bisects tetrahedra, opens facets between them and moves a few vertices, but any point at rest is in one
          tetrahedron still: by that it is found again, in whichever piece, and what a tetrahedron is like, by its
          centre. Where a cut has opened the body, a way goes on beyond it as long as its walls are close.
Sound:    it never gets lost, and ends at the border or after the whole step.
Known as: barycentric walks; constraint points of needle insertion (Duriez et al. 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.needle.tissue import Tissue
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh
from tangere.soft import Body
from tangere.soft import Simulation as SoftSimulation

#: A tetrahedron of less than this part of its volume is taken as it is at rest.
_SQUEEZED = 0.1
#: Walls of a cut are crossed by the tip while they are nearer than this part of an edge.
_BRIDGED = 0.25
#: Tetrahedra of one step at most.
_LIMIT = 1000


@dataclass(frozen=True)
class MaterialPoint:
    """A point that belongs to a body."""

    tet: int
    weights: np.ndarray  #: (4,) of its corners

    def at(self, vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
        """Where it is when the vertices are there."""
        return self.weights @ vertices[tets[self.tet]]


class MaterialPoints:
    """Walks through the tetrahedra of a body.

    Args:
        bridged: the distance of the walls of a cut up to which a way goes on from one to the other [m]; 0: never.
    """

    def __init__(self, mesh: TetMesh, *, bridged: float = 0.0) -> None:
        self.rest, self.tets, self._bridged = mesh.vertices, mesh.tets, bridged
        names = mesh.tets
        if bridged:  # where a cut has parted them, vertices are in the same place at rest
            names = np.unique(mesh.vertices, axis=0, return_inverse=True)[1].reshape(-1)[mesh.tets]
        faces = np.sort(np.stack([np.delete(names, k, axis=1) for k in range(4)], axis=1).reshape(-1, 3), axis=1)
        order = np.lexsort(faces.T[::-1])
        same = np.flatnonzero((faces[order][1:] == faces[order][:-1]).all(axis=1))
        neighbour = np.full(len(faces), -1)
        neighbour[order[same]], neighbour[order[same + 1]] = order[same + 1] // 4, order[same] // 4
        self.neighbours = neighbour.reshape(-1, 4)  #: (n, 4) the tetrahedron behind the face opposite each corner

    def nearest(self, point: np.ndarray, vertices: np.ndarray | None = None) -> tuple[MaterialPoint, float]:
        """The material point at, or nearest to, a point, and how far it is outside; None: where all is at rest."""
        corners = (self.rest if vertices is None else vertices)[self.tets]
        near = np.flatnonzero(((corners.min(axis=1) <= point) & (point <= corners.max(axis=1))).all(axis=1))
        found = self._nearest_of(corners[near], point) if len(near) else (0, np.zeros(4), np.inf)
        if found[2] > 1e-9 * np.abs(corners).max():
            near, found = np.arange(len(corners)), self._nearest_of(corners, point)
        return MaterialPoint(int(near[found[0]]), found[1]), found[2]

    @staticmethod
    def _nearest_of(corners: np.ndarray, point: np.ndarray) -> tuple[int, np.ndarray, float]:
        """Which of tetrahedra (n, 4, 3) is nearest to a point, the weights there, and how far that is [m]."""
        weights = np.linalg.solve(
            (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1), (point - corners[:, 0])[..., None]
        )
        weights = np.concatenate([1.0 - weights.sum(axis=1), weights[..., 0]], axis=1)
        inside = np.clip(weights, 0.0, None)
        inside /= inside.sum(axis=1, keepdims=True)
        away = np.linalg.norm((inside[..., None] * corners).sum(axis=1) - point, axis=1)
        tet = int(np.argmin(away))
        return tet, inside[tet], float(away[tet])

    def advance(self, start: MaterialPoint, vertices: np.ndarray, step: np.ndarray) -> tuple[MaterialPoint, bool]:
        """The point a step [m] further where the vertices are now; False if it got to the border before."""
        tet, weights, left = start.tet, start.weights.copy(), 1.0
        for _ in range(_LIMIT):
            rest = self._edges(self.rest, tet)
            edges = self._edges(vertices, tet)
            if np.linalg.det(edges) < _SQUEEZED * np.linalg.det(rest):
                edges = rest
            change = np.linalg.solve(edges, step)
            change = np.array([-change.sum(), *change])
            with np.errstate(divide="ignore", invalid="ignore"):
                until = np.where(change < -1e-15, np.maximum(weights, 0.0) / -change, np.inf)
            k = int(np.argmin(until))
            if until[k] >= left:
                return MaterialPoint(tet, weights + left * change), True
            weights = weights + until[k] * change
            left -= until[k]
            behind = int(self.neighbours[tet, k])
            if behind < 0:
                return MaterialPoint(tet, _positive(weights)), False
            place = weights @ self.rest[self.tets[tet]]
            inner = np.linalg.solve(self._edges(self.rest, behind), place - self.rest[self.tets[behind, 0]])
            beyond = _positive(np.array([1.0 - inner.sum(), *inner]))
            if self._bridged:
                apart = beyond @ vertices[self.tets[behind]] - weights @ vertices[self.tets[tet]]
                if np.linalg.norm(apart) > self._bridged:
                    return MaterialPoint(tet, _positive(weights)), False
            tet, weights = behind, beyond
        return MaterialPoint(tet, weights), True

    def _edges(self, vertices: np.ndarray, tet: int) -> np.ndarray:
        corners = vertices[self.tets[tet]]
        return (corners[1:] - corners[0]).T


@dataclass(frozen=True, eq=False)
class PiercedSolid:
    """A solid of a simulation, and its pieces, from one cut to the next."""

    bodies: tuple[Body, ...]  #: all of the simulation then
    numbers: tuple[int, ...]  #: of those that are the solid
    mesh: TetMesh  #: of all pieces, at rest
    points: MaterialPoints
    cutting: np.ndarray  #: (t,) of each tetrahedron [N]
    friction: np.ndarray  #: (t,) [N/m]
    dofs: np.ndarray  #: (v,) of each vertex in the simulation
    body: np.ndarray  #: (t,) of each tetrahedron

    @classmethod
    def of(cls, soft: SoftSimulation, number: int, tissue: Tissue, given: TetMesh, edge: float) -> PiercedSolid:
        """The solid of this number as it is now; `given` is as it was before any cut, with edges of this length."""
        numbers, bodies = soft.pieces_of(number), soft.bodies
        shapes = [bodies[piece].shape for piece in numbers]
        base = np.cumsum([0, *(len(body.shape.vertices) for body in bodies)])
        first = np.cumsum([0, *(len(shape.vertices) for shape in shapes)])
        mesh = shapes[0]
        if len(shapes) > 1:
            tets = np.concatenate([shape.tets + k for shape, k in zip(shapes, first[:-1], strict=True)])
            mesh = TetMesh(np.concatenate([shape.vertices for shape in shapes]), tets, name=given.name)
        if mesh is given or tissue.uniform:
            values = {name: tissue.per_tet(name, len(mesh.tets)) for name in ("cutting", "friction")}
        else:
            parents = _parents(mesh, given)
            values = {name: tissue.per_tet(name, len(given.tets))[parents] for name in ("cutting", "friction")}
        return cls(
            bodies,
            numbers,
            mesh,
            MaterialPoints(mesh, bridged=_BRIDGED * edge if bodies[number].cuttable else 0.0),
            dofs=np.concatenate([base[piece] + np.arange(len(bodies[piece].shape.vertices)) for piece in numbers]),
            body=np.repeat(numbers, [len(shape.tets) for shape in shapes]),
            **values,
        )

    def positions(self, soft: SoftSimulation) -> np.ndarray:
        """(v, 3) where its vertices are now [m]."""
        places = soft.positions
        return places if len(self.bodies) == 1 else places[self.dofs]

    def surface(self, soft: SoftSimulation) -> Mesh:
        """Of all pieces, where they are now."""
        meshes = [mesh for number, mesh in enumerate(soft.meshes()) if number in self.numbers]
        if len(meshes) == 1:
            return meshes[0]
        first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
        faces = np.concatenate([mesh.faces + k for mesh, k in zip(meshes, first[:-1], strict=True)])
        return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), faces, name=meshes[0].name)

    def found(self, point: MaterialPoint, before: PiercedSolid) -> MaterialPoint:
        """A point of the solid before a cut as it is named now."""
        return self.points.nearest(point.at(before.points.rest, before.points.tets))[0]


def _positive(weights: np.ndarray) -> np.ndarray:
    inside = np.maximum(weights, 0.0)
    return inside / inside.sum()


def _parents(mesh: TetMesh, given: TetMesh) -> np.ndarray:
    """(t,) which tetrahedron of a solid before cuts each of those after has its centre in."""
    centres, known = (solid.vertices[solid.tets].mean(axis=1) for solid in (mesh, given))
    _, name = np.unique(np.concatenate([known, centres]), axis=0, return_inverse=True)
    name = name.reshape(-1)
    at = np.full(name.max() + 1, -1)
    at[name[: len(known)]] = np.arange(len(known))
    parents, walk = at[name[len(known) :]], MaterialPoints(given)
    for tet in np.flatnonzero(parents < 0):
        parents[tet] = walk.nearest(centres[tet])[0].tet
    return parents
