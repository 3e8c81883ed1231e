"""Wilhelmsen's algorithm: the point of a cone of vectors nearest to a given one, in motion space.

Question: which sum of non-negative multiples of vectors v_1 … v_m is nearest to s (Redon 2002, equation 5.27)?
Method:   the vector that points most towards s joins the active ones; these take the least-squares weights, and those
          whose weight would be negative leave on the way there. As the thesis does, every linear system is factored
          anew, as the products of the active vectors; outside of it only the k numbers of the point are renewed.
Sound:    no: weights are those of normal equations, whose condition is that of the vectors squared.
Known as: the nearest point algorithm for polyhedral cones of Wilhelmsen (1976); non-negative least squares (Lawson and
          Hanson 1974).
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

#: A vector joins if it points to s by more than this part of its length times 1 + |s|; the thesis compares with 1e-5.
TOLERANCE = 1e-10


class ConePoints(NamedTuple):
    """Nearest points of many cones."""

    point: np.ndarray  #: (n, k)
    weights: np.ndarray  #: (n, m), not negative
    solves: np.ndarray  #: (n,): linear systems solved


@wp.struct
class SparseVectors:
    """Vectors of many problems: m of each in k dimensions; `width` entries each, 0 for dense ones."""

    m: wp.int32
    k: wp.int32
    width: wp.int32
    value: wp.array[wp.float64]
    index: wp.array[wp.int32]


class ConeBatch:
    """Many problems of one size: the point of {sum l_m v_m, l >= 0} nearest to s; each is solved on one thread.

    Args:
        vectors: (n, m, k). targets: (n, k).
        sparse: read only the entries of the vectors that are not zero.
        incremental: factors follow who joins and leaves, as Baraff (1994) suggests and the thesis does not do.
    """

    def __init__(
        self,
        vectors: Arrays,
        targets: Arrays,
        *,
        tolerance: float = TOLERANCE,
        sparse: bool = False,
        incremental: bool = False,
        device: str = "cpu",
    ) -> None:
        v, s = to_numpy(vectors, "vectors"), to_numpy(targets, "targets")
        n, m, k = self.shape = v.shape
        place = self._device = wp.get_device(device)
        target = wp.array(s.reshape(-1), dtype=wp.float64, device=place)
        self._point = wp.zeros(n * k, dtype=wp.float64, device=place)
        self._weights = wp.zeros(n * m, dtype=wp.float64, device=place)
        self._solves = wp.zeros(n, dtype=wp.int32, device=place)
        active = wp.zeros(n * (k + 1), dtype=wp.int32, device=place)
        work = wp.zeros(n * 4 * (k + 1), dtype=wp.float64, device=place)
        squares = wp.zeros(n * (k + 1) * (k + 1), dtype=wp.float64, device=place)
        lanes = lane_rows(n * (k + 3) * lanes_of(k + 1), place)
        outputs = [self._point, self._weights, self._solves, active, work, squares, lanes]
        self._arguments = [packed(v, sparse, place), target, tolerance, incremental, *outputs]

    def solve(self) -> ConePoints:
        """The nearest points."""
        n, m, k = self.shape
        self._point.zero_()
        self._weights.zero_()
        launch(_nearest, n, self._arguments, device=self._device, grain=1)
        point, weights = self._point.numpy().reshape(n, k), self._weights.numpy().reshape(n, m)
        return ConePoints(point.copy(), weights.copy(), self._solves.numpy().copy())


def nearest_in_cone(vectors: Arrays, target: Arrays, **options: Any) -> ConePoints:
    """The point of one cone: vectors (m, k), target (k,); options as of `ConeBatch`."""
    found = ConeBatch(to_numpy(vectors, "vectors")[None], to_numpy(target, "target")[None], **options).solve()
    return ConePoints(*(column[0] for column in found))


def packed(v: np.ndarray, sparse: bool, device: wp.Device) -> SparseVectors:
    """Vectors (n, m, k) as kernels read them; sparse: as many entries for each as the fullest one has."""
    given = SparseVectors()
    given.m, given.k, given.width = v.shape[1], v.shape[2], 0
    index = np.zeros(1, np.int32)
    if sparse:
        given.width = max(int((v != 0.0).sum(axis=2).max(initial=1)), 1)
        index = np.argsort(v == 0.0, axis=2, kind="stable")[:, :, : given.width].astype(np.int32)
        v = np.take_along_axis(v, index, axis=2)
    given.value = wp.array(np.ascontiguousarray(v).reshape(-1), dtype=wp.float64, device=device)
    given.index = wp.array(np.ascontiguousarray(index).reshape(-1), dtype=wp.int32, device=device)
    return given


@wp.func
def product(v: SparseVectors, problem: int, i: int, x: wp.array[wp.float64], at: int) -> wp.float64:
    """v_i . x, where x begins at `at`."""
    s = wp.float64(0.0)
    if v.width == 0:
        row = (problem * v.m + i) * v.k
        t = wp.float64(0.0)  # two sums: one would wait for itself
        for c in range(v.k / 2):
            s += v.value[row + 2 * c] * x[at + 2 * c]
            t += v.value[row + 2 * c + 1] * x[at + 2 * c + 1]
        if v.k % 2 == 1:
            s += v.value[row + v.k - 1] * x[at + v.k - 1]
        s += t
    else:
        row = (problem * v.m + i) * v.width
        for c in range(v.width):
            s += v.value[row + c] * x[at + v.index[row + c]]
    return s


@wp.func
def add_multiple(v: SparseVectors, problem: int, i: int, by: wp.float64, x: wp.array[wp.float64], at: int):
    """x + by v_i."""
    if v.width == 0:
        row = (problem * v.m + i) * v.k
        for c in range(v.k):
            x[at + c] = x[at + c] + by * v.value[row + c]
    else:
        row = (problem * v.m + i) * v.width
        for c in range(v.width):
            j = at + v.index[row + c]
            x[j] = x[j] + by * v.value[row + c]


@wp.kernel
def _nearest(
    first: int,
    v: SparseVectors,
    target: wp.array[wp.float64],
    tolerance: wp.float64,
    incremental: wp.bool,
    point: wp.array[wp.float64],
    weights: wp.array[wp.float64],
    solves: wp.array[wp.int32],
    active: wp.array[wp.int32],
    work: wp.array[wp.float64],
    squares: wp.array[wp.float64],
    lanes: LaneRows,
):
    """One problem on one thread."""
    p = first + wp.tid()
    k = v.k
    size = k + 1
    at = p * k
    mine = p * size  # of active
    rest = 4 * p * size  # s - x
    held = rest + size  # weights of the active ones
    dense = rest + 2 * size  # a vector written out
    along = rest + 3 * size  # products of the active ones with s
    gram = p * size * size
    wide = (size + 7) / 8
    chol = p * (size + 2) * wide
    column = chol + size * wide
    mu = column + wide
    length = wp.float64(1.0)
    for c in range(k):
        length += wp.abs(target[at + c])
    n = int(0)
    factored = int(0)  # of the active ones, those that the factor knows
    made = int(0)
    rounds = int(0)
    go = bool(True)
    while go and rounds < 30 * (v.m + k):
        rounds += 1
        for c in range(k):
            work[rest + c] = target[at + c] - point[at + c]
        best = int(-1)
        most = tolerance * length
        for i in range(v.m):
            g = product(v, p, i, work, rest)
            if g > most and weights[p * v.m + i] == wp.float64(0.0):
                most = g
                best = i
        if best < 0 or n >= size:
            go = False
        else:
            # products of the new vector with the active ones
            for c in range(k):
                work[dense + c] = wp.float64(0.0)
            add_multiple(v, p, best, wp.float64(1.0), work, dense)
            for j in range(n):
                squares[gram + n * size + j] = product(v, p, active[mine + j], work, dense)
                squares[gram + j * size + n] = squares[gram + n * size + j]
            squares[gram + n * size + n] = product(v, p, best, work, dense)
            active[mine + n] = best
            work[held + n] = wp.float64(0.0)
            work[along + n] = product(v, p, best, target, at)
            weights[p * v.m + best] = wp.float64(1.0)  # is active
            n += 1
            inner = bool(True)
            while inner:
                if not incremental:
                    factored = 0
                for i in range(factored, n):
                    for j in range(i + 1):
                        lanes.one[8 * (chol + i * wide) + j] = squares[gram + i * size + j]
                for i in range(n):
                    lanes.one[8 * mu + i] = work[along + i]
                made += 1
                sound = bool(True)
                if not incremental:
                    sound = factor_lanes(lanes, chol, wide, n, column)
                elif factored < n:  # only the newest is not in the factor
                    sound = append_lanes(lanes, chol, wide, n - 1)
                if sound:
                    factored = n
                leaving = int(-1)
                share = wp.float64(1.0)
                if sound:
                    solve_lanes(lanes, chol, wide, n, mu)
                    for i in range(n):
                        w = lanes.one[8 * mu + i]
                        if w <= wp.float64(0.0):
                            t = work[held + i] / wp.max(work[held + i] - w, wp.float64(1.0e-300))
                            if leaving < 0 or t < share:
                                share = t
                                leaving = i
                    if leaving < 0:
                        share = wp.float64(1.0)
                    for i in range(n):
                        work[held + i] = work[held + i] + share * (lanes.one[8 * mu + i] - work[held + i])
                else:  # the newest depends on the others
                    leaving = n - 1
                    go = False
                if leaving < 0:
                    inner = False
                else:
                    weights[p * v.m + active[mine + leaving]] = wp.float64(0.0)
                    if incremental and leaving < factored:
                        drop_lanes(lanes, chol, wide, factored, leaving)
                        factored -= 1
                    kept = int(0)
                    for i in range(n):
                        if i != leaving:
                            active[mine + kept] = active[mine + i]
                            work[held + kept] = work[held + i]
                            work[along + kept] = work[along + i]
                            for j in range(n):
                                squares[gram + kept * size + j] = squares[gram + i * size + j]
                            kept += 1
                    for i in range(kept):
                        for j in range(leaving, kept):
                            squares[gram + i * size + j] = squares[gram + i * size + j + 1]
                    n = kept
                    if n == 0:
                        inner = False
            for c in range(k):
                point[at + c] = wp.float64(0.0)
            for i in range(n):
                add_multiple(v, p, active[mine + i], work[held + i], point, at)
    for i in range(n):
        weights[p * v.m + active[mine + i]] = work[held + i]
    solves[p] = made
