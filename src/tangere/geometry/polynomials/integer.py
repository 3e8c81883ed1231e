"""Polynomials with integer coefficients and their real roots in [0, 1], exactly.

Question: where are the roots of p in [0, 1], what is the sign of another polynomial there, and which doubles enclose
          each root?
Method:   Descartes' rule with bisection isolates the roots; quadratic interval refinement narrows a bracket; a sign is
          read off when the other polynomial cannot vanish in the bracket, and is zero when the greatest common divisor
          vanishes there (Collins and Akritas 1976; Abbott 2014).
Known as: real root isolation by Descartes' rule of signs (Collins and Akritas 1976).

A polynomial is a list of coefficients, constant first, the last one not zero; [] is zero. Python integers throughout:
nothing rounds, nothing overflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import gcd, ldexp
from operator import ne

Polynomial = list[int]

#: A bracket this narrow around a root where the sign is still open: suspect an exact zero, ask the common divisor.
_SUSPECT_ZERO_BITS = 60


class Root:
    """One real root t in [0, 1]: `numerator` / 2^`bits` when `exact`, else strictly between it and its successor.

    `local` is a polynomial in s with t = (numerator + s) / 2^bits. The root is its only zero for s in [0, 1], and a
    simple one. A root at a dyadic number may be held by a bracket; it becomes exact once refinement meets it.
    """

    __slots__ = ("bits", "exact", "local", "numerator", "step")

    def __init__(self, numerator: int, bits: int, local: Polynomial | None = None) -> None:
        self.numerator = numerator
        self.bits = bits
        self.local = local or []
        self.exact = local is None
        self.step = 2

    def sign_of(self, polynomial: Polynomial) -> int:
        """-1, 0 or 1: the sign of `polynomial` at this root."""
        if not polynomial:
            return 0
        asked_divisor = False
        while True:
            values = _restricted(polynomial, self.numerator, self.bits)
            if self.exact or abs(values[0]) > sum(map(abs, values[1:])):
                return _sign(values[0])
            if self.bits >= _SUSPECT_ZERO_BITS and not asked_divisor:
                common = greatest_common_divisor(self.local, values)
                if _sign(common[0]) != _sign(sum(common)):
                    return 0
                asked_divisor = True
            self.refine()

    def refine(self) -> None:
        """Narrow the bracket: by the secant's guess if it is right, else by halves. An exact root stays."""
        if self.exact:
            return
        low, high = self.local[0], sum(self.local)
        guess = (low << self.step) // (low - high)
        if self._narrow_to(guess, self.step):
            self.step *= 2
            return
        self.step = max(1, self.step // 2)
        if not self._narrow_to(0, 1):
            self._narrow_to(1, 1)

    def enclosing_floats(self) -> tuple[float, float]:
        """The largest double not above the root and the smallest not below it."""
        # With 53 bits before the binary point of the bracket, or at the spacing of the subnormals, no double lies
        # strictly inside the bracket: its ends decide.
        while not self.exact and self.numerator.bit_length() < 53 and self.bits < 1074:
            self.refine()
        upper = self.numerator if self.exact else self.numerator + 1
        below = self.numerator >> _surplus_bits(self.numerator, self.bits)
        above = -(-upper >> _surplus_bits(upper, self.bits))
        return (
            ldexp(below, _surplus_bits(self.numerator, self.bits) - self.bits),
            ldexp(above, _surplus_bits(upper, self.bits) - self.bits),
        )

    def _narrow_to(self, piece: int, step: int) -> bool:
        """Replace the bracket by its piece number `piece` of 2^`step`, if the root is in that piece or at its ends."""
        local = _restricted(self.local, piece, step)
        low, high = local[0], sum(local)
        if low and high and (low > 0) == (high > 0):
            return False
        self.numerator = (self.numerator << step) + piece + (high == 0)
        self.bits += step
        self.exact = low == 0 or high == 0
        self.local = local
        return True


def roots_in_unit_interval(polynomial: Polynomial) -> Iterator[Root]:
    """The distinct roots of a polynomial in [0, 1], in ascending order; none for the zero polynomial."""
    if not polynomial:
        return
    root_at_zero, root_at_one = polynomial[0] == 0, sum(polynomial) == 0
    while polynomial[0] == 0:
        polynomial = polynomial[1:]
    while sum(polynomial) == 0:
        polynomial = _without_root_at_one(polynomial)
    if root_at_zero:
        yield Root(0, 0)
    # Descartes' count of 0 or 1 is exact with multiplicity; only beyond it can a multiple root be in the way.
    variations = _variations_in_unit_interval(polynomial)
    if variations > 1:
        polynomial = _square_free(polynomial)
        variations = _variations_in_unit_interval(polynomial)
    pending: list[Root | tuple[Polynomial, int, int, int]] = [(polynomial, 0, 0, variations)]
    while pending:
        item = pending.pop()
        if isinstance(item, Root):
            yield item
            continue
        local, numerator, bits, variations = item
        if variations == 1:
            yield Root(numerator, bits, local)
        elif variations > 1:
            left, middle = _restricted(local, 0, 1), []
            if sum(left) == 0:
                left, middle = _without_root_at_one(left), [Root(2 * numerator + 1, bits + 1)]
            # The counts of the halves never exceed the count of the whole: often the right half needs no look.
            in_left = _variations_in_unit_interval(left)
            if variations > in_left + len(middle):
                right = _shifted_by_one(left[::-1])
                pending.append((right, 2 * numerator + 1, bits + 1, _variations_in_unit_interval(right)))
            pending += [*middle, (left, 2 * numerator, bits + 1, in_left)]
    if root_at_one:
        yield Root(1, 0)


def add(p: Polynomial, q: Polynomial) -> Polynomial:
    """p + q."""
    if len(p) < len(q):
        p, q = q, p
    return _trimmed([a + b for a, b in zip(p, q, strict=False)] + p[len(q) :])


def subtract(p: Polynomial, q: Polynomial) -> Polynomial:
    """p - q."""
    shared = [a - b for a, b in zip(p, q, strict=False)]
    return _trimmed(shared + p[len(q) :] + [-b for b in q[len(p) :]])


def multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    """p q."""
    if not p or not q:
        return []
    result = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q, start=i):
            result[j] += a * b
    return result


def greatest_common_divisor(p: Polynomial, q: Polynomial) -> Polynomial:
    """The primitive greatest common divisor, up to sign; [] if both are zero."""
    p, q = _primitive(p), _primitive(q)
    while q:
        p, q = q, _primitive(_divide(p, q)[1])
    return p


def _divide(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder of c p by q, for some integer c != 0 that keeps them integer."""
    remainder, quotient = p, [0] * max(0, len(p) - len(q) + 1)
    while len(remainder) >= len(q):
        shift = len(remainder) - len(q)
        common = gcd(remainder[-1], q[-1])
        grow, factor = q[-1] // common, remainder[-1] // common
        quotient = [grow * a for a in quotient]
        quotient[shift] = factor
        remainder = [grow * a for a in remainder]
        for i, b in enumerate(q, start=shift):
            remainder[i] -= factor * b
        remainder = _trimmed(remainder)
    return quotient, remainder


def _square_free(p: Polynomial) -> Polynomial:
    """A polynomial with the same roots as p, all of them simple."""
    derivative = [i * a for i, a in enumerate(p)][1:]
    return _primitive(_divide(p, greatest_common_divisor(p, derivative))[0])


def _restricted(p: Polynomial, numerator: int, bits: int) -> Polynomial:
    """2^(bits degree) p((numerator + s) / 2^bits) as a polynomial in s: p seen from one piece of its interval."""
    degree = len(p) - 1
    result = [a << bits * (degree - i) for i, a in enumerate(p)]
    if numerator:
        for i in range(degree):
            for j in range(degree - 1, i - 1, -1):
                result[j] += numerator * result[j + 1]
    return result


def _without_root_at_one(p: Polynomial) -> Polynomial:
    """p / (t - 1), where p(1) = 0."""
    quotient = p[1:]
    for i in range(len(quotient) - 2, -1, -1):
        quotient[i] += quotient[i + 1]
    return quotient


def _variations_in_unit_interval(p: Polynomial) -> int:
    """Descartes' bound on the number of roots in the open interval (0, 1), exact when 0 or 1."""
    # The substitution t = 1 / (1 + x) reverses the coefficients, then shifts.
    signs = [a > 0 for a in _shifted_by_one(p) if a]
    return sum(map(ne, signs, signs[1:]))


def _shifted_by_one(highest_first: Polynomial) -> Polynomial:
    """q(s + 1), for a polynomial q given by its coefficients from the highest down; additions only."""
    result = []
    while highest_first:
        highest_first = list(accumulate(highest_first))
        result.append(highest_first.pop())
    return result


def _primitive(p: Polynomial) -> Polynomial:
    content = gcd(*p)
    return [a // content for a in p] if content > 1 else p


def _trimmed(p: Polynomial) -> Polynomial:
    while p and not p[-1]:
        p.pop()
    return p


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)


def _surplus_bits(numerator: int, bits: int) -> int:
    """Low bits of numerator / 2^bits that a double cannot hold."""
    return max(0, numerator.bit_length() - 53, bits - 1074)
