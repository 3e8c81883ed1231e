"""The corners, edges and faces of convex hulls, as the tables that kernels walk through.

Question: which points can be the farthest of a hull in some direction, and which flat faces and edges does it have?
Method:   facets that are flat together are one face, so an edge always separates two different planes: the largest of
          them gives the plane, and each is compared with that plane, never with its neighbour, so that no chain of
          small bends becomes flat.
Sound:    the hull of the corners has every point to rounding, wherever faces are joined, and no point is outside a
          plane by more than rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tangere.runtime import InputError, read_only

#: Facets are one face up to this part of the hull's thickness from its plane.
COPLANAR = 1e-9
#: Facets of one face do not turn from it by more than this cosine, however small they are.
SAME_SIDE = 0.5
#: Corners are nowhere but in a face of the others up to this part of the hull's extent: a few roundings.
ROUNDING = 16.0 * 2.0**-53


@dataclass(frozen=True, eq=False)
class Hull:
    """One convex polyhedron."""

    corners: np.ndarray  #: (n, 3) [m]; in a face that is flat but for rounding, those around it only
    edges: np.ndarray  #: (e, 4) int32: two corners, and the two faces the edge lies between
    planes: np.ndarray  #: (f, 4): outward unit normal, and the offset along it [m]


def convex_hull(points: np.ndarray, name: str) -> Hull:
    """The hull of `points`, shape (n, 3) [m]; they must span a volume."""
    from scipy.spatial import ConvexHull, QhullError

    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))  # of less than that, rounding is smaller
    try:
        hull = ConvexHull(points - middle)
    except (QhullError, ValueError) as error:
        raise InputError(f"{name}: its convex hull has no volume") from error
    used, facets = np.unique(hull.simplices, return_inverse=True)
    facets = facets.reshape(-1, 3)
    corners = points[used].astype(np.float64)
    around = corners - middle
    extent = 2.0 * float(np.abs(around).max())
    thickness = hull.volume / hull.area  # between a third and the whole of the radius of the largest ball inside
    near = COPLANAR * thickness + ROUNDING * extent
    seeds = _flat_together(around, facets, hull.equations, hull.neighbors, near)
    seed_of_plane, plane_of_facet = _numbered(seeds)
    edges = _edges_between(facets, hull.neighbors, plane_of_facet)
    normals = hull.equations[seed_of_plane, :3]
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    offsets = np.full(len(normals), -np.inf)
    heights = np.einsum("fki,fi->fk", corners[facets], normals[plane_of_facet])
    np.maximum.at(offsets, plane_of_facet, heights.max(axis=1))
    kept = np.flatnonzero(_needed(around, facets, edges, plane_of_facet, normals, ROUNDING * extent))
    edges[:, :2] = np.searchsorted(kept, edges[:, :2])
    planes = np.column_stack([normals, offsets])
    return Hull(read_only(corners[kept]), read_only(edges), read_only(planes))


@cache
def unit_cube() -> Hull:
    """The cube [-1, 1]^3, of which every box is a scaled copy."""
    return convex_hull(np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T, "unit cube")


def _flat_together(
    corners: np.ndarray, facets: np.ndarray, equations: np.ndarray, neighbours: np.ndarray, near: float
) -> np.ndarray:
    """For each facet the one whose plane is its face's: the largest of the face."""
    sides = np.cross(corners[facets[:, 1]] - corners[facets[:, 0]], corners[facets[:, 2]] - corners[facets[:, 0]])
    largest_first = np.argsort(-np.linalg.norm(sides, axis=1), kind="stable")
    rank = np.empty(len(facets), int)
    rank[largest_first] = np.arange(len(facets))

    def on_plane(some: np.ndarray, of: np.ndarray) -> np.ndarray:
        heights = np.einsum("fki,fi->fk", corners[facets[some]], equations[of, :3]) + equations[of, 3, None]
        turn = np.einsum("fi,fi->f", equations[some, :3], equations[of, :3])
        return (np.abs(heights).max(axis=1) <= near) & (turn >= SAME_SIDE)

    one, other = np.repeat(np.arange(len(facets)), 3), neighbours.ravel()
    beside = on_plane(np.where(rank[one] < rank[other], other, one), np.where(rank[one] < rank[other], one, other))
    one, other = one[beside], other[beside]
    seeds = np.arange(len(facets))
    left = np.unique(one)
    while len(left):
        patch = _patches(len(facets), one, other)
        least = np.full(len(facets), len(facets))
        np.minimum.at(least, patch[left], rank[left])
        seed = largest_first[least[patch[left]]]
        flat = np.zeros(len(facets), bool)
        flat[left] = on_plane(left, seed)
        among = flat[one] & flat[other]
        patch = _patches(len(facets), one[among], other[among])
        joined = flat[left] & (patch[left] == patch[seed])
        seeds[left[joined]] = seed[joined]
        flat[:] = False
        flat[left[~joined]] = True
        left, among = left[~joined], flat[one] & flat[other]
        one, other = one[among], other[among]
    return seeds


def _edges_between(facets: np.ndarray, neighbours: np.ndarray, plane_of_facet: np.ndarray) -> np.ndarray:
    """The rows of `Hull.edges`, sorted."""
    one, other = np.repeat(np.arange(len(facets)), 3), neighbours.ravel()
    ends = np.sort(facets[:, [[1, 2], [0, 2], [0, 1]]].reshape(-1, 2), axis=1)  # a neighbour lies across from a corner
    rows = np.column_stack([ends, plane_of_facet[one], plane_of_facet[other]])
    rows = rows[(one < other) & (rows[:, 2] != rows[:, 3])]
    return rows[np.lexsort(rows.T[::-1])].astype(np.int32)


def _patches(count: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The connected patch of each facet, of those that are linked."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(one), bool), (one, other)), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def _numbered(seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The seed of each face, by the first facet that it has, and the face of each facet."""
    of_number, first, number = np.unique(seeds, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return of_number[order], np.argsort(order)[number]


def _needed(
    corners: np.ndarray,
    facets: np.ndarray,
    edges: np.ndarray,
    plane_of_facet: np.ndarray,
    normals: np.ndarray,
    rounding: float,
) -> np.ndarray:
    """Which corners the hull would be smaller without: all but those in the midst of faces that are really flat."""
    needed = np.zeros(len(corners), bool)
    needed[edges[:, :2]] = True
    plane_of_corner = np.zeros(len(corners), int)
    plane_of_corner[facets] = plane_of_facet[:, None]  # of one in the midst of a face, its only one
    for plane in np.unique(plane_of_corner[~needed]):
        rim = np.unique(edges[(edges[:, 2:] == plane).any(axis=1), :2])
        midst = np.flatnonzero(~needed & (plane_of_corner == plane))
        own = np.concatenate([rim, midst])
        heights = corners[own] @ normals[plane]
        heights -= heights.mean()
        across = corners[own] - corners[own].mean(axis=0) - heights[:, None] * normals[plane]
        heights -= across @ np.linalg.lstsq(across, heights, rcond=1e-9)[0]  # over the plane through all of them
        needed[midst] = heights[len(rim) :] > heights[: len(rim)].min() + rounding
    return needed
