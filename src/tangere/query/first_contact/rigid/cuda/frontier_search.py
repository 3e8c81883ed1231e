"""Queries by a whole GPU: the earliest pairs of boxes of every query at a time, each child by a thread of its own.

Method:   every query has a stack of pairs. A round takes up to `width` of them from its top and puts their children
          there, the earliest on top; pairs of triangles go to one list and are solved after that, so that the threads
          of a warp do alike things. The fewer the queries, the wider: a stack never holds more than `width` pairs for
          every level of the trees. The earliest time of a query is shared by its pairs through one number. All
          counting is done on the device, and rounds are launched several at once, on CUDA as one graph; the host looks
          in between only to see whether anything is left.
Bits:     as for `search`, the order does not matter: the same answer as on one CPU thread up to the device's own sines.
Also:     runs on the CPU, on one thread, so that it can be tested there.
Known as: breadth-first BVH traversal with a frontier (front) of node pairs (Lauterbach, Mo and Manocha 2010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.query.first_contact.rigid.conservative_advancement import (
    QueryArrays,
    conservative_advance,
    relative_at,
)
from tangere.query.first_contact.rigid.culling import RecessionTable, culling_of, recedes
from tangere.query.first_contact.rigid.traversal import COUNTERS, Candidate, EarliestHit, no_hit, solve_leaf
from tangere.runtime import SOUND, captured, launch, load

if TYPE_CHECKING:
    from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch

wp.set_module_options(SOUND)

#: Pairs of all queries in a round, about: enough threads to fill a GPU.
PAIRS = 1 << 19
#: Pairs of one query in a round, least and most.
NARROWEST, WIDEST = 4, 4096
#: Children are sorted up to this width: beyond, ranks cost more than order saves.
SORTED = 64
#: Queries searched at a time.
CHUNK = 1 << 18
#: Rounds between two looks of the host.
TOGETHER = 8
#: Few queries wait for the slowest of their triangles: then these are solved every so many rounds. Divides TOGETHER.
SOLVED_EVERY = 2
#: Threads that add up each counter.
ADDING = 1024
#: Contacts kept for each query at first; when they are more, the search is done again.
HITS = 64

# Numbers counted on the device.
ACTIVE = wp.constant(0)  #: queries with pairs left
NEXT = wp.constant(1)
LEAVES = wp.constant(2)
FOUND = wp.constant(3)
FULL = wp.constant(4)  #: whether a stack lacked room
NO_KEY = wp.constant(wp.int64(2**63 - 1))


@wp.struct
class Frontier:
    """The stacks of pairs of all queries, and what a round makes of them; a list of n has n places unless said."""

    width: wp.int32  #: pairs of a query taken in a round
    height: wp.int32  #: places of a stack
    active: wp.array[int]  #: queries with pairs left …
    following: wp.array[int]  #: … and those of the next list
    stacks: wp.array[Candidate]  #: (n height)
    sizes: wp.array[int]  #: of the stacks
    children: wp.array[Candidate]  #: (2 n width) of this round
    child_counts: wp.array[int]
    leaves: wp.array[Candidate]  #: pairs of triangles that wait to be solved
    bounds: wp.array[wp.float64]  #: of all queries: earliest time of contact so far
    keys: wp.array[wp.int64]  #: of all queries: of the best contact at that time
    hits: wp.array[EarliestHit]  #: contacts found …
    hit_queries: wp.array[int]  #: … and whose they are
    counts: wp.array[int]  #: ACTIVE … FULL
    counters: wp.array2d[wp.int64]  #: of each thread


def search_frontier(batch: RigidQueryBatch) -> None:
    """Search every query of `batch` in rounds, for a contact not after the time that stands among its hits."""
    counted = np.zeros((1, COUNTERS), np.int64)
    size = min(CHUNK, batch.room)
    for first in range(0, batch.count, size):
        count = min(size, batch.count - first)
        frontier = batch.searches.get("frontier") or _FrontierSearch(batch, size, HITS, 1)
        while not frontier.run(first, count):
            frontier = _FrontierSearch(batch, size, 8 * frontier.kept, 2 * frontier.room)
        batch.searches["frontier"] = frontier
        counted += frontier.counted()
    batch.host_counters = counted


class _FrontierSearch:
    """Buffers and launches of a search in rounds."""

    def __init__(self, batch: RigidQueryBatch, count: int, kept: int, room: int) -> None:
        device = self.device = batch.device
        self.batch, self.count, self.kept, self.room = batch, count, kept, room
        width = min(max(PAIRS // count, NARROWEST), WIDEST)
        self.threads = 2 * width * count
        self.every = SOLVED_EVERY if width > SORTED else 1
        capacity = max(kept * count, 4096)
        sizes = {
            "stacks": count * room * (batch.a.depth + batch.b.depth + 4) * width,
            "children": self.threads,
            "leaves": self.every * self.threads,
            "counters": (self.every * self.threads, COUNTERS),
            "bounds": batch.room,
            "keys": batch.room,
            "counts": 5,
            "hits": capacity,
            "hit_queries": capacity,
        }
        self.frontier: Any = Frontier()
        self.frontier.width, self.frontier.height = width, sizes["stacks"] // count
        for name, variable in Frontier.vars.items():
            if hasattr(variable.type, "dtype"):  # the lists
                array = wp.empty(sizes.get(name, count), dtype=variable.type.dtype, device=device)
                setattr(self.frontier, name, array)
        self.frontier.child_counts.zero_()
        for kernel in (_expand, _solve, _push_children, _update_sizes, _list_active, _copy_active):
            load(kernel, device)  # nothing may be loaded while a graph is captured
        self._graph = None
        if device.is_cuda:
            self._graph = captured(device, self._launch_rounds)

    def run(self, first: int, count: int) -> bool:
        """Search so many queries from `first` on; whether everything had room, else nothing is written."""
        batch, frontier = self.batch, self.frontier
        frontier.counters.zero_()
        self._launch(_begin, count, [first, count, batch.hits, frontier])
        active, found = count, 0
        while active:
            if self._graph is None:
                self._launch_rounds()
            else:
                wp.capture_launch(self._graph)
            active, _, _, found, full = (int(n) for n in frontier.counts.numpy())
            if found > len(frontier.hits) or full:
                return False
        self._launch(_clear_hits, count, [first, batch.hits])
        self._launch(_find_best_keys, found, [frontier])
        self._launch(_write_hits, found, [frontier, batch.hits])
        return True

    def counted(self) -> np.ndarray:
        """(COUNTERS,) what all threads counted, added up where it was counted: they are many."""
        sums, counters = wp.zeros(COUNTERS, dtype=wp.int64, device=self.device), self.frontier.counters
        self._launch(_sum_counters, min(len(counters), ADDING) * COUNTERS, [counters.flatten(), sums])
        return sums.numpy()

    def _launch_rounds(self) -> None:
        """`TOGETHER` rounds, whether there is anything to do or not, and a new list of who has anything left."""
        batch, frontier, counts = self.batch, self.frontier, self.frontier.counts
        for k in range(TOGETHER):
            solving = (k + 1) % self.every == 0
            self._launch(_expand, self.threads, [batch.arrays, batch.cones, frontier])
            if solving:
                self._launch(_solve, len(frontier.leaves), [batch.arrays, frontier])
            self._launch(_push_children, self.threads, [frontier])
            self._launch(_update_sizes, self.count, [int(solving), frontier])
        self._launch(_list_active, self.count, [frontier])
        self._launch(_copy_active, self.count, [frontier])
        wp.copy(counts, counts, ACTIVE, NEXT, 1)
        counts[NEXT : NEXT + 1].zero_()

    def _launch(self, kernel: wp.Kernel, size: int, arguments: list[Any]) -> None:
        launch(kernel, size, arguments, device=self.device, threads=1)


@wp.kernel
def _begin(first: int, base: int, count: int, limits: wp.array[EarliestHit], frontier: Frontier):
    """Every query starts with its roots, not yet looked at, and without a contact."""
    i = first + wp.tid()
    root = Candidate()
    root.a = -1
    root.query = base + i
    frontier.stacks[i * frontier.height] = root
    frontier.sizes[i] = 1
    frontier.active[i] = i
    frontier.bounds[base + i] = wp.min(limits[base + i].time, wp.float64(1.0))
    frontier.keys[base + i] = NO_KEY
    if i == 0:
        for k in range(frontier.counts.shape[0]):
            frontier.counts[k] = wp.where(k == ACTIVE, count, 0)


@wp.kernel
def _clear_hits(first: int, base: int, bests: wp.array[EarliestHit]):
    bests[base + first + wp.tid()] = no_hit()


@wp.kernel
def _expand(first: int, arrays: QueryArrays, cones: RecessionTable, frontier: Frontier):
    """Child k of pair j from the top of a query's stack; counters are per thread."""
    i = first + wp.tid()
    row = i / (2 * frontier.width)
    if row >= frontier.counts[ACTIVE]:
        return
    stack = frontier.active[row]
    j = (i % (2 * frontier.width)) / 2
    k = i % 2
    if j >= frontier.sizes[stack]:
        return
    item = frontier.stacks[stack * frontier.height + frontier.sizes[stack] - 1 - j]
    until = frontier.bounds[item.query]
    if item.time > until:
        return
    query = arrays.queries[item.query]
    child = Candidate()
    child.query = item.query
    child.b = item.b
    if item.a < 0:
        if k == 1:
            return
    else:
        a = arrays.nodes_a[query.node_a + item.a]
        b = arrays.nodes_b[query.node_b + item.b]
        child.a = item.a
        if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
            child.a = wp.where(k == 0, item.a + 1, a.right)
        else:
            child.b = wp.where(k == 0, item.b + 1, b.right)
    box_a = arrays.nodes_a[query.node_a + child.a]
    box_b = arrays.nodes_b[query.node_b + child.b]
    now = relative_at(arrays, item.query, item.time)
    child.size = box_a.radius + box_b.radius
    child.time = conservative_advance(arrays, item.query, box_a, box_b, now, item.time, until, frontier.counters, i)
    if child.time > until:
        return
    culling = culling_of(arrays, item.query)
    if recedes(culling, cones, box_a, box_b, query.node_a + child.a, query.node_b + child.b):
        frontier.counters[i, 3] = frontier.counters[i, 3] + wp.int64(1)
    elif box_a.right < 0 and box_b.right < 0:
        frontier.leaves[wp.atomic_add(frontier.counts, LEAVES, 1)] = child
    else:
        frontier.children[row * 2 * frontier.width + wp.atomic_add(frontier.child_counts, row, 1)] = child


@wp.kernel
def _solve(first: int, arrays: QueryArrays, frontier: Frontier):
    """The pairs of triangles that came up in this round."""
    i = first + wp.tid()
    if i >= frontier.counts[LEAVES]:
        return
    item = frontier.leaves[i]
    until = frontier.bounds[item.query]
    if item.time > until:
        return
    query = arrays.queries[item.query]
    triangle_a = arrays.nodes_a[query.node_a + item.a].triangle
    triangle_b = arrays.nodes_b[query.node_b + item.b].triangle
    found = solve_leaf(arrays, item.query, triangle_a, triangle_b, item.time, until, frontier.counters, i)
    if found.time <= until:
        wp.atomic_min(frontier.bounds, item.query, found.time)
        place = wp.atomic_add(frontier.counts, FOUND, 1)
        if place < frontier.hits.shape[0]:
            frontier.hits[place] = found
            frontier.hit_queries[place] = item.query


@wp.kernel
def _push_children(first: int, frontier: Frontier):
    """The children take the place of the pairs that were taken, the earliest on top unless they are too many."""
    i = first + wp.tid()
    row = i / (2 * frontier.width)
    if row >= frontier.counts[ACTIVE]:
        return
    own = i % (2 * frontier.width)
    count = frontier.child_counts[row]
    if own >= count:
        return
    child = frontier.children[row * 2 * frontier.width + own]
    later = int(0)
    for j in range(wp.where(frontier.width <= wp.static(SORTED), count, 0)):
        time = frontier.children[row * 2 * frontier.width + j].time
        if time > child.time or (time == child.time and j < own):
            later += 1
    stack = frontier.active[row]
    at = wp.max(frontier.sizes[stack] - frontier.width, 0) + wp.where(frontier.width <= wp.static(SORTED), later, own)
    if at < frontier.height:
        frontier.stacks[stack * frontier.height + at] = child
    else:
        frontier.counts[FULL] = 1  # every writer writes the same


@wp.kernel
def _update_sizes(first: int, solved: int, frontier: Frontier):
    row = first + wp.tid()
    if row < frontier.counts[ACTIVE]:
        stack = frontier.active[row]
        left = wp.max(frontier.sizes[stack] - frontier.width, 0)
        frontier.sizes[stack] = wp.min(left + frontier.child_counts[row], frontier.height)
        frontier.child_counts[row] = 0
    if row == 0 and solved == 1:
        frontier.counts[LEAVES] = 0


@wp.kernel
def _list_active(first: int, frontier: Frontier):
    """Who has pairs left."""
    row = first + wp.tid()
    if row < frontier.counts[ACTIVE] and frontier.sizes[frontier.active[row]] > 0:
        frontier.following[wp.atomic_add(frontier.counts, NEXT, 1)] = frontier.active[row]


@wp.kernel
def _copy_active(first: int, frontier: Frontier):
    row = first + wp.tid()
    if row < frontier.counts[NEXT]:
        frontier.active[row] = frontier.following[row]


@wp.kernel
def _sum_counters(first: int, counters: wp.array[wp.int64], sums: wp.array[wp.int64]):
    i = first + wp.tid()
    total = wp.int64(0)
    for k in range(i, counters.shape[0], wp.min(counters.shape[0], wp.static(ADDING * COUNTERS))):
        total += counters[k]
    wp.atomic_add(sums, i % wp.static(COUNTERS), total)


@wp.func
def key_of(hit: EarliestHit) -> wp.int64:
    """Smaller is better at the same time: piercing, then smaller triangle numbers."""
    key = (wp.int64(hit.a) << wp.int64(31)) | wp.int64(hit.b)
    if hit.pierced < 0:
        key = key | (wp.int64(1) << wp.int64(62))
    return key


@wp.kernel
def _find_best_keys(first: int, frontier: Frontier):
    i = first + wp.tid()
    if frontier.hits[i].time == frontier.bounds[frontier.hit_queries[i]]:
        wp.atomic_min(frontier.keys, frontier.hit_queries[i], key_of(frontier.hits[i]))


@wp.kernel
def _write_hits(first: int, frontier: Frontier, bests: wp.array[EarliestHit]):
    i = first + wp.tid()
    q = frontier.hit_queries[i]
    if frontier.hits[i].time == frontier.bounds[q] and key_of(frontier.hits[i]) == frontier.keys[q]:
        bests[q] = frontier.hits[i]
