"""Before all others: may this thread have a priority that ordinary ones do not interrupt?

Linux gives SCHED_FIFO to who has CAP_SYS_NICE, or a limit for it (`ulimit -r`). It is asked for, and where it is
refused things go on without it; who asked is told which. The slack of timers, by which Linux may let ordinary threads
sleep 50 us longer, is set to the smallest.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30


@contextmanager
def real_time(priority: int | None = 10) -> Iterator[str]:
    """Run this thread before ordinary ones; gives what it got: "fifo 10", or why it runs as others do.

    Args:
        priority: 1 to 99 of SCHED_FIFO; None asks for nothing.
    """
    slack = _timer_slack(1)
    if priority is None:
        told, before = "not asked for", None
    else:
        told, before = _raise(priority)
    try:
        yield told
    finally:
        if before is not None:
            os.sched_setscheduler(0, *before)
        _timer_slack(slack)


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from interrupting: what there is is frozen, and it does not run meanwhile."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def _raise(priority: int) -> tuple[str, tuple[int, os.sched_param] | None]:
    """What this thread got, and what it had before, to be given back."""
    if not hasattr(os, "sched_setscheduler"):
        return "refused: this system has no SCHED_FIFO", None
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (PermissionError, OSError) as error:
        return f"refused: {error.strerror or error}", None
    return f"fifo {priority}", before


def _timer_slack(nanoseconds: int) -> int:
    """Set it for this thread; gives what it was, or 0 where that is not known, which sets the default."""
    try:
        control = ctypes.CDLL(None).prctl
        before = control(_PR_GET_TIMERSLACK, 0, 0, 0, 0)
        control(_PR_SET_TIMERSLACK, ctypes.c_ulong(nanoseconds), 0, 0, 0)
    except (OSError, AttributeError):
        return 0
    return max(before, 0)
