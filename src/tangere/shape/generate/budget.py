"""Exact triangle budgets: a generator gives the number of triangles it is asked for, or says what it could give."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from numbers import Integral
from typing import TypeVar

from tangere.runtime import InputError

__all__ = ["factor_pair", "fraction", "length", "solve", "whole"]

Plan = TypeVar("Plan")


def solve(shape: str, triangles: int, plan_for: Callable[[int], Plan | None]) -> Plan:
    """The plan that uses exactly `triangles` triangles, or an error that names the nearest possible counts.

    Args:
        shape: what to call the shape in the error.
        triangles: how many are asked for.
        plan_for: the plan for a count, None where the shape cannot have that count. Must succeed for some larger count.
    """
    whole(shape, "triangles", triangles, least=1)
    plan = plan_for(triangles)
    if plan is not None:
        return plan
    below = next((n for n in range(triangles - 1, 0, -1) if plan_for(n) is not None), None)
    above = next(n for n in count(triangles + 1) if plan_for(n) is not None)
    nearest = f"{above}" if below is None else f"{below} and {above}"
    raise InputError(f"{shape}: cannot have exactly {triangles} triangles; nearest possible: {nearest}")


def factor_pair(product: int, aspect: float, least: tuple[int, int] = (1, 1)) -> tuple[int, int] | None:
    """Whole numbers (a, b) with a b = `product`, neither below `least`, and a / b nearest to `aspect`; None if none."""
    divisors = [d for d in range(1, math.isqrt(max(product, 0)) + 1) if product % d == 0]
    pairs = [pair for d in divisors for pair in ((d, product // d), (product // d, d))]
    fitting = [(a, b) for a, b in pairs if a >= least[0] and b >= least[1]]
    return min(fitting, key=lambda pair: abs(math.log(pair[0] / pair[1] / aspect)), default=None)


def whole(shape: str, what: str, value: int, least: int) -> int:
    """`value` if it is a whole number and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{shape}: {what} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def length(shape: str, what: str, value: float, *, below: float = math.inf) -> float:
    """`value` if it is positive, finite and below the limit [m]."""
    if not 0.0 < value < below:
        limit = "positive and finite" if below == math.inf else f"between 0 and {below:g}"
        raise InputError(f"{shape}: {what} must be {limit}, not {value!r}")
    return float(value)


def fraction(shape: str, what: str, value: float) -> float:
    """`value` if it is at least 0 and below 1."""
    if not 0.0 <= value < 1.0:
        raise InputError(f"{shape}: {what} must be at least 0 and below 1, not {value!r}")
    return float(value)
