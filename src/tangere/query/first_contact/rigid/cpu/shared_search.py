"""One big query by several CPU threads.

Method: best-first on one thread for the first pairs; most queries end there. What is left is dealt out in the order of
        the heap, each thread searches its part depth-first and shares its earliest time with the others. Because a
        bound only drops later pairs and ties go to the smallest triangles, the answer has the same bits for any number.
Known as: parallel branch and bound with a shared incumbent.
"""

from __future__ import annotations

import numpy as np

from tangere.query.first_contact.rigid.query_batch import LINE, PreparedSearch, RigidQueryBatch
from tangere.query.first_contact.rigid.traversal import NO_HIT, NO_TRIANGLE
from tangere.runtime import run_shards

#: Candidates taken best-first before the rest is shared. Shares of equal weight need a few hundred; waking a thread
#: costs as much as a thousand, so a search that ends soon after is better off alone.
BEFORE_SHARING = 2048


def search_shared(batch: RigidQueryBatch, threads: int) -> None:
    """Search the only query of `batch` with `threads` CPU threads, for a contact not after the time of its hit."""
    opening = batch.searches.get("opening")
    if opening is None:
        opening = batch.searches["opening"] = PreparedSearch(batch, 1, pops=BEFORE_SHARING, stop=True)
    best = batch.host_hits[:1]
    opening.launch(1, 0, 0)
    left = int(batch.host_counters[0, 4])
    if not left:
        return
    front = opening.candidates.numpy()[:left]
    front = front[front["time"] <= best["time"][0]]
    if not len(front):
        if best["a"][0] == NO_TRIANGLE:  # a limit is no contact
            best[0] = NO_HIT[0]
        return
    front = front[np.lexsort((-front["size"], front["time"]))]
    shares = batch.searches.get(("shares", threads))
    if shares is None:
        heap = BEFORE_SHARING // threads + 2
        shares = batch.searches["shares", threads] = PreparedSearch(batch, threads, pops=0, heap=heap, sharing=True)
    shares.queries.numpy()[:] = batch.queries.numpy()[0]
    shares.hits.numpy()[:] = best[0]
    shares.shared.numpy()[::LINE] = best["time"][0]
    rows = shares.candidates.numpy().reshape(threads, shares.room)
    for thread in range(threads):
        share = front[thread::threads]
        rows[thread, : len(share)] = share
        shares.loaded.numpy()[thread] = len(share)
    working = [(thread, 1) for thread in range(min(threads, len(front)))]
    run_shards(lambda shard, first, count: shares.launch(count, first, shard), working, threads)
    found = shares.hits.numpy()[: len(working)]
    best[0] = found[np.lexsort((found["b"], found["a"], found["pierced"] < 0, found["time"]))[0]]
    counted = shares.counters.numpy()[: len(working)].sum(axis=0)
    batch.host_counters[0, :4] += counted[:4]
