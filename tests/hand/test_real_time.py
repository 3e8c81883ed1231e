"""A hand in real time: two processes, or two threads, come to what the virtual clock comes to. No time is asserted."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from tangere.cells.generate import hex_grid
from tangere.hand import (
    Hand,
    LedWay,
    SeparateLoops,
    SimulatedDevice,
    ThreadedLoops,
    UdpDevice,
    UdpDriver,
    led_tool,
)
from tangere.hand.coupling import ContactRowSet
from tangere.hand.real_time.shared_state import packed_rows, unpacked_rows
from tangere.needle import Bevel, KinematicSimulation, Needle
from tangere.runtime.pacer import LoopPacer, ProcessLostError
from tests.hand.real_time_devices import Failing, above, broken, cube_on_table, in_and_out_device, press, pressing
from tests.hand.test_needle import held_needle


def held(device=None, **options) -> Hand:
    return Hand(cube_on_table(), "cube", device or pressing(), **options)


def until(loops: SeparateLoops, what, seconds: float = 60.0) -> None:
    """Look until something has come to pass."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        loops.run(0.05)


def test_two_processes_come_to_the_force_and_pose_of_the_virtual_clock_and_what_can_wait_gets_what_is_left():
    reference = held()
    reference.run(2.0)
    hand, given = held(), []
    with SeparateLoops(hand, pressing, mode="hard") as loops:
        loops.pacer.postponable("picture", given.append)
        until(loops, lambda: hand.time > 2.0)
        loops.run(0.1)
        slow = loops.pacer.report()
    np.testing.assert_allclose(hand.pose, reference.pose, atol=1e-5)
    np.testing.assert_allclose(hand.force, reference.force, atol=0.05)
    np.testing.assert_allclose(hand.target, reference.target, atol=1e-5)
    assert hand.force[2] > 5.0
    assert hand.holding
    report, told = hand.report, loops.fast_report
    assert report.fast_ticks <= told.ticks
    assert report.walks_stopped == 0
    assert report.passive
    assert report.late == told.overruns
    assert report.lateness == told.late[3]
    assert report.slow_ticks > 10
    assert len(hand.contacts) > 0
    assert told.ticks + told.skipped >= 2_000
    assert max(given, default=0.0) < 1.0 / hand.slow_rate
    assert slow.mode == told.mode == "hard"
    assert slow.runs["picture"] + slow.postponed["picture"] == slow.ticks


def test_the_clutch_is_pressed_from_here_and_a_process_that_is_killed_is_noticed_by_the_next_look():
    hand = held()
    with SeparateLoops(hand, pressing, priority=None) as loops:
        hand.clutch = True
        until(loops, lambda: hand.time > 1.0 and not hand.holding)
        assert not hand.force.any()
        there = hand.pose[2, 3]
        hand.clutch = False
        until(loops, lambda: hand.holding)
        assert abs(hand.pose[2, 3] - there) < 1e-3  # taken where it is
        os.kill(loops.pid, signal.SIGKILL)
        with pytest.raises(ProcessLostError, match="exit code -9"):
            until(loops, lambda: False)


def test_a_device_that_is_lost_over_there_is_told_here_and_the_force_goes():
    hand = held()
    with SeparateLoops(hand, partial(Failing, 900), priority=None) as loops:
        until(loops, lambda: hand.report.lost is not None)
        until(loops, lambda: not hand.force.any())
        assert "did not answer" in hand.report.lost


def test_a_device_that_cannot_be_opened_says_why():
    with pytest.raises(ProcessLostError, match=r"^the loop ended: no such device is plugged in$"):
        SeparateLoops(held(), broken)


def test_thirty_pictures_and_a_thousand_ticks_a_second_are_measured_together_and_adaptation_has_a_budget():
    """The cells of a needle are adapted in what is left of each picture; what does not fit is counted."""
    needle = KinematicSimulation(
        hex_grid(4, 4, 4, size=0.25, device="cpu"),
        Needle(length=4.0, radius=1e-3, tip=Bevel(curvature=2.0)),
        entry=[0.3, 0.5, 0.1],
        direction=[0.0, 0.0, 1.0],
        lock_length=0.02,
        radius=0.06,
        level=3,
        mode="hard",
    )
    hand, pacer, given = held(), LoopPacer(30.0, mode="hard"), []
    before = needle.report.postponed

    def adapt(seconds: float) -> int:
        left = needle.report.postponed
        given.append(seconds)
        needle.refine(deadline=seconds)
        assert needle.tip.level == 3  # the cell of the tip comes first
        return needle.report.postponed - left

    work = pacer.postponable("adaptation", adapt)
    with SeparateLoops(hand, pressing, mode="hard") as loops:
        late = 0
        for due in pacer.ticks(2.0):
            needle.advance(0.004)
            loops.look()
            late += pacer.left < 0.0
            assert due * 30.0 == pytest.approx(round(due * 30.0))
        slow, fast = pacer.report(), loops.stop()
    print(*slow.rows(), *fast.rows(), sep="\n")
    assert slow.ticks + slow.skipped == 60
    assert late <= slow.overruns <= slow.ticks
    assert fast.ticks + fast.skipped >= 1_900
    assert fast.overruns <= fast.ticks
    assert work.runs == len(given)
    assert all(0.0 < seconds < 1.0 / 30.0 for seconds in given)
    refused = slow.ticks - work.runs
    assert slow.postponed["adaptation"] == refused + needle.report.postponed - before
    assert needle.report.split > 0


def test_a_look_before_the_first_tick_finds_the_part_where_it_is():
    hand = held()
    there = hand.pose
    hand.slow_tick(0.0)
    np.testing.assert_allclose(hand.pose, there, atol=1e-15)


def test_two_threads_come_to_the_force_of_the_virtual_clock():
    reference = held()
    reference.run(1.5)
    hand, loops = held(), ThreadedLoops(priority=None)
    hand.run(1.5, pacer=loops)
    hand.run(0.2)
    assert hand.pose[2, 3] == pytest.approx(reference.pose[2, 3], abs=1e-4)
    assert hand.report.late == loops.late
    assert loops.fast_report.ticks + loops.fast_report.skipped == 1_500
    assert loops.slow.report().ticks > 3


def test_what_a_thread_raises_is_raised_here():
    def fail(time: float) -> None:
        raise ArithmeticError("enough")

    with pytest.raises(ArithmeticError, match="enough"):
        ThreadedLoops(priority=None).run(fail, lambda time: None, 0.2, fast_rate=100.0, slow_rate=20.0)


def test_a_tool_among_soft_bodies_is_held_by_a_process_of_its_own_and_what_can_wait_is_counted():
    made = led_tool("press", device="cpu")
    make = partial(SimulatedDevice, LedWay(made.way.poses[:2], 0.3))
    reference = led_tool("press", device="cpu").held_by(make())
    reference.run(1.5)
    hand, given = made.held_by(make()), []
    with SeparateLoops(hand, make, mode="hard", priority=None) as loops:
        loops.pacer.postponable("recording", given.append)
        until(loops, lambda: hand.time > 1.5)
        slow = loops.pacer.report()
    assert hand.force[2] == pytest.approx(reference.force[2], abs=0.1)
    assert hand.force[2] > 1.0
    assert hand.pose[2, 3] == pytest.approx(reference.pose[2, 3], abs=1e-3)
    assert slow.runs["recording"] + slow.postponed["recording"] == slow.ticks
    assert len(given) >= slow.runs["recording"]  # of the last run, of several
    told = loops.fast_report
    assert hand.report.late == told.overruns
    assert told.ticks + told.skipped >= 1_500


def test_a_needle_is_held_by_a_process_of_its_own():
    """Its fast loop counts by the axes of the needle: the device is turned over there as it is here."""
    hand, reference = held_needle(None, device=in_and_out_device()), held_needle(None, device=in_and_out_device())
    with SeparateLoops(hand, in_and_out_device, priority=None) as loops:
        until(loops, lambda: hand.time > 0.5)
    reference.run(hand.time)
    assert hand.simulation.inside
    assert abs(hand.force[2] - reference.force[2]) < 0.5
    assert np.abs(hand.force[:2]).max() < 0.05


def test_a_slow_loop_that_raises_ends_the_fast_one_at_once():
    loops, ticks = ThreadedLoops(priority=None), []

    def fail(time: float) -> None:
        raise ArithmeticError("enough")

    with pytest.raises(ArithmeticError, match="enough"):
        loops.run(ticks.append, fail, 600.0, fast_rate=100.0, slow_rate=20.0)
    assert len(ticks) < 60_000


def test_rows_go_through_shared_memory_as_they_are(rng):
    for count in (0, 1, 300):
        rows = ContactRowSet(
            rng.normal(size=3), np.eye(3), rng.normal(size=(count, 6)), rng.normal(size=count), 0.25, count == 1
        )
        head, table = packed_rows(rows.packed())
        back = unpacked_rows(head[0], table)
        for name in ("grip", "rotation", "rows", "room"):
            np.testing.assert_array_equal(getattr(back, name), getattr(rows, name))
        assert (back.reach, back.stopped) == (rows.reach, rows.stopped)


def test_a_driver_in_a_third_process_feels_the_table_through_a_udp_socket():
    """A 6-in, 3-out driver: its thread here stands for the other process, as only bytes go through the socket."""
    hand = held()
    listening, taken, ended, felt = UdpDevice(0), threading.Event(), threading.Event(), []
    port = listening.port
    listening.close()

    def drive() -> None:
        driver = UdpDriver(port, forced_axes=(True, True, True, False, False, False))
        begun = np.inf  # it goes down once somebody answers
        while not ended.is_set():
            driver.send(press(max(time.monotonic() - begun, 0.0)))
            back = driver.force(0.002)
            if back is not None:
                felt.append(np.r_[back.force, back.torque])
                if taken.is_set():
                    begun = min(begun, time.monotonic())
        driver.close()

    thread = threading.Thread(target=drive, daemon=True)
    thread.start()
    try:
        with SeparateLoops(hand, partial(UdpDevice, port, timeout=5.0), priority=None) as loops:
            until(loops, lambda: hand.report.lost is not None or hand.holding)
            if hand.report.lost:  # it was asked before the driver had spoken
                loops.resume()
            until(loops, lambda: hand.holding)
            taken.set()
            until(loops, lambda: hand.force[2] > 5.0 and hand.clearance < 1.5 * hand.separation)
    finally:
        ended.set()
        thread.join()
    assert max(force[2] for force in felt) > 5.0
    assert not np.array(felt)[:, 3:].any()
    assert felt[-1][2] == 0.0  # it was told to push no more
    assert hand.pose[2, 3] == pytest.approx(above()[2, 3] - 0.01, abs=2e-3)
