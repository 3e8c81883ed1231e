"""How long the phases of a step take: on CUDA between events on the device, so that the host need not wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import warp as wp


class PhaseClock:
    """Seconds of phases by name."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._taken: dict[str, float] = {}
        self._events: dict[str, tuple[wp.Event, wp.Event]] = {}

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Time what is done within."""
        if self._device.is_cuda:
            if name not in self._events:
                self._events[name] = tuple(wp.Event(self._device, enable_timing=True) for _ in range(2))
            begin, end = self._events[name]
            self._device.stream.record_event(begin)
            try:
                yield
            finally:
                self._device.stream.record_event(end)
        else:
            began = time.perf_counter()
            yield
            self._taken[name] = time.perf_counter() - began

    def seconds(self) -> dict[str, float]:
        """Of the last time each phase ran; waits for the device."""
        for name, (begin, end) in self._events.items():
            self._taken[name] = 1e-3 * wp.get_event_elapsed_time(begin, end)
        return dict(self._taken)
