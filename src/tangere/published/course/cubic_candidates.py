"""Where the coplanarity cubic may be zero on [0, 1]: roots without closed formulas.

Closed formulas turn a double root into a complex pair by rounding. Here the extrema cut [0, 1] into monotone pieces: a
change of sign is bisected, and an end or extremum that is zero to rounding (tolerance T3) is a candidate of its own.
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.polynomials import evaluate, quadratic_roots

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_THIRD = wp.constant(wp.float64(1 / 3))
_TWO_THIRDS = wp.constant(wp.float64(2 / 3))
_INF = wp.constant(wp.float64(float("inf")))
#: T3: bound of the rounding error of the cubic, as a part of the product of the three edge lengths.
_ROUNDING = wp.constant(wp.float64(27 * 64 * 2.0**-53))


@wp.func
def rounding(r: wp.mat33d, s: wp.mat33d) -> wp.float64:
    """T3: how large a value of the cubic may be for rounding alone [m^3].

    The rows of r and s are the edges from vertex 0 to the vertices 1, 2, 3 at t = 0 and at t = 1.
    """
    size = wp.float64(1.0)
    for k in range(3):
        size = size * wp.max(wp.length(r[k]), wp.length(s[k]))
    return _ROUNDING * size


@wp.func
def extrema(p: wp.vec4d) -> wp.vec4d:
    """0, the extrema of the cubic in (0, 1), and 1, ascending: between two of them it is monotone."""
    turns = quadratic_roots(wp.float64(3.0) * p[0], wp.float64(2.0) * p[1], p[2])
    return wp.vec4d(_ZERO, wp.clamp(turns[0], _ZERO, _ONE), wp.clamp(turns[1], _ZERO, _ONE), _ONE)


@wp.func
def vanishes(p: wp.vec4d, breaks: wp.vec4d, tau: wp.float64) -> bool:
    """Whether the cubic is zero to rounding on all of [0, 1]."""
    largest = wp.float64(0.0)
    for k in range(4):
        largest = wp.max(largest, wp.abs(evaluate(p, breaks[k])))
    return largest <= tau


@wp.func
def candidate(p: wp.vec4d, breaks: wp.vec4d, k: int, tau: wp.float64) -> wp.float64:
    """The k-th of seven possible zeros in [0, 1], ascending; inf where there is none.

    Even k: an end or an extremum at which the cubic is zero to rounding (a double root is one). Odd k: the change of
    sign between two of them, bisected to neighbouring numbers; the left one, so as not to be late.
    """
    low = wp.float64(breaks[k // 2])
    at_low = evaluate(p, low)
    if k % 2 == 0:
        return wp.where(wp.abs(at_low) <= tau, low, _INF)
    high = wp.float64(breaks[k // 2 + 1])
    if (at_low < _ZERO) == (evaluate(p, high) < _ZERO):
        return _INF
    middle = wp.float64(0.5) * (low + high)
    while middle > low and middle < high:
        if (evaluate(p, middle) < _ZERO) == (at_low < _ZERO):
            low = middle
        else:
            high = middle
        middle = wp.float64(0.5) * (low + high)
    return low


@wp.func
def one_sign(p: wp.vec4d, tau: wp.float64) -> bool:
    """Whether the Bernstein coefficients of the cubic on [0, 1] all have one sign beyond rounding: no root."""
    b0 = p[3]
    b1 = p[3] + p[2] * _THIRD
    b2 = p[3] + p[2] * _TWO_THIRDS + p[1] * _THIRD
    b3 = p[0] + p[1] + p[2] + p[3]
    low = wp.min(wp.min(b0, b1), wp.min(b2, b3))
    high = wp.max(wp.max(b0, b1), wp.max(b2, b3))
    return low > tau or high < -tau
