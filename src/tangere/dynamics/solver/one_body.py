"""One body against any number of rows: the motion nearest to the wanted one that no row forbids, in one launch.

Question: which x is nearest to a wanted motion, in the metric of kinetic energy, with rows . x >= need?
Method:   in coordinates in which the metric is the identity and rows are unit vectors, the dual active-set method: from
          the wanted motion, always the row that is violated most joins the active ones, at most six; on the way to it
          rows whose multiplier reaches zero leave. An orthonormal basis of the active rows is kept. Rows that were
          violated are looked at first; when none of them is, all are.
Sound:    the answer satisfies every row to rounding; where no motion does, the status says so and the motion is the
          last one reached.
Known as: least-distance programming (Lawson and Hanson 1974); the dual method of Goldfarb and Idnani 1983; Gauss's
          principle of least constraint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import warp as wp

from tangere.dynamics.solver.block_cholesky import mat66d
from tangere.dynamics.solver.problem import vec6d
from tangere.runtime import SOUND, Arrays, InputError, NonCopyable, PreparedLaunch, choose_device, to_numpy

wp.set_module_options(SOUND)

#: What became of a projection.
SOLVED, INFEASIBLE, NOT_FINITE, UNFINISHED = 0, 1, 2, 3
_SOLVED, _INFEASIBLE, _NOT_FINITE, _UNFINISHED = (
    wp.constant(SOLVED),
    wp.constant(INFEASIBLE),
    wp.constant(NOT_FINITE),
    wp.constant(UNFINISHED),
)
#: Rows that are active at once, and rounds, at most. Rows seldom leave: ten rounds are many.
_MOST_ACTIVE = wp.constant(6)
_MOST_ROUNDS = wp.constant(1000)
#: A unit row with less than this outside the span of the active ones depends on them.
_DEPENDENT = wp.constant(wp.float64(1.0e-9))
#: Violations below this part of the size of the motion are rounding.
_ROUNDING = wp.constant(wp.float64(1.6e-13))


class OneBodyMotion(NamedTuple):
    """A projected motion."""

    motion: np.ndarray  #: (6,), linear part first
    impulse: np.ndarray  #: multiplier of each row, >= 0
    status: int  #: SOLVED, or INFEASIBLE: no motion satisfies all rows; UNFINISHED: too many rounds


class OneBodyProjection(NonCopyable):
    """Projects motions of one body, again and again; arrays and the launch are kept.

    Args:
        metric: kinetic metric M, (6, 6), symmetric and positive definite; the identity if left out. The distance is
            (x - wanted)^T M (x - wanted).
        device: where the kernel runs; the CPU is the right place for one body.
    """

    def __init__(self, metric: Arrays | None = None, *, device: str | wp.Device = "cpu") -> None:
        self._device = choose_device(device)
        self._host = wp.get_device("cpu")
        self._room = 0
        self._factor = np.eye(6)
        self._reserve(128)
        self.metric = np.eye(6) if metric is None else metric

    @property
    def metric(self) -> np.ndarray:
        """M, (6, 6)."""
        return self._metric

    @metric.setter
    def metric(self, metric: Arrays) -> None:
        given = to_numpy(metric, "metric")
        if given.shape != (6, 6) or not np.allclose(given, given.T, rtol=1e-9, atol=0.0):
            raise InputError(f"metric must be a symmetric array of shape (6, 6), not of shape {given.shape}")
        try:
            lower = np.linalg.cholesky(given)
        except np.linalg.LinAlgError as error:
            raise InputError("metric must be positive definite") from error
        self._metric = given
        self._factor = np.linalg.inv(lower).T  # L with M^-1 = L L^T
        self._write_metric()

    def project(self, rows: Arrays, need: Arrays, wanted: Arrays) -> OneBodyMotion:
        """The motion nearest to `wanted` (6,) with rows (m, 6) . x >= need (m,), and the multipliers of the rows."""
        count = len(rows)
        if count > self._room:
            self._reserve(2 * count)
        columns = self._columns
        try:
            columns["rows"][:count], columns["need"][:count] = rows, need
            columns["wanted"][0] = wanted
        except (TypeError, ValueError) as error:
            shapes = [np.shape(each) for each in (rows, need, wanted)]
            raise InputError(f"rows, need and wanted must be (m, 6), (m,) and (6,), not {shapes}") from error
        columns["count"][0] = count
        if self._device.is_cuda:
            for name in ("rows", "need", "wanted", "count", "factor"):
                wp.copy(self._on_device[name], self._on_host[name])
        self._launch.run()
        if self._device.is_cuda:
            for name in ("motion", "impulse", "status"):
                wp.copy(self._on_host[name], self._on_device[name])
            wp.synchronize_device(self._device)
        status = int(columns["status"][0])
        if status == NOT_FINITE:
            raise InputError("rows, need and wanted must be finite")
        return OneBodyMotion(columns["motion"][0].copy(), columns["impulse"][:count].copy(), status)

    def _write_metric(self) -> None:
        self._columns["factor"][0] = self._factor
        self._columns["count"][1] = np.array_equal(self._factor, np.eye(6))

    def _reserve(self, room: int) -> None:
        """Arrays for so many rows: on the host, and on the device if that is another one."""
        kinds = {"rows": (room, vec6d), "need": (room, wp.float64), "wanted": (1, vec6d), "count": (2, wp.int32)}
        kinds |= {"factor": (1, mat66d), "unit": (room, vec6d), "gap": (room, wp.float64), "scale": (room, wp.float64)}
        kinds |= {"pool": (room, wp.int32)}
        kinds |= {"motion": (1, vec6d), "impulse": (room, wp.float64), "status": (1, wp.int32)}
        self._room = 0
        self._on_host = {name: wp.zeros(n, dtype=kind, device=self._host) for name, (n, kind) in kinds.items()}
        self._on_device = self._on_host
        if self._device.is_cuda:
            self._on_device = {name: wp.zeros_like(array, device=self._device) for name, array in self._on_host.items()}
        self._columns = {name: array.numpy() for name, array in self._on_host.items()}
        self._write_metric()
        self._launch = PreparedLaunch(_project, list(self._on_device.values()), self._device, dim=1, serial=True)
        self._room = room


@wp.struct
class ActiveRows:
    """The active rows: their numbers, multipliers, and an orthonormal basis with the triangle that gives them back."""

    count: wp.int32
    number: wp.types.vector(length=6, dtype=wp.int32)
    multiplier: vec6d
    basis: mat66d  # one row for each direction
    triangle: mat66d  # row i of the active ones is the sum of triangle[j, i] times direction j


@wp.func
def coordinates(active: ActiveRows, n: vec6d) -> vec6d:
    """Of a vector in the basis."""
    c = vec6d()
    for j in range(active.count):
        c[j] = wp.dot(active.basis[j], n)
    return c


@wp.func
def outside(active: ActiveRows, n: vec6d) -> vec6d:
    """What is left of a vector without its part in the span; taken out twice, against rounding."""
    z = n
    for _round in range(2):
        for j in range(active.count):
            z = z - wp.dot(active.basis[j], z) * active.basis[j]
    return z


@wp.func
def combination(active: ActiveRows, c: vec6d) -> vec6d:
    """Coefficients of the active rows from coordinates."""
    r = c
    for k in range(active.count):
        i = active.count - 1 - k
        s = r[i]
        for j in range(i + 1, active.count):
            s -= active.triangle[i, j] * r[j]
        r[i] = s / active.triangle[i, i]
    return r


@wp.func
def joined(active: ActiveRows, number: int, multiplier: wp.float64, n: vec6d) -> ActiveRows:
    """With one more row."""
    k = active.count
    c = coordinates(active, n)
    z = outside(active, n)
    length = wp.length(z)
    for j in range(k):
        active.triangle[j, k] = c[j]
    active.triangle[k, k] = length
    active.basis[k] = z / length
    active.number[k] = number
    active.multiplier[k] = multiplier
    active.count = k + 1
    return active


@wp.func
def without(active: ActiveRows, leaving: int, unit: wp.array[vec6d]) -> ActiveRows:
    """Without one of them: the rest joins anew."""
    rest = ActiveRows()
    for k in range(active.count):
        if k != leaving:
            rest = joined(rest, active.number[k], active.multiplier[k], unit[active.number[k]])
    return rest


@wp.func
def project_one_body(
    m: int,
    euclidean: bool,
    w: vec6d,
    l: mat66d,
    rows: wp.array[vec6d],
    need: wp.array[wp.float64],
    unit: wp.array[vec6d],
    gap: wp.array[wp.float64],
    scale: wp.array[wp.float64],
    pool: wp.array[wp.int32],
    motion: wp.array[vec6d],
    impulse: wp.array[wp.float64],
) -> int:
    """All of it, on one thread, for the first m rows; writes motion[0] and impulses, and tells what became of it.

    Args:
        w: the wanted motion.
        l: L with M^-1 = L L^T, the identity if `euclidean`.
        unit, gap, scale, pool: room for m rows each.
    """
    answer = int(_SOLVED)
    total = wp.float64(0.0) * wp.length(w)  # not zero where a number is not finite
    p = int(-1)  # the row that is violated most
    worst = wp.float64(0.0)
    violated = int(0)  # rows that were so when last looked at, in the pool
    for i in range(m):
        row = rows[i]
        h = need[i] - wp.dot(row, w)
        g = row
        if not euclidean:
            g = row * l
        square = wp.dot(g, g)
        total += wp.float64(0.0) * (h + square)
        inverse = wp.float64(0.0)
        if square > wp.float64(0.0):
            inverse = wp.float64(1.0) / wp.sqrt(square)
        elif h > wp.float64(0.0):  # nobody can give way
            answer = _INFEASIBLE
        h = h * inverse
        unit[i] = g * inverse
        gap[i] = h
        scale[i] = inverse
        impulse[i] = wp.float64(0.0)
        if h > wp.float64(0.0):
            pool[violated] = i
            violated += 1
        if h > worst:
            p = i
            worst = h
    if total != wp.float64(0.0):
        answer = _NOT_FINITE
    y = vec6d()
    active = ActiveRows()
    rounds = int(0)
    while answer == _SOLVED and p >= 0 and rounds < _MOST_ROUNDS:
        rounds += 1
        n = unit[p]
        grown = wp.float64(0.0)  # the multiplier of the row that joins
        entered = bool(False)
        while not entered and answer == _SOLVED:
            z = outside(active, n)
            r = combination(active, coordinates(active, n))
            slope = wp.dot(z, n)
            step = wp.float64(1.0e300)
            if active.count < _MOST_ACTIVE and slope > _DEPENDENT * _DEPENDENT:
                step = wp.max(gap[p] - wp.dot(n, y), wp.float64(0.0)) / slope
            leaving = int(-1)
            for k in range(active.count):
                if r[k] > wp.float64(1.0e-14):
                    t = active.multiplier[k] / r[k]
                    if t < step:
                        step = t
                        leaving = k
            if step >= wp.float64(1.0e300):
                answer = _INFEASIBLE
            else:
                if slope > _DEPENDENT * _DEPENDENT:
                    y = y + step * z
                for k in range(active.count):
                    active.multiplier[k] = wp.max(active.multiplier[k] - step * r[k], wp.float64(0.0))
                grown += step
                if leaving >= 0:
                    active = without(active, leaving, unit)
                else:
                    active = joined(active, p, grown, n)
                    entered = True
        p = int(-1)
        worst = _ROUNDING * wp.length(y)
        kept = int(0)
        for k in range(violated):
            i = pool[k]
            v = gap[i] - wp.dot(unit[i], y)
            if v > wp.float64(0.0):
                pool[kept] = i
                kept += 1
            if v > worst:
                p = i
                worst = v
        violated = kept
        if p < 0:  # those of the pool are satisfied: are all?
            violated = int(0)
            for i in range(m):
                v = gap[i] - wp.dot(unit[i], y)
                if v > wp.float64(0.0):
                    pool[violated] = i
                    violated += 1
                if v > worst:
                    p = i
                    worst = v
        if p >= 0 and worst <= _ROUNDING * wp.abs(gap[p]):
            p = -1
    if rounds >= _MOST_ROUNDS:
        answer = _UNFINISHED
    for k in range(active.count):
        impulse[active.number[k]] = active.multiplier[k] * scale[active.number[k]]
    motion[0] = w + l * y
    return answer


@wp.kernel
def _project(
    first: int,
    rows: wp.array[vec6d],
    need: wp.array[wp.float64],
    wanted: wp.array[vec6d],
    count: wp.array[wp.int32],
    factor: wp.array[mat66d],
    unit: wp.array[vec6d],
    gap: wp.array[wp.float64],
    scale: wp.array[wp.float64],
    pool: wp.array[wp.int32],
    motion: wp.array[vec6d],
    impulse: wp.array[wp.float64],
    status: wp.array[wp.int32],
):
    """One projection."""
    euclidean = count[1] == 1
    status[0] = project_one_body(
        count[0], euclidean, wanted[0], factor[0], rows, need, unit, gap, scale, pool, motion, impulse
    )
