"""A hand in real time: its fast loop in a process of its own, its slow loop and pictures here.

Question: how does the hand feel a thousand times a second what this process looks for two hundred times a second?
Method:   a `LoopProcess` opens the device and ticks the fast loop, with real-time scheduling where it is allowed. Here
          a `LoopPacer` ticks the slow loop: it takes where the fast loop has the part, certifies and looks, and tells
          the rows of the contacts. In hard mode what can wait, such as pictures and recording, gets the time that is
          left. Forces and energy are told by the fast loop, and the hand here shows them as if it had ticked itself.
Sound:    a fast loop that ends is noticed at the next slow tick (`ProcessLostError`); its device is let go with it.
Known as: multi-rate haptic rendering (Adachi et al. 1995; Redon 2002, section 6.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.hand.devices import Device
from tangere.hand.hand import Hand
from tangere.hand.real_time.fast_process import FastLoopTicks
from tangere.hand.real_time.shared_state import ORDER, ROWS_HEAD, ROWS_ROW, STATE, packed_rows
from tangere.runtime import check_kind
from tangere.runtime.pacer import LoopPacer, LoopProcess, Mode, PacerReport, SharedRecord, SharedRows


class SeparateLoops:
    """Runs a hand whose fast loop is in a process of its own. Use it as a context manager.

    Args:
        hand: what is run; its own device is not read.
        make_device: gives the device, in the other process: a function of a module, or `functools.partial(UdpDevice,
            5005)`.
        mode: of both loops: "hard" keeps work that can wait (`pacer.postponable`) within what is left of a slow tick.
        priority: of SCHED_FIFO for the fast loop; None asks for nothing.

    Example:
        >>> from functools import partial
        >>> import numpy as np, tangere as tg
        >>> from tangere.dynamics import Body, World
        >>> box, above = tg.generate.box((0.1, 0.1, 0.1)), np.eye(4)
        >>> above[2, 3] = 0.11
        >>> world = World([Body(box, name="table", fixed=True), Body(box, above, name="cube")], device="cpu")
        >>> still = partial(tg.hand.SimulatedDevice, above)
        >>> hand = tg.hand.Hand(world, "cube", still())
        >>> with tg.hand.SeparateLoops(hand, still) as loops:
        ...     loops.run(0.2)
        >>> hand.report.fast_ticks > 20
        True
    """

    def __init__(
        self,
        hand: Hand,
        make_device: Callable[[], Device],
        *,
        mode: Mode = "soft",
        priority: int | None = 10,
    ) -> None:
        check_kind(hand, Hand, "hand")
        self.hand = hand
        self.pacer = LoopPacer(hand.slow_rate, mode=mode)  #: of the slow loop
        self.fast_report: PacerReport | None = None  #: of the fast loop, once it has ended
        fast = hand.fast_loop
        self._order, self._rows = SharedRecord(ORDER), SharedRows(ROWS_HEAD, ROWS_ROW)
        self._state = SharedRecord(STATE)
        self._resumes = 0
        names = self._order.name, self._rows.name, self._state.name
        self._rows.write(*packed_rows(hand.rows_message))
        try:
            self._process = LoopProcess(
                FastLoopTicks,
                (hand.device_maker(make_device), fast.told_settings(), fast.state.tobytes(), names, hand.time),
                rate=hand.fast_rate,
                mode=mode,
                priority=priority,
            )
        except BaseException:
            self._close_memory()
            raise

    @property
    def late(self) -> int:
        """Overruns of the fast loop so far."""
        return self._process.overruns if self.fast_report is None else self.fast_report.overruns

    @property
    def lateness(self) -> float:
        """The largest of the fast loop, once it has ended [s]."""
        return 0.0 if self.fast_report is None else self.fast_report.late[3]

    @property
    def scheduling(self) -> str:
        """What the fast loop got: "fifo 10", or why not."""
        return self._process.scheduling

    @property
    def pid(self) -> int:
        """The number of the process of the fast loop."""
        return self._process.pid

    def run(self, seconds: float, *, after_look: Callable[[float], Any] | None = None) -> None:
        """Run so long.

        Args:
            seconds: how long [s].
            after_look: called with the time after each slow tick.
        """
        self.hand.run(seconds, pacer=_SlowTicks(self, after_look))

    def look(self) -> None:
        """One slow tick: take what the fast loop tells, certify and look, and tell it."""
        self._process.check()
        told = self._state.read()
        self._order.write(np.array((self.hand.fast_loop.clutch, self._resumes), ORDER))
        if told is None:
            return
        self.hand.fast_loop.mirror(told["state"], told["proxy"], told["ticks"])
        self._rows.write(*packed_rows(self.hand.look(told["proxy"])))

    def resume(self) -> None:
        """Hold the part again with a device that was lost and answers now."""
        self._resumes += 1

    def stop(self) -> PacerReport:
        """End the fast loop, and tell how it kept its rate."""
        if self.fast_report is None:
            self.fast_report = self._process.stop()
        return self.fast_report

    def close(self) -> None:
        """End everything; may be called twice."""
        self._process.close()
        self._close_memory()

    def __enter__(self) -> SeparateLoops:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._process.alive:
                self.stop()
        finally:
            self.close()

    def _close_memory(self) -> None:
        for one in (self._order, self._rows, self._state):
            one.close()


class _SlowTicks:
    """What a hand takes for its pacer: the slow loop here, the fast one elsewhere."""

    def __init__(self, loops: SeparateLoops, after_look: Callable[[float], Any] | None) -> None:
        self._loops, self._after = loops, after_look

    @property
    def late(self) -> int:
        return self._loops.late

    @property
    def lateness(self) -> float:
        return self._loops.lateness

    def run(self, fast: Any, slow: Any, seconds: float, *, fast_rate: float, slow_rate: float) -> None:
        for time in self._loops.pacer.ticks(seconds):
            self._loops.look()
            if self._after is not None:
                self._after(time)
