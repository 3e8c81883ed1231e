"""All searches of a plan on CPU, again and again: place vertices and fit boxes, search, put keys in order.

Everything is one program that threads are called for once (`runtime.thread_pool`). Room for pairs of clusters and keys,
scratch memory and the packed arguments of all launches stay from call to call; what found too little room is run again
with enough.
"""

from __future__ import annotations

from collections.abc import Callable

import warp as wp

from tangere.broad_phase.triangles import Layout
from tangere.bvh.lbvh import Frame
from tangere.bvh.wide import FitFrame, WideBvhBoxes, vertex_at
from tangere.query.proximity.cpu.broad_phase import ClusterPairs, find_cluster_pairs
from tangere.query.proximity.cpu.lazy_aabbs import LazyItemBoxes
from tangere.query.proximity.cpu.parallel_sort import LEAST, ParallelSort, Ranges
from tangere.query.proximity.search_plan import SearchPlan
from tangere.runtime import COUNTER_STRIDE, SOUND, CapacityError, PreparedLaunch, prepare_phases
from tangere.runtime.thread_pool import Program

wp.set_module_options(SOUND)

#: Vertices to place, some 3 ns each.
PLACE_GRAIN = 256
#: Eights of clusters to search with: 1 us each.
MEET_GRAIN = 2
#: Blocks of pairs of clusters, some 5 us each.
NEAR_GRAIN = 1
#: Room is given back when less than a part of it was used, one in so many, so many times in a row.
FORGOTTEN, PATIENCE = 8, 16
#: Room for this many times the keys that needed more.
GROWTH = 1.25
_LARGEST = 2**31 - 1
_LINE = int(COUNTER_STRIDE)


class SearchProgram:
    """The searches of a plan for pairs nearer than `distance` [m], once it knows where positions are."""

    def __init__(self, plan: SearchPlan, layout: Layout, distance: float) -> None:
        self.plan, self.distance = plan, distance
        self.unusable = wp.zeros(1, dtype=wp.int64, device="cpu")  #: above 0 nothing is searched for
        self._ranges, self._room = Ranges.of(layout), None
        self.instant = wp.zeros(1, dtype=FitFrame, device="cpu")  #: what launches look at
        self._at = self.instant.numpy()
        self._addresses = self._at["positions"]
        #: What is done first; more may be added before anything is searched for.
        self.placement: list[PreparedLaunch] = []
        for trees, placed in plan.bodies.values():
            arguments = [self.instant, trees.vertices.numbers, placed.positions]
            self.placement.append(
                PreparedLaunch(_place, arguments, wp.get_device("cpu"), dim=trees.count, grain=PLACE_GRAIN)
            )
        self._above: list[list[PreparedLaunch]] = []
        fitted: list[tuple[WideBvhBoxes, wp.array]] = []
        for side in (*plan.edges.sides, *plan.vertices.sides):
            assert isinstance(side.boxes, WideBvhBoxes)
            fitted.append((side.boxes, side.placed.positions))
            clusters, above = side.boxes.fitting(self.instant)
            self.placement.append(clusters)
            if side.kind != "vertices":  # which are searched with, never through
                self._above.append([above])
        self._lazy = LazyItemBoxes(fitted)
        self._rows = self._lazy.fitting(self.instant)
        self._searches: _Searches | None = None
        self._program: Program | None = None
        self._running = False

    def set_frame(self, positions: wp.array, frame: Frame) -> None:
        """Search where the vertices are at `positions`, (v,) vec3d [m], which the caller must keep, from now on."""
        made = self._at[0]
        made["margin"], made["origin"], made["scale"] = 0.5 * self.distance, frame.origin, frame.scale
        self.read(positions)

    def read(self, positions: wp.array) -> None:
        """Look at another array of positions."""
        self._addresses[0] = positions.ptr

    def find(self, make_room: Callable[[int], ParallelSort], threads: int) -> tuple[ParallelSort, int]:
        """The keys of all pairs that are near, in rising order, and how many they are.

        Args:
            make_room: makes room for so many keys; it stays from call to call while it is enough.
        """
        if self._searches is None or self._searches.threads != threads:
            self._searches = _Searches(self.plan, self._ranges, self.unusable, self._lazy, threads)
            self._program = None
        searches = self._searches
        while True:
            ordered = self._room = self._room or make_room(0)
            if self._program is None or searches.changed:
                first = [searches.clear, *self.placement]
                search = [first, *self._above, searches.meeting, self._rows, searches.near]
                self._program = prepare_phases([*search, *ordered.phases(searches.found)], threads)
                searches.changed = False
            if self._running:  # too little room, or the user interrupted
                searches.found.histogram.zero_()
            self._running = True
            self._program.run()
            needed, most = ordered.totals.tolist()
            if not searches.fit(needed, most):
                continue
            if needed > len(ordered.pair_keys):
                self._room, self._program = make_room(int(GROWTH * needed)), None
                continue
            self._running = False
            return ordered, needed


class _Searches:
    """The searches of a plan by so many threads, with room for the pairs of clusters and the keys they find."""

    def __init__(self, plan: SearchPlan, ranges: Ranges, unusable: wp.array, lazy: LazyItemBoxes, threads: int) -> None:
        self.threads, self.changed = threads, False
        self._ranges, self._unusable, self._lazy = ranges, unusable, lazy
        self._searches = [*plan.edges.searches, *plan.vertices.searches]
        count = len(self._searches)
        self._scratch = wp.empty(
            (threads, max((search.scratch for search in self._searches), default=0)), dtype=wp.int32, device="cpu"
        )
        # Of each search the number of blocks made; of each thread the keys, and of each search what it fills.
        self._state = wp.zeros((count + threads * (1 + count)) * _LINE, dtype=wp.int64, device="cpu")
        self._made = self._state.numpy()[: count * _LINE : _LINE]
        self.clear = PreparedLaunch(_clear, [lazy.step, lazy.groups, self._state], wp.get_device("cpu"), dim=1, grain=1)
        expected = sum(search.expected for search in self._searches)
        self._key_room = Capacity(max(LEAST, 2 * expected // threads))
        self._blocks = [Capacity(2 * (search.dim + threads)) for search in self._searches]
        self._make_room()

    def fit(self, pair_keys: int, most: int) -> bool:
        """Whether all pairs of clusters and keys found room; if not there is enough now.

        Args:
            pair_keys: how many there were in all, if there was room for pairs of clusters.
            most: keys of one thread.
        """
        fit, changed = True, False
        for capacity, made in zip(self._blocks, self._made.tolist(), strict=True):
            fit &= capacity.holds(made, made)
            changed |= capacity.changed
        if fit:  # if not, some keys have not been found
            fit = self._key_room.holds(most, pair_keys)
        if not fit or changed or self._key_room.changed:
            self._make_room()
        return fit

    def _make_room(self) -> None:
        threads, count, state = self.threads, len(self._searches), self._state
        largest = _LARGEST // threads
        if self._key_room.needed > largest:
            raise CapacityError(f"more than {largest} pairs of features are near, more than one array can hold")
        pair_keys = count * _LINE
        counters = state[pair_keys : pair_keys + threads * _LINE]
        room = min(self._key_room.room, largest)
        self.found = self._ranges.segments(counters, room, wp.empty(threads * room, dtype=wp.int64, device="cpu"))
        self.meeting, self.near = [], []
        for k, (search, capacity) in enumerate(zip(self._searches, self._blocks, strict=True)):
            filling = pair_keys + (1 + k) * threads * _LINE
            pairs = ClusterPairs.empty(
                state[k * _LINE : k * _LINE + 1], state[filling : filling + threads * _LINE], capacity.room
            )
            arguments = [*search.meeting, self._unusable, self._scratch, pairs.made, pairs.filling, pairs.blocks]
            arguments += self._lazy.marks(*search.boxes)
            self.meeting.append(
                PreparedLaunch(find_cluster_pairs, arguments, wp.get_device("cpu"), dim=search.dim, grain=MEET_GRAIN)
            )
            arguments = [*search.inputs, self._scratch, pairs.blocks, self.found]
            self.near.append(
                PreparedLaunch(search.kernel, arguments, wp.get_device("cpu"), dim=pairs.made, grain=NEAR_GRAIN)
            )
        for capacity in (self._key_room, *self._blocks):
            capacity.changed = False
        self.changed = True


class Capacity:
    """How much room there is for something."""

    def __init__(self, least: int) -> None:
        self.room, self.needed, self.changed = least, 0, False
        self._least, self._idle, self._few = least, 0, 0

    def holds(self, needed: int, all_of_it: int) -> bool:
        """Whether so much found room; if not there shall be enough for all of it.

        Room that has not been used for a while is given back: one crowded step does not hold memory for ever.
        """
        self.needed = needed
        if needed > self.room:
            self._change(all_of_it + all_of_it // 8)
            return False
        if all_of_it >= self._few:
            self._idle = 0
            return True
        self._idle += 1
        if self._idle >= PATIENCE:
            self._change(max(self._least, 2 * all_of_it))
        return True

    def _change(self, room: int) -> None:
        self.room, self.changed, self._idle = room, True, 0
        self._few = room // FORGOTTEN if room > self._least else 0


@wp.kernel
def _clear(first: int, step: wp.array[wp.int64], groups: wp.array[wp.int64], state: wp.array[wp.int64]):
    step[0] = step[0] + wp.int64(1)
    for k in range(groups.shape[0]):
        groups[k] = wp.int64(0)
    for k in range(state.shape[0]):
        state[k] = wp.int64(0)


@wp.kernel
def _place(first: int, instant: wp.array[FitFrame], numbers: wp.array[int], placed: wp.array[wp.vec3d]):
    i = first + wp.tid()
    placed[i] = vertex_at(instant, numbers[i])
