"""How a tree of eights lies in memory: level by level, without pointers.

Every node but the last of a level is full, so nothing points anywhere: the children of node p of a level are the nodes
8 p to 8 p + 7 of the one below. Their boxes lie side by side in rows, one number of each of the eight in a row: six
rows for boxes at an instant, twelve for boxes that move. What holds nothing has the box of nothing.
Known as: wide BVH, BVH8, QBVH (Dammertz, Hanika and Keller 2008; Wald, Benthin and Boulos 2008).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LANES, Lanes
from tangere.geometry.simd import ROWS

#: Every code of the box of nothing: it meets no other, and the union with it is the other.
EMPTY = wp.constant(wp.int32(2**30 - 1))


def level_offsets(nodes: int) -> np.ndarray:
    """(L + 1,) int32: where each level begins, the lowest, of so many nodes, first; then the number of nodes in all."""
    sizes = [nodes]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // int(LANES)))
    return np.cumsum([0, *sizes]).astype(np.int32)


@wp.func_native(
    ROWS
    + """
    const int codes = rows.shape[1];
    const Row* row = (const Row*)&rows.data[codes * node];
    for (int r = 0; r < codes; ++r)
        ((int*)&rows.data[codes * above])[8 * r + lane] = __builtin_reduce_min(row[r]);
"""
)
def raise_box(rows: wp.array2d[Lanes], node: int, above: int, lane: int):
    """Write the box of a node into a lane of the node above."""
    ...
