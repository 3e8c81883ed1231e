"""Room for the pairs of a call and for what is found, kept for the next call.

The launches over it are those of the device's engine (`cpu.engine`, `cuda.engine`). What does not fit is counted: the
room grows and the search runs again.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import warp as wp

from tangere.query.contacts.record import empty_columns
from tangere.query.proximity.posed.details import PosedColumns
from tangere.query.proximity.posed.leaf import Appended
from tangere.query.proximity.posed.narrow_phase import Touch
from tangere.query.proximity.posed.traversal import PairQueries, PairResults
from tangere.runtime import COUNTER_STRIDE, CapacityError, device_of

#: Contacts to allow for at first, by each shard.
_START = 512
_LARGEST = 2**31 - 1


class Told(NamedTuple):
    """What a search tells of itself."""

    needed: int  #: places that the fullest segment needs; if there were fewer, nothing else counts
    contacts: int
    status: int  #: the largest of all pairs


class PosedEngine(Protocol):
    """The launches of one kind of device."""

    device: wp.Device

    def shards(self, threads: int) -> int:
        """How many segments a search on so many threads fills."""
        ...

    def prepared(self, workspace: PosedWorkspace) -> Callable[[int], Told]:
        """What searches the first n pairs of a workspace."""
        ...


class PosedWorkspace:
    """Arrays for up to `room` pairs among `bodies` bodies, searched on so many CPU threads."""

    def __init__(self, engine: PosedEngine, bodies: int, room: int, tilt: float, threads: int) -> None:
        self.room, self.threads, self.device = room, threads, engine.device
        self._engine = engine
        self.shards = engine.shards(threads)
        device = self.device
        queries: Any = PairQueries()
        queries.pairs = wp.zeros(room, dtype=wp.vec2i, device=device)
        queries.limit = wp.zeros(room, dtype=wp.float64, device=device)
        queries.rotation = wp.zeros(bodies, dtype=wp.mat33d, device=device)
        queries.origin = wp.zeros(bodies, dtype=wp.vec3d, device=device)
        queries.tilt = tilt
        self.queries = queries
        self.results = empty_columns(PairResults, room, device)
        self.first = wp.zeros(room + 1, dtype=wp.int32, device=device)
        # What NumPy writes: the arrays themselves on the CPU (a view takes Warp 20 us to make), else copies.
        self._host = {name: getattr(queries, name).numpy() for name in ("pairs", "limit", "rotation", "origin")}
        self._kept: dict[Any, Any] = {}
        self.answer: weakref.ref[Any] | None = None  #: who reads what was found here last
        self.busy = True  #: somebody is about to search here
        self._make_room(_START)

    @property
    def is_free(self) -> bool:
        """Whether nobody reads what was found here last, nor is about to search.

        Answers are watched, and do not give this back when they are taken down: the collector finishes all objects of
        a cycle, arrays too, before it sees that one of them has come back to life.
        """
        return not self.busy and (self.answer is None or self.answer() is None)

    def write(self, name: str, rows: Any, count: int) -> None:
        """Copy `count` rows, or one value for all, to an array of `PairQueries`."""
        array: wp.array = getattr(self.queries, name)
        if not isinstance(rows, wp.array):
            self._host[name][:count] = rows
            if self.device.is_cuda and count:
                wp.copy(array, wp.array(self._host[name][:count], dtype=array.dtype, device="cpu"), count=count)
        elif (
            self.device.is_cpu and device_of(rows).is_cpu and rows.is_contiguous
        ):  # a tenth of the time of a copy by Warp
            ctypes.memmove(array.ptr, rows.ptr, count * wp.types.type_size_in_bytes(array.dtype))
        elif count:
            wp.copy(array, rows, count=count)

    def pairs(self, count: int) -> np.ndarray:
        """The first pairs of bodies, a copy in main memory."""
        return self.queries.pairs.numpy()[:count].copy() if self.device.is_cuda else self._host["pairs"][:count].copy()

    def _make_room(self, capacity: int) -> None:
        """Make room for so many contacts by each shard."""
        total, device = capacity * self.shards, self.device
        self.capacity = 0  # until all is there: who interrupts this finds a search with less room
        if total > _LARGEST:
            raise CapacityError(f"PosedProximity found {capacity} contacts and more, more than one array can hold")
        found: Any = Appended()
        found.counts = wp.zeros(self.shards * COUNTER_STRIDE, dtype=wp.int64, device=device)
        found.capacity = capacity
        found.keys = wp.empty(total, dtype=wp.int64, device=device)
        for name in ("places", "pairs", "faces"):
            setattr(found, name, wp.empty(total, dtype=wp.int32, device=device))
        found.touches = wp.empty(total, dtype=Touch, device=device)
        self.found = found
        self.columns = empty_columns(PosedColumns, total, device)
        self._kept.clear()
        self._search = self._engine.prepared(self)
        self.capacity = capacity

    def kept(self, make: Callable[[PosedWorkspace], Any]) -> Any:
        """What `make` made for these arrays."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return self._kept[make]

    def run(self, count: int) -> Told:
        """Search the first `count` pairs."""
        told = self._search(count)
        while told.needed > self.capacity:
            self._make_room(told.needed + told.needed // 4)
            told = self._search(count)
        return told
