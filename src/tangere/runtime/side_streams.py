"""Streams beside the one of a CUDA device, for launches that may go side by side there.

Question: whose stream does a launch go to, where several threads use one device and what owns a stream is freed
          anywhere, even while a graph is captured?
Method:   nobody ever sets the stream of a device: launches are told theirs. Streams are lent, and taken back when
          whoever borrowed them is gone; none is destroyed as long as the process lives.
Sound:    Warp keeps its streams in a table without a lock, and looks into it whenever the stream of a device is set and
          a capture begins: a stream that comes or goes in another thread just then may be lost there, with others.
Known as: a pool of streams.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import warp as wp

#: By device: streams that nobody has.
_free: defaultdict[str, list[wp.Stream]] = defaultdict(list)
_turn, _capturing = threading.Lock(), threading.RLock()


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
