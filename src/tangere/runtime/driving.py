"""Shards of launches on CPU, taken from a queue by compiled code, with helpers that do without the interpreter.

A Python thread that wakes up waits for the interpreter lock first, one thread after the other, some 40 us each. So
helpers live in compiled code (`_serve`): they sleep on semaphores there and are woken from there, each waking half of
those that are still wanted. Nobody waits for a helper to wake up, only for shards that are under way: a late one finds
everything done. Programs stay in memory until the last helper that was called for them has let go.

The shards of a phase wait in as many queues as there are threads. Each thread begins with its own, which holds the same
part of every phase and of every run, so that what it reads is mostly what it wrote; then it goes on with the next.

It takes a sleeping thread some fifty microseconds to wake up, so a helper looks out for another program for a while
before it sleeps: the launches of one step follow each other closely. At first it keeps its core; then, as long again,
it lets anybody else run. Where there are more threads than cores it sleeps at once.

Semaphores are those of Linux. Elsewhere threads of the interpreter (`workers`) run the same program.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import warp as wp

from tangere.runtime.kernels import SOUND, load
from tangere.runtime.packing import LARGEST_BLOCK, Packed, Recorded
from tangere.runtime.threads import core_count
from tangere.runtime.workers import wake

wp.set_module_options(SOUND)

__all__ = ["Cut", "Program"]

#: How often a thread looks whether the others are done before it lets somebody else run: some 20 us.
LOOKS = 1000
#: How long a helper stays awake for another program [ns]; half of that on its core.
AWAKE = 100_000
#: The largest number of helpers.
MOST_HELPERS = 256
#: Numbers of the beginning of a program, of each phase, each of its queues; of the beginning of a pool, of each helper.
_BEGIN, _PHASE, _QUEUE, _POOL, _HELPER = 8, 8, 8, 8, 16
#: Where a program says how many helpers look at it, and a phase how many of its shards are done, and how many it has.
_USERS, _DONE, _SHARDS = 1, 0, 1
#: Where a program says where its pool is.
_PLACE = 2


class Cut(NamedTuple):
    """A launch and its shards."""

    packed: Packed
    dim: int  #: number of indices
    size: int  #: indices of a shard, except perhaps the last
    shards: int
    counted: int = 0  #: if not 0 the address of an int64: the number of indices, known when the phase begins


class Program:
    """Launches in phases, to be run again and again by one caller at a time: the shards of a phase in any order, then
    those of the next, on up to `threads` threads.
    """

    def __init__(self, phases: Sequence[Sequence[Cut]], threads: int) -> None:
        self._phases = phases  # keeps arguments
        numbers: list[int] = []
        launches: list[int] = []
        count = most = 0
        for phase in phases:
            shards = sum(cut.shards for cut in phase)
            numbers += [0, shards, count, 0, 0, 0, 0, 0]
            for cut in phase:
                launches += [*cut.packed.address, *cut[1:]]
            count, most = count + len(phase), max(most, shards)
        awake = AWAKE if threads <= core_count() else 0
        self._threads, self._helpers = threads, min(threads, most) - 1
        queues = min(self._helpers, MOST_HELPERS) + 1
        numbers = [
            len(phases),
            0,
            0,
            awake,
            queues,
            0,
            0,
            0,
            *numbers,
            *[0] * (len(phases) * queues * _QUEUE),
            *launches,
        ]
        self._fresh = (ctypes.c_int64 * len(numbers))(*numbers)
        self._run: _Run | None = None

    def run(self) -> None:
        """Run it once."""
        pool = _pool.with_helpers(min(self._threads - 1, MOST_HELPERS)) if self._helpers > 0 else 0
        self._fresh[_PLACE] = pool
        run = self._run
        by_python = self._helpers > 0 and not pool
        if run is None or run.numbers[_USERS] or by_python:
            run = self._run = _Run(self._fresh, self._helpers if pool else 0)
        else:
            run.begin_anew(self._fresh)
        _pool.keep(run)
        if by_python:
            wake(run.work, self._helpers, self._threads - 1)
        try:
            run.work()
        finally:
            run.active = False


class _Run:
    """Phases as compiled code reads them. A late helper finds its own done: as long as it may look, they stay so."""

    def __init__(self, fresh: Any, helpers: int) -> None:
        self.active = False
        self.numbers = type(fresh).from_buffer_copy(fresh)
        self._last = _PHASE * (fresh[0] - 1) + _BEGIN
        self._drive = Recorded(_drive, [ctypes.addressof(self.numbers), helpers], _cpu(_drive)).packed

    def begin_anew(self, fresh: Any) -> None:
        """Make nothing done again, when nobody looks."""
        ctypes.memmove(self.numbers, fresh, ctypes.sizeof(fresh))

    def work(self) -> None:
        """Take shards until all are done."""
        numbers, last = self.numbers, self._last
        self._drive.launch(1, 0)
        while numbers[last + _DONE] < numbers[last + _SHARDS]:
            time.sleep(0)
            self._drive.launch(1, 0)


class _Pool:
    """The helpers of this process."""

    def __init__(self) -> None:
        self._numbers = (ctypes.c_int64 * (_POOL + MOST_HELPERS * _HELPER))()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._numbers))  # helpers look at it until the process has ended
        self._changing, self._kept = threading.Lock(), []
        if sys.platform == "linux":
            self._library = ctypes.CDLL(None)
            for k, name in enumerate(("sem_post", "sem_wait", "sched_yield", "clock_gettime"), start=1):
                self._numbers[k] = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def with_helpers(self, count: int) -> int:
        """The address of the pool, with at least so many helpers in it; 0 where there can be none."""
        address = ctypes.addressof(self._numbers)
        if not self._numbers[1]:
            return 0
        if self._numbers[0] < count:
            with self._changing:
                for k in range(self._numbers[0], count):
                    semaphore = ctypes.c_void_p(address + 8 * (_POOL + k * _HELPER))
                    self._library.sem_init(semaphore, 0, 0)
                    serve = Recorded(_serve, [address, semaphore.value], _cpu(_serve)).packed
                    threading.Thread(target=serve.launch, args=(1, 0), name=f"tangere-{k}", daemon=True).start()
                    self._numbers[0] = k + 1
        return address

    def keep(self, run: _Run) -> None:
        """Hold what is about to begin until no helper looks at it any more, even if the user interrupts."""
        run.active = True
        with self._changing:
            self._kept = [each for each in {*self._kept, run} if each.active or each.numbers[_USERS]]


def _cpu(kernel: wp.Kernel) -> wp.Device:
    device = wp.get_device("cpu")
    load(kernel, device)
    return device


def _forget() -> None:
    """In a forked process, which has none of the threads."""
    global _pool
    _pool = _Pool()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

_PAUSE = """
    #if defined(__x86_64__)
    __builtin_ia32_pause();
    #endif
"""
_DRIVING = f"""
    typedef long long Number;
    struct Bounds {{ unsigned shape; unsigned long long size, repeats; }};
    struct Launch {{
        void (*run)(void*, void*);
        const int* block;
        Number length, places, dim, size, shards;
        const Number* counted;
    }};
    struct Phase {{ Number done, shards, begin, unused[{_PHASE} - 3]; }};
    struct Queue {{ Number next, unused[{_QUEUE} - 1]; }};
    struct Helper {{
        char semaphore[64];
        Number state;
        struct Program* program;
        Number share, unused[{_HELPER} - 11];
    }};
    enum State : Number {{ looking, asleep, chosen, called }};
    typedef int Status;  // Warp has a macro `int(`
    struct Pool {{
        Number helpers;
        Status (*post)(void*), (*wait)(void*), (*yield)(), (*clock)(Status, Number*);
        Number unused[{_POOL} - 5];
    }};
    struct Program {{ Number phases, users; Pool* pool; Number awake, queues, unused[{_BEGIN} - 5]; }};
""" + """
    auto recruit = [](Program* program, Number wanted) {
        if (wanted <= 0)
            return;
        Pool* pool = program->pool;
        Helper* helper = (Helper*)(pool + 1);
        for (Number k = __atomic_load_n(&pool->helpers, __ATOMIC_ACQUIRE); k > 0 && wanted > 0; --k, ++helper) {
            Number state = __atomic_load_n(&helper->state, __ATOMIC_RELAXED);
            if (state > asleep || !__atomic_compare_exchange_n(
                    &helper->state, &state, chosen, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                continue;
            const Number share = (wanted + 1) / 2;
            __atomic_fetch_add(&program->users, 1, __ATOMIC_RELAXED);
            helper->program = program;
            helper->share = share - 1;
            __atomic_store_n(&helper->state, called, __ATOMIC_RELEASE);
            if (state == asleep)
                pool->post(helper->semaphore);
            wanted -= share;
        }
    };
    auto drive = [](Program* program, Number own) {
        Phase* phases = (Phase*)(program + 1);
        const Number queues = program->queues;
        Queue* queue = (Queue*)(phases + program->phases);
        const Launch* launches = (const Launch*)(queue + program->phases * queues);
        alignas(16) int block[LARGEST];
        for (Phase* phase = phases; phase < phases + program->phases; ++phase, queue += queues) {
            Number mine = 0;  // added to what is done at once: a number that all threads write costs as much as a shard
            for (Number turn = 0; turn < queues;) {
                const Number at = (own + turn) % queues;
                const Number begin = phase->shards * at / queues, end = phase->shards * (at + 1) / queues;
                Number* next = &queue[at].next;
                Number shard = end;
                if (__atomic_load_n(next, __ATOMIC_RELAXED) < end - begin)
                    shard = begin + __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
                if (shard >= end) {
                    ++turn;
                    continue;
                }
                const Launch* launch = launches + phase->begin;
                for (; shard >= launch->shards; ++launch)
                    shard -= launch->shards;
                Number dim = launch->dim, size = launch->size;
                if (launch->counted) {
                    dim = *launch->counted;
                    const Number even = (dim + launch->shards - 1) / launch->shards;
                    size = even > size ? even : size;
                }
                const Number first = shard * size, left = dim - first;
                if (left > 0) {
                    const unsigned indices = left < size ? left : size;
                    for (Number k = 0; k < launch->length; ++k)
                        block[k] = launch->block[k];
                    block[0] = (int)first;
                    if (launch->places > 1)
                        block[1] = (int)shard;
                    Bounds bounds = {indices, indices, 1};
                    launch->run(&bounds, block);
                }
                ++mine;
            }
            if (mine > 0)
                __atomic_fetch_add(&phase->done, mine, __ATOMIC_RELEASE);
            for (int looks = 0; __atomic_load_n(&phase->done, __ATOMIC_ACQUIRE) < phase->shards; ++looks) {
                if (looks > LOOKS) {
                    if (!program->pool)
                        return;
                    program->pool->yield();
                    looks = 0;
                }
                PAUSE
            }
        }
    };
""".replace("LOOKS", str(LOOKS)).replace("LARGEST", str(LARGEST_BLOCK // 4)).replace("PAUSE", _PAUSE)


@wp.func_native(
    _DRIVING
    + """
    recruit((Program*)program, helpers);
    drive((Program*)program, 0);
"""
)
def drive(program: wp.uint64, helpers: int):
    """Wake helpers and take shards with them until all are done; without a pool, until others take long over theirs."""
    ...


@wp.func_native(
    _DRIVING
    + """
    Helper* me = (Helper*)helper;
    Pool* pool = (Pool*)place;
    auto state = [&]() -> Number { return __atomic_load_n(&me->state, __ATOMIC_ACQUIRE); };
    auto now = [&]() -> Number {
        Number time[2];
        pool->clock(1, time);
        return 1000000000 * time[0] + time[1];
    };
    for (Number most = 0;;) {
        const Number begin = now();
        for (int looks = 0; state() == looking; ++looks) {
            if (looks % 16 == 0) {
                const Number awake = now() - begin;
                Number expected = looking;
                if (awake >= most && __atomic_compare_exchange_n(
                        &me->state, &expected, asleep, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                    while (pool->wait(me->semaphore) != 0)
                        ;
                else if (2 * awake > most)
                    pool->yield();
            }
            PAUSE
        }
        while (state() != called) {
            PAUSE
        }
        Program* program = me->program;
        recruit(program, me->share);
        drive(program, 1 + (me - (Helper*)(pool + 1)));
        most = program->awake;
        __atomic_fetch_sub(&program->users, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&me->state, looking, __ATOMIC_RELEASE);
    }
""".replace("PAUSE", _PAUSE)
)
def serve(place: wp.uint64, helper: wp.uint64):
    """Help with one program after the other."""
    ...


@wp.kernel
def _drive(first: int, program: wp.uint64, helpers: int):
    drive(program, helpers)


@wp.kernel
def _serve(first: int, pool: wp.uint64, helper: wp.uint64):
    serve(pool, helper)
