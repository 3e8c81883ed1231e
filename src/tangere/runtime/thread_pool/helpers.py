"""Threads of the interpreter that wait for work: each is parked on a lock of its own until it is called.

Who calls several calls half of them through the first one, so that many are up in the time of a few; the last to have
been parked is called first. Nobody waits for a helper to wake up: work that is done by then is simply found done.
Known as: a thread pool with a LIFO of idle workers and tree wake-up.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

_idle: deque[_Worker] = deque()
_count = 0
_counting = threading.Lock()


def submit(work: Callable[[], None], helpers: int, most: int) -> None:
    """Have up to `helpers` threads call `work()`, which must not raise, some time soon.

    Args:
        most: so many threads there may be; none is made beyond that.
    """
    while helpers > 0:
        share = (helpers + 1) // 2
        try:
            worker = _idle.pop()
        except IndexError:
            worker = _new_worker(most)
            if worker is None:
                return
        worker.call(work, share - 1, most)
        helpers -= share


class _Worker:
    def __init__(self, number: int) -> None:
        self._parked = threading.Lock()
        self._parked.acquire()
        self._work: tuple[Callable[[], None], int, int] | None = None
        threading.Thread(target=self._loop, name=f"tangere-{number}", daemon=True).start()

    def call(self, *work) -> None:
        """Have it call `work()`, and call so many others first."""
        self._work = work
        self._parked.release()

    def _loop(self) -> None:
        while True:
            self._parked.acquire()
            assert self._work is not None
            work, helpers, most = self._work
            self._work = None
            submit(work, helpers, most)
            work()
            del work  # and all arrays it holds
            _idle.append(self)


def _new_worker(most: int) -> _Worker | None:
    global _count
    with _counting:
        if _count >= most:
            return None
        _count += 1
        return _Worker(_count)


def _reset_after_fork() -> None:
    """In a forked process, which has none of the threads."""
    global _count, _counting
    _idle.clear()
    _count, _counting = 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
