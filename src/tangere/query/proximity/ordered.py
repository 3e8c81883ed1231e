"""Names that several searches have appended, put in rising order by all threads.

A name begins with a feature, and neighbouring features make a range. The names of every segment are counted by range,
the counts summed up, and each name goes to its range. There a few are put in order by counting those below each, with
vector instructions and without a branch, and many by three passes over their digits. As no two names are equal the
order does not depend on threads. On one thread all of it takes as long as NumPy's sort, some 10 ns a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import warp as wp

from tangere.partition.pipeline_surfaces import Layout
from tangere.query.contacts import Kind
from tangere.query.proximity.kept import Kept
from tangere.query.proximity.names import number_bits
from tangere.runtime import SOUND
from tangere.runtime.collecting import COUNTER_STRIDE

wp.set_module_options(SOUND)

__all__ = ["LEAST", "Appended", "Ordered"]

#: Names there should be room for at least.
LEAST = 1024
#: Segments, and ranges, worth a thread: most have few names.
SEGMENT_GRAIN, RANGE_GRAIN = 2, 8
#: Features are cut into about so many ranges: some for each thread, few enough to be summed up in no time.
_RANGES = 256
#: Two to this power is the largest number of features in a range.
_WIDEST = 9
#: So many names of a range are counted one against all: less than passes over tables of digits would cost.
_HANDFUL = 128


@dataclass(frozen=True)
class Appended:
    """The names that the shards of a search have appended, each to a segment of its own."""

    shards: int
    counters: wp.array  #: (8 shards,) int64: of each shard, the first of eight; more than fit are not there
    capacity: int  #: of a segment
    names: wp.array  #: (shards capacity,) int64


class Ordered:
    """Room for names in rising order.

    Args:
        names: (n,) int64, where they shall be.
        number: (1,) int64, how many there are, for kernels; 0 while there is not enough room.
    """

    def __init__(self, layout: Layout, names: wp.array, number: wp.array) -> None:
        self.names, self.number = names, number
        self.eights = wp.zeros(1, dtype=wp.int64, device="cpu")  #: of names
        self._all = wp.zeros(1, dtype=wp.int64, device="cpu")
        self._there = self._all.numpy()
        vertices, edges = int(layout.vertex_base[-1]), int(layout.edge_base[-1])
        width = min(max((2 * vertices + edges) // _RANGES, 1).bit_length(), _WIDEST)
        of_vertices = (vertices >> width) + 1
        self._key = [number_bits(layout), width, of_vertices]
        self._ranges = 2 * of_vertices + (edges >> width) + 1
        self._begins = wp.empty(self._ranges + 1, dtype=wp.int64, device="cpu")
        self._loose = wp.empty(len(names), dtype=wp.int64, device="cpu")

    @property
    def needed(self) -> int:
        """How many names there were, whether or not there was room; of no use if not all were appended."""
        return int(self._there[0])

    def phases(self, found: Sequence[Appended]) -> list[list[Kept]]:
        """The launches that put the names that were found in order; if some were not appended they do nothing."""
        ranges, segments = self._ranges, sum(part.shards for part in found)
        # A row for each segment: the names of each range, and whether some were not appended.
        tally = wp.empty((segments, ranges + 1), dtype=wp.int32, device="cpu")

        def of_each(kernel: wp.Kernel, *arguments: wp.array) -> list[Kept]:
            launches, at = [], 0
            for part in found:
                inputs = [part.counters, part.capacity, part.names, *self._key, at, tally, *arguments]
                launches.append(Kept(kernel, part.shards, inputs, grain=SEGMENT_GRAIN))
                at += part.shards
            return launches

        sums = [tally, self._begins, len(self.names), self._all, self.number, self.eights]
        settle = [*self._key[:2], self._begins, self._loose, self.number, self.names]
        return [
            of_each(_tally_segment),
            [Kept(_sum_segments, ranges + 1, [tally, self._begins], grain=RANGE_GRAIN)],
            [Kept(_sum_ranges, 1, sums, grain=1)],
            of_each(_spread_segment, self._begins, self.number, self._loose),
            [Kept(_settle, ranges, settle, grain=RANGE_GRAIN)],
        ]


#: The names of a segment, their ranges, and the row of tallies.
_SEGMENT = f"""
    const long long appended = counters.data[(long long)shard * {int(COUNTER_STRIDE)}];
    const long long filled = appended < capacity ? appended : capacity;
    const long long* segment = (const long long*)&names.data[(long long)shard * capacity];
    const long long mask = (1ll << bits) - 1;
    const int ranges = tally.shape[1] - 1;
    int* row = &tally.data[(long long)(at + shard) * tally.shape[1]];
    auto range_of = [&](long long name) -> long long {{
        const long long code = (name >> (2 * bits)) - {2 * int(Kind.VERTEX_FACE)};
        return code * of_vertices + (((name >> bits) & mask) >> width);
    }};
"""


@wp.func_native(
    _SEGMENT
    + """
    for (int range = 0; range < ranges; ++range)
        row[range] = 0;
    for (long long k = 0; k < filled; ++k)
        ++row[range_of(segment[k])];
    row[ranges] = appended > capacity;
"""
)
def tally_segment(
    shard: int,
    counters: wp.array[wp.int64],
    capacity: int,
    names: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    at: int,
    tally: wp.array2d[int],
):
    """Count the names of a segment by range."""
    ...


@wp.func_native(
    _SEGMENT
    + """
    for (long long k = 0; k < filled; ++k) {
        const long long range = range_of(segment[k]);
        loose.data[begins.data[range] + row[range]++] = segment[k];
    }
"""
)
def spread_segment(
    shard: int,
    counters: wp.array[wp.int64],
    capacity: int,
    names: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    at: int,
    tally: wp.array2d[int],
    begins: wp.array[wp.int64],
    loose: wp.array[wp.int64],
):
    """Write the names of a segment to their ranges, in any order."""
    ...


@wp.func_native(
    f"""
    const int handful = {_HANDFUL};
"""
    + """
    typedef long long Names __attribute__((ext_vector_type(8), aligned(8)));
    long long* from_ = (long long*)&loose.data[begins.data[range]];
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
def settle(
    range: int, bits: int, width: int, begins: wp.array[wp.int64], loose: wp.array[wp.int64], out: wp.array[wp.int64]
):
    """Copy the names of a range in rising order: a handful by counting those below each, more by their digits."""
    ...


@wp.kernel
def _tally_segment(
    first: int,
    counters: wp.array[wp.int64],
    capacity: int,
    names: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    at: int,
    tally: wp.array2d[int],
):
    tally_segment(first + wp.tid(), counters, capacity, names, bits, width, of_vertices, at, tally)


@wp.kernel
def _sum_segments(first: int, tally: wp.array2d[int], begins: wp.array[wp.int64]):
    """Where in a range the names of each segment begin, and how many there are in all."""
    range_ = first + wp.tid()
    sum = int(0)
    for segment in range(tally.shape[0]):
        own = tally[segment, range_]
        tally[segment, range_] = sum
        sum += own
    begins[range_] = wp.int64(sum)


@wp.kernel
def _sum_ranges(
    first: int,
    tally: wp.array2d[int],
    begins: wp.array[wp.int64],
    room: int,
    needed: wp.array[wp.int64],
    number: wp.array[wp.int64],
    eights: wp.array[wp.int64],
):
    """Where each range begins, and how many names there are."""
    last = begins.shape[0] - 1
    incomplete = begins[last] > wp.int64(0)
    sum = wp.int64(0)
    for k in range(last):
        own = begins[k]
        begins[k] = sum
        sum += own
    begins[last] = sum
    needed[0] = sum
    number[0] = wp.where(incomplete or sum > wp.int64(room), wp.int64(0), sum)
    eights[0] = (number[0] + wp.int64(7)) / wp.int64(8)


@wp.kernel
def _spread_segment(
    first: int,
    counters: wp.array[wp.int64],
    capacity: int,
    names: wp.array[wp.int64],
    bits: int,
    width: int,
    of_vertices: int,
    at: int,
    tally: wp.array2d[int],
    begins: wp.array[wp.int64],
    number: wp.array[wp.int64],
    loose: wp.array[wp.int64],
):
    if number[0] > wp.int64(0):
        spread_segment(
            first + wp.tid(), counters, capacity, names, bits, width, of_vertices, at, tally, begins, loose
        )  # fmt: skip


@wp.kernel
def _settle(
    first: int,
    bits: int,
    width: int,
    begins: wp.array[wp.int64],
    loose: wp.array[wp.int64],
    number: wp.array[wp.int64],
    out: wp.array[wp.int64],
):
    if number[0] > wp.int64(0):
        settle(first + wp.tid(), bits, width, begins, loose, out)
