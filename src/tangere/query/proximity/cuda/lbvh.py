"""Trees of pairs for CUDA, with the boxes of one instant: a `LinearTree` whose nodes are records of 32 bytes.

A record is a box, where to go on when that is apart, and what is in it: a thread with one item reads nothing else on
its way down.
Known as: LBVH (Lauterbach et al. 2009; Karras 2012), traversed without a stack by skip pointers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import EMPTY
from tangere.bvh.lbvh import LANES, LinearTree
from tangere.bvh.wide import AabbRecord
from tangere.runtime import SOUND, device_of, launch

wp.set_module_options(SOUND)

#: Bits for the number of items of a cluster beside its first place.
SIZE_BITS = wp.constant(4)


@dataclass(frozen=True)
class CudaLbvh:
    """The order of some features."""

    tree: LinearTree  #: items name vertices by their places in the tree of vertices
    numbers: wp.array  #: (n,) int32: the feature at each place, counted through the scene
    contents: wp.array  #: (N,) int32: -1 for nodes with children; else first place and size

    @staticmethod
    def of(items: np.ndarray, points: wp.array, hull: np.ndarray, numbers: np.ndarray) -> CudaLbvh:
        """A tree over items (n, w) of points within a hull (2, 3), which have these numbers."""
        device = device_of(points)
        tree = LinearTree.build(wp.array(items, dtype=wp.int32, device=device), points, hull)
        first, size = tree.first.numpy(), tree.last.numpy() - tree.first.numpy() + 1
        contents = np.where(tree.cluster.numpy() < 0, -1, (first << SIZE_BITS) | np.minimum(size, LANES))
        arrays = (wp.array(a, dtype=wp.int32, device=device) for a in (numbers[tree.order.numpy()], contents))
        return CudaLbvh(tree, *arrays)

    def boxes(self) -> CudaLbvhBoxes:
        """Room for the boxes of an instant."""
        nodes = wp.empty((len(self.contents), 8), dtype=wp.int32, device=self.numbers.device)
        return CudaLbvhBoxes(
            self,
            items=wp.empty(len(self.numbers), dtype=AabbRecord, device=nodes.device),
            nodes=nodes,
            records=wp.array(ptr=nodes.ptr, shape=len(nodes), dtype=AabbRecord, device=nodes.device),
        )


@dataclass(frozen=True)
class CudaLbvhBoxes:
    """The boxes of a tree at an instant."""

    of: CudaLbvh
    items: wp.array  #: (n,) `AabbRecord`, by place
    nodes: wp.array  #: (N, 8) int32
    records: wp.array  #: (N,) `AabbRecord`: the same memory

    def fit(self, vertices: wp.array, stream: wp.Stream | None = None) -> None:
        """Make the boxes of items and nodes, from the boxes of the vertices; `stream`: see `launch`."""
        tree, device = self.of.tree, device_of(self.nodes)
        inputs = [tree.first, tree.last, tree.skip, self.of.contents, tree.items, tree.items.shape[1], vertices]
        launch(_fit_clusters, len(tree.first), inputs, [self.items, self.nodes], device=device, stream=stream)
        launch(_climb, len(tree.clusters), [tree.clusters, tree.parent], [self.nodes], device=device, stream=stream)


@wp.kernel
def _fit_clusters(
    first: int,
    begin: wp.array[int],
    end: wp.array[int],
    skip: wp.array[int],
    contents: wp.array[int],
    items: wp.array2d[int],
    width: int,
    boxes: wp.array[AabbRecord],
    item_boxes: wp.array[AabbRecord],
    nodes: wp.array2d[int],
):
    """Boxes of each cluster and of its items; nodes above have none yet."""
    k = first + wp.tid()
    whole = AabbRecord(EMPTY)
    if contents[k] >= 0:
        for place in range(begin[k], end[k] + 1):
            box = boxes[items[place, 0]]
            for c in range(1, width):
                box = wp.min(box, boxes[items[place, c]])
            item_boxes[place] = box
            whole = wp.min(whole, box)
    for row in range(6):
        nodes[k, row] = whole[row]
    nodes[k, 6] = skip[k]
    nodes[k, 7] = contents[k]


@wp.kernel
def _climb(first: int, clusters: wp.array[int], parent: wp.array[int], nodes: wp.array2d[int]):
    """Each cluster enlarges its ancestors, up to where it adds nothing: what is there came from others, who go on."""
    cluster = clusters[first + wp.tid()]
    node = parent[cluster]
    while node >= 0:
        added = int(0)
        for row in range(6):
            if nodes[cluster, row] < nodes[node, row]:
                wp.atomic_min(nodes, node, row, nodes[cluster, row])
                added = 1
        if added == 1:
            node = parent[node]
        else:
            node = int(-1)
