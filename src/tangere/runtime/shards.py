"""A range of indices cut into shards, and shards run by several threads of the interpreter.

The caller's thread works too, and a range below `grain` never leaves it, because it takes a sleeping thread some fifty
microseconds to wake up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from tangere.runtime.thread_pool.helpers import submit
from tangere.runtime.threads import thread_count

#: Below this many indices a range is run inline: light kernels take some 10 ns an index. Heavier ones pass their own.
GRAIN = 32768
#: Shards per thread: enough to even out unequal work, few enough that their cost (about a microsecond) is not seen.
SHARDS_PER_THREAD = 8


def shard_ranges(dim: int, grain: int = GRAIN, threads: int | None = None) -> list[tuple[int, int]]:
    """The (first, count) of each CPU shard of a range of `dim` indices: all but the last are equally long."""
    threads = thread_count() if threads is None else threads
    if threads == 1 or dim <= grain:
        return [(0, dim)]
    size = max(grain, -(-dim // (threads * SHARDS_PER_THREAD)))
    return [(first, min(size, dim - first)) for first in range(0, dim, size)]


def run_shards(run: Callable[[int, int, int], None], ranges: list[tuple[int, int]], threads: int | None = None) -> None:
    """Call `run(shard, first, count)` for every range, on the caller's thread and up to `threads - 1` others.

    With others all shards are attempted; the error of the first one that failed is raised when all have ended. So is an
    interrupt (Ctrl-C) of the caller, whose own shard may then be left out.
    """
    threads = thread_count() if threads is None else threads
    helpers = min(threads, len(ranges)) - 1
    if helpers <= 0:
        for shard, (first, count) in enumerate(ranges):
            run(shard, first, count)
        return
    pending, errors = deque(enumerate(ranges)), list[tuple[int, BaseException]]()
    helping, counting, all_gone = 0, threading.Lock(), SimpleQueue[None]()

    def take_shards() -> None:
        while pending:
            try:
                shard, (first, count) = pending.popleft()
            except IndexError:  # another was quicker
                return
            try:
                run(shard, first, count)
            except BaseException as error:
                errors.append((shard, error))

    def help_out() -> None:
        nonlocal helping
        with counting:
            helping += 1
        take_shards()
        with counting:
            helping -= 1
            if not helping:
                all_gone.put(None)

    # Others write to arrays of the caller until all is done. The user may interrupt the caller anywhere, between taking
    # a shard and running it too; so it counts nothing itself, holds no lock, and goes on until nobody helps any more.
    called, done, interrupted = False, False, None
    while not done:
        try:
            if not called:
                called = True
                submit(help_out, helpers, threads - 1)
            take_shards()
            while helping:
                all_gone.get()
            done = True
        except BaseException as interrupt:
            interrupted = interrupt  # as little as can be: another interrupt before the loop goes on would get out
    if interrupted is not None:
        raise interrupted
    if errors:
        raise min(errors, key=lambda failed: failed[0])[1]
