"""Loops of a fixed rate: on a clock that the test moves, and on the real one, of which no time is asserted."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tangere.runtime import InputError
from tangere.runtime.pacer import LatencyHistogram, LoopPacer, no_collection, real_time


class FakeClock:
    """A clock that goes on when somebody sleeps or works."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0.0
        self.slept.append(seconds)
        self.now += seconds


def virtual(rate: float, **options: object) -> tuple[LoopPacer, FakeClock]:
    clock = FakeClock()
    return LoopPacer(rate, clock=clock, sleep=clock.sleep, **options), clock


def test_ticks_stay_on_the_grid_of_the_first_however_long_the_work_takes():
    pacer, clock = virtual(100.0, spin=0.0)
    begun, works = [], [0.002, 0.009, 0.013, 0.001, 0.035, 0.0]
    for work, due in zip(works, pacer.ticks(), strict=False):
        begun.append((due, clock.now - 100.0))
        clock.now += work
    due, at = np.array(begun).T
    np.testing.assert_allclose(due, [0.0, 0.01, 0.02, 0.03, 0.04, 0.07], atol=1e-12)
    np.testing.assert_allclose(at, [0.0, 0.01, 0.02, 0.033, 0.04, 0.075], atol=1e-9)
    report = pacer.report()
    assert (report.ticks, report.overruns, report.skipped) == (6, 2, 2)
    assert report.late[3] == pytest.approx(0.005)
    assert report.work[3] == pytest.approx(0.035)


@given(st.lists(st.floats(0.0, 0.05), min_size=1, max_size=60), st.integers(1, 40))
def test_every_deadline_has_a_tick_or_is_counted_as_skipped(works, deadlines):
    pacer, clock = virtual(100.0)
    source, made, late = iter(works), [], 0
    for due in pacer.ticks(deadlines / 100.0):
        made.append(due)
        clock.now += next(source, 0.001)
        late += clock.now - 100.0 > due + 0.01
    report = pacer.report()
    assert report.ticks == len(made)
    assert report.ticks + report.skipped == deadlines
    assert report.overruns == late
    assert np.all(np.diff(made) > 0.0)


def test_in_hard_mode_work_that_can_wait_gets_what_is_left_and_is_counted_where_it_does_not_fit():
    pacer, clock = virtual(100.0, mode="hard", spin=0.0)
    given_to, refined = [], []

    def refine(seconds: float) -> int:
        given_to.append(seconds)
        clock.now += 0.003
        return 4  # pieces that it left

    def record(seconds: float) -> None:
        refined.append(clock.now)
        clock.now += 0.002

    pacer.postponable("refinement", refine, least=0.003)
    pacer.postponable("recording", record, least=0.002)
    for work, _ in zip([0.001, 0.006, 0.009, 0.001], pacer.ticks(), strict=False):
        clock.now += work
    report = pacer.report()
    # 1: both fit. 2: recording is first now, then 2 ms are left, too few for the other. 3: nothing fits. 4: not done.
    assert given_to == [pytest.approx(0.009)]
    assert report.runs == {"refinement": 1, "recording": 2}
    assert report.postponed == {"refinement": 4 + 1 + 1, "recording": 1}
    assert (report.overruns, report.skipped) == (0, 0)


def test_in_soft_mode_work_that_can_wait_is_done_and_overruns_are_counted():
    pacer, clock = virtual(100.0, spin=0.0)
    given_to = []

    def refine(seconds: float) -> None:
        given_to.append(seconds)
        clock.now += 0.012

    pacer.postponable("refinement", refine, least=0.005)
    assert len(list(pacer.ticks(0.05))) == 5
    report = pacer.report()
    assert given_to == [float("inf")] * 5
    assert (report.overruns, report.skipped, report.postponed) == (5, 0, {"refinement": 0})


def test_work_that_was_refused_is_the_first_the_next_time_so_that_none_starves():
    pacer, clock = virtual(100.0, mode="hard", spin=0.0)
    done = dict.fromkeys("abc", 0)

    def work(name: str):
        def spend(seconds: float) -> None:
            done[name] += 1
            clock.now += 0.007

        return spend

    for name in done:
        pacer.postponable(name, work(name), least=0.007)
    list(pacer.ticks(0.30))
    assert min(done.values()) >= 9
    assert pacer.report().overruns == 0


def test_work_that_takes_longer_than_it_was_given_is_told():
    pacer, clock = virtual(100.0, mode="hard", spin=0.0)

    def greedy(seconds: float) -> None:
        clock.now += seconds + 0.001

    pacer.postponable("greedy", greedy)
    list(pacer.ticks(0.1))
    report = pacer.report()
    assert report.overspent["greedy"] == report.runs["greedy"] == report.overruns
    assert "too long" in dict(report.rows())["greedy"]


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=300), st.sampled_from([0.0, 0.5, 0.99, 1.0]))
def test_a_quantile_is_never_below_the_true_one_and_at_most_a_sixteenth_above(durations, share):
    told = LatencyHistogram()
    for one in durations:
        told.add(one)
    true = float(np.quantile(durations, share, method="inverted_cdf"))
    assert min(true, max(durations)) - 2e-9 <= told.quantile(share) <= true * (1.0 + 1.0 / 16.0) + 2e-9
    assert told.largest == max(durations)


def test_a_real_loop_makes_its_ticks_and_can_be_stopped():
    pacer = LoopPacer(500.0)
    times = list(pacer.ticks(0.1))
    assert pacer.report().ticks == len(times)
    assert pacer.report().ticks + pacer.report().skipped == 50
    for count, _ in enumerate(pacer.ticks(), 1):
        if count == 5:
            pacer.stop()
    assert pacer.report().ticks == 5


def test_a_priority_is_tried_told_and_given_back():
    before = os.sched_getscheduler(0)
    with real_time(5) as told:
        assert told == "fifo 5" or told.startswith("refused: ")
        assert (os.sched_getscheduler(0) == os.SCHED_FIFO) == (told == "fifo 5")
    assert os.sched_getscheduler(0) == before
    with real_time(None) as told:
        assert told == "not asked for"


def test_a_priority_that_is_refused_is_told_and_the_loop_goes_on(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with real_time(5) as told:
        assert told == "refused: Operation not permitted"


def test_the_collector_rests_meanwhile():
    assert gc.isenabled()
    with no_collection():
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [({"rate": 0.0}, "rate"), ({"rate": 10.0, "mode": "firm"}, "mode"), ({"rate": 1, "spin": -1}, "spin")],
)
def test_bad_rates_and_modes_are_refused_by_name(options, named):
    with pytest.raises(InputError, match=named):
        LoopPacer(**options)
