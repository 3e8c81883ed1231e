"""Threads that go through one kernel together, phase after phase, with no interpreter in between (CPU).

A sweep of the solver is a dozen short phases, each of which needs the one before. As launches of their own they would
not be worth a second thread, which takes longer to wake than they last. So all threads of a team run the same kernel:

    chunk = take_chunk(counters, phase)
    while chunk < chunks:
        ...
        chunk = next_chunk(counters, phase)
    if not wait_until_done(counters, phase, chunks):
        return

Chunks are taken by whoever is free, and what a chunk does must not depend on who takes it: then the bits are the same
for any number of threads. Nobody waits for a chunk that nobody has taken, so a thread that comes late, or not at all,
finds its work done by others. On a machine too busy to let all run at once, who waits for long leaves the kernel, lets
somebody else run, and comes again: all phases before are then found done. The counters are a row of `COUNTER_ROW`
numbers for each phase, all zero at first.
Known as: a team of threads with barriers, as OpenMP has them, and dynamic scheduling.
"""

from __future__ import annotations

import time

import warp as wp

from tangere.runtime import PreparedLaunch, run_shards

#: Numbers in a row of the board, a cache line: chunks taken, chunks done, and room.
COUNTER_ROW = 16
#: Looks at the board before a thread leaves: some 50 us, as long as a dozen phases take.
SPIN_LIMIT = 1000


def run_team(kernel: PreparedLaunch, counters: wp.array, chunks: int, members: int) -> None:
    """Run a kernel on up to so many threads until all chunks of its last phase, that of the board, are done."""
    last = counters.numpy()[-1]

    def work(shard: int, first: int, count: int) -> None:
        kernel.launch(count, first)
        while last[1] < chunks:
            time.sleep(0)
            kernel.launch(count, first)

    run_shards(work, [(member, 1) for member in range(members)], members)


@wp.func_native(
    f"""
    return __atomic_fetch_add(&counters.data[{COUNTER_ROW} * phase], 1, __ATOMIC_RELAXED);
"""
)
def take_chunk(counters: wp.array2d[int], phase: int) -> int:
    """A chunk nobody has taken; too large a number when there is none left."""
    ...


@wp.func_native(
    f"""
    int* row = &counters.data[{COUNTER_ROW} * phase];
    __atomic_fetch_add(row + 1, 1, __ATOMIC_RELEASE);
    return __atomic_fetch_add(row, 1, __ATOMIC_RELAXED);
"""
)
def next_chunk(counters: wp.array2d[int], phase: int) -> int:
    """The same, after the one taken before is done."""
    ...


@wp.func_native(
    f"""
    const int* done = &counters.data[{COUNTER_ROW} * phase + 1];
    for (int waited = 0; __atomic_load_n(done, __ATOMIC_ACQUIRE) < chunks; ++waited) {{
        if (waited > {SPIN_LIMIT})
            return false;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        for (volatile int k = 0; k < 32; ++k) {{
        }}
#endif
    }}
    return true;
"""
)
def wait_until_done(counters: wp.array2d[int], phase: int, chunks: int) -> bool:
    """Wait until all chunks of a phase are done: what they wrote can then be read. False: it took too long."""
    ...
