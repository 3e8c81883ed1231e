"""Found pairs of features put in canonical order, each once.

Each pair of bodies has its keys one after the other in the segment of the shard that searched it, because one thread
searches it; it puts them in order in place. A vertex over a line between triangles of one patch is brought up by each
of them: the smallest triangle stays.
Known as: heapsort (Williams 1964), stream compaction by scan.
"""

from __future__ import annotations

import warp as wp

from tangere.query.proximity.posed.details import PosedColumns
from tangere.query.proximity.posed.leaf import Appended
from tangere.query.proximity.posed.traversal import PairResults
from tangere.runtime import COUNTER_STRIDE, SOUND

wp.set_module_options(SOUND)

# What is told of a whole call.
PAIRS = wp.constant(0)  # how many pairs of bodies there are
CONTACTS = wp.constant(1)  # how many contacts
NEEDED = wp.constant(2)  # places that the fullest segment needs
STATUS = wp.constant(3)  # the largest status of a pair
TOLD = 4


@wp.func
def comes_before(found: Appended, i: int, j: int) -> bool:
    return found.keys[i] < found.keys[j] or (found.keys[i] == found.keys[j] and found.faces[i] < found.faces[j])


@wp.func
def swap(found: Appended, i: int, j: int):
    key = found.keys[i]
    face = found.faces[i]
    found.keys[i] = found.keys[j]
    found.faces[i] = found.faces[j]
    found.keys[j] = key
    found.faces[j] = face


@wp.func
def sift_down(found: Appended, begin: int, start: int, count: int):
    root = int(start)
    going = bool(True)
    while going:
        child = 2 * root + 1
        going = child < count
        if going:
            if child + 1 < count and comes_before(found, begin + child, begin + child + 1):
                child += 1
            going = comes_before(found, begin + root, begin + child)
            if going:
                swap(found, begin + root, begin + child)
                root = child


@wp.func
def sort_range(found: Appended, begin: int, count: int):
    """Keys and triangles of a range in rising order: few by insertion, many by a heap."""
    if count <= 24:
        for i in range(1, count):
            j = int(i)
            while j > 0 and comes_before(found, begin + j, begin + j - 1):
                swap(found, begin + j, begin + j - 1)
                j -= 1
        return
    start = count / 2 - 1
    while start >= 0:
        sift_down(found, begin, start, count)
        start -= 1
    last = count - 1
    while last > 0:
        swap(found, begin, begin + last)
        sift_down(found, begin, 0, last)
        last -= 1


@wp.func
def drop_repeated(found: Appended, begin: int, count: int) -> int:
    """Keep the first of equal keys of a range in order, and say how many stay."""
    kept = int(0)
    for i in range(count):
        if i == 0 or found.keys[begin + i] != found.keys[begin + kept - 1]:
            found.keys[begin + kept] = found.keys[begin + i]
            found.faces[begin + kept] = found.faces[begin + i]
            kept += 1
    return kept


@wp.kernel
def order_by_pair(first: int, found: Appended, results: PairResults):
    """Put the keys of each pair of bodies in order; `amount` is how many were found, then how many stay."""
    pair = first + wp.tid()
    begin = results.begin[pair]
    if begin >= 0:
        sort_range(found, begin, results.amount[pair])
        results.amount[pair] = drop_repeated(found, begin, results.amount[pair])


@wp.kernel
def scan_amounts(
    first: int,
    shards: int,
    found: Appended,
    results: PairResults,
    starts: wp.array[wp.int32],
    told: wp.array[wp.int64],
):
    """Where the contacts of each pair begin, by one thread; none at all where a segment did not suffice."""
    needed = wp.int64(0)
    for shard in range(shards):
        needed = wp.max(needed, found.counts[shard * COUNTER_STRIDE])
        found.counts[shard * COUNTER_STRIDE] = wp.int64(0)
    total = int(0)
    worst = int(0)
    pairs = int(told[PAIRS])
    fits = needed <= wp.int64(found.capacity)
    for pair in range(pairs):
        starts[pair] = total
        worst = wp.max(worst, results.status[pair])
        if fits:
            total += results.amount[pair]
    starts[pairs] = total
    told[CONTACTS] = wp.int64(total)
    told[NEEDED] = needed
    told[STATUS] = wp.int64(worst)


@wp.kernel
def gather_contacts(
    first: int,
    found: Appended,
    results: PairResults,
    starts: wp.array[wp.int32],
    columns: PosedColumns,
):
    """The keys of each pair of bodies where its contacts belong; a triangle goes where the second feature will be."""
    pair = first + wp.tid()
    for k in range(starts[pair], starts[pair + 1]):
        place = results.begin[pair] + k - starts[pair]
        columns.pair[k] = pair
        columns.key[k] = found.keys[place]
        columns.feature_b[k] = found.faces[place]
