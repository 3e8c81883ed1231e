"""What differs between vertex-face and edge-edge: who is where in the frame, and the signs that mean "outside".

Both kinds are four points in a frame moved to one of them, e1, e2, e3:
    vertex-face   origin = f0,  e1 = f1 - f0,  e2 = f2 - f0,  e3 = v - f0
    edge-edge     origin = a0,  e1 = a1 - a0,  e2 = b0 - a0,  e3 = b1 - a0
so that one coplanarity cubic, one set of projected orientations and one moving-plane test serve both. Velocities are
never formed: e_k(t) = (1 - t) e_k(0) + t e_k(1), so a far origin costs nothing.

Projected orientations: with 2D cross products q1 = e1 x e2, q2 = e1 x e3, q3 = e2 x e3, q4 = q1 - q2 + q3 in any
coordinate plane, vertex-face has the weights (q4, -q3, q2) up to a common factor: mixed signs mean outside, equal
signs inside. Edge-edge: q1, q2 of one sign (b on one side of a) or q3, q4 of one sign (a on one side of b) mean
outside, both pairs opposite inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from tangere.geometry.closest_points import closest_on_segments, closest_on_triangle
from tangere.geometry.polynomials import UNDERFLOW, greater, lesser, real, sign_of_quadratic, vec
from tangere.query.contacts.record import Kind
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class MovingPoints:
    """The four points of a query at the start (x) and at the end (y) of the step."""

    x0: wp.vec3d
    x1: wp.vec3d
    x2: wp.vec3d
    x3: wp.vec3d
    y0: wp.vec3d
    y1: wp.vec3d
    y2: wp.vec3d
    y3: wp.vec3d


@dataclass(frozen=True)
class FeaturePairKind:
    """The functions in which one kind of query differs from the other."""

    kind: Kind
    stays_aside: wp.Function  #: (MovingPoints) -> on one axis, the features are apart the same way at both ends
    frame: wp.Function  #: (x0..x3) -> e1, e2, e3
    gap: wp.Function  #: (p1, p2, p3) -> gap between the two features along a direction, from the dots with e1, e2, e3
    gap_bound: wp.Function  #: (m1, m2, m3) -> bound of the rounding error of a gap
    normal: wp.Function  #: (e1, e2, e3) -> normal of the common plane when coplanar
    apart: wp.Function  #: (e1, e2, e3) -> vector from the second feature's closest point to the first's
    direction: wp.Function  #: (e1, e2, e3) -> the same direction, without its cancellation when the features are close
    exactly_apart: wp.Function  #: `apart`, slower, and right for slivers too
    verdict_at: wp.Function  #: (q1..q4, bounds) -> OUTSIDE, INSIDE or UNKNOWN from orientations at one instant
    verdict_over: wp.Function  #: the same over a time interval, from quadratics


OUTSIDE = wp.constant(1)
INSIDE = wp.constant(-1)
UNKNOWN = wp.constant(0)

#: A gap is a difference of dots of a direction with |n|_1 <= 3 and points with relative error 5u: 30u, with margin.
GAP_BOUND = wp.constant(wp.float64(32.0 * 2.0**-53))
#: An orientation is a product of two factors of relative error 5u and a difference, as a quadratic in time: 26u.
ORIENTATION_BOUND = wp.constant(wp.float64(36.0 * 2.0**-53))


@wp.func
def points_of(start: wp.array[vec], end: wp.array[vec], k: wp.vec4i) -> MovingPoints:
    """The points with these four numbers."""
    p = MovingPoints()
    p.x0 = start[k[0]]
    p.x1 = start[k[1]]
    p.x2 = start[k[2]]
    p.x3 = start[k[3]]
    p.y0 = end[k[0]]
    p.y1 = end[k[1]]
    p.y2 = end[k[2]]
    p.y3 = end[k[3]]
    return p


@wp.func
def before_on_an_axis(hi_start: vec, lo_start: vec, hi_end: vec, lo_end: vec) -> bool:
    """On some axis one feature ends (hi) before the other begins (lo), at the start of the step and at its end."""
    return (
        (hi_start[0] < lo_start[0] and hi_end[0] < lo_end[0])
        or (hi_start[1] < lo_start[1] and hi_end[1] < lo_end[1])
        or (hi_start[2] < lo_start[2] and hi_end[2] < lo_end[2])
    )


@wp.func
def lower(a: vec, b: vec) -> vec:
    return vec(lesser(a[0], b[0]), lesser(a[1], b[1]), lesser(a[2], b[2]))


@wp.func
def upper(a: vec, b: vec) -> vec:
    return vec(greater(a[0], b[0]), greater(a[1], b[1]), greater(a[2], b[2]))


@wp.func
def vertex_face_stays_aside(p: MovingPoints) -> bool:
    lo_start = lower(p.x1, lower(p.x2, p.x3))
    lo_end = lower(p.y1, lower(p.y2, p.y3))
    if before_on_an_axis(p.x0, lo_start, p.y0, lo_end):
        return True
    hi_start = upper(p.x1, upper(p.x2, p.x3))
    hi_end = upper(p.y1, upper(p.y2, p.y3))
    return before_on_an_axis(hi_start, p.x0, hi_end, p.y0)


@wp.func
def edge_edge_stays_aside(p: MovingPoints) -> bool:
    if before_on_an_axis(upper(p.x0, p.x1), lower(p.x2, p.x3), upper(p.y0, p.y1), lower(p.y2, p.y3)):
        return True
    return before_on_an_axis(upper(p.x2, p.x3), lower(p.x0, p.x1), upper(p.y2, p.y3), lower(p.y0, p.y1))


@wp.func
def vertex_face_frame(x0: vec, x1: vec, x2: vec, x3: vec):
    return x2 - x1, x3 - x1, x0 - x1


@wp.func
def edge_edge_frame(x0: vec, x1: vec, x2: vec, x3: vec):
    return x1 - x0, x2 - x0, x3 - x0


@wp.func
def vertex_face_gap(p1: real, p2: real, p3: real) -> real:
    return p3 - wp.max(real(0.0), wp.max(p1, p2))


@wp.func
def edge_edge_gap(p1: real, p2: real, p3: real) -> real:
    return wp.min(real(0.0), p1) - wp.max(p2, p3)


@wp.func
def vertex_face_gap_bound(m1: real, m2: real, m3: real) -> real:
    return GAP_BOUND * (m3 + wp.max(m1, m2)) + UNDERFLOW


@wp.func
def edge_edge_gap_bound(m1: real, m2: real, m3: real) -> real:
    return GAP_BOUND * (m1 + wp.max(m2, m3)) + UNDERFLOW


@wp.func
def vertex_face_normal(e1: vec, e2: vec, e3: vec) -> vec:
    return wp.cross(e1, e2)


@wp.func
def edge_edge_normal(e1: vec, e2: vec, e3: vec) -> vec:
    return wp.cross(e1, e3 - e2)


@wp.func
def face_region(e1: vec, e2: vec, e3: vec):
    """Where on the triangle 0, e1, e2 the point e3 is closest: (inside the face, weight of e1, weight of e2)."""
    zero = real(0.0)
    one = real(1.0)
    d1 = wp.dot(e1, e3)
    d2 = wp.dot(e2, e3)
    if d1 <= zero and d2 <= zero:
        return False, zero, zero
    from1 = e3 - e1
    d3 = wp.dot(e1, from1)
    d4 = wp.dot(e2, from1)
    if d3 >= zero and d4 <= d3:
        return False, one, zero
    beyond2 = d1 * d4 - d3 * d2
    if beyond2 <= zero and d1 >= zero and d3 <= zero and d1 > d3:
        return False, d1 / (d1 - d3), zero
    from2 = e3 - e2
    d5 = wp.dot(e1, from2)
    d6 = wp.dot(e2, from2)
    if d6 >= zero and d5 <= d6:
        return False, zero, one
    beyond1 = d5 * d2 - d1 * d6
    if beyond1 <= zero and d2 >= zero and d6 <= zero and d2 > d6:
        return False, zero, d2 / (d2 - d6)
    beyond0 = d3 * d6 - d5 * d4
    along = d4 - d3
    back = d5 - d6
    if beyond0 <= zero and along >= zero and back >= zero and along + back > zero:
        w2 = along / (along + back)
        return False, one - w2, w2
    total = beyond0 + beyond1 + beyond2
    if total > zero:
        return True, beyond1 / total, beyond2 / total
    return False, zero, zero


@wp.func
def vertex_face_apart(e1: vec, e2: vec, e3: vec) -> vec:
    inner, w1, w2 = face_region(e1, e2, e3)
    return e3 - e1 * w1 - e2 * w2


@wp.func
def vertex_face_direction(e1: vec, e2: vec, e3: vec) -> vec:
    inner, w1, w2 = face_region(e1, e2, e3)
    if inner:
        normal = wp.cross(e1, e2)
        if wp.dot(normal, e3) < real(0.0):
            return -normal
        return normal
    return e3 - e1 * w1 - e2 * w2


@wp.func
def vertex_face_exactly_apart(e1: vec, e2: vec, e3: vec) -> vec:
    w = closest_on_triangle(e3, vec(), e1, e2)
    return e3 - e1 * w[1] - e2 * w[2]


@wp.func
def edge_parameters(e1: vec, e2: vec, e3: vec):
    """Closest points of the segments 0…e1 and e2…e3: (both inside their edge, parameter on a, parameter on b)."""
    zero = real(0.0)
    one = real(1.0)
    along = e3 - e2
    aa = wp.dot(e1, e1)
    bb = wp.dot(along, along)
    ab = wp.dot(e1, along)
    a0 = wp.dot(e1, e2)
    b0 = -wp.dot(along, e2)
    square = aa * bb - ab * ab
    crossing = square > real(1e-14) * aa * bb
    s = zero
    w = zero
    if crossing:
        s = wp.clamp((ab * b0 + a0 * bb) / square, zero, one)
    if bb > zero:
        w = (ab * s + b0) / bb
    elif aa > zero:
        s = wp.clamp(a0 / aa, zero, one)
    if w < zero:
        w = zero
        if aa > zero:
            s = wp.clamp(a0 / aa, zero, one)
    elif w > one:
        w = one
        if aa > zero:
            s = wp.clamp((ab + a0) / aa, zero, one)
    inner = crossing and s > zero and s < one and w > zero and w < one
    return inner, s, w


@wp.func
def edge_edge_apart(e1: vec, e2: vec, e3: vec) -> vec:
    inner, s, w = edge_parameters(e1, e2, e3)
    return e1 * s - (e2 + (e3 - e2) * w)


@wp.func
def edge_edge_direction(e1: vec, e2: vec, e3: vec) -> vec:
    inner, s, w = edge_parameters(e1, e2, e3)
    if inner:
        normal = wp.cross(e1, e3 - e2)
        if wp.dot(normal, e2) > real(0.0):
            return -normal
        return normal
    return e1 * s - (e2 + (e3 - e2) * w)


@wp.func
def edge_edge_exactly_apart(e1: vec, e2: vec, e3: vec) -> vec:
    p = closest_on_segments(vec(), e1, e2, e3)
    return e1 * p[0] - (e2 + (e3 - e2) * p[1])


@wp.func
def vertex_face_verdict_at(
    q1: real, q2: real, q3: real, q4: real, bound1: real, bound2: real, bound3: real, bound4: real
) -> int:
    zero = real(0.0)
    least_certain = wp.min(wp.min(q2 - bound2, -q3 - bound3), q4 - bound4)
    most_certain = wp.max(wp.max(q2 + bound2, bound3 - q3), q4 + bound4)
    if least_certain > zero or most_certain < zero:
        return INSIDE
    some_positive = wp.max(wp.max(q2 - bound2, -q3 - bound3), q4 - bound4)
    some_negative = wp.min(wp.min(q2 + bound2, bound3 - q3), q4 + bound4)
    if some_positive > zero and some_negative < zero:
        return OUTSIDE
    return UNKNOWN


@wp.func
def edge_edge_verdict_at(
    q1: real, q2: real, q3: real, q4: real, bound1: real, bound2: real, bound3: real, bound4: real
) -> int:
    zero = real(0.0)
    known_a = wp.abs(q1) > bound1 and wp.abs(q2) > bound2
    known_b = wp.abs(q3) > bound3 and wp.abs(q4) > bound4
    same_a = (q1 > zero) == (q2 > zero)
    same_b = (q3 > zero) == (q4 > zero)
    if (known_a and same_a) or (known_b and same_b):
        return OUTSIDE
    if known_a and known_b:
        return INSIDE
    return UNKNOWN


@wp.func
def vertex_face_verdict_over(
    q1: vec, q2: vec, q3: vec, q4: vec, bound1: real, bound2: real, bound3: real, bound4: real
) -> int:
    s2 = sign_of_quadratic(q2, bound2)
    s3 = sign_of_quadratic(q3, bound3)
    s4 = sign_of_quadratic(q4, bound4)
    if s2 * s3 > 0 or s2 * s4 < 0 or s3 * s4 > 0:
        return OUTSIDE
    if s2 * s3 < 0 and s2 * s4 > 0:
        return INSIDE
    return UNKNOWN


@wp.func
def edge_edge_verdict_over(
    q1: vec, q2: vec, q3: vec, q4: vec, bound1: real, bound2: real, bound3: real, bound4: real
) -> int:
    s1 = sign_of_quadratic(q1, bound1)
    s2 = sign_of_quadratic(q2, bound2)
    s3 = sign_of_quadratic(q3, bound3)
    s4 = sign_of_quadratic(q4, bound4)
    if s1 * s2 > 0 or s3 * s4 > 0:
        return OUTSIDE
    if s1 * s2 < 0 and s3 * s4 < 0:
        return INSIDE
    return UNKNOWN


VERTEX_FACE = FeaturePairKind(
    kind=Kind.VERTEX_FACE,
    stays_aside=vertex_face_stays_aside,
    frame=vertex_face_frame,
    gap=vertex_face_gap,
    gap_bound=vertex_face_gap_bound,
    normal=vertex_face_normal,
    apart=vertex_face_apart,
    exactly_apart=vertex_face_exactly_apart,
    direction=vertex_face_direction,
    verdict_at=vertex_face_verdict_at,
    verdict_over=vertex_face_verdict_over,
)

EDGE_EDGE = FeaturePairKind(
    kind=Kind.EDGE_EDGE,
    stays_aside=edge_edge_stays_aside,
    frame=edge_edge_frame,
    gap=edge_edge_gap,
    gap_bound=edge_edge_gap_bound,
    normal=edge_edge_normal,
    apart=edge_edge_apart,
    exactly_apart=edge_edge_exactly_apart,
    direction=edge_edge_direction,
    verdict_at=edge_edge_verdict_at,
    verdict_over=edge_edge_verdict_over,
)
