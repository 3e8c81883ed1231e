"""Keys of pairs of features: kind, which side the vertex is on, and the numbers of both features, in one integer.

A vertex over a triangle is named by the triangle's patch, so the key stays while the vertex slides over a flat place;
what happens in the end of an edge is named by the vertex there. Keys are those of `contact_key`; in rising order they
are the canonical order of the contacts of a pair.
"""

from __future__ import annotations

import warp as wp

from tangere.query.contacts.record import Kind
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Kind and side of a key: vertex of a on a triangle of b, the other way round; two edges; vertex on edge; two vertices.
VERTEX_FACE = wp.constant(2 * int(Kind.VERTEX_FACE))
FACE_VERTEX = wp.constant(2 * int(Kind.VERTEX_FACE) + 1)
EDGE_EDGE = wp.constant(2 * int(Kind.EDGE_EDGE))
VERTEX_EDGE = wp.constant(2 * int(Kind.VERTEX_EDGE))
EDGE_VERTEX = wp.constant(2 * int(Kind.VERTEX_EDGE) + 1)
VERTEX_VERTEX = wp.constant(2 * int(Kind.VERTEX_VERTEX))

_BITS = wp.constant(wp.int64(29))
_MASK = wp.constant(wp.int64(2**29 - 1))
#: Bits that hold every key.
KEY_BITS = 62


@wp.func
def feature_key(code: int, one: int, other: int) -> wp.int64:
    """The key of two features as their meshes count them; the vertex of a vertex and something else is the first."""
    return (wp.int64(code) << wp.int64(58)) | (wp.int64(one) << _BITS) | wp.int64(other)


@wp.func
def key_parts(key: wp.int64) -> wp.vec3i:
    """Code and both numbers."""
    return wp.vec3i(int(key >> wp.int64(58)), int((key >> _BITS) & _MASK), int(key & _MASK))
