"""Exact static contact by linear programming over the rationals: do two convex hulls have a common point?

Points of the hulls meet where sum(u_i a_i) = sum(v_j b_j) with u, v >= 0 and both sums 1. Such a system has a solution
if and only if it has a basic one, so all bases are tried. There is no geometry in this and no special case: points,
segments, triangles, collapsed or coplanar, are all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from tangere.query.contacts import Kind

__all__ = ["hulls_meet", "touching_at"]

Point = Sequence[Fraction]


def hulls_meet(a: np.ndarray | Sequence[Point], b: np.ndarray | Sequence[Point]) -> bool:
    """Whether the convex hulls of two sets of points have a common point."""
    a, b = _exact(a), _exact(b)
    columns = [[*p, Fraction(1), Fraction(0)] for p in a] + [[*(-x for x in p), Fraction(0), Fraction(1)] for p in b]
    target = [Fraction(0)] * len(a[0]) + [Fraction(1), Fraction(1)]
    rank = _rank(columns)
    return any(_is_feasible_basis(basis, target) for basis in combinations(columns, rank))


def touching_at(kind: Kind, points: np.ndarray, time: Fraction) -> bool:
    """Whether the features of a query (8, 3) have a common point at a rational time."""
    start, end = _exact(points[:4]), _exact(points[4:])
    now = [[(1 - time) * x + time * y for x, y in zip(p, q, strict=True)] for p, q in zip(start, end, strict=True)]
    size = 1 if kind == Kind.VERTEX_FACE else 2
    return hulls_meet(now[:size], now[size:])


def _exact(points) -> list[list[Fraction]]:
    return [[x if isinstance(x, Fraction) else Fraction(float(x)) for x in p] for p in points]


def _rank(columns: Sequence[Sequence[Fraction]]) -> int:
    return len(_eliminated(columns, columns[0])[0])


def _is_feasible_basis(basis: Sequence[Sequence[Fraction]], target: Sequence[Fraction]) -> bool:
    pivots, residual = _eliminated(basis, target)
    if len(pivots) < len(basis) or any(x for row, x in enumerate(residual) if row not in pivots):
        return False
    return all(residual[row] >= 0 for row in pivots)


def _eliminated(columns: Sequence[Sequence[Fraction]], target: Sequence[Fraction]) -> tuple[list[int], list[Fraction]]:
    """Gauss-Jordan elimination of [columns | target]: the row of each pivot, and the last column."""
    rows = [[*entries] for entries in zip(*columns, target, strict=True)]
    pivots: list[int] = []
    for j in range(len(columns)):
        pivot = next((i for i, row in enumerate(rows) if row[j] and i not in pivots), None)
        if pivot is None:
            continue
        pivots.append(pivot)
        leading = rows[pivot][j]
        rows[pivot] = [x / leading for x in rows[pivot]]
        for i, row in enumerate(rows):
            if i != pivot and row[j]:
                rows[i] = [x - row[j] * y for x, y in zip(row, rows[pivot], strict=True)]
    return pivots, [row[-1] for row in rows]
