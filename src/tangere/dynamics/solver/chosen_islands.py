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
from tangere.dynamics.solver.growing_struct import GrowingStruct
from tangere.dynamics.solver.interior_point import (
    InteriorState,
    IslandRange,
    island_range,
    prepare,
    solve_convex,
)
from tangere.dynamics.solver.islands import IslandArrays, Islands
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import SOUND, CapacityError, PreparedLaunch

wp.set_module_options(SOUND)

#: Friction of at least this part of its limit slides.
_AT_LIMIT = wp.constant(wp.float64(1.0 - 1.0e-9))
#: Sweeps that leave at most this part of the largest free velocity know which contacts slide.
_NEARLY = wp.constant(wp.float64(0.05))
#: A round's convex problem is solved to this part of the residual before it.
_ROUND_TOLERANCE = wp.constant(wp.float64(1.0e-4))
#: Iterations of one convex problem at most; seven to thirty are usual.
MOST_ITERATIONS = 60


@wp.struct
class InteriorOptions:
    """How far an island is taken."""

    tolerance: wp.float64  # of the convex problems [m/s]
    iterations: wp.int32  # of each at most
    convex: wp.bool  # friction is associated: no shift
    rounds: wp.int32  # convex problem and sweeps at most so often
    sweeps: wp.int32  # of each round
    headway: wp.float64  # a round that leaves more than this part of the residual is the last one
    good: wp.float64  # so is one that leaves no more than this [m/s]


def _interior_count(name: str) -> str:
    """What an array of the iterates belongs to."""
    if name in ("w", "dw", "rd"):
        return "bodies"
    contacts = ("z", "y", "dz", "dy", "rp", "lam", "scaling")
    return "contacts" if name in contacts or name.startswith("c_") else "joints"


#: What arrays of the elimination order belong to, if not to bodies.
_ORDER_COUNTS = dict.fromkeys(("chosen", "bits_first", "blocks", "block_first"), "chosen")
_ORDER_COUNTS |= {"bits": "words", "block_row": "blocks", "c_block": "contacts", "j_block": "joints"}


class ChosenIslands:
    """Arrays and launches of the interior point, made when an island first needs them.

    Args:
        most_products: an island whose factors take more products of blocks for each row goes on with sweeps.
    """

    def __init__(self, device: wp.Device, most_products: float) -> None:
        self._device, self._most_products = device, most_products
        self._state = GrowingStruct(InteriorState(), device, _interior_count)
        self._order = GrowingStruct(EliminationArrays(), device, lambda name: _ORDER_COUNTS.get(name, "bodies"))
        self._factor = GrowingStruct(BlockFactor(), device, lambda name: "blocks" if name == "below" else "bodies")
        self._order.reserve(blocks=0)
        self._order_launch = _KeptLaunch(order_islands, device)
        self._solve_launch = _KeptLaunch(_solve_chosen, device)

    def solve(
        self,
        chosen: np.ndarray,
        islands: Islands,
        rows: WhitenedRows,
        sweeps: SweepOptions,
        options: InteriorOptions,
        report: IslandReport,
        counts: dict[str, int],
        key: tuple,
    ) -> int:
        """Solve the islands of these numbers, of so many bodies, contacts and joints; `key` is as of `Islands.find`.

        Returns how many of them the interior point took.
        """
        order, factor, state = self._order, self._factor, self._state
        first = islands.read("body_first", int(chosen[-1]) + 2)
        size = (first[chosen + 1] - first[chosen]).astype(np.int64)
        words = size * ((size + 63) // 64)
        order.reserve(**counts, chosen=len(chosen), words=_checked(words.sum()))
        order.write("chosen", chosen)
        order.write("bits_first", np.cumsum(words) - words)
        arguments = [islands.arrays, rows, self._most_products, order.struct]
        self._order_launch.run(len(chosen), (*key, order.version), arguments)
        affordable = order.read("blocks", len(chosen)) >= 0
        blocks = np.where(affordable, order.read("blocks", len(chosen)), 0).astype(np.int64)
        total = _checked(blocks.sum())
        order.reserve(blocks=total)
        order.write("block_first", np.cumsum(blocks) - blocks)
        factor.reserve(bodies=counts["bodies"], blocks=total)
        state.reserve(**counts)
        arguments = [islands.arrays, rows, order.struct, factor.struct, state.struct, sweeps, options, report]
        self._solve_launch.run(
            len(chosen) * sweeps.apart, (*key, order.version, factor.version, state.version), arguments
        )
        return int(affordable.sum())


class _KeptLaunch:
    """A launch that is prepared anew when its key is another one; one index is worth a thread."""

    def __init__(self, kernel: wp.Kernel, device: wp.Device) -> None:
        self._kernel, self._device = kernel, device
        self._key: tuple | None = None
        self._launch: Any = None

    def run(self, count: int, key: tuple, arguments: list) -> None:
        if key != self._key:
            self._launch, self._key = PreparedLaunch(self._kernel, arguments, self._device, grain=1), key
        self._launch(count)


def _checked(count: Any) -> int:
    if count >= 2**30:
        raise CapacityError(f"the factors of the islands need {count} blocks, more than an array can hold")
    return int(count)


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
    q = (first + wp.tid()) / sweeps.apart
    if (first + wp.tid()) % sweeps.apart != 0:
        return
    k = order.chosen[q]
    at = island_range(islands, k)
    affordable = order.blocks[q] >= 0
    if affordable:
        prepare(islands, rows, it, order, q, at)
    keep_impulses(rows, it, at)
    best = report.residual[k]
    coulomb = wp.float64(1.0)
    if options.convex:
        coulomb = wp.float64(0.0)
        best = wp.float64(1.0e300)
    free = largest_free_velocity(rows, at)
    made = int(0)
    rounds = int(0)
    most_sweeps = options.sweeps
    while rounds < options.rounds:
        if affordable:
            tolerance = options.tolerance
            if not options.convex:
                tolerance = wp.max(tolerance, _ROUND_TOLERANCE * best)
                if rounds > 0 or best <= _NEARLY * free:
                    renew_shifts(rows, it, at)
            made += solve_convex(rows, it, h, order, at, options.iterations, tolerance)
            take_best(rows, it, at)
        else:  # the sweeps that were given up
            most_sweeps = sweeps.most - report.iterations[k]
            rounds = options.rounds
            if most_sweeps <= 0:
                return
        swept = int(0)
        worst = wp.float64(1.0)
        while swept < most_sweeps and worst > sweeps.tolerance:
            swept += 1
            worst = sweep(rows, at.c0, at.c1, at.j0, at.j1, swept, True, wp.float64(0.0))
        if not affordable:
            made += swept
        apply_impulses(rows, at.c0, at.c1, at.j0, at.j1)
        residual = island_residual(rows, at.c0, at.c1, at.j0, at.j1, coulomb)
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
