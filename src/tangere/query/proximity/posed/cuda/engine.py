"""A search of posed bodies on CUDA: rounds of threads that each look at some pairs of boxes, then radix sorts.

In the first round each pair of bodies has a thread. Small bodies are done then; of large ones every thread leaves what
it has not looked at to the next round, in which there are many more threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.query.proximity.posed.cuda.ordering import gather_in_order
from tangere.query.proximity.posed.details import describe_contacts
from tangere.query.proximity.posed.traversal import begin_search, find_constraints
from tangere.query.proximity.posed.workspace import PosedWorkspace, Told
from tangere.runtime import COUNTER_STRIDE, launch

#: Pairs of boxes that a thread looks at in a round.
BUDGET = 256
#: Pairs of boxes to have room for between rounds, at first.
_START = 16384


class CudaSearch:
    """The search of bodies of some shapes."""

    def __init__(self, shapes: Any, device: wp.Device, budget: int = BUDGET) -> None:
        self._shapes, self.device, self._budget = shapes, device, budget
        self._room = _START

    def shards(self, threads: int) -> int:
        """There is one segment, whatever the number of CPU threads."""
        return 1

    def prepared(self, workspace: PosedWorkspace) -> Callable[[int], Told]:
        """What searches the first n pairs of a workspace."""

        def run(count: int) -> Told:
            shapes, device, queries = self._shapes, self.device, workspace.queries
            found, results, columns = workspace.found, workspace.results, workspace.columns
            needed = self._search(workspace, count)
            if needed > workspace.capacity:
                return Told(needed, 0, 0)
            contacts = gather_in_order(found, needed, count, workspace.first, columns)
            launch(describe_contacts, contacts, [shapes, queries, found], [columns], device=device)
            return Told(needed, contacts, int(np.max(results.status.numpy()[:count], initial=0)))

        return run

    def _search(self, workspace: PosedWorkspace, count: int) -> int:
        """Append what is found of the first `count` pairs: how many places that needs."""
        shapes, device, queries = self._shapes, self.device, workspace.queries
        found, results = workspace.found, workspace.results
        jobs = wp.empty(count, dtype=wp.vec3i, device=device)
        while True:
            found.counts.zero_()
            launch(begin_search, count, [shapes, queries], [results, jobs], device=device)
            waiting, number = jobs, count
            while number and number <= self._room:
                left = wp.empty(self._room, dtype=wp.vec3i, device=device)
                left_count = wp.zeros(COUNTER_STRIDE, dtype=wp.int64, device=device)
                inputs = [shapes, queries, waiting, self._budget]
                outputs = [found, results, left_count, self._room, left]
                launch(find_constraints, number, inputs, outputs, device=device, threads=1)
                waiting, number = left, int(left_count.numpy()[0])
            if number <= self._room:
                return int(found.counts.numpy()[0])
            self._room = number + number // 4
