"""How long each phase of a step takes.

Question: what did the last step cost, and all steps so far?
Method:   the host's clock around each phase. On CUDA launches are asynchronous: only where the device is waited for is
          the time of a phase that of its kernels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import warp as wp

#: The phases of a step, as Pitiot 2015, chapter 8, tells them apart.
PHASES = ("behaviour", "tracking", "registration", "bodies", "multiresolution")


class PhaseTimings:
    """Seconds by phase.

    Args:
        wait: wait for the device after each phase.
    """

    def __init__(self, device: wp.Device, wait: bool) -> None:
        self.last = dict.fromkeys(PHASES, 0.0)  #: of the last step [s]
        self.total = dict.fromkeys(PHASES, 0.0)  #: of all steps so far [s]
        self._device = device if wait and device.is_cuda else None

    def begin_step(self) -> None:
        """From now on times are those of another step."""
        self.last = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of what is done inside."""
        begin = time.perf_counter()
        yield
        if self._device is not None:
            wp.synchronize_device(self._device)
        elapsed = time.perf_counter() - begin
        self.last[name] += elapsed
        self.total[name] += elapsed
