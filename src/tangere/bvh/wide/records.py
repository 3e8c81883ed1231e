"""The record of an AABB at an instant: six codes, and two numbers for nodes of a tree: 32 bytes in all.

Codes are those of `bvh.lbvh.moving_aabb`, rounded outward. What boxes are made of on CPUs is one record as well, so
that one number tells all launches where positions are.
"""

from __future__ import annotations

import warp as wp

#: Lower corner and negated upper corner; then, of a node, the one after its subtree, and what is in it.
AabbRecord = wp.types.vector(length=8, dtype=wp.int32)


@wp.struct
class FitFrame:
    """Where the vertices of a scene are in main memory, and how boxes are made of them."""

    positions: wp.uint64  #: the address of the coordinates of the first vertex, three float64 each [m]
    margin: wp.float64  #: by how much boxes are larger than what is in them [m]
    origin: wp.vec3d  #: of the frame of boxes [m]
    scale: wp.float64  #: of this frame [1/m]


@wp.func
def records_meet(a: AabbRecord, b: AabbRecord) -> bool:
    """Whether two boxes have a point in common."""
    return not (
        a[0] + b[3] > 0 or b[0] + a[3] > 0 or a[1] + b[4] > 0 or b[1] + a[4] > 0 or a[2] + b[5] > 0 or b[2] + a[5] > 0
    )
