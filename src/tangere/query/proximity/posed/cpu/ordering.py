"""Found pairs of features put in canonical order, each once.

Each pair of bodies has its keys one after the other in the segment of the shard that searched it, because one thread
searches it; it puts them in order in place. A vertex over a line between triangles of one patch is brought up by each
of them: the smallest triangle stays.
Known as: merge sort, stream compaction by scan.
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

#: So many keys are put in order by insertion.
_RUN = wp.constant(16)


@wp.struct
class PairSegments:
    """Where what was found of each pair of bodies stands."""

    begin: wp.array[wp.int32]  # -1 where it did not fit
    amount: wp.array[wp.int32]


@wp.func
def comes_before(found: Appended, key: wp.int64, place: int, other_key: wp.int64, other_place: int) -> bool:
    """Whether one goes before another: by key, then by triangle."""
    return key < other_key or (key == other_key and found.faces[place] < found.faces[other_place])


@wp.func
def sort_few(found: Appended, begin: int, end: int):
    """Put a short range in order, by insertion."""
    for i in range(begin + 1, end):
        key = found.keys[i]
        place = found.places[i]
        j = int(i)
        while j > begin and comes_before(found, key, place, found.keys[j - 1], found.places[j - 1]):
            found.keys[j] = found.keys[j - 1]
            found.places[j] = found.places[j - 1]
            j -= 1
        found.keys[j] = key
        found.places[j] = place


@wp.func
def merge(
    found: Appended,
    keys: wp.array[wp.int64],
    places: wp.array[wp.int32],
    new_keys: wp.array[wp.int64],
    new_places: wp.array[wp.int32],
    begin: int,
    middle: int,
    end: int,
):
    """Merge two neighbouring ranges, each in order, into the other arrays."""
    i = int(begin)
    j = int(middle)
    for k in range(begin, end):
        left = i < middle
        if left and j < end:
            left = not comes_before(found, keys[j], places[j], keys[i], places[i])
        if left:
            new_keys[k] = keys[i]
            new_places[k] = places[i]
            i += 1
        else:
            new_keys[k] = keys[j]
            new_places[k] = places[j]
            j += 1


@wp.func
def sort_range(found: Appended, begin: int, count: int, room: PosedColumns):
    """Put keys and places of a range in order: runs by insertion, then runs merged to and fro."""
    end = begin + count
    run = int(begin)
    while run < end:
        sort_few(found, run, wp.min(run + _RUN, end))
        run += _RUN
    width = int(_RUN)
    while width < count:
        run = begin
        while run < end:
            middle = wp.min(run + width, end)
            last = wp.min(run + 2 * width, end)
            merge(found, found.keys, found.places, room.key, room.pair, run, middle, last)
            run += 2 * width
        width *= 2
        run = begin
        while run < end:
            middle = wp.min(run + width, end)
            last = wp.min(run + 2 * width, end)
            merge(found, room.key, room.pair, found.keys, found.places, run, middle, last)
            run += 2 * width
        width *= 2


@wp.func
def drop_repeated(found: Appended, begin: int, count: int) -> int:
    """Keep the first of equal keys of a range in order, and say how many stay."""
    kept = int(0)
    for i in range(begin, begin + count):
        if i == begin or found.keys[i] != found.keys[begin + kept - 1]:
            found.keys[begin + kept] = found.keys[i]
            found.places[begin + kept] = found.places[i]
            kept += 1
    return kept


@wp.kernel
def order_by_pair(first: int, found: Appended, segments: PairSegments, room: PosedColumns):
    """Put the keys of each pair of bodies in order; `amount` is how many were found, then how many stay.

    Args:
        room: columns that nothing is in yet, for what is under way.
    """
    pair = first + wp.tid()
    begin = segments.begin[pair]
    if begin >= 0:
        sort_range(found, begin, segments.amount[pair], room)
        segments.amount[pair] = drop_repeated(found, begin, segments.amount[pair])


@wp.kernel
def scan_amounts(
    first: int,
    shards: int,
    found: Appended,
    segments: PairSegments,
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
            total += segments.amount[pair]
    starts[pairs] = total
    told[CONTACTS] = wp.int64(total)
    told[NEEDED] = needed
    told[STATUS] = wp.int64(worst)


@wp.kernel
def gather_contacts(
    first: int,
    found: Appended,
    segments: PairSegments,
    starts: wp.array[wp.int32],
    columns: PosedColumns,
):
    """The keys of each pair of bodies where its contacts belong; their places stand where a feature will be."""
    pair = first + wp.tid()
    for k in range(starts[pair], starts[pair + 1]):
        place = segments.begin[pair] + k - starts[pair]
        columns.pair[k] = pair
        columns.key[k] = found.keys[place]
        columns.feature_b[k] = found.places[place]
