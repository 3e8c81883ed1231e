"""Where, along what and how deep do pairs of triangles meet?

Method: the planes of two triangles have a line in common; each triangle covers an interval of it, and the middle of
        what both cover is the point (Möller 1997). Triangles of one plane are clipped by each other instead. The depth
        is the least of the four ways in which one triangle gets to one side of the other's plane.
Sound:  for triangles that meet, as `intersecting_pairs` decides it; up to rounding.
"""

from __future__ import annotations

import numpy as np

#: Planes are one where the sine of their angle is below this.
_PARALLEL = 1e-9


def contact_points(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 3) a point that both triangles of each pair have; a, b: corners, (n, 3, 3)."""
    normal_a, normal_b = _normals(a), _normals(b)
    line = np.cross(normal_a, normal_b)
    slant = np.linalg.norm(line, axis=1)
    points = np.empty((len(a), 3))
    crossing = slant > _PARALLEL
    for i in np.flatnonzero(~crossing):
        points[i] = _clipped_middle(a[i], b[i], normal_b[i])
    a, b, line = a[crossing], b[crossing], line[crossing] / slant[crossing, None]
    ends_a = _ends_on_plane(a, b[:, 0], normal_b[crossing])
    ends_b = _ends_on_plane(b, a[:, 0], normal_a[crossing])
    ends = np.concatenate([ends_a, ends_b], axis=1)  # both intervals of the line, (n, 4, 3)
    along = np.einsum("nij,nj->ni", ends, line)
    # Of the four ends in order, the two in the middle bound what is common.
    middle = np.argsort(along, axis=1)[:, 1:3]
    points[crossing] = np.take_along_axis(ends, middle[..., None], axis=1).mean(axis=1)
    return points


def contact_depths(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far, (n,), and along which unit vectors, (n, 3), each b has to go until it only touches a."""
    normal_a, normal_b = _normals(a), _normals(b)
    of_a = np.einsum("nij,nj->ni", a - b[:, :1], normal_b)  # heights over the other's plane
    of_b = np.einsum("nij,nj->ni", b - a[:, :1], normal_a)
    ways = np.stack([-of_b.min(axis=1), of_b.max(axis=1), of_a.max(axis=1), -of_a.min(axis=1)], axis=1)
    normals = np.stack([normal_a, -normal_a, normal_b, -normal_b], axis=1)
    ways[~np.any(normals, axis=2)] = np.inf  # a triangle without area has no plane
    least = np.argmin(ways, axis=1)
    each = np.arange(len(a))
    depth = ways[each, least]
    return np.where(np.isfinite(depth), np.maximum(depth, 0.0), 0.0), normals[each, least]


def _normals(triangles: np.ndarray) -> np.ndarray:
    cross = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(cross, axis=1, keepdims=True)
    return cross / np.where(length > 0.0, length, 1.0)


def _ends_on_plane(triangles: np.ndarray, origin: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """(n, 2, 3) where the borders of triangles cross a plane: from the corner that is alone on its side."""
    heights = np.einsum("nij,nj->ni", triangles - origin[:, None], normal)
    order = np.argsort(heights, axis=1)
    middle_is_low = np.take_along_axis(heights, order[:, 1:2], axis=1)[:, 0] <= 0.0
    alone = np.where(middle_is_low, order[:, 2], order[:, 0])
    ends = np.empty((len(triangles), 2, 3))
    each = np.arange(len(triangles))
    for k in range(2):
        other = (alone + 1 + k) % 3
        fall = heights[each, alone] - heights[each, other]
        part = np.clip(heights[each, alone] / np.where(fall != 0.0, fall, 1.0), 0.0, 1.0)
        begin = triangles[each, alone]
        ends[:, k] = begin + part[:, None] * (triangles[each, other] - begin)
    return ends


def _clipped_middle(a: np.ndarray, b: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The middle of what two triangles of one plane have in common (Sutherland and Hodgman 1974)."""
    polygon = a
    for begin, end in zip(b, np.roll(b, -1, axis=0), strict=True):
        heights = (polygon - begin) @ np.cross(normal, end - begin)
        kept = []
        for i in range(len(polygon)):
            height, before = heights[i], heights[i - 1]
            if height * before < 0.0:
                kept.append(polygon[i] + height / (height - before) * (polygon[i - 1] - polygon[i]))
            if height >= 0.0:
                kept.append(polygon[i])
        if not kept:  # they touch, and rounding says they do not
            return polygon[np.argmax(heights)]
        polygon = np.array(kept)
    return polygon.mean(axis=0)
