"""One big query by several CPU threads.

Method: best-first on one thread for the first pairs; most queries end there. What is left is dealt out in the order of
        the heap, each thread searches its part depth-first and shares its earliest time with the others. Because a
        bound only drops later pairs and ties go to the smallest triangles, the answer has the same bits for any number.
Known as: parallel branch and bound with a shared incumbent.
"""

from __future__ import annotations

import numpy as np

from tangere.query.first_contact.rigid.query_batch import BEST_FIRST, LINE, PreparedSearch, RigidQueryBatch
from tangere.runtime import run_shards


def search_shared(batch: RigidQueryBatch, threads: int) -> None:
    """Search the only query of `batch` with `threads` CPU threads, for a contact not after the time of its hit."""
    if threads == 1:
        alone = batch.searches.get(1)
        if alone is None:
            alone = batch.searches[1] = PreparedSearch(batch, 1, pops=BEST_FIRST)
        alone.launch(1, 0, 0)
        return
    opening = batch.searches.get("opening")
    if opening is None:
        opening = batch.searches["opening"] = PreparedSearch(batch, 1, pops=BEST_FIRST, stop=True)
    best = batch.host_hits[:1]
    opening.launch(1, 0, 0)
    left = int(batch.host_counters[0, 4])
    if not left:
        return
    front = opening.scratch.numpy()[opening.head :][: 2 * left].reshape(left, 2)
    front = front[np.argsort(front[:, 0], kind="stable")]  # by time, the smaller first
    shares = batch.searches.get(("shares", threads))
    if shares is None:
        shares = PreparedSearch(batch, threads, pops=0, heap=BEST_FIRST * 3 // threads + 8, sharing=True)
        batch.searches["shares", threads] = shares
    shares.hits.numpy()[:] = best[0]
    shares.shared.numpy()[::LINE] = best["time"][0]
    rows = shares.scratch.numpy().reshape(threads, shares.room)
    for thread in range(threads):
        share = front[thread::threads]
        rows[thread, shares.head : shares.head + share.size] = share.ravel()
        shares.loaded.numpy()[thread] = len(share)
    working = [(thread, 1) for thread in range(min(threads, len(front)))]
    run_shards(lambda shard, first, count: shares.launch(count, first, shard), working, threads)
    found = shares.hits.numpy()[: len(working)]
    best[0] = found[np.lexsort((found["b"], found["a"], found["pierced"] < 0, found["time"]))[0]]
    counted = shares.counters.numpy()[: len(working)].sum(axis=0)
    batch.host_counters[0, :4] += counted[:4]
