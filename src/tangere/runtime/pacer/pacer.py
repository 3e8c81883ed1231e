"""A loop of a fixed rate: when is the next tick due, how late was it, and is there time for what can wait?

Question: how are a thousand ticks a second made, each at its instant, and what is told when one was not?
Method:   deadlines are absolute, on the monotonic clock: the n-th is n periods after the first, so that lateness does
          not add up. The loop sleeps until shortly before one, then looks at the clock until it is there. A tick whose
          work ends after the next deadline is an overrun; deadlines that have passed altogether are skipped, and
          counted.
          Work that can wait (refinement, recording) is given the time left before the next deadline: in hard mode no
          more than that, and what does not fit is postponed and counted; in soft mode all the time it wants. Whose turn
          is first goes round, so that none is always the last.
Sound:    ticks + skipped deadlines are all deadlines that have passed; every overrun and every postponement is counted.
Known as: a periodic task with implicit deadlines; *hard* and *soft* real time (Pitiot 2015, section 1.2).
"""

from __future__ import annotations

import time as system_time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tangere.runtime.checks import not_negative, positive
from tangere.runtime.errors import InputError
from tangere.runtime.pacer.latency_histogram import LatencyHistogram

Mode = Literal["hard", "soft"]


@dataclass
class PostponableWork:
    """Something that can wait for a quieter tick.

    Args:
        name: as reports tell it.
        work: is given the seconds that it may take, and gives how many pieces it has left undone.
        least: the shortest time worth giving to it [s].
    """

    name: str
    work: Callable[[float], int | None]
    least: float = 0.0
    runs: int = 0  #: how often it had its turn
    postponed: int = 0  #: how often it got no turn, and pieces that it left
    overspent: int = 0  #: how often it took longer than it was given
    longest: float = 0.0  #: of its turns [s]


@dataclass(frozen=True)
class PacerReport:
    """How well a loop kept its rate; durations in seconds."""

    rate: float  #: ticks a second that were asked for
    mode: str  #: "hard" or "soft"
    ticks: int = 0  #: ticks made
    overruns: int = 0  #: ticks that ended after the next one was due
    skipped: int = 0  #: deadlines at which no tick was made
    late: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)  #: lateness: p50, p99, p99.9, largest [s]
    work: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)  #: work of a tick: p50, p99, p99.9, largest [s]
    runs: dict[str, int] = field(default_factory=dict)  #: turns of work that can wait
    postponed: dict[str, int] = field(default_factory=dict)  #: what of it was postponed
    overspent: dict[str, int] = field(default_factory=dict)  #: turns of it that took longer than they were given
    scheduling: str = "not asked for"  #: "fifo 10", or why not

    @property
    def overrun_share(self) -> float:
        """Overruns of all ticks."""
        return self.overruns / self.ticks if self.ticks else 0.0

    def rows(self) -> list[tuple[str, str]]:
        """What a table shows of it."""
        p50, p99, p999, worst = (f"{1e6 * value:.0f}" for value in self.late)
        w50, w99, w999, longest = (f"{1e6 * value:.0f}" for value in self.work)
        told = [
            ("rate", f"{self.rate:g} Hz, {self.mode}, scheduling: {self.scheduling}"),
            (
                "ticks",
                f"{self.ticks:,}, {self.overruns:,} overruns ({self.overrun_share:.2%}), {self.skipped:,} skipped",
            ),
            ("late, p50 / p99 / p99.9 / largest", f"{p50} / {p99} / {p999} / {worst} us"),
            ("work, p50 / p99 / p99.9 / largest", f"{w50} / {w99} / {w999} / {longest} us"),
        ]
        for name, number in self.postponed.items():
            told.append((name, f"{self.runs[name]:,} turns, {number:,} postponed, {self.overspent[name]:,} too long"))
        return told


class LoopPacer:
    """A loop of a fixed rate.

    Args:
        rate: ticks a second.
        mode: "soft" counts overruns; "hard" also keeps work that can wait within the time that is left.
        spin: how long before a deadline it stops sleeping and looks at the clock [s].
        clock: what tells the time [s]; another one than the monotonic clock makes the loop virtual.
        sleep: how that clock is waited for, given seconds.

    Example:
        >>> from tangere.runtime.pacer import LoopPacer
        >>> pacer = LoopPacer(200.0)
        >>> sum(1 for _ in pacer.ticks(0.05))
        10
        >>> pacer.report().ticks
        10
    """

    def __init__(
        self,
        rate: float,
        *,
        mode: Mode = "soft",
        spin: float = 60e-6,
        clock: Callable[[], float] = system_time.monotonic,
        sleep: Callable[[float], None] = system_time.sleep,
    ) -> None:
        self.rate = positive(rate, "rate")
        if mode not in ("hard", "soft"):
            raise InputError(f"mode must be 'hard' or 'soft', not {mode!r}")
        self.mode, self.period, self.scheduling = mode, 1.0 / self.rate, "not asked for"
        self.clock = clock
        self._spin, self._sleep = not_negative(spin, "spin"), sleep
        self._work: list[PostponableWork] = []
        self._turn = 0
        self._ended = False
        self.reset()

    def reset(self) -> None:
        """Forget all that was counted; the next tick is the first."""
        self.tick_count = self._overruns = self._skipped = 0
        self.missed = 0  #: deadlines that were skipped before the last tick
        self._late, self._busy = LatencyHistogram(), LatencyHistogram()
        self._start = self._began = 0.0
        self._number = -1  # of the last deadline
        for one in self._work:
            one.runs = one.postponed = one.overspent = 0
            one.longest = 0.0

    def postponable(self, name: str, work: Callable[[float], int | None], least: float = 0.0) -> PostponableWork:
        """Do `work` after each tick, in the time that is left.

        Args:
            name: as reports tell it.
            work: is given the seconds that it may take (infinite in soft mode) and gives how many pieces it has left
                undone, or None where all is done.
            least: the shortest time that is worth giving to it [s]; where less is left, it is postponed.
        """
        if any(one.name == name for one in self._work):
            raise InputError(f"name: there is work called {name!r} already")
        self._work.append(PostponableWork(name, work, not_negative(least, "least")))
        return self._work[-1]

    def ticks(self, seconds: float | None = None) -> Iterator[float]:
        """The seconds since the first tick at each tick's deadline, so long, or until `stop`."""
        last = None if seconds is None else round(positive(seconds, "seconds") * self.rate)
        self._ended = False
        self.reset()
        while not self._ended:
            due = self.wait(last)
            if due is None:
                return
            yield due
            self.done()

    def stop(self) -> None:
        """Make no more ticks."""
        self._ended = True

    def wait(self, last: int | None = None) -> float | None:
        """Wait for the next deadline, and give it in seconds since the first; None where `last` deadlines are over."""
        if self._number < 0:
            self._start, self._number = self.clock(), 0
        else:
            now, following = self.clock(), self._number + 1
            passed = int((now - self._start) * self.rate)  # the latest deadline that is not ahead
            self.missed = 0
            if passed > following:
                self.missed = (passed if last is None else min(passed, last)) - following
                self._skipped += self.missed
                following = passed
            self._number = following
        if last is not None and self._number >= last:
            return None
        due = self._start + self._number * self.period
        now = self.clock()
        if due - now > self._spin:
            self._sleep(due - now - self._spin)
            now = self.clock()
        while now < due:
            now = self.clock()
            if now < due and self.clock is not system_time.monotonic:
                self._sleep(due - now)
        self._began = now
        self._late.add(now - due)
        self.tick_count += 1
        return self._number * self.period

    def done(self) -> None:
        """The work of the tick is done: count it, and do what could wait."""
        now, deadline = self.clock(), self._start + (self._number + 1) * self.period
        self._busy.add(now - self._began)
        if self._work:
            self._do_what_can_wait(now, deadline)
            now = self.clock()
        if now > deadline:
            self._overruns += 1

    @property
    def left(self) -> float:
        """Seconds until the next deadline; negative where it has passed."""
        return self._start + (self._number + 1) * self.period - self.clock()

    def report(self) -> PacerReport:
        """How well the rate was kept so far."""
        shares = (0.5, 0.99, 0.999)
        late, busy = self._late, self._busy
        return PacerReport(
            rate=self.rate,
            mode=self.mode,
            ticks=self.tick_count,
            overruns=self._overruns,
            skipped=self._skipped,
            late=(*(late.quantile(share) for share in shares), late.largest),  # pyright: ignore
            work=(*(busy.quantile(share) for share in shares), busy.largest),  # pyright: ignore
            runs={one.name: one.runs for one in self._work},
            postponed={one.name: one.postponed for one in self._work},
            overspent={one.name: one.overspent for one in self._work},
            scheduling=self.scheduling,
        )

    def _do_what_can_wait(self, now: float, deadline: float) -> None:
        hard, number = self.mode == "hard", len(self._work)
        first, refused = self._turn, None
        for place in range(number):
            one = self._work[(first + place) % number]
            given = deadline - self._spin - now if hard else float("inf")
            if hard and (given <= 0.0 or given < one.least):
                one.postponed += 1
                refused = (first + place) % number if refused is None else refused
                continue
            one.runs += 1
            one.postponed += one.work(given) or 0
            ended = self.clock()
            one.longest = max(one.longest, ended - now)
            one.overspent += hard and ended - now > given
            now = ended
        # Who was refused is the first the next time.
        self._turn = (first + 1) % number if refused is None else refused
