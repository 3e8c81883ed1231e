"""Closest points of points, segments and triangles: Warp functions that survive every degenerate shape.

Question: which point of a segment or a triangle is nearest, as weights of its vertices?
Method:   every candidate (ends, edges, interior) is formed, and the one whose evaluated distance is smallest wins, so a
          zero-length edge or a zero-area triangle only loses candidates and never divides 0/0
          (distances that accept a contact: course on 3D collision detection, chapter 6.X4).
Others:   `conditioned` solves for the interior point instead, faster and with other bits, and comes here where that is
          badly conditioned; `geometry.triangles.gap` and `distance` ask for all pairs of features of two triangles.
Known as: closest points on a triangle and of two segments (Ericson 2005, sections 5.1.5 and 5.1.9).
All differences are taken to the query point first: far from the origin nothing is lost but the input's own digits.
Weights are never negative and add up to 1. Distances are right to some 1e-15 of the size of what is asked about, also
of slivers.
"""

from __future__ import annotations

import warp as wp

#: |e1 x e2|^2 below this part of |e1|^2 |e2|^2: the normal of the triangle, or of two lines, is rounding noise.
_FLAT = wp.constant(wp.float64(1.0e-30))


@wp.func
def closest_on_segment(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """Parameter in [0, 1] of the point of segment ab nearest to p; 0 for a segment without length."""
    along = b - a
    squared = wp.dot(along, along)
    parameter = wp.float64(0.0)
    if squared > wp.float64(0.0):
        parameter = wp.clamp(wp.dot(p - a, along) / squared, wp.float64(0.0), wp.float64(1.0))
    return parameter


@wp.func
def closest_on_triangle(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Weights of a, b, c of the point of the triangle nearest to p."""
    one = wp.float64(1.0)
    u = closest_on_segment(p, a, b)
    weights = wp.vec3d(one - u, u, wp.float64(0.0))
    nearest = _squared_offset(p, a, b, c, weights)

    u = closest_on_segment(p, b, c)
    candidate = wp.vec3d(wp.float64(0.0), one - u, u)
    squared = _squared_offset(p, a, b, c, candidate)
    if squared < nearest:
        nearest = squared
        weights = candidate

    u = closest_on_segment(p, c, a)
    candidate = wp.vec3d(u, wp.float64(0.0), one - u)
    squared = _squared_offset(p, a, b, c, candidate)
    if squared < nearest:
        nearest = squared
        weights = candidate

    ab = b - a
    ac = c - a
    normal = wp.cross(ab, ac)
    area = wp.dot(normal, normal)
    if area > _FLAT * wp.dot(ab, ab) * wp.dot(ac, ac):
        # How far across from ab is known well, how far along it badly in a sliver: that is found on the chord there.
        on_c = wp.dot(wp.cross(ab, p - a), normal) / area
        if on_c > wp.float64(0.0) and on_c < one:
            on_b = wp.dot((p - a) - on_c * ac, ab) / wp.dot(ab, ab)
            on_b = wp.clamp(on_b, wp.float64(0.0), one - on_c)
            candidate = wp.vec3d(one - on_c - on_b, on_b, on_c)
            if _squared_offset(p, a, b, c, candidate) < nearest:
                weights = candidate
    return weights


@wp.func
def closest_on_segments(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d) -> wp.vec2d:
    """Parameters (u, w), each in [0, 1], of the points of segments a and b that are nearest to each other."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    parameters = wp.vec2d(zero, closest_on_segment(a0, b0, b1))
    nearest = _squared_gap(a0, a1, b0, b1, parameters)
    for end in range(1, 5):
        candidate = wp.vec2d(one, closest_on_segment(a1, b0, b1))
        if end == 2:
            candidate = wp.vec2d(closest_on_segment(b0, a0, a1), zero)
        if end == 3:
            candidate = wp.vec2d(closest_on_segment(b1, a0, a1), one)
        if end == 4:
            candidate = _line_line(a0, a1, b0, b1)
        squared = _squared_gap(a0, a1, b0, b1, candidate)
        if squared < nearest:
            nearest = squared
            parameters = candidate
    return parameters


@wp.func
def triangle_distance(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.float64:
    """Distance from p to the triangle abc."""
    return wp.sqrt(_squared_offset(p, a, b, c, closest_on_triangle(p, a, b, c)))


@wp.func
def segments_distance(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d) -> wp.float64:
    """Distance between the segments a and b."""
    return wp.sqrt(_squared_gap(a0, a1, b0, b1, closest_on_segments(a0, a1, b0, b1)))


@wp.func
def _line_line(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d) -> wp.vec2d:
    """Nearest points of the two lines, brought back into the segments one after the other; (0, 0) if parallel.

    Projecting back and forth also repairs the parameters of nearly parallel lines, which the quotient knows badly.
    """
    along_a = a1 - a0
    along_b = b1 - b0
    normal = wp.cross(along_a, along_b)
    squared = wp.dot(normal, normal)
    parameters = wp.vec2d(wp.float64(0.0), wp.float64(0.0))
    if squared > _FLAT * wp.dot(along_a, along_a) * wp.dot(along_b, along_b):
        u = wp.dot(wp.cross(b0 - a0, along_b), normal) / squared
        u = wp.clamp(u, wp.float64(0.0), wp.float64(1.0))
        w = closest_on_segment(a0 + u * along_a, b0, b1)
        parameters = wp.vec2d(closest_on_segment(b0 + w * along_b, a0, a1), w)
    return parameters


@wp.func
def _squared_offset(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, weights: wp.vec3d) -> wp.float64:
    offset = weights[0] * (a - p) + weights[1] * (b - p) + weights[2] * (c - p)
    return wp.dot(offset, offset)


@wp.func
def _squared_gap(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d, parameters: wp.vec2d) -> wp.float64:
    gap = (b0 - a0) + parameters[1] * (b1 - b0) - parameters[0] * (a1 - a0)
    return wp.dot(gap, gap)
