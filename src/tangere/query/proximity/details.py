"""The columns of contacts, from their names: one by one on CUDA, by eights on CPU.

Eight contacts of one kind are described at once by the formulas of `lanes_near`; a lane in doubt, and eights that are
not full or not of one kind, go one by one. The numbers are the same, bit by bit.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LANES
from tangere.geometry.closest_points import centred_on_edges, edges_offset, face_offset, nearest_on_face
from tangere.query.proximity.cpu.parallel_sort import sort_chunk
from tangere.query.proximity.cpu.simd_near import fill_edges_in_lanes, fill_faces_in_lanes
from tangere.query.proximity.pair_keys import VERTEX_FACE, body_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["fill_by_eights", "fill_one_by_one", "settle_and_fill"]


@wp.func
def fill_contact(
    k: int,
    names: wp.array[wp.int64],
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
    """Write contact k."""
    mask = (wp.int64(1) << bits) - wp.int64(1)
    name = names[k]
    other = int(name & mask)
    one = int((name >> bits) & mask)
    code = name >> (wp.int64(2) * bits + wp.int64(1))
    unit = wp.float64(1.0)
    if code == VERTEX_FACE:
        quad = wp.vec4i(one, faces[other, 0], faces[other, 1], faces[other, 2])
        p = positions[quad[0]]
        a = positions[quad[1]]
        b = positions[quad[2]]
        c = positions[quad[3]]
        w = nearest_on_face(p, a, b, c)
        quads[k] = quad
        weights[k] = wp.vec4d(unit, w[0], w[1], w[2])
        gap[k] = wp.length(face_offset(p, a, b, c, w))
        features[k] = wp.vec2i(one - bases[0, body_of(bases, 0, one)], other - bases[2, body_of(bases, 2, other)])
    else:
        quad = wp.vec4i(edges[one, 0], edges[one, 1], edges[other, 0], edges[other, 1])
        p = positions[quad[0]]
        a = positions[quad[1]]
        b = positions[quad[2]]
        c = positions[quad[3]]
        at = centred_on_edges(p, a, b, c)
        quads[k] = quad
        weights[k] = wp.vec4d(unit - at[0], at[0], unit - at[1], at[1])
        gap[k] = wp.length(edges_offset(p, a, b, c, at))
        features[k] = wp.vec2i(one - bases[1, body_of(bases, 1, one)], other - bases[1, body_of(bases, 1, other)])
    kind[k] = wp.uint8(code)


@wp.func
def fill_eight(
    begin: int,
    end: int,
    names: wp.array[wp.int64],
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
        code = names[begin] >> (wp.int64(2) * bits + wp.int64(1))
        if names[end - 1] >> (wp.int64(2) * bits + wp.int64(1)) == code:  # names rise: so are all between
            if code == VERTEX_FACE:
                doubtful = fill_faces_in_lanes(begin, names, bits, faces, positions, quads, weights, gap, features)
            else:
                doubtful = fill_edges_in_lanes(begin, names, bits, edges, positions, quads, weights, gap, features)
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
                fill_contact(k, names, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)


@wp.kernel
def fill_one_by_one(
    first: int,
    number: wp.array[wp.int64],
    names: wp.array[wp.int64],
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
    """Write as many contacts as the number says."""
    k = first + wp.tid()
    if wp.int64(k) < number[0]:
        fill_contact(k, names, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)


@wp.kernel(module="unique", module_options=SOUND)
def fill_by_eights(
    first: int,
    number: wp.array[wp.int64],
    names: wp.array[wp.int64],
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
    fill_eight(begin, end, names, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)


@wp.kernel(module="unique", module_options=SOUND)
def settle_and_fill(
    first: int,
    width: int,
    begins: wp.array[wp.int64],
    loose: wp.array[wp.int64],
    number: wp.array[wp.int64],
    names: wp.array[wp.int64],
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
    """Put a chunk of names in order (`ordered`), and write its contacts while they are at hand."""
    chunk = sort_chunk(first + wp.tid(), int(bits), width, begins, loose, names)
    begin = int(chunk[0])
    while begin < chunk[1]:
        if begin + LANES > chunk[1]:  # rather eight again, of which some are there already, than the rest one by one
            begin = wp.max(chunk[0], chunk[1] - LANES)
        end = wp.min(begin + LANES, chunk[1])
        fill_eight(begin, end, names, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)
        begin = end
