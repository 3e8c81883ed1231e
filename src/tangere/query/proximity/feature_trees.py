"""Trees over the vertices, edges and faces of a scene at an instant, with boxes made for one kind of question.

The order of a tree is made once (`LinearTree`); its boxes are fitted to the positions of every instant, grown by half
the contact distance. Nothing moves here, so a box is six codes instead of the twelve of a moving box, and a node is one
record of 32 bytes: its box, where to go on when that is apart, and what is in it. Vertices are renumbered in the order
of their tree, so that what is near in space is near in memory, however a file lists it. One tree may hold all meshes of
a scene, whose pairs and selves are then searched at once (specs/leonard-deformable-gpu C20, C21.7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bound import LANES, Lanes, LinearTree
from tangere.bound.boxes import LERP_ERROR, UNDERFLOW, Frame, code_below
from tangere.partition.broad_phase_boxes import EMPTY
from tangere.partition.pipeline_surfaces import Surfaces
from tangere.query.proximity.lanes import fit_in_lanes
from tangere.query.proximity.records import Record
from tangere.runtime import SOUND, device_of, launch

wp.set_module_options(SOUND)

__all__ = ["SIZE_BITS", "FeatureBoxes", "FeatureTree", "FeatureTrees", "Placed", "place_vertices"]

#: Orders are made anew after so many questions: a mesh that crumples leaves them behind.
FITS_PER_ORDER = 64
#: Bits for the number of items of a cluster beside its first place.
SIZE_BITS = wp.constant(4)


@dataclass(frozen=True)
class FeatureTree:
    """The order of some features."""

    tree: LinearTree  #: items name vertices by their places in the tree of vertices
    numbers: wp.array  #: (n,) int32: the feature at each place, counted through the scene
    contents: wp.array  #: (N,) int32: -1 for nodes with children; else on CPU the cluster, on CUDA first place and size

    @staticmethod
    def of(items: wp.array, points: wp.array, hull: np.ndarray, numbers: np.ndarray) -> FeatureTree:
        """A tree over items (n, w) of points within a hull (2, 3), which have these numbers."""
        tree, device = LinearTree.build(items, points, hull), device_of(items)
        contents = tree.cluster.numpy()
        if device.is_cuda:
            first, size = tree.first.numpy(), tree.last.numpy() - tree.first.numpy() + 1
            contents = np.where(contents < 0, -1, (first << SIZE_BITS) | np.minimum(size, LANES))
        arrays = (wp.array(a, dtype=wp.int32, device=device) for a in (numbers[tree.order.numpy()], contents))
        return FeatureTree(tree, *arrays)

    def fit(self, boxes: wp.array, fitted: FeatureBoxes) -> None:
        """Make the boxes of items and nodes, from the boxes of the vertices."""
        tree, device = self.tree, device_of(self.numbers)
        if device.is_cuda:
            inputs = [tree.first, tree.last, tree.skip, self.contents, tree.items, tree.items.shape[1], boxes]
            launch(_fit_clusters, len(tree.first), inputs, [fitted.items, fitted.nodes], device=device)
            launch(_climb, len(tree.clusters), [tree.clusters, tree.parent], [fitted.nodes], device=device)
        else:
            inputs = [tree.clusters, tree.first, tree.last, tree.skip, tree.items, boxes]
            outputs = [fitted.items, fitted.records, fitted.lanes]
            launch(fit_in_lanes, len(tree.clusters), inputs, outputs, device=device, grain=4096)
            launch(_sweep_up, 1, [tree.skip, self.contents], [fitted.nodes], device=device)


@dataclass(frozen=True)
class FeatureBoxes:
    """The boxes of a tree at an instant."""

    items: wp.array  #: (n,) `Record`, by place
    nodes: wp.array  #: (N, 8) int32
    records: wp.array  #: (N,) `Record`: the same memory
    lanes: wp.array  #: (c, 6) `Lanes`: the boxes of the items by cluster, eight side by side; none on CUDA

    @staticmethod
    def empty(of: FeatureTree) -> FeatureBoxes:
        """Room for the boxes of a tree."""
        tree, device = of.tree, device_of(of.numbers)
        nodes = wp.empty((len(tree.first), 8), dtype=wp.int32, device=device)
        return FeatureBoxes(
            items=wp.empty(len(tree.items), dtype=Record, device=device),
            nodes=nodes,
            records=wp.array(ptr=nodes.ptr, shape=len(nodes), dtype=Record, device=device),
            lanes=wp.empty((0 if device.is_cuda else len(tree.clusters), 6), dtype=Lanes, device=device),
        )


@dataclass(frozen=True)
class FeatureTrees:
    """The vertices, edges and faces of one mesh of a scene, or of all."""

    vertices: FeatureTree
    edges: FeatureTree
    faces: FeatureTree

    @staticmethod
    def of(surfaces: Surfaces, body: int | None = None) -> FeatureTrees:
        """The trees of a mesh, or of all; kept with the topologies, and ordered anew now and then."""
        cache, key = surfaces.layout.cache, ("trees", body)
        trees, fits = cache.get(key, (None, 0))
        if trees is None or fits >= FITS_PER_ORDER:
            trees, fits = FeatureTrees.built(surfaces, body), 0
        cache[key] = (trees, fits + 1)
        return trees

    @staticmethod
    def built(surfaces: Surfaces, body: int | None = None) -> FeatureTrees:
        """The trees, ordered by where features are now."""
        layout, device = surfaces.layout, surfaces.device
        chosen = range(len(layout.topologies)) if body is None else range(body, body + 1)
        bounds = np.array([surfaces.meshes[k].bounds for k in chosen])
        hull = np.stack([bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)])

        def on_device(items: np.ndarray) -> wp.array:
            return wp.array(items, dtype=wp.int32, device=device)

        used = np.concatenate([np.unique(layout.topologies[k].faces) + layout.vertex_base[k] for k in chosen])
        order = used[LinearTree.build(on_device(used[:, None]), surfaces.positions, hull).order.numpy()]
        points = wp.array(surfaces.positions.numpy()[order], dtype=wp.vec3d, device=device)
        place = np.zeros(int(layout.vertex_base[-1]), np.int32)
        place[order] = np.arange(len(order))

        def part(features: wp.array, base: np.ndarray) -> FeatureTree:
            numbers = np.arange(base[chosen.start], base[chosen.stop], dtype=np.int32)
            return FeatureTree.of(on_device(place[features.numpy()[numbers]]), points, hull, numbers)

        return FeatureTrees(
            FeatureTree.of(on_device(np.arange(len(order))[:, None]), points, hull, order),
            part(layout.edges, layout.edge_base),
            part(layout.faces, layout.face_base),
        )


@dataclass(frozen=True)
class Placed:
    """Where the vertices of trees are, in their order, and their boxes."""

    positions: wp.array  #: (n,) vec3d [m]
    boxes: wp.array  #: (n,) `Record`, grown by half the contact distance

    @staticmethod
    def empty(trees: FeatureTrees) -> Placed:
        """Room for the vertices of trees."""
        count, device = len(trees.vertices.numbers), device_of(trees.vertices.numbers)
        return Placed(wp.empty(count, dtype=wp.vec3d, device=device), wp.empty(count, dtype=Record, device=device))


def place_vertices(
    trees: FeatureTrees, positions: wp.array, distance: float, frame: Frame, into: Placed | None = None
) -> Placed:
    """The vertices of trees at positions of a scene; `frame` is where their boxes are kept."""
    placed = into or Placed.empty(trees)
    inputs = [trees.vertices.numbers, positions, 0.5 * distance, wp.vec3d(*frame.origin), frame.scale]
    launch(_place, len(placed.positions), inputs, [placed.positions, placed.boxes], device=device_of(positions))
    return placed


@wp.kernel
def _place(
    first: int,
    numbers: wp.array[int],
    positions: wp.array[wp.vec3d],
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    placed: wp.array[wp.vec3d],
    boxes: wp.array[Record],
):
    i = first + wp.tid()
    p = positions[numbers[i]]
    placed[i] = p
    box = Record()
    for k in range(3):
        room = LERP_ERROR * (wp.abs(p[k]) + wp.abs(origin[k]) + margin) + margin + UNDERFLOW
        box[k] = code_below((p[k] - origin[k] - room) * scale)
        box[3 + k] = code_below((origin[k] - p[k] - room) * scale)
    boxes[i] = box


@wp.kernel
def _fit_clusters(
    first: int,
    begin: wp.array[int],
    end: wp.array[int],
    skip: wp.array[int],
    contents: wp.array[int],
    items: wp.array2d[int],
    width: int,
    boxes: wp.array[Record],
    item_boxes: wp.array[Record],
    nodes: wp.array2d[int],
):
    """Boxes of each cluster and of its items; nodes above have none yet."""
    k = first + wp.tid()
    whole = Record(EMPTY)
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
def _sweep_up(first: int, skip: wp.array[int], contents: wp.array[int], nodes: wp.array2d[int]):
    """All nodes above clusters, children before parents (one thread)."""
    k = contents.shape[0] - 1
    while k >= 0:
        if contents[k] < 0:
            other = skip[k + 1]
            for row in range(6):
                nodes[k, row] = wp.min(nodes[k + 1, row], nodes[other, row])
            nodes[k, 6] = skip[k]
            nodes[k, 7] = -1
        k = k - 1


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
