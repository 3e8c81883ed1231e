"""Contact space: the linear complementarity problem of contact forces, by Dantzig's algorithm.

Question: which f >= 0 has a = A f + b >= 0 and f . a = 0, where A = J M^-1 J^T (Redon 2002, chapter 5)?
Method:   contacts are brought in one by one, who approaches most first: the force of the one at hand grows until its
          acceleration is zero, while those of clamped contacts change so that theirs stays zero; on the way a clamped
          force that reaches zero is freed and a free acceleration that reaches zero is clamped. Every system is
          factored anew, as in the thesis; outside of it the accelerations of all m contacts are renewed.
Known as: Baraff's method (1994), principal pivoting (Cottle and Dantzig 1968).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import warp as wp

from tangere.published.redon_dynamics.lane_cholesky import (
    LaneRows,
    append_lanes,
    drop_lanes,
    factor_lanes,
    lane_rows,
    lanes_of,
    solve_lanes,
)
from tangere.runtime import SOUND, Arrays, launch, to_numpy

wp.set_module_options(SOUND)

#: Accelerations above minus this are zero.
TOLERANCE = 1e-10
#: What is smaller, in the same units, is rounding.
_ROUNDING = wp.constant(wp.float64(1.0e-11))


class LcpSolutions(NamedTuple):
    """Solutions of many problems."""

    force: np.ndarray  #: (n, m)
    acceleration: np.ndarray  #: (n, m)
    solves: np.ndarray  #: (n,): linear systems solved
    solved: np.ndarray  #: (n,) bool


@wp.struct
class SparseMatrices:
    """Symmetric matrices of many problems, m x m: dense, and the columns of each row that are not zero."""

    m: wp.int32
    sparse: wp.bool
    whole: wp.bool
    value: wp.array[wp.float64]
    column: wp.array[wp.int32]  # by row, in order
    entries: wp.array[wp.int32]  # of each row, how many


class LcpBatch:
    """Many problems of one size, each solved on one thread.

    Args:
        matrices: (n, m, m), symmetric and semi-definite. vectors: (n, m).
        sparse: read only the entries of the matrices that are not zero, where accelerations are renewed.
        incremental: as of `ConeBatch`.
        whole: renew accelerations by all of the matrix times the change of forces, not only by the columns of the
            contacts whose force changes. The thesis does not say which it does.
    """

    def __init__(
        self,
        matrices: Arrays,
        vectors: Arrays,
        *,
        tolerance: float = TOLERANCE,
        sparse: bool = False,
        incremental: bool = False,
        whole: bool = False,
        device: str = "cpu",
    ) -> None:
        a, b = to_numpy(matrices, "matrices"), to_numpy(vectors, "vectors")
        n, m = self.shape = b.shape
        place = self._device = wp.get_device(device)
        given = SparseMatrices()
        given.m, given.sparse, given.whole = m, sparse, whole
        given.value = wp.array(a.reshape(-1), dtype=wp.float64, device=place)
        full = a != 0.0 if sparse else np.zeros((1, 1, 1), bool)
        columns = np.argsort(~full, axis=2, kind="stable").astype(np.int32)
        given.column = wp.array(columns.reshape(-1), dtype=wp.int32, device=place)
        given.entries = wp.array(full.sum(axis=2).astype(np.int32).reshape(-1), dtype=wp.int32, device=place)
        constant = wp.array(b.reshape(-1), dtype=wp.float64, device=place)
        self._force, self._acceleration, change, slope = (
            wp.zeros(n * m, dtype=wp.float64, device=place) for _ in range(4)
        )
        clamped, self._state = (wp.zeros(n * m, dtype=wp.int32, device=place) for _ in range(2))
        self._solves = wp.zeros(n, dtype=wp.int32, device=place)
        lanes = lane_rows(n * (m + 2) * lanes_of(m), place)
        outputs = [self._force, self._acceleration, self._solves, change, slope, clamped, self._state, lanes]
        self._arguments = [given, constant, tolerance, incremental, *outputs]

    def solve(self) -> LcpSolutions:
        """The forces."""
        n, m = self.shape
        self._force.zero_()
        self._state.zero_()
        launch(_dantzig, n, self._arguments, device=self._device, grain=1)
        made = self._solves.numpy()
        force, acceleration = self._force.numpy().reshape(n, m), self._acceleration.numpy().reshape(n, m)
        return LcpSolutions(force.copy(), acceleration.copy(), np.abs(made), made > 0)


def solve_lcp(matrix: Arrays, vector: Arrays, **options: Any) -> LcpSolutions:
    """One problem: matrix (m, m), vector (m,); options as of `LcpBatch`."""
    found = LcpBatch(to_numpy(matrix, "matrix")[None], to_numpy(vector, "vector")[None], **options).solve()
    return LcpSolutions(*(column[0] for column in found))


#: What is known of a contact: nothing yet, force zero, acceleration zero.
_UNSEEN = wp.constant(0)
_FREE = wp.constant(1)
_CLAMPED = wp.constant(2)


@wp.func
def changed_accelerations(
    a: SparseMatrices,
    p: int,
    n: int,
    clamped: wp.array[wp.int32],
    change: wp.array[wp.float64],
    at_hand: int,
    slope: wp.array[wp.float64],
):
    """A times the change of forces, for all contacts."""
    base = p * a.m
    if a.whole:
        for i in range(a.m):
            row = (base + i) * a.m
            s = wp.float64(0.0)
            if a.sparse:
                for e in range(a.entries[base + i]):
                    j = a.column[row + e]
                    s += change[base + j] * a.value[row + j]
            else:
                for j in range(a.m):
                    s += change[base + j] * a.value[row + j]
            slope[base + i] = s
        return
    for i in range(a.m):
        slope[base + i] = wp.float64(0.0)
    for q in range(n + 1):
        j = at_hand
        if q < n:
            j = clamped[base + q]
        f = change[base + j]
        row = (base + j) * a.m
        if a.sparse:
            for e in range(a.entries[base + j]):
                i = a.column[row + e]
                slope[base + i] = slope[base + i] + f * a.value[row + i]
        else:
            for i in range(a.m):
                slope[base + i] = slope[base + i] + f * a.value[row + i]


@wp.kernel
def _dantzig(
    first: int,
    a: SparseMatrices,
    b: wp.array[wp.float64],
    tolerance: wp.float64,
    incremental: wp.bool,
    force: wp.array[wp.float64],
    acceleration: wp.array[wp.float64],
    solves: wp.array[wp.int32],
    change: wp.array[wp.float64],
    slope: wp.array[wp.float64],
    clamped: wp.array[wp.int32],
    state: wp.array[wp.int32],
    lanes: LaneRows,
):
    """One problem on one thread."""
    p = first + wp.tid()
    m = a.m
    base = p * m
    wide = (m + 7) / 8
    chol = p * (m + 2) * wide
    column = chol + m * wide
    x = column + wide
    for i in range(m):
        acceleration[base + i] = b[base + i]
        change[base + i] = wp.float64(0.0)
    n = int(0)
    factored = int(0)  # of the clamped ones, those that the factor knows
    made = int(1)
    good = bool(True)
    go = bool(True)
    while go and good:
        at_hand = int(-1)
        least = -tolerance
        for i in range(m):
            if state[base + i] != _CLAMPED and acceleration[base + i] < least:
                least = acceleration[base + i]
                at_hand = i
        go = at_hand >= 0
        done = not go
        while not done and good:
            # forces of clamped contacts against a unit force of the one at hand
            if not incremental:
                factored = 0
            for i in range(factored, n):
                row = (base + clamped[base + i]) * m
                for j in range(i + 1):
                    lanes.one[8 * (chol + i * wide) + j] = a.value[row + clamped[base + j]]
            for i in range(n):
                lanes.one[8 * x + i] = -a.value[(base + clamped[base + i]) * m + at_hand]
            made += 1
            sound = bool(True)
            if not incremental:
                sound = factor_lanes(lanes, chol, wide, n, column)
            elif factored < n:  # only the newest is not in the factor
                sound = append_lanes(lanes, chol, wide, n - 1)
            if not sound or made > 100 * (m + 10):
                good = False
            else:
                factored = n
                solve_lanes(lanes, chol, wide, n, x)
                for i in range(n):
                    change[base + clamped[base + i]] = lanes.one[8 * x + i]
                change[base + at_hand] = wp.float64(1.0)
                changed_accelerations(a, p, n, clamped, change, at_hand, slope)
                step = wp.float64(1.0e300)
                who = int(-1)
                largest = wp.float64(1.0)
                for i in range(n):
                    largest = wp.max(largest, wp.abs(change[base + clamped[base + i]]))
                # With as many clamped contacts as there are ways to move nothing moves: slopes are rounding.
                none = _ROUNDING * largest * a.value[(base + at_hand) * m + at_hand]
                if slope[base + at_hand] > none:
                    step = -acceleration[base + at_hand] / slope[base + at_hand]
                    who = at_hand
                for i in range(n):
                    j = clamped[base + i]
                    if change[base + j] < -_ROUNDING:
                        t = -force[base + j] / change[base + j]
                        if t < step:
                            step = t
                            who = j
                for j in range(m):
                    if state[base + j] == _FREE and slope[base + j] < -none:
                        t = wp.max(acceleration[base + j], wp.float64(0.0)) / -slope[base + j]
                        if t < step:
                            step = t
                            who = j
                if who < 0:
                    good = False
                else:
                    for i in range(n):
                        j = clamped[base + i]
                        force[base + j] = force[base + j] + step * change[base + j]
                    force[base + at_hand] = force[base + at_hand] + step
                    for j in range(m):
                        acceleration[base + j] = acceleration[base + j] + step * slope[base + j]
                    if who != at_hand and acceleration[base + at_hand] >= -tolerance:
                        done = True  # where all reach zero at once: whoever is nearest by rounding need not be clamped
                        change[base + at_hand] = wp.float64(0.0)
                    elif who == at_hand:
                        done = True
                        acceleration[base + who] = wp.float64(0.0)
                        state[base + who] = _CLAMPED
                        clamped[base + n] = who
                        n += 1
                    elif state[base + who] == _CLAMPED:
                        force[base + who] = wp.float64(0.0)
                        change[base + who] = wp.float64(0.0)
                        state[base + who] = _FREE
                        k = int(0)
                        gone = int(0)
                        for i in range(n):
                            if clamped[base + i] != who:
                                clamped[base + k] = clamped[base + i]
                                k += 1
                            else:
                                gone = i
                        if incremental:
                            drop_lanes(lanes, chol, wide, factored, gone)
                            factored -= 1
                        n = k
                    else:
                        acceleration[base + who] = wp.float64(0.0)
                        state[base + who] = _CLAMPED
                        clamped[base + n] = who
                        n += 1
    solves[p] = made
    if not good:
        solves[p] = -made
