"""The corners, edges and faces of convex hulls, as the tables that kernels walk through.

Facets of one plane are one face, so an edge always separates two different planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tangere.runtime import InputError, read_only

#: Facets whose normals differ by less are one face; relative to the extent for their offsets.
COPLANAR = 1e-9


@dataclass(frozen=True, eq=False)
class Hull:
    """One convex polyhedron."""

    corners: np.ndarray  #: (n, 3) [m]
    edges: np.ndarray  #: (e, 4) int32: two corners, and the two faces the edge lies between
    planes: np.ndarray  #: (f, 4): outward unit normal, and the offset along it [m]


def convex_hull(points: np.ndarray, name: str) -> Hull:
    """The hull of `points`, shape (n, 3) [m]; they must span a volume."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise InputError(f"{name}: its convex hull has no volume") from error
    facet_plane, planes = _merged(hull.equations, hull.neighbors, float(np.ptp(points, axis=0).max()))
    used, corners = np.unique(hull.simplices, return_inverse=True)
    corners = corners.reshape(-1, 3)
    edges = []
    for facet, neighbours in enumerate(hull.neighbors):
        for opposite, other in enumerate(neighbours):
            if facet < other and facet_plane[facet] != facet_plane[other]:
                a, b = sorted(np.delete(corners[facet], opposite))
                edges.append((a, b, facet_plane[facet], facet_plane[other]))
    rows = np.array(sorted(edges), np.int32).reshape(-1, 4)
    kept = np.unique(rows[:, :2])  # a corner inside a merged face is none
    rows[:, :2] = np.searchsorted(kept, rows[:, :2])
    return Hull(read_only(points[used[kept]].astype(np.float64)), read_only(rows), read_only(planes))


@cache
def unit_cube() -> Hull:
    """The cube [-1, 1]^3, of which every box is a scaled copy."""
    return convex_hull(np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T, "unit cube")


def _merged(equations: np.ndarray, neighbours: np.ndarray, extent: float) -> tuple[np.ndarray, np.ndarray]:
    """The face of each facet, and the plane of each face."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    facets = np.repeat(np.arange(len(equations)), neighbours.shape[1])
    others = neighbours.ravel()
    apart = np.abs(equations[facets] - equations[others])
    same = (apart[:, :3].max(axis=1) <= COPLANAR) & (apart[:, 3] <= COPLANAR * extent)
    graph = coo_matrix((np.ones(same.sum()), (facets[same], others[same])), shape=(len(equations),) * 2)
    count, face = connected_components(graph, directed=False)
    first = np.array([int(np.argmax(face == k)) for k in range(count)])
    planes = equations[first] * [1.0, 1.0, 1.0, -1.0]
    return face, planes / np.linalg.norm(planes[:, :3], axis=1, keepdims=True)
