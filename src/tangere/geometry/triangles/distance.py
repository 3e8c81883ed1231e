"""Nearest points of two triangles that do not meet, as weights of their corners.

Method: the distance is that of a vertex and a face, or of two edges: 6 and 9 pairs of features, each by
        `closest_points`, which survives every degenerate shape; the smallest evaluated distance wins.
Others: `gap.closest_features` tells features apart, a vertex on a face first, and forms its points in space: other
        bits.
Known as: triangle-triangle distance over 15 pairs of features (Larsen, Gottschalk, Lin and Manocha 2000, PQP).
A triangle is a matrix with a corner in each row.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points.robust import closest_on_segments, closest_on_triangle
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_BEYOND = wp.constant(wp.float64(1.0e300))


@wp.struct
class NearestPoints:
    """A point of each triangle."""

    squared: wp.float64  # of their distance
    weights_a: wp.vec3d
    weights_b: wp.vec3d


@wp.func
def nearest_of_triangles(a: wp.mat33d, b: wp.mat33d) -> NearestPoints:
    """The nearest points of triangles a and b."""
    result = NearestPoints()
    result.squared = _BEYOND
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    for k in range(3):
        weights = closest_on_triangle(a[k], b[0], b[1], b[2])
        gap = weights[0] * (b[0] - a[k]) + weights[1] * (b[1] - a[k]) + weights[2] * (b[2] - a[k])
        if wp.dot(gap, gap) < result.squared:
            result.squared = wp.dot(gap, gap)
            corner = wp.vec3d(zero, zero, zero)
            corner[k] = one
            result.weights_a = corner
            result.weights_b = weights
        weights = closest_on_triangle(b[k], a[0], a[1], a[2])
        gap = weights[0] * (a[0] - b[k]) + weights[1] * (a[1] - b[k]) + weights[2] * (a[2] - b[k])
        if wp.dot(gap, gap) < result.squared:
            result.squared = wp.dot(gap, gap)
            corner = wp.vec3d(zero, zero, zero)
            corner[k] = one
            result.weights_a = weights
            result.weights_b = corner
    for pair in range(9):
        i = pair / 3
        j = pair % 3
        i1 = (i + 1) % 3
        j1 = (j + 1) % 3
        u = closest_on_segments(a[i], a[i1], b[j], b[j1])
        gap = (b[j] - a[i]) + u[1] * (b[j1] - b[j]) - u[0] * (a[i1] - a[i])
        if wp.dot(gap, gap) < result.squared:
            result.squared = wp.dot(gap, gap)
            along_a = wp.vec3d(zero, zero, zero)
            along_b = wp.vec3d(zero, zero, zero)
            along_a[i] = one - u[0]
            along_a[i1] = u[0]
            along_b[j] = one - u[1]
            along_b[j1] = u[1]
            result.weights_a = along_a
            result.weights_b = along_b
    return result
