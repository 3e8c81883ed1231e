"""Keys of pairs of features: one integer each, of kind and side, and the numbers of both features.

The first number is that of the vertex, or of the smaller edge. Keys in rising order are the canonical order of
contacts, whatever tree, grid, thread or device found them.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout
from tangere.query.contacts.record import Kind
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

VERTEX_FACE = wp.constant(wp.int64(Kind.VERTEX_FACE))
EDGE_EDGE = wp.constant(wp.int64(Kind.EDGE_EDGE))
#: Kind (2 bits) and side (1 bit) above two numbers.
CODE_BITS = 3


def number_bits(layout: Layout) -> int:
    """Bits that hold every number of a feature."""
    if "number bits" not in layout.cache:
        most = max(int(base[-1]) for base in (layout.vertex_base, layout.edge_base, layout.face_base))
        layout.cache["number bits"] = most.bit_length()
    return layout.cache["number bits"]


def key_bits(layout: Layout) -> int:
    """Bits that hold every key."""
    return 2 * number_bits(layout) + CODE_BITS


def bases_of(layout: Layout) -> wp.array:
    """(3, bodies + 1) int32: numbers of the first vertex, edge and face of each mesh, and the totals."""
    if "bases" not in layout.cache:
        bases = np.stack([layout.vertex_base, layout.edge_base, layout.face_base]).astype(np.int32)
        layout.cache["bases"] = wp.array(bases, dtype=wp.int32, device=layout.faces.device)
    return layout.cache["bases"]


@wp.func
def pair_key(kind: wp.int64, side: int, one: int, other: int, bits: wp.int64) -> wp.int64:
    """The key of a pair; side is 1 where the vertex belongs to the later body."""
    code = (kind << wp.int64(1)) | wp.int64(side)
    return (((code << bits) | wp.int64(one)) << bits) | wp.int64(other)


@wp.func
def split_key(key: wp.int64, bits: wp.int64) -> wp.vec3i:
    """Kind and side (twice the kind, plus the side), and the numbers of both features."""
    mask = (wp.int64(1) << bits) - wp.int64(1)
    return wp.vec3i(int(key >> (wp.int64(2) * bits)), int((key >> bits) & mask), int(key & mask))


@wp.func
def body_of(bases: wp.array2d[int], row: int, number: int) -> int:
    """The mesh that a feature belongs to, by its number."""
    low = int(0)
    high = bases.shape[1] - 1
    while high - low > 1:
        middle = (low + high) / 2
        if bases[row, middle] <= number:
            low = middle
        else:
            high = middle
    return low
