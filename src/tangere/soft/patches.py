"""Patches of surface that only deform smoothly are apart from their surroundings: no pair in them need be looked at.

Most features whose boxes meet are neighbours on the same surface. A patch (up to 32 triangles) and its surroundings
(clusters within an edge of it) are compared with an affine map of how they lie at rest: x = c + F X + e. If R is the
least distance at rest of an edge of the patch and a triangle around it that do not share a vertex, their distance is at
least s R - e1 - e2, with the largest |e| of the patch and of all, and s a lower bound of the smallest singular value of
F over the whole step. Where that is positive the neighbourhood is certified at once: any rotation, stretch and drift
passes, folds and creases do not.
Sound for every vertex on a straight way at its own constant pace: F, c and e are then linear in time.

What is left for the search are patches without certificate, and those whose boxes meet triangles from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bound import Frame, LinearTree, MovingBox, TreeBoxes, boxes_meet, vertex_boxes
from tangere.partition.tree_pairs import Side, pairs
from tangere.runtime import SOUND, launch
from tangere.soft.assembly import Assembly
from tangere.soft.looking import looks_along
from tangere.soft.patch_layout import PatchLists, edges_and_ears, lay_out
from tangere.soft.separation import nearest_way

wp.set_module_options(SOUND)

__all__ = ["Fitted", "Patches", "around"]

#: Patches worth a thread: each takes some microseconds.
GRAIN = 32
#: Rounds of the bound on the smallest singular value.
BOUND_ROUNDS = wp.constant(16)


@dataclass(frozen=True)
class Fitted:
    """The tree over all faces in one part of a step, and which clusters need a closer look."""

    vertex_boxes: wp.array  #: (s,) `MovingBox`
    boxes: TreeBoxes
    certified: wp.array  #: (p,) int32: 1 where the patch is apart from its surroundings
    busy: np.ndarray  #: (c,) bool: clusters that may meet others, or themselves


class Patches:
    """The faces of all surfaces in one tree, cut into patches; both stay as they are at rest."""

    def __init__(self, assembly: Assembly) -> None:
        device, whole = assembly.device, assembly.whole
        self.device = device
        self.frame = Frame.around(whole.bounds)
        faces, apart = wp.array(whole.faces, dtype=wp.int32, device=device), _spread_out(assembly)
        bounds = np.stack([apart.min(axis=0), apart.max(axis=0)])
        self.tree = LinearTree.build(faces, wp.array(apart, dtype=wp.vec3d, device=device), bounds)
        self.edges = wp.array(edges_and_ears(whole.topology), dtype=wp.int32, device=device)
        self.faces = faces
        self.lists: PatchLists = lay_out(self.tree, assembly, self._near_at_rest(assembly))
        self._certified = wp.zeros(self.lists.count, dtype=wp.int32, device=device)
        unknown = np.tile([0.0, 0.0, 0.0, -1.0], (len(self.tree.clusters), 1))
        self._nothing = wp.array(unknown, dtype=wp.vec4d, device=device)
        self._all = wp.ones(len(self.tree.clusters), dtype=wp.uint8, device=device)
        self.over(assembly.rest, assembly.rest, 0.0)

    def over(self, start: wp.array, end: wp.array, least: float, changed: wp.array | None = None) -> Fitted:
        """Fit the tree to moves from start to end; in certified patches features stay further apart than `least` [m].

        Args:
            changed: (s,) uint8, vertices whose moves have changed since all others were found in order; None: all.
        """
        lists = self.lists
        inputs = [lists.around_offsets, lists.around, lists.own, lists.rest, lists.dual, lists.tangents, lists.apart]
        launch(_certify, lists.count, [*inputs, start, end, least], [self._certified], device=self.device, grain=GRAIN)
        return self._fit(start, end, least, self._nothing, self._all if changed is None else self._changed(changed))

    def at(self, positions: wp.array, margin: float, cones: wp.array) -> Fitted:
        """Fit the tree to surfaces at rest, with boxes grown by `margin` [m].

        For finding contacts to respond to: the certificates are those of the move that led here, and company that looks
        the same way (`cones`) is none.
        """
        return self._fit(positions, positions, margin, cones, self._all)

    def _changed(self, vertices: wp.array) -> wp.array:
        """(c,) uint8: the clusters that have one of these vertices."""
        tree = self.tree
        changed = wp.empty(len(tree.clusters), dtype=wp.uint8, device=self.device)
        inputs = [tree.clusters, tree.first, tree.last, tree.items, vertices]
        launch(_changed_clusters, len(changed), inputs, [changed], device=self.device, grain=4096)
        return changed

    def _fit(self, start: wp.array, end: wp.array, margin: float, cones: wp.array, changed: wp.array) -> Fitted:
        lists, tree, device = self.lists, self.tree, self.device
        vertices = vertex_boxes(start, end, 1.0, margin, self.frame)
        boxes = tree.fit(vertices)
        busy = wp.zeros(len(tree.clusters), dtype=wp.uint8, device=device)
        inputs = [lists.node, lists.cluster_offsets, lists.clusters, self._certified]
        inputs += [tree.skip, tree.cluster, boxes.nodes, cones, changed]
        launch(_find_company, lists.count, inputs, [busy], device=device, grain=GRAIN)
        return Fitted(vertices, boxes, self._certified, busy.numpy() != 0)

    def edges_of(self, clusters: np.ndarray) -> wp.array:
        """The edges of some clusters; each edge belongs to one."""
        return self._members_of(clusters, *self.lists.edges)

    def vertices_of(self, clusters: np.ndarray) -> wp.array:
        """The vertices of some clusters; each vertex belongs to one."""
        return self._members_of(clusters, *self.lists.vertices)

    def _members_of(self, clusters: np.ndarray, counts: np.ndarray, members: np.ndarray) -> wp.array:
        return wp.array(members[np.repeat(clusters, counts)], dtype=wp.int32, device=self.device)

    def _near_at_rest(self, assembly: Assembly) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Edges, faces and distances of features that are near at rest, and how far "near" reaches."""
        ends = assembly.whole.vertices[assembly.whole.edges]
        reach = float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean())
        bounds = assembly.whole.bounds
        edge_tree = LinearTree.build(self.edges, assembly.rest, bounds)
        boxes = vertex_boxes(assembly.rest, assembly.rest, 0.0, 0.5 * reach, self.frame)
        sides = Side(edge_tree, edge_tree.fit(boxes), 0), Side(self.tree, self.tree.fit(boxes), 0)
        found = pairs(_within, *sides, assembly.rest, assembly.rest, until=0.0, margin=reach, sharing=False)
        apart = wp.empty(len(found), dtype=wp.float64, device=self.device)
        inputs = [found, edge_tree.items, self.tree.items, assembly.rest]
        launch(_distances, len(found), inputs, [apart], device=self.device, grain=4096)
        places = found.numpy().reshape(-1, 2)
        return edge_tree.order.numpy()[places[:, 0]], places[:, 1], apart.numpy(), reach


def _spread_out(assembly: Assembly) -> np.ndarray:
    """The surfaces at rest side by side on a grid, so that the order of the tree does not mix bodies."""
    bodies = len(assembly.bodies)
    side = int(np.ceil(bodies ** (1.0 / 3.0)))
    cell = np.stack(np.unravel_index(np.arange(bodies), (side, side, side)), axis=1)
    places = np.repeat(cell, np.diff(assembly.vertex_base), axis=0)
    return assembly.whole.vertices + 2.0 * assembly.whole.extent * places


@wp.func
def around(clusters: wp.array[int], begin: int, end: int, wanted: int) -> bool:
    """Whether a cluster is in a rising list."""
    low = begin
    high = end
    while low < high:
        middle = (low + high) / 2
        if clusters[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end:
        return clusters[low] == wanted
    return False


@wp.func
def smallest_stretch(f: wp.mat33d) -> wp.float64:
    """A lower bound of the smallest singular value: s3 >= 2 |det| / (|F|^2 - s3^2), from below."""
    determinant = wp.float64(2.0) * wp.abs(wp.determinant(f))
    squared = wp.ddot(f, f)
    bound = wp.float64(0.0)
    if squared > wp.float64(0.0):
        for _ in range(BOUND_ROUNDS):
            bound = determinant / (squared - bound * bound)
    return bound


@wp.func
def across_filled(f: wp.mat33d, tangents: wp.mat33d) -> wp.mat33d:
    """A map along the tangents, completed by how their normal turns."""
    return f + wp.outer(wp.normalize(wp.cross(f * tangents[0], f * tangents[1])), tangents[2])


@wp.kernel
def _certify(
    first: int,
    offsets: wp.array[int],
    vertices: wp.array[int],
    own: wp.array[int],
    rest: wp.array[wp.vec3d],
    dual: wp.array[wp.vec3d],
    tangents: wp.array[wp.mat33d],
    apart: wp.array[wp.float64],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    certified: wp.array[int],
):
    p = first + wp.tid()
    half = wp.float64(0.5)
    begin = offsets[p]
    stop = offsets[p + 1]
    if apart[p] <= wp.float64(0.0):
        certified[p] = 0
        return
    centre0 = start[vertices[begin]]
    centre1 = end[vertices[begin]]
    mean0 = wp.vec3d()
    mean1 = wp.vec3d()
    f0 = wp.mat33d()
    f1 = wp.mat33d()
    for e in range(begin, stop):  # duals add up to zero: any centre gives the same map
        v = vertices[e]
        from0 = start[v] - centre0
        from1 = end[v] - centre1
        mean0 += from0
        mean1 += from1
        f0 += wp.outer(from0, dual[e])
        f1 += wp.outer(from1, dual[e])
    centre0 += mean0 / wp.float64(stop - begin)
    centre1 += mean1 / wp.float64(stop - begin)
    f0 = across_filled(f0, tangents[p])
    f1 = across_filled(f1, tangents[p])
    worst = wp.float64(0.0)
    worst_own = wp.float64(0.0)
    for e in range(begin, stop):
        e0 = start[vertices[e]] - centre0 - f0 * rest[e]
        e1 = end[vertices[e]] - centre1 - f1 * rest[e]
        squared = wp.max(wp.dot(e0, e0), wp.dot(e1, e1))
        worst = wp.max(worst, squared)
        if own[e] == 1:
            worst_own = wp.max(worst_own, squared)
    change = f1 - f0
    stretch = smallest_stretch(half * (f0 + f1)) - half * wp.sqrt(wp.ddot(change, change))
    certified[p] = int(stretch * apart[p] > wp.sqrt(worst_own) + wp.sqrt(worst) + least)


@wp.kernel
def _find_company(
    first: int,
    nodes_of: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    certified: wp.array[int],
    skip: wp.array[int],
    cluster: wp.array[int],
    nodes: wp.array[MovingBox],
    cones: wp.array[wp.vec4d],
    changed: wp.array[wp.uint8],
    busy: wp.array[wp.uint8],
):
    """Marks the clusters whose boxes meet others, unless a certificate keeps them apart or neither has changed."""
    p = first + wp.tid()
    top = nodes_of[p]
    smooth = certified[p] == 1
    node = int(0)
    while node < skip.shape[0]:
        if not boxes_meet(nodes[top], nodes[node]):
            node = skip[node]
        else:
            other = cluster[node]
            if other >= 0:
                if not (smooth and around(clusters, cluster_offsets[p], cluster_offsets[p + 1], other)):
                    for k in range(top, skip[top]):
                        own = cluster[k]
                        if own >= 0:
                            if changed[own] + changed[other] > wp.uint8(0) and boxes_meet(nodes[k], nodes[node]):
                                if not looks_along(cones[own], cones[other]):
                                    busy[own] = wp.uint8(1)
            node = node + 1


@wp.kernel
def _changed_clusters(
    first: int,
    clusters: wp.array[int],
    node_first: wp.array[int],
    node_last: wp.array[int],
    items: wp.array2d[int],
    vertices: wp.array[wp.uint8],
    changed: wp.array[wp.uint8],
):
    k = first + wp.tid()
    node = clusters[k]
    found = wp.uint8(0)
    for j in range(node_first[node], node_last[node] + 1):
        for c in range(3):
            found = wp.max(found, vertices[items[j, c]])
    changed[k] = found


@wp.func
def _within(
    edges: wp.array2d[int],
    i: int,
    base_a: int,
    faces: wp.array2d[int],
    j: int,
    base_b: int,
    x: wp.array[wp.vec3d],
    same: wp.array[wp.vec3d],
    unused: wp.float64,
    reach: wp.float64,
) -> bool:
    """Whether an edge and a face are nearer than the reach."""
    way = nearest_way(x[edges[i, 0]], x[edges[i, 1]], x[faces[j, 0]], x[faces[j, 1]], x[faces[j, 2]])
    return wp.dot(way, way) < reach * reach


@wp.kernel
def _distances(
    first: int,
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    x: wp.array[wp.vec3d],
    apart: wp.array[wp.float64],
):
    k = first + wp.tid()
    i = found[k][0]
    j = found[k][1]
    apart[k] = wp.length(nearest_way(x[edges[i, 0]], x[edges[i, 1]], x[faces[j, 0]], x[faces[j, 1]], x[faces[j, 2]]))
