"""How the phases of a step run: timed, and on CUDA as graphs that are captured once and replayed.

What is captured must not ask the host, nor depend on anything but device arrays that stay where they are. On CPU, and
before everything has run once (which compiles kernels), phases just run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import warp as wp

from tangere.runtime import captured


class PhaseGraphs:
    """Phases as CUDA graphs, by name: captured when they are first repeated, replayed until they are invalidated."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._captured: dict[str, wp.Graph] = {}
        self.ready = False  #: whether all kernels have been compiled and launched once

    def __call__(self, name: str, work: Callable[[], None]) -> None:
        """Do the work, by a graph where there is one."""
        if not (self._device.is_cuda and self.ready):
            work()
            return
        self.capture(name, work)
        wp.capture_launch(self._captured[name])

    def capture(self, name: str, work: Callable[[], None]) -> None:
        """Capture work that may be needed later, if that can be done now: later there is less time for it."""
        if self._device.is_cuda and self.ready and name not in self._captured:
            self._captured[name] = captured(self._device, work, force_module_load=False)

    def invalidate(self) -> None:
        """Buffers have changed: run once without graphs, then capture anew."""
        self._captured.clear()
        self.ready = False


class PhaseClock:
    """Seconds of phases by name: on CUDA between events on the device, so that the host need not wait."""

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
