"""Pairs of boxes that wait, by time, for CPUs: a binary heap, and a stack behind it.

A pair is two numbers: its key and the places of its boxes in their trees. The key is the time, rounded down to float32,
above the sum of the radii: so one comparison of integers decides, and nothing is copied in parts. An earlier time than
a pair's own costs time only. Of pairs at the same time the smaller comes first: where bodies overlap at the start,
which makes all times 0, that is straight down to two triangles.
"""

from __future__ import annotations

import warp as wp

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
