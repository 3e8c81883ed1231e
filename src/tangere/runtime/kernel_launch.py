"""Kernel launches: one on CUDA, shards over threads that wait for work on CPU.

Warp runs a CPU launch on the calling thread, with the interpreter lock released; so the index range is cut into shards
and each shard is a launch of its own. A kernel takes the shard's first index as its first parameter,
`i = first + wp.tid()`, and must write only where no other index writes. The caller's thread works too, and a range
below `grain` never leaves it, because it takes a sleeping thread some fifty microseconds to wake up.

Shards are taken from a queue by compiled code (`thread_pool`), which a thread enters once for a whole list of launches.

On CUDA nobody ever sets the stream of a device, which all threads use: launches that go side by side are told another
one (`side_stream`). Such streams are lent, taken back when whoever borrowed them is gone, and never destroyed: Warp
keeps streams in a table without a lock, and looks into it whenever a stream is set and a capture begins, so that one
that comes or goes in another thread just then could lose others. Two threads never capture at once (`captured`).
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import warp as wp

from tangere.runtime.prepared_launch import PreparedLaunch, run_phases
from tangere.runtime.shards import GRAIN
from tangere.runtime.warp_setup import BLOCK, load

#: By device: streams that nobody has.
_free: defaultdict[str, list[wp.Stream]] = defaultdict(list)
_turn, _capturing = threading.Lock(), threading.RLock()


def launch(
    kernel: wp.Kernel,
    dim: int,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    *,
    device: wp.Device,
    grain: int = GRAIN,
    threads: int | None = None,
    stream: wp.Stream | None = None,
) -> None:
    """Run `kernel(first, *inputs, *outputs)` for indices 0 … dim-1.

    Args:
        dim: number of indices; 0 is fine.
        device: where the arrays are.
        grain: smallest number of indices worth a thread.
        threads: CPU threads; None means `thread_count()`. 1 keeps the whole range on the caller's thread, in order.
        stream: on CUDA, another one than that of the device (`side_stream`).
    """
    if dim <= 0:
        return
    arguments = [*inputs, *outputs]
    if device.is_cuda:
        load(kernel, device)
        target: dict[str, Any] = {"device": device} if stream is None else {"stream": stream}
        wp.launch(kernel, dim, [0, *arguments], record_tape=False, block_dim=BLOCK, **target)
        return
    run_phases([[PreparedLaunch(kernel, arguments, device, dim=dim, grain=grain)]], threads)


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
    run_phases(
        [[PreparedLaunch(kernel, arguments, device, dim=dim, grain=grain)] for kernel, dim, arguments in launches]
    )


def side_stream(owner: object, device: wp.Device) -> wp.Stream:
    """A stream that only `owner` has, until it is gone."""
    with _turn:
        free = _free[device.alias]
        stream = free.pop() if free else wp.Stream(device)
    weakref.finalize(owner, free.append, stream).atexit = False
    return stream


@contextmanager
def beside(device: wp.Device, stream: wp.Stream) -> Iterator[wp.Stream]:
    """What is launched in the stream within comes after all that the device was given before, and before what follows.

    Whatever is raised within, the device waits for it: a capture ends with all that it has begun.
    """
    stream.wait_stream(device.stream)
    try:
        yield stream
    finally:
        device.stream.wait_stream(stream)


def captured(device: wp.Device, work: Callable[[], object], **options: Any) -> wp.Graph:
    """What some work launches, as a graph; two threads never capture at once. Its kernels are loaded."""
    with _capturing, wp.ScopedCapture(device, **options) as capture:
        work()
    return capture.graph
