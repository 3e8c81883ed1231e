"""Pass 2: what pass 1 left undecided, marched in time with certificates, earliest first.

An interval of time is passed when one of three certificates proves that the features do not touch in it:
    1. the coplanarity cubic restricted to the interval has one sign;
    2. a moving plane separates them: with directions n at its left and N at its right end, n(t) . (x_A - x_B)(t) is a
       quadratic for each pair of vertices, and all its Bernstein coefficients are positive;
    3. the projected orientations keep signs that mean "outside" (a point that crosses the plane just beside an edge).
Where none holds down to a step of 2^-44, the answer is UNRESOLVED with the last certified-free time, or CONTACT
where the features certainly meet. The directions may be
anything, only the dot products are trusted: this is why coplanar, parallel and collapsed input needs no branch.

Known as: interval bisection in time with separating planes (Snyder et al. 1993; Wang et al. 2021, Tight Inclusion).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.polynomials import (
    CUBIC_BOUND_PERMANENT,
    UNDERFLOW,
    at,
    coplanarity,
    largest,
    permanent,
    real,
    restricted,
    sign_of,
    vec,
)
from tangere.query.first_contact.primitives.narrow_phase.features import (
    ORIENTATION_BOUND,
    OUTSIDE,
    FeaturePairKind,
    MovingPoints,
)
from tangere.query.first_contact.primitives.narrow_phase.root_isolation import (
    CONTACT,
    FREE,
    START,
    UNRESOLVED,
    allowed,
    area,
    dropped,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

SMALLEST_STEP = wp.constant(wp.float64(2.0**-44))
STEP_BUDGET = wp.constant(512)
SEPARATED_STEP_BUDGET = wp.constant(4096)
#: With a constant direction the gap is concave in time, so this part of its linear zero is sure to pass.
SURE_PART = wp.constant(wp.float64(0.98))
#: Below this many rounding bounds the gap says little about where it vanishes: shrink by a fixed factor instead.
CLEAR_GAP = wp.constant(wp.float64(256.0))
SHRINK = wp.constant(wp.float64(0.25))
#: The separation itself, with room for the rounding of a unit vector.
SEPARATION_MARGIN = wp.constant(wp.float64(1.0 + 1e-13))


@wp.func
def scaled(n: vec) -> vec:
    """n with largest component 1, or zero."""
    size = largest(n)
    if size > real(0.0):
        return n / size
    return n


@wp.func
def length(n: vec) -> real:
    """Euclidean length, scaled so that tiny vectors do not underflow."""
    size = largest(n)
    if size > real(0.0):
        return size * wp.length(n / size)
    return size


@wp.func
def contact_or_start(t: real) -> wp.uint8:
    if t > real(0.0):
        return CONTACT
    return START


@wp.func
def unit(n: vec) -> vec:
    """n with length 1, or zero; scaled first so that tiny vectors do not underflow."""
    m = scaled(n)
    length = wp.sqrt(wp.dot(m, m))
    if length > real(0.0):
        return m / length
    return m


@wp.func
def area_over(al: wp.vec2d, bl: wp.vec2d, ar: wp.vec2d, br: wp.vec2d) -> vec:
    """Bernstein coefficients of area(a(t), b(t)) on an interval with ends l and r."""
    return vec(area(al, bl), (area(al, br) + area(ar, bl)) * real(0.5), area(ar, br))


@cache
def march_function(features: FeaturePairKind) -> wp.Function:
    """The march for contact (separation 0), as a function of the four points at start and end: (time, status)."""
    frame, gap, gap_bound = features.frame, features.gap, features.gap_bound
    apart, direction, verdict_over = features.exactly_apart, features.direction, features.verdict_over

    @wp.func
    def outside_over(
        axis: int, l1: vec, l2: vec, l3: vec, r1: vec, r2: vec, r3: vec, m1: real, m2: real, m3: real
    ) -> bool:
        """Certificate 3 in the plane across one axis."""
        a1 = dropped(l1, axis)
        a2 = dropped(l2, axis)
        a3 = dropped(l3, axis)
        b1 = dropped(r1, axis)
        b2 = dropped(r2, axis)
        b3 = dropped(r3, axis)
        q1 = area_over(a1, a2, b1, b2)
        q2 = area_over(a1, a3, b1, b3)
        q3 = area_over(a2, a3, b2, b3)
        bound1 = ORIENTATION_BOUND * m1 * m2 + UNDERFLOW
        bound2 = ORIENTATION_BOUND * m1 * m3 + UNDERFLOW
        bound3 = ORIENTATION_BOUND * m2 * m3 + UNDERFLOW
        bound4 = (bound1 + bound2 + bound3) * real(1.25)
        return verdict_over(q1, q2, q3, q1 - q2 + q3, bound1, bound2, bound3, bound4) == OUTSIDE

    @wp.func
    def passable(
        c: wp.vec4d,
        cubic_bound: real,
        left: real,
        right: real,
        a1: vec,
        a2: vec,
        a3: vec,
        b1: vec,
        b2: vec,
        b3: vec,
        m1: real,
        m2: real,
        m3: real,
    ) -> real:
        """2 if no contact in [left, right] is certified; else the part of the interval to try next."""
        yes = real(2.0)
        if sign_of(restricted(c, left, right), cubic_bound) != 0:
            return yes
        l1 = at(a1, b1, left)
        l2 = at(a2, b2, left)
        l3 = at(a3, b3, left)
        r1 = at(a1, b1, right)
        r2 = at(a2, b2, right)
        r3 = at(a3, b3, right)
        n = scaled(direction(l1, l2, l3))
        bound = gap_bound(m1, m2, m3)
        next = SHRINK
        nl1 = wp.dot(n, l1)
        nl2 = wp.dot(n, l2)
        nl3 = wp.dot(n, l3)
        gap_left = gap(nl1, nl2, nl3)
        nr1 = wp.dot(n, r1)
        nr2 = wp.dot(n, r2)
        nr3 = wp.dot(n, r3)
        if gap_left > bound:
            gap_end = gap(nr1, nr2, nr3)
            if gap_end > bound:
                return yes
            if gap_left > CLEAR_GAP * bound:
                next = SURE_PART * gap_left / (gap_left - gap_end)
        m = scaled(direction(r1, r2, r3))
        if gap(wp.dot(m, r1), wp.dot(m, r2), wp.dot(m, r3)) > bound:
            ml1 = wp.dot(m, l1)
            ml2 = wp.dot(m, l2)
            ml3 = wp.dot(m, l3)
            if gap(ml1, ml2, ml3) > bound:
                return yes
            if gap_left > bound:
                if gap(nr1 + ml1, nr2 + ml2, nr3 + ml3) * real(0.5) > bound:
                    return yes
        for axis in range(3):
            if outside_over(axis, l1, l2, l3, r1, r2, r3, m1, m2, m3):
                return yes
        return next

    @wp.func
    def march(p: MovingPoints, tolerance: real):
        one = real(1.0)
        a1, a2, a3 = frame(p.x0, p.x1, p.x2, p.x3)
        b1, b2, b3 = frame(p.y0, p.y1, p.y2, p.y3)
        m1 = wp.max(largest(a1), largest(b1))
        m2 = wp.max(largest(a2), largest(b2))
        m3 = wp.max(largest(a3), largest(b3))
        # Rescaling costs one rounding a factor (it is in the bounds) and removes underflow.
        scale = one / wp.max(wp.max(m1, wp.max(m2, m3)), real(1.0e-300))
        a1 = a1 * scale
        a2 = a2 * scale
        a3 = a3 * scale
        b1 = b1 * scale
        b2 = b2 * scale
        b3 = b3 * scale
        m1 = m1 * scale
        m2 = m2 * scale
        m3 = m3 * scale
        c = coplanarity(a1, a2, a3, b1, b2, b3)
        cubic_bound = CUBIC_BOUND_PERMANENT * permanent(a1, a2, a3, b1, b2, b3) + UNDERFLOW
        t = real(0.0)
        step = one
        for _ in range(STEP_BUDGET):
            right = wp.min(one, t + step)
            part = passable(c, cubic_bound, t, right, a1, a2, a3, b1, b2, b3, m1, m2, m3)
            if part > one:
                step = (right - t) * real(2.0)
                t = right
                if t >= one:
                    return real(wp.inf), FREE
            else:
                step = (right - t) * part
                if step < SMALLEST_STEP:
                    break
        nearest = length(apart(at(a1, b1, t), at(a2, b2, t), at(a3, b3, t)))
        if nearest <= allowed(tolerance, one / scale) * scale:
            return t, contact_or_start(t)
        return t, UNRESOLVED

    return march


@cache
def march_separated_function(features: FeaturePairKind) -> wp.Function:
    """The march for a separation > 0, where only moving planes are valid: (time, status)."""
    frame, gap, gap_bound = features.frame, features.gap, features.gap_bound
    apart, direction = features.exactly_apart, features.direction

    @wp.func
    def gap_along(n: vec, e1: vec, e2: vec, e3: vec) -> real:
        return gap(wp.dot(n, e1), wp.dot(n, e2), wp.dot(n, e3))

    @wp.func
    def best_direction(e1: vec, e2: vec, e3: vec) -> vec:
        """The unit vector along which the features are further apart: across a face or two edges, which is noise where
        they are nearly collapsed, or from closest point to closest point, which cancels where they are close."""
        n = unit(direction(e1, e2, e3))
        m = unit(apart(e1, e2, e3))
        if gap_along(m, e1, e2, e3) > gap_along(n, e1, e2, e3):
            return m
        return n

    @wp.func
    def march_separated(p: MovingPoints, separation: real, tolerance: real):
        one = real(1.0)
        a1, a2, a3 = frame(p.x0, p.x1, p.x2, p.x3)
        b1, b2, b3 = frame(p.y0, p.y1, p.y2, p.y3)
        m1 = wp.max(largest(a1), largest(b1))
        m2 = wp.max(largest(a2), largest(b2))
        m3 = wp.max(largest(a3), largest(b3))
        size = wp.max(wp.max(m1, wp.max(m2, m3)), real(1.0e-300))
        scale = one / size
        a1 = a1 * scale
        a2 = a2 * scale
        a3 = a3 * scale
        b1 = b1 * scale
        b2 = b2 * scale
        b3 = b3 * scale
        wanted = separation * scale * SEPARATION_MARGIN
        bound = gap_bound(m1 * scale, m2 * scale, m3 * scale) + wanted
        t = real(0.0)
        step = one
        l1 = a1
        l2 = a2
        l3 = a3
        n = best_direction(l1, l2, l3)
        gap_left = gap_along(n, l1, l2, l3)
        for _ in range(SEPARATED_STEP_BUDGET):
            if not (gap_left > bound) or step < SMALLEST_STEP:
                return t, contact_or_start(t)
            right = wp.min(one, t + step)
            r1 = at(a1, b1, right)
            r2 = at(a2, b2, right)
            r3 = at(a3, b3, right)
            m = best_direction(r1, r2, r3)
            gap_right = gap_along(m, r1, r2, r3)
            nr1 = wp.dot(n, r1)
            nr2 = wp.dot(n, r2)
            nr3 = wp.dot(n, r3)
            gap_end = gap(nr1, nr2, nr3)
            free = gap_end > bound
            if gap_right > bound and not free:
                ml1 = wp.dot(m, l1)
                ml2 = wp.dot(m, l2)
                ml3 = wp.dot(m, l3)
                free = gap(ml1, ml2, ml3) > bound
                if not free:
                    # The interpolated direction is at most a unit vector, so its gap is at most the distance.
                    free = gap(nr1 + ml1, nr2 + ml2, nr3 + ml3) * real(0.5) > bound
            if free:
                step = (right - t) * real(2.0)
                t = right
                if t >= one:
                    return real(wp.inf), FREE
                l1 = r1
                l2 = r2
                l3 = r3
                if gap_right > gap_end:
                    n = m
                gap_left = wp.max(gap_right, gap_end)
            else:
                step = (right - t) * SURE_PART * (gap_left - bound) / (gap_left - gap_end)
        nearest = length(apart(l1, l2, l3))
        if nearest <= wanted + allowed(tolerance, size) * scale:
            return t, contact_or_start(t)
        return t, UNRESOLVED

    return march_separated
