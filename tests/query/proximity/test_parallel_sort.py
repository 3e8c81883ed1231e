"""Keys that threads have appended, put in order by all threads: what NumPy's sort gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warp as wp

from tangere.query.contacts import Kind
from tangere.query.proximity.cpu.parallel_sort import KeySegments, ParallelSort, Ranges, count_keys
from tangere.query.proximity.pair_keys import number_bits
from tangere.runtime import COUNTER_STRIDE, launch, run_phases, using_threads


@wp.kernel(enable_backward=False)
def _count_keys(first: int, found: KeySegments):
    count_keys(wp.int64(0), first + wp.tid(), found)


def _scene(vertices: int) -> Any:
    """As much of a layout as keys need: so many vertices, and three times as many edges."""
    bases = {"vertex_base": vertices, "edge_base": 3 * vertices, "face_base": 2 * vertices}
    return SimpleNamespace(**{name: np.array([0, count]) for name, count in bases.items()}, cache={})


def _keys(layout: Any, kind: int, side: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    bits = number_bits(layout)
    return (((2 * kind + side) << bits | one) << bits) | other


def _some_keys(rng: np.random.Generator, layout: Any, count: int, features: int) -> np.ndarray:
    """Different keys of all kinds that begin with a few features, among them the first and the last of all."""
    parts = []
    for kind, side, base in (
        (Kind.VERTEX_FACE, 0, layout.vertex_base),
        (Kind.VERTEX_FACE, 1, layout.vertex_base),
        (Kind.EDGE_EDGE, 0, layout.edge_base),
    ):
        among = np.unique([0, base[-1] - 1, *rng.integers(0, base[-1], features)])
        one, other = rng.choice(among, count), rng.integers(0, base[-1], count)
        parts.append(_keys(layout, int(kind), side, one, other))
    return rng.permutation(np.unique(np.concatenate(parts)))


def _appended(layout: Any, pair_keys: np.ndarray, shards: int, capacity: int, rng: np.random.Generator) -> KeySegments:
    """Keys as some shards would leave them, with rubbish where nothing was appended."""
    parts = np.split(pair_keys, np.sort(rng.integers(0, len(pair_keys) + 1, shards - 1)))
    counters = np.full(shards * COUNTER_STRIDE, 77, np.int64)
    counters[::COUNTER_STRIDE] = [len(part) for part in parts]
    rows = rng.integers(-(2**62), 2**62, (shards, capacity))
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = part[:capacity]
    arrays = (wp.array(x.ravel(), dtype=wp.int64, device="cpu") for x in (counters, rows))
    counted, segments = arrays
    return Ranges.of(layout).segments(counted, capacity, segments)


def _count(layout: Any, found: KeySegments) -> None:
    """Count the keys by range as a search would, against a count by NumPy."""
    ranges, shards = Ranges.of(layout), len(found.histogram)
    launch(_count_keys, shards, [found], device=wp.get_device("cpu"))
    filled = found.counters.numpy()[::COUNTER_STRIDE]
    for row, pair_keys, count in zip(
        found.histogram.numpy(), found.pair_keys.numpy().reshape(shards, -1), filled, strict=True
    ):
        code, one = pair_keys[:count] >> 2 * ranges.bits, (pair_keys[:count] >> ranges.bits) & ((1 << ranges.bits) - 1)
        of = (code - 2 * int(Kind.VERTEX_FACE)) * ranges.of_vertices + (one >> ranges.width)
        assert np.array_equal(row, np.bincount(of, minlength=ranges.count))


def _in_order(
    layout: Any, found: KeySegments, room: int, threads: int, *, counted: bool = False
) -> tuple[ParallelSort, np.ndarray]:
    pair_keys, number = (wp.full(n, -1, dtype=wp.int64, device="cpu") for n in (room, 1))
    ordered = ParallelSort(layout, pair_keys, number)
    with using_threads(threads):
        run_phases(ordered.phases(found, counted=counted))
    return ordered, pair_keys.numpy()[: number.numpy()[0]]


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("vertices", "count", "features"),
    [
        pytest.param(5, 1, 1, id="next to nothing"),
        pytest.param(5, 400, 5, id="all there can be"),
        pytest.param(2_000, 3_000, 2_000, id="a few of many features"),
        pytest.param(2_000, 9_000, 4, id="many of a few features"),
        pytest.param(30_000, 60_000, 500, id="a field"),
        pytest.param(4_000_000, 2_000, 30, id="numbers of many digits"),
    ],
)
def test_names_of_several_threads_come_in_rising_order(rng, vertices, count, features, threads, counted):
    layout = _scene(vertices)
    pair_keys = _some_keys(rng, layout, count, features)
    found = _appended(layout, pair_keys, 9, len(pair_keys) + 1, rng)
    if counted:
        _count(layout, found)
    ordered, rows = _in_order(layout, found, len(pair_keys), threads, counted=counted)
    assert np.array_equal(rows, np.sort(pair_keys))
    assert ordered.totals.tolist() == [len(pair_keys), found.counters.numpy()[::COUNTER_STRIDE].max()]
    assert not found.histogram.numpy().any()


def test_without_names_there_is_nothing_to_order(rng):
    layout = _scene(50)
    ordered, rows = _in_order(layout, _appended(layout, np.zeros(0, np.int64), 3, 4, rng), 10, 2)
    assert (*ordered.totals, len(rows)) == (0, 0, 0)


def test_too_little_room_is_told_and_nothing_is_written(rng):
    layout = _scene(100)
    pair_keys = _some_keys(rng, layout, 300, 50)
    ordered, rows = _in_order(layout, _appended(layout, pair_keys, 4, len(pair_keys), rng), len(pair_keys) - 1, 2)
    assert (ordered.totals[0], len(rows)) == (len(pair_keys), 0)
    assert np.all(ordered.pair_keys.numpy() == -1)


def test_nothing_is_put_in_order_while_some_keys_were_not_appended(rng):
    layout = _scene(100)
    pair_keys = _some_keys(rng, layout, 300, 50)
    ordered, rows = _in_order(layout, _appended(layout, pair_keys, 1, len(pair_keys) - 1, rng), len(pair_keys), 2)
    assert (*ordered.totals, len(rows)) == (len(pair_keys), len(pair_keys), 0)


def test_the_same_launches_put_other_names_in_order_the_next_time(rng):
    layout = _scene(300)
    first, second = (_some_keys(rng, layout, 500, 60) for _ in range(2))
    capacity = max(len(first), len(second))
    found = _appended(layout, first, 3, capacity, rng)
    pair_keys, number = (wp.zeros(n, dtype=wp.int64, device="cpu") for n in (capacity, 1))
    ordered = ParallelSort(layout, pair_keys, number)
    phases = ordered.phases(found, counted=False)
    for each in (first, second):
        now = _appended(layout, each, 3, capacity, rng)
        wp.copy(found.counters, now.counters)
        wp.copy(found.pair_keys, now.pair_keys)
        run_phases(phases)
        assert np.array_equal(pair_keys.numpy()[: number.numpy()[0]], np.sort(each))
