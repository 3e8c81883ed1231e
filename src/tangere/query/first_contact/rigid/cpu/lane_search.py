"""The search for the first contact of two trees on a CPU: one box against four at a time.

Method:   best-first for the first pairs (a heap by time), then depth-first from each pair that is left, in the order of
          the heap. Of a pair the larger box is opened; its four children are advanced together against the other one
          (`simd_advance`), and those that may meet it in time wait. As long as it goes best-first, the
          search ends with the first triangles that certainly meet at the start: nothing is earlier.
Waiting:  a pair is two numbers: its key and the places of its boxes in their trees. The key is the time rounded down to
          float32, above the sum of the radii: so one comparison of integers decides, and nothing is copied in parts. An
          earlier time than a pair's own costs time only. Of pairs at the same time the smaller is first: where bodies
          overlap at the start, which makes all times 0, that is straight down to two triangles.
Bits:     as `traversal` says; and what is found best-first does not depend on threads, for one thread finds it.
Known as: best-first traversal of a wide BVH.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import box_axes
from tangere.query.first_contact.rigid.conservative_advancement import (
    EVALUATIONS,
    Pair,
    QueryArrays,
    RigidQuery,
    relative_at,
    safe_time,
    worth_repeating,
)
from tangere.query.first_contact.rigid.cpu.simd_advance import (
    BODIES,
    advance_lanes,
    place_bodies,
    place_course,
    place_steady_bodies,
)
from tangere.query.first_contact.rigid.culling import RecessionTable, culling_of, recedes
from tangere.query.first_contact.rigid.traversal import (
    COUNTERS,
    NO_TRIANGLE,
    EarliestHit,
    is_earlier,
    no_hit,
    solve_leaf,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Numbers before the waiting pairs of a slot: where the bodies are, four times and a counter.
HEAD = BODIES + 6
_HEAD = wp.constant(HEAD)
_BODIES = wp.constant(BODIES)
_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))

#: `Entry`: a waiting pair.
_ENTRY = """
    struct Entry { unsigned long long key, what; };
    Entry* heap = (Entry*)&scratch.data[base];
"""


@wp.func_native(
    _ENTRY
    + """
    const Entry least = heap[0], last = heap[count - 1];
    const int n = count - 1;
    int i = 0;
    while (2 * i + 1 < n) {
        int child = 2 * i + 1;
        child += child + 1 < n && heap[child + 1].key < heap[child].key;
        if (!(heap[child].key < last.key))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    heap[n] = least;
"""
)
def pop_least(scratch: wp.array[wp.uint64], base: int, count: int):
    """Move the first of a heap of `count` pairs at `base` to its end."""
    ...


@wp.func_native("""
    return wp::vec_t<2, wp::int32>((int)(scratch.data[at + 1] >> 32), (int)(scratch.data[at + 1] & 0xffffffffull));
""")
def places_of(scratch: wp.array[wp.uint64], at: int) -> wp.vec2i:
    """The places of the boxes of a waiting pair."""
    ...


@wp.func_native("""
    const unsigned bits = (unsigned)(scratch.data[at] >> 32);
    float time;
    __builtin_memcpy(&time, &bits, 4);
    return (double)time;
""")
def time_of(scratch: wp.array[wp.uint64], at: int) -> wp.float64:
    """The time of a waiting pair, rounded down."""
    ...


@wp.func_native(
    _ENTRY
    + """
    const float* rows_s = single_is_a ? rows_a.data : rows_b.data;
    const float* rows_l = single_is_a ? rows_b.data : rows_a.data;
    const double* times = (const double*)&scratch.data[lanes];
    const float radius = rows_s[(long long)(single >> 2) * 64 + 60 + (single & 3)];
    const unsigned long long other = single_is_a ? (unsigned long long)single << 32 : (unsigned long long)single;
    int n = count;
    for (unsigned rest = (unsigned)mask; rest; rest &= rest - 1) {
        const int k = __builtin_ctz(rest);
        float time = (float)times[k];
        const float size = rows_l[(long long)node * 64 + 60 + k] + radius;
        unsigned time_bits, size_bits;
        __builtin_memcpy(&time_bits, &time, 4);
        time_bits -= (double)time > times[k];  // the next smaller one
        __builtin_memcpy(&time, &time_bits, 4);
        if ((double)time > until)
            continue;
        __builtin_memcpy(&size_bits, &size, 4);
        const unsigned long long place = (unsigned long long)(4 * node + k);
        const unsigned long long key = (unsigned long long)time_bits << 32 | size_bits;
        const Entry entry = {key, other | (single_is_a ? place : place << 32)};
        int i = n++;
        if (stacked)
            for (; i > count && heap[i - 1].key < entry.key; --i)  // the earliest lies on top
                heap[i] = heap[i - 1];
        else
            for (; i > 0 && entry.key < heap[(i - 1) / 2].key; i = (i - 1) / 2)
                heap[i] = heap[(i - 1) / 2];
        heap[i] = entry;
    }
    return n;
"""
)
def push_lanes(
    rows_a: wp.array[wp.float32],
    rows_b: wp.array[wp.float32],
    single: int,
    node: int,
    single_is_a: bool,
    mask: int,
    until: wp.float64,
    stacked: bool,
    scratch: wp.array[wp.uint64],
    lanes: int,
    base: int,
    count: int,
) -> int:
    """Put pairs of a single box with those of a node that `mask` names behind `count` pairs at `base`; their number.

    Pairs after `until` are left out. Times are compared as they are kept: else it would depend on the order of things
    whether a pair that is later by less than a rounding is looked at.

    Args:
        stacked: onto a stack, the earliest on top, instead of into a heap.
        lanes: where their times are.
    """
    ...


@wp.func_native("return ((const double*)scratch.data)[at];")
def lane_time(scratch: wp.array[wp.uint64], at: int) -> wp.float64:
    """A time among the numbers of a slot."""
    ...


@wp.func_native("((double*)scratch.data)[at] = time;")
def set_lane_time(scratch: wp.array[wp.uint64], at: int, time: wp.float64): ...


@wp.struct
class WideTrees:
    """The trees of both sides, as `WideObbTree` has them."""

    rows_a: wp.array[wp.float32]
    children_a: wp.array[int]
    nodes_a: wp.array[int]
    rows_b: wp.array[wp.float32]
    children_b: wp.array[int]
    nodes_b: wp.array[int]


@wp.struct
class SearchLayout:
    """Where a job keeps its waiting pairs: slot s begins at s room."""

    heap: wp.int32  #: pairs that the heap has room for; the stack follows
    pops: wp.int32  #: so many pairs are taken best-first
    stop: wp.bool  #: leave what is in the heap then, instead of going on depth-first
    room: wp.int32  #: numbers of a slot
    sharing: wp.bool  #: all jobs are about the first query, each in a slot of its own; else a slot for every shard


@wp.func
def advance_again(
    query: RigidQuery,
    pair: Pair,
    arrays: QueryArrays,
    trees: WideTrees,
    single: int,
    node: int,
    single_is_a: bool,
    found: int,
    until: wp.float64,
    scratch: wp.array[wp.uint64],
    lanes: int,
):
    """Evaluate boxes whose motions are not steady once more, one after the other."""
    for k in range(4):
        if (found >> (4 + k)) & 1 == 1:
            place = 4 * node + k
            at_a = place
            at_b = single
            if single_is_a:
                at_a = single
                at_b = place
            a = arrays.nodes_a[query.node_a + trees.nodes_a[at_a]]
            b = arrays.nodes_b[query.node_b + trees.nodes_b[at_b]]
            back_a = wp.transpose(box_axes(a))
            time = lane_time(scratch, lanes + k)
            count = int(1)
            going = bool(True)
            while going:
                now = relative_at(query, pair, arrays.motions, time)
                result = safe_time(now, pair, back_a, a, b, time, until)
                time = result[1]
                count += 1
                going = worth_repeating(result, a, b, until) and count < EVALUATIONS
            set_lane_time(scratch, lanes + k, time)
            scratch[lanes + 4] = scratch[lanes + 4] + wp.uint64(count - 1)


@wp.kernel
def search_lanes(
    first: int,
    shard: int,
    arrays: QueryArrays,
    trees: WideTrees,
    cones: RecessionTable,
    layout: SearchLayout,
    loaded: wp.array[int],
    shared: wp.array[wp.float64],
    shared_count: int,
    shared_stride: int,
    scratch: wp.array[wp.uint64],
    bests: wp.array[EarliestHit],
    counters: wp.array2d[wp.int64],
):
    """One job: a whole query, or what was loaded into the job's heap of it.

    Args:
        loaded: pairs in the heap of each job; 0 starts at the roots.
        shared: earliest times of the `shared_count` jobs that share a query, `shared_stride` apart.
    """
    job = first + wp.tid()
    row = job
    slot = shard
    if layout.sharing:
        row = 0
        slot = job
    query = arrays.queries[row]
    pair = arrays.pairs[row]
    culling = culling_of(query, pair, arrays.motions)
    bodies = slot * layout.room
    lanes = bodies + _BODIES
    heap = bodies + _HEAD
    stack = heap + 2 * layout.heap
    heap_count = int(loaded[job])
    stack_count = int(0)
    pops = int(0)
    best = bests[job]
    until = wp.min(best.time, _ONE)
    for k in range(COUNTERS):
        counters[job, k] = wp.int64(0)
    scratch[lanes + 4] = wp.uint64(0)
    if heap_count == 0:  # the roots, not yet looked at
        scratch[stack] = wp.uint64(0)
        scratch[stack + 1] = wp.uint64(4 * query.wide_a) << wp.uint64(32) | wp.uint64(4 * query.wide_b)
        stack_count = 1
    # Boxes that overlap leave their time to their children: most pairs are asked at the instant of the pair before.
    instant = wp.float64(-1.0)
    steady = pair.steady
    straight = steady and not pair.steady_a.bends and not pair.steady_b.bends
    place_course(arrays.pairs, row, scratch, bodies)
    going = bool(True)
    while going:
        at = int(stack)
        if stack_count > 0:
            stack_count -= 1
            at = stack + 2 * stack_count
        elif heap_count > 0 and not (layout.stop and pops >= layout.pops):
            pop_least(scratch, heap, heap_count)
            heap_count -= 1
            at = heap + 2 * heap_count
            pops += 1
        else:
            going = False
        for k in range(shared_count):
            until = wp.min(until, shared[k * shared_stride])
        tau = time_of(scratch, at)
        if going and tau > until and at < stack:
            heap_count = 0  # all others are later
        if going and not tau > until:
            places = places_of(scratch, at)
            a = places[0]
            b = places[1]
            child_a = trees.children_a[a]
            child_b = trees.children_b[b]
            receding = bool(False)
            if culling.on:
                node_a = query.node_a + trees.nodes_a[a]
                node_b = query.node_b + trees.nodes_b[b]
                receding = recedes(culling, cones, arrays.nodes_a[node_a], arrays.nodes_b[node_b], node_a, node_b)
            if receding:
                counters[job, 3] = counters[job, 3] + wp.int64(1)
            elif child_a < 0 and child_b < 0:
                found = solve_leaf(query, pair, arrays, -1 - child_a, -1 - child_b, tau, until, counters, job)
                if found.time <= _ONE and is_earlier(found, best):
                    best = found
                    until = wp.min(until, found.time)
                    if shared_count > 0:
                        shared[job * shared_stride] = until
                    if found.time == _ZERO and found.pierced >= 0 and pops < layout.pops:
                        heap_count = 0
            else:
                if tau != instant:
                    if steady:
                        place_steady_bodies(arrays.pairs, row, tau, scratch, bodies)
                    else:
                        place_bodies(relative_at(query, pair, arrays.motions, tau), scratch, bodies)
                    instant = tau
                single = a
                node = query.wide_b + child_b
                radius_a = trees.rows_a[64 * (a / 4) + 60 + a % 4]
                radius_b = trees.rows_b[64 * (b / 4) + 60 + b % 4]
                single_is_a = child_a < 0 or (child_b >= 0 and radius_b > radius_a)
                if not single_is_a:
                    single = b
                    node = query.wide_a + child_a
                mask = advance_lanes(
                    arrays.pairs,
                    row,
                    trees.rows_a,
                    trees.children_a,
                    trees.rows_b,
                    trees.children_b,
                    single,
                    node,
                    single_is_a,
                    tau,
                    until,
                    steady,
                    straight,
                    EVALUATIONS,
                    scratch,
                    lanes,
                    bodies,
                )
                if not steady:
                    advance_again(query, pair, arrays, trees, single, node, single_is_a, mask, until, scratch, lanes)
                stacked = pops >= layout.pops
                base = heap
                count = heap_count
                if stacked:
                    base = stack
                    count = stack_count
                count = push_lanes(
                    trees.rows_a,
                    trees.rows_b,
                    single,
                    node,
                    single_is_a,
                    mask & 15,
                    until,
                    stacked,
                    scratch,
                    lanes,
                    base,
                    count,
                )
                if stacked:
                    stack_count = count
                else:
                    heap_count = count
    if best.a == NO_TRIANGLE and not (layout.stop and heap_count > 0):
        best = no_hit()  # a limit, which those who go on still need
    bests[job] = best
    counters[job, 0] = wp.int64(scratch[lanes + 4])
    counters[job, 4] = wp.int64(heap_count)
