"""The columns of contacts, from the keys of their pairs: features, vertices, weights and gaps, one by one.

`cpu.details` does the same eight at a time, with the same bits.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import centred_on_edges, edges_offset, face_offset, nearest_on_face
from tangere.query.proximity.pair_keys import VERTEX_FACE, body_of, split_key
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class ContactTable:
    """The columns of a `ContactBuffer`, and what they are made of, for kernels."""

    number: wp.array[wp.int64]
    pair_keys: wp.array[wp.int64]
    bits: wp.int64  # of the number of a feature
    bases: wp.array2d[int]
    faces: wp.array2d[int]
    edges: wp.array2d[int]
    positions: wp.array[wp.vec3d]
    quads: wp.array[wp.vec4i]
    weights: wp.array[wp.vec4d]
    gap: wp.array[wp.float64]
    features: wp.array[wp.vec2i]
    kind: wp.array[wp.uint8]


@wp.func
def fill_contact(k: int, table: ContactTable):
    """Write contact k."""
    parts = split_key(table.pair_keys[k], table.bits)
    one = parts[1]
    other = parts[2]
    code = wp.int64(parts[0] >> 1)
    unit = wp.float64(1.0)
    if code == VERTEX_FACE:
        quad = wp.vec4i(one, table.faces[other, 0], table.faces[other, 1], table.faces[other, 2])
    else:
        quad = wp.vec4i(table.edges[one, 0], table.edges[one, 1], table.edges[other, 0], table.edges[other, 1])
    p = table.positions[quad[0]]
    a = table.positions[quad[1]]
    b = table.positions[quad[2]]
    c = table.positions[quad[3]]
    if code == VERTEX_FACE:
        w = nearest_on_face(p, a, b, c)
        table.weights[k] = wp.vec4d(unit, w[0], w[1], w[2])
        table.gap[k] = wp.length(face_offset(p, a, b, c, w))
    else:
        at = centred_on_edges(p, a, b, c)
        table.weights[k] = wp.vec4d(unit - at[0], at[0], unit - at[1], at[1])
        table.gap[k] = wp.length(edges_offset(p, a, b, c, at))
    table.quads[k] = quad
    table.features[k] = own_numbers(code, one, other, table.bases)
    table.kind[k] = wp.uint8(code)


@wp.func
def own_numbers(kind: wp.int64, one: int, other: int, bases: wp.array2d[int]) -> wp.vec2i:
    """The numbers of two features of a scene, as their meshes count them."""
    row = int(1)
    across = int(1)
    if kind == VERTEX_FACE:
        row = 0
        across = 2
    return wp.vec2i(one - bases[row, body_of(bases, row, one)], other - bases[across, body_of(bases, across, other)])


@wp.kernel
def fill_one_by_one(first: int, table: ContactTable):
    """Write as many contacts as the number says."""
    k = first + wp.tid()
    if wp.int64(k) < table.number[0]:
        fill_contact(k, table)
