"""A loop of a fixed rate in a process of its own, where no other thread of Python holds it up.

Question: how does a thousand-hertz loop live beside a program that computes, draws and serves pages?
Method:   a new process makes the loop's object from a function and its arguments, freezes the garbage collector, asks
          for SCHED_FIFO and ticks by a `LoopPacer`. It talks to this one by records in shared memory: how it keeps its
          rate, and whether it shall go on. Whoever dies is noticed by the other: the loop ends when its parent is gone,
          and `check` raises when the loop is.
Known as: a device server beside the simulation (Redon 2002, section 6.1), with real-time scheduling.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from tangere.runtime.checks import positive
from tangere.runtime.errors import TangereError
from tangere.runtime.pacer.pacer import LoopPacer, Mode, PacerReport
from tangere.runtime.pacer.scheduling import no_collection, real_time
from tangere.runtime.pacer.seqlock import SharedRecord

_ORDER = np.dtype([("stop", np.int64)])
#: What a running loop tells, many times a second.
_BEAT = np.dtype([("ticks", np.int64), ("overruns", np.int64), ("time", np.float64)])
_BEATS = 50.0  #: a second
_PATIENCE = 60.0  #: how long a process may take to make its loop [s]


class ProcessLostError(TangereError):
    """A process that was to go on has ended; the message has its last words."""


class Ticking(Protocol):
    """What a loop ticks."""

    def tick(self, time: float) -> None:
        """Do what is done at each deadline; `time` [s] since the first one."""
        ...

    def close(self) -> None:
        """Let go of devices and memory."""
        ...


class LoopProcess:
    """A loop of a fixed rate in a process of its own. Use it as a context manager.

    Args:
        make: gives what is to be ticked; called in the new process, so it must be a function of a module.
        arguments: of `make`; they are pickled.
        rate: ticks a second.
        mode: "hard" or "soft", as of a `LoopPacer`.
        priority: of SCHED_FIFO, 1 to 99; None asks for nothing.
        spin: how long before a deadline the loop stops sleeping [s].
    """

    def __init__(
        self,
        make: Callable[..., Ticking],
        arguments: tuple[Any, ...] = (),
        *,
        rate: float = 1000.0,
        mode: Mode = "soft",
        priority: int | None = 10,
        spin: float = 60e-6,
    ) -> None:
        self.rate = positive(rate, "rate")
        self._order, self._beat = SharedRecord(_ORDER), SharedRecord(_BEAT)
        self._order.write(np.array((0,), _ORDER))
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe(duplex=False)
        options = {"rate": self.rate, "mode": mode, "spin": spin}
        names = self._order.name, self._beat.name
        self._process = context.Process(
            target=_live, args=(make, arguments, options, priority, names, theirs), daemon=True
        )
        self._report: PacerReport | None = None
        self._process.start()
        theirs.close()
        try:
            self.scheduling: str = self._hear(_PATIENCE)  #: "fifo 10", or why the loop runs as ordinary ones do
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid or 0

    @property
    def alive(self) -> bool:
        """Whether the loop goes on."""
        return self._process.is_alive()

    @property
    def ticks(self) -> int:
        """Ticks that are known to be made."""
        told = self._beat.read()
        return 0 if told is None else int(told["ticks"])

    @property
    def overruns(self) -> int:
        """Overruns that are known."""
        told = self._beat.read()
        return 0 if told is None else int(told["overruns"])

    @property
    def silence(self) -> float:
        """Seconds since the loop last said that it lives."""
        return self._beat.age

    def check(self) -> None:
        """Raise `ProcessLostError` where the loop has ended without being told to."""
        if self._report is None and (self._pipe.poll() or not self._process.is_alive()):
            self._report = self._hear(0.0)

    def stop(self, patience: float = 5.0) -> PacerReport:
        """End the loop, and tell how it kept its rate."""
        if self._report is None:
            self._order.write(np.array((1,), _ORDER))
            self._report = self._hear(patience)
        self._process.join(patience)
        assert self._report is not None
        return self._report

    def close(self) -> None:
        """End the process, whatever it does; may be called twice."""
        if self._process.is_alive():
            if not self._order.closed:
                self._order.write(np.array((1,), _ORDER))
            self._process.join(1.0)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._pipe.close()
        self._order.close()
        self._beat.close()

    def __enter__(self) -> LoopProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hear(self, patience: float) -> Any:
        """What the process says next; its last words are raised."""
        try:
            if not self._pipe.poll(patience):
                raise ProcessLostError(f"the process of the loop has said nothing for {patience:g} s")
            kind, told = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(1.0)
            code = self._process.exitcode
            raise ProcessLostError(f"the process of the loop has ended, exit code {code}") from error
        if kind == "told":
            raise ProcessLostError(f"the loop ended: {told}")
        if kind == "error":
            raise ProcessLostError(f"the loop ended by an error:\n{told}")
        return told


def _live(
    make: Callable[..., Ticking],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    priority: int | None,
    names: tuple[str, str],
    pipe: Connection,
) -> None:
    """The life of the process: make, tick, tell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is told to all; who made the loop ends it, and hears of it
    try:
        with SharedRecord(_ORDER, names[0]) as order, SharedRecord(_BEAT, names[1]) as beat:
            loop = make(*arguments)
            try:
                pacer = LoopPacer(**options)
                with no_collection(), real_time(priority) as pacer.scheduling:
                    pipe.send(("ready", pacer.scheduling))
                    _tick(loop, pacer, order, beat)
                pipe.send(("report", pacer.report()))
            finally:
                loop.close()
    except TangereError as error:
        pipe.send(("told", str(error)))
    except BaseException:
        pipe.send(("error", traceback.format_exc(limit=-6)))


def _tick(loop: Ticking, pacer: LoopPacer, order: SharedRecord, beat: SharedRecord) -> None:
    parent, every = os.getppid(), max(1, round(pacer.rate / _BEATS))
    told = np.zeros(1, _BEAT)
    for due in pacer.ticks():
        loop.tick(due)
        if pacer.tick_count % every == 0:
            told["ticks"], told["overruns"], told["time"] = pacer.tick_count, pacer._overruns, time.monotonic()
            beat.write(told)
            stop = order.read()
            if os.getppid() != parent or (stop is not None and stop["stop"]):
                return
