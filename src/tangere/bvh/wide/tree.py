"""A tree of eights over features at one instant: clusters of eight items, and above them eight nodes in each node.

Question: which features may be near a box, at positions that change from call to call?
Method:   the order is made once (`order`); boxes are fitted to the positions of every instant, grown by a margin. Those
          of clusters come straight from positions; those of items are made later, for clusters that meet others.
Others:   `moving` has nodes of eight above the clusters of an LBVH, whose boxes move: twelve codes instead of six. Why
          there are two is in docs/decisions/0013. Layout: `layout`; descent: `simd_descent`.
Known as: a wide BVH, BVH8 or multi-branching BVH, refitted (Wald, Benthin and Boulos 2008; Dammertz, Hanika and Keller
          2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LANES, Lanes
from tangere.bvh.wide.layout import EMPTY, level_offsets, raise_box
from tangere.bvh.wide.records import AabbRecord, FitFrame
from tangere.bvh.wide.simd_fit import fit_clusters
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: Eights of clusters, some 0.2 us each.
FIT_GRAIN = 4


@dataclass(frozen=True)
class WideBvh:
    """The order of some features; places beyond the last one hold nothing."""

    items: wp.array  #: (8c, w) int32: the vertices of the item at each place, by their places in the tree of vertices
    numbers: wp.array  #: (8c,) int32: the feature at each place, counted through the scene
    corners: wp.array  #: (c, w) `Lanes`: the vertices of the items of a cluster, eight side by side, -1 for none
    begins: wp.array  #: (c + 1,) int32: where the vertices of each cluster begin in `vertices`
    vertices: wp.array  #: int32: the vertices of each cluster, each once, counted through the scene
    levels: wp.array  #: (L + 1,) int32: the first node of each level, clusters first, and the number of nodes
    count: int  #: of items

    @staticmethod
    def of(items: np.ndarray, numbers: np.ndarray, order: np.ndarray) -> WideBvh:
        """A tree over items (n, w), in their order, that have these numbers (n,).

        Args:
            order: (v,) the vertices of the items, counted through the scene.
        """
        count, width = items.shape
        clusters = -(-count // LANES)
        placed = np.full((LANES * clusters, width), -1, np.int32)
        placed[:count] = items
        known = np.zeros(LANES * clusters, np.int32)
        known[:count] = numbers
        corners = placed.reshape(clusters, LANES, width).transpose(0, 2, 1)
        sorted_ = np.sort(placed.reshape(clusters, -1), axis=1)
        once = sorted_ >= 0
        once[:, 1:] &= sorted_[:, 1:] != sorted_[:, :-1]
        return WideBvh(
            items=wp.array(placed, dtype=wp.int32, device="cpu"),
            numbers=wp.array(known, dtype=wp.int32, device="cpu"),
            corners=wp.array(np.ascontiguousarray(corners), dtype=Lanes, device="cpu"),
            begins=wp.array(np.cumsum([0, *once.sum(axis=1)]), dtype=wp.int32, device="cpu"),
            vertices=wp.array(order[sorted_[once]], dtype=wp.int32, device="cpu"),
            levels=wp.array(level_offsets(clusters), dtype=wp.int32, device="cpu"),
            count=count,
        )

    def boxes(self) -> WideBvhBoxes:
        """Room for the boxes of an instant; lanes that hold nothing have the box of nothing."""
        levels = self.levels.numpy()
        rows = wp.empty((int(levels[-1]), 6), dtype=Lanes, device="cpu")
        rows.numpy()[levels[1:] - 1] = EMPTY  # only the last node of a level is not full
        return WideBvhBoxes(self, wp.empty(self.clusters, dtype=AabbRecord, device="cpu"), rows)

    @property
    def clusters(self) -> int:
        return len(self.corners)

    @property
    def groups(self) -> int:
        """Clusters by eights: what is fitted, and searched with, at a time."""
        return -(-self.clusters // LANES)


@dataclass(frozen=True)
class WideBvhBoxes:
    """The boxes of a tree at an instant."""

    of: WideBvh
    clusters: wp.array  #: (c,) `AabbRecord`
    rows: wp.array  #: (N, 6) `Lanes`: the boxes of the items of each cluster, if wanted, and of the children of nodes

    def fitting(self, instant: wp.array) -> tuple[PreparedLaunch, PreparedLaunch]:
        """The launches that make the boxes of clusters at an `FitFrame`, (1,), then of nodes above."""
        tree = self.of
        groups = [instant, tree.begins, tree.vertices, tree.levels, self.clusters, self.rows]
        return PreparedLaunch(
            _fit_groups, groups, wp.get_device("cpu"), dim=tree.groups, grain=FIT_GRAIN
        ), PreparedLaunch(_fit_above, [tree.levels, self.rows], wp.get_device("cpu"), dim=1, grain=1)


@wp.kernel
def _fit_groups(
    first: int,
    instant: wp.array[FitFrame],
    begins: wp.array[int],
    vertices: wp.array[int],
    levels: wp.array[int],
    cluster_boxes: wp.array[AabbRecord],
    rows: wp.array2d[Lanes],
):
    """The boxes of eight clusters, the rows of the node they are in, and its box."""
    group = first + wp.tid()
    fit_clusters(group, instant, begins, vertices, levels, cluster_boxes, rows)
    if levels.shape[0] > 3:
        raise_box(rows, levels[1] + group, levels[2] + group / LANES, group % LANES)


@wp.kernel
def _fit_above(first: int, levels: wp.array[int], rows: wp.array2d[Lanes]):
    """The boxes of the nodes above, level by level (one thread: they are one in 64 of the clusters)."""
    for level in range(2, levels.shape[0] - 2):
        for p in range(levels[level + 1] - levels[level]):
            raise_box(rows, levels[level] + p, levels[level + 1] + p / LANES, p % LANES)
