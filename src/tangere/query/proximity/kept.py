"""Launches that are made again and again on CPU, several at a time.

The arguments of a launch are packed once. Shards of all launches wait in one queue, so that no thread stops between one
and the next: they must not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime import choose_device, load, run_shards, shard_ranges
from tangere.runtime.launching import Recorded

__all__ = ["Kept", "run_together"]


class Kept:
    """A launch of `kernel(first, *arguments)`, or of an appending one, `kernel(first, shard, *arguments)`.

    Args:
        dim: number of indices; may be changed from call to call.
        grain: smallest number of indices worth a thread.
    """

    def __init__(self, kernel: wp.Kernel, dim: int, arguments: Sequence[Any], *, grain: int, appends: bool = False):
        device = choose_device("cpu")
        load(kernel, device)
        self.dim, self.grain = dim, grain
        self._recorded, self._appends = Recorded(kernel, arguments, device), appends

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """First index and number of indices of each shard."""
        return shard_ranges(self.dim, self.grain) if self.dim > 0 else []

    def run(self, shard: int, first: int, count: int) -> None:
        """Run one shard on the calling thread."""
        if self._appends:
            self._recorded.launch(count, first, shard)
        else:
            self._recorded.launch(count, first)


def run_together(launches: Sequence[Kept], threads: int | None = None) -> None:
    """Run all launches, their shards in one queue, the first ones first; `threads` as for `launch`."""
    queue = [(kept, shard, *at) for kept in launches for shard, at in enumerate(kept.ranges)]

    def run(place: int, _first: int, _count: int) -> None:
        kept, shard, first, count = queue[place]
        kept.run(shard, first, count)

    run_shards(run, [(first, count) for _, _, first, count in queue], threads)
