"""Exact first contact of vertex-face and edge-edge queries by algebraic numbers (python-flint): the test oracle.

Written from the specification's formulas alone, sharing nothing with the library: minimal polynomials by factoring,
signs by ball arithmetic of growing precision with divisibility as the test of zero, weights by the Gram form (T5) and
the line-line form (T6), candidates as roots of every polynomial at which anything could change. Slow, plain, exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from itertools import count
from math import inf, lcm, nextafter
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq_poly, fmpz_poly

from tangere.query.contacts import Kind

__all__ = ["AlgebraicNumber", "OracleContact", "decide", "enclosing_floats", "roots_in_step"]


@dataclass(frozen=True)
class AlgebraicNumber:
    """The real root number `index`, ascending, of an irreducible integer polynomial."""

    coefficients: tuple[int, ...]  #: of the minimal polynomial, constant first
    index: int

    @property
    def minimal(self) -> fmpz_poly:
        return fmpz_poly(list(self.coefficients))

    @property
    def rational(self) -> Fraction | None:
        """The number, if it is rational."""
        return Fraction(-self.coefficients[0], self.coefficients[1]) if len(self.coefficients) == 2 else None

    def ball(self, bits: int) -> arb:
        """An interval of about `bits` bits that holds the number."""
        return _real_roots(self.coefficients, bits)[self.index]

    def sign_of(self, polynomial: fmpz_poly) -> int:
        """The sign of a polynomial at this number."""
        if not fmpq_poly(polynomial) % fmpq_poly(self.minimal):
            return 0
        for bits in _precisions():
            with ctx.workprec(bits):
                value = polynomial(self.ball(bits))
            if value > 0 or value < 0:
                return 1 if value > 0 else -1
        raise AssertionError

    def compare(self, other: AlgebraicNumber) -> int:
        """-1, 0 or 1 as this number is less than, equal to or greater than the other."""
        if self == other:
            return 0
        for bits in _precisions():
            mine, theirs = self.ball(bits), other.ball(bits)
            if mine < theirs or mine > theirs:
                return -1 if mine < theirs else 1
        raise AssertionError

    def enclosing_floats(self) -> tuple[float, float]:
        """The largest double not above the number and the smallest not below it."""
        if self.rational is not None:
            return enclosing_floats(self.rational)
        for bits in _precisions():
            with ctx.workprec(bits):
                low, high = self.ball(bits).lower(), self.ball(bits).upper()
            below = enclosing_floats(_as_fraction(low))[0]
            if below == enclosing_floats(_as_fraction(high))[0]:
                return below, nextafter(below, inf)  # an irrational number lies strictly between doubles
        raise AssertionError


@dataclass(frozen=True)
class OracleContact:
    """Whether the features touch within the step, and the exact first time."""

    hit: bool
    time: AlgebraicNumber | None


def decide(kind: Kind, points: np.ndarray) -> OracleContact:
    """Exact first contact of one query, points of shape (8, 3)."""
    corners = _moving_points(points)
    coplanar = _volume(corners)
    if coplanar:
        candidates = set(roots_in_step(coplanar))
    else:
        changes = _everything_that_can_change(kind, corners)
        candidates = {_ZERO} | {time for polynomial in changes for time in roots_in_step(polynomial)}
    for time in sorted(candidates, key=cmp_to_key(AlgebraicNumber.compare)):
        if _in_contact(kind, corners, time):
            return OracleContact(True, time)
    return OracleContact(False, None)


def roots_in_step(polynomial: fmpz_poly) -> list[AlgebraicNumber]:
    """The distinct roots in [0, 1] of a polynomial, ascending; none if it is constant."""
    if polynomial.degree() < 1:
        return []
    numbers = []
    for factor, _ in polynomial.factor()[1]:
        coefficients = tuple(int(c) for c in factor.coeffs())
        numbers += [AlgebraicNumber(coefficients, i) for i in range(len(_real_roots(coefficients, 64)))]
    inside = [x for x in numbers if x.compare(_ZERO) >= 0 and x.compare(_ONE) <= 0]
    return sorted(inside, key=cmp_to_key(AlgebraicNumber.compare))


def enclosing_floats(x: Fraction) -> tuple[float, float]:
    """The largest double not above a rational number and the smallest not below it."""
    nearest = float(x)
    below = nearest if Fraction(nearest) <= x else nextafter(nearest, -inf)
    above = nearest if Fraction(nearest) >= x else nextafter(nearest, inf)
    return below, above


_ZERO = AlgebraicNumber((0, 1), 0)
_ONE = AlgebraicNumber((-1, 1), 0)


def _precisions():
    return (64 << k for k in count())


@lru_cache(maxsize=64)
def _real_roots(coefficients: tuple[int, ...], bits: int) -> list[arb]:
    """Disjoint intervals around the real roots, ascending."""
    with ctx.workprec(bits):
        pairs: Any = fmpz_poly(
            list(coefficients)
        ).complex_roots()  # root and multiplicity; flint's stub omits the latter
        return sorted((root.real for root, _ in pairs if root.imag == 0), key=lambda x: _as_fraction(x.mid()))


def _as_fraction(x: arb) -> Fraction:
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _moving_points(points: np.ndarray) -> list[list[fmpz_poly]]:
    exact = [[Fraction(x) for x in row] for row in np.asarray(points, dtype=np.float64).tolist()]
    scale = lcm(*(x.denominator for row in exact for x in row))
    start, end = ([[int(x * scale) for x in row] for row in half] for half in (exact[:4], exact[4:]))
    return [[fmpz_poly([x, y - x]) for x, y in zip(a, b, strict=True)] for a, b in zip(start, end, strict=True)]


def _in_contact(kind: Kind, corners, time: AlgebraicNumber) -> bool:
    r0, r1, r2, r3 = corners
    if kind == Kind.VERTEX_FACE:
        e1, e2, w = _minus(r2, r1), _minus(r3, r1), _minus(r0, r1)
        normal = _cross(e1, e2)
        if not any(time.sign_of(x) for x in normal):
            return any(_on_segment(r0, a, b, time) for a, b in ((r1, r2), (r2, r3), (r3, r1)))
        u = _dot(w, e1) * _dot(e2, e2) - _dot(w, e2) * _dot(e1, e2)
        v = _dot(w, e2) * _dot(e1, e1) - _dot(w, e1) * _dot(e1, e2)
        inside = all(time.sign_of(x) >= 0 for x in (u, v, _dot(normal, normal) - u - v))
        return inside and time.sign_of(_dot(w, normal)) == 0
    e1, e2, w = _minus(r1, r0), _minus(r3, r2), _minus(r2, r0)
    normal = _cross(e1, e2)
    if not any(time.sign_of(x) for x in normal):
        return any(_on_segment(*pair, time) for pair in ((r0, r2, r3), (r1, r2, r3), (r2, r0, r1), (r3, r0, r1)))
    u, v, one = _dot(_cross(w, e2), normal), _dot(_cross(w, e1), normal), _dot(normal, normal)
    inside = all(time.sign_of(x) >= 0 for x in (u, one - u, v, one - v))
    return inside and time.sign_of(_dot(w, normal)) == 0


def _volume(corners) -> fmpz_poly:
    """The coplanarity cubic (T2) of four moving points."""
    r0, r1, r2, r3 = corners
    return _dot(_cross(_minus(r1, r0), _minus(r2, r0)), _minus(r3, r0))


def _on_segment(p, a, b, time: AlgebraicNumber) -> bool:
    edge, w = _minus(b, a), _minus(p, a)
    length, along = _dot(edge, edge), _dot(w, edge)
    if time.sign_of(length) == 0:
        return time.sign_of(_dot(w, w)) == 0
    off_line = _dot(w, w) * length - along * along
    return time.sign_of(off_line) == 0 and time.sign_of(along) >= 0 and time.sign_of(length - along) >= 0


def _everything_that_can_change(kind: Kind, corners) -> list[fmpz_poly]:
    """Polynomials whose roots are all the times at which coplanar features can begin to touch."""
    r0, r1, r2, r3 = corners
    if kind == Kind.VERTEX_FACE:
        pairs = [(r0, r1, r2), (r0, r2, r3), (r0, r3, r1)]
        result = _cross(_minus(r2, r1), _minus(r3, r1))
    else:
        pairs = [(r0, r2, r3), (r1, r2, r3), (r2, r0, r1), (r3, r0, r1)]
        result = _cross(_minus(r1, r0), _minus(r3, r2))
    for p, a, b in pairs:
        result += [*_cross(_minus(p, a), _minus(b, a)), _dot(_minus(p, a), _minus(p, b))]
        result += _minus(p, a) + _minus(p, b)
    return result


def _minus(a, b) -> list[fmpz_poly]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _cross(a, b) -> list[fmpz_poly]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _dot(a, b) -> fmpz_poly:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
