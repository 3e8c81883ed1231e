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
    if changed[k] == wp.uint8(0):
        return
    node = clusters[k]
    whole = MovingBox()
    for lane in range(LANES):  # unused lanes repeat the last item
        place = wp.min(begin[node] + lane, end[node])
        box = wp.min(vertices[faces[place, 0]], wp.min(vertices[faces[place, 1]], vertices[faces[place, 2]]))
        items[place] = box
        whole = wp.where(lane == 0, box, wp.min(whole, box))
        for row in range(12):
            lanes[12 * k + row][lane] = box[row]
    nodes[node] = whole


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
