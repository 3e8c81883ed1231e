"""Time limits of jobs: an exception where Python runs, the end of the process where nothing else helps.

Question: how is a job ended that takes too long?
Method:   an alarm raises in the main thread, again every second, for code that catches it. A job that stays in a native
          call does not see it: a little later a watchdog that needs no interpreter lock writes where the job is and
              ends
          the process, which is a worker's; whoever waits for the worker reads why.
Known as: a watchdog timer.
"""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tangere.runtime import InputError


class JobTimeOut(BaseException):
    """A job has taken too long; no `Exception`, so that jobs which catch those end as well."""


#: A job in a native call is given so much longer before its process is ended: a share of its time, and seconds.
_GRACE = 0.5, 1.0


@contextmanager
def time_limit(seconds: float | None, notes: int | None) -> Iterator[None]:
    """What runs inside is ended after so long.

    Args:
        seconds: None means no limit.
        notes: where the watchdog writes, a file that is open; None: there is none, because this process is needed.
    """
    if seconds is None:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        raise InputError("seconds_per_job needs workers that do jobs in their main thread")

    over: list[bool] = []

    def end(number: int, frame: object) -> None:
        if not over:
            raise JobTimeOut

    before = signal.signal(signal.SIGALRM, end)
    if notes is not None:
        faulthandler.dump_traceback_later(seconds * (1.0 + _GRACE[0]) + _GRACE[1], exit=True, file=notes)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
            yield
        finally:
            over.append(True)  # an alarm from here on is too late, and must not keep the rest from being done
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if notes is not None:
            faulthandler.cancel_dump_traceback_later()
