"""A record with any number of rows that one process writes and others read: rows of contacts beside a pose.

The memory has room for some rows. Where there are more, the writer makes a new one with twice the room, writes into it
and tells its name; readers follow when they see that the one they have was closed. Nothing is cut off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.runtime.checks import whole
from tangere.runtime.errors import InputError, TangereError
from tangere.runtime.pacer.seqlock import SharedRecord

#: Where the rows are now.
_PLACE = np.dtype([("name", "S64"), ("capacity", np.int64)])


class SharedRows:
    """A record and its rows, always read together as they were written together.

    Args:
        record: dtype of the record.
        row: dtype of a row.
        name: as the one who made it tells; None makes it, and makes this the writer.
        capacity: rows that there is room for at first.

    Example:
        >>> import numpy as np
        >>> from tangere.runtime.pacer import SharedRows
        >>> record, row = np.dtype([("time", float)]), np.dtype([("gap", float)])
        >>> with SharedRows(record, row, capacity=2) as written, SharedRows(record, row, written.name) as read:
        ...     written.write(np.array((0.5,), record), np.zeros(5, row))
        ...     told, rows = read.read()
        >>> float(told["time"]), len(rows), written.capacity
        (0.5, 5, 8)
    """

    def __init__(self, record: Any, row: Any, name: str | None = None, *, capacity: int = 64) -> None:
        self.record, self.row = np.dtype(record), np.dtype(row)
        self._place = SharedRecord(_PLACE, name)
        self._data: SharedRecord | None = None
        self._writes = name is None
        self.capacity = whole(capacity, "capacity", 1)
        if self._writes:
            self._make()

    @property
    def name(self) -> str:
        """By which others find it."""
        return self._place.name

    @property
    def fresh(self) -> bool:
        """Whether something may have been written since it was read last."""
        data = self._data
        return data is None or data.closed or data.newest != data.seen

    @property
    def age(self) -> float:
        """Seconds since something was written; infinite where nothing was."""
        return float("inf") if self._data is None else self._data.age

    def write(self, record: np.ndarray, rows: np.ndarray) -> None:
        """Say something new, with as many rows as there are."""
        if rows.dtype != self.row or rows.ndim != 1:
            raise InputError(f"rows: an array of {self.row} is needed, not of {rows.dtype}")
        assert self._data is not None
        outgrown = self._data if len(rows) > self.capacity else None
        if outgrown is not None:
            while self.capacity < len(rows):
                self.capacity *= 2
            self._make(publish=False)
        filled = self._filled
        filled["record"], filled["count"] = record, len(rows)
        filled["rows"][0, : len(rows)] = rows
        self._data.write(filled)
        if outgrown is not None:
            self._publish()
            outgrown.close()

    def read(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The newest record and its rows; None where none was written."""
        for _ in range(1000):
            if self._data is None or self._data.closed:
                self._follow()
            if self._data is not None:
                told = self._data.read()
                if not self._data.closed:
                    return None if told is None else (told["record"], told["rows"][: told["count"]])
        raise TangereError("the shared rows move faster than they can be followed")

    def close(self) -> None:
        """Let go of the memory; the one who made it takes it away. May be called twice."""
        if self._data is not None:
            self._data.close()
        self._place.close()

    def __enter__(self) -> SharedRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _whole(self) -> np.dtype:
        return np.dtype([("record", self.record), ("count", np.int64), ("rows", self.row, self.capacity)])

    def _make(self, publish: bool = True) -> None:
        self._data = SharedRecord(self._whole(), slots=3)
        self._filled = np.zeros(1, self._whole())
        if publish:
            self._publish()

    def _publish(self) -> None:
        assert self._data is not None
        self._place.write(np.array((self._data.name.encode(), self.capacity), _PLACE))

    def _follow(self) -> None:
        """Find the memory where the rows are now."""
        place = self._place.read()
        if place is None:
            return
        capacity = int(place["capacity"])
        old, self.capacity = self._data, capacity
        try:
            self._data = SharedRecord(self._whole(), place["name"].decode())
        except InputError:  # moved on meanwhile: the next try finds the newer one
            self._data = None
            if self._place.closed:
                raise
        if old is not None:
            old.close()
