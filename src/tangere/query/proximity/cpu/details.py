"""The columns of contacts on CPUs: eight contacts of one kind at once, by the texts of `geometry.simd`.

A lane in doubt, and eights that are not full or not of one kind, go one by one (`fill_contact`). The numbers are the
same, bit by bit.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LANES
from tangere.query.proximity.cpu.parallel_sort import sort_chunk
from tangere.query.proximity.cpu.simd_near import fill_edges_in_lanes, fill_faces_in_lanes
from tangere.query.proximity.details import fill_contact
from tangere.query.proximity.pair_keys import VERTEX_FACE, body_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def fill_eight(
    begin: int,
    end: int,
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
    bases: wp.array2d[int],
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    quads: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    gap: wp.array[wp.float64],
    features: wp.array[wp.vec2i],
    kind: wp.array[wp.uint8],
):
    """Write eight contacts, or fewer."""
    doubtful = int(255)
    if end - begin == LANES:
        code = pair_keys[begin] >> (wp.int64(2) * bits + wp.int64(1))
        if pair_keys[end - 1] >> (wp.int64(2) * bits + wp.int64(1)) == code:  # keys rise: so are all between
            if code == VERTEX_FACE:
                doubtful = fill_faces_in_lanes(begin, pair_keys, bits, faces, positions, quads, weights, gap, features)
            else:
                doubtful = fill_edges_in_lanes(begin, pair_keys, bits, edges, positions, quads, weights, gap, features)
            row = int(1)
            across = int(1)
            if code == VERTEX_FACE:
                row = 0
                across = 2
            for k in range(begin, end):
                kind[k] = wp.uint8(code)
                if bases.shape[1] > 2:
                    pair = features[k]
                    one = pair[0] - bases[row, body_of(bases, row, pair[0])]
                    features[k] = wp.vec2i(one, pair[1] - bases[across, body_of(bases, across, pair[1])])
    if doubtful != 0:
        for k in range(begin, end):
            if (doubtful >> (k - begin)) & 1 == 1:
                fill_contact(k, pair_keys, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)


@wp.kernel(module="unique", module_options=SOUND)
def fill_in_lanes(
    first: int,
    number: wp.array[wp.int64],
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
    bases: wp.array2d[int],
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    quads: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    gap: wp.array[wp.float64],
    features: wp.array[wp.vec2i],
    kind: wp.array[wp.uint8],
):
    """The same, eight at each index."""
    begin = LANES * (first + wp.tid())
    end = wp.min(begin + LANES, int(number[0]))
    fill_eight(begin, end, pair_keys, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)


@wp.kernel(module="unique", module_options=SOUND)
def sort_and_fill(
    first: int,
    width: int,
    begins: wp.array[wp.int64],
    unsorted: wp.array[wp.int64],
    number: wp.array[wp.int64],
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
    bases: wp.array2d[int],
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    quads: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    gap: wp.array[wp.float64],
    features: wp.array[wp.vec2i],
    kind: wp.array[wp.uint8],
):
    """Put a chunk of keys in order (`parallel_sort`), and write its contacts while they are at hand."""
    chunk = sort_chunk(first + wp.tid(), int(bits), width, begins, unsorted, pair_keys)
    begin = int(chunk[0])
    while begin < chunk[1]:
        if begin + LANES > chunk[1]:  # rather eight again, of which some are there already, than the rest one by one
            begin = wp.max(chunk[0], chunk[1] - LANES)
        end = wp.min(begin + LANES, chunk[1])
        fill_eight(begin, end, pair_keys, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)
        begin = end
