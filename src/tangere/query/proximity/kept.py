"""Launches that are made again and again on CPU, several at a time.

The arguments of a launch are packed once. Shards of all launches of a phase wait in one queue, so that no thread stops
between one and the next: they must not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime import choose_device, load
from tangere.runtime.driving import Program
from tangere.runtime.launching import Recorded, prepare_phases, run_phases

__all__ = ["Kept", "prepared", "run_together"]


class Kept:
    """A launch of `kernel(first, *arguments)`, `kernel(first, shard, …)` or `kernel(first, shard, thread, …)`.

    Args:
        dim: number of indices; or (1,) int64, where an earlier phase writes it. May be changed from call to call.
        grain: smallest number of indices worth a thread.
    """

    def __init__(self, kernel: wp.Kernel, dim: int | wp.array, arguments: Sequence[Any], *, grain: int) -> None:
        device = choose_device("cpu")
        load(kernel, device)
        self.dim, self.grain, self.recorded = dim, grain, Recorded(kernel, arguments, device)


def run_together(*phases: Sequence[Kept]) -> None:
    """Run the launches of each phase, their shards in one queue, then those of the next."""
    run_phases([[(kept.recorded, kept.dim, kept.grain) for kept in phase] for phase in phases])


def prepared(*phases: Sequence[Kept], threads: int) -> Program:
    """The same, to be run again and again on up to so many threads."""
    return prepare_phases([[(kept.recorded, kept.dim, kept.grain) for kept in phase] for phase in phases], threads)
