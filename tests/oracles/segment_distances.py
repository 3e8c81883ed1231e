"""Distances of one segment to many segments and triangles, in extended precision, by listing all candidates.

Nothing of the library is used: ends against segments, inner points of both lines from their normal equations, ends
against planes, and where the segment goes through the plane of a triangle.
"""

from __future__ import annotations

import numpy as np

Wide = np.longdouble


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=-1)


def point_to_segments(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) distances of points (n, 3) or one point to segments (n, 3), (n, 3)."""
    p, a, b = (np.asarray(x, Wide) for x in (p, a, b))
    along = b - a
    square = _dot(along, along)
    t = np.divide(_dot(p - a, along), square, out=np.zeros_like(square), where=square > 0)
    off = p - (a + np.clip(t, 0, 1)[:, None] * along)
    return np.sqrt(_dot(off, off))


def segment_to_segments(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) distances of segment pq to segments (n, 3), (n, 3)."""
    p, q, a, b = (np.asarray(x, Wide) for x in (p, q, a, b))
    best = np.minimum(point_to_segments(p, a, b), point_to_segments(q, a, b))
    ones = np.ones((len(a), 1), Wide)
    for end in (a, b):
        best = np.minimum(best, point_to_segments(end, p * ones, q * ones))
    u, v, w = q - p, b - a, p - a
    uu, uv, vv, uw, vw = _dot(u, u) * ones[:, 0], _dot(u, v), _dot(v, v), _dot(u, w), _dot(v, w)
    det = uu * vv - uv * uv
    good = det > 1e-25 * uu * vv
    s = np.divide(uv * vw - vv * uw, det, out=np.full_like(det, -1), where=good)
    t = np.divide(uu * vw - uv * uw, det, out=np.full_like(det, -1), where=good)
    inner = good & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    off = (p + s[:, None] * u) - (a + t[:, None] * v)
    return np.where(inner, np.minimum(best, np.sqrt(_dot(off, off))), best)


def segment_to_triangles(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(n,) distances of segment pq to triangles (n, 3) x 3."""
    p, q, a, b, c = (np.asarray(x, Wide) for x in (p, q, a, b, c))
    best = segment_to_segments(p, q, a, b)
    best = np.minimum(best, np.minimum(segment_to_segments(p, q, b, c), segment_to_segments(p, q, c, a)))
    normal = np.cross(b - a, c - a)
    square = _dot(normal, normal)
    good = square > 0

    def within(x: np.ndarray) -> np.ndarray:
        return np.logical_and.reduce(
            [_dot(np.cross(t - s, x - s), normal) >= 0 for s, t in ((a, b), (b, c), (c, a))], axis=0
        )

    height = [_dot(x - a, normal) for x in (p, q)]
    size = np.sqrt(np.where(good, square, 1))
    for x, h in zip((p, q), height, strict=True):
        foot = x - (h / np.where(good, square, 1))[:, None] * normal
        best = np.where(good & within(foot), np.minimum(best, np.abs(h) / size), best)
    crossing = good & (height[0] * height[1] < 0)
    part = np.divide(height[0], height[0] - height[1], out=np.zeros_like(square), where=crossing)
    at = p + part[:, None] * (q - p)
    return np.where(crossing & within(at), 0, best)
