"""Loops and writers for processes of tests: a new process imports them by name."""

from __future__ import annotations

import os
import time

import numpy as np

from tangere.runtime.pacer import SharedRecord, SharedRows

#: All words of a record are the same number, so that a torn one is seen.
WORDS = np.dtype([("words", np.int64, 96)])
HEAD, ROW = np.dtype([("number", np.int64)]), np.dtype([("number", np.int64), ("place", np.int64)])


def hammer(name: str, stop: str, checked: bool) -> None:
    """Write ever new records as fast as it goes, until told to stop."""
    number, record = 0, np.zeros(1, WORDS)
    with SharedRecord(WORDS, name, checked=checked) as shared, SharedRecord(HEAD, stop) as order:
        while order.newest == 0:
            number += 1
            record["words"] = number
            shared.write(record)


def follow_rows(name: str, answer: str, wanted: int) -> None:
    """Read rows until record `wanted` has come; tell how many were seen, or -1 for what does not belong together."""
    seen = 0
    with SharedRows(HEAD, ROW, name) as shared, SharedRecord(HEAD, answer) as told:
        while True:
            both = shared.read()
            if both is None:
                continue
            number, rows = int(both[0]["number"]), both[1]
            right = len(rows) == number and (rows["number"] == number).all()
            if not right or (rows["place"] != np.arange(number)).any():
                seen = -1
            elif seen >= 0:
                seen += 1
            if number == wanted or seen < 0:
                told.write(np.array((seen,), HEAD))
                return


class Counter:
    """Counts ticks into shared memory; ends badly at a tick where it is asked to."""

    def __init__(self, name: str, ends: str = "", at: int = 0) -> None:
        self._told, self._ends, self._at, self._count = SharedRecord(HEAD, name), ends, at, 0

    def tick(self, time: float) -> None:
        self._count += 1
        self._told.write(np.array((self._count,), HEAD))
        if self._count == self._at:
            if self._ends == "error":
                raise ArithmeticError("the loop has had enough")
            os._exit(7)

    def close(self) -> None:
        self._told.close()


def refuse() -> Counter:
    """A loop that cannot be made."""
    raise FileNotFoundError("there is no such device")


def orphan(name: str) -> None:
    """A parent that dies with its loop running."""
    from tangere.runtime.pacer import LoopProcess

    LoopProcess(Counter, (name,), rate=200.0, priority=None)
    time.sleep(0.2)
    os._exit(0)
