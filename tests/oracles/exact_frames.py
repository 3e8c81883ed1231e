"""The frame of a query, its determinant and signs in exact integers: what the rounding bounds are measured against."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tangere.query.contacts import Kind

__all__ = ["BITS", "ONE", "Frame", "cross", "dot", "exact_frame", "integers", "ratios", "thrice_bernstein"]

BITS = 160  # every input times 2^BITS is an integer
ONE = 2**BITS


def _integer(x: float) -> int:
    numerator, denominator = x.as_integer_ratio()
    assert denominator <= 2**BITS, f"{x} has more than {BITS} binary digits after the point"
    return numerator * (2**BITS // denominator)


integers = np.frompyfunc(lambda x: _integer(float(x)), 1, 1)


class Frame(NamedTuple):
    """e1, e2, e3 at the two ends of an interval, (n, 3) exact integers times 2^-2 BITS."""

    left: list[np.ndarray]
    right: list[np.ndarray]


def exact_frame(kind: Kind, points: np.ndarray, left: np.ndarray, right: np.ndarray) -> Frame:
    x, times = integers(points), [integers(t)[:, None] for t in (left, right)]
    origin, *others = (1, 2, 3, 0) if kind == Kind.VERTEX_FACE else (0, 1, 2, 3)
    ends = []
    for t in times:
        now = [x[:, k] * (ONE - t) + x[:, k + 4] * t for k in range(4)]
        ends.append([now[k] - now[origin] for k in others])
    return Frame(*ends)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([a[:, i - 2] * b[:, i - 1] - a[:, i - 1] * b[:, i - 2] for i in range(3)], axis=1)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1)


def thrice_bernstein(f: Frame) -> np.ndarray:
    """Three times the Bernstein coefficients of det(e1, e2, e3) over the interval, (n, 4)."""
    ends = (f.left, f.right)
    rows: list[list[np.ndarray]] = [[], [], [], []]
    for i in range(8):
        choice = [i & 1, i >> 1 & 1, i >> 2]
        e1, e2, e3 = (ends[side][k] for k, side in enumerate(choice))
        rows[sum(choice)].append(dot(cross(e1, e2), e3))
    return np.stack([3 * rows[0][0], sum(rows[1]), sum(rows[2]), 3 * rows[3][0]], axis=1)


def ratios(computed: np.ndarray, exact: np.ndarray, divisor: int, bound: np.ndarray) -> np.ndarray:
    """|computed - exact / divisor| / bound, where the division is the only inexact step."""
    bound = np.broadcast_to(bound.reshape(len(bound), *[1] * (computed.ndim - 1)), computed.shape)
    error = abs(integers(computed) * divisor - exact * ONE)
    return np.array([e / (_integer(float(b)) * divisor) for e, b in zip(error.flat, bound.flat, strict=True)])
