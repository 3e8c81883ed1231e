"""All searches of a plan on CPU, again and again: place vertices, fit boxes, search, put names in order.

Everything is one program that threads are called for once (`runtime.driving`). Room for names, scratch memory and the
packed arguments of all launches stay from call to call; what found too little room is run again with enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import warp as wp

from tangere.bound import Frame
from tangere.query.proximity.eights import EightBoxes
from tangere.query.proximity.feature_trees import placing
from tangere.query.proximity.kept import Kept, prepared, run_together
from tangere.query.proximity.ordered import Appended, Ordered
from tangere.query.proximity.plan import Plan, Search
from tangere.runtime import CapacityError, shard_ranges, thread_count
from tangere.runtime.collecting import COUNTER_STRIDE
from tangere.runtime.driving import Program

__all__ = ["EightsRun", "Room"]

#: Vertices to place, some 20 ns each.
PLACE_GRAIN = 256
#: Eights of clusters to search with: 3 us each, and many times that where bodies are near, which is all in one place.
SEARCH_GRAIN = 2
#: Room for names is given back when less than a part of it was used, one in so many, so many times in a row.
FORGOTTEN, PATIENCE = 8, 16
#: Room for this many times the names that needed more.
GROWTH = 1.25
_LARGEST = 2**31 - 1

#: Room for names in order, and what is to be done with them there.
Room = tuple[Ordered, Sequence[Kept]]


class EightsRun:
    """The searches of a plan for pairs nearer than `distance` [m], once it is told where positions are."""

    def __init__(self, plan: Plan, distance: float) -> None:
        self.plan, self.distance, self._threads = plan, distance, 0
        self._room: Room | None = None
        self._placing: list[Kept] = []
        self._items: list[Kept] = []
        self._above: list[Kept] = []
        for side in (*plan.edges.sides, *plan.vertices.sides):
            assert isinstance(side.boxes, EightBoxes)
            items, above = side.boxes.fitting(side.placed.vertices.items)
            self._items.append(items)
            if side.kind != "vertices":  # which are searched with, never through
                self._above.append(above)
        self._searches = _Searches([])
        self._searching: list[Sequence[Kept]] = []  # and all that follows, in this room
        self._searching_in: tuple[list[Appended], Room] | None = None
        self._program: Program | None = None

    def look_at(self, positions: wp.array, frame: Frame) -> None:
        """Search from now on where the vertices are at `positions`, (v,) vec3d [m], whenever that is asked."""
        bodies = [placing(*body, positions, self.distance, frame) for body in self.plan.bodies.values()]
        self._placing = [Kept(*place, grain=PLACE_GRAIN) for place in bodies]
        self._program = None

    def find(self, make_room: Callable[[int], Room]) -> tuple[Ordered, int]:
        """The names of all pairs that are near, in rising order, and how many they are.

        Args:
            make_room: makes room for so many names; it stays from call to call while it is enough.
        """
        if self._threads != thread_count():
            self._searches = _Searches([*self.plan.edges.searches, *self.plan.vertices.searches])
            self._threads = thread_count()
        searches = self._searches
        searches.forget()
        ordered, then = room = self._room = self._room or make_room(0)
        # Room is compared, not marked as changed: the user may interrupt between one and the other.
        if self._searching_in is None or not (
            self._searching_in[0] is searches.found and self._searching_in[1] is room
        ):
            self._searching, self._program = [searches.kept, *ordered.phases(searches.found), then], None
            self._searching_in = searches.found, room
        if self._program is None:
            self._program = prepared(self._placing, self._items, self._above, *self._searching)
        searches.counts.fill(0)
        self._program.run()
        while not searches.fit():
            searches.counts.fill(0)
            run_together(searches.kept, *ordered.phases(searches.found), then)
        needed = ordered.needed
        if needed > len(ordered.names):
            ordered, then = self._room = make_room(int(GROWTH * needed))
            run_together(*ordered.phases(searches.found), then)
        return ordered, needed


class _Searches:
    """Searches, cut for as many threads as there are now, with room for the names they append."""

    def __init__(self, searches: Sequence[Search]) -> None:
        self._searches = searches
        shards = [len(shard_ranges(search.dim, SEARCH_GRAIN)) for search in searches]
        self._begins = np.cumsum([0, *shards], dtype=np.int64)
        self._scratch = [
            wp.empty((count, search.scratch), dtype=wp.int32, device="cpu")
            for count, search in zip(shards, searches, strict=True)
        ]
        self._counters = wp.zeros(sum(shards) * COUNTER_STRIDE, dtype=wp.int64, device="cpu")
        self.counts = self._counters.numpy()
        self._least = np.array([max(s.expected // n, 1) for s, n in zip(searches, shards, strict=True)], np.int64)
        self._capacity, self._idle = np.zeros(len(searches), np.int64), 0
        self._needed = self._capacity  # by the longest segment of each search, the last time
        self.found: list[Appended] = []
        self.kept: list[Kept] = []
        self._make_room(self._least)

    def forget(self) -> None:
        """Give room back that has not been used for a while: one crowded step does not hold memory for ever."""
        needed = self._needed
        unused = self._capacity > np.maximum(self._least, FORGOTTEN * needed)
        self._idle = self._idle + 1 if unused.any() else 0
        if self._idle >= PATIENCE:
            self._make_room(np.where(unused, np.maximum(self._least, 2 * needed), self._capacity))

    def fit(self) -> bool:
        """Whether all that was appended found room; if not there is enough now."""
        filled = self.counts[::COUNTER_STRIDE]
        if len(filled):
            self._needed = np.maximum.reduceat(filled, self._begins[:-1])
        needed = self._needed
        full = needed > self._capacity
        if full.any():
            self._make_room(np.where(full, needed + needed // 8, self._capacity))
            return False
        return True

    def _make_room(self, capacity: np.ndarray) -> None:
        found, kept = [], []
        for k, search in enumerate(self._searches):
            if capacity[k] == self._capacity[k]:
                found.append(self.found[k])
                kept.append(self.kept[k])
                continue
            begin, end, room = int(self._begins[k]), int(self._begins[k + 1]), int(capacity[k])
            if room * (end - begin) > _LARGEST:
                count = int(self.counts[begin * COUNTER_STRIDE : end * COUNTER_STRIDE].sum())
                raise CapacityError(f"{search.kernel.key} found {count} pairs, more than one array can hold")
            counters = self._counters[begin * COUNTER_STRIDE : end * COUNTER_STRIDE]
            names = wp.empty(room * (end - begin), dtype=wp.int64, device="cpu")
            found.append(Appended(end - begin, counters, room, names))
            arguments = [*search.inputs, self._scratch[k], counters, room, names]
            kept.append(Kept(search.kernel, search.dim, arguments, grain=SEARCH_GRAIN))
        self.found, self.kept, self._capacity = found, kept, capacity
