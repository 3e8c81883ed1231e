"""Points of a body that go on through it: tetrahedron by tetrahedron, in material coordinates.

Question: which point of the body is where the tip of a needle is after it cut on by so much?
Method:   in a tetrahedron with edges B where it is now, a step dx changes the weights by B^-1 dx. Where a weight gets
          to zero the way goes on in the neighbour, whose weights there are found at rest: the rest mesh is valid
          whatever the body does. A tetrahedron squeezed below a tenth of its volume is taken as it is at rest.
Sound:    it never gets lost, and ends at the border or after the whole step.
Known as: barycentric walks; constraint points of needle insertion (Duriez et al. 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.shape.tets import TetMesh

#: A tetrahedron of less than this part of its volume is taken as it is at rest.
_SQUEEZED = 0.1
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
    """Walks through the tetrahedra of a body."""

    def __init__(self, mesh: TetMesh) -> None:
        self.rest, self.tets = mesh.vertices, mesh.tets
        faces = np.sort(np.stack([np.delete(mesh.tets, k, axis=1) for k in range(4)], axis=1).reshape(-1, 3), axis=1)
        order = np.lexsort(faces.T[::-1])
        same = np.flatnonzero((faces[order][1:] == faces[order][:-1]).all(axis=1))
        neighbour = np.full(len(faces), -1)
        neighbour[order[same]], neighbour[order[same + 1]] = order[same + 1] // 4, order[same] // 4
        self.neighbours = neighbour.reshape(-1, 4)  #: (n, 4) the tetrahedron behind the face opposite each corner

    def nearest(self, point: np.ndarray) -> tuple[MaterialPoint, float]:
        """The material point at, or nearest to, a point at rest, and how far it is outside."""
        corners = self.rest[self.tets]
        weights = np.linalg.solve(
            (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1), (point - corners[:, 0])[..., None]
        )
        weights = np.concatenate([1.0 - weights.sum(axis=1), weights[..., 0]], axis=1)
        inside = np.clip(weights, 0.0, None)
        inside /= inside.sum(axis=1, keepdims=True)
        away = np.linalg.norm((inside[..., None] * corners).sum(axis=1) - point, axis=1)
        tet = int(np.argmin(away))
        return MaterialPoint(tet, inside[tet]), float(away[tet])

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
            tet = behind
            inner = np.linalg.solve(self._edges(self.rest, tet), place - self.rest[self.tets[tet, 0]])
            weights = _positive(np.array([1.0 - inner.sum(), *inner]))
        return MaterialPoint(tet, weights), True

    def _edges(self, vertices: np.ndarray, tet: int) -> np.ndarray:
        corners = vertices[self.tets[tet]]
        return (corners[1:] - corners[0]).T


def _positive(weights: np.ndarray) -> np.ndarray:
    inside = np.maximum(weights, 0.0)
    return inside / inside.sum()
