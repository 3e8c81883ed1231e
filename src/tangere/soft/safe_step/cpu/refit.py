"""What has new moves after an iteration of the truncation, and the boxes of only that brought up to date (CPU).

An iteration changes the moves of a hundredth of all vertices; asking all clusters and patches, or fitting the whole
tree again, would take longer than searching what is new. On CUDA each thread asks for itself.
Known as: dirty flags; refitting a BVH.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LANES, NOWHERE, Lanes, LinearTree, MovingBox, TreeBoxes
from tangere.runtime import SOUND, device_of, launch
from tangere.soft.safe_step.patch_layout import PatchLists

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class DirtySets:
    """What must be looked at again."""

    vertices: np.ndarray  #: vertices whose moves are new
    patches: wp.array  #: int32: patches with one of them around
    clusters: wp.array  #: (c,) uint8: 1 for clusters with one of them
    nodes: wp.array  #: (N,) uint8: 1 for nodes of the tree with such a cluster below them
    #: uint8: for each node of eight (`tangere.bvh.wide`) a mask of its children with such a cluster below them
    child_masks: wp.array


class ChangeTracker:
    """Tells what is new, from the vertices whose moves are."""

    def __init__(self, tree: LinearTree, lists: PatchLists, levels: wp.array, vertices: int) -> None:
        """`levels`: where the nodes of eight of each level begin, from below; `vertices`: how many there are."""
        self._nodes, self._parent, self._levels = tree.clusters.numpy(), tree.parent.numpy(), levels.numpy()
        items, size = tree.items.numpy(), tree.last.numpy()[self._nodes] - tree.first.numpy()[self._nodes] + 1
        owner = np.repeat(np.arange(len(size)), size)
        self._at_vertex = EntriesByKey(items[: len(owner)].ravel(), np.repeat(owner, 3), vertices)
        self._corners = tree.corners.numpy().reshape(-1, 24)
        #: Clusters that have other faces since.
        self.added: list[np.ndarray] = []
        self._listed: tuple[Any, EntriesByKey | None] = None, None  # the last of those that it has
        self._at_cluster = patches_at_clusters(lists, len(size))
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
        if self.added:
            last, listed = self._listed
            if listed is None or last is not self.added[-1]:
                others = np.unique(np.concatenate(self.added))
                row, column = np.nonzero(self._corners[others] >= 0)
                listed = EntriesByKey(self._corners[others[row], column], others[row], len(self.all.vertices))
                self._listed = self.added[-1], listed
            clusters[listed.of(vertices)] = 1
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


def refit(boxes: TreeBoxes, vertices: wp.array, changed: wp.array, dirty: wp.array) -> TreeBoxes:
    """Bring the boxes of clusters, side by side, and of nodes up to date, in place; those of items stay as they were.

    Args:
        vertices: (s,) `MovingBox` of the vertices now.
        changed: (c,) uint8, 1 for the clusters that have a vertex with another box than before.
        dirty: (N,) uint8, 1 for the nodes that have such a cluster below them.
    """
    tree, device = boxes.tree, device_of(vertices)
    inputs = [changed, tree.clusters, tree.corners, vertices]
    launch(_refit_clusters, len(tree.clusters), inputs, [boxes.lanes, boxes.nodes], device=device, grain=1024)
    launch(_refit_above, 1, [dirty, tree.first, tree.last, tree.skip], [boxes.nodes], device=device)
    return boxes


class EntriesByKey:
    """Entries by key."""

    def __init__(self, keys: np.ndarray, entries: np.ndarray, count: int) -> None:
        order = np.argsort(keys, kind="stable")
        self.entries = entries[order]
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))])

    def of(self, keys: np.ndarray) -> np.ndarray:
        """All entries of these keys."""
        begin, size = self.offsets[keys], self.offsets[keys + 1] - self.offsets[keys]
        return self.entries[np.repeat(begin - np.cumsum(size) + size, size) + np.arange(size.sum())]


def patches_at_clusters(lists: PatchLists, clusters: int) -> EntriesByKey:
    """By cluster, of so many, the patches that have it in their lists."""
    patch = np.repeat(np.arange(lists.count), np.diff(lists.cluster_offsets.numpy()))
    return EntriesByKey(lists.clusters.numpy(), patch, clusters)


@wp.kernel
def _refit_clusters(
    first: int,
    changed: wp.array[wp.uint8],
    clusters: wp.array[int],
    corners: wp.array2d[Lanes],
    vertices: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    nodes: wp.array[MovingBox],
):
    k = first + wp.tid()
    if changed[k] != wp.uint8(0):
        refit_cluster(k, clusters[k], corners, vertices, lanes, nodes)


@wp.func_native(
    f"""
    const int nowhere = {int(NOWHERE)};
"""
    """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef int Four __attribute__((ext_vector_type(4), aligned(4)));
    const int* corner = (const int*)&corners.data[3 * k];
    Row* own = (Row*)&lanes.data[12 * k];
    int last = 7;
    while (last >= 0 && corner[last] < 0)
        --last;
    if (last < 0) {  // a cluster without faces has the box of nothing
        for (int code = 0; code < 12; ++code)
            ((int*)&nodes.data[node])[code] = nowhere;
        return;
    }
    Row box[8];  // the first eight numbers of the box of each face
    Four rest[8];  // the last four
    for (int lane = 0; lane < 8; ++lane) {  // unused lanes repeat the last item
        const int item = lane < last ? lane : last;
        const int* a = (const int*)&vertices.data[corner[item]];
        const int* b = (const int*)&vertices.data[corner[8 + item]];
        const int* c = (const int*)&vertices.data[corner[16 + item]];
        const Row ab = __builtin_elementwise_min(*(const Row*)a, *(const Row*)b);
        const Four tails = __builtin_elementwise_min(*(const Four*)(a + 8), *(const Four*)(b + 8));
        box[lane] = __builtin_elementwise_min(ab, *(const Row*)c);
        rest[lane] = __builtin_elementwise_min(tails, *(const Four*)(c + 8));
    }
    Row low = box[0];
    Four high = rest[0];
    for (int lane = 1; lane < 8; ++lane) {
        low = __builtin_elementwise_min(low, box[lane]);
        high = __builtin_elementwise_min(high, rest[lane]);
    }
    *(Row*)&nodes.data[node] = low;
    *(Four*)((int*)&nodes.data[node] + 8) = high;
    // rows become columns: first by pairs, then by fours, then by halves
    auto low_pairs = [](Row a, Row b) -> Row { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13); };
    auto high_pairs = [](Row a, Row b) -> Row { return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15); };
    auto low_fours = [](Row a, Row b) -> Row { return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13); };
    auto high_fours = [](Row a, Row b) -> Row { return __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15); };
    auto low_half = [](Row a, Row b) -> Row { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11); };
    auto high_half = [](Row a, Row b) -> Row { return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15); };
    auto turn = [&](Row a, Row b, Row c, Row d, Row* out) {  // four numbers of both halves
        const Row ab0 = low_pairs(a, b), ab1 = high_pairs(a, b), cd0 = low_pairs(c, d), cd1 = high_pairs(c, d);
        out[0] = low_fours(ab0, cd0), out[1] = high_fours(ab0, cd0);
        out[2] = low_fours(ab1, cd1), out[3] = high_fours(ab1, cd1);
    };
    Row one[4], two[4];
    turn(box[0], box[1], box[2], box[3], one);
    turn(box[4], box[5], box[6], box[7], two);
    for (int r = 0; r < 4; ++r) {
        own[r] = low_half(one[r], two[r]);
        own[4 + r] = high_half(one[r], two[r]);
    }
    auto both = [&](int k) -> Row { return __builtin_shufflevector(rest[k], rest[k + 4], 0, 1, 2, 3, 4, 5, 6, 7); };
    turn(both(0), both(1), both(2), both(3), own + 8);
"""
)
def refit_cluster(
    k: int,
    node: int,
    corners: wp.array2d[Lanes],
    vertices: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    nodes: wp.array[MovingBox],
):
    """The boxes of the faces of cluster k, side by side, and of the cluster, which is a node."""
    ...


@wp.kernel
def _refit_above(
    first: int,
    dirty: wp.array[wp.uint8],
    begin: wp.array[int],
    end: wp.array[int],
    skip: wp.array[int],
    nodes: wp.array[MovingBox],
):
    """Children before parents (one thread)."""
    node = begin.shape[0] - 1
    while node >= 0:
        if dirty[node] != wp.uint8(0) and end[node] - begin[node] >= LANES:
            nodes[node] = wp.min(nodes[node + 1], nodes[skip[node + 1]])
        node = node - 1
