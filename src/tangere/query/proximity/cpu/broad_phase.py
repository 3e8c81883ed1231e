"""Pairs of clusters of two trees whose boxes meet, in blocks of equal length.

Near bodies have all their work in one place: a few clusters meet a hundred others, most meet none. So pairs of clusters
are found first, and threads share them evenly. A thread fills a block of its own and takes another one when that is
full; how many have been taken is counted, also when there was no room for them. The boxes of their items are made next
(`cpu.lazy_aabbs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from tangere.bvh.lbvh import LANES, Lanes
from tangere.bvh.wide import AabbRecord, meeting_clusters
from tangere.query.proximity.cpu.lazy_aabbs import request_items
from tangere.query.proximity.cpu.simd_boxes import CLUSTERS_AT_ONCE, SCRATCH, SHARD
from tangere.runtime import COUNTER_STRIDE, SOUND

wp.set_module_options(SOUND)

#: Numbers of a block: how many pairs there are, the first clusters of all, one unused, and the second ones.
_BLOCK = 2 + 2 * CLUSTERS_AT_ONCE


@dataclass(frozen=True)
class ClusterPairs:
    """Room for the pairs of clusters of a search."""

    made: wp.array  #: (1,) int64: how many blocks there are, or should be
    filling: wp.array  #: (8 threads,) int64: of each thread, the first two of eight: its block, and the pairs in it
    blocks: wp.array  #: (room, 66) int32: the number of pairs; their clusters in the first tree; in the second

    @staticmethod
    def empty(made: wp.array, filling: wp.array, room: int) -> ClusterPairs:
        """Room for so many blocks; the counters are the caller's, who makes them 0."""
        return ClusterPairs(made, filling, wp.empty((room, _BLOCK), dtype=wp.int32, device="cpu"))


@wp.func_native(
    SHARD
    + f"""
    const long long most = {CLUSTERS_AT_ONCE}, stride = {int(COUNTER_STRIDE)};
"""
    + """
    long long* mine = (long long*)&filling.data[shard * stride];
    for (int k = begin; k < end;) {
        if (mine[1] % most == 0)
            mine[0] = __atomic_fetch_add((long long*)made.data, 1, __ATOMIC_RELAXED);
        const int at = mine[1] % most, amount = end - k < most - at ? end - k : most - at;
        if (mine[0] < blocks.shape[0]) {
            int* block = &blocks.data[mine[0] * blocks.shape[1]];
            int* first = block + 1 + at;
            int* second = first + blocks.shape[1] / 2;
            for (int j = 0; j < amount; ++j) {
                first[j] = cluster;
                second[j] = visited[k + j];
            }
            block[0] = at + amount;
        }
        mine[1] += amount;
        k += amount;
    }
"""
)
def append_cluster_pairs(
    cluster: int,
    begin: int,
    end: int,
    shard: int,
    scratch: wp.array2d[int],
    made: wp.array[wp.int64],
    filling: wp.array[wp.int64],
    blocks: wp.array2d[int],
):
    """Add the pairs of a cluster with the visited ones from `begin` to `end`."""
    ...


@wp.kernel
def find_cluster_pairs(
    first: int,
    shard: int,
    thread: int,
    within: int,
    clusters_a: wp.array[AabbRecord],
    rows_b: wp.array2d[Lanes],
    levels_b: wp.array[int],
    lanes: wp.array[wp.uint64],
    unusable: wp.array[wp.int64],
    scratch: wp.array2d[int],
    made: wp.array[wp.int64],
    filling: wp.array[wp.int64],
    blocks: wp.array2d[int],
    step: wp.array[wp.int64],
    groups_a: wp.array[wp.int64],
    steps_a: wp.array[wp.int64],
    groups_b: wp.array[wp.int64],
    steps_b: wp.array[wp.int64],
):
    """The pairs of eight clusters; within one tree with none before themselves."""
    if unusable[0] > wp.int64(0):
        return
    group = first + wp.tid()
    for cluster in range(LANES * group, wp.min(LANES * group + LANES, clusters_a.shape[0])):
        visited = meeting_clusters(
            clusters_a, cluster, rows_b, levels_b, within * cluster, lanes, SCRATCH, thread, scratch
        )
        append_cluster_pairs(cluster, visited[0], visited[1], thread, scratch, made, filling, blocks)
        request_items(cluster, visited[0], visited[1], thread, scratch, step, groups_a, steps_a, groups_b, steps_b)
