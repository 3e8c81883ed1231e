"""Distances of a piece of a needle to what is in its way: segments of vessels, triangles of membranes.

Question: how near is a segment to a segment or a triangle, and where?
Method:   of a triangle: a point where the segment goes through it, else the nearest of its ends to the triangle and of
          the segment to its edges. Exactly on an edge both say so.
Sound:    right to some 1e-15 of the sizes involved, degenerate ones included (`geometry.closest_points`).
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import closest_on_segments, closest_on_triangle
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class SegmentNearest:
    a: wp.vec3d  # on the segment
    b: wp.vec3d  # on the other
    distance: wp.float64


@wp.func
def _nearer(a: wp.vec3d, b: wp.vec3d, best: SegmentNearest) -> SegmentNearest:
    away = wp.length(a - b)
    if away >= best.distance:
        return best
    now = SegmentNearest()
    now.a = a
    now.b = b
    now.distance = away
    return now


@wp.func
def segment_to_segment(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> SegmentNearest:
    u = closest_on_segments(p, q, a, b)
    best = SegmentNearest()
    best.distance = wp.float64(wp.inf)
    return _nearer(p + u[0] * (q - p), a + u[1] * (b - a), best)


@wp.func
def segment_to_triangle(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> SegmentNearest:
    zero = wp.float64(0.0)
    best = SegmentNearest()
    best.distance = wp.float64(wp.inf)
    w = closest_on_triangle(p, a, b, c)
    best = _nearer(p, w[0] * a + w[1] * b + w[2] * c, best)
    w = closest_on_triangle(q, a, b, c)
    best = _nearer(q, w[0] * a + w[1] * b + w[2] * c, best)
    n = wp.cross(b - a, c - a)
    before = wp.dot(n, p - a)
    after = wp.dot(n, q - a)
    if (before < zero and after > zero) or (before > zero and after < zero):
        x = p + (before / (before - after)) * (q - p)
        w = closest_on_triangle(x, a, b, c)
        best = _nearer(x, w[0] * a + w[1] * b + w[2] * c, best)
    u = closest_on_segments(p, q, a, b)
    best = _nearer(p + u[0] * (q - p), a + u[1] * (b - a), best)
    u = closest_on_segments(p, q, b, c)
    best = _nearer(p + u[0] * (q - p), b + u[1] * (c - b), best)
    u = closest_on_segments(p, q, c, a)
    return _nearer(p + u[0] * (q - p), c + u[1] * (a - c), best)
