"""What has new moves after an iteration of the truncation, for CPUs: the few clusters and patches to look at again.

An iteration changes the moves of a hundredth of all vertices; asking all of them would take longer than what follows.
On CUDA each thread asks for itself.
Known as: dirty flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LinearTree
from tangere.soft.safe_step.patch_layout import PatchLists


@dataclass(frozen=True)
class DirtySets:
    """What must be looked at again."""

    vertices: np.ndarray  #: vertices whose moves are new
    patches: wp.array  #: int32: patches with one of them around
    clusters: wp.array  #: (c,) uint8: 1 for clusters with one of them
    nodes: wp.array  #: (N,) uint8: 1 for nodes of the tree with such a cluster below them
    child_masks: (
        wp.array
    )  #: uint8: for each node of eight (`descent`) a mask of its children with such a cluster below them


class ChangeTracker:
    """Tells what is new, from the vertices whose moves are."""

    def __init__(self, tree: LinearTree, lists: PatchLists, levels: wp.array, vertices: int) -> None:
        """`levels`: where the nodes of eight of each level begin, from below; `vertices`: how many there are."""
        self._nodes, self._parent, self._levels = tree.clusters.numpy(), tree.parent.numpy(), levels.numpy()
        items, size = tree.items.numpy(), tree.last.numpy()[self._nodes] - tree.first.numpy()[self._nodes] + 1
        owner = np.repeat(np.arange(len(size)), size)
        self._at_vertex = _Lists(items.ravel(), np.repeat(owner, 3), vertices)
        offsets = lists.cluster_offsets.numpy()
        patch = np.repeat(np.arange(lists.count), np.diff(offsets))
        self._at_cluster = _Lists(lists.clusters.numpy(), patch, len(size))
        self._patches, patches = lists.count, wp.clone(lists.interleaved)
        ones = [wp.ones(count, dtype=wp.uint8, device="cpu") for count in (len(size), len(self._parent))]
        child_masks = wp.full(int(self._levels[-1]), 255, dtype=wp.uint8, device="cpu")
        self.all = DirtySets(np.arange(vertices), patches, *ones, child_masks)  #: everything is new

    def dirty_sets(self, changed: wp.array) -> DirtySets:
        """What is new where these vertices, (s,) uint8, have new moves."""
        vertices = np.flatnonzero(changed.numpy())
        if 4 * len(vertices) > len(self.all.vertices):
            return self.all
        clusters, nodes = np.zeros(len(self.all.clusters), np.uint8), np.zeros(len(self.all.nodes), np.uint8)
        clusters[self._at_vertex.of(vertices)] = 1
        found = np.flatnonzero(clusters)
        node = self._nodes[found]
        while len(node):
            nodes[node] = 1
            node = self._parent[node]
            node = node[node >= 0]
        masks, below = [], clusters
        for _ in self._levels[:-1]:
            padded = np.concatenate([below, np.zeros(-len(below) % 8, np.uint8)])
            masks.append(np.packbits(padded.reshape(-1, 8), bitorder="little"))
            below = (masks[-1] != 0).astype(np.uint8)
        child_masks = np.concatenate(masks)
        at_changed = np.zeros(self._patches, bool)
        at_changed[self._at_cluster.of(found)] = True
        patches = np.flatnonzero(at_changed).astype(np.int32)

        def as_array(array: np.ndarray, dtype: Any) -> wp.array:
            return wp.array(array, dtype=dtype, device="cpu", copy=False)

        return DirtySets(
            vertices,
            as_array(patches, wp.int32),
            *(as_array(array, wp.uint8) for array in (clusters, nodes, child_masks)),
        )


class _Lists:
    """Entries by key."""

    def __init__(self, keys: np.ndarray, entries: np.ndarray, count: int) -> None:
        order = np.argsort(keys, kind="stable")
        self._entries = entries[order]
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))])

    def of(self, keys: np.ndarray) -> np.ndarray:
        """All entries of these keys."""
        begin, size = self._offsets[keys], self._offsets[keys + 1] - self._offsets[keys]
        return self._entries[np.repeat(begin - np.cumsum(size) + size, size) + np.arange(size.sum())]
