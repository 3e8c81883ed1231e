"""Near features on CPUs: the items of one tree of eights among those of another, or among themselves.

Clusters that meet have been found before (`broad_phase`). What meets an item of one goes to a list, and eight of the
candidates there are compared at a time, so that vector units are full all the way and no branch waits for a comparison.
Most boxes that meet belong to neighbours, which share a vertex and are left out before.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.lbvh import LANES, Lanes
from tangere.bvh.wide import AabbRecord, WideBvh
from tangere.query.proximity.cpu.candidates import candidate_test
from tangere.query.proximity.cpu.parallel_sort import KeySegments, count_keys
from tangere.query.proximity.cpu.simd_boxes import SCRATCH, meeting_items
from tangere.query.proximity.searched_features import SearchedFeatures
from tangere.runtime import COUNTER_STRIDE, SOUND


def scratch_of(tree: WideBvh) -> int:
    """How many numbers a thread keeps while it searches a tree: candidates, and every node it may visit."""
    return SCRATCH + int(tree.levels.numpy()[-1]) + int(LANES)


@cache
def wide_search_kernel(width_a: int, width_b: int) -> wp.Kernel:
    """Edges among edges (2, 2), or vertices among faces (1, 3)."""
    test_candidates = candidate_test(width_a)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_among(
        first: int,
        shard: int,
        thread: int,
        within: int,
        related: int,
        pairs: SearchedFeatures,
        rows_a: wp.array2d[Lanes],
        clusters_b: wp.array[AabbRecord],
        rows_b: wp.array2d[Lanes],
        corners_b: wp.array2d[Lanes],
        lanes: wp.array[wp.uint64],
        scratch: wp.array2d[int],
        blocks: wp.array2d[int],
        found: KeySegments,
    ):
        """The near features of a block of pairs of clusters."""
        block = first + wp.tid()
        if block >= blocks.shape[0]:
            return
        before = found.counters[thread * COUNTER_STRIDE]
        pending = meeting_items(
            within, related, pairs.items_a, width_a, rows_a, clusters_b, rows_b, corners_b, width_b,
            lanes, blocks, block, 0, blocks[block, 0], 0, thread, scratch,
        )  # fmt: skip
        pending = test_candidates(pending, 1, pairs, thread, scratch, found)
        count_keys(before, thread, found)

    return near_among
