"""Phases of a step as CUDA graphs: captured when they are first repeated, replayed until they are invalidated.

What is captured must not ask the host, nor depend on anything but device arrays that stay where they are. On CPU, and
before everything has run once (which compiles kernels), phases just run.
"""

from __future__ import annotations

from collections.abc import Callable

import warp as wp


class PhaseGraphs:
    """Captured work by name."""

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
            with wp.ScopedCapture(self._device, force_module_load=False) as capture:
                work()
            self._captured[name] = capture.graph

    def invalidate(self) -> None:
        """Buffers have changed: run once without graphs, then capture anew."""
        self._captured.clear()
        self.ready = False
