"""What threads do with a program of launches, in compiled code: take shards, start phases, help, spin and park.

A program is a block of numbers, which `program` writes: its beginning, its phases, the queues of each phase, and its
launches. The shards of a phase wait in as many queues as there are threads. Each thread begins with its own, which
holds the same part of every launch and of every run, so that what it reads is mostly what it wrote; then it goes on
with the next (work stealing). Whoever does the last shard of a phase starts the next one. Phases of a single shard, or
of none, it goes through on its own: nobody meets for them.

It takes a parked thread some fifty microseconds to wake up, so a helper spins for a while, waiting for another program,
before it parks: the launches of one step follow each other closely. At first it keeps its core; then, as long again, it
yields to anybody else.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime.argument_block import LARGEST_BLOCK
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Numbers of the beginning of a program, of each phase, each of its queues, each launch; of the beginning of a pool, of
#: each helper. None that a thread writes often shares 64 bytes with another.
BEGIN, PHASE, QUEUE, LAUNCH, POOL, HELPER = 16, 8, 8, 16, 8, 16
#: Where a program says which phase is open.
OPEN = 8
#: How often a thread looks whether the others are done before it lets somebody else run: some 20 us.
SPINS = 1000

_PAUSE = """
    #if defined(__x86_64__)
    __builtin_ia32_pause();
    #endif
"""
_WORKER_CODE = f"""
    typedef long long Number;
    struct Bounds {{ unsigned shape; unsigned long long size, repeats; }};
    struct Launch {{
        void (*run)(void*, void*);
        const int* block;
        Number length, places, dim, size, shards;
        const Number* counted;
        Number share, rest, turn, unused[{LAUNCH} - 11];
    }};
    struct Phase {{ Number done, shards, begin, launches, unused[{PHASE} - 4]; }};
    struct Queue {{ Number next, unused[{QUEUE} - 1]; }};
    struct Helper {{
        char semaphore[64];
        Number state;
        struct Program* program;
        Number share, number, unused[{HELPER} - 12];
    }};
    enum State : Number {{ spinning, parked, claimed, called }};
    typedef int Status;  // Warp has a macro `int(`
    struct Pool {{
        Number helpers;
        Status (*post)(void*), (*wait)(void*), (*yield)(), (*clock)(Status, Number*);
        Number unused[{POOL} - 5];
    }};
    struct Program {{
        Number phases, users;
        Pool* pool;
        Number spin_time, queues, unused[{OPEN} - 5], open, rest[{BEGIN} - {OPEN} - 1];
    }};
""" + """
    // The helper in place n - 1 has number n if it can, so that a thread does its part of one program after the other.
    auto wake_helpers = [](Program* program, Number wanted, Number number) {
        if (wanted <= 0)
            return;
        Pool* pool = program->pool;
        const Number all = __atomic_load_n(&pool->helpers, __ATOMIC_ACQUIRE);
        for (Number tried = 0; tried < all && wanted > 0; ++tried) {
            Helper* helper = (Helper*)(pool + 1) + (number - 1 + tried) % all;
            Number state = __atomic_load_n(&helper->state, __ATOMIC_RELAXED);
            if (state > parked || !__atomic_compare_exchange_n(
                    &helper->state, &state, claimed, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                continue;
            const Number share = (wanted + 1) / 2;
            __atomic_fetch_add(&program->users, 1, __ATOMIC_RELAXED);
            helper->program = program;
            helper->share = share - 1;
            helper->number = number;
            __atomic_store_n(&helper->state, called, __ATOMIC_RELEASE);
            if (state == parked)
                pool->post(helper->semaphore);
            wanted -= share;
            number += share;
            tried = -1;
        }
    };
    // What a thread does: it has a number, and the arguments of a launch at hand.
    struct Worker {
        Program* program;
        Number number;
        const Launch* held;
        alignas(16) int block[LARGEST];

        Phase* phases() { return (Phase*)(program + 1); }
        Queue* queues() { return (Queue*)(phases() + program->phases); }
        Launch* launches() { return (Launch*)(queues() + program->phases * program->queues); }

        void run(const Launch* launch, Number shard) {
            if (launch != held)
                for (Number k = 0; k < launch->length; ++k)
                    block[k] = launch->block[k];
            held = launch;
            const Number first = shard * launch->size, left = launch->dim - first;
            const unsigned indices = left < launch->size ? left : launch->size;
            const Number leading[3] = {first, shard, number};
            for (Number k = 0; k < launch->places; ++k)
                block[k] = leading[k];
            Bounds bounds = {indices, indices, 1};
            launch->run(&bounds, block);
        }

        // Start the phase after this one, or after those of one shard, which are done at once, and of none.
        void start_phase_after(Number k) {
            for (++k; k < program->phases; ++k) {
                Phase* phase = phases() + k;
                Launch* begin = launches() + phase->begin;
                const Launch* last = begin;
                Number turn = 0;
                for (Launch* launch = begin; launch < begin + phase->launches; ++launch) {
                    if (launch->counted) {
                        launch->dim = *launch->counted;
                        const Number even = (launch->dim + launch->shards - 1) / launch->shards;
                        launch->size = even > launch->size ? even : launch->size;
                        launch->shards = (launch->dim + launch->size - 1) / launch->size;
                    }
                    launch->share = launch->shards / program->queues;
                    launch->rest = launch->shards % program->queues;
                    launch->turn = turn;
                    turn = (turn + launch->rest) % program->queues;
                    phase->shards += launch->shards;
                    last = launch->shards ? launch : last;
                }
                if (phase->shards > 1)
                    break;
                if (phase->shards == 1)
                    run(last, 0);
            }
            __atomic_store_n(&program->open, k, __ATOMIC_RELEASE);
        }

        // The first shard of a launch in a queue: all have the same share, and some one more, by turns.
        Number first_in(const Launch* launch, Number from) {
            const Number beyond = launch->turn + launch->rest - program->queues, again = beyond > 0 ? beyond : 0;
            const Number late = from - launch->turn, most = launch->rest - again;
            return from * launch->share + (from < again ? from : again) + (late < 0 ? 0 : late < most ? late : most);
        }

        // Take shards of a phase from the queues and run them; how many.
        Number run_shards_of(Number k) {
            const Phase* phase = phases() + k;
            const Launch* begin = launches() + phase->begin;
            Number taken = 0;
            for (Number turn = 0; turn < program->queues; ++turn) {
                const Number from = (number + turn) % program->queues;
                auto part = [&](const Launch* launch) { return first_in(launch, from + 1) - first_in(launch, from); };
                Number all = 0, before = 0;
                for (const Launch* launch = begin; launch < begin + phase->launches; ++launch)
                    all += part(launch);
                Number* next = &queues()[k * program->queues + from].next;
                for (const Launch* launch = begin; __atomic_load_n(next, __ATOMIC_RELAXED) < all; ++taken) {
                    const Number at = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
                    if (at >= all)
                        break;
                    for (; at - before >= part(launch); ++launch)
                        before += part(launch);
                    run(launch, first_in(launch, from) + at - before);
                }
            }
            return taken;
        }

        void work() {
            for (Number k; (k = __atomic_load_n(&program->open, __ATOMIC_ACQUIRE)) < program->phases;) {
                if (k >= 0) {
                    // Added at once: a number that all threads write costs as much as a shard.
                    const Number taken = run_shards_of(k);
                    if (taken > 0 && phases()[k].shards == taken + __atomic_fetch_add(
                            &phases()[k].done, taken, __ATOMIC_ACQ_REL)) {
                        start_phase_after(k);
                        continue;
                    }
                }
                for (Number spins = 0; __atomic_load_n(&program->open, __ATOMIC_ACQUIRE) == k; ++spins) {
                    if (spins > SPINS) {
                        if (!program->pool)
                            return;
                        program->pool->yield();
                        spins = 0;
                    }
                    PAUSE
                }
            }
        }
    };
""".replace("SPINS", str(SPINS)).replace("LARGEST", str(LARGEST_BLOCK // 4)).replace("PAUSE", _PAUSE)


@wp.func_native(
    _WORKER_CODE
    + """
    Worker me;
    me.program = (Program*)program;
    me.number = number;
    me.held = nullptr;
    if (number == 0 && me.program->open < 0) {
        me.start_phase_after(-1);
        if (me.program->open < me.program->phases)
            wake_helpers(me.program, helpers, 1);
    }
    me.work();
"""
)
def work_on_program(number: int, program: wp.uint64, helpers: int):
    """Wake helpers and take shards with them until all are done; without a pool, until others take long over theirs."""
    ...


@wp.func_native(
    _WORKER_CODE
    + """
    Helper* me = (Helper*)helper;
    Pool* pool = (Pool*)place;
    auto state = [&]() -> Number { return __atomic_load_n(&me->state, __ATOMIC_ACQUIRE); };
    auto now = [&]() -> Number {
        Number time[2];
        pool->clock(1, time);
        return 1000000000 * time[0] + time[1];
    };
    Worker worker;
    for (Number most = 0;;) {
        const Number begin = now();
        for (int spins = 0; state() == spinning; ++spins) {
            if (spins % 16 == 0) {
                const Number spin_time = now() - begin;
                Number expected = spinning;
                if (spin_time >= most && __atomic_compare_exchange_n(
                        &me->state, &expected, parked, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                    while (pool->wait(me->semaphore) != 0)
                        ;
                else if (2 * spin_time > most)
                    pool->yield();
            }
            PAUSE
        }
        while (state() != called) {
            PAUSE
        }
        Program* program = me->program;
        wake_helpers(program, me->share, me->number + 1);
        worker.program = program;
        worker.number = me->number;
        worker.held = nullptr;
        worker.work();
        most = program->spin_time;
        __atomic_fetch_sub(&program->users, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&me->state, spinning, __ATOMIC_RELEASE);
    }
""".replace("PAUSE", _PAUSE)
)
def help_with_programs(place: wp.uint64, helper: wp.uint64):
    """Help with one program after the other."""
    ...


@wp.kernel
def run_program(first: int, program: wp.uint64, helpers: int):
    """Run a program as the thread of number `first`; 0 begins it."""
    work_on_program(first, program, helpers)


@wp.kernel
def run_helper(first: int, pool: wp.uint64, helper: wp.uint64):
    help_with_programs(pool, helper)
