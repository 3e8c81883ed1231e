"""Pairs of triangles that share a cell and whose bounds overlap, as a list: stage 6 of the grid pipeline.

Whoever tests pairs as they are found (`fused`) goes through them in the same way, by `walk`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import TriangleAabbs
from tangere.published.leonard_grid.grid.cells import Grid, define_grid
from tangere.published.leonard_grid.grid.entries import GridEntries, Runs, cell_runs, grid_entries, sorted_entries
from tangere.published.leonard_grid.grid.walk import CellWalk, TypeRule, cell_walk, next_partner, pair_of, partners_of
from tangere.runtime import SOUND, collect, device_of, reserve_slots

#: So many entries, some 0.3 ms, stay on one thread; of more, whose cells are as a rule crowded, so many are worth one.
FEW, GRAIN = 6144, 512


def grid_pairs(aabbs: TriangleAabbs, *, levels: bool) -> wp.array:
    """All pairs (i, j), i < j, of triangles of compared bodies whose boxes overlap, in any order: stages 3 to 6.

    Args:
        levels: a hierarchical grid, for mixed sizes; else one of cells of one size.
    """
    grid = define_grid(aabbs, levels=levels)
    entries = sorted_entries(grid_entries(aabbs, grid))
    return cell_pairs(aabbs, grid, entries, cell_runs(entries))


def cell_pairs(
    aabbs: TriangleAabbs,
    grid: Grid,
    entries: GridEntries,
    runs: Runs,
    *,
    spheres: wp.array | None = None,
    rule: TypeRule | None = None,
    patches: wp.array | None = None,
) -> wp.array:
    """All pairs (i, j), i < j, that share a cell and whose bounds overlap, each in one cell, in any order.

    `spheres`, `rule` and `patches` are those of `cell_walk`.
    """
    device, count = device_of(aabbs.boxes), len(entries.keys)
    walk = cell_walk(aabbs, grid, entries, runs, spheres=spheres, rule=rule, patches=patches)
    grain = GRAIN if count > FEW else FEW
    return collect(_cell_pairs(device.is_cpu), count, [walk], wp.vec2i, device=device, grain=grain)


def candidate_bound(entries: GridEntries, runs: Runs) -> np.ndarray:
    """(C,) int64: how many pairs each cell has to look at: n (n - 1) / 2 + n m, of n that live there and m others.

    Equation 5.1 of the document, for an even split of the work over threads.
    """
    number, visitor = runs.number.numpy(), entries.keys.numpy() & 1
    cells = int(number[-1]) + 1 if len(number) else 0
    n = np.bincount(number[visitor == 0], minlength=cells)
    m = np.bincount(number[visitor == 1], minlength=cells)
    return n * (n - 1) // 2 + n * m


@cache
def _cell_pairs(in_lanes: bool) -> wp.Kernel:
    """Made for CPUs, or for CUDA."""
    next_partner_of = next_partner(in_lanes)

    @wp.kernel(module="unique", module_options=SOUND)
    def cell_pairs_of(
        first: int, shard: int, walk: CellWalk, counts: wp.array[wp.int64], capacity: int, out: wp.array[wp.vec2i]
    ):
        e = first + wp.tid()
        partners = partners_of(e, walk)
        f = int(partners[0])
        while f < partners[3]:
            f = next_partner_of(e, f, partners, walk)
            if f < partners[3]:
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = pair_of(e, f, walk.placed)
                f += 1

    return cell_pairs_of
