"""Pairs of clusters whose boxes meet, found by several threads: those that NumPy finds."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.bvh.wide import FitFrame, WideBvh, WideBvhBoxes
from tangere.geometry.simd import lanes_by_mask
from tangere.query.proximity.cpu.broad_phase import ClusterPairs, find_cluster_pairs
from tangere.query.proximity.cpu.lazy_aabbs import LazyItemBoxes
from tangere.query.proximity.cpu.narrow_phase import scratch_of
from tangere.runtime import COUNTER_STRIDE, PreparedLaunch, run_phases, using_threads


def some_corners(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """(n, 2, 3) lower and upper corners of boxes in a cube, near each other in memory where they are near."""
    lower = np.sort(rng.integers(0, 10_000, (count, 3)), axis=0)
    return np.stack([lower, lower + rng.integers(0, size, (count, 3))], axis=1).astype(float)


def fitted(corners: np.ndarray) -> WideBvhBoxes:
    """The tree over edges between corners."""
    points, numbers = corners.reshape(-1, 3), np.arange(2 * len(corners), dtype=np.int32)
    room = WideBvh.of(numbers.reshape(-1, 2), np.arange(len(corners)), numbers).boxes()
    kept = wp.array(points, dtype=wp.vec3d, device="cpu")  # as long as anything looks at it
    for launches in zip(room.fitting(instant_at(kept)), strict=True):
        run_phases([launches])
    return room


def instant_at(points: wp.array) -> wp.array:
    """Points without a margin."""
    instant = wp.zeros(1, dtype=FitFrame, device="cpu")
    instant.numpy()[0] = (points.ptr, 0.0, (0.0, 0.0, 0.0), 1.0)
    return instant


def found(
    a: WideBvhBoxes, b: WideBvhBoxes, room: int, threads: int, unusable: int = 0, lazy: LazyItemBoxes | None = None
) -> tuple[int, list[np.ndarray]]:
    """How many blocks were made, and the pairs in each, as (n, 2)."""
    state = [wp.zeros(n, dtype=wp.int64, device="cpu") for n in (1, threads * int(COUNTER_STRIDE))]
    pairs = ClusterPairs.empty(*state, room)
    scratch = wp.empty((threads, scratch_of(b.of)), dtype=wp.int32, device="cpu")
    flag = wp.full(1, unusable, dtype=wp.int64, device="cpu")
    lazy = lazy or LazyItemBoxes([(boxes, wp.empty(0, dtype=wp.vec3d, device="cpu")) for boxes in (a, b)])
    inputs = [int(a is b), a.clusters, b.rows, b.of.levels, lanes_by_mask(), flag, scratch]
    inputs += [pairs.made, pairs.filling, pairs.blocks, *lazy.marks(a, b)]
    with using_threads(threads):
        run_phases([[PreparedLaunch(find_cluster_pairs, inputs, wp.get_device("cpu"), dim=a.of.groups, grain=1)]])
    made = int(pairs.made.numpy()[0])
    rows = pairs.blocks.numpy()[: min(made, room)]
    middle = rows.shape[1] // 2
    return made, [np.stack([row[1 : 1 + row[0]], row[1 + middle : 1 + middle + row[0]]], axis=1) for row in rows]


def expected(a: WideBvhBoxes, b: WideBvhBoxes) -> np.ndarray:
    """(n, 2) pairs of clusters whose boxes meet, in order; within one tree each once, and each with itself.

    A single cluster has no node above it: it is looked into in any case.
    """
    one, other = (boxes.clusters.numpy()[:, :6].astype(int) for boxes in (a, b))
    swapped = other[:, [3, 4, 5, 0, 1, 2]]
    meeting = (one[:, None] + swapped <= 0).all(axis=2) | (len(other) == 1)
    return np.argwhere(np.triu(meeting) if a is b else meeting)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("sizes", "size"),
    [((1, 1), 20_000), ((700, 5), 500), ((5, 700), 500), ((4000, 1500), 100), ((900, 700), 20_000), ((60, 60), 1)],
)
def test_every_pair_of_clusters_that_meet_is_found_once(rng, sizes, size, threads):
    a, b = (fitted(some_corners(rng, count, size)) for count in sizes)
    for one, other in ((a, b), (a, a)):
        made, blocks = found(one, other, 10_000, threads)
        assert made == len(blocks)
        pairs = np.concatenate([np.zeros((0, 2), int), *blocks])
        assert np.array_equal(pairs[np.lexsort(pairs.T[::-1])], expected(one, other))
        assert sum(len(block) < 32 for block in blocks) <= threads  # all but the last of each thread are full


def test_how_many_blocks_are_needed_is_told_though_there_is_no_room_for_them(rng):
    a = fitted(some_corners(rng, 3000, 3000))
    whole, _ = found(a, a, 10_000, 1)
    made, blocks = found(a, a, whole // 2, 1)
    assert (made, len(blocks)) == (whole, whole // 2)
    assert found(a, a, 0, 2)[0] >= whole


def test_nothing_is_searched_for_where_positions_make_no_sense(rng):
    a = fitted(some_corners(rng, 300, 3000))
    assert found(a, a, 1000, 2, unusable=1) == (0, [])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("sizes", "size"), [((4000, 1500), 100), ((5, 700), 500), ((60, 60), 1)])
def test_boxes_of_items_are_made_for_the_clusters_that_meet_and_for_no_others(rng, sizes, size, threads):
    corners = [some_corners(rng, count, size) for count in sizes]
    points = [wp.array(each.reshape(-1, 3), dtype=wp.vec3d, device="cpu") for each in corners]
    trees = [fitted(each) for each in corners]
    lazy = LazyItemBoxes(list(zip(trees, points, strict=True)))
    for step in (1, 2):
        for boxes in trees:
            boxes.rows.numpy()[: boxes.of.clusters] = 7
        lazy.step.fill_(step)
        lazy.groups.zero_()
        if step == 1:
            found(*trees, 10_000, threads, lazy=lazy)
        with using_threads(threads):
            run_phases([lazy.fitting(instant_at(points[0]))])
        for k, boxes in enumerate(trees):
            rows = boxes.rows.numpy()[: boxes.of.clusters]
            made = (rows != 7).any(axis=(1, 2))
            assert np.array_equal(np.flatnonzero(made), np.unique(expected(*trees)[:, k]) if step == 1 else [])
            last = boxes.of.count % 8 or 8
            boxes_of_items = rows[made].transpose(0, 2, 1).reshape(-1, 8, 6)
            if made[-1]:
                boxes_of_items[-1, last:] = boxes_of_items[-1, 0]
            assert np.array_equal(boxes_of_items.min(axis=1), boxes.clusters.numpy()[made, :6])
