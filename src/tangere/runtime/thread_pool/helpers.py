"""Threads that wait to help: each sleeps on a lock of its own until someone wakes it for a piece of work.

Who wakes several wakes half of them through the first one, so that many are up in the time of a few; the last to have
gone to sleep is woken first. Nobody waits for a helper to wake up: work that is done by then is simply found done.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

__all__ = ["wake"]

_idle: deque[_Worker] = deque()
_made = 0
_making = threading.Lock()


def wake(work: Callable[[], None], helpers: int, most: int) -> None:
    """Have up to `helpers` threads call `work()`, which must not raise, some time soon.

    Args:
        most: so many threads there may be; none is made beyond that.
    """
    while helpers > 0:
        share = (helpers + 1) // 2
        try:
            worker = _idle.pop()
        except IndexError:
            worker = _new(most)
            if worker is None:
                return
        worker.call(work, share - 1, most)
        helpers -= share


class _Worker:
    def __init__(self, number: int) -> None:
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._work: tuple[Callable[[], None], int, int] | None = None
        threading.Thread(target=self._live, name=f"tangere-{number}", daemon=True).start()

    def call(self, *work) -> None:
        """Wake it for `work()`, to wake so many others first."""
        self._work = work
        self._asleep.release()

    def _live(self) -> None:
        while True:
            self._asleep.acquire()
            assert self._work is not None
            work, helpers, most = self._work
            self._work = None
            wake(work, helpers, most)
            work()
            del work  # and all arrays it holds
            _idle.append(self)


def _new(most: int) -> _Worker | None:
    global _made
    with _making:
        if _made >= most:
            return None
        _made += 1
        return _Worker(_made)


def _forget() -> None:
    """In a forked process, which has none of the threads."""
    global _made, _making
    _idle.clear()
    _made, _making = 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
