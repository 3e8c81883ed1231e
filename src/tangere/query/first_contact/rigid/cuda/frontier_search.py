"""Queries by a whole GPU: the earliest pairs of boxes of every query at a time, each child by a thread of its own.

Method:   every query has a stack of pairs. A round takes up to `width` of them from its top and puts their children
          there, the earliest on top; pairs of triangles go to one list and are solved after that, so that the threads
          of a warp do alike things. The fewer the questions, the wider: a stack never holds more than `width` pairs for
          every level of the trees. The earliest time of a question is shared by its pairs through one number. All
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

from tangere.bvh.obb import ObbNode
from tangere.motion import RigidMotion
from tangere.query.first_contact.rigid.conservative_advancement import (
    RigidQuery,
    conservative_advance,
    pair_of,
    relative_at,
)
from tangere.query.first_contact.rigid.culling import RecessionTable, culling_of, recedes
from tangere.query.first_contact.rigid.traversal import COUNTERS, Candidate, EarliestHit, no_hit, solve_leaf
from tangere.runtime import SOUND, launch, load

if TYPE_CHECKING:
    from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch

wp.set_module_options(SOUND)

#: Pairs of all questions in a round, about: enough threads to fill a GPU.
PAIRS = 1 << 19
#: Pairs of one question in a round, least and most.
NARROWEST, WIDEST = 4, 4096
#: Children are sorted up to this width: beyond, ranks cost more than order saves.
SORTED = 64
#: Questions searched at a time.
CHUNK = 1 << 18
#: Rounds between two looks of the host.
TOGETHER = 8
#: Few questions wait for the slowest of their triangles: then these are solved every so many rounds. Divides TOGETHER.
SOLVED_EVERY = 2
#: Threads that add up each counter.
ADDING = 1024
#: Contacts kept for each question at first; when they are more, the search is done again.
HITS = 64

# Numbers counted on the device.
ACTIVE = wp.constant(0)  #: questions with pairs left
NEXT = wp.constant(1)
LEAVES = wp.constant(2)
FOUND = wp.constant(3)
FULL = wp.constant(4)  #: whether a stack lacked room
NO_KEY = wp.constant(wp.int64(2**63 - 1))


def search_frontier(batch: RigidQueryBatch, until: np.ndarray | None = None) -> None:
    """Search every question of `batch` in rounds.

    Args:
        until: (n,) times of the clock after which nothing is of interest; None means 1.
    """
    limits = wp.array([] if until is None else np.minimum(until, 1.0), dtype=wp.float64, device=batch.device)
    counted = np.zeros((1, COUNTERS), np.int64)
    for first in range(0, batch.count, CHUNK):
        count = min(CHUNK, batch.count - first)
        frontier = batch.searches.get(("frontier", count)) or _FrontierSearch(batch, count, HITS, 1)
        while not frontier.run(first, limits):
            frontier = _FrontierSearch(batch, count, 8 * frontier.kept, 2 * frontier.room)
        batch.searches["frontier", count] = frontier
        counted += frontier.counted()
    batch.host_hits, batch.host_counters = batch.hits.numpy(), counted


class _FrontierSearch:
    """Buffers and launches of a search in rounds."""

    def __init__(self, batch: RigidQueryBatch, count: int, kept: int, room: int) -> None:
        device = self.device = batch.device
        self.batch, self.count, self.kept, self.room = batch, count, kept, room
        self.width = min(max(PAIRS // count, NARROWEST), WIDEST)
        self.height = room * (batch.a.depth + batch.b.depth + 4) * self.width  #: of a stack
        threads = 2 * self.width * count

        def empty(size: int, dtype: Any) -> wp.array:
            return wp.empty(size, dtype=dtype, device=device)

        self.stacks, self.sizes = empty(count * self.height, Candidate), empty(count, wp.int32)
        self.children, self.child_counts = empty(threads, Candidate), wp.zeros(count, dtype=wp.int32, device=device)
        self.every = SOLVED_EVERY if self.width > SORTED else 1
        self.leaves = empty(self.every * threads, Candidate)
        self.active, self.next = empty(count, wp.int32), empty(count, wp.int32)
        self.bounds, self.keys = empty(batch.count, wp.float64), empty(batch.count, wp.int64)
        self.counts = empty(5, wp.int32)
        capacity = max(kept * count, 4096)
        self.hits, self.hit_queries = empty(capacity, EarliestHit), empty(capacity, wp.int32)
        self.counters = wp.zeros((self.every * threads, COUNTERS), dtype=wp.int64, device=device)
        for kernel in (_begin, _expand, _solve, _push_children, _count, _list, _relist, _sum, _claim, _write_hits):
            load(kernel, device)
        self._graph = None
        if device.is_cuda:
            with wp.ScopedCapture(device) as capture:
                self._launch_rounds()
            self._graph = capture.graph

    def run(self, first: int, limits: wp.array) -> bool:
        """Search the questions from `first` on, up to their limits, or 1 without; whether everything had room."""
        batch, count = self.batch, self.count
        self.counters.zero_()
        stacks = [self.stacks, self.sizes, self.active]
        found = [self.bounds, self.keys, batch.hits, self.counts]
        self._launch(_begin, count, [first, count, self.height, limits], [*stacks, *found])
        active = count
        found = 0
        while active:
            if self._graph is None:
                self._launch_rounds()
            else:
                wp.capture_launch(self._graph)
            active, _, _, found, full = (int(n) for n in self.counts.numpy())
            if found > len(self.hits) or full:
                return False
        inputs = [self.hits, self.hit_queries, self.bounds]
        self._launch(_claim, found, inputs, [self.keys])
        self._launch(_write_hits, found, [*inputs, self.keys], [batch.hits])
        return True

    def counted(self) -> np.ndarray:
        """(COUNTERS,) what all threads counted, added up where it was counted: they are many."""
        sums = wp.zeros(COUNTERS, dtype=wp.int64, device=self.device)
        self._launch(_sum, min(len(self.counters), ADDING) * COUNTERS, [self.counters.flatten()], [sums])
        return sums.numpy()

    def _launch_rounds(self) -> None:
        """`TOGETHER` rounds, whether there is anything to do or not, and a new list of who has anything left."""
        batch, threads, shape = self.batch, 2 * self.width * self.count, [self.width, self.height]
        stacks = [self.active, self.stacks, self.sizes, self.children, self.child_counts]
        found = [self.bounds, self.counts, self.hits, self.hit_queries, self.counters]
        for k in range(TOGETHER):
            solving = (k + 1) % self.every == 0
            boxes = [batch.cones, *shape, *stacks, self.leaves, self.bounds, self.counts, self.counters]
            self._launch(_expand, threads, [*batch.inputs, *boxes])
            if solving:
                self._launch(_solve, len(self.leaves), [*batch.inputs, self.leaves, *found])
            self._launch(_push_children, threads, [*shape, *stacks, self.counts])
            sizes = [self.active, self.sizes, self.child_counts, self.counts]
            self._launch(_count, self.count, [*shape, int(solving), *sizes])
        self._launch(_list, self.count, [self.active, self.sizes, self.counts], [self.next])
        self._launch(_relist, self.count, [self.next, self.counts], [self.active])
        wp.copy(self.counts, self.counts, ACTIVE, NEXT, 1)
        self.counts[NEXT : NEXT + 1].zero_()

    def _launch(self, kernel: wp.Kernel, size: int, inputs: list[Any], outputs: list[Any] | None = None) -> None:
        launch(kernel, size, inputs, outputs or [], device=self.device, threads=1)


@wp.kernel
def _begin(
    first: int,
    base: int,
    count: int,
    height: int,
    limits: wp.array[wp.float64],
    stacks: wp.array[Candidate],
    sizes: wp.array[int],
    active: wp.array[int],
    bounds: wp.array[wp.float64],
    keys: wp.array[wp.int64],
    bests: wp.array[EarliestHit],
    counts: wp.array[int],
):
    """Every question starts with its roots, not yet looked at, and without a contact."""
    i = first + wp.tid()
    root = Candidate()
    root.a = -1
    root.query = base + i
    stacks[i * height] = root
    sizes[i] = 1
    active[i] = i
    bounds[base + i] = wp.float64(1.0)
    if limits.shape[0] > 0:
        bounds[base + i] = limits[base + i]
    keys[base + i] = NO_KEY
    bests[base + i] = no_hit()
    if i == 0:
        for k in range(counts.shape[0]):
            counts[k] = wp.where(k == ACTIVE, count, 0)


@wp.kernel
def _expand(
    first: int,
    queries: wp.array[RigidQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    cones: RecessionTable,
    width: int,
    height: int,
    active: wp.array[int],
    stacks: wp.array[Candidate],
    sizes: wp.array[int],
    children: wp.array[Candidate],
    child_counts: wp.array[int],
    leaves: wp.array[Candidate],
    bounds: wp.array[wp.float64],
    counts: wp.array[int],
    counters: wp.array2d[wp.int64],
):
    """Child k of pair j from the top of a question's stack; counters are per thread."""
    i = first + wp.tid()
    row = i / (2 * width)
    if row >= counts[ACTIVE]:
        return
    stack = active[row]
    j = (i % (2 * width)) / 2
    k = i % 2
    if j >= sizes[stack]:
        return
    item = stacks[stack * height + sizes[stack] - 1 - j]
    until = bounds[item.query]
    if item.time > until:
        return
    query = queries[item.query]
    pair = pair_of(query, motions, nodes_a, nodes_b)
    child = Candidate()
    child.query = item.query
    child.b = item.b
    if item.a < 0:
        if k == 1:
            return
    else:
        a = nodes_a[query.node_a + item.a]
        b = nodes_b[query.node_b + item.b]
        child.a = item.a
        if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
            child.a = wp.where(k == 0, item.a + 1, a.right)
        else:
            child.b = wp.where(k == 0, item.b + 1, b.right)
    box_a = nodes_a[query.node_a + child.a]
    box_b = nodes_b[query.node_b + child.b]
    now = relative_at(query, pair, motions, item.time)
    child.size = box_a.radius + box_b.radius
    child.time = conservative_advance(query, pair, motions, box_a, box_b, now, item.time, until, counters, i)
    if child.time > until:
        return
    culling = culling_of(query, pair, motions)
    if recedes(culling, cones, box_a, box_b, query.node_a + child.a, query.node_b + child.b):
        counters[i, 3] = counters[i, 3] + wp.int64(1)
    elif box_a.right < 0 and box_b.right < 0:
        leaves[wp.atomic_add(counts, LEAVES, 1)] = child
    else:
        children[row * 2 * width + wp.atomic_add(child_counts, row, 1)] = child


@wp.kernel
def _solve(
    first: int,
    queries: wp.array[RigidQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    leaves: wp.array[Candidate],
    bounds: wp.array[wp.float64],
    counts: wp.array[int],
    hits: wp.array[EarliestHit],
    hit_queries: wp.array[int],
    counters: wp.array2d[wp.int64],
):
    """The pairs of triangles that came up in this round."""
    i = first + wp.tid()
    if i >= counts[LEAVES]:
        return
    item = leaves[i]
    until = bounds[item.query]
    if item.time > until:
        return
    query = queries[item.query]
    pair = pair_of(query, motions, nodes_a, nodes_b)
    triangle_a = nodes_a[query.node_a + item.a].triangle
    triangle_b = nodes_b[query.node_b + item.b].triangle
    found = solve_leaf(
        query, pair, motions, corners_a, corners_b, triangle_a, triangle_b, item.time, until, counters, i
    )
    if found.time <= until:
        wp.atomic_min(bounds, item.query, found.time)
        place = wp.atomic_add(counts, FOUND, 1)
        if place < hits.shape[0]:
            hits[place] = found
            hit_queries[place] = item.query


@wp.kernel
def _push_children(
    first: int,
    width: int,
    height: int,
    active: wp.array[int],
    stacks: wp.array[Candidate],
    sizes: wp.array[int],
    children: wp.array[Candidate],
    child_counts: wp.array[int],
    counts: wp.array[int],
):
    """The children take the place of the pairs that were taken, the earliest on top unless they are too many."""
    i = first + wp.tid()
    row = i / (2 * width)
    if row >= counts[ACTIVE]:
        return
    own = i % (2 * width)
    count = child_counts[row]
    if own >= count:
        return
    child = children[row * 2 * width + own]
    later = int(0)
    for j in range(wp.where(width <= wp.static(SORTED), count, 0)):
        time = children[row * 2 * width + j].time
        if time > child.time or (time == child.time and j < own):
            later += 1
    stack = active[row]
    at = wp.max(sizes[stack] - width, 0) + wp.where(width <= wp.static(SORTED), later, own)
    if at < height:
        stacks[stack * height + at] = child
    else:
        counts[FULL] = 1  # every writer writes the same


@wp.kernel
def _count(
    first: int,
    width: int,
    height: int,
    solved: int,
    active: wp.array[int],
    sizes: wp.array[int],
    child_counts: wp.array[int],
    counts: wp.array[int],
):
    row = first + wp.tid()
    if row < counts[ACTIVE]:
        stack = active[row]
        sizes[stack] = wp.min(wp.max(sizes[stack] - width, 0) + child_counts[row], height)
        child_counts[row] = 0
    if row == 0 and solved == 1:
        counts[LEAVES] = 0


@wp.kernel
def _list(first: int, active: wp.array[int], sizes: wp.array[int], counts: wp.array[int], following: wp.array[int]):
    """Who has pairs left."""
    row = first + wp.tid()
    if row < counts[ACTIVE] and sizes[active[row]] > 0:
        following[wp.atomic_add(counts, NEXT, 1)] = active[row]


@wp.kernel
def _relist(first: int, following: wp.array[int], counts: wp.array[int], active: wp.array[int]):
    row = first + wp.tid()
    if row < counts[NEXT]:
        active[row] = following[row]


@wp.kernel
def _sum(first: int, counters: wp.array[wp.int64], sums: wp.array[wp.int64]):
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
def _claim(
    first: int,
    hits: wp.array[EarliestHit],
    hit_queries: wp.array[int],
    bounds: wp.array[wp.float64],
    keys: wp.array[wp.int64],
):
    i = first + wp.tid()
    if hits[i].time == bounds[hit_queries[i]]:
        wp.atomic_min(keys, hit_queries[i], key_of(hits[i]))


@wp.kernel
def _write_hits(
    first: int,
    hits: wp.array[EarliestHit],
    hit_queries: wp.array[int],
    bounds: wp.array[wp.float64],
    keys: wp.array[wp.int64],
    bests: wp.array[EarliestHit],
):
    i = first + wp.tid()
    q = hit_queries[i]
    if hits[i].time == bounds[q] and key_of(hits[i]) == keys[q]:
        bests[q] = hits[i]
