"""Whether two triangles meet, in rational arithmetic: the oracle of everything that decides touching."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

__all__ = ["cross", "exact_meet", "minus"]


def exact_meet(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two triangles have a common point, in rational arithmetic: clip a by the slab and half-spaces of b.

    The convex hull of a's corners is cut by the planes that bound b: its own plane from both sides, then its three
    edges; anything left is common. A degenerate b has no plane and is not tested here.
    """
    polygon = [[Fraction(x) for x in corner] for corner in a.tolist()]
    b0, b1, b2 = ([Fraction(x) for x in corner] for corner in b.tolist())
    normal = cross(minus(b1, b0), minus(b2, b0))
    assert any(normal)
    planes = [(normal, b0), ([-x for x in normal], b0)]
    planes += [(cross(minus(q, p), normal), p) for p, q in ((b0, b1), (b1, b2), (b2, b0))]
    for outward, origin in planes:
        polygon = clipped(polygon, outward, origin)
    return bool(polygon)


def minus(p, q):
    return [x - y for x, y in zip(p, q, strict=True)]


def dot(p, q):
    return sum(x * y for x, y in zip(p, q, strict=True))


def cross(p, q):
    return [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]


def clipped(polygon, outward, origin):
    kept = []
    heights = [dot(outward, minus(p, origin)) for p in polygon]
    for k, p in enumerate(polygon):
        q, h, g = polygon[k - 1], heights[k], heights[k - 1]
        if h * g < 0:
            t = g / (g - h)
            kept.append([x + t * (y - x) for x, y in zip(q, p, strict=True)])
        if h <= 0:
            kept.append(p)
    return kept
