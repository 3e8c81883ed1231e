"""Sharded launches: the same bits for any number of threads, errors that surface, callers that do not get in each
other's way. The oracle is NumPy, or the same kernel on one thread."""

from __future__ import annotations

import itertools
import sys
import threading
import time

import numpy as np
import pytest
import warp as wp

from tangere.runtime import (
    GRAIN,
    SOUND,
    InputError,
    argument_block,
    launch,
    run_shards,
    shard_ranges,
    thread_count,
    using_threads,
)
from tangere.runtime.shards import SHARDS_PER_THREAD

wp.set_module_options(SOUND)


@wp.kernel
def _logistic(first: int, start: wp.array[wp.float64], rounds: int, end: wp.array[wp.float64]):
    """A chaotic map: one different rounding anywhere changes every digit."""
    i = first + wp.tid()
    x = start[i]
    for _ in range(rounds):
        x = wp.float64(3.999) * x * (wp.float64(1.0) - x)
    end[i] = x


@wp.kernel
def _visit(first: int, visits: wp.array[wp.int32]):
    i = first + wp.tid()
    visits[i] = visits[i] + 1


@wp.struct
class _Scaled:
    factor: wp.float64
    values: wp.array[wp.float64]


@wp.kernel
def _scale(first: int, by: _Scaled, scaled: wp.array[wp.float64]):
    i = first + wp.tid()
    scaled[i] = by.factor * by.values[i]


def _run_logistic(start: np.ndarray, device: str = "cpu", threads: int | None = None) -> np.ndarray:
    target = wp.get_device(device)
    end = wp.empty(len(start), dtype=wp.float64, device=target)
    begin = wp.array(start, dtype=wp.float64, device=target)
    launch(_logistic, len(start), [begin, 100], [end], device=target, grain=64, threads=threads)
    return end.numpy()


def _logistic_in_numpy(x: np.ndarray) -> np.ndarray:
    for _ in range(100):
        x = 3.999 * x * (1.0 - x)
    return x


def test_any_number_of_threads_gives_the_same_bits(rng, effort):
    start = rng.uniform(0, 1, effort(50_001))
    one = _run_logistic(start, threads=1)
    for threads in (2, 7):
        assert np.array_equal(one, _run_logistic(start, threads=threads))
    assert np.array_equal(one, _logistic_in_numpy(start))


@pytest.mark.parametrize("dim", [0, 1, 2, 7, 63, 64, 65, 1000, 4097])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_index_is_visited_exactly_once(dim, threads, device):
    visits = wp.zeros(dim + 1, dtype=wp.int32, device=device)
    launch(_visit, dim, outputs=[visits], device=wp.get_device(device), grain=64, threads=threads)
    assert np.array_equal(visits.numpy(), [1] * dim + [0])


def test_warp_packs_the_structs_of_a_kernel_once_and_later_launches_read_them_as_they_are(rng, monkeypatch):
    cpu, asked = wp.get_device("cpu"), []
    by_warp = argument_block._packed_by_warp
    monkeypatch.setattr(argument_block, "_packed_by_warp", lambda *given: (asked.append(given), by_warp(*given))[1])
    by = _Scaled()
    for count, factor in ((5, 2.0), (9, 3.0), (7, -1.0)):
        given = rng.uniform(size=count)
        by.factor, by.values = factor, wp.array(given, dtype=wp.float64, device=cpu)
        scaled = wp.zeros(count, dtype=wp.float64, device=cpu)
        launch(_scale, count, [by], [scaled], device=cpu)
        assert np.array_equal(scaled.numpy(), factor * given)
    assert len(asked) <= 1


@pytest.mark.parametrize("dim", [0, 1, GRAIN, GRAIN + 1, 1_000_003])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_shards_cut_the_range_into_neighbours_without_gap_or_overlap(dim, threads):
    ranges = shard_ranges(dim, threads=threads)
    assert np.array_equal(np.concatenate([np.arange(first, first + count) for first, count in ranges]), np.arange(dim))
    assert len(ranges) <= max(1, threads * SHARDS_PER_THREAD)


def test_one_thread_and_small_ranges_stay_on_the_callers_thread():
    for ranges, threads in ((shard_ranges(10**6, threads=1), 1), (shard_ranges(GRAIN, threads=8), 8)):
        used: set[int] = set()
        run_shards(lambda *_, used=used: used.add(threading.get_ident()), ranges, threads)
        assert used == {threading.get_ident()}


def test_shards_run_on_several_threads_at_once():
    meeting = threading.Barrier(3, timeout=30)  # breaks, and raises, unless three shards are under way together
    run_shards(lambda *_: meeting.wait() and None, [(0, 1), (1, 1), (2, 1)], threads=3)


def test_an_error_in_one_shard_surfaces_when_all_others_have_run_and_leaves_the_pool_usable(rng):
    ran: set[int] = set()

    def fail_in_the_middle(shard: int, first: int, count: int) -> None:
        if shard in (5, 9):
            raise RuntimeError(f"shard {shard} failed")
        ran.add(shard)

    for _ in range(3):
        ran.clear()
        with pytest.raises(RuntimeError, match="shard 5 failed"):
            run_shards(fail_in_the_middle, [(i, 1) for i in range(16)], threads=2)
        assert ran == set(range(16)) - {5, 9}
    start = rng.uniform(0, 1, 5000)
    assert np.array_equal(_run_logistic(start, threads=2), _logistic_in_numpy(start))


def test_an_interrupt_at_any_line_waits_for_shards_under_way_and_leaves_none_to_start_later():
    """The trace function raises on each line in turn that the caller's thread comes to."""
    stopped: list[int] = []
    while _interrupted_at_line(len(stopped)):
        stopped.append(len(stopped))
    assert len(stopped) > 20
    used: set[int] = set()
    run_shards(lambda shard, *_: used.add(shard), [(i, 1) for i in range(4)], threads=4)
    assert used == {0, 1, 2, 3}


def _interrupted_at_line(number: int) -> bool:
    """Whether shards were interrupted at the line of that number; no shard may be under way or begin afterwards."""
    caller, helped, returned, late = threading.get_ident(), threading.Event(), threading.Event(), []
    lines = itertools.count()

    def shard(number: int, first: int, count: int) -> None:
        begun = returned.is_set()
        if threading.get_ident() == caller:
            helped.wait(0.02)  # so that others, if woken, are under way when the caller is done
        else:
            helped.set()
            time.sleep(0.005)
        if begun or returned.is_set():
            late.append(number)

    def trace(frame, event: str, argument):
        if frame.f_code.co_name not in ("run_shards", "wake", "call", "take_shards"):
            return None
        if event == "line" and next(lines) == number:
            raise KeyboardInterrupt
        return trace

    before, interrupted = sys.gettrace(), False
    try:
        sys.settrace(trace)
        run_shards(shard, [(i, 1) for i in range(4)], threads=16)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        returned.set()
        sys.settrace(before)
    time.sleep(0.02)
    assert not late, f"interrupted at line {number}"
    return interrupted


@pytest.mark.parametrize("threads", [1, 2])
def test_a_launch_with_wrong_arguments_raises_and_the_next_one_works(rng, threads):
    start = rng.uniform(0, 1, 5000)
    cpu = wp.get_device("cpu")
    wrong = wp.zeros(5000, dtype=wp.int32, device=cpu)
    with pytest.raises(Exception, match=r"(?i)array|type|argument"):
        launch(_logistic, 5000, [wrong, 100], [wrong], device=cpu, grain=64, threads=threads)
    assert np.array_equal(_run_logistic(start, threads=threads), _logistic_in_numpy(start))


def test_python_threads_may_launch_at_the_same_time(rng, effort):
    starts = [rng.uniform(0, 1, effort(20_000) + k) for k in range(6)]
    answers: list[np.ndarray | None] = [None] * len(starts)

    def ask(k: int) -> None:
        for _ in range(3):
            answers[k] = _run_logistic(starts[k], threads=2 + k % 3)

    callers = [threading.Thread(target=ask, args=(k,)) for k in range(len(starts))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    for start, answer in zip(starts, answers, strict=True):
        assert answer is not None
        assert np.array_equal(answer, _logistic_in_numpy(start))


def test_a_shard_may_launch_shards_of_its_own():
    done: set[tuple[int, int]] = set()

    def outer(shard: int, first: int, count: int) -> None:
        run_shards(lambda inner, *_: done.add((shard, inner)), [(i, 1) for i in range(4)], threads=2)

    caller = threading.Thread(target=run_shards, args=(outer, [(i, 1) for i in range(4)], 2), daemon=True)
    caller.start()
    caller.join(30)
    assert not caller.is_alive(), "nested launches wait for each other"
    assert done == {(i, j) for i in range(4) for j in range(4)}


def test_thread_count_is_the_argument_else_the_environment_else_the_cores(monkeypatch):
    monkeypatch.delenv("TANGERE_THREADS", raising=False)
    assert thread_count() >= 1
    monkeypatch.setenv("TANGERE_THREADS", "3")
    assert thread_count() == 3
    with using_threads(5):
        assert thread_count() == 5
        with using_threads(None):
            assert thread_count() == 5
    assert thread_count() == 3


def test_thread_count_is_back_to_what_it_was_after_an_error(monkeypatch):
    monkeypatch.setenv("TANGERE_THREADS", "3")
    with pytest.raises(KeyError), using_threads(5):
        raise KeyError
    assert thread_count() == 3


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", True])
def test_a_wrong_number_of_threads_is_an_error(wrong):
    with pytest.raises(InputError, match="positive whole number"), using_threads(wrong):
        pass


@pytest.mark.parametrize("wrong", ["0", "two", "-1", "1.5", ""])
def test_a_wrong_TANGERE_THREADS_is_an_error(monkeypatch, wrong):
    monkeypatch.setenv("TANGERE_THREADS", wrong)
    with pytest.raises(InputError, match="TANGERE_THREADS"):
        thread_count()
