"""Launches that are repeated with the same arguments: packing them costs more than a small crowd's whole step.

The arrays must stay where they are; whoever replaces one makes the launch anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime import load, run_shards, shard_ranges
from tangere.runtime.kernels import BLOCK
from tangere.runtime.launching import GRAIN, Recorded

__all__ = ["Repeated"]


class Repeated:
    """`launch(kernel, dim, arguments)`, to be run again and again."""

    def __init__(
        self, kernel: wp.Kernel, dim: int, arguments: Sequence[Any], device: wp.Device, *, grain: int = GRAIN
    ) -> None:
        load(kernel, device)
        self._dim, self._grain, self._cuda = dim, grain, device.is_cuda
        self._shards = Recorded(kernel, arguments, device)
        # The whole range in one launch: nothing at all is left to be set.
        self._whole: Any = wp.launch(
            kernel, dim, [0, *arguments], device=device, record_tape=False, record_cmd=True, block_dim=BLOCK
        )

    def run(self) -> None:
        """Once more."""
        ranges = [] if self._cuda else shard_ranges(self._dim, self._grain)
        if len(ranges) <= 1:
            self._whole.launch()
            return
        run_shards(lambda shard, first, count: self._shards.launch(count, first), ranges)
