"""Nearest points of a vertex and a triangle, and of two edges: Warp functions made for many pairs.

Method: the seven regions of the plane of a triangle, and the clamped lines of two edges (Léonard 2021, section 3.7,
        whose (3.14) has the wrong sign of r and whose 3.7.1 the wrong denominators; Eberly 1999; Ericson 2005, chapter
        5). Both solve a 2 x 2 system; where it is badly conditioned, for slivers and nearly parallel edges, `robust`
        compares candidates instead.
Error:  distances are right to 1e-12 of the size of the features, also for degenerate ones. With a unit roundoff of
        r = 1.1e-16 and sin of the angle of two sides, rounded products and the determinant move a foot within a
        triangle by 6 r / sin^2 of the size, rounded dot products by 18 r / sin: together 8e-13 at sin^2 = 1e-3. Edges
        are projected on each other in the end, which leaves 22 r / sin: 8e-13 at sin^2 = 1e-5.
Others: `robust` is slower, three to five times, and right for every shape; it decides where this one would guess.
        `geometry.simd.closest_points` has these formulas for eight pairs, with the same bits. The fast vector between
        two whole triangles is `geometry.triangles.gap`.
Known as: closest points of a point and a triangle, and of two segments, by normal equations (Ericson 2005, sections
          5.1.5 and 5.1.9).
Where edges are parallel every point of their overlap is as near as any other; a contact belongs in its middle.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.closest_points.robust import closest_on_segments, closest_on_triangle
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Determinants of triangles below this part of their diagonal product, sin^2 of the angle, know too few digits.
CONDITIONED = 1.0e-3
#: The same for two edges.
CONDITIONED_EDGES = 1.0e-5
_CONDITIONED = wp.constant(wp.float64(CONDITIONED))
_CONDITIONED_EDGES = wp.constant(wp.float64(CONDITIONED_EDGES))
#: Edges are parallel where sin^2 of their angle is below this.
_PARALLEL = wp.constant(wp.float64(1.0e-12))
#: How much farther than the nearest points the middle of the overlap may be, relative to the edges.
_AS_NEAR = wp.constant(wp.float64(1.0e-12))
#: Rounding of projections on an axis, relative to the squared sizes that add up in them, and much more.
_AXIS_ROOM = wp.constant(wp.float64(1.0e-12))
#: (d n + rounding)^2 <= d^2 n^2 (1 + 1e-6) + 1e6 rounding^2, with some 1e-15 of the product of three lengths.
_PLANE_ROOM = wp.constant(wp.float64(1.0 + 1.0e-6))
_PLANE_ROUNDING = wp.constant(wp.float64(1.0e-22))


@wp.func
def face_near(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, distance: wp.float64) -> bool:
    """Whether p is nearer to the triangle than `distance`.

    Most pairs that are asked are not, and two axes tell: across the plane, for layers of a surface, and from p to the
    middle of the triangle, for neighbours in a surface.
    """
    zero = wp.float64(0.0)
    three = wp.float64(3.0)
    within = distance * distance
    e0 = b - a
    e1 = c - a
    offset = a - p
    normal = wp.cross(e0, e1)
    aa = wp.dot(e0, e0)
    bb = wp.dot(e0, e1)
    cc = wp.dot(e1, e1)
    d = wp.dot(e0, offset)
    e = wp.dot(e1, offset)
    oo = wp.dot(offset, offset)
    height = wp.dot(normal, offset)
    # Projections on 3 offset + e0 + e1, which points from p to three times the middle.
    at_a = three * oo + d + e
    to_b = three * d + aa + bb
    to_c = three * e + bb + cc
    least = wp.max(at_a + wp.min(zero, wp.min(to_b, to_c)) - _AXIS_ROOM * (oo + aa + cc), zero)
    across = height * height > within * wp.dot(normal, normal) * _PLANE_ROOM + _PLANE_ROUNDING * oo * aa * cc
    # Rounding may make the square of an axis without length negative, which must not tell anything apart.
    if across or least * least > within * wp.max(three * at_a + to_b + to_c, zero):
        return False
    apart = face_offset(p, a, b, c, nearest_on_face(p, a, b, c))
    return wp.dot(apart, apart) < within


@wp.func
def edges_near(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d, swap: bool, distance: wp.float64) -> bool:
    """Whether two edges are nearer than `distance`; across both of them and from middle to middle is asked first.

    Rounding depends on which edge is the first: `swap` makes b the first.
    """
    two = wp.float64(2.0)
    within = distance * distance
    d1 = a1 - a0
    d2 = b1 - b0
    r = a0 - b0
    normal = wp.cross(d1, d2)
    a = wp.dot(d1, d1)
    b = wp.dot(d1, d2)
    e = wp.dot(d2, d2)
    c = wp.dot(d1, r)
    f = wp.dot(d2, r)
    rr = wp.dot(r, r)
    height = wp.dot(normal, r)
    # The axis is 2 r + d1 - d2: twice the way between the middles.
    along_a = two * c + a - b
    along_b = two * f + b - e
    squared = two * two * rr + two * (c - f) + along_a - along_b
    least = wp.max(squared - wp.abs(along_a) - wp.abs(along_b) - _AXIS_ROOM * (rr + a + e), wp.float64(0.0))
    across = height * height > within * wp.dot(normal, normal) * _PLANE_ROOM + _PLANE_ROUNDING * rr * a * e
    if across or least * least > two * two * within * wp.max(squared, wp.float64(0.0)):
        return False
    p0 = wp.where(swap, b0, a0)
    p1 = wp.where(swap, b1, a1)
    q0 = wp.where(swap, a0, b0)
    q1 = wp.where(swap, a1, b1)
    apart = edges_offset(p0, p1, q0, q1, nearest_on_edges(p0, p1, q0, q1))
    return wp.dot(apart, apart) < within


@cache
def pair_near(width: int) -> wp.Function:
    """Whether item i of one list and item j of another are near: two edges (2), or a vertex and a face (1)."""

    @wp.func
    def is_near(
        items_a: wp.array2d[int],
        i: int,
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        j: int,
        positions_b: wp.array[wp.vec3d],
        swap: bool,
        distance: wp.float64,
    ) -> bool:
        """Whether a pair is near; `swap` asks for the second edge first."""
        if wp.static(width == 1):
            p = positions_a[items_a[i, 0]]
            a = positions_b[items_b[j, 0]]
            b = positions_b[items_b[j, 1]]
            c = positions_b[items_b[j, 2]]
            return face_near(p, a, b, c, distance)
        else:
            a0 = positions_a[items_a[i, 0]]
            a1 = positions_a[items_a[i, 1]]
            b0 = positions_b[items_b[j, 0]]
            b1 = positions_b[items_b[j, 1]]
            return edges_near(a0, a1, b0, b1, swap, distance)

    return is_near


@wp.func
def nearest_on_face(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Weights of a, b, c of the point of the triangle nearest to p."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    e0 = b - a
    e1 = c - a
    offset = a - p
    aa = wp.dot(e0, e0)
    bb = wp.dot(e0, e1)
    cc = wp.dot(e1, e1)
    d = wp.dot(e0, offset)
    e = wp.dot(e1, offset)
    determinant = aa * cc - bb * bb
    if not (determinant > _CONDITIONED * aa * cc):
        return closest_on_triangle(p, a, b, c)
    u = bb * e - cc * d
    v = bb * d - aa * e
    # Region 0 is the inside, 1 lies beyond the edge u + v = 1, 3 beyond u = 0, 5 beyond v = 0, 2, 4, 6 at the corners.
    on_far_edge = False
    on_first = False
    if u + v <= determinant:
        if u >= zero and v >= zero:
            u = u / determinant
            v = v / determinant
            return wp.vec3d(wp.max(one - u - v, zero), u, v)
        if u < zero and v < zero:  # 4
            on_first = d < zero
        else:  # 3 or 5
            on_first = v < zero
    elif u < zero:  # 2
        on_far_edge = (bb + d) - (cc + e) < zero
    elif v < zero:  # 6
        on_far_edge = (bb + e) - (aa + d) < zero
        on_first = True
    else:  # 1
        on_far_edge = True
    if on_far_edge:
        u = wp.clamp((cc + e - bb - d) / (aa - wp.float64(2.0) * bb + cc), zero, one)
        return wp.vec3d(zero, u, one - u)
    if on_first:
        u = wp.clamp(-d / aa, zero, one)
        return wp.vec3d(one - u, u, zero)
    v = wp.clamp(-e / cc, zero, one)
    return wp.vec3d(one - v, zero, v)


@wp.func
def face_offset(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, weights: wp.vec3d) -> wp.vec3d:
    """The way from the point of the triangle with these weights to p."""
    return weights[0] * (p - a) + weights[1] * (p - b) + weights[2] * (p - c)


@wp.func
def nearest_on_edges(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d) -> wp.vec2d:
    """Parameters (u, v), each in [0, 1], of the points of two edges nearest to each other."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    d1 = a1 - a0
    d2 = b1 - b0
    r = a0 - b0
    a = wp.dot(d1, d1)
    b = wp.dot(d1, d2)
    e = wp.dot(d2, d2)
    c = wp.dot(d1, r)
    f = wp.dot(d2, r)
    determinant = a * e - b * b
    if not (determinant > _CONDITIONED_EDGES * a * e):
        return closest_on_segments(a0, a1, b0, b1)
    u = wp.clamp((b * f - c * e) / determinant, zero, one)
    v = (b * u + f) / e
    if v < zero:
        v = zero
        u = wp.clamp(-c / a, zero, one)
    elif v > one:
        v = one
        u = wp.clamp((b - c) / a, zero, one)
    return wp.vec2d(u, v)


@wp.func
def edges_offset(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d, at: wp.vec2d) -> wp.vec3d:
    """The way from the point of edge b to the point of edge a with these parameters."""
    return (a0 - b0) + at[0] * (a1 - a0) - at[1] * (b1 - b0)


@wp.func
def centred_on_edges(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d) -> wp.vec2d:
    """Parameters of nearest points; for parallel edges those in the middle of their overlap."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    nearest = nearest_on_edges(a0, a1, b0, b1)
    d1 = a1 - a0
    d2 = b1 - b0
    a = wp.dot(d1, d1)
    b = wp.dot(d1, d2)
    e = wp.dot(d2, d2)
    if a == zero or e == zero or a * e - b * b > _PARALLEL * a * e:
        return nearest
    begin = wp.dot(b0 - a0, d1) / a
    end = wp.dot(b1 - a0, d1) / a
    low = wp.max(zero, wp.min(begin, end))
    high = wp.min(one, wp.max(begin, end))
    if low > high:
        return nearest  # no overlap: two ends
    u = wp.float64(0.5) * (low + high)
    v = wp.clamp(wp.dot(a0 + u * d1 - b0, d2) / e, zero, one)
    middle = wp.length(edges_offset(a0, a1, b0, b1, wp.vec2d(u, v)))
    least = wp.length(edges_offset(a0, a1, b0, b1, nearest))
    if middle <= least + _AS_NEAR * wp.sqrt(wp.max(a, e)):
        return wp.vec2d(u, v)
    return nearest
