"""Near features of the triangles in the cells of a grid: stages 6 and 7 of the pipeline in one.

Cells are gone through pair by pair, as `grid.pairs` does to list them, and what two triangles own
is tested there and then (`query.proximity.representative_triangles`, on CPUs eight features at a time). So no pair is
stored, only the keys of those that are near: an improvement that Léonard proposes (2021, section
5.4.1).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.published.leonard_grid.cpu.representative_triangles import (
    PAIRS_AT_ONCE,
    OwnedFeatures,
    buffer_pair,
    owned_features,
    test_buffered,
)
from tangere.published.leonard_grid.cpu.sorted_append import scattered, scattering, sorted_keys
from tangere.published.leonard_grid.grid.walk import CellWalk, cell_walk, next_partner, pair_of, partners_of
from tangere.published.leonard_grid.pipeline import PipelineStages
from tangere.query.proximity.cpu.parallel_sort import KeySegments
from tangere.query.proximity.representative_triangles import TriangleFeatures, append_near, triangle_features
from tangere.runtime.append_buffer import collect
from tangere.runtime.shards import shard_ranges
from tangere.runtime.warp_setup import SOUND

#: Entries that one index takes on a CPU, and so many indices are worth a thread: some hundred microseconds.
ENTRIES_AT_ONCE = wp.constant(16)
GRAIN = 32
#: Entries worth a thread where features are tested one by one.
ENTRIES_GRAIN = 1024


def near_in_cells(surfaces: Surfaces, cells: PipelineStages, distance: float, *, boxes: bool = False) -> wp.array:
    """Keys of the pairs of features in the same cell that are nearer than `distance` [m], in any order.

    Args:
        cells: of which the stages before 6b are done.
        boxes: compare the boxes of the features before their distance; the answer is the same.
    """
    assert cells.aabbs is not None
    assert cells.grid is not None
    assert cells.entries is not None
    assert cells.runs is not None
    device, count = surfaces.device, len(cells.entries.keys)
    walk = cell_walk(cells.aabbs, cells.grid, cells.entries, cells.runs, **cells.narrowed)
    if device.is_cuda or boxes:
        inputs = [walk, triangle_features(surfaces, distance, boxes)]
        return collect(_near_one_by_one(device.is_cpu), count, inputs, wp.int64, device=device, grain=ENTRIES_GRAIN)
    blocks = -(-count // ENTRIES_AT_ONCE)
    shards = len(shard_ranges(blocks, GRAIN))
    with owned_features(surfaces, distance, shards) as owned:
        inputs = [walk, blocks, scattering(blocks, shards), owned]
        return sorted_keys(_near_by_eights(), blocks, inputs, surfaces.layout, grain=GRAIN)


@cache
def _near_one_by_one(in_lanes: bool) -> wp.Kernel:
    """Boxes of triangles are compared in lanes on CPUs."""
    next_partner_of = next_partner(in_lanes)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_in_cells_one_by_one(
        first: int,
        shard: int,
        walk: CellWalk,
        owned: TriangleFeatures,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.int64],
    ):
        e = first + wp.tid()
        partners = partners_of(e, walk)
        f = int(partners[0])
        while f < partners[3]:
            f = next_partner_of(e, f, partners, walk)
            if f < partners[3]:
                append_near(pair_of(e, f, walk.placed), owned, shard, counts, capacity, out)
                f += 1

    return near_in_cells_one_by_one


@cache
def _near_by_eights() -> wp.Kernel:
    """For CPUs; made when it is first needed, as its tests are for them alone."""
    next_partner_of = next_partner(True)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_in_cells_by_eights(
        first: int, shard: int, walk: CellWalk, blocks: int, step: int, owned: OwnedFeatures, out: KeySegments
    ):
        # Before the first entry there is one without partners. All is called in one place: code that is inlined twice
        # takes twice as long to compile.
        e = ENTRIES_AT_ONCE * scattered(first + wp.tid(), step, blocks) - 1
        end = wp.min(e + 1 + ENTRIES_AT_ONCE, walk.keys.shape[0])
        partners = wp.vec4i()
        f = int(0)
        kept = int(0)
        while e < end:
            f = next_partner_of(e, f, partners, walk)
            if f < partners[3]:
                kept = buffer_pair(pair_of(e, f, walk.placed), kept, shard, owned.scratch)
                f += 1
            else:
                e += 1
                if e < end:
                    partners = partners_of(e, walk)
                    f = partners[0]
            if kept == PAIRS_AT_ONCE or (e == end and kept > 0):
                test_buffered(kept, owned, shard, out)
                kept = 0

    return near_in_cells_by_eights
