"""Shards of launches on CPU, taken from a queue by compiled code, with helpers that do without the interpreter.

A Python thread that wakes up waits for the interpreter lock first, one thread after the other, some 40 us each. So
helpers live in compiled code (`_serve`): they sleep on semaphores there and are woken from there, each waking half of
those that are still wanted. Nobody waits for a helper to wake up, only for shards that are under way: a late one finds
everything done. Programs stay in memory until the last helper that was woken for them has let go.

Semaphores are those of Linux. Elsewhere threads of the interpreter (`workers`) run the same program.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence

import warp as wp

from tangere.runtime.kernels import SOUND, load
from tangere.runtime.packing import LARGEST_BLOCK, Packed, Recorded
from tangere.runtime.workers import wake

wp.set_module_options(SOUND)

__all__ = ["run_program"]

#: How often a thread looks whether the others are done before it lets somebody else run: some 20 us.
LOOKS = 1000
#: The largest number of helpers.
MOST_HELPERS = 256
#: Numbers of the beginning of a program, and of each phase; of the beginning of a pool, and of each helper.
_BEGIN, _PHASE, _POOL, _HELPER = 8, 8, 8, 16
#: Where a program says how many helpers look at it, and a phase how many of its shards are done, and how many it has.
_USERS, _DONE, _SHARDS = 1, 1, 2

#: A launch: its arguments, the number of indices, how many of them a shard has, and how many shards there are.
Cut = tuple[Packed, int, int, int]


def run_program(phases: Sequence[Sequence[Cut]], threads: int) -> None:
    """Run the shards of all launches of a phase in any order, then those of the next, on up to `threads` threads."""
    numbers: list[int] = []
    launches: list[int] = []
    count = most = 0
    for phase in phases:
        shards = sum(cut[3] for cut in phase)
        numbers += [0, 0, shards, count, 0, 0, 0, 0]
        for packed, dim, size, pieces in phase:
            launches += [*packed.address, dim, size, pieces]
        count, most = count + len(phase), max(most, shards)
    helpers = min(threads, most) - 1
    pool = _pool.with_helpers(min(threads - 1, MOST_HELPERS)) if helpers > 0 else 0
    program = _Program([len(phases), 0, pool, 0, 0, 0, 0, 0, *numbers, *launches], helpers if pool else 0)
    if helpers > 0 and not pool:
        wake(program.work, helpers, threads - 1)
    try:
        program.work()
    finally:  # also when the user interrupts
        _pool.keep(program)


class _Program:
    """Phases as compiled code reads them; every run has one of its own, so that a late helper finds its own done."""

    def __init__(self, numbers: list[int], helpers: int) -> None:
        self.numbers = (ctypes.c_int64 * len(numbers))(*numbers)
        self._last = _PHASE * (numbers[0] - 1) + _BEGIN
        self._drive = Recorded(_drive, [ctypes.addressof(self.numbers), helpers], _cpu(_drive)).packed

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
        self._changing, self._unfinished = threading.Lock(), []
        if sys.platform == "linux":
            self._library = ctypes.CDLL(None)
            for k, name in enumerate(("sem_post", "sem_wait", "sched_yield"), start=1):
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

    def keep(self, program: _Program) -> None:
        """Hold a program that is done until no helper looks at it any more."""
        if program.numbers[_USERS] or self._unfinished:
            with self._changing:
                self._unfinished = [each for each in (*self._unfinished, program) if each.numbers[_USERS]]


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

_DRIVING = f"""
    typedef long long Number;
    struct Bounds {{ unsigned shape; unsigned long long size, repeats; }};
    struct Launch {{ void (*run)(void*, void*); const int* block; Number length, places, dim, size, shards; }};
    struct Phase {{ Number next, done, shards, begin, unused[{_PHASE} - 4]; }};
    struct Helper {{ char semaphore[64]; Number busy; struct Program* program; Number share, unused[{_HELPER} - 11]; }};
    typedef int Status;  // Warp has a macro `int(`
    struct Pool {{
        Number helpers;
        Status (*post)(void*), (*wait)(void*), (*yield)();
        Number unused[{_POOL} - 4];
    }};
    struct Program {{ Number phases, users; Pool* pool; Number unused[{_BEGIN} - 3]; }};
""" + """
    auto recruit = [](Program* program, Number wanted) {
        if (wanted <= 0)
            return;
        Pool* pool = program->pool;
        Helper* helper = (Helper*)(pool + 1);
        for (Number k = __atomic_load_n(&pool->helpers, __ATOMIC_ACQUIRE); k > 0 && wanted > 0; --k, ++helper) {
            if (__atomic_exchange_n(&helper->busy, 1, __ATOMIC_ACQUIRE))
                continue;
            const Number share = (wanted + 1) / 2;
            __atomic_fetch_add(&program->users, 1, __ATOMIC_RELAXED);
            helper->program = program;
            helper->share = share - 1;
            pool->post(helper->semaphore);
            wanted -= share;
        }
    };
    auto drive = [](Program* program) {
        Phase* phases = (Phase*)(program + 1);
        const Launch* launches = (const Launch*)(phases + program->phases);
        alignas(16) int block[LARGEST];
        for (Phase* phase = phases; phase < phases + program->phases; ++phase) {
            while (__atomic_load_n(&phase->next, __ATOMIC_RELAXED) < phase->shards) {
                Number shard = __atomic_fetch_add(&phase->next, 1, __ATOMIC_RELAXED);
                if (shard >= phase->shards)
                    break;
                const Launch* launch = launches + phase->begin;
                for (; shard >= launch->shards; ++launch)
                    shard -= launch->shards;
                const Number first = shard * launch->size, left = launch->dim - first;
                const unsigned indices = left < launch->size ? left : launch->size;
                for (Number k = 0; k < launch->length; ++k)
                    block[k] = launch->block[k];
                block[0] = (int)first;
                if (launch->places > 1)
                    block[1] = (int)shard;
                Bounds bounds = {indices, indices, 1};
                launch->run(&bounds, block);
                __atomic_fetch_add(&phase->done, 1, __ATOMIC_RELEASE);
            }
            for (int looks = 0; __atomic_load_n(&phase->done, __ATOMIC_ACQUIRE) < phase->shards; ++looks) {
                if (looks > LOOKS) {
                    if (!program->pool)
                        return;
                    program->pool->yield();
                    looks = 0;
                }
                #if defined(__x86_64__)
                __builtin_ia32_pause();
                #endif
            }
        }
    };
""".replace("LOOKS", str(LOOKS)).replace("LARGEST", str(LARGEST_BLOCK // 4))


@wp.func_native(
    _DRIVING
    + """
    recruit((Program*)program, helpers);
    drive((Program*)program);
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
    for (;;) {
        while (pool->wait(me->semaphore) != 0)
            ;
        Program* program = me->program;
        recruit(program, me->share);
        drive(program);
        __atomic_fetch_sub(&program->users, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&me->busy, 0, __ATOMIC_RELEASE);
    }
"""
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
