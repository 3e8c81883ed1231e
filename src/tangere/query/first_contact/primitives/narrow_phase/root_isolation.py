"""Pass 1: almost every query decided at once, with a certificate.

Question: do these two features touch within the step, and when first?
Method:   sides kept along an axis (differences are linear in time, so comparing the ends is exact); the coplanarity
          cubic with a bound of its rounding error; each of its roots in a bracket whose ends have certified signs; the
          orientation signs at the root. The iteration that finds a root may be as careless as it likes: only the
          certificates count.
Sound:    FREE is certain, and so is CONTACT with a finite time_upper. Without one, two actual points come within 1e-14
          of the query's size of each other at a time that is certainly not late. What is left, UNRESOLVED, goes to
          `time_bisection`.
Known as: root isolation with Bernstein coefficients and certified signs (Lane and Riesenfeld 1981; Descartes' rule).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.polynomials import (
    UNDERFLOW,
    UNIT_ROUNDOFF,
    at,
    coplanarity,
    coplanarity_bound,
    greater,
    largest,
    real,
    restricted,
    restricted_from_zero,
    restricted_to_one,
    sign_of,
    slope,
    value,
    vec,
)
from tangere.query.contacts.record import Status
from tangere.query.first_contact.primitives.narrow_phase.features import INSIDE, OUTSIDE, FeaturePairKind, MovingPoints
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

# `Status`, for kernels. Contact that is proved has a finite time_upper.
FREE = wp.constant(wp.uint8(Status.FREE))
CONTACT = wp.constant(wp.uint8(Status.CONTACT))
START = wp.constant(wp.uint8(Status.START))
UNRESOLVED = wp.constant(wp.uint8(Status.UNRESOLVED))
#: A coordinate is NaN, infinite or too large: raised by the driver, never returned.
INVALID = wp.constant(wp.uint8(255))

#: Products of three differences must not overflow, so the magnitudes of a query's coordinates add up to less than this.
LARGEST_SUM = wp.constant(wp.float64(1e100))
#: Relative to the query's size.
DEFAULT_TOLERANCE = wp.constant(wp.float64(1e-6))
#: Rounding level: nobody can ask for less.
SMALLEST_TOLERANCE = wp.constant(wp.float64(1e-12))
#: Two actual points this close, relative to the query's size, are reported as touching.
TOUCHING = wp.constant(wp.float64(1e-14))
#: A bracket this narrow is good enough; a wider one (a nearly double root) is left to march.
WIDEST_BRACKET = wp.constant(wp.float64(2.5e-7))
#: Halley's iteration stops here: its next error is of third order.
LAST_STEP = wp.constant(wp.float64(6.0e-5))


@wp.func
def finite(p: MovingPoints) -> bool:
    """Every coordinate is a number of usable size (a NaN or an infinity survives any sum of them)."""
    start = wp.abs(p.x0) + wp.abs(p.x1) + wp.abs(p.x2) + wp.abs(p.x3)
    total = start + (wp.abs(p.y0) + wp.abs(p.y1) + wp.abs(p.y2) + wp.abs(p.y3))
    return total[0] + total[1] + total[2] < LARGEST_SUM


@wp.func
def allowed(tolerance: real, size: real) -> real:
    """The tolerance [m]: as given, or by default (negative) a part of the query's size."""
    if tolerance < real(0.0):
        return DEFAULT_TOLERANCE * size
    return wp.max(tolerance, SMALLEST_TOLERANCE * size)


@wp.func
def monotone_ends(c: wp.vec4d):
    """Ends k1 <= k2 of the monotone pieces [0, k1], [k1, k2], [k2, 1] of a cubic (to rounding)."""
    zero = real(0.0)
    one = real(1.0)
    d0 = c[1] - c[0]
    d1 = c[2] - c[1]
    d2 = c[3] - c[2]
    if (d0 > zero and d1 > zero and d2 > zero) or (d0 < zero and d1 < zero and d2 < zero):
        return one, one
    second = d0 - real(2.0) * d1 + d2
    half = d1 - d0
    discriminant = half * half - second * d0
    if not (discriminant > zero):
        return one, one
    root = wp.sqrt(discriminant)
    q = -(half + wp.where(half > zero, root, -root))
    r1 = one
    r2 = one
    if second != zero:
        r1 = q / second
    if q != zero:
        r2 = d0 / q
    if not (r1 > zero and r1 < one):
        r1 = one
    if not (r2 > zero and r2 < one):
        r2 = one
    return wp.min(r1, r2), wp.max(r1, r2)


@wp.func
def approximate_root(c: wp.vec4d, left: real, right: real, at_left: real, at_right: real):
    """A root of the cubic between two points of opposite sign, and about how far the value there is from zero."""
    first = real(3.0) * (c[1] - c[0])
    second = real(3.0) * (c[2] - real(2.0) * c[1] + c[0])
    third = c[3] - c[0] + real(3.0) * (c[1] - c[2])
    low = left
    high = right
    x = left + (right - left) * (at_left / (at_left - at_right))
    step = real(1.0)
    for _ in range(40):
        p = ((third * x + second) * x + first) * x + c[0]
        dp = (real(3.0) * third * x + real(2.0) * second) * x + first
        half_ddp = real(3.0) * third * x + second
        if p * at_left > real(0.0):
            low = x
        else:
            high = x
        halley = x - p * dp / (dp * dp - p * half_ddp)
        if not (halley >= low and halley <= high):
            halley = real(0.5) * (low + high)
        step = wp.abs(halley - x)
        x = halley
        if step < LAST_STEP:
            break
    curvature = wp.abs(real(3.0) * third * x + second) + wp.abs(third)
    return x, real(8.0) * curvature * step * step * step


@wp.func
def dropped(e: vec, axis: int) -> wp.vec2d:
    """Projection along a coordinate axis; which one nobody can predict, so without a branch."""
    along_x = axis == 0
    along_y = axis == 1
    return wp.vec2d(
        wp.where(along_x, e[1], wp.where(along_y, e[2], e[0])), wp.where(along_x, e[2], wp.where(along_y, e[0], e[1]))
    )


@wp.func
def area(a: wp.vec2d, b: wp.vec2d) -> real:
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def main_axis(n: vec) -> int:
    x = wp.abs(n[0])
    y = wp.abs(n[1])
    z = wp.abs(n[2])
    return wp.where(x > greater(y, z), 0, wp.where(y > z, 1, 2))


@cache
def decide_function(features: FeaturePairKind) -> wp.Function:
    """The pass as a function of the four points at the start and at the end: (time, time_upper, status)."""
    stays_aside, frame = features.stays_aside, features.frame
    apart, normal, verdict_at = features.apart, features.normal, features.verdict_at

    @wp.func
    def inside_around(e1: vec, e2: vec, e3: vec, radius: real, m1: real, m2: real, m3: real) -> int:
        """Inside, outside or unknown at every time within `radius` of the instant of e1, e2, e3.

        Bound: at the instant 20u (each factor 4u, product, difference); |e(t) - e| <= 2 m radius for each factor.
        """
        axis = main_axis(normal(e1, e2, e3))
        a1 = dropped(e1, axis)
        a2 = dropped(e2, axis)
        a3 = dropped(e3, axis)
        q1 = area(a1, a2)
        q2 = area(a1, a3)
        q3 = area(a2, a3)
        relative = real(32.0) * UNIT_ROUNDOFF + real(10.0) * radius
        bound1 = relative * m1 * m2 + UNDERFLOW
        bound2 = relative * m1 * m3 + UNDERFLOW
        bound3 = relative * m2 * m3 + UNDERFLOW
        bound4 = (bound1 + bound2 + bound3) * real(1.25)
        return verdict_at(q1, q2, q3, q1 - q2 + q3, bound1, bound2, bound3, bound4)

    @wp.func
    def decide(p: MovingPoints, tolerance: real):
        zero = real(0.0)
        one = real(1.0)
        never = real(wp.inf)
        if not finite(p):
            return never, never, INVALID
        if stays_aside(p):
            return never, never, FREE
        a1, a2, a3 = frame(p.x0, p.x1, p.x2, p.x3)
        b1, b2, b3 = frame(p.y0, p.y1, p.y2, p.y3)
        m1 = greater(largest(a1), largest(b1))
        m2 = greater(largest(a2), largest(b2))
        m3 = greater(largest(a3), largest(b3))
        size = m1 + m2 + m3
        # A gap changes by at most twice the size in a step, so at the left end of this bracket it is within tolerance.
        widest = wp.min(WIDEST_BRACKET, allowed(tolerance, wp.max(m1, wp.max(m2, m3))) / (real(4.0) * size))
        c = coplanarity(a1, a2, a3, b1, b2, b3)
        bound = coplanarity_bound(m1, m2, m3)
        if sign_of(c, bound) != 0:
            return never, never, FREE
        if not (wp.abs(c[0]) > bound):
            if largest(apart(a1, a2, a3)) <= TOUCHING * size:
                return zero, never, START
            return zero, never, UNRESOLVED
        if not (wp.abs(c[3]) > bound):
            return zero, never, UNRESOLVED

        k1 = one
        k2 = one
        # Coefficients that change sign once have one root: monotone or not, it is bracketed by 0 and 1.
        changes = int(c[0] * c[1] < zero) + int(c[1] * c[2] < zero) + int(c[2] * c[3] < zero)
        if changes != 1 or c[0] * c[3] > zero:
            k1, k2 = monotone_ends(c)
        at_k1 = c[3]
        at_k2 = c[3]
        if k1 < one:
            at_k1 = value(c, k1)
        if k2 < one:
            at_k2 = value(c, k2)
        if not (wp.abs(at_k1) > bound and wp.abs(at_k2) > bound):
            return zero, never, UNRESOLVED

        passed = real(0.0)  # certified free until here
        side = wp.sign(c[0])
        piece = int(0)
        while piece < 3:
            # On to the next piece with a root, first of all: so the threads of a warp look for their roots together.
            if piece == 0 and c[0] * at_k1 > zero:
                piece = 1
            if piece == 1 and at_k1 * at_k2 > zero:
                piece = 2
            if piece == 2 and at_k2 * c[3] > zero:
                piece = 3
            if piece < 3:
                left = zero
                right = k1
                at_left = c[0]
                at_right = at_k1
                if piece == 1:
                    left = k1
                    right = k2
                    at_left = at_k1
                    at_right = at_k2
                if piece == 2:
                    left = k2
                    right = one
                    at_left = at_k2
                    at_right = c[3]
                t, residue = approximate_root(c, left, right, at_left, at_right)
                half = (real(2.0) * bound + residue) / wp.abs(slope(c, t)) + real(1.0e-15)
                low = wp.max(zero, t - half)
                high = wp.min(one, t + half)
                if not (half < widest) or low < passed:
                    return zero, never, UNRESOLVED
                before = restricted_from_zero(c, low)
                if passed > zero:
                    before = restricted(c, passed, low)
                after = restricted_to_one(c, high) * -side
                if not (sign_of(before * side, bound) == 1 and after[0] > bound):
                    return zero, never, UNRESOLVED
                e1 = at(a1, b1, t)
                e2 = at(a2, b2, t)
                e3 = at(a3, b3, t)
                verdict = inside_around(e1, e2, e3, half, m1, m2, m3)
                if verdict == INSIDE:
                    return low, high, CONTACT
                if verdict != OUTSIDE:
                    if largest(apart(e1, e2, e3)) <= TOUCHING * size:
                        return low, never, CONTACT
                    return zero, never, UNRESOLVED
                if sign_of(after, bound) == 1:
                    return never, never, FREE
                passed = high
                side = -side
                piece += 1
        if passed == zero:
            # No root at all, though the coefficients do not show it: they do on both sides of where it comes nearest.
            nearest = wp.where(wp.abs(at_k1) < wp.abs(at_k2), k1, k2)
            if sign_of(restricted_from_zero(c, nearest) * side, bound) == 1:
                if sign_of(restricted_to_one(c, nearest) * side, bound) == 1:
                    return never, never, FREE
        return zero, never, UNRESOLVED

    return decide
