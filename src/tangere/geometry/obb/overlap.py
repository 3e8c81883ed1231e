"""Do two oriented boxes overlap? The 15-axis test, for boxes seen along their axes.

Method: the boxes are disjoint if and only if a face normal of one of them, or the cross product of an edge of each,
        separates them (Redon 2002, section 3.2).
Sound:  never apart when they overlap. Records of a tree have axes that are orthonormal to 2^-23 only: face tests read
        one box as slabs and the other as all c + sum x_k a_k (see `bvh.obb.tree`), which needs no orthonormality; edge
        tests add `SKEW` to the cosines, which covers it and nearly parallel edges as well.
Others: `separating_axis` looks for the best direction and its gap, not for any; it leaves near-parallel edges out
        instead of adding to cosines, because it divides by their length. It has other bits and takes longer.
Known as: separating axis test of OBBs (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Added to cosines on edge axes when boxes come from the float32 records of a tree: four times what they may be off.
SKEW = wp.constant(wp.float64(2.0**-20))


@wp.struct
class BoxPair:
    """Two boxes as seen along their axes."""

    half_a: wp.vec3d
    half_b: wp.vec3d
    offset_a: wp.vec3d  # from the centre of a to that of b, along the axes of a
    offset_b: wp.vec3d  # the same along the axes of b
    cosines: wp.mat33d  # [i, j]: axis i of a times axis j of b
    rounding: wp.float64  # what projections may be off


@wp.func
def boxes_apart(pair: BoxPair, edge_axes: int, skew: wp.float64) -> bool:
    """Whether a face normal, or with `edge_axes` also a product of edges, separates the boxes."""
    a = pair.half_a
    b = pair.half_b
    c = pair.cosines
    for i in range(3):
        if wp.abs(pair.offset_a[i]) > pair.rounding + a[i] + (
            b[0] * wp.abs(c[i, 0]) + b[1] * wp.abs(c[i, 1]) + b[2] * wp.abs(c[i, 2])
        ):
            return True
    for j in range(3):
        if wp.abs(pair.offset_b[j]) > pair.rounding + b[j] + (
            a[0] * wp.abs(c[0, j]) + a[1] * wp.abs(c[1, j]) + a[2] * wp.abs(c[2, j])
        ):
            return True
    if edge_axes == 0:
        return False
    t = pair.offset_a
    # The offset of an edge axis is exact for the axis (a1 x a2) x b, which is what the formula projects on.
    for i in range(3):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        for j in range(3):
            j1 = (j + 1) % 3
            j2 = (j + 2) % 3
            reach_a = a[i1] * (wp.abs(c[i2, j]) + skew) + a[i2] * (wp.abs(c[i1, j]) + skew)
            reach_b = b[j1] * (wp.abs(c[i, j2]) + skew) + b[j2] * (wp.abs(c[i, j1]) + skew)
            if wp.abs(t[i2] * c[i1, j] - t[i1] * c[i2, j]) > pair.rounding + reach_a + reach_b:
                return True
    return False
