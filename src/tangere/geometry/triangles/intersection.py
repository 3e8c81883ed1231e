"""Do two triangles meet, at one instant? Warp functions that know when they do not know.

Method: triangles meet if and only if an edge of one meets the other. Which side of a plane a point is on is the sign
        of a determinant; it counts only where it exceeds Shewchuk's bound of its rounding error. Where a sign that
        matters is lost, the answer is UNSURE and the pair has to be decided exactly (`exact_intersection`).
Known as: a filtered predicate: triangle-triangle intersection with a static error bound (Shewchuk 1997; Guigue and
          Devillers 2003).
A triangle is a matrix with a corner in each row.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

APART = wp.constant(0)
MEET = wp.constant(1)
UNSURE = wp.constant(2)

#: (7 + 56 e) e with e = 2^-53 (Shewchuk 1997, orient3d stage A), a little more.
_FILTER = wp.constant(wp.float64(7.8e-16))
#: Products this small may have lost digits to underflow.
_UNDERFLOW = wp.constant(wp.float64(1.0e-280))


@wp.func
def side(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> int:
    """On which side of the plane abc d is: -1, 1, or 0 where rounding hides it."""
    u = a - d
    v = b - d
    w = c - d
    vw = v[0] * w[1]
    wv = w[0] * v[1]
    wu = w[0] * u[1]
    uw = u[0] * w[1]
    uv = u[0] * v[1]
    vu = v[0] * u[1]
    volume = u[2] * (vw - wv) + v[2] * (wu - uw) + w[2] * (uv - vu)
    size = (
        (wp.abs(vw) + wp.abs(wv)) * wp.abs(u[2])
        + (wp.abs(wu) + wp.abs(uw)) * wp.abs(v[2])
        + (wp.abs(uv) + wp.abs(vu)) * wp.abs(w[2])
    )
    bound = _FILTER * size + _UNDERFLOW
    sign = int(0)
    if volume > bound:
        sign = 1
    if volume < -bound:
        sign = -1
    return sign


@wp.func
def edge_pierces(p: wp.vec3d, side_p: int, q: wp.vec3d, side_q: int, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> int:
    """Whether the segment pq, whose ends are on the given sides of the plane abc, meets the triangle."""
    if side_p * side_q > 0:
        return APART
    one = side(p, q, a, b)
    two = side(p, q, b, c)
    three = side(p, q, c, a)
    if one * two < 0 or two * three < 0 or three * one < 0:
        return APART
    if side_p * side_q == 0 or one * two * three == 0:
        return UNSURE
    return MEET


@wp.func
def triangles_meet(a: wp.mat33d, b: wp.mat33d) -> int:
    """MEET, APART or UNSURE."""
    a0 = a[0]
    a1 = a[1]
    a2 = a[2]
    b0 = b[0]
    b1 = b[1]
    b2 = b[2]
    s0 = side(b0, b1, b2, a0)
    s1 = side(b0, b1, b2, a1)
    s2 = side(b0, b1, b2, a2)
    if s0 == s1 and s1 == s2 and s0 != 0:
        return APART
    r0 = side(a0, a1, a2, b0)
    r1 = side(a0, a1, a2, b1)
    r2 = side(a0, a1, a2, b2)
    if r0 == r1 and r1 == r2 and r0 != 0:
        return APART
    unsure = int(0)
    for k in range(6):
        found = int(0)
        if k == 0:
            found = edge_pierces(a0, s0, a1, s1, b0, b1, b2)
        if k == 1:
            found = edge_pierces(a1, s1, a2, s2, b0, b1, b2)
        if k == 2:
            found = edge_pierces(a2, s2, a0, s0, b0, b1, b2)
        if k == 3:
            found = edge_pierces(b0, r0, b1, r1, a0, a1, a2)
        if k == 4:
            found = edge_pierces(b1, r1, b2, r2, a0, a1, a2)
        if k == 5:
            found = edge_pierces(b2, r2, b0, r0, a0, a1, a2)
        if found == MEET:
            return MEET
        if found == UNSURE:
            unsure = 1
    if unsure == 1:
        return UNSURE
    return APART


@wp.func
def common_point(a: wp.mat33d, b: wp.mat33d) -> wp.vec3d:
    """A point, up to rounding, of two triangles that certainly meet."""
    point = a[0]
    for k in range(6):
        one = a
        other = b
        if k >= 3:
            one = b
            other = a
        p = one[k % 3]
        q = one[(k + 1) % 3]
        side_p = side(other[0], other[1], other[2], p)
        side_q = side(other[0], other[1], other[2], q)
        if edge_pierces(p, side_p, q, side_q, other[0], other[1], other[2]) == MEET:
            normal = wp.cross(other[1] - other[0], other[2] - other[0])
            point = p + wp.dot(normal, other[0] - p) / wp.dot(normal, q - p) * (q - p)
    return point
