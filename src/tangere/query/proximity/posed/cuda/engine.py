"""A search of posed bodies on CUDA: a thread for each pair, a radix sort, and a thread for each contact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.query.proximity.posed.cuda.ordering import gather_in_order
from tangere.query.proximity.posed.details import describe_contacts
from tangere.query.proximity.posed.traversal import find_constraints
from tangere.query.proximity.posed.workspace import PosedWorkspace, Told
from tangere.runtime import launch


class CudaSearch:
    """The search of bodies of some shapes."""

    def __init__(self, shapes: Any, device: wp.Device) -> None:
        self._shapes, self.device = shapes, device

    def shards(self, threads: int) -> int:
        """There is one segment, whatever the number of CPU threads."""
        return 1

    def prepared(self, workspace: PosedWorkspace) -> Callable[[int], Told]:
        """What searches the first n pairs of a workspace."""

        def run(count: int) -> Told:
            shapes, device, queries = self._shapes, self.device, workspace.queries
            found, results, columns = workspace.found, workspace.results, workspace.columns
            found.counts.zero_()
            launch(find_constraints, count, [0, shapes, queries], [found, results], device=device)
            needed = int(found.counts.numpy()[0])
            if needed > workspace.capacity:
                return Told(needed, 0, 0)
            contacts = gather_in_order(found, needed, count, workspace.first, columns)
            launch(describe_contacts, contacts, [shapes, queries, found], [columns], device=device)
            return Told(needed, contacts, int(np.max(results.status.numpy()[:count], initial=0)))

        return run
