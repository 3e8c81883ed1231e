"""Found pairs of features put in canonical order on CUDA, each once: what `ordering` does on CPU, by radix sorts."""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.query.proximity.posed.details import PosedColumns
from tangere.query.proximity.posed.feature_keys import KEY_BITS
from tangere.query.proximity.posed.leaf import Appended
from tangere.runtime import SOUND, device_of, launch, offsets, sort_pairs

wp.set_module_options(SOUND)


def gather_in_order(found: Any, count: int, pairs: int, starts: wp.array, columns: Any) -> int:
    """Write pair, key and place of the contacts among `count` found ones, and where those of each pair begin.

    Returns:
        How many contacts there are.
    """
    device = device_of(found.keys)
    if count == 0:
        starts.zero_()
        return 0
    of_pair = wp.empty(count, dtype=wp.int32, device=device)
    places = sort_pairs(found.keys[:count], found.places[:count], KEY_BITS)[1]
    launch(_pick, count, [found, places], [of_pair], device=device)
    of_pair, places = sort_pairs(of_pair, places)
    fresh = wp.empty(count, dtype=wp.int32, device=device)
    launch(_begins_run, count, [found, of_pair, places], [fresh], device=device)
    rows, contacts = offsets(fresh)
    launch(_gather, count, [found, of_pair, places, fresh, rows], [columns], device=device)
    launch(_begin_of_pairs, pairs + 1, [columns, contacts], [starts], device=device)
    return contacts


@wp.kernel
def _pick(first: int, found: Appended, places: wp.array[wp.int32], of_pair: wp.array[wp.int32]):
    k = first + wp.tid()
    of_pair[k] = found.pairs[places[k]]


@wp.kernel
def _begins_run(
    first: int,
    found: Appended,
    of_pair: wp.array[wp.int32],
    places: wp.array[wp.int32],
    fresh: wp.array[wp.int32],
):
    """Whether a pair and key are not those of the place before."""
    k = first + wp.tid()
    fresh[k] = 1
    if k > 0:
        if of_pair[k] == of_pair[k - 1] and found.keys[places[k]] == found.keys[places[k - 1]]:
            fresh[k] = 0


@wp.kernel
def _gather(
    first: int,
    found: Appended,
    of_pair: wp.array[wp.int32],
    places: wp.array[wp.int32],
    fresh: wp.array[wp.int32],
    rows: wp.array[wp.int32],
    columns: PosedColumns,
):
    """The first of each run, with the smallest triangle of all of it."""
    k = first + wp.tid()
    if fresh[k] == 1:
        place = places[k]
        last = k + 1
        while last < places.shape[0] and fresh[wp.min(last, places.shape[0] - 1)] == 0:
            if found.faces[places[last]] < found.faces[place]:
                place = places[last]
            last += 1
        columns.pair[rows[k]] = of_pair[k]
        columns.key[rows[k]] = found.keys[place]
        columns.feature_b[rows[k]] = place


@wp.kernel
def _begin_of_pairs(first: int, columns: PosedColumns, contacts: int, starts: wp.array[wp.int32]):
    """The first contact of a pair or of a later one, by bisection."""
    pair = first + wp.tid()
    low = int(0)
    high = int(contacts)
    while low < high:
        middle = (low + high) / 2
        if columns.pair[middle] < pair:
            low = middle + 1
        else:
            high = middle
    starts[pair] = low
