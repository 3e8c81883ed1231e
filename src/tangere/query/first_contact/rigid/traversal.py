"""The search for the first contact of two trees: every pair of boxes carries its own time until which it is free.

Method:   best-first for the first pairs (a heap by time; at the same time larger boxes first), then depth-first from
          each pair that is left, in the order of the heap. A pair is dropped when its time is beyond the earliest
          contact known; children start from their parent's time. Leaves are solved by `leaf_time`.
Bits:     what a leaf answers depends on its ancestors only, because a pair is dropped when its time is *later* than the
          earliest contact and never when it is equal; ties go to the smallest pair of triangles. So the answer does
          not depend on the order, and several threads may share one query: a stale bound drops less, nothing else.
Known as: best-first BVH traversal with conservative advancement of node pairs (Tang, Kim and Manocha 2009, C2A); the
          current time of contact passed on to every test is Redon 2002, sections 2.6.3 and 3.5.3.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.geometry.triangles import pierce
from tangere.query.first_contact.rigid.conservative_advancement import (
    Pair,
    QueryArrays,
    RigidQuery,
    conservative_advance,
    pair_of,
    relative_at,
)
from tangere.query.first_contact.rigid.culling import RecessionTable, culling_of, recedes
from tangere.query.first_contact.rigid.narrow_phase import corners_of, leaf_time, placed
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Counters of a job: box pairs evaluated, triangle pairs evaluated, triangle pairs visited, pairs culled, and how many
#: are left in the heap.
COUNTERS = wp.constant(5)
#: In the place of a side that goes through the other triangle: the bodies meet, in whatever way; see
#: `classify_initial_overlap`.
MEETS = wp.constant(6)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


@wp.struct
class Candidate:
    """A pair of boxes that is free until `time`."""

    time: wp.float64  #: of the clock
    size: wp.float32  #: sum of the radii
    a: wp.int32  #: node of a, counted from its root
    b: wp.int32
    query: wp.int32  #: which one, for searches of many at once


@wp.struct
class EarliestHit:
    """The earliest contact so far; `time` > 1: none."""

    time: wp.float64  #: of the clock
    a: wp.int32  #: triangle of a
    b: wp.int32
    pierced: wp.int32  #: at time 0: the side that goes through the other triangle, as `pierce` tells it, MEETS, else -1
    decided: wp.bool


#: Comes after every triangle: in the place of a hit that is only a limit of time.
NO_TRIANGLE = wp.constant(2**31 - 1)
#: A best before anything was found.
NO_HIT = np.zeros(1, EarliestHit.numpy_dtype())
NO_HIT["time"], NO_HIT["pierced"] = 2.0, -1


@wp.func
def no_hit() -> EarliestHit:
    best = EarliestHit()
    best.time = wp.float64(2.0)
    best.pierced = -1
    return best


@wp.struct
class HeapLayout:
    """Where a job keeps its candidates: slot s begins at s room."""

    heap: wp.int32  #: places for the heap; the stack follows
    pops: wp.int32  #: so many candidates are taken best-first
    stop: wp.bool  #: leave what is in the heap then, instead of going on depth-first
    room: wp.int32  #: places of a slot
    by_job: wp.bool  #: a slot for every job (shared queries), else one for every shard


@wp.func
def is_earlier(candidate: EarliestHit, best: EarliestHit) -> bool:
    """Whether a contact goes before another: earlier, then piercing, then smaller triangle numbers."""
    through = candidate.pierced >= 0
    best_through = best.pierced >= 0
    result = candidate.time < best.time
    if candidate.time == best.time:
        result = through and not best_through
        if through == best_through:
            result = candidate.a < best.a or (candidate.a == best.a and candidate.b < best.b)
    return result


@wp.func
def before(p: Candidate, q: Candidate) -> bool:
    return p.time < q.time or (p.time == q.time and p.size > q.size)


@wp.func
def push(heap: wp.array[Candidate], base: int, count: int, item: Candidate):
    """Put `item` into a heap of `count`."""
    i = int(count)
    going = bool(True)
    while going and i > 0:
        up = (i - 1) / 2
        parent = heap[base + up]
        if before(item, parent):
            heap[base + i] = parent
            i = up
        else:
            going = False
    heap[base + i] = item


@wp.func
def pop(heap: wp.array[Candidate], base: int, count: int):
    """Take the first of a heap of `count + 1` away."""
    item = heap[base + count]
    i = int(0)
    going = bool(True)
    while going and 2 * i + 1 < count:
        down = 2 * i + 1
        child = heap[base + down]
        if down + 1 < count:
            other = heap[base + down + 1]
            if before(other, child):
                child = other
                down += 1
        if before(child, item):
            heap[base + i] = child
            i = down
        else:
            going = False
    heap[base + i] = item


@wp.func
def solve_leaf(
    query: RigidQuery,
    pair: Pair,
    arrays: QueryArrays,
    triangle_a: int,
    triangle_b: int,
    tau: wp.float64,
    until: wp.float64,
    counters: wp.array2d[wp.int64],
    job: int,
) -> EarliestHit:
    """The first contact of two triangles, searched from tau to `until`."""
    a = corners_of(arrays.corners_a, query.triangle_a + triangle_a, pair.bounds_a.pivot)
    b = corners_of(arrays.corners_b, query.triangle_b + triangle_b, pair.bounds_b.pivot)
    answer = leaf_time(query, pair, arrays.motions, a, b, tau, until)
    counters[job, 1] = counters[job, 1] + wp.int64(answer.steps)
    counters[job, 2] = counters[job, 2] + wp.int64(1)
    found = EarliestHit()
    found.time = answer.time
    found.a = triangle_a
    found.b = triangle_b
    found.decided = answer.decided
    found.pierced = -1
    if answer.time == _ZERO:
        found.pierced = pierce(a, placed(relative_at(query, pair, arrays.motions, _ZERO), b), pair.slack)
    return found


@wp.kernel
def search(
    first: int,
    shard: int,
    arrays: QueryArrays,
    cones: RecessionTable,
    layout: HeapLayout,
    loaded: wp.array[int],
    shared: wp.array[wp.float64],
    shared_count: int,
    shared_stride: int,
    candidates: wp.array[Candidate],
    bests: wp.array[EarliestHit],
    counters: wp.array2d[wp.int64],
):
    """One job: a whole query, or what was loaded into the job's heap of it.

    Args:
        loaded: candidates in the heap of each job; 0 starts at the roots.
        shared: earliest times of the `shared_count` jobs that share a query, `shared_stride` apart.
    """
    job = first + wp.tid()
    query = arrays.queries[job]
    pair = pair_of(query, arrays)
    culling = culling_of(query, pair, arrays.motions)
    slot = shard
    if layout.by_job:
        slot = job
    base = slot * layout.room
    stack = base + layout.heap
    heap_count = int(loaded[job])
    stack_count = int(0)
    pops = int(0)
    best = bests[job]
    until = wp.min(best.time, _ONE)
    for k in range(COUNTERS):
        counters[job, k] = wp.int64(0)

    # The candidates to look at: the roots, later the two children of a pair.
    a0 = int(0)
    b0 = int(0)
    a1 = int(0)
    b1 = int(0)
    fresh = int(0)
    tau = wp.float64(0.0)
    if heap_count == 0:
        fresh = 1
    # Boxes that overlap leave their time to their children: most pairs are asked at the instant of the pair before.
    instant = wp.float64(0.0)
    now = relative_at(query, pair, arrays.motions, instant)
    going = bool(True)
    while going:
        leaf_a = int(-1)
        leaf_b = int(-1)
        item = Candidate()
        while going and leaf_a < 0:
            if fresh > 0:
                if tau != instant:
                    now = relative_at(query, pair, arrays.motions, tau)
                    instant = tau
                other = Candidate()
                other.time = wp.float64(2.0)
                for k in range(fresh):
                    item = Candidate()
                    item.a = a0
                    item.b = b0
                    if k == 1:
                        item.a = a1
                        item.b = b1
                    a = arrays.nodes_a[query.node_a + item.a]
                    b = arrays.nodes_b[query.node_b + item.b]
                    item.size = a.radius + b.radius
                    item.time = conservative_advance(query, pair, arrays.motions, a, b, now, tau, until, counters, job)
                    if not item.time > until:
                        if pops < layout.pops:
                            push(candidates, base, heap_count, item)
                            heap_count += 1
                        else:
                            # Of two children the earlier one lies on top.
                            if k == 1 and other.time < item.time:
                                candidates[stack + stack_count - 1] = item
                                candidates[stack + stack_count] = other
                            else:
                                candidates[stack + stack_count] = item
                            stack_count += 1
                            other = item
                fresh = 0
            if stack_count > 0:
                stack_count -= 1
                item = candidates[stack + stack_count]
            elif heap_count > 0 and not (layout.stop and pops >= layout.pops):
                item = candidates[base]
                heap_count -= 1
                pop(candidates, base, heap_count)
                pops += 1
                if item.time > until:
                    heap_count = 0  # so are all the others
            else:
                going = False
            for k in range(shared_count):
                until = wp.min(until, shared[k * shared_stride])
            if going and not item.time > until:
                a = arrays.nodes_a[query.node_a + item.a]
                b = arrays.nodes_b[query.node_b + item.b]
                if recedes(culling, cones, a, b, query.node_a + item.a, query.node_b + item.b):
                    counters[job, 3] = counters[job, 3] + wp.int64(1)
                elif a.right < 0 and b.right < 0:
                    leaf_a = a.triangle
                    leaf_b = b.triangle
                else:
                    a0 = item.a
                    b0 = item.b
                    a1 = item.a
                    b1 = item.b
                    if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
                        a0 = item.a + 1
                        a1 = a.right
                    else:
                        b0 = item.b + 1
                        b1 = b.right
                    tau = item.time
                    fresh = 2
        if leaf_a >= 0:
            found = solve_leaf(query, pair, arrays, leaf_a, leaf_b, item.time, until, counters, job)
            if found.time <= _ONE and is_earlier(found, best):
                best = found
                until = wp.min(until, found.time)
                if shared_count > 0:
                    shared[job * shared_stride] = until
    if best.a == NO_TRIANGLE and not (layout.stop and heap_count > 0):
        best = no_hit()  # a limit, which those who go on still need
    bests[job] = best
    counters[job, 4] = wp.int64(heap_count)
