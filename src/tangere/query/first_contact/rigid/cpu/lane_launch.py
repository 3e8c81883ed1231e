"""Searches on CPUs, prepared: every query by itself, or one by several threads.

Method: each thread has a slot of scratch memory; the queries of a batch are shards that threads take. A single query is
        a program of three phases: one thread opens it and is as a rule done; what is left then is dealt out in shares
        that all threads take, each of which goes depth-first and tells the others of its earliest time; the earliest of
        all is the answer. Because a bound only drops later pairs and ties go to the smallest triangles, the answer has
        the same bits for any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.query.first_contact.rigid.cpu.lane_search import (
    HEAD,
    LINE,
    SearchLayout,
    SharedSearch,
    WideTrees,
    join_shares,
    search_lanes,
)
from tangere.query.first_contact.rigid.traversal import COUNTERS, EarliestHit
from tangere.runtime import PreparedLaunch, prepare_phases

if TYPE_CHECKING:
    from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch

#: Pairs taken best-first: beyond, a heap costs more than it saves.
BEST_FIRST = 1000
#: Boxes opened by one thread before a search is shared, some 0.2 ms: waking a thread costs a quarter of that. As long
#: as a search goes best-first it is not shared, for then it may end early, and that must not depend on threads.
OPENING = BEST_FIRST + 1
#: Shares of a long search for each thread.
SHARES = 16
#: Queries worth a thread.
GRAIN = 4


class LaneSearch:
    """The searches of a batch by so many threads."""

    def __init__(self, batch: RigidQueryBatch, threads: int) -> None:
        self._batch, self._threads = batch, threads
        self._trees: Any = WideTrees()
        self._trees.rows_a, self._trees.children_a, self._trees.nodes_a, depth_a = batch.a.wide
        self._trees.rows_b, self._trees.children_b, self._trees.nodes_b, depth_b = batch.b.wide
        self._layout: Any = SearchLayout()
        self._layout.pops, self._layout.jobs = BEST_FIRST, SHARES * threads
        # Of a heap one pair is taken for up to four that are put in, best-first and when shares are made. A level of
        # both trees leaves three on the stack, which is put into the heap before it is shared.
        stack = 3 * (depth_a + depth_b) + 8
        self._layout.heap = 3 * (BEST_FIRST + OPENING) + stack + 8
        self._layout.room = HEAD + 2 * (self._layout.heap + stack)
        cpu = batch.device
        self._scratch = wp.empty((threads + 1) * self._layout.room, dtype=wp.uint64, device=cpu)
        self._shared: Any = SharedSearch()
        self._shared.threads = threads
        self._shared.left = wp.zeros(1, dtype=wp.int32, device=cpu)
        self._shared.jobs = wp.zeros(1, dtype=wp.int64, device=cpu)
        self._shared.bests = wp.zeros(self._layout.jobs, dtype=EarliestHit, device=cpu)
        self._shared.times = wp.zeros(threads * LINE, dtype=wp.float64, device=cpu)
        self._single: Any = None
        self._each: Any = None

    def run(self, count: int) -> None:
        """Search the first `count` queries."""
        if count == 1:
            if self._single is None:
                self._single = self._prepared_single()
            self._single.run()
            return
        if self._each is None:
            self._count = wp.zeros(1, dtype=wp.int64, device=self._batch.device)
            self._host_count: np.ndarray = self._count.numpy()
            launch = PreparedLaunch(search_lanes, self._arguments(), self._batch.device, dim=self._count, grain=GRAIN)
            self._each = prepare_phases([[launch]], self._threads)
        self._host_count[0] = count
        self._each.run()

    def _prepared_single(self) -> Any:
        batch = self._batch
        if self._threads == 1:
            return PreparedLaunch(search_lanes, self._arguments(), batch.device, dim=1, serial=True)
        opening = PreparedLaunch(search_lanes, self._arguments(opening=OPENING), batch.device, dim=1)
        counted = wp.zeros((self._layout.jobs, COUNTERS), dtype=wp.int64, device=batch.device)
        shares = PreparedLaunch(
            search_lanes, self._arguments(counters=counted), batch.device, dim=self._shared.jobs, grain=1
        )
        joined = [self._shared, counted, batch.hits, batch.counters]
        join = PreparedLaunch(join_shares, joined, batch.device, dim=1)
        return prepare_phases([[opening], [shares], [join]], self._threads)

    def _arguments(self, *, opening: int = 0, counters: wp.array | None = None) -> list[Any]:
        """Of every query by itself, of an opening, or of shares, which count for themselves."""
        batch, layout = self._batch, SearchLayout()
        for name in SearchLayout.vars:
            setattr(layout, name, getattr(self._layout, name))
        layout.opening, layout.sharing = opening, counters is not None
        if counters is not None:
            layout.pops = 0
        hits, counts = (batch.hits, batch.counters) if counters is None else (self._shared.bests, counters)
        return [batch.arrays, self._trees, batch.cones, layout, self._shared, self._scratch, hits, counts]
