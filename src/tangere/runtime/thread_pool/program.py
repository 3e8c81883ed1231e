"""Programs of launches on CPU: phases of shards that the caller and the helpers of a thread pool take from queues.

Question: how are many launches, some of which depend on others, run by several threads with little said between them?
Method:   a program is a block of numbers that compiled code (`native`) walks through: threads take shards of a phase
          from queues, their own first, and whoever ends the last one starts the next phase. A Python thread that wakes
          up waits for the interpreter lock first, one thread after the other, some 40 us each; so helpers live in
          compiled code: they park on semaphores there and are woken from there, each waking half of those still wanted.
          Nobody waits for a helper to wake up, only for shards that are under way: a late one finds everything done.
          Where there are more threads than cores a helper parks as soon as it is done; else it spins for a while.
Sound:    programs stay in memory until the last helper that was called for them has let go.
Known as: a fork-join thread pool with work stealing, spin-then-park waiting and a dataflow of barriers.

Semaphores are those of Linux. Elsewhere threads of the interpreter (`helpers`) run the same program.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from array import array
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import warp as wp

from tangere.runtime.argument_block import ArgumentBlock, pack
from tangere.runtime.thread_pool.helpers import submit
from tangere.runtime.thread_pool.native import HELPER, LAUNCH, OPEN, POOL, QUEUE, run_helper, run_program
from tangere.runtime.threads import core_count
from tangere.runtime.warp_setup import load

#: How long a helper spins, waiting for another program, before it parks [ns]; half of that on its core.
SPIN_TIME = 200_000
#: The largest number of helpers.
MOST_HELPERS = 256
#: Where a program says how many phases it has, how many helpers hold it, and where its pool is.
_PHASES, _USERS, _PLACE = 0, 1, 2


class ShardedLaunch(NamedTuple):
    """A launch and its shards."""

    block: ArgumentBlock
    dim: int  #: number of indices
    size: int  #: indices of a shard, except perhaps the last
    shards: int
    counted: int = 0  #: if not 0 the address of an int64: the number of indices, known when the phase begins


class Program:
    """Launches in phases, to be run again and again by one caller at a time: the shards of a phase in any order, then
    those of the next, on up to `threads` threads.
    """

    def __init__(self, phases: Sequence[Sequence[ShardedLaunch]], threads: int) -> None:
        self._phases = phases  # keeps arguments
        most = max((sum(launch.shards for launch in phase) for phase in phases), default=0)
        self._threads, self._helpers = threads, min(threads, most, MOST_HELPERS + 1) - 1
        queues = max(self._helpers, 0) + 1
        numbers = [len(phases), 0, 0, SPIN_TIME if threads <= core_count() else 0, queues, 0, 0, 0, -1, *[0] * 7]
        launches: list[int] = []
        for phase in phases:
            numbers += [0, 0, len(launches) // LAUNCH, len(phase), 0, 0, 0, 0]
            for launch in phase:
                launches += [*launch.block.address, *launch[1:], *[0] * (LAUNCH - 8)]
        numbers += [*[0] * (len(phases) * queues * QUEUE), *launches]
        self._initial = array("q", numbers)
        self._run: _Run | None = None

    def run(self) -> None:
        """Run it once."""
        pool = _pool.with_helpers(min(self._threads - 1, MOST_HELPERS)) if self._helpers > 0 else 0
        self._initial[_PLACE] = pool
        run = self._run
        by_python = self._helpers > 0 and not pool
        if run is None or run.numbers[_USERS] or by_python:
            run = self._run = _Run(self._initial, self._helpers if pool else 0, self._phases)
        else:
            run.restart(self._initial)
        _pool.keep(run)
        if by_python:
            submit(run.help, self._helpers, self._threads - 1)
        interrupted, done = None, False
        try:
            while not done:
                try:
                    run.work(0)
                    done = True
                except KeyboardInterrupt as interrupt:  # others write to arrays of the caller until all is done
                    interrupted = interrupt
        finally:  # a second interrupt may get out while others still write: arrays stay until they are done
            run.active = False
        if interrupted is not None:
            raise interrupted


class _Run:
    """Phases as compiled code reads them. A late helper finds its own done: while it may read them, they stay so."""

    def __init__(self, initial: array[int], helpers: int, arguments: object) -> None:
        self.active, self._arguments = False, arguments  # which helpers may read and write
        self.numbers, self._thread_numbers = _aligned(len(initial)), count(1)
        self.restart(initial)
        self._work = pack(run_program, [_address(self.numbers), helpers], _cpu(run_program))
        self.begin = self._work.prepared(1)

    def restart(self, initial: array[int]) -> None:
        """Make nothing done again, when no helper holds it."""
        self.numbers[:] = initial

    def work(self, thread: int) -> None:
        """Take shards until all are done, as the thread of that number: 0 begins."""
        numbers = self.numbers
        if thread == 0:
            self.begin()
        while numbers[OPEN] < numbers[_PHASES]:
            time.sleep(0)
            self._work.launch(1, thread)

    def help(self) -> None:
        """The same as another thread of the interpreter."""
        self.work(next(self._thread_numbers))


class _Pool:
    """The helpers of this process."""

    def __init__(self) -> None:
        self._numbers = _aligned(POOL + MOST_HELPERS * HELPER)
        self._address = _address(self._numbers)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._numbers))  # helpers read it until the process has ended
        self._changing, self._kept = threading.Lock(), []
        if sys.platform == "linux":
            self._library = ctypes.CDLL(None)
            for k, name in enumerate(("sem_post", "sem_wait", "sched_yield", "clock_gettime"), start=1):
                self._numbers[k] = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def with_helpers(self, count: int) -> int:
        """The address of the pool, with at least so many helpers in it; 0 where there can be none."""
        if not self._numbers[1]:
            return 0
        if self._numbers[0] < count:
            with self._changing:
                for k in range(self._numbers[0], count):
                    semaphore = ctypes.c_void_p(self._address + 8 * (POOL + k * HELPER))
                    self._library.sem_init(semaphore, 0, 0)
                    helping = pack(run_helper, [self._address, semaphore.value], _cpu(run_helper))
                    # Counted first: if the user interrupts the start nobody else may have this place.
                    self._numbers[0] = k + 1
                    threading.Thread(target=helping.launch, args=(1, 0), name=f"tangere-{k}", daemon=True).start()
        return self._address

    def keep(self, run: _Run) -> None:
        """Hold what is about to begin until no helper reads it any more, even if the user interrupts."""
        run.active = True
        with self._changing:
            if run not in self._kept:
                self._kept = [run, *(each for each in self._kept if each.active or each.numbers[_USERS])]


def _aligned(count: int) -> memoryview:
    """So many int64, all 0, eight of them in each 64 bytes that cores exchange."""
    room = memoryview(bytearray(8 * (count + 8)))
    begin = -_address(room) % 64
    return room[begin : begin + 8 * count].cast("q")


def _address(numbers: memoryview) -> int:
    return ctypes.addressof(ctypes.c_byte.from_buffer(numbers))


def _cpu(kernel: wp.Kernel) -> wp.Device:
    device = wp.get_device("cpu")
    load(kernel, device)
    return device


def _reset_after_fork() -> None:
    """In a forked process, which has none of the threads."""
    global _pool
    _pool = _Pool()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
