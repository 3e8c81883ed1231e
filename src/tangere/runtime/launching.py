"""Kernel launches: one on CUDA, shards over a persistent thread pool on CPU.

Warp runs a CPU launch on the calling thread, with the interpreter lock released; so the index range is cut into shards
and each shard is a launch of its own. A kernel takes the shard's first index as its first parameter,
`i = first + wp.tid()`, and must write only where no other index writes. The caller's thread works too, and a range
below `grain` never leaves it, because waking a pool thread costs about a hundred microseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import warp as wp

from tangere.runtime.kernels import BLOCK, load
from tangere.runtime.threads import thread_count

__all__ = ["Recorded", "launch", "run_shards", "shard_ranges"]

#: Below this many indices a range is run inline: light kernels take some 10 ns an index. Heavier ones pass their own.
GRAIN = 32768
#: Shards per thread: enough to even out unequal work, few enough that their cost (about 10 us each) is not seen.
SHARDS_PER_THREAD = 8

_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()


def launch(
    kernel: wp.Kernel,
    dim: int,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    *,
    device: wp.Device,
    grain: int = GRAIN,
    threads: int | None = None,
) -> None:
    """Run `kernel(first, *inputs, *outputs)` for indices 0 … dim-1.

    Args:
        dim: number of indices; 0 is fine.
        device: where the arrays are.
        grain: smallest number of indices worth a thread.
        threads: CPU threads; None means `thread_count()`. 1 keeps the whole range on the caller's thread, in order.
    """
    if dim <= 0:
        return
    load(kernel, device)
    arguments = [*inputs, *outputs]
    if device.is_cuda:
        wp.launch(kernel, dim, [0, *arguments], device=device, record_tape=False, block_dim=BLOCK)
        return

    recorded = Recorded(kernel, arguments, device)
    run_shards(lambda shard, first, count: recorded.launch(count, first), shard_ranges(dim, grain, threads), threads)


class Recorded:
    """A launch whose arguments are packed once per thread: packing costs some 60 us, changing two numbers a few."""

    def __init__(self, kernel: wp.Kernel, arguments: Sequence[Any], device: wp.Device) -> None:
        self._kernel, self._arguments, self._device = kernel, arguments, device
        self._commands: dict[int, Any] = {}

    def launch(self, count: int, *leading: int) -> None:
        """Run `kernel(*leading, *arguments)` for `count` indices on the calling thread."""
        command: Any = self._commands.get(threading.get_ident())
        if command is None:
            command = wp.launch(
                self._kernel,
                count,
                [*leading, *self._arguments],
                device=self._device,
                record_tape=False,
                record_cmd=True,
                block_dim=BLOCK,
            )
            self._commands[threading.get_ident()] = command
        else:
            command.set_dim(count)
            for place, value in enumerate(leading):
                command.set_param_at_index(place, value)
        command.launch()


def shard_ranges(dim: int, grain: int = GRAIN, threads: int | None = None) -> list[tuple[int, int]]:
    """The (first, count) of each CPU shard of a range of `dim` indices."""
    threads = thread_count() if threads is None else threads
    if threads == 1 or dim <= grain:
        return [(0, dim)]
    size = max(grain, -(-dim // (threads * SHARDS_PER_THREAD)))
    return [(first, min(size, dim - first)) for first in range(0, dim, size)]


def run_shards(run: Callable[[int, int, int], None], ranges: list[tuple[int, int]], threads: int | None = None) -> None:
    """Call `run(shard, first, count)` for every range, on the caller's thread and up to `threads - 1` pool threads.

    All shards are attempted; the error of the first one that failed is raised when all have ended.
    """
    threads = thread_count() if threads is None else threads
    helpers = min(threads, len(ranges)) - 1
    if helpers <= 0:
        for shard, (first, count) in enumerate(ranges):
            run(shard, first, count)
        return
    errors: list[tuple[int, BaseException]] = []
    pending = iter(enumerate(ranges))
    taking = threading.Lock()

    def work() -> None:
        while True:
            with taking:
                shard, (first, count) = next(pending, (-1, (0, 0)))
            if shard < 0:
                return
            try:
                run(shard, first, count)
            except BaseException as error:
                errors.append((shard, error))

    futures: list[Future[None]] = [_executor(threads).submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        # A helper still queued (the pool is busy with another caller) has nothing left to do: its shards are done.
        if not future.cancel():
            future.result()
    if errors:
        raise min(errors, key=lambda failed: failed[0])[1]


def _executor(threads: int) -> ThreadPoolExecutor:
    """The pool, grown when more threads are asked for than it has."""
    global _pool, _pool_size
    with _pool_lock:
        if _pool is None or _pool_size < threads - 1:
            _pool_size = threads - 1
            _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="tangere")
        return _pool
