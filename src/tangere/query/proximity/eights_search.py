"""Near features on CPUs: the items of one tree of eights among those of another, or among themselves.

One thread takes eight clusters down the other tree. What meets a cluster goes to a list, what meets an item of it to a
second one, and eight of the candidates there are compared at a time, so that vector units are full all the way and no
branch waits for a comparison. Most boxes that meet belong to neighbours, which share a vertex and are left out before.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.bound import LANES, Lanes
from tangere.query.proximity.candidates import candidate_test
from tangere.query.proximity.eights import Eights
from tangere.query.proximity.lanes import CLUSTERS_AT_ONCE, SCRATCH, meeting_clusters, meeting_items
from tangere.query.proximity.records import Record
from tangere.runtime import SOUND

__all__ = ["lanes_by_mask", "near_in_eights", "scratch_of"]


@cache
def lanes_by_mask() -> wp.array:
    """(256,) uint64: for every mask the lanes it names, a byte each, lowest first."""
    lanes = np.zeros((256, 8), np.uint8)
    for mask in range(256):
        named = [lane for lane in range(8) if mask >> lane & 1]
        lanes[mask, : len(named)] = named
    return wp.array(lanes.view(np.uint64).ravel(), dtype=wp.uint64, device="cpu")


def scratch_of(tree: Eights) -> int:
    """How many numbers a shard keeps while it searches a tree: candidates, and every node it may visit."""
    return SCRATCH + int(tree.levels.numpy()[-1]) + int(LANES)


@cache
def near_in_eights(width_a: int, width_b: int) -> wp.Kernel:
    """Edges among edges (2, 2), or vertices among faces (1, 3)."""
    test_candidates = candidate_test(width_a)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_among(
        first: int,
        shard: int,
        within: int,
        related: int,
        items_a: wp.array2d[int],
        numbers_a: wp.array[int],
        boxes_a: wp.array[Record],
        clusters_a: wp.array[Record],
        rows_a: wp.array2d[Lanes],
        positions_a: wp.array[wp.vec3d],
        items_b: wp.array2d[int],
        numbers_b: wp.array[int],
        clusters_b: wp.array[Record],
        rows_b: wp.array2d[Lanes],
        positions_b: wp.array[wp.vec3d],
        corners_b: wp.array2d[Lanes],
        levels_b: wp.array[int],
        vertex_body: wp.array[int],
        face_body: wp.array[int],
        distance: wp.float64,
        bits: wp.int64,
        lanes: wp.array[wp.uint64],
        scratch: wp.array2d[int],
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.int64],
    ):
        group = first + wp.tid()
        pending = int(0)
        for cluster in range(LANES * group, wp.min(LANES * group + LANES, clusters_a.shape[0])):
            own = int(-1)
            if within == 1:
                own = cluster
            visited = meeting_clusters(clusters_a, cluster, rows_b, levels_b, wp.max(own, 0), lanes, shard, scratch)
            begin = visited[0]
            while begin < visited[1]:
                end = wp.min(begin + CLUSTERS_AT_ONCE, visited[1])
                pending = meeting_items(
                    cluster, own, related, items_a, width_a, boxes_a, rows_a,
                    clusters_b, rows_b, corners_b, width_b, lanes, begin, end, pending, shard, scratch,
                )  # fmt: skip
                pending = test_candidates(
                    pending, LANES, items_a, numbers_a, positions_a, items_b, numbers_b, positions_b,
                    vertex_body, face_body, distance, bits, shard, scratch, counts, capacity, out,
                )  # fmt: skip
                begin = end
        pending = test_candidates(
            pending, 1, items_a, numbers_a, positions_a, items_b, numbers_b, positions_b,
            vertex_body, face_body, distance, bits, shard, scratch, counts, capacity, out,
        )  # fmt: skip

    return near_among
