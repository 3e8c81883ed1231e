"""A hand in real time within one process: its fast loop on a thread of its own, its slow loop here.

For devices that cannot be opened in another process. Both loops share one interpreter: `separate_loops` keeps its rate
better.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tangere.runtime.pacer import LoopPacer, Mode, PacerReport, no_collection, real_time


class ThreadedLoops:
    """A pacer for `Hand.run`.

    Args:
        mode: "hard" keeps work that can wait (`slow.postponable`) within what is left of a slow tick.
        priority: of SCHED_FIFO for the fast loop; None asks for nothing.
    """

    def __init__(self, *, mode: Mode = "soft", priority: int | None = 10) -> None:
        self._mode, self._priority = mode, priority
        self.slow: LoopPacer | None = None  #: of the last run
        self.fast_report: PacerReport | None = None  #: of the last run

    @property
    def late(self) -> int:
        """Overruns of the fast loop."""
        return 0 if self.fast_report is None else self.fast_report.overruns

    @property
    def lateness(self) -> float:
        """The largest of the fast loop [s]."""
        return 0.0 if self.fast_report is None else self.fast_report.late[3]

    def run(
        self,
        fast: Callable[[float], object],
        slow: Callable[[float], object],
        seconds: float,
        *,
        fast_rate: float,
        slow_rate: float,
    ) -> None:
        """Call `fast(time)` and `slow(time)` at their rates [1/s] for so long; raises what either raises."""
        pacer, failed, ended = LoopPacer(fast_rate, mode=self._mode), [], threading.Event()
        self.slow = LoopPacer(slow_rate, mode=self._mode)

        def tick() -> None:
            try:
                with real_time(self._priority) as pacer.scheduling:
                    for time in pacer.ticks(seconds):
                        if ended.is_set():
                            break
                        fast(time)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=tick, name="tangere-fast-loop", daemon=True)
        with no_collection():
            thread.start()
            try:
                for time in self.slow.ticks(seconds):
                    slow(time)
                    if not thread.is_alive():
                        break
            except BaseException:  # the fast loop goes on for nobody
                ended.set()
                raise
            finally:
                if failed or not thread.is_alive():
                    pacer.stop()
                thread.join(seconds + 1.0)
                self.fast_report = pacer.report()
        if failed:
            raise failed[0]
