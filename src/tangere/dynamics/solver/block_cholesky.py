"""Cholesky factors of an island's matrix in blocks of 6 x 6, sparse.

Question: which x solves H x = b, where H couples only bodies that share rows?
Method:   left-looking by columns: a column takes what all earlier ones that have a block in its row send to it, then is
          divided by the factor of its diagonal block. Each earlier column waits in the list of the next row it has.
Known as: sparse left-looking Cholesky with linked lists (Gustavson; Chen, Davis, Hager and Rajamanickam 2008), blocked.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver.elimination_order import EliminationArrays
from tangere.dynamics.solver.problem import vec6d
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: A block.
mat66d = wp.types.matrix(shape=(6, 6), dtype=wp.float64)
#: A pivot below this part of the diagonal it came from is rounding, and replaced by it.
_LEAST_PIVOT = wp.constant(wp.float64(1.0e-15))


@wp.struct
class BlockFactor:
    """H, then its factor, of all chosen islands: diagonal blocks by position, others as `block_row` has them."""

    diagonal: wp.array[mat66d]
    below: wp.array[mat66d]
    waiting: wp.array[wp.int32]  # of each position: the first column whose next row it is, -1 if none
    next: wp.array[wp.int32]  # of each column: the next one that waits for the same row
    reached: wp.array[wp.int32]  # of each column: its block in that row
    slot: wp.array[wp.int32]  # of each position: its block in the column at hand


@wp.func
def cholesky6(a: mat66d) -> mat66d:
    """The lower factor of a block; the diagonal holds inverses of the pivots."""
    l = a
    for j in range(6):
        s = l[j, j]
        least = _LEAST_PIVOT * wp.abs(a[j, j])
        for k in range(j):
            s -= l[j, k] * l[j, k]
        inverse = wp.float64(1.0) / wp.sqrt(wp.max(s, wp.max(least, wp.float64(1.0e-300))))
        l[j, j] = inverse
        for i in range(j + 1, 6):
            t = l[i, j]
            for k in range(j):
                t -= l[i, k] * l[j, k]
            l[i, j] = t * inverse
    return l


@wp.func
def times_inverse_transpose(a: mat66d, l: mat66d) -> mat66d:
    """a L^-T."""
    x = a
    for j in range(6):
        for i in range(6):
            s = x[i, j]
            for k in range(j):
                s -= x[i, k] * l[j, k]
            x[i, j] = s * l[j, j]
    return x


@wp.func
def forward6(l: mat66d, b: vec6d) -> vec6d:
    """L^-1 b."""
    x = b
    for i in range(6):
        s = x[i]
        for k in range(i):
            s -= l[i, k] * x[k]
        x[i] = s * l[i, i]
    return x


@wp.func
def backward6(l: mat66d, b: vec6d) -> vec6d:
    """L^-T b."""
    x = b
    for q in range(6):
        i = 5 - q
        s = x[i]
        for k in range(i + 1, 6):
            s -= l[k, i] * x[k]
        x[i] = s * l[i, i]
    return x


@wp.func
def factor(h: BlockFactor, order: EliminationArrays, begin: int, n: int):
    """The factor of an island of n bodies, in place."""
    for j in range(begin, begin + n):
        h.waiting[j] = -1
    for j in range(begin, begin + n):
        first = order.column_first[j]
        end = first + order.fill[j]
        for e in range(first, end):
            h.slot[begin + order.block_row[e]] = e
        d = h.diagonal[j]
        k = int(h.waiting[j])
        while k >= 0:
            after = h.next[k]
            at = h.reached[k]
            mine = h.below[at]
            d = d - mine * wp.transpose(mine)
            stop = order.column_first[k] + order.fill[k]
            for e in range(at + 1, stop):
                to = h.slot[begin + order.block_row[e]]
                h.below[to] = h.below[to] - h.below[e] * wp.transpose(mine)
            if at + 1 < stop:  # wait for the next row
                h.reached[k] = at + 1
                row = begin + order.block_row[at + 1]
                h.next[k] = h.waiting[row]
                h.waiting[row] = k
            k = after
        l = cholesky6(d)
        h.diagonal[j] = l
        for e in range(first, end):
            h.below[e] = times_inverse_transpose(h.below[e], l)
        if first < end:
            h.reached[j] = first
            row = begin + order.block_row[first]
            h.next[j] = h.waiting[row]
            h.waiting[row] = j


@wp.func
def solve_factored(h: BlockFactor, order: EliminationArrays, begin: int, n: int, x: wp.array[vec6d]):
    """x = H^-1 x, by position."""
    for j in range(begin, begin + n):
        y = forward6(h.diagonal[j], x[j])
        x[j] = y
        first = order.column_first[j]
        for e in range(first, first + order.fill[j]):
            row = begin + order.block_row[e]
            x[row] = x[row] - h.below[e] * y
    for q in range(n):
        j = begin + n - 1 - q
        y = x[j]
        first = order.column_first[j]
        for e in range(first, first + order.fill[j]):
            y = y - x[begin + order.block_row[e]] * h.below[e]
        x[j] = backward6(h.diagonal[j], y)
