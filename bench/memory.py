"""How much memory does a call hold at most?

Whoever Warp asks for memory counts what it hands out. On CPU that is NumPy's, so that `tracemalloc` sees the arrays of
both.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp

__all__ = ["peak_bytes"]

#: Bytes that arrays begin at multiples of.
ALIGNED = 64


def peak_bytes(ask: Callable[[], object], device: str | wp.Device = "cpu") -> int:
    """Most bytes that are held during a call, beyond those held before; ask once before, so that all is compiled."""
    where = wp.get_device(device)
    if where.is_cuda:
        counted = _Counted(where.get_allocator())
        wp.set_device_allocator(where, counted)
        try:
            answer = ask()  # which holds what it holds
            wp.synchronize_device(where)
            del answer
        finally:
            wp.set_device_allocator(where, None)
        return counted.most
    with _from_numpy(where):
        tracemalloc.start()
        try:
            answer = ask()
            return tracemalloc.get_traced_memory()[1]
        finally:
            del answer
            tracemalloc.stop()


@contextmanager
def _from_numpy(device: wp.Device) -> Iterator[None]:
    usual = device.default_allocator
    device.default_allocator = _FromNumPy()
    try:
        yield
    finally:
        device.default_allocator = usual


class _Counted:
    """What Warp asks for memory on CUDA; counts what another hands out."""

    def __init__(self, usual: Any) -> None:
        self._usual, self._now, self.most = usual, 0, 0

    def allocate(self, size_in_bytes: int) -> int:
        self._now += size_in_bytes
        self.most = max(self.most, self._now)
        return self._usual.allocate(size_in_bytes)

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        self._now -= size_in_bytes
        self._usual.deallocate(ptr, size_in_bytes)


class _FromNumPy:
    """What Warp asks for memory; arrays keep it for as long as they live."""

    deallocate_requires_context_guard = False
    memory_kind = wp.get_device("cpu").default_allocator.memory_kind

    def __init__(self) -> None:
        self._held: dict[int, np.ndarray] = {}

    def allocate(self, size_in_bytes: int) -> int:
        held = np.empty(size_in_bytes + ALIGNED, np.uint8)
        address = -(-held.ctypes.data // ALIGNED) * ALIGNED
        self._held[address] = held
        return address

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        del self._held[ptr]
