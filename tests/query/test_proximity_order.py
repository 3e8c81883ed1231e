"""Names that threads have appended, put in order by all threads: what NumPy's sort gives."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warp as wp

from tangere.query.contacts import Kind
from tangere.query.proximity.cpu.parallel_sort import AppendedKeys, ParallelSort, Ranges, tally_names
from tangere.query.proximity.pair_keys import number_bits
from tangere.runtime import COUNTER_STRIDE, launch, run_phases, using_threads


@wp.kernel(enable_backward=False)
def _count_names(
    first: int,
    counters: wp.array[wp.int64],
    capacity: int,
    names: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    tally: wp.array2d[int],
):
    tally_names(wp.int64(0), first + wp.tid(), counters, capacity, names, bits, width, of_vertices, tally)


def _scene(vertices: int) -> Any:
    """As much of a layout as names need: so many vertices, and three times as many edges."""
    bases = {"vertex_base": vertices, "edge_base": 3 * vertices, "face_base": 2 * vertices}
    return SimpleNamespace(**{name: np.array([0, count]) for name, count in bases.items()}, cache={})


def _names(layout: Any, kind: int, side: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    bits = number_bits(layout)
    return (((2 * kind + side) << bits | one) << bits) | other


def _some_names(rng: np.random.Generator, layout: Any, count: int, features: int) -> np.ndarray:
    """Different names of all kinds that begin with a few features, among them the first and the last of all."""
    parts = []
    for kind, side, base in (
        (Kind.VERTEX_FACE, 0, layout.vertex_base),
        (Kind.VERTEX_FACE, 1, layout.vertex_base),
        (Kind.EDGE_EDGE, 0, layout.edge_base),
    ):
        among = np.unique([0, base[-1] - 1, *rng.integers(0, base[-1], features)])
        one, other = rng.choice(among, count), rng.integers(0, base[-1], count)
        parts.append(_names(layout, int(kind), side, one, other))
    return rng.permutation(np.unique(np.concatenate(parts)))


def _appended(names: np.ndarray, shards: int, capacity: int, rng: np.random.Generator) -> AppendedKeys:
    """Names as some shards would leave them, with rubbish where nothing was appended."""
    parts = np.split(names, np.sort(rng.integers(0, len(names) + 1, shards - 1)))
    counters = np.full(shards * COUNTER_STRIDE, 77, np.int64)
    counters[::COUNTER_STRIDE] = [len(part) for part in parts]
    rows = rng.integers(-(2**62), 2**62, (shards, capacity))
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = part[:capacity]
    arrays = (wp.array(x.ravel(), dtype=wp.int64, device="cpu") for x in (counters, rows))
    counted, segments = arrays
    return AppendedKeys(shards, counted, capacity, segments)


def _counted(layout: Any, found: AppendedKeys) -> AppendedKeys:
    """The same, counted by range as a search would, against a count by NumPy."""
    ranges = Ranges.of(layout)
    tally = ranges.tally(found.shards)
    inputs = [found.counters, found.capacity, found.names, ranges.bits, ranges.width, ranges.of_vertices, tally]
    launch(_count_names, found.shards, inputs, device=wp.get_device("cpu"))
    filled = found.counters.numpy()[::COUNTER_STRIDE]
    for row, names, count in zip(tally.numpy(), found.names.numpy().reshape(found.shards, -1), filled, strict=True):
        code, one = names[:count] >> 2 * ranges.bits, (names[:count] >> ranges.bits) & ((1 << ranges.bits) - 1)
        of = (code - 2 * int(Kind.VERTEX_FACE)) * ranges.of_vertices + (one >> ranges.width)
        assert np.array_equal(row, np.bincount(of, minlength=ranges.count))
    return replace(found, tally=tally)


def _in_order(layout: Any, found: AppendedKeys, room: int, threads: int) -> tuple[ParallelSort, np.ndarray]:
    names, number = (wp.full(n, -1, dtype=wp.int64, device="cpu") for n in (room, 1))
    ordered = ParallelSort(layout, names, number)
    with using_threads(threads):
        run_phases(ordered.phases(found))
    return ordered, names.numpy()[: number.numpy()[0]]


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("vertices", "count", "features"),
    [
        pytest.param(5, 1, 1, id="next to nothing"),
        pytest.param(5, 400, 5, id="all there can be"),
        pytest.param(2_000, 3_000, 2_000, id="a few of many features"),
        pytest.param(2_000, 9_000, 4, id="many of a few features"),
        pytest.param(30_000, 60_000, 500, id="a crowd"),
        pytest.param(4_000_000, 2_000, 30, id="numbers of many digits"),
    ],
)
def test_names_of_several_threads_come_in_rising_order(rng, vertices, count, features, threads, counted):
    layout = _scene(vertices)
    names = _some_names(rng, layout, count, features)
    found = _appended(names, 9, len(names) + 1, rng)
    if counted:
        found = _counted(layout, found)
    ordered, rows = _in_order(layout, found, len(names), threads)
    assert np.array_equal(rows, np.sort(names))
    assert ordered.told.tolist() == [len(names), found.counters.numpy()[::COUNTER_STRIDE].max()]
    assert found.tally is None or not found.tally.numpy().any()


def test_without_names_there_is_nothing_to_order(rng):
    layout = _scene(50)
    ordered, rows = _in_order(layout, _appended(np.zeros(0, np.int64), 3, 4, rng), 10, 2)
    assert (*ordered.told, len(rows)) == (0, 0, 0)


def test_too_little_room_is_told_and_nothing_is_written(rng):
    layout = _scene(100)
    names = _some_names(rng, layout, 300, 50)
    ordered, rows = _in_order(layout, _appended(names, 4, len(names), rng), len(names) - 1, 2)
    assert (ordered.told[0], len(rows)) == (len(names), 0)
    assert np.all(ordered.names.numpy() == -1)


def test_nothing_is_put_in_order_while_some_names_were_not_appended(rng):
    layout = _scene(100)
    names = _some_names(rng, layout, 300, 50)
    ordered, rows = _in_order(layout, _appended(names, 1, len(names) - 1, rng), len(names), 2)
    assert (*ordered.told, len(rows)) == (len(names), len(names), 0)


def test_the_same_launches_put_other_names_in_order_the_next_time(rng):
    layout = _scene(300)
    first, second = (_some_names(rng, layout, 500, 60) for _ in range(2))
    capacity = max(len(first), len(second))
    found = _appended(first, 3, capacity, rng)
    names, number = (wp.zeros(n, dtype=wp.int64, device="cpu") for n in (capacity, 1))
    ordered = ParallelSort(layout, names, number)
    phases = ordered.phases(found)
    for each in (first, second):
        now = _appended(each, 3, capacity, rng)
        wp.copy(found.counters, now.counters)
        wp.copy(found.names, now.names)
        run_phases(phases)
        assert np.array_equal(names.numpy()[: number.numpy()[0]], np.sort(each))
