"""Launches that come back every step: their arguments are packed once, so that one costs a few microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime.kernels import load
from tangere.runtime.launching import GRAIN, Recorded, run_shards, shard_ranges

__all__ = ["Prepared"]


class Prepared:
    """A kernel with its arguments; calling it runs a range of indices.

    The arguments must stay the same arrays; numbers among them stay as they are now.
    """

    def __init__(
        self,
        kernel: wp.Kernel,
        arguments: Sequence[Any],
        device: wp.Device,
        *,
        grain: int = GRAIN,
        serial: bool = False,
    ) -> None:
        load(kernel, device)
        self._recorded, self._cuda = Recorded(kernel, list(arguments), device), device.is_cuda
        self._grain, self._threads = grain, 1 if serial else None

    def __call__(self, count: int, first: int = 0) -> None:
        """Run the indices first … first + count - 1; a `serial` kernel does so in order on CPU."""
        if count <= 0:
            return
        if self._cuda:
            self._recorded.launch(count, first)
            return
        ranges = shard_ranges(count, self._grain, self._threads)
        run_shards(lambda shard, at, size: self.inline(first + at, size), ranges, self._threads)

    def inline(self, first: int, count: int) -> None:
        """Run a range of indices on the calling thread (CPU)."""
        self._recorded.launch(count, first)
