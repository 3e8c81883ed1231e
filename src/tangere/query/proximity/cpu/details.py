"""The columns of contacts on CPUs: eight contacts of one kind at once, by the texts of `geometry.simd`.

A lane in doubt, and eights that are not full or not of one kind, go one by one (`fill_contact`). The numbers are the
same, bit by bit.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LANES
from tangere.query.proximity.cpu.parallel_sort import sort_chunk
from tangere.query.proximity.cpu.simd_near import fill_edges_in_lanes, fill_faces_in_lanes
from tangere.query.proximity.details import ContactTable, fill_contact, own_numbers
from tangere.query.proximity.pair_keys import VERTEX_FACE
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def fill_eight(begin: int, end: int, table: ContactTable):
    """Write eight contacts, or fewer."""
    doubtful = int(255)
    if end - begin == LANES:
        below = wp.int64(2) * table.bits + wp.int64(1)
        code = table.pair_keys[begin] >> below
        if table.pair_keys[end - 1] >> below == code:  # keys rise: so are all between
            if code == VERTEX_FACE:
                doubtful = fill_faces_in_lanes(begin, table)
            else:
                doubtful = fill_edges_in_lanes(begin, table)
            for k in range(begin, end):
                table.kind[k] = wp.uint8(code)
                if table.bases.shape[1] > 2:
                    table.features[k] = own_numbers(code, table.features[k][0], table.features[k][1], table.bases)
    if doubtful != 0:
        for k in range(begin, end):
            if (doubtful >> (k - begin)) & 1 == 1:
                fill_contact(k, table)


@wp.kernel(module="unique", module_options=SOUND)
def fill_in_lanes(first: int, table: ContactTable):
    """The same, eight at each index."""
    begin = LANES * (first + wp.tid())
    fill_eight(begin, wp.min(begin + LANES, int(table.number[0])), table)


@wp.kernel(module="unique", module_options=SOUND)
def sort_and_fill(
    first: int, width: int, begins: wp.array[wp.int64], unsorted: wp.array[wp.int64], table: ContactTable
):
    """Put a chunk of keys in order (`parallel_sort`), and write its contacts while they are at hand."""
    chunk = sort_chunk(first + wp.tid(), int(table.bits), width, begins, unsorted, table.pair_keys)
    begin = int(chunk[0])
    while begin < chunk[1]:
        if begin + LANES > chunk[1]:  # rather eight again, of which some are there already, than the rest one by one
            begin = wp.max(chunk[0], chunk[1] - LANES)
        end = wp.min(begin + LANES, chunk[1])
        fill_eight(begin, end, table)
        begin = end
