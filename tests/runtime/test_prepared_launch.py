"""Launches in phases on CPU threads, and arguments packed once: the same numbers as NumPy and as Warp's own launch."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch, prepare_phases, run_phases, shard_ranges
from tangere.runtime.shards import SHARDS_PER_THREAD
from tangere.runtime.thread_pool import program as driving

wp.set_module_options(SOUND)

CPU = wp.get_device("cpu")


@wp.struct
class Affine:
    factor: wp.float64
    offset: wp.float64


@wp.kernel
def _neighbours(first: int, before: wp.array[wp.int64], after: wp.array[wp.int64]):
    """Sums over a ring: one value that is not there yet spoils all that follow."""
    i = first + wp.tid()
    n = before.shape[0]
    after[i] = (before[(i + n - 1) % n] + wp.int64(3) * before[i] + before[(i + 1) % n]) % wp.int64(1000003)


@wp.kernel
def _who(first: int, shard: int, shift: int, out: wp.array2d[int]):
    i = first + wp.tid()
    out[i, 0] = first
    out[i, 1] = shard
    out[i, 2] = shift


@wp.kernel
def _count_by_thread(first: int, shard: int, thread: int, counts: wp.array[wp.int64]):
    for _ in range(50):
        counts[8 * thread] = counts[8 * thread] + wp.int64(1)


@wp.kernel
def _decide(first: int, number: int, count: wp.array[wp.int64]):
    count[0] = wp.int64(number)


@wp.kernel
def _mixed(
    first: int,
    small: wp.uint8,
    large: wp.int64,
    yes: wp.bool,
    place: wp.vec3d,
    affine: Affine,
    rows: wp.array2d[wp.float64],
    single: wp.float32,
    out: wp.array[wp.float64],
):
    i = first + wp.tid()
    sum = wp.float64(small) + wp.float64(large) + place[0] + place[1] * place[2] + wp.float64(single)
    if yes:
        sum = -sum
    out[i] = affine.factor * (sum + rows[i, 0] * rows[i, 1]) + affine.offset


def _in_numpy(x: np.ndarray, rounds: int) -> np.ndarray:
    for _ in range(rounds):
        x = (np.roll(x, 1) + 3 * x + np.roll(x, -1)) % 1000003
    return x


def _in_phases(start: np.ndarray, rounds: int, grain: int, threads: int) -> np.ndarray:
    x = [wp.array(start, dtype=wp.int64, device=CPU), wp.empty(len(start), dtype=wp.int64, device=CPU)]
    steps = [PreparedLaunch(_neighbours, [x[k], x[1 - k]], CPU) for k in range(2)]
    run_phases([[steps[k % 2].over(len(start), grain)] for k in range(rounds)], threads)
    return x[rounds % 2].numpy()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_phase_sees_everything_the_one_before_wrote(rng, threads, effort):
    for size, grain in ((1, 1), (5, 1), (64, 1), (1000, 10), (5000, 100)):
        start = rng.integers(0, 1000, size)
        for _ in range(effort(20)):
            assert np.array_equal(_in_phases(start, 9, grain, threads), _in_numpy(start, 9))


@pytest.mark.parametrize("threads", [1, 3])
def test_launches_of_a_phase_are_cut_as_shard_ranges_says_and_appending_ones_are_told_the_shard(threads):
    sizes = (1, 40, 0, 17)
    out = [wp.zeros((size, 3), dtype=wp.int32, device=CPU) for size in sizes]
    run_phases([[PreparedLaunch(_who, [k, rows], CPU).over(len(rows), 10) for k, rows in enumerate(out)]], threads)
    for k, rows in enumerate(out):
        ranges = shard_ranges(len(rows), 10, threads) if len(rows) else []
        expected = [(first, shard, k) for shard, (first, count) in enumerate(ranges) for _ in range(count)]
        assert rows.numpy().tolist() == [list(row) for row in expected]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("number", [0, 1, 9, 10, 11, 239, 240, 241, 1000])
def test_a_phase_may_say_how_many_indices_a_later_one_has(threads, number):
    count = wp.full(1, 77, dtype=wp.int64, device=CPU)
    out = wp.full((1000, 3), -1, dtype=wp.int32, device=CPU)
    decide, who = PreparedLaunch(_decide, [number, count], CPU), PreparedLaunch(_who, [5, out], CPU)
    run_phases([[decide.over(1, 1)], [who.over(count, 10)]], threads)
    shards = SHARDS_PER_THREAD * threads if threads > 1 else 1
    size = max(10, -(-number // shards))
    expected = [[i // size * size, i // size, 5] if i < number else [-1, -1, -1] for i in range(1000)]
    assert out.numpy().tolist() == expected


@pytest.fixture(params=["compiled", "of the interpreter"])
def helpers(request, monkeypatch):
    """Helpers that sleep on semaphores, and those there are where there are no such semaphores."""
    if request.param != "compiled":
        monkeypatch.setattr(driving._pool, "with_helpers", lambda count: 0)


@pytest.mark.parametrize("threads", [1, 2, 6])
def test_no_two_threads_have_the_same_number_and_all_are_below_the_number_of_threads(helpers, threads, effort):
    for _ in range(effort(20)):
        counts = wp.zeros(8 * threads, dtype=wp.int64, device=CPU)
        step = PreparedLaunch(_count_by_thread, [counts], CPU)
        run_phases([[step.over(400, 1), step.over(30, 1)], [step.over(70, 1)]], threads)
        assert counts.numpy().sum() == 50 * 500  # one that is written by two threads loses some


@pytest.mark.parametrize("threads", [1, 2, 6])
def test_phases_of_one_shard_and_of_none_come_in_turn_with_others(helpers, rng, threads, effort):
    start = rng.integers(0, 1000, 600)
    x = [wp.empty(600, dtype=wp.int64, device=CPU) for _ in range(2)]
    there, back = (PreparedLaunch(_neighbours, [x[k], x[1 - k]], CPU) for k in range(2))
    number, rows = wp.zeros(1, dtype=wp.int64, device=CPU), wp.zeros((600, 3), dtype=wp.int32, device=CPU)
    all_of_it, nothing = (PreparedLaunch(_decide, [n, number], CPU) for n in (600, 0))
    who = PreparedLaunch(_who, [9, rows], CPU)
    phases = [
        *([nothing.over(1, 1)], [who.over(number, 1)]),  # of one, and of none at the beginning
        *(
            [there.over(600, 7)],
            [back.over(600, 600)],
            [there.over(600, 600)],
            [all_of_it.over(1, 1)],
            [back.over(number, 7)],
        ),
        *(
            [nothing.over(1, 1)],
            [who.over(number, 1), who.over(number, 7)],
            [there.over(600, 7)],
            [who.over(number, 1)],
        ),
    ]
    program = prepare_phases(phases, threads)
    for _ in range(effort(30)):
        x[0].assign(start)
        program.run()
        assert np.array_equal(x[1].numpy(), _in_numpy(start, 5))
    assert not rows.numpy().any()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_phases_that_are_prepared_run_again_and_again(rng, threads, effort):
    x = [wp.empty(200, dtype=wp.int64, device=CPU) for _ in range(2)]
    there, back = (PreparedLaunch(_neighbours, [x[k], x[1 - k]], CPU) for k in range(2))
    program = prepare_phases([[there.over(200, 10)], [back.over(200, 10)]], threads)
    for _ in range(effort(100)):
        start = rng.integers(0, 1000, 200)
        x[0].assign(start)
        program.run()
        assert np.array_equal(x[0].numpy(), _in_numpy(start, 2))


def test_prepared_phases_keep_their_arrays(rng):
    start = rng.integers(0, 9, 50)
    after = wp.empty(50, dtype=wp.int64, device=CPU)
    step = PreparedLaunch(_neighbours, [wp.array(start, dtype=wp.int64, device=CPU), after], CPU)
    program = prepare_phases([[step.over(50, 5)]], 2)
    del step
    for _ in range(20):  # what was freed would be used again
        wp.array(rng.integers(10, 99, 50), dtype=wp.int64, device=CPU)
    program.run()
    assert np.array_equal(after.numpy(), _in_numpy(start, 1))


def test_a_launch_of_the_whole_keeps_its_arrays(rng):
    before = wp.array(rng.integers(0, 9, 50), dtype=wp.int64, device=CPU)
    after = wp.empty(50, dtype=wp.int64, device=CPU)
    whole = PreparedLaunch(_neighbours, [before, after], CPU).block.prepared(50)
    kept, start = weakref.ref(before), before.numpy().copy()
    del before
    assert kept() is not None
    whole()
    assert np.array_equal(after.numpy(), _in_numpy(start, 1))
    del whole
    assert kept() is None


def test_helpers_sleep_when_nothing_happens(rng):
    _in_phases(rng.integers(0, 1000, 5000), 9, 100, 2)
    time.sleep(0.05)
    used = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - used < 0.1


def test_a_process_may_end_while_helpers_look_out_for_work():
    code = """
        import warp as wp
        from tangere.runtime.append_buffer import _append_indices
        from tangere.runtime import collect

        codes = wp.zeros(1000, dtype=wp.uint8, device="cpu")
        collect(_append_indices, 1000, [codes, wp.uint8(0)], wp.int32, device=codes.device, grain=10, threads=2)
    """
    for _ in range(3):
        subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
def test_interrupts_at_any_moment_leave_prepared_phases_usable(rng, monkeypatch):
    # One that comes while an object is taken down cannot be raised: Python hands it to this hook and goes on.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    x = [wp.empty(3000, dtype=wp.int64, device=CPU) for _ in range(2)]
    there, back = (PreparedLaunch(_neighbours, [x[k], x[1 - k]], CPU) for k in range(2))
    program = prepare_phases([[there.over(3000, 50)], [back.over(3000, 50)]], 3)

    def interrupt(*_) -> None:
        if running:
            raise KeyboardInterrupt

    before, running, interrupted = signal.signal(signal.SIGALRM, interrupt), False, 0
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for _ in range(150):
            try:
                running = True
                for _ in range(1000):
                    program.run()
                    run_phases([[there.over(3000, 50)]], 3)
            except KeyboardInterrupt:
                running, interrupted = False, interrupted + 1
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted
    start = rng.integers(0, 1000, 3000)
    x[0].assign(start)
    program.run()
    assert np.array_equal(x[0].numpy(), _in_numpy(start, 2))


def test_phases_without_work_are_passed_over(rng):
    run_phases([])
    run_phases([[], []], threads=3)
    start = rng.integers(0, 9, 50)
    x = [wp.array(start, dtype=wp.int64, device=CPU), wp.empty(50, dtype=wp.int64, device=CPU)]
    step = PreparedLaunch(_neighbours, x, CPU)
    run_phases([[], [step.over(0, 1)], [step.over(50, 5)], []], threads=3)
    assert np.array_equal(x[1].numpy(), _in_numpy(start, 1))


def test_many_callers_run_phases_at_once(rng, effort):
    starts = [rng.integers(0, 1000, 300 + k) for k in range(5)]
    wrong: list[int] = []

    def ask(k: int) -> None:
        for _ in range(effort(30)):
            if not np.array_equal(_in_phases(starts[k], 6, 20, 2 + k), _in_numpy(starts[k], 6)):
                wrong.append(k)

    callers = [threading.Thread(target=ask, args=(k,), daemon=True) for k in range(len(starts))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    assert not wrong


def test_packed_arguments_give_what_warps_own_launch_gives(rng):
    for turn in range(4):  # the first launch learns where arguments lie, the others use it
        affine = Affine()
        affine.factor, affine.offset = wp.float64(1.5 + turn), wp.float64(-turn)
        rows = wp.array(rng.normal(size=(33, 2)), dtype=wp.float64, device=CPU)
        place = wp.vec3d(*rng.normal(size=3))
        small = [3, wp.uint8(200), np.uint8(7), 255][turn]
        large = [2**40, wp.int64(-5), 0, -(2**50)][turn]
        single = [1, 0.1, np.float32(0.3), wp.float32(2.7)][turn]
        inputs = [small, large, bool(turn % 2), place, affine, rows, single]
        ours, theirs = (wp.empty(33, dtype=wp.float64, device=CPU) for _ in range(2))
        launch(_mixed, 33, inputs, [ours], device=CPU)
        wp.launch(_mixed, 33, [0, *inputs, theirs], device=CPU)
        assert np.array_equal(ours.numpy(), theirs.numpy())


def test_wrong_arguments_raise_also_when_the_kernel_is_known():
    good = [wp.zeros(9, dtype=wp.int64, device=CPU) for _ in range(2)]
    launch(_neighbours, 9, good[:1], good[1:], device=CPU)
    for wrong in (wp.zeros(9, dtype=wp.int32, device=CPU), wp.zeros((3, 3), dtype=wp.int64, device=CPU), 5, "nine"):
        with pytest.raises(Exception, match=r"(?i)array|type|argument"):
            launch(_neighbours, 9, [wrong], good[1:], device=CPU)
    with pytest.raises(Exception, match="argument"):
        launch(_neighbours, 9, [*good, *good], device=CPU)


def test_a_process_that_was_forked_makes_threads_of_its_own():
    code = """
        import os, threading
        import warp as wp
        from tangere.runtime import collect, run_shards
        from tangere.runtime.append_buffer import _append_indices

        codes = wp.zeros(10_000, dtype=wp.uint8, device="cpu")

        def at_once(threads):
            found = collect(
                _append_indices, 10_000, [codes, wp.uint8(0)], wp.int32, device=codes.device, grain=10, threads=threads
            )
            assert found.numpy().tolist() == list(range(10_000))
            meeting = threading.Barrier(threads, timeout=20)  # breaks unless so many run at the same time
            run_shards(lambda *_: meeting.wait() and None, [(k, 1) for k in range(threads)], threads)

        at_once(3)
        child = os.fork()
        at_once(3)
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True, timeout=60)
