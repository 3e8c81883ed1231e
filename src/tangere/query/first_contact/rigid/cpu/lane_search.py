"""The search for the first contact of two trees on a CPU: one box against four at a time.

Method:   best-first for the first pairs (a heap by time), then depth-first from each pair that is left, in the order of
          the heap. Of a pair the larger box is opened; its four children are advanced together against the other one
          (`simd_advance`), and those that may meet it in time wait. As long as it goes best-first, the
          search ends with the first triangles that certainly meet at the start: nothing is earlier. A long search is
          opened by one thread; of what it leaves the largest pairs are opened, and the rest is dealt out.
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
    QueryArrays,
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
#: float64 numbers in a cache line: threads do not write into the same one.
LINE = wp.constant(8)
#: Of the pairs that are left the largest are opened, so many times, for shares of about the same weight.
_LARGEST_OPENED = wp.constant(256)
_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


#: `Entry`: a waiting pair; `sift_up`, `sift_down`: put one into its place in a heap; `turned`: the key by size, the
#: largest first, from the key by time, and back.
_ENTRY = """
    struct Entry { unsigned long long key, what; };
    Entry* heap = (Entry*)&scratch.data[base];
    auto sift_up = [](Entry* heap, int i, const Entry entry) {
        for (; i > 0 && entry.key < heap[(i - 1) / 2].key; i = (i - 1) / 2)
            heap[i] = heap[(i - 1) / 2];
        heap[i] = entry;
    };
    auto sift_down = [](Entry* heap, int i, int n, const Entry entry) {
        while (2 * i + 1 < n) {
            int child = 2 * i + 1;
            child += child + 1 < n && heap[child + 1].key < heap[child].key;
            if (!(heap[child].key < entry.key))
                break;
            heap[i] = heap[child];
            i = child;
        }
        heap[i] = entry;
    };
    auto by_size = [](unsigned long long key) -> unsigned long long { return ~key << 32 | key >> 32; };
    auto by_time = [](unsigned long long key) -> unsigned long long { return key << 32 | ~key >> 32; };
"""


@wp.func_native(
    _ENTRY
    + """
    const Entry least = heap[0], last = heap[count - 1];
    sift_down(heap, 0, count - 1, last);
    heap[count - 1] = least;
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
    const unsigned bits = (unsigned)(sized ? scratch.data[at] : scratch.data[at] >> 32);
    float time;
    __builtin_memcpy(&time, &bits, 4);
    return (double)time;
""")
def time_of(scratch: wp.array[wp.uint64], at: int, sized: bool) -> wp.float64:
    """The time of a waiting pair, rounded down; `sized`: its key is by size."""
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
        const Entry entry = {sized ? by_size(key) : key, other | (single_is_a ? place : place << 32)};
        int i = n++;
        if (stacked) {
            for (; i > count && heap[i - 1].key < entry.key; --i)  // the earliest lies on top
                heap[i] = heap[i - 1];
            heap[i] = entry;
        } else
            sift_up(heap, i, entry);
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
    sized: bool,
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
        sized: the heap is by size.
        lanes: where their times are.
    """
    ...


@wp.func_native("return ((const double*)scratch.data)[at];")
def lane_time(scratch: wp.array[wp.uint64], at: int) -> wp.float64:
    """A time among the numbers of a slot."""
    ...


@wp.func_native("((double*)scratch.data)[at] = time;")
def set_lane_time(scratch: wp.array[wp.uint64], at: int, time: wp.float64): ...


@wp.func_native(
    _ENTRY
    + """
    const Entry* more = (const Entry*)&scratch.data[stack];
    for (int k = 0; k < count; ++k)
        heap[k].key = by_size(heap[k].key);
    for (int k = 0; k < stacked; ++k)
        heap[count + k] = {by_size(more[k].key), more[k].what};
    const int n = count + stacked;
    for (int i = n / 2 - 1; i >= 0; --i)
        sift_down(heap, i, n, heap[i]);
    return n;
"""
)
def order_by_size(scratch: wp.array[wp.uint64], base: int, count: int, stack: int, stacked: int) -> int:
    """Make one heap by size, the largest first, of a heap by time and the pairs on a stack; how many they are."""
    ...


@wp.func_native(
    _ENTRY
    + """
    const Entry* all = (const Entry*)&scratch.data[begin];
    int n = 0;
    for (int k = job; k < count; k += jobs)
        sift_up(heap, n++, {by_time(all[k].key), all[k].what});
    return n;
"""
)
def take_share(scratch: wp.array[wp.uint64], begin: int, count: int, job: int, jobs: int, base: int) -> int:
    """Make a heap by time, at `base`, of every so many of `count` pairs by size, at `begin`; how many they are."""
    ...


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
    """Where a thread keeps its waiting pairs: slot s begins at s room."""

    heap: wp.int32  #: pairs that the heap has room for; the stack follows
    pops: wp.int32  #: so many pairs are taken best-first
    room: wp.int32  #: numbers of a slot
    opening: wp.int32  #: after so many openings of boxes the rest is left to be shared; 0: never
    jobs: wp.int32  #: shares that are made of it
    sharing: wp.bool  #: each job is a share of the first query


@wp.struct
class SharedSearch:
    """What the shares of a query have in common."""

    left: wp.array[int]  #: (1,) pairs that the opening left in its slot, the one after those of the threads
    jobs: wp.array[wp.int64]  #: (1,) shares there are
    bests: wp.array[EarliestHit]  #: of each share
    times: wp.array[wp.float64]  #: earliest time of each thread, `LINE` apart
    threads: wp.int32


@wp.func
def advance_again(
    arrays: QueryArrays,
    row: int,
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
            a = arrays.nodes_a[arrays.queries[row].node_a + trees.nodes_a[at_a]]
            b = arrays.nodes_b[arrays.queries[row].node_b + trees.nodes_b[at_b]]
            back_a = wp.transpose(box_axes(a))
            time = lane_time(scratch, lanes + k)
            count = int(1)
            going = bool(True)
            while going:
                now = relative_at(arrays, row, time)
                result = safe_time(now, arrays.pairs, row, arrays.pairs[row].keep, back_a, a, b, time, until)
                time = result[1]
                count += 1
                going = worth_repeating(result, a, b, until) and count < EVALUATIONS
            set_lane_time(scratch, lanes + k, time)
            scratch[lanes + 4] = scratch[lanes + 4] + wp.uint64(count - 1)


@wp.kernel
def search_lanes(
    first: int,
    shard: int,
    thread: int,
    arrays: QueryArrays,
    trees: WideTrees,
    cones: RecessionTable,
    layout: SearchLayout,
    shared: SharedSearch,
    scratch: wp.array[wp.uint64],
    bests: wp.array[EarliestHit],
    counters: wp.array2d[wp.int64],
):
    """One job: a whole query, the opening of one, or a share of what the opening left."""
    job = first + wp.tid()
    row = job
    if layout.sharing:
        row = 0
    query = arrays.queries[row]
    culling = culling_of(arrays, row)
    slot = thread
    if layout.opening > 0:
        slot = shared.threads  # where nobody writes while it is dealt out
    bodies = slot * layout.room
    lanes = bodies + _BODIES
    heap = bodies + _HEAD
    stack = heap + 2 * layout.heap
    heap_count = int(0)
    stack_count = int(0)
    threads = int(0)
    best = bests[job]
    for k in range(COUNTERS):
        counters[job, k] = wp.int64(0)
    scratch[lanes + 4] = wp.uint64(0)
    if layout.sharing:
        threads = shared.threads
        heap_count = take_share(scratch, threads * layout.room + _HEAD, shared.left[0], job, layout.jobs, heap)
    else:  # the roots, not yet looked at
        scratch[stack] = wp.uint64(0)
        scratch[stack + 1] = wp.uint64(4 * query.wide_a) << wp.uint64(32) | wp.uint64(4 * query.wide_b)
        stack_count = 1
    until = wp.min(best.time, _ONE)
    # Boxes that overlap leave their time to their children: most pairs are asked at the instant of the pair before.
    instant = wp.float64(-1.0)
    steady = arrays.pairs[row].steady
    straight = steady and not arrays.pairs[row].steady_a.bends and not arrays.pairs[row].steady_b.bends
    place_course(arrays.pairs, row, scratch, bodies)
    pops = int(0)
    opened = int(0)
    sized = bool(False)  #: the largest are opened, for shares
    going = bool(True)
    while going:
        at = int(stack)
        if layout.opening > 0 and opened >= layout.opening:
            if not sized:
                sized = True
                heap_count = order_by_size(scratch, heap, heap_count, stack, stack_count)
                stack_count = 0
            going = opened < layout.opening + _LARGEST_OPENED
        if going:
            if stack_count > 0:
                stack_count -= 1
                at = stack + 2 * stack_count
            elif heap_count > 0:
                pop_least(scratch, heap, heap_count)
                heap_count -= 1
                at = heap + 2 * heap_count
                pops += 1
            else:
                going = False
        for k in range(threads):
            until = wp.min(until, shared.times[k * LINE])
        tau = time_of(scratch, at, sized)
        if going and tau > until and at < stack and not sized:
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
                found = solve_leaf(arrays, row, -1 - child_a, -1 - child_b, tau, until, counters, job)
                if found.time <= _ONE and is_earlier(found, best):
                    best = found
                    until = wp.min(until, found.time)
                    if threads > 0:
                        shared.times[thread * LINE] = wp.min(until, shared.times[thread * LINE])
                    if found.time == _ZERO and found.pierced >= 0 and pops < layout.pops and not sized:
                        heap_count = 0
            else:
                opened += 1
                if tau != instant:
                    if steady:
                        place_steady_bodies(arrays.pairs, row, tau, scratch, bodies)
                    else:
                        place_bodies(relative_at(arrays, row, tau), scratch, bodies)
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
                    advance_again(arrays, row, trees, single, node, single_is_a, mask, until, scratch, lanes)
                stacked = pops >= layout.pops and not sized
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
                    sized,
                    scratch,
                    lanes,
                    base,
                    count,
                )
                if stacked:
                    stack_count = count
                else:
                    heap_count = count
    if layout.opening > 0:
        shared.left[0] = heap_count
        shared.jobs[0] = wp.int64(wp.min(heap_count, layout.jobs))
        for k in range(layout.jobs):
            shared.bests[k] = best
        for k in range(shared.threads):
            shared.times[k * LINE] = until
    if best.a == NO_TRIANGLE:
        best = no_hit()  # a limit is no contact
    bests[job] = best
    counters[job, 0] = wp.int64(scratch[lanes + 4])


@wp.kernel
def join_shares(
    first: int,
    shared: SharedSearch,
    shares: wp.array2d[wp.int64],
    bests: wp.array[EarliestHit],
    counters: wp.array2d[wp.int64],
):
    """The earliest contact of all shares is that of the query; what they counted is added."""
    i = first + wp.tid()
    for k in range(int(shared.jobs[0])):
        if shared.bests[k].time <= _ONE and is_earlier(shared.bests[k], bests[i]):
            bests[i] = shared.bests[k]
        for j in range(COUNTERS):
            counters[i, j] = counters[i, j] + shares[k, j]
