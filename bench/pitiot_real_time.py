"""A thousand ticks a second beside sixty pictures: how well a hand keeps its rates, in two processes and on threads.

Experiment on Pitiot 2015, section 1.2, which asks for 30 steps a second to be seen and about 1,000 to be felt, in hard
and in soft real time, and on Redon 2002, section 6.6. A motor is pressed and slid in the door of a window lifter by a
simulated device. The fast loop is in a process of its own, with SCHED_FIFO and without; here are the slow loop, at 200
Hz, and pictures at 60 Hz, which are sent to a page that nobody has open. Threads of one interpreter are beside them.
Then a ball and a blade in soft blocks and a needle in tissue, whose steps are the slow loop, with recording as work
that can wait. Last, a needle's cells are adapted between pictures of 30 Hz, in soft and in hard mode, beside 1 kHz.
"""

from __future__ import annotations

import json
import os
import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.harness import Report, count
from bench.pitiot_needle import _needle
from bench.redon_hand_parts import touching
from tangere import needle as needle_room
from tangere.dynamics import Body, World
from tangere.hand import (
    Hand,
    LedWay,
    NeedleHand,
    PointerDevice,
    SeparateLoops,
    Sight,
    SimulatedDevice,
    ThreadedLoops,
    led_part,
    led_tool,
)
from tangere.runtime.pacer import LoopPacer, Mode, PacerReport
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body as SoftBody

FEATURES = ["F-P-2"]

#: Seconds of a full run, and of a small one.
_LONG, _SHORT = 600.0, 5.0
_HEADER = [
    "",
    "scheduling",
    "ticks",
    "overruns",
    "share",
    "skipped",
    "late p50",
    "p99",
    "p99.9",
    "work p50",
    "p99 [us]",
]


def run(report: Report, quick: bool = False) -> None:
    seconds = _SHORT if quick else _LONG
    _pictures(report, seconds, quick)
    _mouse(report, _SHORT if quick else 30.0)
    _soft(report, 1.5 if quick else 2.4)
    _adaptation(report, _SHORT if quick else 60.0)


def _pressed_lifter(seconds: float) -> tuple[World, LedWay]:
    """The motor at what it touches; pressed against it and slid to and fro by 20 mm, for as long as that."""
    part, fixed, start, normal, security = touching(generate.window_lifter())
    bodies = [Body(fixed, fixed=True, name="door"), Body(part, start, name="part")]
    aside = np.cross(normal, [0.3, 0.2, 0.9])
    aside /= np.linalg.norm(aside)
    times = np.arange(0.0, seconds + 10.0, 0.05)
    poses = np.tile(start, (len(times), 1, 1))
    poses[:, :3, 3] += -0.01 * np.minimum(times, 1.0)[:, None] * normal
    poses[:, :3, 3] += 0.02 * np.sin(np.pi * times)[:, None] * aside
    world = World(bodies, separation=security, device="cpu")
    # nobody looks before the page is there: the hand waits for it
    return world, LedWay(poses, float(times[-1]), wait=2.0)


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _pictures(report: Report, seconds: float, quick: bool) -> None:
    report.section(f"1 kHz beside a 60 Hz picture, {seconds:g} s with FIFO")
    rows = []
    for name, priority, length in (
        ("two processes, FIFO", 10, seconds),
        ("two processes", None, min(seconds, 120.0)),
    ):
        (world, way), before = _pressed_lifter(length), _load()
        make = partial(SimulatedDevice, way)
        hand = Hand(world, "part", make(), reach=6.0 * world.separation)
        with SeparateLoops(hand, make, priority=priority) as loops, _page(hand, loops) as picture:
            loops.run(length, after_look=picture)
            slow = loops.pacer.report()
        rows.append(_row(f"{name}: fast loop", loops.fast_report))
        rows.append(_row(f"{name}: slow loop", slow))
        told = hand.report
        report.note(
            f"{name}: {count(told.slow_ticks)} looks, {count(told.walks_asked)} asked for first contact, "
            f"{told.walks_stopped} walks stopped, {picture.sent} pictures, work given to the hand "
            f"{1e3 * told.given:.3g} mJ, {1e3 * told.most_given:.2g} at most; load of the machine: {before} before,"
            f" {_load()} after."
        )
    for name, priority in (("two threads, FIFO", 10), ("two threads", None)):
        world, way = _pressed_lifter(60.0)
        hand = Hand(world, "part", SimulatedDevice(way), reach=6.0 * world.separation)
        threads = ThreadedLoops(priority=priority)
        hand.run(_SHORT if quick else 60.0, pacer=threads)
        rows.append(_row(f"{name}: fast loop", threads.fast_report))
    report.table(_HEADER, rows)
    report.note("Asked for: with FIFO at most 0.3 % overruns and 150 us of lateness at p99.")


def _soft(report: Report, seconds: float) -> None:
    """Tools, a blade and a needle: a step of the bodies is the slow tick, recording waits for what it leaves."""
    report.section(f"A ball, a blade and a needle at 1 kHz, hard mode, {seconds:g} s each at most")
    rows, jumps = [], []
    for name in ("press", "cut", "needle"):
        make, hand = _held(name)
        with SeparateLoops(hand, make, mode="hard") as loops:
            loops.pacer.postponable("recording", lambda given, hand=hand: _kept(hand))
            loops.run(seconds)
            slow = loops.pacer.report()
        rows += [_row(f"{name}: fast loop", loops.fast_report), _row(f"{name}: steps of the bodies", slow)]
        jumps.append(
            f"{name}: recording had {slow.runs['recording']} turns, {slow.postponed['recording']} were postponed; "
            f"{hand.report.walks_stopped} of {hand.report.slow_ticks} steps held the tool back."
        )
    report.table(_HEADER, rows)
    for line in jumps:
        report.note(line)
    rows = []
    for name in ("press", "cut", "needle"):
        make, hand = _held(name)
        felt: list[np.ndarray] = []
        hand.run(seconds, after_tick=lambda _, hand=hand, felt=felt: felt.append(hand.force))
        change = np.linalg.norm(np.diff(felt, axis=0), axis=1).max()
        most = np.linalg.norm(felt, axis=1).max()
        told = hand.report
        rows.append(
            [name, f"{most:.2f} N", f"{change:.3f} N", f"{1e3 * told.given:+.3g} mJ", f"{told.most_given:.2g} J"]
        )
    report.table(["lockstep", "largest force", "largest change in 1 ms", "given to the hand", "at most"], rows)
    report.note("Asked for: at most 0.3 N in 1 ms.")


def _held(name: str) -> tuple[Any, Any]:
    """What makes a device, and a hand."""
    if name == "needle":
        block = solid_block((4, 4, 4), size=(0.08, 0.08, 0.06), mirrored=True)
        body = SoftBody(block, youngs_modulus=1e4, damping=20.0, fixed=block.vertices[:, 2] < -0.029)
        simulation = needle_room.Simulation(
            body, needle_room.Needle(rigid=True), needle_room.Tissue(), dt=0.01, device="cpu",
            entry=[0.001, 0.001, 0.03], direction=[0, 0, -1],
        )  # fmt: skip
        poses = np.tile(np.eye(4), (3, 1, 1))
        poses[:, 2, 3] = 0.0, -0.03, -0.015
        make = partial(SimulatedDevice, LedWay(poses, 2.0))
        return make, NeedleHand(simulation, make())
    made = led_tool(name, device="cpu", threads=1)
    make = partial(SimulatedDevice, made.way)
    return make, made.held_by(make())


def _kept(hand: Any) -> int:
    """A frame for a recording: what the bodies are now."""
    simulation = getattr(hand.simulation, "soft", hand.simulation)
    _ = simulation.meshes()
    return 0


def _row(name: str, told: PacerReport | None) -> list[str]:
    assert told is not None
    late, work = ([f"{1e6 * value:.0f}" for value in values[:3]] for values in (told.late, told.work))
    counts = [count(told.ticks), count(told.overruns), f"{told.overrun_share:.2%}", count(told.skipped)]
    return [name, told.scheduling, *counts, *late, *work[:2]]


class _page:
    """A page that shows a hand sixty times a second; without viser, poses are only read."""

    def __init__(self, hand: Hand, loops: SeparateLoops) -> None:
        self._hand, self._next, self.sent = hand, 0.0, 0
        try:
            from tangere.view import HandViewer

            self._viewer: Any = HandViewer(hand, loops=loops)
        except ImportError:
            self._viewer = None

    def __call__(self, time: float) -> None:
        if time >= self._next:
            self._next += 1.0 / 60.0
            self.sent += 1
            if self._viewer is not None:
                self._viewer.show()

    def __enter__(self) -> _page:
        return self

    def __exit__(self, *_: object) -> None:
        if self._viewer is not None:
            self._viewer.close()


def _mouse(report: Report, seconds: float) -> None:
    """Events of a mouse, as the script of the page tells them, to when the picture that uses them is sent."""
    try:
        from tangere.view import HandViewer
    except ImportError:
        report.note("Mouse to picture: viser is not installed.")
        return
    report.section(f"mouse to picture, {seconds:g} s [ms]")
    rows = []
    for name in ("lifter", "pylon", "peg"):
        made = led_part(name, device="cpu")
        hand = made.held_by(PointerDevice(), slow_rate=100.0)
        hand.run(0.2)
        with HandViewer(hand) as viewer:
            handle, ended = hand.handle, threading.Event()
            sight = Sight(handle[:3, 3] + [0.0, 0.0, 1.0], np.eye(3), 0.4)
            hand.device.press(handle, handle[:3, 3], sight, 0.5, 0.5)

            def move(viewer: Any = viewer, ended: threading.Event = ended) -> None:
                k = 0
                while not ended.wait(0.0077):
                    place = [0.5 + 0.02 * np.sin(0.05 * k), 0.5, 0.0]
                    viewer.input.take(json.dumps({"pointer": place, "pressed": True, "stamp": k}))
                    k += 1

            thread = threading.Thread(target=move, daemon=True)
            thread.start()
            viewer.run(round(60.0 * seconds))
            ended.set()
            thread.join()
            told, latency = viewer.pacer.report(), viewer.input.server_latency
        p50, p99 = (1e3 * latency.quantile(share) for share in (0.5, 0.99))
        step = [1e3 * value for value in told.work[:2]]
        rows.append([name, f"{p50:.1f}", f"{p99:.1f}", f"{step[0]:.1f}", f"{step[1]:.1f}", f"{1e3 / told.rate:.1f}"])
    report.table(["scene", "event to picture sent, p50", "p99", "step and picture, p50", "p99", "a frame"], rows)
    report.note("From there to the screen is the browser's: the page tells what it measures.")


def _adaptation(report: Report, seconds: float) -> None:
    """Cells around the tip of a needle are made fine and coarse again: work that can wait."""
    report.section(f"adaptation of a needle's cells at 30 Hz beside 1 kHz, {seconds:g} s each")
    rows, notes = [], []
    for mode in ("soft", "hard"):
        fast, slow, told = _needle_run(mode, seconds)
        rows += [_row(f"{mode}: fast loop, 1 kHz", fast), _row(f"{mode}: needle and pictures, 30 Hz", slow)]
        notes.append(
            f"{mode}: adaptation had {count(slow.runs['adaptation'])} turns, {count(slow.overspent['adaptation'])} "
            f"took longer than they were given by the clock, {told.spent} by processor time, which no other program "
            f"takes from; {count(slow.postponed['adaptation'])} splits and merges were postponed; {told.leaves} cells "
            f"at the end; load of the machine: {_load()}."
        )
    report.table(_HEADER, rows)
    for line in notes:
        report.note(line)


def _needle_run(mode: Mode, seconds: float) -> tuple[PacerReport, PacerReport, Any]:
    made = led_part("peg", device="cpu")
    make = partial(SimulatedDevice, LedWay(made.way.poses, 2.0))
    hand = Hand(made.world, made.body, make(), **made.options)
    needle = _needle(4, 1, 0.02, entry=[0.1, 0.4, 0.4], mode=mode)
    needle.refine()
    pacer = LoopPacer(30.0, mode=mode)

    spent = 0

    def adapt(given: float) -> int:
        nonlocal spent
        before, began = needle.report.postponed, time.thread_time()
        needle.refine(deadline=given)
        spent += time.thread_time() - began > given
        return needle.report.postponed - before

    pacer.postponable("adaptation", adapt)
    with SeparateLoops(hand, make, mode=mode) as loops:
        for k, _ in enumerate(pacer.ticks(seconds)):
            needle.advance(0.0013 if (k // 500) % 2 == 0 and not needle.stopped else 1e-6)
            loops.look()
        slow = pacer.report()
    assert loops.fast_report is not None
    return loops.fast_report, slow, SimpleNamespace(leaves=needle.report.leaves, spent=spent)
