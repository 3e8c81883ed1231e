"""Ctrl-C while a kernel of a cut writes: the cut is undone as a whole, and the next one is what it would have been."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tangere as tg
from oracles.cut_bodies import examine
from oracles.soft_bodies import overlaps
from tangere.runtime import PreparedLaunch
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.cut_engine import interrupts_wait


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Also where this process was started in the background, which ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class CtrlC:
    """Sends a signal to this process after so many launches, as if it came while the last of them ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.after = -1
        plain = PreparedLaunch.run

        def run(launch: PreparedLaunch) -> None:
            plain(launch)
            self.after -= 1
            if self.after == 0:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(PreparedLaunch, "run", run)


def topology_of(simulation: Simulation) -> list[bytes]:
    """All that the next cut of the first body goes on from."""
    state = simulation._pipeline.cuts.bodies[0].complex.state()
    return [np.ascontiguousarray(array).tobytes() for array in (*state.rows.values(), *state.lists.values())]


def known_of(simulation: Simulation) -> list[bytes]:
    """That, and all that a user sees."""
    found = [simulation.positions, simulation.velocities]
    for mesh in simulation.meshes():
        found += [mesh.vertices, mesh.faces]
    return topology_of(simulation) + [np.ascontiguousarray(array).tobytes() for array in found]


@pytest.mark.parametrize("kind", ["solid", "sheet"])
def test_ctrl_c_while_a_kernel_of_a_cut_runs_undoes_the_cut(kind, monkeypatch) -> None:
    shape = solid_block((6, 4, 3), size=(2.0, 1.2, 1.0)) if kind == "solid" else tg.generate.sheet(128, size=(2.0, 1.2))
    simulation, twin = (Simulation([Body(shape, cuttable=True)], device="cpu", threads=1) for _ in range(2))
    before = signal.getsignal(signal.SIGINT)
    ctrl_c, stopped = CtrlC(monkeypatch), 0
    lines = [np.array([[0.03 + 0.1 * y, y, -2.0], [0.06 + 0.1 * y, y, 2.0]]) for y in np.linspace(-0.8, 0.8, 7)]
    for start, end in itertools.pairwise(lines):
        was, done = known_of(simulation), False
        for launches in itertools.count(1):
            ctrl_c.after = launches
            try:
                simulation.cut(0, start, end)
                done = True
            except KeyboardInterrupt:
                stopped += 1
            ctrl_c.after = -1
            if done:
                break
            assert known_of(simulation) == was
        twin.cut(0, start, end)
        assert topology_of(simulation) == topology_of(twin)
    for one in (simulation, twin):
        one.end_stroke(0)
    assert len(simulation) == len(twin) == 2
    assert stopped > 20
    assert signal.getsignal(signal.SIGINT) is before
    simulation.run(steps=2)
    body = simulation._pipeline.cuts.bodies[0].complex
    assert not examine(body.rest, body.corners, body.neighbours).faults
    assert not overlaps(simulation)


def test_a_signal_is_heard_where_it_is_asked_for_and_at_the_end() -> None:
    waited = []

    def asked() -> None:
        with interrupts_wait() as hear:
            signal.raise_signal(signal.SIGINT)
            waited.append("till asked")
            hear()
            waited.append("longer")

    def nested() -> None:
        with interrupts_wait(), interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            waited.append("till the end")

    for use in (asked, nested):
        with pytest.raises(KeyboardInterrupt):
            use()
    assert waited == ["till asked", "till the end"]


def test_other_threads_and_programs_that_ignore_ctrl_c_are_left_alone() -> None:
    heard = []

    def look() -> None:
        with interrupts_wait() as hear:
            hear()
            heard.append(True)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        look()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [True, True]
