"""The columns of contacts, from the keys of their pairs: features, vertices, weights and gaps, one by one.

`cpu.details` does the same eight at a time, with the same bits.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import centred_on_edges, edges_offset, face_offset, nearest_on_face
from tangere.query.proximity.pair_keys import VERTEX_FACE, body_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def fill_contact(
    k: int,
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
    """Write contact k."""
    mask = (wp.int64(1) << bits) - wp.int64(1)
    name = pair_keys[k]
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


@wp.kernel
def fill_one_by_one(
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
    """Write as many contacts as the number says."""
    k = first + wp.tid()
    if wp.int64(k) < number[0]:
        fill_contact(k, pair_keys, bits, bases, faces, edges, positions, quads, weights, gap, features, kind)
