"""Is something inside a convex solid, and how deep do two of them overlap?

Method: of a piece that does not meet the surface, one point decides. The depth is the distance from the origin to the
        border of the set of differences a - b: its hull grows by the farthest point along the normal of the facet that
        is nearest to the origin, until there is none farther.
Known as: expanding polytope algorithm (van den Bergen 2001).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.compat.collision_object import CollisionObject

_FACES = 64  #: of each solid whose normals are tried first
_ROUNDS = 100
_SAME_PLANE = 1e-12  #: facets whose normals have a cosine this near to 1 are in one plane
_AT_ONCE = 16  #: facets at which the hull grows
_PRECISION = 1e-8  #: of the depth, relative to the solids


@dataclass(frozen=True)
class ConvexDepth:
    """How far b has to go along `normal` until it only touches a."""

    depth: float
    normal: np.ndarray  #: (3,) unit
    point_a: np.ndarray  #: (3,) deepest point of a in b; `point_a - point_b` is depth times normal
    point_b: np.ndarray


def inside(solid: CollisionObject, other: CollisionObject) -> tuple[np.ndarray, float, np.ndarray] | None:
    """A point of `other` inside a solid whose surface it does not meet, how deep, and the normal there; or None."""
    for points in other.samples:
        heights = solid.in_frame(other.in_world(points)) @ solid.planes[:, :3].T + solid.planes[:, 3]
        outermost = heights.max(axis=1)
        clearest = int(np.argmin(outermost))
        if (outermost < 0.0).all():
            face = int(np.argmax(heights[clearest]))
            normal = solid.pose[:3, :3] @ solid.planes[face, :3]
            return other.in_world(points[clearest]), float(-outermost[clearest]), normal
    return None


def one_inside(a: CollisionObject, b: CollisionObject) -> tuple[bool, tuple[np.ndarray, float, np.ndarray]] | None:
    """Whether a is the solid that holds the other, and where; None if neither does. Surfaces must not meet."""
    for solid, other, first in ((a, b, True), (b, a, False)):
        found = inside(solid, other) if solid.solid else None
        if found is not None:
            return first, found
    return None


def overlap_depth(a: CollisionObject, b: CollisionObject) -> ConvexDepth:
    """The depth of two solids that overlap."""
    from scipy.spatial import ConvexHull, QhullError

    corners_a, corners_b = a.in_world(a.corners), b.in_world(b.corners)
    scale = float(np.abs(np.ptp(corners_a, axis=0)).max() + np.abs(np.ptp(corners_b, axis=0)).max())
    directions = np.concatenate([np.eye(3), -np.eye(3), _some_normals(a), -_some_normals(b)])
    of_a = corners_a[np.argmax(directions @ corners_a.T, axis=1)]
    of_b = corners_b[np.argmin(directions @ corners_b.T, axis=1)]
    reach = np.einsum("ij,ij->i", directions, of_a - of_b)
    best = int(np.argmin(reach))
    found = ConvexDepth(max(float(reach[best]), 0.0), directions[best], of_a[best], of_b[best])
    try:
        hull = ConvexHull(of_a - of_b, incremental=True)
        for _ in range(_ROUNDS):
            facets = np.argsort(-hull.equations[:, 3])[:_AT_ONCE]
            normals, least = hull.equations[facets, :3], -hull.equations[facets[0], 3]
            far_a = corners_a[np.argmax(normals @ corners_a.T, axis=1)]
            far_b = corners_b[np.argmin(normals @ corners_b.T, axis=1)]
            reach = np.einsum("ij,ij->i", normals, far_a - far_b)
            best = int(np.argmin(reach))
            if reach[best] <= found.depth:
                found = ConvexDepth(max(float(reach[best]), 0.0), normals[best].copy(), far_a[best], far_b[best])
            if found.depth - least <= _PRECISION * scale:
                break
            new = reach + hull.equations[facets, 3] > 0.1 * _PRECISION * scale
            of_a, of_b = np.vstack([of_a, far_a[new]]), np.vstack([of_b, far_b[new]])
            hull.add_points((far_a - far_b)[new])
        found = _with_points(found, hull, of_a, of_b)
        hull.close()
    except QhullError:  # differences in a plane: the normals of the faces have decided
        pass
    return found


def _some_normals(solid: CollisionObject) -> np.ndarray:
    """(n, 3) of its faces, in the world."""
    return solid.planes[:: -(-len(solid.planes) // _FACES), :3] @ solid.pose[:3, :3].T


def _with_points(found: ConvexDepth, hull: Any, of_a: np.ndarray, of_b: np.ndarray) -> ConvexDepth:
    """The same with the points of both solids that meet the origin's projection on the nearest facet."""
    facets = np.flatnonzero(hull.equations[:, :3] @ found.normal > 1.0 - _SAME_PLANE)
    corners = hull.simplices[facets]
    weights = [_weights(hull.points[three], found.depth * found.normal) for three in corners]
    if not weights:
        return found
    best = int(np.argmax([w.min() for w in weights]))  # of the facets in one plane, the one that has the point
    share = np.clip(weights[best], 0.0, 1.0)
    share /= share.sum()
    return replace(found, point_a=share @ of_a[corners[best]], point_b=share @ of_b[corners[best]])


def _weights(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """(3,) with which the corners of a triangle give a point of its plane."""
    rest = np.linalg.lstsq((corners[1:] - corners[0]).T, point - corners[0], rcond=None)[0]
    return np.array([1.0 - rest.sum(), *rest])
