"""Room for the pairs of a call and for what is found, and the launches over it; kept for the next call.

On CPU a call is one program of phases: search, order, scan, gather, describe; later phases read from memory how many
pairs and contacts there are, so it is the same for every number of them. On CUDA the same kernels run one after the
other, and a radix sort puts keys in order. What does not fit is counted: the room grows and the search runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import empty_columns
from tangere.query.proximity.posed.cuda.ordering import gather_in_order
from tangere.query.proximity.posed.details import PosedColumns, describe_contacts, gather_contacts
from tangere.query.proximity.posed.ordering import CONTACTS, NEEDED, PAIRS, STATE, TOLD, order_by_pair, scan_amounts
from tangere.query.proximity.posed.traversal import Appended, PairQueries, find_constraints
from tangere.runtime import COUNTER_STRIDE, CapacityError, PreparedLaunch, launch, prepare_phases

#: Shards of a launch whose number of indices is in memory, for each thread.
_SHARDS = 8
#: Contacts to allow for at first, by each shard.
_START = 512
_LARGEST = 2**31 - 1


class PosedWorkspace:
    """Arrays for up to `room` pairs among `bodies` bodies, searched on so many CPU threads."""

    def __init__(
        self, shapes: Any, bodies: int, room: int, tilt: float, device: wp.Device, threads: int, grain: int
    ) -> None:
        self.room, self.device, self.threads = room, device, threads
        self._shapes, self._grain = shapes, grain
        self._shards = _SHARDS * threads if threads > 1 and device.is_cpu else 1
        queries: Any = PairQueries()
        queries.pairs = wp.zeros(room, dtype=wp.vec2i, device=device)
        queries.limit = wp.zeros(room, dtype=wp.float64, device=device)
        queries.rotation = wp.zeros(bodies, dtype=wp.mat33d, device=device)
        queries.origin = wp.zeros(bodies, dtype=wp.vec3d, device=device)
        queries.tilt = tilt
        self.queries = queries
        self.least = wp.zeros(room, dtype=wp.float64, device=device)
        self.status = wp.zeros(room, dtype=wp.int32, device=device)
        self.first = wp.zeros(room + 1, dtype=wp.int32, device=device)
        self._begin = wp.zeros(room, dtype=wp.int32, device=device)
        self._amount = wp.zeros(room, dtype=wp.int32, device=device)
        self._told = wp.zeros(TOLD, dtype=wp.int64, device=device)
        self._counts = wp.zeros(self._shards * COUNTER_STRIDE, dtype=wp.int64, device=device)
        # What NumPy writes: the arrays themselves on the CPU (a view takes Warp 20 us to make), else copies.
        self._host = {name: getattr(queries, name).numpy() for name in ("pairs", "limit", "rotation", "origin")}
        self._host_told = self._told.numpy()
        self._kept: dict[Any, Any] = {}
        self._make_room(_START)

    def write(self, name: str, rows: Any, count: int) -> None:
        """Copy `count` rows of an array of `PairQueries` to where kernels read them."""
        array: wp.array = getattr(self.queries, name)
        if count and isinstance(rows, wp.array):
            wp.copy(array, rows, count=count)
        elif count:
            host = self._host[name]
            host[:count] = rows
            if self.device.is_cuda:
                wp.copy(array, wp.array(host[:count], dtype=array.dtype, device="cpu"), count=count)

    def _make_room(self, capacity: int) -> None:
        """Make room for so many contacts by each shard."""
        if capacity * self._shards > _LARGEST:
            raise CapacityError(f"PosedProximity found {capacity} contacts and more, more than one array can hold")
        device, total = self.device, capacity * self._shards
        found: Any = Appended()
        found.counts, found.capacity = self._counts, capacity
        found.keys = wp.empty(total, dtype=wp.int64, device=device)
        found.faces = wp.empty(total, dtype=wp.int32, device=device)
        found.pairs = wp.empty(total, dtype=wp.int32, device=device)
        self._found, self._capacity = found, capacity
        self._kept.clear()
        self.columns = empty_columns(PosedColumns, total, device)
        if device.is_cuda:
            return
        pairs, contacts = self._told[PAIRS : PAIRS + 1], self._told[CONTACTS : CONTACTS + 1]
        search = [self._shapes, self.queries, found, self._begin, self._amount, self.least, self.status]
        scan = [self._shards, found, self._amount, self.status, self.first, self._told]
        gather = [found, self._begin, self.first, self.columns]
        phases = [
            PreparedLaunch(find_constraints, search, device, dim=pairs, grain=self._grain),
            PreparedLaunch(order_by_pair, [found, self._begin, self._amount], device, dim=pairs, grain=1024),
            PreparedLaunch(scan_amounts, scan, device, dim=1),
            PreparedLaunch(gather_contacts, gather, device, dim=pairs, grain=4096),
            PreparedLaunch(
                describe_contacts, [self._shapes, self.queries, self.columns], device, dim=contacts, grain=512
            ),
        ]
        self._program = prepare_phases([[phase] for phase in phases], self.threads)

    def kept(self, make: Callable[[PosedWorkspace], Any]) -> Any:
        """What `make` made for these arrays."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return self._kept[make]

    def run(self, count: int) -> tuple[int, int]:
        """Search the first `count` pairs: how many contacts there are, and the largest status of a pair."""
        while True:
            needed, contacts, state = self._run_on_cuda(count) if self.device.is_cuda else self._run_on_cpu(count)
            if needed <= self._capacity:
                return contacts, state
            self._make_room(needed + needed // 4)

    def _run_on_cpu(self, count: int) -> tuple[int, int, int]:
        told = self._host_told
        told[PAIRS] = count
        self._program.run()
        return int(told[NEEDED]), int(told[CONTACTS]), int(told[STATE])

    def _run_on_cuda(self, count: int) -> tuple[int, int, int]:
        device, found = self.device, self._found
        self._counts.zero_()
        results = [found, self._begin, self._amount, self.least, self.status]
        launch(find_constraints, count, [0, self._shapes, self.queries], results, device=device)
        needed = int(self._counts.numpy()[0])
        if needed > self._capacity:
            return needed, 0, 0
        contacts = gather_in_order(found, needed, count, self.first, self.columns)
        launch(describe_contacts, contacts, [self._shapes, self.queries], [self.columns], device=device)
        return needed, contacts, int(np.max(self.status.numpy()[:count], initial=0))
