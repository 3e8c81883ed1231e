"""Kernel launches: one on CUDA, shards over threads that wait for work on CPU.

Warp runs a CPU launch on the calling thread, with the interpreter lock released; so the index range is cut into shards
and each shard is a launch of its own. A kernel takes the shard's first index as its first parameter,
`i = first + wp.tid()`, and must write only where no other index writes. The caller's thread works too, and a range
below `grain` never leaves it, because it takes a sleeping thread some fifty microseconds to wake up.

Shards are taken from a queue by compiled code (`driving`), which a thread enters once for a whole list of launches.
Launches that depend on each other are phases; who finds no shard left in a phase waits for those that are under way.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import warp as wp

from tangere.runtime.driving import Cut, Program
from tangere.runtime.kernels import BLOCK, load
from tangere.runtime.packing import Recorded
from tangere.runtime.threads import thread_count
from tangere.runtime.workers import wake

__all__ = ["Recorded", "launch", "launch_in_turn", "prepare_phases", "run_phases", "run_shards", "shard_ranges"]

#: Below this many indices a range is run inline: light kernels take some 10 ns an index. Heavier ones pass their own.
GRAIN = 32768
#: Shards per thread: enough to even out unequal work, few enough that their cost (about a microsecond) is not seen.
SHARDS_PER_THREAD = 8
#: The launches of one phase: what is launched, the number of indices, or an array (1,) int64 where an earlier phase
#: will have written it, and the smallest number worth a thread.
Phase = Sequence[tuple[Recorded, int | wp.array, int]]


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
    run_phases([[(Recorded(kernel, arguments, device), dim, grain)]], threads)


def launch_in_turn(
    launches: Sequence[tuple[wp.Kernel, int, Sequence[Any]]], *, device: wp.Device, grain: int = GRAIN
) -> None:
    """Run `kernel(first, *arguments)` for indices 0 … dim-1 of each (kernel, dim, arguments), one after the other.

    On CPU threads are woken once for all of them.
    """
    if device.is_cuda:
        for kernel, dim, arguments in launches:
            launch(kernel, dim, arguments, device=device)
        return
    for kernel, _, _ in launches:
        load(kernel, device)
    run_phases([[(Recorded(kernel, arguments, device), dim, grain)] for kernel, dim, arguments in launches])


def shard_ranges(dim: int, grain: int = GRAIN, threads: int | None = None) -> list[tuple[int, int]]:
    """The (first, count) of each CPU shard of a range of `dim` indices: all but the last are equally long."""
    threads = thread_count() if threads is None else threads
    if threads == 1 or dim <= grain:
        return [(0, dim)]
    size = max(grain, -(-dim // (threads * SHARDS_PER_THREAD)))
    return [(first, min(size, dim - first)) for first in range(0, dim, size)]


def run_phases(phases: Sequence[Phase], threads: int | None = None) -> None:
    """Run the CPU launches of each phase in any order, `kernel(first, …)` or `kernel(first, shard, …)`; then the next.

    On the caller's thread and up to `threads - 1` others; a launch is cut as `shard_ranges` says.
    """
    threads = thread_count() if threads is None else threads
    cuts = _cut(phases, threads)
    if any(len(phase) > 1 or phase[0].shards > 1 or phase[0].counted for phase in cuts):
        Program(cuts, threads).run()
        return
    for (cut,) in cuts:  # nothing to share: a program would only take time
        cut.packed.launch(cut.dim, 0, 0, 0)


def prepare_phases(phases: Sequence[Phase], threads: int | None = None) -> Program:
    """The same phases to be run again and again, by one caller at a time, with arguments that stay the same arrays."""
    threads = thread_count() if threads is None else threads
    return Program(_cut(phases, threads), threads)


def _cut(phases: Sequence[Phase], threads: int) -> list[list[Cut]]:
    """The launches that have indices, in shards."""
    cut: list[list[Cut]] = []
    for phase in phases:
        cuts: list[Cut] = []
        for recorded, dim, grain in phase:
            if isinstance(dim, wp.array):
                shards = SHARDS_PER_THREAD * threads if threads > 1 else 1
                cuts.append(Cut(recorded.packed, 0, grain, shards, dim.ptr))
            elif dim > 0:
                ranges = shard_ranges(dim, grain, threads)
                cuts.append(Cut(recorded.packed, dim, ranges[0][1], len(ranges)))
        if cuts:
            cut.append(cuts)
    return cut


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
    woken, done, interrupted = False, False, None
    while not done:
        try:
            if not woken:
                woken = True
                wake(help_out, helpers, threads - 1)
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
