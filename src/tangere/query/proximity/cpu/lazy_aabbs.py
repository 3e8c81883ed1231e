"""Boxes of items, made only where clusters meet: most of a scene is near nothing.

They are six numbers for each item, and to write them for all takes longer than to find which are needed. Whoever finds
that a cluster meets another writes the number of the step beside both. If any were requested, boxes of items are made
for the clusters that have this number.
"""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

from tangere.bvh.lbvh import LANES, Lanes
from tangere.bvh.wide import FIT_GRAIN, FitFrame, WideBvhBoxes, fit_rows
from tangere.query.proximity.cpu.simd_boxes import SHARD
from tangere.runtime import COUNTER_STRIDE, SOUND, PreparedLaunch

wp.set_module_options(SOUND)

_LINE = int(COUNTER_STRIDE)


class LazyItemBoxes:
    """Clusters of some trees whose items need boxes in a step.

    Args:
        trees: with each, where its vertices are, (v,) vec3d [m].
    """

    def __init__(self, trees: Sequence[tuple[WideBvhBoxes, wp.array]]) -> None:
        self._trees = trees
        #: (1,) int64: the number of the step; who begins one adds 1.
        self.step = wp.zeros(1, dtype=wp.int64, device="cpu")
        #: Of each tree the first of eight int64: how many eights of clusters it has if some are requested, else 0,
        #: which it is when a step begins.
        self.groups = wp.zeros(len(trees) * _LINE, dtype=wp.int64, device="cpu")
        # Of each tree the number of its groups, and the step in which each cluster was requested last.
        self._marks: dict[int, tuple[wp.array, wp.array]] = {}
        for k, (boxes, _) in enumerate(trees):
            steps = wp.zeros(boxes.of.clusters, dtype=wp.int64, device="cpu")
            self._marks[id(boxes)] = self.groups[k * _LINE : k * _LINE + 1], steps

    def marks(self, a: WideBvhBoxes, b: WideBvhBoxes) -> list[wp.array]:
        """What `request_items` takes last, for clusters of these trees."""
        return [self.step, *self._marks[id(a)], *self._marks[id(b)]]

    def fitting(self, instant: wp.array) -> list[PreparedLaunch]:
        """The launches that make the boxes of items at an `FitFrame`, (1,), where vertices have been placed."""
        launches = []
        for boxes, positions in self._trees:
            groups, steps = self._marks[id(boxes)]
            arguments = [self.step, steps, boxes.of.corners, positions, instant, boxes.rows]
            launches.append(
                PreparedLaunch(_fit_requested, arguments, wp.get_device("cpu"), dim=groups, grain=FIT_GRAIN)
            )
        return launches


@wp.func_native(
    SHARD
    + """
    // Several threads may write at once, but all the same.
    auto put = [](long long* at, long long value) {
        if (__atomic_load_n(at, __ATOMIC_RELAXED) != value)
            __atomic_store_n(at, value, __ATOMIC_RELAXED);
    };
    const long long now = step.data[0];
    if (begin < end) {
        put((long long*)groups_a.data, (steps_a.shape[0] + 7) / 8);
        put((long long*)groups_b.data, (steps_b.shape[0] + 7) / 8);
        put((long long*)&steps_a.data[cluster], now);
    }
    for (int k = begin; k < end; ++k)
        put((long long*)&steps_b.data[visited[k]], now);
"""
)
def request_items(
    cluster: int,
    begin: int,
    end: int,
    shard: int,
    scratch: wp.array2d[int],
    step: wp.array[wp.int64],
    groups_a: wp.array[wp.int64],
    steps_a: wp.array[wp.int64],
    groups_b: wp.array[wp.int64],
    steps_b: wp.array[wp.int64],
):
    """Want the boxes of the items of a cluster, and of the visited ones from `begin` to `end` of the other tree."""
    ...


@wp.kernel
def _fit_requested(
    first: int,
    step: wp.array[wp.int64],
    steps: wp.array[wp.int64],
    corners: wp.array2d[Lanes],
    positions: wp.array[wp.vec3d],
    instant: wp.array[FitFrame],
    rows: wp.array2d[Lanes],
):
    """The boxes of the items of those of eight clusters that are requested."""
    group = first + wp.tid()
    for cluster in range(LANES * group, wp.min(LANES * group + LANES, steps.shape[0])):
        if steps[cluster] == step[0]:
            fit_rows(cluster, corners, positions, instant, rows)
