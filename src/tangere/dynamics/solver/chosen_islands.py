"""Chosen islands by interior point, then sweeps; what is better than the sweeps before is kept.

Question: which impulses do islands get where sweeps alone made no headway?
Method:   convex problems with lagged shifts (`interior_point`), then sweeps with Coulomb's own law from their impulses;
          one island on a thread. Storage is counted first: bits of the islands' graphs, then blocks of their factors.
Sound:    an island never ends with a larger residual than it had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.solver.block_cholesky import BlockFactor
from tangere.dynamics.solver.elimination_order import EliminationArrays, order_islands
from tangere.dynamics.solver.gauss_seidel import (
    IslandReport,
    SweepOptions,
    apply_impulses,
    contact_velocity,
    island_residual,
    sweep,
)
from tangere.dynamics.solver.interior_point import (
    InteriorState,
    IslandRange,
    island_range,
    prepare,
    solve_convex,
)
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import SOUND, CapacityError, PreparedLaunch

wp.set_module_options(SOUND)

#: Friction of at least this part of its limit slides.
_AT_LIMIT = wp.constant(wp.float64(1.0 - 1.0e-9))
#: Sweeps that leave at most this part of the largest free velocity know which contacts slide.
_NEARLY = wp.constant(wp.float64(0.05))
#: Iterations of one convex problem at most; seven to thirty are usual.
MOST_ITERATIONS = 60


@wp.struct
class InteriorOptions:
    """How far an island is taken."""

    tolerance: wp.float64  # of the convex problems [m/s]
    iterations: wp.int32  # of each at most
    convex: wp.bool  # one convex problem is all: friction is associated
    rounds: wp.int32  # convex problem and sweeps at most so often
    sweeps: wp.int32  # of each round
    headway: wp.float64  # a round that leaves more than this part of the residual is the last one
    good: wp.float64  # so is one that leaves no more than this [m/s]


class ChosenIslands:
    """Arrays and launches of the interior point, made when an island first needs them."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._state, self._order, self._factor = InteriorState(), EliminationArrays(), BlockFactor()
        self._key: tuple = ()
        self._order_launch: PreparedLaunch | None = None
        self._solve_launch: PreparedLaunch | None = None

    def solve(
        self,
        chosen: np.ndarray,
        islands: IslandArrays,
        rows: WhitenedRows,
        sweeps: SweepOptions,
        options: InteriorOptions,
        report: IslandReport,
        key: tuple,
    ) -> None:
        """Solve the islands of these numbers; `key` is another one when an argument is."""
        counts = {"c_": len(rows.c_a), "j_": len(rows.j_a)}
        bodies = len(rows.w)
        body_first = islands.body_first.numpy()
        size = (body_first[chosen + 1] - body_first[chosen]).astype(np.int64)
        words = size * ((size + 63) // 64)
        grew = self._reserve(
            self._order,
            {
                "chosen": len(chosen),
                "bits_first": len(chosen),
                "blocks": len(chosen),
                "block_first": len(chosen),
                "bits": _checked(words.sum()),
                "block_row": 0,
                "c_block": counts["c_"],
                "j_block": counts["j_"],
            },
            bodies,
        )
        _write(self._order.chosen, chosen)
        _write(self._order.bits_first, np.cumsum(words) - words)
        if grew or key != self._key or self._order_launch is None:
            self._order_launch = PreparedLaunch(order_islands, [islands, rows, self._order], self._device, grain=1)
        self._order_launch(len(chosen))
        blocks = self._order.blocks.numpy()[: len(chosen)].astype(np.int64)
        total = _checked(blocks.sum())
        grew = self._reserve(self._order, {"block_row": total}, 0) or grew
        _write(self._order.block_first, np.cumsum(blocks) - blocks)
        grew = self._reserve(self._factor, {"below": total}, bodies) or grew
        contacts = dict.fromkeys(("z", "y", "dz", "dy", "rp", "lam", "scaling"), counts["c_"])
        joints = dict.fromkeys(("r", "s", "t", "dr", "ds", "dt", "rho", "weight"), counts["j_"])
        named = {name: counts[name[:2]] for name in self._state._cls.vars if name[:2] in counts}
        grew = self._reserve(self._state, contacts | joints | named, bodies) or grew
        if grew or key != self._key or self._solve_launch is None:
            arguments = [islands, rows, self._order, self._factor, self._state, sweeps, options, report]
            self._solve_launch = PreparedLaunch(_solve_chosen, arguments, self._device, grain=1)
            self._key = key
        self._solve_launch(len(chosen))

    def _reserve(self, struct: Any, sizes: dict[str, int], rest: int) -> bool:
        """Room in each array of a struct: as told, or for `rest` elements."""
        grew = False
        for name, variable in struct._cls.vars.items():
            count = max(sizes.get(name, rest), 1)
            array = getattr(struct, name)
            if array is None or not array.ptr or len(array) < count:
                setattr(struct, name, wp.zeros(2 * count, dtype=variable.type.dtype, device=self._device))
                grew = True
        return grew


def _checked(count: Any) -> int:
    if count >= 2**30:
        raise CapacityError(f"the factors of the islands need {count} blocks, more than an array can hold")
    return int(count)


def _write(array: wp.array, values: np.ndarray) -> None:
    host = wp.array(values.astype(np.int32), dtype=wp.int32, device="cpu")
    wp.copy(array, host, count=len(values))


@wp.func
def keep_impulses(rows: WhitenedRows, it: InteriorState, at: IslandRange):
    """Put the impulses of the rows aside."""
    for i in range(at.c0, at.c1):
        it.c_kept[i] = rows.c_impulse[i]
    for i in range(at.j0, at.j1):
        it.j_kept[i] = rows.j_impulse[i]


@wp.func
def restore_impulses(rows: WhitenedRows, it: InteriorState, at: IslandRange):
    """The impulses that were put aside."""
    for i in range(at.c0, at.c1):
        rows.c_impulse[i] = it.c_kept[i]
    for i in range(at.j0, at.j1):
        rows.j_impulse[i] = it.j_kept[i]


@wp.func
def take_best(rows: WhitenedRows, it: InteriorState, at: IslandRange):
    """The impulses of the best iterate, and the velocities they give."""
    for i in range(at.c0, at.c1):
        rows.c_impulse[i] = it.c_best[i]
    for i in range(at.j0, at.j1):
        rows.j_impulse[i] = it.j_best[i]
    apply_impulses(rows, at.c0, at.c1, at.j0, at.j1)


@wp.func
def largest_free_velocity(rows: WhitenedRows, at: IslandRange) -> wp.float64:
    """How fast a row approaches without impulses, at most [m/s]."""
    largest = wp.float64(0.0)
    for i in range(at.c0, at.c1):
        largest = wp.max(largest, -rows.c_free[i][0])
    for i in range(at.j0, at.j1):
        largest = wp.max(largest, wp.abs(rows.j_free[i]))
    return largest


@wp.func
def renew_shifts(rows: WhitenedRows, it: InteriorState, at: IslandRange):
    """mu |u_t| of each contact that slides or is open, 0 where it sticks."""
    for i in range(at.c0, at.c1):
        u = contact_velocity(rows, i)
        r = rows.c_impulse[i]
        mu = rows.c_friction[i]
        shift = wp.float64(0.0)
        if wp.sqrt(r[1] * r[1] + r[2] * r[2]) >= _AT_LIMIT * mu * r[0]:
            shift = mu * wp.sqrt(u[1] * u[1] + u[2] * u[2])
        it.c_shift[i] = shift


@wp.kernel
def _solve_chosen(
    first: int,
    islands: IslandArrays,
    rows: WhitenedRows,
    order: EliminationArrays,
    h: BlockFactor,
    it: InteriorState,
    sweeps: SweepOptions,
    options: InteriorOptions,
    report: IslandReport,
):
    """A chosen island, on one thread."""
    q = first + wp.tid()
    k = order.chosen[q]
    at = island_range(islands, k)
    prepare(islands, rows, it, order, q, at)
    keep_impulses(rows, it, at)
    best = report.residual[k]
    made = int(0)
    if options.convex:
        made = solve_convex(rows, it, h, order, at, options.iterations, options.tolerance)
        take_best(rows, it, at)
        best = island_residual(rows, at.c0, at.c1, at.j0, at.j1, wp.float64(0.0))
    else:
        rounds = int(0)
        free = largest_free_velocity(rows, at)
        while rounds < options.rounds:
            if rounds > 0 or best <= _NEARLY * free:
                renew_shifts(rows, it, at)
            tolerance = wp.max(options.tolerance, wp.float64(1.0e-4) * best)
            made += solve_convex(rows, it, h, order, at, options.iterations, tolerance)
            take_best(rows, it, at)
            swept = int(0)
            back = bool(False)
            while swept < options.sweeps:
                worst = sweep(rows, at.c0, at.c1, at.j0, at.j1, back)
                back = not back
                swept += 1
                if worst <= sweeps.tolerance:
                    break
            apply_impulses(rows, at.c0, at.c1, at.j0, at.j1)
            residual = island_residual(rows, at.c0, at.c1, at.j0, at.j1, wp.float64(1.0))
            rounds += 1
            if residual <= options.good or (rounds > 1 and residual > options.headway * best):
                rounds = options.rounds
            if residual < best:
                best = residual
                keep_impulses(rows, it, at)
        restore_impulses(rows, it, at)
        apply_impulses(rows, at.c0, at.c1, at.j0, at.j1)
    report.iterations[k] = report.iterations[k] + made
    report.residual[k] = best
