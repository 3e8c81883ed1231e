"""Exact triangle budgets: a generator gives the number of triangles it is asked for, or says what it could give."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from tangere.runtime import CapacityError, InputError
from tangere.runtime import whole

#: Contacts have 29 bits for the number of an edge, and a triangle has one and a half.
MOST_TRIANGLES = 2**28

Plan = TypeVar("Plan")


def solve(shape: str, triangles: int, plan_for: Callable[[int], Plan | None]) -> Plan:
    """The plan that uses exactly `triangles` triangles, or an error that names the nearest possible counts.

    Args:
        shape: what to call the shape in the error.
        triangles: how many are asked for.
        plan_for: the plan for a count, None where the shape cannot have that count. Must succeed for some larger count.
    """
    check_room(shape, whole(triangles, f"{shape}: triangles", least=1))
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


def check_room(shape: str, triangles: int) -> None:
    """Raise where a shape of at least so many triangles has more than meshes can have."""
    if triangles > MOST_TRIANGLES:
        raise CapacityError(f"{shape}: takes at least {triangles} triangles; a mesh has room for {MOST_TRIANGLES}")
