"""The polynomials of the course: normal, coplanarity and collinearity of points at constant velocity.

The normal of three moving points (T1), four coplanar points (T2) and three collinear ones (T8, T9) of the course,
chapter 6.X4. `r` are positions at t = 0, `v` are velocities, `r01` is r1 - r0. The course calls both the vectors of T1
and the scalars of T2 A, B, C; here the scalars are a, b, c, d.
"""

from __future__ import annotations

import warp as wp

#: A leading coefficient below this part of the largest is none (spec, section 6.3).
_NO_LEADING = wp.constant(wp.float64(1.0e-14))
#: T9: a discriminant this little below zero, relative to its terms, is zero.
_DISCRIMINANT = wp.constant(wp.float64(1.0e-12))
_INF = wp.constant(wp.float64(float("inf")))


@wp.func
def position(r: wp.vec3d, v: wp.vec3d, t: wp.float64) -> wp.vec3d:
    """Where a point that starts at r with velocity v is at time t."""
    return r + v * t


@wp.func
def normal_polynomial(r01: wp.vec3d, r02: wp.vec3d, v01: wp.vec3d, v02: wp.vec3d):
    """T1: the normal A t^2 + B t + C of three moving points, as rows A, B, C [m^2]."""
    return wp.matrix_from_rows(wp.cross(v01, v02), wp.cross(r01, v02) + wp.cross(v01, r02), wp.cross(r01, r02))


@wp.func
def coplanarity(r01: wp.vec3d, r02: wp.vec3d, r03: wp.vec3d, v01: wp.vec3d, v02: wp.vec3d, v03: wp.vec3d) -> wp.vec4d:
    """T2: coefficients (a, b, c, d) of a t^3 + b t^2 + c t + d, zero when four moving points are coplanar [m^3]."""
    normal = normal_polynomial(r01, r02, v01, v02)
    on_r = normal * r03
    on_v = normal * v03
    return wp.vec4d(on_v[0], on_r[0] + on_v[1], on_r[1] + on_v[2], on_r[2])


@wp.func
def evaluate(p: wp.vec4d, t: wp.float64) -> wp.float64:
    """Value of the cubic p at t."""
    return ((p[0] * t + p[1]) * t + p[2]) * t + p[3]


@wp.func
def is_zero(p: wp.vec4d, zero: wp.float64) -> bool:
    """Whether every coefficient is at most `zero` in size: four points that stay coplanar (L 79)."""
    return wp.abs(p[0]) <= zero and wp.abs(p[1]) <= zero and wp.abs(p[2]) <= zero and wp.abs(p[3]) <= zero


@wp.func
def quadratic_roots(a: wp.float64, b: wp.float64, c: wp.float64) -> wp.vec2d:
    """T8, T9: real roots of a t^2 + b t + c in ascending order, inf in place of a missing one.

    A discriminant slightly below zero is clamped to zero. The zero polynomial has no roots here.
    """
    roots = wp.vec2d(_INF, _INF)
    largest = wp.max(wp.abs(a), wp.max(wp.abs(b), wp.abs(c)))
    if largest > wp.float64(0.0):
        a = a / largest
        b = b / largest
        c = c / largest
        if wp.abs(a) < _NO_LEADING:
            if b != wp.float64(0.0):
                roots[0] = -c / b
        else:
            discriminant = b * b - wp.float64(4.0) * a * c
            if discriminant >= -_DISCRIMINANT * wp.max(b * b, wp.abs(wp.float64(4.0) * a * c)):
                root = wp.sqrt(wp.max(discriminant, wp.float64(0.0)))
                q = wp.float64(-0.5) * (b + wp.where(b < wp.float64(0.0), -root, root))
                first = q / a
                second = wp.where(q == wp.float64(0.0), first, c / q)
                roots = wp.vec2d(wp.min(first, second), wp.max(first, second))
    return roots
