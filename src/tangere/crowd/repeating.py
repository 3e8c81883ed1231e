"""Launches that are repeated with the same arguments: packing them costs more than a small crowd's whole step.

The arrays must stay where they are; whoever replaces one makes the launch anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime import load, run_shards, shard_ranges
from tangere.runtime.launching import GRAIN, Recorded

__all__ = ["Repeated"]


class Repeated:
    """`launch(kernel, dim, arguments)`, to be run again and again."""

    def __init__(
        self, kernel: wp.Kernel, dim: int, arguments: Sequence[Any], device: wp.Device, *, grain: int = GRAIN
    ) -> None:
        load(kernel, device)
        self._recorded = Recorded(kernel, arguments, device)
        self._dim, self._grain, self._cuda = dim, grain, device.is_cuda

    def run(self) -> None:
        """Once more."""
        if self._cuda:
            self._recorded.launch(self._dim, 0)
            return
        ranges = shard_ranges(self._dim, self._grain)
        run_shards(lambda shard, first, count: self._recorded.launch(count, first), ranges)
