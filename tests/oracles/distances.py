"""Distance of the two features of a query at any time, in plain NumPy.

Every candidate is the distance of two actual points (an end and its foot on a segment, or the feet of the common
perpendicular brought back into the features), so a bad one can only be too long: the answer is never below the true
distance by more than rounding.
"""

from __future__ import annotations

import numpy as np

from tangere.query.contacts import Kind

__all__ = ["distance_at", "feature_distance", "query_size"]


def distance_at(kind: Kind, points: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Distances (n, ...) of n queries (n, 8, 3) at times (n, ...)."""
    near = points - points[:, [1 if kind == Kind.VERTEX_FACE else 0] * 4 + [5 if kind == Kind.VERTEX_FACE else 4] * 4]
    t = np.asarray(time)[..., None, None]
    start, end = (half.reshape(len(points), *[1] * (t.ndim - 3), 4, 3) for half in (near[:, :4], near[:, 4:]))
    return feature_distance(kind, start * (1 - t) + end * t)


def feature_distance(kind: Kind, x: np.ndarray) -> np.ndarray:
    """Distance of the features at rest, x of shape (..., 4, 3)."""
    a, b, c, d = np.moveaxis(x, -2, 0)
    if kind == Kind.VERTEX_FACE:
        sides = [_to_segment(a, p, q) for p, q in ((b, c), (c, d), (d, b))]
        return np.minimum.reduce([*sides, _to_plane_point(a, b, c, d)])
    ends = [_to_segment(p, *edge) for p, edge in ((a, (c, d)), (b, (c, d)), (c, (a, b)), (d, (a, b)))]
    return np.minimum.reduce([*ends, _between_lines(a, b, c, d)])


def query_size(points: np.ndarray) -> np.ndarray:
    """Largest coordinate difference of two vertices at one time, (n,) from (n, 8, 3)."""
    halves = points.reshape(-1, 2, 4, 3)
    return (halves.max(axis=2) - halves.min(axis=2)).max(axis=(1, 2))


def _length(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=-1)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=-1)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b in [0, 1]; 0 where b is 0."""
    return np.clip(np.divide(a, b, out=np.zeros_like(a), where=b > 0), 0.0, 1.0)


def _to_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    along = _ratio(_dot(p - a, b - a), _dot(b - a, b - a))[..., None]
    return _length(p - (a + along * (b - a)))


def _to_plane_point(p: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    normal = np.cross(b - a, c - a)
    on_b = _ratio(_dot(np.cross(p - a, c - a), normal), _dot(normal, normal))
    on_c = _ratio(_dot(np.cross(b - a, p - a), normal), _dot(normal, normal))
    on_c = np.minimum(on_c, 1 - on_b)
    return _length(p - (a + on_b[..., None] * (b - a) + on_c[..., None] * (c - a)))


def _between_lines(a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> np.ndarray:
    normal = np.cross(a1 - a0, b1 - b0)
    on_a = _ratio(_dot(np.cross(b0 - a0, b1 - b0), normal), _dot(normal, normal))[..., None]
    foot = a0 + on_a * (a1 - a0)
    return _to_segment(foot, b0, b1)
