"""Nodes of eight above the clusters of an LBVH, whose boxes move: which clusters does a moving box meet?

Method: above the clusters stand nodes of eight, by order alone (`layout`); rows are refitted only where something below
        has changed. Cones of the normals of clusters lie beside them, so that a descent leaves out those that face the
        same way (`simd_descent`).
Others: `tree` is for boxes at one instant, six codes instead of twelve, and has clusters of its own.
Known as: a wide BVH collapsed from a binary one (Dammertz, Hanika and Keller 2008), over swept boxes.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LANES, Lanes, LinearTree, MovingBox
from tangere.bvh.wide.layout import EMPTY, level_offsets, raise_box
from tangere.runtime import SOUND, device_of, launch

wp.set_module_options(SOUND)

#: Numbers of the cones of eight clusters: axis, cosine and sine of each.
CONE_ROWS = 40


class MovingWideBvh:
    """Nodes of eight above the clusters of a tree."""

    def __init__(self, tree: LinearTree) -> None:
        self._tree, device = tree, tree.items.device
        ends = level_offsets(-(-len(tree.clusters) // int(LANES)))
        self._groups = int(ends[1])
        self.levels = wp.array(ends, dtype=wp.int32, device=device)  #: where the nodes of each level begin, from below
        self.rows = wp.empty((int(ends[-1]), 12), dtype=Lanes, device=device)
        self.changed = wp.full(int(ends[-1]), 255, dtype=wp.uint8, device=device)  #: children with a change below

    def fit(self, nodes: wp.array, changed: wp.array) -> MovingWideBvh:
        """Refit the rows to the boxes of the tree's nodes; masks of children say below which something changed."""
        self.changed, device = changed, nodes.device
        launch(_fit_groups, self._groups, [nodes, self._tree.clusters, changed], [self.rows], device=device, grain=512)
        launch(_fit_above, 1, [self.levels, changed], [self.rows], device=device)
        return self


def cone_rows(cones: wp.array) -> wp.array:
    """(groups, 40) float64: axes, cosines and sines of the cones of eight clusters side by side."""
    device = device_of(cones)
    rows = wp.empty((-(-len(cones) // 8), CONE_ROWS), dtype=wp.float64, device=device)
    launch(_lay_cones, len(rows), [cones], [rows], device=device, grain=512)
    return rows


@wp.func_native(
    f"""
    const int empty = {int(EMPTY)};
"""
    + """
    for (int lane = 0; lane < 8; ++lane) {
        const int k = 8 * group + lane;
        for (int r = 0; r < 12; ++r)
            ((int*)&rows.data[12 * group + r])[lane] =
                k < clusters.shape[0] ? ((const int*)&nodes.data[clusters.data[k]])[r] : empty;
    }
"""
)
def lay_group(nodes: wp.array[MovingBox], clusters: wp.array[int], group: int, rows: wp.array2d[Lanes]):
    """The boxes of eight clusters, or of nothing, side by side."""
    ...


@wp.kernel
def _lay_cones(first: int, cones: wp.array[wp.vec4d], rows: wp.array2d[wp.float64]):
    """Lanes of no cluster tell nothing."""
    group = first + wp.tid()
    for lane in range(LANES):
        cone = wp.vec4d()
        if LANES * group + lane < cones.shape[0]:
            cone = cones[LANES * group + lane]
        for r in range(4):
            rows[group, LANES * r + lane] = cone[r]
        rows[group, LANES * 4 + lane] = wp.sqrt(wp.max(wp.float64(0.0), wp.float64(1.0) - cone[3] * cone[3]))


@wp.kernel
def _fit_groups(
    first: int,
    nodes: wp.array[MovingBox],
    clusters: wp.array[int],
    changed: wp.array[wp.uint8],
    rows: wp.array2d[Lanes],
):
    group = first + wp.tid()
    if changed[group] != wp.uint8(0):
        lay_group(nodes, clusters, group, rows)


@wp.kernel
def _fit_above(first: int, levels: wp.array[int], changed: wp.array[wp.uint8], rows: wp.array2d[Lanes]):
    """Children before parents (one thread)."""
    for level in range(1, levels.shape[0] - 1):
        for node in range(levels[level], levels[level + 1]):
            for lane in range(LANES):
                if ((int(changed[node]) >> lane) & 1) == 1:
                    child = levels[level - 1] + LANES * (node - levels[level]) + lane
                    if child < levels[level]:
                        raise_box(rows, child, node, lane)
                    else:
                        for r in range(12):
                            rows[node, r][lane] = EMPTY
