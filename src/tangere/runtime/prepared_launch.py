"""Launches whose arguments are packed once: what is asked again and again costs a microsecond, not thirty.

Known as: recorded launches, command buffers.
A launch is prepared over arrays that stay: whoever replaces one prepares it anew. Launches that depend on each other
are phases; the shards of all launches of a phase wait in one queue, so that no thread stops between one and the next,
and who finds none left waits for those that are under way (`thread_pool.program`).
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import warp as wp

from tangere.runtime.argument_block import ArgumentBlock, pack
from tangere.runtime.shards import GRAIN, SHARDS_PER_THREAD, run_shards, shard_ranges
from tangere.runtime.thread_pool.program import Program, ShardedLaunch
from tangere.runtime.threads import thread_count
from tangere.runtime.warp_setup import BLOCK, load


class PreparedLaunch:
    """A launch of `kernel(first, *arguments)`, `kernel(first, shard, …)` or `kernel(first, shard, thread, …)`.

    The arguments must stay the same arrays; numbers among them stay as they are now.

    Args:
        dim: number of indices of `run` and in phases; or (1,) int64, where an earlier phase writes it. May be changed.
        grain: smallest number of indices worth a thread.
        serial: on CPU all indices in order on the caller's thread.
    """

    def __init__(
        self,
        kernel: wp.Kernel,
        arguments: Sequence[Any],
        device: wp.Device,
        *,
        dim: int | wp.array = 0,
        grain: int = GRAIN,
        serial: bool = False,
    ) -> None:
        load(kernel, device)
        self.dim, self.grain = dim, grain
        self._kernel, self._arguments, self._device = kernel, list(arguments), device
        self._threads = 1 if serial else None

    @cached_property
    def block(self) -> ArgumentBlock:
        """The arguments with zeros before them (CPU)."""
        return pack(self._kernel, self._arguments, self._device)

    @cached_property
    def _whole(self) -> Callable[[], None]:
        """All indices in one launch: nothing at all is left to be set."""
        if not self._device.is_cuda:
            return self.block.prepared(self.dim)
        command: Any = wp.launch(
            self._kernel,
            self.dim,
            [0, *self._arguments],
            device=self._device,
            record_tape=False,
            record_cmd=True,
            block_dim=BLOCK,
        )
        return command.launch

    def over(self, dim: int | wp.array, grain: int | None = None) -> PreparedLaunch:
        """The same launch, packed once for both, over another number of indices."""
        if not self._device.is_cuda:
            _ = self.block
        other = copy.copy(self)
        other.dim, other.grain = dim, self.grain if grain is None else grain
        other.__dict__.pop("_whole", None)
        return other

    def run(self) -> None:
        """All `dim` indices, once more."""
        ranges = [] if self._device.is_cuda else shard_ranges(self.dim, self.grain, self._threads)
        if len(ranges) <= 1:
            self._whole()
        else:
            run_shards(lambda shard, first, count: self.block.launch(count, first), ranges, self._threads)

    def __call__(self, count: int, first: int = 0) -> None:
        """The indices first … first + count - 1."""
        if count <= 0:
            return
        if self._device.is_cuda or count <= self.grain:  # one shard
            self.launch(count, first)
            return
        ranges = shard_ranges(count, self.grain, self._threads)
        run_shards(lambda shard, at, size: self.block.launch(size, first + at), ranges, self._threads)

    def launch(self, count: int, *leading: int) -> None:
        """Run `kernel(*leading, *arguments)` for `count` indices, on CPU on the calling thread."""
        if self._device.is_cuda:
            arguments = [*leading, *self._arguments]
            wp.launch(self._kernel, count, arguments, device=self._device, record_tape=False, block_dim=BLOCK)
        else:
            self.block.launch(count, *leading)


#: Launches that do not depend on each other.
Phase = Sequence[PreparedLaunch]


def run_phases(phases: Sequence[Phase], threads: int | None = None) -> None:
    """Run the CPU launches of each phase in any order, then those of the next.

    On the caller's thread and up to `threads - 1` others; a launch is cut as `shard_ranges` says.
    """
    threads = thread_count() if threads is None else threads
    sharded = _sharded(phases, threads)
    if any(len(phase) > 1 or phase[0].shards > 1 or phase[0].counted for phase in sharded):
        Program(sharded, threads).run()
        return
    for (launch,) in sharded:  # nothing to share: a program would only take time
        launch.block.launch(launch.dim, 0, 0, 0)


def prepare_phases(phases: Sequence[Phase], threads: int | None = None) -> Program:
    """The same phases to be run again and again, by one caller at a time."""
    threads = thread_count() if threads is None else threads
    return Program(_sharded(phases, threads), threads)


def _sharded(phases: Sequence[Phase], threads: int) -> list[list[ShardedLaunch]]:
    """The launches that have indices, in shards."""
    sharded: list[list[ShardedLaunch]] = []
    for phase in phases:
        launches: list[ShardedLaunch] = []
        for launch in phase:
            dim = launch.dim
            if isinstance(dim, wp.array):
                shards = SHARDS_PER_THREAD * threads if threads > 1 else 1
                launches.append(ShardedLaunch(launch.block, 0, launch.grain, shards, dim.ptr))
            elif dim > 0:
                ranges = shard_ranges(dim, launch.grain, threads)
                launches.append(ShardedLaunch(launch.block, dim, ranges[0][1], len(ranges)))
        if launches:
            sharded.append(launches)
    return sharded


Made = TypeVar("Made")


class LaunchCache(Generic[Made]):
    """What `make(*things)` made for the last things it was asked about: arrays and launches prepared over them.

    Making arrays and packing arguments takes longer than most questions about one instant. Each thread has its own.

    Args:
        most: things for which something is kept, by each thread.
    """

    def __init__(self, make: Callable[..., Made], most: int = 8) -> None:
        self._make, self._most = make, most
        self._local = threading.local()

    def of(self, *things: Any) -> Made:
        """What is kept for these very things (not for equal ones)."""
        known: OrderedDict[tuple[int, ...], tuple[Any, Made]] = self._local.__dict__.setdefault("known", OrderedDict())
        key = tuple(map(id, things))  # which are kept, so that nothing else gets their numbers
        found = known.pop(key, None) or (things, self._make(*things))
        known[key] = found
        if len(known) > self._most:
            known.popitem(last=False)
        return found[1]
