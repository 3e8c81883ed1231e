"""Interval arithmetic in kernels: closed intervals [lower, upper] as `wp.vec2d`, rounded outward.

Question: in which range does an expression lie when its arguments are known only as ranges?
Method:   the bounds of each operation (Redon 2002, section 3.2; Moore 1966), moved outward by at least one unit in
          the last place of the rounded result; `r (1 - 2^-52)` rounds to a neighbour of r or beyond, so no rounding
          mode is needed and CPU and CUDA agree.
Sound:    x in I implies f(x) in F(I), rounding included. A bound that is not a number means "unknown": every test of
          this module then answers as for the whole line, so that nothing is discarded because of it.
Known as: interval arithmetic with outward rounding (Moore 1966).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: One unit in the last place of a number in [1, 2).
ULP = wp.constant(wp.float64(2.0**-52))
#: Covers results that underflow.
TINY = wp.constant(wp.float64(1.0e-322))
#: Errors of sine and cosine in every mathematical library, as an absolute amount, with room to spare.
TRIG_ERROR = wp.constant(wp.float64(8.0 * 2.0**-53))
#: Relative doubt about where the extrema of a sine lie.
TURN_ERROR = wp.constant(wp.float64(4.0e-16))
#: Beyond this the argument itself is too coarse for a useful answer.
LARGEST_ANGLE = wp.constant(wp.float64(1.0e9))
TURN = wp.constant(wp.float64(2.0 * np.pi))
INFINITE = wp.constant(wp.float64(np.inf))


@wp.func
def below(x: wp.float64) -> wp.float64:
    """A number strictly below x: at or below everything that rounds to x."""
    return x - wp.abs(x) * ULP - TINY


@wp.func
def above(x: wp.float64) -> wp.float64:
    """A number strictly above x: at or above everything that rounds to x."""
    return x + wp.abs(x) * ULP + TINY


@wp.func
def point(x: wp.float64) -> wp.vec2d:
    """The interval that holds x alone."""
    return wp.vec2d(x, x)


@wp.func
def plus(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    return wp.vec2d(below(a[0] + b[0]), above(a[1] + b[1]))


@wp.func
def minus(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    return wp.vec2d(below(a[0] - b[1]), above(a[1] - b[0]))


@wp.func
def times(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    ll = a[0] * b[0]
    lu = a[0] * b[1]
    ul = a[1] * b[0]
    uu = a[1] * b[1]
    product = wp.vec2d(below(wp.min(wp.min(ll, lu), wp.min(ul, uu))), above(wp.max(wp.max(ll, lu), wp.max(ul, uu))))
    # Minimum and maximum pass over what is not a number, which here may be any number.
    if wp.isnan(ll) or wp.isnan(lu) or wp.isnan(ul) or wp.isnan(uu):
        product = wp.vec2d(-INFINITE, INFINITE)
    return product


@wp.func
def square(a: wp.vec2d) -> wp.vec2d:
    m = magnitude(a)
    return wp.vec2d(wp.max(below(m[0] * m[0]), wp.float64(0.0)), above(m[1] * m[1]))


@wp.func
def inverse(a: wp.vec2d) -> wp.vec2d:
    """1 / a; the whole line if a holds zero."""
    quotient = wp.vec2d(-INFINITE, INFINITE)
    if a[0] > wp.float64(0.0) or a[1] < wp.float64(0.0):
        quotient = wp.vec2d(below(wp.float64(1.0) / a[1]), above(wp.float64(1.0) / a[0]))
    return quotient


@wp.func
def over(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    """a / b; the whole line if b holds zero."""
    return times(a, inverse(b))


@wp.func
def magnitude(a: wp.vec2d) -> wp.vec2d:
    """The absolute values of a."""
    lower = wp.float64(0.0)
    if a[0] > wp.float64(0.0):
        lower = a[0]
    if a[1] < wp.float64(0.0):
        lower = -a[1]
    upper = wp.max(-a[0], a[1])
    if wp.isnan(a[0]) or wp.isnan(a[1]):
        lower = wp.float64(0.0)
        upper = INFINITE
    return wp.vec2d(lower, upper)


@wp.func
def cosine(a: wp.vec2d) -> wp.vec2d:
    """Cosines of the angles of a [rad]."""
    one = wp.float64(1.0)
    result = wp.vec2d(-one, one)
    if a[0] >= -LARGEST_ANGLE and a[1] <= LARGEST_ANGLE and a[1] - a[0] < TURN:
        first = wp.cos(a[0])
        last = wp.cos(a[1])
        if not _passes(a, wp.float64(0.0)):
            result[1] = wp.min(wp.max(first, last) + TRIG_ERROR, one)
        if not _passes(a, wp.float64(0.5)):
            result[0] = wp.max(wp.min(first, last) - TRIG_ERROR, -one)
    return result


@wp.func
def sine(a: wp.vec2d) -> wp.vec2d:
    """Sines of the angles of a [rad]."""
    one = wp.float64(1.0)
    result = wp.vec2d(-one, one)
    if a[0] >= -LARGEST_ANGLE and a[1] <= LARGEST_ANGLE and a[1] - a[0] < TURN:
        first = wp.sin(a[0])
        last = wp.sin(a[1])
        if not _passes(a, wp.float64(0.25)):
            result[1] = wp.min(wp.max(first, last) + TRIG_ERROR, one)
        if not _passes(a, wp.float64(0.75)):
            result[0] = wp.max(wp.min(first, last) - TRIG_ERROR, -one)
    return result


@wp.func
def _passes(a: wp.vec2d, phase: wp.float64) -> bool:
    """Whether a may hold an angle of `phase` turns, up to whole turns."""
    first = a[0] / TURN - phase
    last = a[1] / TURN - phase
    doubt = TURN_ERROR * (wp.float64(1.0) + wp.abs(first) + wp.abs(last))
    return wp.ceil(first - doubt) <= wp.floor(last + doubt)


@wp.func
def hull(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    """The least interval that holds a and b."""
    joined = wp.vec2d(wp.min(a[0], b[0]), wp.max(a[1], b[1]))
    if wp.isnan(a[0]) or wp.isnan(b[0]):
        joined[0] = -INFINITE
    if wp.isnan(a[1]) or wp.isnan(b[1]):
        joined[1] = INFINITE
    return joined


@wp.func
def overlap(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    """What two enclosures of the same number have in common; a bound that is not a number gives way to the other."""
    return wp.vec2d(wp.max(a[0], b[0]), wp.min(a[1], b[1]))


@wp.func
def excludes_zero(a: wp.vec2d) -> bool:
    """Whether zero is certainly not in a."""
    return a[0] > wp.float64(0.0) or a[1] < wp.float64(0.0)
