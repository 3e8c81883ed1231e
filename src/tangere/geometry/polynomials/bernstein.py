"""Polynomials on a time interval, by their Bernstein coefficients, with bounds of the rounding error.

Four moving points are coplanar when the determinant of three differences vanishes: a cubic in time (course on 3D
collision detection, chapter 6.X4). Its Bernstein coefficients enclose it, so coefficients of one sign prove that it has
no root. In this file u = 2^-53 and the bounds are derived for round-to-nearest without fused operations.

Bound of the cubic: differences e_k carry u each; a triple product of three of them collects 2u (two differences) + u
(product) + u (cross subtraction) + u (sum of crosses) + u (third difference) + u (product) + 2u (dot) + u (sum) + 2u
(third) = 12u, on terms whose absolute sum is at most the permanent of the componentwise maxima, itself at most
6 m1 m2 m3 with m_k = max |e_k|. Restriction to a part of the interval adds three lerps of 3u each: 21u in all,
21 x 6 = 126u m1 m2 m3. The constants below leave a margin.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

UNIT_ROUNDOFF = wp.constant(wp.float64(2.0**-53))
#: Absolute part of every bound: products of tiny numbers may underflow.
UNDERFLOW = wp.constant(wp.float64(1e-280))
CUBIC_BOUND = wp.constant(wp.float64(160.0 * 2.0**-53))  # times m1 m2 m3
CUBIC_BOUND_PERMANENT = wp.constant(wp.float64(30.0 * 2.0**-53))  # times the permanent; one u more a factor, rescaled
THIRD = wp.constant(wp.float64(1.0 / 3.0))


@wp.func
def lesser(a: real, b: real) -> real:
    """The smaller of two numbers: one instruction, where wp.min takes four to pass over a NaN."""
    return wp.where(a < b, a, b)


@wp.func
def greater(a: real, b: real) -> real:
    return wp.where(a > b, a, b)


@wp.func
def largest(a: vec) -> real:
    """Largest absolute component."""
    return greater(greater(wp.abs(a[0]), wp.abs(a[1])), wp.abs(a[2]))


@wp.func
def lerp(a: real, b: real, t: real) -> real:
    return a * (real(1.0) - t) + b * t


@wp.func
def at(a: vec, b: vec, t: real) -> vec:
    """Where a point that goes from a to b is at time t; exact at 0 and 1."""
    return a * (real(1.0) - t) + b * t


@wp.func
def coplanarity(a1: vec, a2: vec, a3: vec, b1: vec, b2: vec, b3: vec) -> wp.vec4d:
    """Bernstein coefficients on [0, 1] of det(e1, e2, e3)(t), where e_k goes from a_k to b_k."""
    start = wp.cross(a1, a2)
    end = wp.cross(b1, b2)
    mixed = wp.cross(a1, b2) + wp.cross(b1, a2)
    return wp.vec4d(
        wp.dot(start, a3),
        (wp.dot(mixed, a3) + wp.dot(start, b3)) * THIRD,
        (wp.dot(mixed, b3) + wp.dot(end, a3)) * THIRD,
        wp.dot(end, b3),
    )


@wp.func
def coplanarity_bound(m1: real, m2: real, m3: real) -> real:
    """Bound of the rounding error of `coplanarity`, also restricted, where m_k bounds the components of e_k.

    A product of two may lose all its digits to underflow before the third factor, which may be huge, comes in.
    """
    return CUBIC_BOUND * m1 * m2 * m3 + UNDERFLOW * wp.max(real(1.0), m3)


@wp.func
def permanent(a1: vec, a2: vec, a3: vec, b1: vec, b2: vec, b3: vec) -> real:
    """Permanent of the componentwise maxima of |e1|, |e2|, |e3|: bounds the terms of the determinant at any time."""
    m1 = wp.max(wp.abs(a1), wp.abs(b1))
    m2 = wp.max(wp.abs(a2), wp.abs(b2))
    m3 = wp.max(wp.abs(a3), wp.abs(b3))
    return (
        m1[0] * (m2[1] * m3[2] + m2[2] * m3[1])
        + m1[1] * (m2[0] * m3[2] + m2[2] * m3[0])
        + m1[2] * (m2[0] * m3[1] + m2[1] * m3[0])
    )


@wp.func
def restricted(c: wp.vec4d, left: real, right: real) -> wp.vec4d:
    """Bernstein coefficients of the same cubic on [left, right] (by blossoming)."""
    l0 = lerp(c[0], c[1], left)
    l1 = lerp(c[1], c[2], left)
    l2 = lerp(c[2], c[3], left)
    r0 = lerp(c[0], c[1], right)
    r1 = lerp(c[1], c[2], right)
    r2 = lerp(c[2], c[3], right)
    ll0 = lerp(l0, l1, left)
    ll1 = lerp(l1, l2, left)
    rr0 = lerp(r0, r1, right)
    rr1 = lerp(r1, r2, right)
    return wp.vec4d(lerp(ll0, ll1, left), lerp(ll0, ll1, right), lerp(rr0, rr1, left), lerp(rr0, rr1, right))


@wp.func
def restricted_from_zero(c: wp.vec4d, right: real) -> wp.vec4d:
    """`restricted` to [0, right], at half its cost."""
    r0 = lerp(c[0], c[1], right)
    r1 = lerp(c[1], c[2], right)
    r2 = lerp(c[2], c[3], right)
    rr0 = lerp(r0, r1, right)
    rr1 = lerp(r1, r2, right)
    return wp.vec4d(c[0], r0, rr0, lerp(rr0, rr1, right))


@wp.func
def restricted_to_one(c: wp.vec4d, left: real) -> wp.vec4d:
    """`restricted` to [left, 1], at half its cost."""
    l0 = lerp(c[0], c[1], left)
    l1 = lerp(c[1], c[2], left)
    l2 = lerp(c[2], c[3], left)
    ll0 = lerp(l0, l1, left)
    ll1 = lerp(l1, l2, left)
    return wp.vec4d(lerp(ll0, ll1, left), ll1, l2, c[3])


@wp.func
def value(c: wp.vec4d, t: real) -> real:
    l0 = lerp(c[0], c[1], t)
    l1 = lerp(c[1], c[2], t)
    l2 = lerp(c[2], c[3], t)
    return lerp(lerp(l0, l1, t), lerp(l1, l2, t), t)


@wp.func
def slope(c: wp.vec4d, t: real) -> real:
    d0 = c[1] - c[0]
    d1 = c[2] - c[1]
    d2 = c[3] - c[2]
    return real(3.0) * lerp(lerp(d0, d1, t), lerp(d1, d2, t), t)


@wp.func
def sign_of(c: wp.vec4d, bound: real) -> int:
    """1 or -1 where every coefficient certainly has that sign, so the polynomial has no root; else 0 (also for NaN)."""
    if lesser(lesser(c[0], c[1]), lesser(c[2], c[3])) > bound:
        return 1
    if greater(greater(c[0], c[1]), greater(c[2], c[3])) < -bound:
        return -1
    return 0


@wp.func
def sign_of_quadratic(c: vec, bound: real) -> int:
    """The same for the three coefficients of a quadratic."""
    if wp.min(wp.min(c[0], c[1]), c[2]) > bound:
        return 1
    if wp.max(wp.max(c[0], c[1]), c[2]) < -bound:
        return -1
    return 0
