"""Boxes of a tree that were fitted before, brought up to date in place: only those of what has changed (CPU).

After a round of the truncation a hundredth of all vertices go elsewhere; fitting the whole tree again would take longer
than searching what is new in it.
"""

from __future__ import annotations

import warp as wp

from tangere.bound import LANES, Lanes, MovingBox, TreeBoxes
from tangere.runtime import SOUND, device_of, launch

wp.set_module_options(SOUND)

__all__ = ["refit"]


def refit(boxes: TreeBoxes, vertices: wp.array, changed: wp.array, news: wp.array) -> TreeBoxes:
    """Bring boxes up to date, in place.

    Args:
        vertices: (s,) `MovingBox` of the vertices now.
        changed: (c,) uint8, 1 for the clusters that have a vertex with another box than before.
        news: (N,) uint8, 1 for the nodes that have such a cluster below them.
    """
    tree, device = boxes.tree, device_of(vertices)
    inputs = [changed, tree.clusters, tree.first, tree.last, tree.items, vertices]
    outputs = [boxes.items, boxes.lanes, boxes.nodes]
    launch(_refit_clusters, len(tree.clusters), inputs, outputs, device=device, grain=1024)
    launch(_refit_above, 1, [news, tree.first, tree.last, tree.skip], [boxes.nodes], device=device)
    return boxes


@wp.kernel
def _refit_clusters(
    first: int,
    changed: wp.array[wp.uint8],
    clusters: wp.array[int],
    begin: wp.array[int],
    end: wp.array[int],
    faces: wp.array2d[int],
    vertices: wp.array[MovingBox],
    items: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    nodes: wp.array[MovingBox],
):
    k = first + wp.tid()
    if changed[k] != wp.uint8(0):
        node = clusters[k]
        refit_cluster(k, node, begin[node], end[node], faces, vertices, items, lanes, nodes)


@wp.func_native(
    """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    int* own = (int*)&lanes.data[12 * k];
    Row low, high;  // a box has twelve numbers: the first eight and the last eight
    for (int lane = 0; lane < 8; ++lane) {  // unused lanes repeat the last item
        const int place = first + lane < last ? first + lane : last;
        const int* corner = &faces.data[3 * place];
        auto merged = [&](int from) -> Row {
            auto part = [&](int c) -> Row { return *(const Row*)((const int*)&vertices.data[corner[c]] + from); };
            return __builtin_elementwise_min(part(0), __builtin_elementwise_min(part(1), part(2)));
        };
        const Row one = merged(0), two = merged(4);
        *(Row*)&items.data[place] = one;
        *(Row*)((int*)&items.data[place] + 4) = two;
        low = lane == 0 ? one : __builtin_elementwise_min(low, one);
        high = lane == 0 ? two : __builtin_elementwise_min(high, two);
        for (int r = 0; r < 8; ++r)
            own[8 * r + lane] = one[r];
        for (int r = 4; r < 8; ++r)
            own[8 * (r + 4) + lane] = two[r];
    }
    *(Row*)&nodes.data[node] = low;
    *(Row*)((int*)&nodes.data[node] + 4) = high;
"""
)
def refit_cluster(
    k: int,
    node: int,
    first: int,
    last: int,
    faces: wp.array2d[int],
    vertices: wp.array[MovingBox],
    items: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    nodes: wp.array[MovingBox],
):
    """The boxes of the faces from `first` to `last`, side by side as well, and of cluster k, which is a node."""
    ...


@wp.kernel
def _refit_above(
    first: int,
    news: wp.array[wp.uint8],
    begin: wp.array[int],
    end: wp.array[int],
    skip: wp.array[int],
    nodes: wp.array[MovingBox],
):
    """Children before parents (one thread)."""
    node = begin.shape[0] - 1
    while node >= 0:
        if news[node] != wp.uint8(0) and end[node] - begin[node] >= LANES:
            nodes[node] = wp.min(nodes[node + 1], nodes[skip[node + 1]])
        node = node - 1
