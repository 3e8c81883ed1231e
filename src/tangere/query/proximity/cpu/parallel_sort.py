"""Keys that several threads have appended, put in rising order by all of them.

A key begins with a feature, and neighbouring features make a range. Whoever appends keys counts them by range; the
counts of all threads are summed up, and each key goes to its range. There a few are put in order by counting those
below each, with vector instructions and without a branch, and many by three passes over their digits. As no two keys
are equal the order does not depend on threads. On one thread all of it takes as long as NumPy's sort, some 10 ns a
key.
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
_FEW = 128


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

    def segments(self, counters: wp.array, capacity: int, pair_keys: wp.array) -> KeySegments:
        """Segments of so many keys, one for every eight counters; no keys counted yet."""
        segments = KeySegments()
        segments.counters, segments.capacity, segments.pair_keys = counters, capacity, pair_keys
        segments.histogram = wp.zeros((len(counters) // COUNTER_STRIDE, self.count), dtype=wp.int32, device="cpu")
        segments.bits, segments.width, segments.of_vertices = self.bits, self.width, self.of_vertices
        return segments


@wp.struct
class KeySegments:
    """The keys that threads, or shards, have appended, each to a segment of its own."""

    counters: wp.array[wp.int64]  # (8 shards,) of each, the first of eight; more than fit are not there
    capacity: int  # of a segment
    pair_keys: wp.array[wp.int64]  # (shards capacity,)
    histogram: wp.array2d[int]  # (shards, ranges) keys by range; 0 again when all are in order
    bits: int  # see `Ranges`
    width: int
    of_vertices: int


class ParallelSort:
    """Room for keys in rising order.

    Args:
        pair_keys: (n,) int64, where they shall be.
        number: (1,) int64, how many there are, for kernels; 0 while there is not enough room.
        kernel: puts `CHUNK` keys in order, `kernel(first, width, begins, unsorted, *arguments)`, and may do more with
            them; None means no more.
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
        plain = _sort_chunks, [pair_keys, self._ranges.bits]
        self._last = plain if kernel is None else (kernel, arguments)
        self._totals = wp.zeros(2, dtype=wp.int64, device="cpu")
        #: Keys appended, whether or not there was room; and those of one thread, at most.
        self.totals = self._totals.numpy()
        self._segments, self._chunks = (wp.zeros(1, dtype=wp.int64, device="cpu") for _ in range(2))
        self._begins = wp.empty(self._ranges.count + 1, dtype=wp.int64, device="cpu")
        self._unsorted = wp.empty(len(pair_keys), dtype=wp.int64, device="cpu")

    def phases(self, found: KeySegments, *, counted: bool = True) -> list[list[PreparedLaunch]]:
        """The launches that put the keys that were found in order; if some were not appended they do nothing.

        Args:
            counted: whether `found.histogram` says how many there are in each range.
        """
        begins, unsorted, shards = self._begins, self._unsorted, len(found.histogram)
        sums = [found, begins, len(self.pair_keys), self._totals, self.number, self._segments, self._chunks]
        kernel, arguments = self._last
        sorts = [self._ranges.width, begins, unsorted, *arguments]
        cpu, grain = wp.get_device("cpu"), SEGMENT_GRAIN
        return [
            [] if counted else [PreparedLaunch(_count_segment, [found], cpu, dim=shards, grain=grain)],
            [PreparedLaunch(_sum_histograms, sums, cpu, dim=1, grain=1)],
            [PreparedLaunch(_scatter_segment, [found, unsorted], cpu, dim=self._segments, grain=grain)],
            [PreparedLaunch(kernel, sorts, cpu, dim=self._chunks, grain=1)],
        ]


#: The range of a key.
_RANGE = f"""
    const long long mask = (1ll << found.bits) - 1;
    auto range_of = [&](long long key) -> long long {{
        const long long code = (key >> (2 * found.bits)) - {2 * int(Kind.VERTEX_FACE)};
        return code * found.of_vertices + (((key >> found.bits) & mask) >> found.width);
    }};
"""
#: The keys of a segment.
_SEGMENT = f"""
    const long long appended = found.counters.data[(long long)thread * {int(COUNTER_STRIDE)}];
    const long long filled = appended < found.capacity ? appended : found.capacity;
    const long long* segment = (const long long*)&found.pair_keys.data[(long long)thread * found.capacity];
    int* row = &found.histogram.data[(long long)thread * found.histogram.shape[1]];
"""


@wp.func_native(
    _SEGMENT
    + _RANGE
    + """
    for (long long k = from_; k < filled; ++k)
        ++row[range_of(segment[k])];
"""
)
def count_keys(from_: wp.int64, thread: int, found: KeySegments):
    """Count the keys of a thread, from one on, by range."""
    ...


@wp.func_native(
    _SEGMENT
    + _RANGE
    + """
    for (long long k = 0; k < filled; ++k)
        unsorted.data[row[range_of(segment[k])]++] = segment[k];
    if (filled > 0)
        for (int range = 0; range < found.histogram.shape[1]; ++range)
            row[range] = 0;
"""
)
def scatter_segment(thread: int, found: KeySegments, unsorted: wp.array[wp.int64]):
    """Write the keys of a segment to their ranges, in any order; the histogram is ready for the next keys."""
    ...


@wp.func_native(
    f"""
    const long long stride = {int(COUNTER_STRIDE)}, chunk = {int(CHUNK)};
"""
    + """
    const int threads = found.histogram.shape[0], ranges = found.histogram.shape[1];
    long long all = 0, most = 0;
    for (int thread = 0; thread < threads; ++thread) {
        const long long appended = found.counters.data[thread * stride];
        all += appended;
        most = appended > most ? appended : most;
    }
    totals.data[0] = all;
    totals.data[1] = most;
    const long long there = most <= found.capacity && all <= room ? all : 0;
    number.data[0] = there;
    segments.data[0] = there > 0 ? threads : 0;
    chunks.data[0] = (there + chunk - 1) / chunk;
    if (there == 0)
        return;
    int* first = (int*)found.histogram.data;
    int sum = 0;
    for (int range = 0; range < ranges; ++range) {
        begins.data[range] = sum;
        for (int thread = 0; thread < threads; ++thread) {
            if (found.counters.data[thread * stride] == 0)
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
def sum_histograms(
    found: KeySegments,
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
    const int few = {_FEW};
"""
    + """
    typedef long long Names __attribute__((ext_vector_type(8), aligned(8)));
    long long* from_ = (long long*)&unsorted.data[begins.data[range]];
    long long* to = (long long*)&out.data[begins.data[range]];
    const int count = begins.data[range + 1] - begins.data[range];
    if (count <= few) {
        alignas(64) long long all[few];
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
    """Copy the keys of a range in rising order: a few by counting those below each, more by their digits."""
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
def _sum_histograms(
    first: int,
    found: KeySegments,
    begins: wp.array[wp.int64],
    room: int,
    totals: wp.array[wp.int64],
    number: wp.array[wp.int64],
    segments: wp.array[wp.int64],
    chunks: wp.array[wp.int64],
):
    sum_histograms(found, begins, room, totals, number, segments, chunks)


@wp.kernel
def _count_segment(first: int, found: KeySegments):
    shard = first + wp.tid()
    for range_ in range(found.histogram.shape[1]):
        found.histogram[shard, range_] = 0
    count_keys(wp.int64(0), shard, found)


@wp.kernel
def _scatter_segment(first: int, found: KeySegments, unsorted: wp.array[wp.int64]):
    scatter_segment(first + wp.tid(), found, unsorted)


@wp.kernel
def _sort_chunks(
    first: int,
    width: int,
    begins: wp.array[wp.int64],
    unsorted: wp.array[wp.int64],
    pair_keys: wp.array[wp.int64],
    bits: int,
):
    sort_chunk(first + wp.tid(), bits, width, begins, unsorted, pair_keys)
