"""A record that one process writes and others read, without ever waiting for each other and without a torn read.

Question: what did the other process say last?
Method:   a ring of slots in shared memory, each with a number before and after its bytes. The writer fills the slot
          after the newest and then says that it is the newest; a reader copies the newest, and copies again where the
          slot's number has changed meanwhile. A writer that dies in the middle of a slot leaves the one before whole.
Sound:    stores become visible in the order of the program on x86; elsewhere each slot has a checksum (CRC-32) besides.
Known as: a seqlock (Linux; Boehm, Can seqlocks get along with programming language memory models?, 2012) over a ring.
"""

from __future__ import annotations

import os
import platform
import time
import zlib
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from tangere.runtime.checks import whole
from tangere.runtime.errors import InputError, TangereError

#: Whether other cores see stores in the order of the program.
_ORDERED = platform.machine() in ("x86_64", "AMD64", "i686")
_WORD = 8  #: bytes
#: Words at the start: the newest number, process and instant of the writer, bytes of a record, slots, closed.
_NEWEST, _WRITER, _INSTANT, _BYTES, _SLOTS, _CLOSED, _HEAD = range(7)
#: Words around the bytes of a slot: the number before, the number after, the checksum.
_AROUND = 3
#: How often a reader copies again before it says that nobody can read so.
_TRIES = 10_000


class SharedRecord:
    """One record of a NumPy dtype in shared memory: one writer, any number of readers.

    Args:
        dtype: of the record, without objects in it.
        name: of the memory, as the one who made it tells; None makes it.
        slots: of the ring; a reader is disturbed only by a writer that goes round while it copies.
        checked: with a checksum, as machines need that reorder stores; None asks the machine.

    Example:
        >>> import numpy as np
        >>> from tangere.runtime.pacer import SharedRecord
        >>> with SharedRecord([("force", float, 3), ("buttons", int)]) as written:
        ...     with SharedRecord(written.dtype, written.name) as read:
        ...         written.write(np.array(([0.0, 0.0, 2.0], 1), written.dtype))
        ...         told = read.read()
        >>> told["force"].tolist(), int(told["buttons"])
        ([0.0, 0.0, 2.0], 1)
    """

    def __init__(self, dtype: Any, name: str | None = None, *, slots: int = 4, checked: bool | None = None) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject or not self.dtype.itemsize:
            raise InputError("dtype: objects cannot be shared, nor can nothing")
        size = self.dtype.itemsize
        self._checked = not _ORDERED if checked is None else checked
        self._padded = -(-size // _WORD) * _WORD
        self._owner = name is None
        slots = whole(slots, "slots", 2)
        if self._owner:
            self._memory = SharedMemory(create=True, size=_WORD * _HEAD + slots * (self._padded + _AROUND * _WORD))
        else:
            self._memory = _attached(name)
        self._bytes: Any = self._memory.buf
        self._words = self._bytes.cast("Q")  # what is behind the last whole word is nobody's
        if self._owner:
            self._words[_BYTES], self._words[_SLOTS] = size, slots
        elif self._words[_BYTES] != size:
            told = int(self._words[_BYTES])
            self.close()
            raise InputError(f"dtype: has {size} bytes, but the record that is shared has {told}")
        self._slots = int(self._words[_SLOTS])
        self._size, self._stride = size, self._padded // _WORD + _AROUND
        self.seen = 0  #: the number of the record that was read last
        self.again = 0  #: how often a copy was disturbed and made again

    @property
    def name(self) -> str:
        """By which others find the memory."""
        return self._memory.name

    @property
    def newest(self) -> int:
        """How many records have been written."""
        return self._words[_NEWEST]

    @property
    def writer(self) -> int:
        """The process that wrote last; 0 where none did."""
        return self._words[_WRITER]

    @property
    def age(self) -> float:
        """Seconds since the last record was written; infinite where there is none."""
        return 1e-9 * (time.monotonic_ns() - self._words[_INSTANT]) if self.newest else float("inf")

    @property
    def closed(self) -> bool:
        """Whether the one who made it has closed it."""
        return bool(self._words[_CLOSED])

    def write(self, record: np.ndarray) -> None:
        """Say something new. Only one process, and one thread of it, may do so.

        Args:
            record: of the dtype, one of it.
        """
        if record.dtype != self.dtype or record.size != 1:
            raise InputError(f"record: one of {self.dtype} is needed, not {record.size} of {record.dtype}")
        words, number = self._words, self._words[_NEWEST] + 1
        at = _HEAD + number % self._slots * self._stride
        begin = (at + 2) * _WORD
        payload = record.tobytes()
        words[at] = number
        self._bytes[begin : begin + self._size] = payload
        if self._checked:
            words[at + 2 + self._padded // _WORD] = zlib.crc32(payload, number & 0xFFFFFFFF)
        words[at + 1] = number
        words[_WRITER], words[_INSTANT] = os.getpid(), time.monotonic_ns()
        words[_NEWEST] = number

    def read(self) -> np.ndarray | None:
        """The newest record, whole; None where none was written."""
        words = self._words
        for _ in range(_TRIES):
            number = words[_NEWEST]
            if not number:
                return None
            at = _HEAD + number % self._slots * self._stride
            begin = (at + 2) * _WORD
            if words[at + 1] == number:
                payload = bytes(self._bytes[begin : begin + self._size])
                if words[at] == number and (
                    not self._checked
                    or words[at + 2 + self._padded // _WORD] == zlib.crc32(payload, number & 0xFFFFFFFF)
                ):
                    self.seen = number
                    return np.frombuffer(payload, self.dtype)[0]
            self.again += 1
        raise TangereError("the shared record is written faster than it can be read")

    def close(self) -> None:
        """Let go of the memory; the one who made it takes it away. May be called twice."""
        if self._bytes is None:
            return
        if self._owner:
            self._words[_CLOSED] = 1
        self._words.release()
        self._bytes = None
        self._memory.close()
        if self._owner:
            self._memory.unlink()

    def __enter__(self) -> SharedRecord:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_bytes", None) is not None:
            self.close()


def _attached(name: str) -> SharedMemory:
    try:
        return SharedMemory(name=name)
    except FileNotFoundError as error:
        raise InputError(f"name: nothing is shared as {name!r}, or no longer") from error
