"""Eight boxes of a tree at a time, for CPUs: which clusters of faces meet a box, one after the other.

Above the clusters of a tree stand nodes of eight, by order alone; a row holds one number of the boxes of eight
children. A descent remembers for each level where it is and which children are left, in a few numbers of its own, so
that whoever asks for the next cluster can stop and go on. Nothing here is for CUDA.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bound import LANES, Lanes, LinearTree, MovingBox
from tangere.runtime import SOUND, launch
from tangere.soft.in_lanes import PENDING

wp.set_module_options(SOUND)

__all__ = ["STATE", "Eights", "begin_descent", "next_cluster"]

#: Numbers of a list of candidates and a descent: a level, and a node and a mask for each of up to ten levels.
STATE = 2 * int(PENDING) + 24


class Eights:
    """Nodes of eight above the clusters of a tree."""

    def __init__(self, tree: LinearTree) -> None:
        self._tree, device = tree, tree.items.device
        sizes = [-(-len(tree.clusters) // 8)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // 8))
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        self._groups = sizes[0]
        self.levels = wp.array(ends, dtype=wp.int32, device=device)  #: where the nodes of each level begin, from below
        self.rows = wp.empty((int(ends[-1]), 12), dtype=Lanes, device=device)

    def fit(self, nodes: wp.array) -> Eights:
        """Bring the rows up to date with the boxes of the tree's nodes."""
        device, inputs = nodes.device, [nodes, self._tree.clusters]
        launch(_fit_groups, self._groups, inputs, [self.rows], device=device, grain=512)
        launch(_fit_above, 1, [self.levels], [self.rows], device=device)
        return self


_STATE = f"""
    int* state = &scratch.data[scratch.shape[1] * row + {2 * int(PENDING)}];
"""
_MEETING = """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    const int* box = (const int*)&boxes.data[i];
    auto meeting = [&](int node) -> int {
        const Row* r = (const Row*)&rows.data[12 * node];
        Row apart = (Row)(-1);
        for (int k = 0; k < 3; ++k) {
            const Row below = __builtin_elementwise_min(r[3 + k] + box[k], r[9 + k] + box[6 + k]);
            const Row above = __builtin_elementwise_min(r[k] + box[3 + k], r[6 + k] + box[9 + k]);
            apart = __builtin_elementwise_max(apart, __builtin_elementwise_max(below, above));
        }
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(apart <= 0, Bits));
    };
    const int top = levels.shape[0] - 2;
"""


@wp.func_native(
    _STATE
    + _MEETING
    + """
    state[0] = top;
    state[1 + 2 * top] = 0;
    state[2 + 2 * top] = meeting(levels.data[top]);
"""
)
def begin_descent(
    boxes: wp.array[MovingBox],
    i: int,
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    row: int,
    scratch: wp.array2d[int],
):
    """Before the first cluster that meets box i is asked for."""
    ...


@wp.func_native(
    _STATE
    + _MEETING
    + """
    for (int level = state[0]; level <= top;) {
        int* at = state + 1 + 2 * level;
        if (at[1] == 0) {
            ++level;
            continue;
        }
        const int child = 8 * at[0] + __builtin_ctz(at[1]);
        at[1] &= at[1] - 1;
        if (level == 0) {
            state[0] = 0;
            return child;
        }
        --level;
        at[-2] = child;
        at[-1] = meeting(levels.data[level] + child);
    }
    return -1;
"""
)
def next_cluster(
    boxes: wp.array[MovingBox],
    i: int,
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    row: int,
    scratch: wp.array2d[int],
) -> int:
    """The next cluster that meets box i, rising; -1 after the last."""
    ...


@wp.func_native(
    """
    for (int lane = 0; lane < 8; ++lane) {
        const int k = 8 * group + lane;
        for (int r = 0; r < 12; ++r)
            ((int*)&rows.data[12 * group + r])[lane] =
                k < clusters.shape[0] ? ((const int*)&nodes.data[clusters.data[k]])[r] : (1 << 30) - 1;
    }
"""
)
def lay_group(nodes: wp.array[MovingBox], clusters: wp.array[int], group: int, rows: wp.array2d[Lanes]):
    """The boxes of eight clusters, or of nothing, side by side."""
    ...


@wp.kernel
def _fit_groups(first: int, nodes: wp.array[MovingBox], clusters: wp.array[int], rows: wp.array2d[Lanes]):
    lay_group(nodes, clusters, first + wp.tid(), rows)


@wp.kernel
def _fit_above(first: int, levels: wp.array[int], rows: wp.array2d[Lanes]):
    """Children before parents (one thread)."""
    for level in range(1, levels.shape[0] - 1):
        for node in range(levels[level], levels[level + 1]):
            for lane in range(LANES):
                child = levels[level - 1] + LANES * (node - levels[level]) + lane
                for r in range(12):
                    least = int(1073741823)
                    if child < levels[level]:
                        least = wp.min(rows[child, r])
                    rows[node, r][lane] = least
