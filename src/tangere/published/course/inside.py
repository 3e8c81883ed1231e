"""The inside tests of the course: is the meeting point within the triangle, within the segments?

The criteria of the interior point (T4, T5), of two coplanar lines (T6) and of a vertex on an edge (T10) of the course,
chapter 6.X4, at the positions of one instant, with the misprints corrected. A collapsed face or parallel edges divide
0/0, of which the course says nothing (ERR-10): the result is NaN, no comparison with NaN holds, and the contact is
missed, as the course has it.
"""

from __future__ import annotations

import warp as wp


@wp.func
def plane_from_points(r0: wp.vec3d, r1: wp.vec3d, r2: wp.vec3d, u: wp.vec2d) -> wp.vec3d:
    """T4, first form, corrected (ERR-3 prints r01, r02 for r1, r2): r0 (1 - uA - uB) + uA r1 + uB r2."""
    return r0 * (wp.float64(1.0) - u[0] - u[1]) + u[0] * r1 + u[1] * r2


@wp.func
def plane_from_base(r0: wp.vec3d, r1: wp.vec3d, r2: wp.vec3d, u: wp.vec2d) -> wp.vec3d:
    """T4, second form: r0 + uA r01 + uB r02."""
    return r0 + u[0] * (r1 - r0) + u[1] * (r2 - r0)


@wp.func
def barycentric(r: wp.vec3d, r0: wp.vec3d, r1: wp.vec3d, r2: wp.vec3d) -> wp.vec2d:
    """T5: (uA, uB) of the point r of the plane through r0, r1, r2."""
    w = r - r0
    r01 = r1 - r0
    r02 = r2 - r0
    d11 = wp.dot(r01, r01)
    d12 = wp.dot(r01, r02)
    d22 = wp.dot(r02, r02)
    determinant = d11 * d22 - d12 * d12
    on_1 = wp.dot(w, r01) * d22 - wp.dot(w, r02) * d12
    on_2 = wp.dot(w, r02) * d11 - wp.dot(w, r01) * d12
    return wp.vec2d(on_1 / determinant, on_2 / determinant)


@wp.func
def line_line(r0: wp.vec3d, r1: wp.vec3d, r2: wp.vec3d, r3: wp.vec3d) -> wp.vec2d:
    """T6: (uA, uB) of the point where the lines r0 r1 and r2 r3 of one plane meet, in the better conditioned form."""
    r01 = r1 - r0
    r23 = r3 - r2
    n = wp.cross(r01, r23)
    squared = wp.dot(n, n)
    u_a = wp.dot(wp.cross(r2 - r0, r23), n) / squared
    u_b = wp.dot(wp.cross(r2 - r0, r01), n) / squared
    return wp.vec2d(u_a, u_b)


@wp.func
def inside_triangle(u: wp.vec2d, widen: wp.float64) -> bool:
    """Whether barycentric coordinates (uA, uB) are within the closed triangle, widened."""
    return u[0] >= -widen and u[1] >= -widen and u[0] + u[1] <= wp.float64(1.0) + widen


@wp.func
def inside_segments(u: wp.vec2d, widen: wp.float64) -> bool:
    """Whether both parameters are within their closed segment, widened."""
    top = wp.float64(1.0) + widen
    return u[0] >= -widen and u[0] <= top and u[1] >= -widen and u[1] <= top


@wp.func
def inside_segment(p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d, widen: wp.float64) -> bool:
    """T10: whether p0, on the line p1 p2, is within the closed segment, widened.

    True for any p0 where p1 = p2 (ERR-7): an edge that collapses is touched by every vertex, however far.
    """
    along = p2 - p1
    return wp.dot(p0 - p1, along) >= -widen and wp.dot(p0 - p2, along) <= widen
