"""All searches of a plan on CPU, again and again: place vertices, fit boxes, search, put names in order.

Room for names, scratch memory and the packed arguments of all launches stay from call to call. Names of vertices and
faces are lower than those of edges, so the two kinds are sorted side by side.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bound import Frame
from tangere.query.proximity.eights import EightBoxes
from tangere.query.proximity.feature_trees import placing
from tangere.query.proximity.kept import Kept, run_together
from tangere.query.proximity.plan import Plan, Search
from tangere.runtime import CapacityError, run_shards, shard_ranges, thread_count
from tangere.runtime.collecting import COUNTER_STRIDE

__all__ = ["EightsRun"]

#: Vertices to place, some 20 ns each.
PLACE_GRAIN = 8192
#: Eights of clusters to search with: 3 us each, and many times that where bodies are near, which is all in one place.
SEARCH_GRAIN = 8
#: Names to sort, some 10 ns each.
SORT_GRAIN = 20000
#: Room for names is given back when less than a part of it was used: one in so many.
FORGOTTEN = 8
_LARGEST = 2**31 - 1


class EightsRun:
    """The searches of a plan for pairs nearer than `distance` [m], once it is told where positions are."""

    def __init__(self, plan: Plan, distance: float) -> None:
        self.plan, self.distance, self._threads = plan, distance, 0
        self._placing: list[Kept] = []
        self._items: list[Kept] = []
        self._above: list[Kept] = []
        for side in (*plan.edges.sides, *plan.vertices.sides):
            assert isinstance(side.boxes, EightBoxes)
            items, above = side.boxes.fitting(side.placed.vertices.items)
            self._items.append(items)
            if side.kind != "vertices":  # which are searched with, never through
                self._above.append(above)
        self._edges: list[_Appending] = []
        self._vertices: list[_Appending] = []

    def look_at(self, positions: wp.array, frame: Frame) -> None:
        """Search from now on where the vertices are at `positions`, (v,) vec3d [m], whenever that is asked."""
        bodies = [placing(*body, positions, self.distance, frame) for body in self.plan.bodies.values()]
        self._placing = [Kept(*place, grain=PLACE_GRAIN) for place in bodies]

    def names(self, out: wp.array | None = None) -> wp.array:
        """The names of all pairs that are near, in rising order; in `out`, from its beginning, if they fit there."""
        if self._threads != thread_count():
            self._threads = thread_count()
            self._edges = [_Appending(search) for search in self.plan.edges.searches]
            self._vertices = [_Appending(search) for search in self.plan.vertices.searches]
        waiting = [*self._edges, *self._vertices]
        for search in waiting:
            search.forget()
        before = [self._placing, self._items, self._above]
        while waiting:
            for search in waiting:
                search.counts.fill(0)
            run_together(*before, [search.kept for search in waiting])
            waiting, before = [search for search in waiting if not search.fits()], []
        return self._in_order(out)

    def _in_order(self, out: wp.array | None) -> wp.array:
        kinds = [[part for search in kind for part in search.found()] for kind in (self._vertices, self._edges)]
        sizes = [sum(map(len, parts)) for parts in kinds]
        if out is None or len(out) < sum(sizes):
            out = wp.empty(sum(sizes), dtype=wp.int64, device="cpu")
        rows = out.numpy()

        def sort(kind: int, first: int, count: int) -> None:
            if count:
                np.concatenate(kinds[kind], out=rows[first : first + count])
                rows[first : first + count].sort()

        run_shards(sort, [(0, sizes[0]), (sizes[0], sizes[1])], thread_count() if sum(sizes) > SORT_GRAIN else 1)
        return out if len(out) == sum(sizes) else out[: sum(sizes)]


class _Appending:
    """A search with room for names."""

    def __init__(self, search: Search) -> None:
        self._search, self._shards = search, len(shard_ranges(search.dim, SEARCH_GRAIN))
        self._scratch = wp.empty((self._shards, search.scratch), dtype=wp.int32, device="cpu")
        self._counters = wp.empty(self._shards * COUNTER_STRIDE, dtype=wp.int64, device="cpu")
        self.counts = self._counters.numpy()
        self.counts.fill(0)
        self._least = max(search.expected // self._shards, 1)
        self._make_room(self._least)

    def forget(self) -> None:
        """Give room back that the last call had no use for: one crowded step does not hold memory for ever."""
        needed = int(self.counts.max())
        if self._capacity > max(self._least, FORGOTTEN * needed):
            self._make_room(max(self._least, 2 * needed))

    def fits(self) -> bool:
        """Whether all that was appended found room; if not there is enough now."""
        needed = int(self.counts.max())
        if needed > self._capacity:
            self._make_room(needed + needed // 8)
            return False
        return True

    def found(self) -> list[np.ndarray]:
        """What each shard appended."""
        begins = range(0, len(self._rows), self._capacity)
        filled = self.counts[::COUNTER_STRIDE].tolist()
        return [self._rows[begin : begin + count] for begin, count in zip(begins, filled, strict=True) if count]

    def _make_room(self, capacity: int) -> None:
        if capacity * self._shards > _LARGEST:
            found = int(self.counts.sum())
            raise CapacityError(f"{self._search.kernel.key} found {found} pairs, more than one array can hold")
        self._capacity = capacity
        names = wp.empty(capacity * self._shards, dtype=wp.int64, device="cpu")
        self._rows = names.numpy()
        arguments = [*self._search.inputs, self._scratch, self._counters, capacity, names]
        self.kept = Kept(self._search.kernel, self._search.dim, arguments, grain=SEARCH_GRAIN)
