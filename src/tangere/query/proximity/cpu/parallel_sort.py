"""Keys that several threads have appended, put in rising order by all of them.

A key begins with a feature, and neighbouring features make a range. Whoever appends keys counts them by range; the
counts of all threads are summed up, and each key goes to its range. There a few are put in order by counting those
below each, with vector instructions and without a branch, and many by three passes over their digits. As no two keys
are equal the order does not depend on threads. On one thread all of it takes as long as NumPy's sort, some 10 ns a
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from tangere.broad_phase.triangles import Layout
from tangere.query.contacts.record import Kind
from tangere.query.proximity.pair_keys import number_bits
from tangere.runtime import COUNTER_STRIDE, SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: Keys there should be room for at least.
LEAST = 1024
#: Ranges that begin among so many keys are put in order at a time, and described: some 3 us.
CHUNK = wp.constant(64)
#: Segments worth a thread: most have few keys.
SEGMENT_GRAIN = 1
#: Features are cut into about so many ranges: some for each thread, few enough to be summed up in no time.
_RANGES = 256
#: Two to this power is the largest number of features in a range.
_WIDEST = 9
#: So many keys of a range are counted one against all: less than passes over tables of digits would cost.
_HANDFUL = 128


@dataclass(frozen=True)
class Ranges:
    """How the features of a scene are cut into ranges."""

    bits: int  #: of the number of a feature
    width: int  #: two to this power is the number of features in a range
    of_vertices: int  #: ranges; vertices may be on either side
    count: int  #: of ranges in all

    @staticmethod
    def of(layout: Layout) -> Ranges:
        vertices, edges = int(layout.vertex_base[-1]), int(layout.edge_base[-1])
        width = min(max((2 * vertices + edges) // _RANGES, 1).bit_length(), _WIDEST)
        of_vertices = (vertices >> width) + 1
        return Ranges(number_bits(layout), width, of_vertices, 2 * of_vertices + (edges >> width) + 1)

    def tally(self, shards: int) -> wp.array:
        """(shards, ranges) int32: no keys yet."""
        return wp.zeros((shards, self.count), dtype=wp.int32, device="cpu")


@dataclass(frozen=True)
class KeySegments:
    """The keys that threads, or shards, have appended, each to a segment of its own."""

    shards: int
    counters: wp.array  #: (8 shards,) int64: of each, the first of eight; more than fit are not there
    capacity: int  #: of a segment
    pair_keys: wp.array  #: (shards capacity,) int64
    tally: wp.array | None = None  #: (shards, ranges) int32: keys by range, if counted; 0 again when all are in order


class ParallelSort:
    """Room for keys in rising order.

    Args:
        keys: (n,) int64, where they shall be.
        number: (1,) int64, how many there are, for kernels; 0 while there is not enough room.
        kernel: puts `CHUNK` keys in order, `kernel(first, width, begins, unsorted, number, pair_keys, bits,
            *arguments)`, and may do more with them; None means no more.
    """

    def __init__(
        self,
        layout: Layout,
        pair_keys: wp.array,
        number: wp.array,
        kernel: wp.Kernel | None = None,
        arguments: Sequence[Any] = (),
    ) -> None:
        self.pair_keys, self.number, self._ranges = pair_keys, number, Ranges.of(layout)
        self._last = _sort_chunks if kernel is None else kernel, arguments
        self._totals = wp.zeros(2, dtype=wp.int64, device="cpu")
        #: Keys appended, whether or not there was room; and those of one thread, at most.
        self.totals = self._totals.numpy()
        self._segments, self._chunks = (wp.zeros(1, dtype=wp.int64, device="cpu") for _ in range(2))
        self._begins = wp.empty(self._ranges.count + 1, dtype=wp.int64, device="cpu")
        self._unsorted = wp.empty(len(pair_keys), dtype=wp.int64, device="cpu")

    def phases(self, found: KeySegments) -> list[list[PreparedLaunch]]:
        """The launches that put the keys that were found in order; if some were not appended they do nothing."""
        ranges, begins, unsorted = self._ranges, self._begins, self._unsorted
        tally = found.tally or ranges.tally(found.shards)
        segments = [found.counters, found.capacity]
        sums = [*segments, tally, begins, len(self.pair_keys), self._totals, self.number, self._segments, self._chunks]
        pair_keys = [*segments, found.pair_keys, ranges.bits, ranges.width, ranges.of_vertices, tally]
        kernel, arguments = self._last
        sorts = [ranges.width, begins, unsorted, self.number, self.pair_keys, wp.int64(ranges.bits), *arguments]
        cpu, grain = wp.get_device("cpu"), SEGMENT_GRAIN
        return [
            [] if found.tally else [PreparedLaunch(_tally_segment, pair_keys, cpu, dim=found.shards, grain=grain)],
            [PreparedLaunch(_sum_ranges, sums, cpu, dim=1, grain=1)],
            [PreparedLaunch(_spread_segment, [*pair_keys, unsorted], cpu, dim=self._segments, grain=grain)],
            [PreparedLaunch(kernel, sorts, cpu, dim=self._chunks, grain=1)],
        ]


#: The range of a key.
_RANGE = f"""
    const long long mask = (1ll << bits) - 1;
    auto range_of = [&](long long name) -> long long {{
        const long long code = (name >> (2 * bits)) - {2 * int(Kind.VERTEX_FACE)};
        return code * of_vertices + (((name >> bits) & mask) >> width);
    }};
"""
#: The keys of a segment.
_SEGMENT = f"""
    const long long appended = counters.data[(long long)thread * {int(COUNTER_STRIDE)}];
    const long long filled = appended < capacity ? appended : capacity;
    const long long* segment = (const long long*)&pair_keys.data[(long long)thread * capacity];
    int* row = &tally.data[(long long)thread * tally.shape[1]];
"""


@wp.func_native(
    _SEGMENT
    + _RANGE
    + """
    for (long long k = from_; k < filled; ++k)
        ++row[range_of(segment[k])];
"""
)
def tally_keys(
    from_: wp.int64,
    thread: int,
    counters: wp.array[wp.int64],
    capacity: int,
    pair_keys: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    tally: wp.array2d[int],
):
    """Count the keys of a thread, from one on, by range."""
    ...


@wp.func_native(
    _SEGMENT
    + _RANGE
    + """
    for (long long k = 0; k < filled; ++k)
        unsorted.data[row[range_of(segment[k])]++] = segment[k];
    if (filled > 0)
        for (int range = 0; range < tally.shape[1]; ++range)
            row[range] = 0;
"""
)
def spread_segment(
    thread: int,
    counters: wp.array[wp.int64],
    capacity: int,
    pair_keys: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    tally: wp.array2d[int],
    unsorted: wp.array[wp.int64],
):
    """Write the keys of a segment to their ranges, in any order; the tally is ready for the next keys."""
    ...


@wp.func_native(
    f"""
    const long long stride = {int(COUNTER_STRIDE)}, chunk = {int(CHUNK)};
"""
    + """
    const int threads = tally.shape[0], ranges = tally.shape[1];
    long long all = 0, most = 0;
    for (int thread = 0; thread < threads; ++thread) {
        const long long appended = counters.data[thread * stride];
        all += appended;
        most = appended > most ? appended : most;
    }
    totals.data[0] = all;
    totals.data[1] = most;
    const long long there = most <= capacity && all <= room ? all : 0;
    number.data[0] = there;
    segments.data[0] = there > 0 ? threads : 0;
    chunks.data[0] = (there + chunk - 1) / chunk;
    if (there == 0)
        return;
    int* first = (int*)tally.data;
    int sum = 0;
    for (int range = 0; range < ranges; ++range) {
        begins.data[range] = sum;
        for (int thread = 0; thread < threads; ++thread) {
            if (counters.data[thread * stride] == 0)
                continue;  // its row stays as it is, all 0
            int* own = first + (long long)thread * ranges + range;
            const int count = *own;
            *own = sum;
            sum += count;
        }
    }
    begins.data[ranges] = sum;
"""
)
def sum_ranges(
    counters: wp.array[wp.int64],
    capacity: int,
    tally: wp.array2d[int],
    begins: wp.array[wp.int64],
    room: int,
    totals: wp.array[wp.int64],
    number: wp.array[wp.int64],
    segments: wp.array[wp.int64],
    chunks: wp.array[wp.int64],
):
    """How many keys there are, where each range begins, and where in it the keys of each thread."""
    ...


@wp.func_native(
    f"""
    const int handful = {_HANDFUL};
"""
    + """
    typedef long long Names __attribute__((ext_vector_type(8), aligned(8)));
    long long* from_ = (long long*)&unsorted.data[begins.data[range]];
    long long* to = (long long*)&out.data[begins.data[range]];
    const int count = begins.data[range + 1] - begins.data[range];
    if (count <= handful) {
        alignas(64) long long all[handful];
        for (int k = 0; k < count; ++k)
            all[k] = from_[k];
        for (int k = 0; k < count; k += 8) {
            const Names eight = *(const Names*)&all[k];
            Names below = (Names)0;
            for (int other = 0; other < count; ++other)
                below -= (Names)all[other] < eight;
            for (int lane = 0; lane < 8 && k + lane < count; ++lane)
                to[below[lane]] = eight[lane];
        }
        return;
    }
    const int passes = bits + width <= 30 ? 3 : 5;  // an odd number of them ends in `out`
    const int digit = (bits + width + passes - 1) / passes, values = 1 << digit;
    int places[1 << 10];
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = pass * digit;
        for (int value = 0; value < values; ++value)
            places[value] = 0;
        for (int k = 0; k < count; ++k)
            ++places[(from_[k] >> shift) & (values - 1)];
        for (int value = 0, sum = 0; value < values; ++value) {
            const int own = places[value];
            places[value] = sum;
            sum += own;
        }
        for (int k = 0; k < count; ++k)
            to[places[(from_[k] >> shift) & (values - 1)]++] = from_[k];
        long long* sorted = to;
        to = from_;
        from_ = sorted;
    }
"""
)
def sort_range(
    range: int, bits: int, width: int, begins: wp.array[wp.int64], unsorted: wp.array[wp.int64], out: wp.array[wp.int64]
):
    """Copy the keys of a range in rising order: a handful by counting those below each, more by their digits."""
    ...


@wp.func
def sort_chunk(
    chunk: int, bits: int, width: int, begins: wp.array[wp.int64], unsorted: wp.array[wp.int64], out: wp.array[wp.int64]
) -> wp.vec2i:
    """Put the ranges in order that begin among the keys of a chunk; the first of their keys, and the one beyond."""
    last = begins.shape[0] - 1
    low = int(0)
    high = int(last)
    while low < high:
        middle = (low + high) / 2
        if begins[middle] < wp.int64(CHUNK * chunk):
            low = middle + 1
        else:
            high = middle
    begin = begins[low]
    while low < last and begins[low] < wp.int64(CHUNK * (chunk + 1)):
        sort_range(low, bits, width, begins, unsorted, out)
        low += 1
    return wp.vec2i(int(begin), int(begins[low]))


@wp.kernel
def _sum_ranges(
    first: int,
    counters: wp.array[wp.int64],
    capacity: int,
    tally: wp.array2d[int],
    begins: wp.array[wp.int64],
    room: int,
    totals: wp.array[wp.int64],
    number: wp.array[wp.int64],
    segments: wp.array[wp.int64],
    chunks: wp.array[wp.int64],
):
    sum_ranges(counters, capacity, tally, begins, room, totals, number, segments, chunks)


@wp.kernel
def _tally_segment(
    first: int,
    counters: wp.array[wp.int64],
    capacity: int,
    pair_keys: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    tally: wp.array2d[int],
):
    shard = first + wp.tid()
    for range_ in range(tally.shape[1]):
        tally[shard, range_] = 0
    tally_keys(wp.int64(0), shard, counters, capacity, pair_keys, bits, width, of_vertices, tally)


@wp.kernel
def _spread_segment(
    first: int,
    counters: wp.array[wp.int64],
    capacity: int,
    pair_keys: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    tally: wp.array2d[int],
    unsorted: wp.array[wp.int64],
):
    spread_segment(first + wp.tid(), counters, capacity, pair_keys, bits, width, of_vertices, tally, unsorted)


@wp.kernel
def _sort_chunks(
    first: int,
    width: int,
    begins: wp.array[wp.int64],
    unsorted: wp.array[wp.int64],
    number: wp.array[wp.int64],
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
):
    sort_chunk(first + wp.tid(), int(bits), width, begins, unsorted, pair_keys)
