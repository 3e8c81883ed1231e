"""Patches of surface that only deform smoothly are apart from their surroundings: no pair in them need be looked at.

Most features whose boxes meet are neighbours on the same surface. A patch is up to 32 triangles; one that deforms
smoothly, with the clusters within an edge of it, is certified at once (`certificates`). What is left for the search are
patches without certificate, and those whose boxes meet triangles from elsewhere. The features of a patch go down the
tree together: most of a search is finding the way. On CUDA there are threads enough for each feature to go alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp

from tangere.bvh.lbvh import Frame, LinearTree, MovingBox, TreeBoxes, boxes_meet, vertex_boxes
from tangere.bvh.wide import MovingWideBvh
from tangere.runtime import SOUND, launch
from tangere.soft.contact.normal_cones import cones_face_same_way
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.certificates import Certificates
from tangere.soft.safe_step.cpu.refit import ChangeTracker, EntriesByKey, patches_at_clusters, refit
from tangere.soft.safe_step.hinges import HingedEdgePairs
from tangere.soft.safe_step.patch_layout import SPARE_CLUSTERS, PatchLists, build_patches, edges_and_ears

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class FittedTree:
    """The tree over all faces in one part of a step, and which clusters need a closer look."""

    vertex_boxes: wp.array  #: (s,) `MovingBox`
    boxes: TreeBoxes
    certified: wp.array  #: (p,) int32: 1 where the patch is apart from its surroundings
    changed: wp.array  #: (c,) uint8: 1 for clusters whose moves are new
    dirty: wp.array  #: (N,) uint8: 1 for nodes of the tree that have one below them
    overlapping: wp.array  #: (c,) uint8: 0 for clusters known to meet nothing new
    bvh8: MovingWideBvh | None = None  #: nodes of eight above the clusters (CPU)


class Patches:
    """The faces of all surfaces in one tree, cut into patches; both stay as they are at rest."""

    def __init__(self, assembly: AssembledBodies, *, per_feature: bool | None = None) -> None:
        """`per_feature`: a thread searches for one feature, after clusters that meet nothing are known (CUDA)."""
        device, whole = assembly.device, assembly.rest_mesh
        self.device = device
        self.per_feature = device.is_cuda if per_feature is None else per_feature
        self.frame = Frame.around(whole.bounds)
        faces, apart = wp.array(whole.faces, dtype=wp.int32, device=device), _spread_out(assembly)
        bounds = np.stack([apart.min(axis=0), apart.max(axis=0)])
        self.tree = LinearTree.build(faces, wp.array(apart, dtype=wp.vec3d, device=device), bounds)
        edges, spare = edges_and_ears(whole.topology), _spare_clusters(assembly)
        self.edges = wp.array(edges, dtype=wp.int32, device=device)
        self.used_edges = len(edges)  #: how many there are, in an array with room for more
        self.faces, self._traits = assembly.surface.faces, assembly.surface.traits
        self.lists: PatchLists = build_patches(self.tree, assembly, self.per_feature, spare)
        if spare:
            self.tree = self.tree.with_room(spare)
            room = np.zeros((2 * (len(self.faces) - len(faces)), 2), np.int32)
            self.edges = wp.array(np.concatenate([edges, room]), dtype=wp.int32, device=device)
        self.hinged = HingedEdgePairs(assembly, self.faces, self.edges)
        self.certificates = Certificates(self.tree, self.lists, self.edges, assembly.surface.rest, self.per_feature)
        self._always = wp.ones(1, dtype=wp.int32, device=device)
        unknown = np.tile([0.0, 0.0, 0.0, -1.0], (len(self.tree.clusters), 1))
        self._nothing = wp.array(unknown, dtype=wp.vec4d, device=device)
        self._all, self._everywhere = (
            wp.ones(len(nodes), dtype=wp.uint8, device=device) for nodes in (self.tree.clusters, self.tree.first)
        )
        self._overlapping, self._changed = wp.zeros_like(self._all), wp.zeros_like(self._all)
        self._dirty = wp.zeros_like(self._everywhere)
        if not self.per_feature:
            here = vertex_boxes(assembly.surface.rest, assembly.surface.rest, 0.0, 0.0, self.frame)
            self._bvh8_static, self._bvh8_moving = MovingWideBvh(self.tree), MovingWideBvh(self.tree)
            self.changes = ChangeTracker(self.tree, self.lists, self._bvh8_static.levels, len(assembly.surface.rest))
            self._static_boxes, self.moving_boxes = self.tree.fit(here), self.tree.fit(here)
            self.moving_vertex_boxes = here  #: (s,) `MovingBox`
        self.fit_moving(assembly.surface.rest, assembly.surface.rest, 0.0)

    def fit_moving(
        self,
        start: wp.array,
        end: wp.array,
        least: float,
        changed: wp.array | None = None,
        wanted: wp.array | None = None,
    ) -> FittedTree:
        """Fit the tree to moves from start to end; in certified patches features stay further apart than `least` [m].

        Args:
            changed: (s,) uint8, vertices whose moves have changed since all others were found in order; None: all.
            wanted: nothing is looked at if its first number (int32) is 0.
        """
        if self.per_feature:
            wanted = self._always if wanted is None else wanted
            clusters, nodes = (self._all, self._everywhere) if changed is None else self._dirty_clusters(changed)
            certified = self.certificates.certify_each(start, end, least, clusters, wanted)
            vertices = vertex_boxes(start, end, 1.0, least, self.frame)
            return self._fit_per_feature(vertices, certified, (self._nothing,) * 2, clusters, nodes, wanted)
        dirty = self.changes.all if changed is None else self.changes.dirty_sets(changed)
        certified = self.certificates.certify_simd(start, end, least, dirty.patches, new_step=changed is None)
        if dirty is self.changes.all:
            vertex_boxes(start, end, 1.0, least, self.frame, into=self.moving_vertex_boxes)
        else:
            ways = (wp.array(x.numpy()[dirty.vertices], dtype=wp.vec3d, device=self.device) for x in (start, end))
            self.moving_vertex_boxes.numpy()[dirty.vertices] = vertex_boxes(*ways, 1.0, least, self.frame).numpy()
        boxes = refit(self.moving_boxes, self.moving_vertex_boxes, dirty.clusters, dirty.nodes)
        bvh8 = self._bvh8_moving.fit(boxes.nodes, dirty.child_masks)
        return FittedTree(self.moving_vertex_boxes, boxes, certified, dirty.clusters, dirty.nodes, self._all, bvh8)

    def fit_static(self, positions: wp.array, margin: float, vertex_cones: wp.array, cones: wp.array) -> FittedTree:
        """Fit the tree to surfaces that rest at `positions`, with boxes grown by `margin` [m].

        For finding contacts to respond to: clusters that face the same way do not meet, and patches of open surfaces,
        of which that cannot be said, are certified if they are nearly as they were at rest.
        """
        certified = self.certificates.near_rest(positions, self._traits)
        vertices = vertex_boxes(positions, positions, 1.0, margin, self.frame)
        if self.per_feature:
            both = vertex_cones, cones
            return self._fit_per_feature(vertices, certified, both, self._all, self._everywhere, self._always)
        boxes = refit(self._static_boxes, vertices, self._all, self._everywhere)
        bvh8 = self._bvh8_static.fit(boxes.nodes, self.changes.all.child_masks)
        return FittedTree(vertices, boxes, certified, self._all, self._everywhere, self._all, bvh8)

    @cached_property
    def patches_at_clusters(self) -> EntriesByKey:
        """By cluster the patches that have it, or have it around them."""
        return patches_at_clusters(self.lists, len(self.tree.clusters))

    def fit_here(self, positions: wp.array) -> None:
        """Fit the boxes of moves to surfaces that are at rest somewhere (CPU)."""
        every = self.changes.all
        vertex_boxes(positions, positions, 1.0, 0.0, self.frame, into=self.moving_vertex_boxes)
        refit(self.moving_boxes, self.moving_vertex_boxes, every.clusters, every.nodes)

    def save(self) -> None:
        """From now on remember how to `restore` what is certified."""
        self.certificates.save()

    def restore(self) -> None:
        """Certify as if nothing had been since `save`."""
        self.certificates.restore()

    def _dirty_clusters(self, vertices: wp.array) -> tuple[wp.array, wp.array]:
        """Clusters that have one of these vertices, (c,) uint8, and nodes that have one of those, (N,) uint8."""
        tree = self.tree
        inputs = [tree.clusters, tree.first, tree.last, tree.items, vertices]
        launch(_changed_clusters, len(self._changed), inputs, [self._changed], device=self.device, grain=4096)
        self._dirty.zero_()
        inputs = [tree.clusters, tree.parent, self._changed]
        launch(_mark_ancestors, len(self._changed), inputs, [self._dirty], device=self.device, threads=1)
        return self._changed, self._dirty

    def _fit_per_feature(
        self,
        vertices: wp.array,
        certified: wp.array,
        cones: tuple[wp.array, wp.array],
        changed: wp.array,
        dirty: wp.array,
        wanted: wp.array,
    ) -> FittedTree:
        """The whole tree anew, and which clusters meet others."""
        lists, tree = self.lists, self.tree
        boxes = tree.fit(vertices)
        self._overlapping.zero_()
        inputs = [tree.clusters, lists.patch_of_cluster, lists.cluster_offsets, lists.clusters, certified]
        inputs += [tree.skip, tree.cluster, boxes.nodes, *cones, changed, int(changed is self._all), wanted]
        launch(_find_overlapping, len(self._overlapping), inputs, [self._overlapping], device=self.device, threads=1)
        return FittedTree(vertices, boxes, certified, changed, dirty, self._overlapping)


def _spare_clusters(assembly: AssembledBodies) -> int:
    """Of faces that cuts add, a power of two; 0 where nothing is cut in place."""
    room = len(assembly.surface.faces) - len(assembly.rest_mesh.faces)
    if not room:
        return 0
    least, roomy = SPARE_CLUSTERS
    wanted = np.log2(room / 4)
    return max(least, min(roomy, 1 << int(np.ceil(wanted))), 1 << int(wanted))


def _spread_out(assembly: AssembledBodies) -> np.ndarray:
    """The surfaces at rest side by side on a grid, so that the order of the tree does not mix bodies."""
    bodies = len(assembly.current)
    side = int(np.ceil(bodies ** (1.0 / 3.0)))
    cell = np.stack(np.unravel_index(np.arange(bodies), (side, side, side)), axis=1)
    places = np.repeat(cell, np.diff(assembly.vertex_base), axis=0)
    return assembly.rest_mesh.vertices + 2.0 * assembly.rest_mesh.extent * places


@wp.func
def contains_cluster(clusters: wp.array[int], begin: int, end: int, wanted: int) -> bool:
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


@wp.kernel
def _find_overlapping(
    first: int,
    node_of: wp.array[int],
    patch_of: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    certified: wp.array[int],
    skip: wp.array[int],
    cluster: wp.array[int],
    nodes: wp.array[MovingBox],
    vertex_cones: wp.array[wp.vec4d],
    cones: wp.array[wp.vec4d],
    changed: wp.array[wp.uint8],
    all_changed: int,
    wanted: wp.array[int],
    overlapping: wp.array[wp.uint8],
):
    """Marks the clusters whose boxes meet others, unless a certificate keeps them apart or neither has changed.

    Only what has changed searches; it marks others that have not as well, and whoever marks writes the same (one
    thread on CPU).
    """
    own = first + wp.tid()
    if wanted[0] == 0 or changed[own] == wp.uint8(0):
        return
    p = patch_of[own]
    smooth = certified[p] == 1
    box = nodes[node_of[own]]
    node = int(0)
    while node < skip.shape[0]:
        if not boxes_meet(box, nodes[node]):
            node = skip[node]
        else:
            other = cluster[node]
            if other >= 0:
                if not cones_face_same_way(vertex_cones[own], cones[other]):
                    if not (smooth and contains_cluster(clusters, cluster_offsets[p], cluster_offsets[p + 1], other)):
                        overlapping[own] = wp.uint8(1)
                        if all_changed == 1:
                            return  # there is nothing more to find
                    if changed[other] == wp.uint8(0):
                        q = patch_of[other]
                        if not (
                            certified[q] == 1
                            and contains_cluster(clusters, cluster_offsets[q], cluster_offsets[q + 1], own)
                        ):
                            overlapping[other] = wp.uint8(1)
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


@wp.kernel
def _mark_ancestors(
    first: int, clusters: wp.array[int], parent: wp.array[int], changed: wp.array[wp.uint8], dirty: wp.array[wp.uint8]
):
    """Marks all nodes above what has changed (one thread on CPU)."""
    k = first + wp.tid()
    if changed[k] != wp.uint8(0):
        node = clusters[k]
        while node >= 0:
            if dirty[node] != wp.uint8(0):
                return
            dirty[node] = wp.uint8(1)
            node = parent[node]
