"""How surfaces are cut into patches: lists made once, from the tree over the faces and from how they lie at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LinearTree
from tangere.shape.mesh import Topology
from tangere.soft.model.assembled_bodies import AssembledBodies, struct_of

#: Faces of a patch, at most.
PATCH = 32
#: Edges between a patch and the end of its surroundings.
RINGS = 1
#: Patches are dealt out in runs, like cards, so that every thread has its part of those that touch something.
RUN, RUNS = 16, 16
#: Clusters of a spare patch; edges, with ears, and vertices that a cluster has room for where there is spare room. Its
#: faces have 24 edges at most; where sheets are cut, each may be alone, with three ears.
CLUSTERS_OF_SPARE = 4
EDGES_OF_CLUSTER, EDGES_OF_SHEETS, VERTICES_OF_CLUSTER = 32, 48, 24
#: Spare clusters, at least; and up to how many there are more than one for four of the faces that there is room for.
SPARE_CLUSTERS = 16, 512


@wp.struct
class PatchReference:
    """How patches and their surroundings lay once: the vertices of all their clusters, patch after patch."""

    offsets: wp.array[int]
    vertices: wp.array[int]
    own: wp.array[int]  #: for each: 1 if it is a vertex of the patch itself
    rest: wp.array[wp.vec3d]  #: for each: where it was, from the middle of them all [m]
    duals: wp.array[wp.mat33d]  #: (p,) the sum of x times rest, times this, is the map along the tangents
    tangents: wp.array[wp.mat33d]  #: (p,) two tangents and the normal
    clearance: wp.array[wp.float64]  #: (p,) least distance of its edges and the faces around [m]; 0: never certified


@dataclass(frozen=True)
class FeatureLists:
    """Features by the cluster they belong to; each belongs to one."""

    features: wp.array  #: cluster after cluster
    room: int  #: features of each cluster that there is room for; 0 where there is none
    ranges: wp.array  #: (c,) vec2i: those of each cluster: from … to below it; there may be room after them
    units: wp.array  #: vec4i: what one thread searches for: node of the tree, patch, and features from … to below it


@dataclass(frozen=True)
class PatchLists:
    """p patches; lists of different lengths are offsets and entries."""

    count: int
    patch_of_cluster: wp.array  #: (c,)
    interleaved: wp.array  #: (p,) all patches, those that lie side by side in different hands
    first_cluster: wp.array  #: (p + 1,) its own clusters follow each other
    cluster_offsets: wp.array  #: clusters of the patch and around it, rising
    clusters: wp.array
    octet_offsets: wp.array  #: the same clusters by groups of eight, rising
    octets: wp.array  #: vec2i: number of the eight clusters, and mask
    at_rest: PatchReference
    reach: float  #: what its clearance is at most [m]
    edge_offsets: wp.array  #: edges of each patch
    patch_edges: wp.array
    edges: FeatureLists  #: of `edges_and_ears`
    vertices: FeatureLists  #: those of a face


def edges_and_ears(topology: Topology) -> np.ndarray:
    """(k, 2) int32: what must not meet a face it has no vertex in common with: edges, and ears as edges without length.

    The edges of an ear, a vertex with at most three neighbours, may all have a vertex in common with a face that it
    passes through: the corner of a sheet that folds over.
    """
    return np.concatenate([topology.edges, np.repeat(ears(topology)[:, None], 2, axis=1)]).astype(np.int32)


def ears(topology: Topology) -> np.ndarray:
    """Vertices with at most three neighbours."""
    degree = np.diff(topology.vertex_neighbours.offsets)
    return np.flatnonzero((degree > 0) & (degree <= 3))


def build_patches(
    tree: LinearTree,
    assembly: AssembledBodies,
    per_feature: bool,
    spare: int = 0,
) -> PatchLists:
    """The lists of all patches.

    Args:
        per_feature: whether a thread searches for one feature, else for those of a patch.
        spare: clusters to come after those of the tree (`LinearTree.with_room`), four to a patch without certificate.
    """
    first, last, parent = tree.first.numpy(), tree.last.numpy(), tree.parent.numpy()
    size = last - first + 1
    node = np.flatnonzero((size <= PATCH) & ((parent < 0) | (size[np.maximum(parent, 0)] > PATCH)))
    node = node[np.argsort(first[node])]
    patch_of_place = np.repeat(np.arange(len(node)), size[node])
    items, topology = tree.items.numpy(), assembly.rest_mesh.topology
    clusters = tree.clusters.numpy()
    cluster_of_place = np.repeat(np.arange(len(clusters)), size[clusters])
    body = assembly.surface.body.numpy()[items[:, 0]]
    mixed = np.maximum.reduceat(body, first[node]) != np.minimum.reduceat(body, first[node])

    reached = _reached(items, patch_of_place, len(node), topology)
    patch, cluster = _clusters_around(reached, items, cluster_of_place, body, node, first, mixed)
    octet_patch, octets = _in_octets(patch, cluster)
    vertex_patch, vertex = _vertices_of(patch, cluster, items, cluster_of_place, len(node))
    ours = patch_of_place.repeat(3) * topology.vertex_count + items.ravel()
    own = np.isin(vertex_patch * topology.vertex_count + vertex, ours)
    rest, duals, tangents = _maps(vertex_patch, vertex, assembly.rest_mesh, len(node))

    place_of_face = np.empty(len(items), np.int64)
    place_of_face[tree.order.numpy()] = np.arange(len(items))
    # An edge belongs where its first face does, a vertex of a face where its last one does; others are of no interest.
    place_of_edge = place_of_face[topology.edge_faces.indices[topology.edge_faces.offsets[:-1]]]
    place_of_vertex = np.full(topology.vertex_count, -1)
    place_of_vertex[items.ravel()] = np.repeat(np.arange(len(items)), 3)
    place_of_edge = np.concatenate([place_of_edge, place_of_vertex[ears(topology)]])
    patch_of_edge = patch_of_place[place_of_edge]
    ends = assembly.rest_mesh.vertices[topology.edges]
    reach = float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean())
    more = spare // CLUSTERS_OF_SPARE

    def later(array: np.ndarray) -> np.ndarray:
        """Rows of spare patches: nothing."""
        return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])

    reference = struct_of(
        PatchReference,
        assembly.device,
        offsets=_offsets(vertex_patch, len(node) + more),
        vertices=vertex,
        own=own,
        rest=rest,
        duals=later(duals),
        tangents=later(tangents),
        clearance=later(np.where(mixed, 0.0, reach)),
    )

    interleaved = np.argsort(np.arange(len(node)) // RUN % RUNS, kind="stable")
    spare_nodes = _spare_nodes(len(first), spare, CLUSTERS_OF_SPARE)
    patch_of_cluster = np.concatenate(
        [patch_of_place[first[clusters]], len(node) + np.arange(spare) // CLUSTERS_OF_SPARE]
    )
    patches = len(node) + more

    def on_device(array, dtype=wp.int32) -> wp.array:
        return wp.array(np.ascontiguousarray(array), dtype=dtype, device=assembly.device)

    sheets = any(body.cuttable and not body.is_solid for body in assembly.current)

    def members(owner: np.ndarray, stride: int) -> FeatureLists:
        features = np.argsort(owner, kind="stable")[int((owner < 0).sum()) :]
        offsets = _offsets(owner[features], len(clusters))
        if spare:
            begin, own = stride * np.arange(len(clusters) + spare), owner[features]
            roomy = np.zeros(len(begin) * stride, np.int64)
            roomy[begin[own] + np.arange(len(features)) - offsets[own]] = features
            sizes = np.concatenate([np.diff(offsets), np.zeros(spare, np.int64)])
            if per_feature:  # a unit for each place there is room for; `ranges` tells which are in use
                place = np.arange(len(begin) * stride)
                nodes = np.concatenate([clusters + 1, _spare_nodes(len(first), spare, 1)])
                units = np.stack([nodes[place // stride], patch_of_cluster[place // stride], place, place + 1], axis=1)
            else:
                top = np.concatenate([node[interleaved] + 1, spare_nodes])
                number = np.concatenate([interleaved, np.arange(len(node), patches)])
                units = np.stack([top, number, 0 * top, 0 * top], axis=1)
            ranges = np.stack([begin, begin + sizes], axis=1)
            return FeatureLists(on_device(roomy), stride, on_device(ranges, wp.vec2i), on_device(units, wp.vec4i))
        if per_feature:
            top, begin, end = clusters[owner[features]], np.arange(len(features)), np.arange(len(features)) + 1
        else:
            top = node[interleaved]
            ends = np.searchsorted(first[clusters], np.stack([first[top], last[top] + 1]))
            begin, end = offsets[ends[0]], offsets[ends[1]]
        units = np.stack([top, patch_of_place[first[top]], begin, end], axis=1)
        ranges = np.stack([offsets[:-1], offsets[1:]], axis=1)
        units = on_device(units[begin < end], wp.vec4i)
        return FeatureLists(on_device(features), 0, on_device(ranges, wp.vec2i), units)

    return PatchLists(
        count=patches,
        patch_of_cluster=on_device(patch_of_cluster),
        interleaved=on_device(np.concatenate([interleaved, np.arange(len(node), patches)])),
        first_cluster=on_device(_offsets(patch_of_cluster, patches)),
        cluster_offsets=on_device(_offsets(patch, patches)),
        clusters=on_device(cluster),
        octet_offsets=on_device(_offsets(octet_patch, patches)),
        octets=on_device(octets, wp.vec2i),
        at_rest=reference,
        reach=reach,
        edge_offsets=on_device(_offsets(patch_of_edge, patches)),
        patch_edges=on_device(np.argsort(patch_of_edge, kind="stable")),
        edges=members(cluster_of_place[place_of_edge], EDGES_OF_SHEETS if sheets else EDGES_OF_CLUSTER),
        vertices=members(np.where(place_of_vertex >= 0, cluster_of_place[place_of_vertex], -1), VERTICES_OF_CLUSTER),
    )


def _spare_nodes(nodes: int, spare: int, size: int) -> np.ndarray:
    """The nodes of so many of the spare clusters each in a tree `with_room`, whose old nodes are so many."""
    if not spare:
        return np.zeros(0, np.int64)
    found, waiting = [], [(1 + nodes, spare)]
    while waiting:
        node, clusters = waiting.pop()
        if clusters == size:
            found.append(node)
        else:
            waiting += [(node + clusters, clusters // 2), (node + 1, clusters // 2)]
    return np.array(found)


def _reached(items: np.ndarray, patch_of_place: np.ndarray, count: int, topology):
    """Sparse (p, s): the vertices within a few edges of each patch."""
    from scipy.sparse import csr_matrix, identity

    vertices = topology.vertex_count
    ones = np.ones(items.size, np.int32)
    of_patch = csr_matrix((ones, (np.repeat(patch_of_place, 3), items.ravel())), shape=(count, vertices))
    edges = topology.edges
    links = csr_matrix((np.ones(len(edges), np.int32), (edges[:, 0], edges[:, 1])), shape=(vertices, vertices))
    step = links + links.T + identity(vertices, np.int32, format="csr")
    for _ in range(RINGS):
        of_patch = of_patch @ step
        of_patch.data[:] = 1
    return of_patch


def _clusters_around(reached, items, cluster_of_place, body, node, first, mixed) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (patch, cluster), rising: the clusters of the patch's body with a face at a vertex it reaches."""
    from scipy.sparse import csr_matrix

    ones = np.ones(items.size, np.int32)
    shape = (reached.shape[1], int(cluster_of_place[-1]) + 1)
    at_vertex = csr_matrix((ones, (items.ravel(), np.repeat(cluster_of_place, 3))), shape=shape)
    found = (reached @ at_vertex).tocsr()
    found.sort_indices()
    patch = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    cluster = found.indices
    begin = np.searchsorted(cluster_of_place, np.arange(shape[1]))
    least, most = np.minimum.reduceat(body, begin), np.maximum.reduceat(body, begin)
    keep = (least == most)[cluster] & (least[cluster] == body[first[node]][patch]) & ~mixed[patch]
    return patch[keep], cluster[keep]


def _in_octets(patch: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Patches, and groups of eight clusters with the mask of those that are listed."""
    groups = int(cluster.max(initial=0)) // 8 + 1
    keys, begin = np.unique(patch.astype(np.int64) * groups + cluster // 8, return_index=True)
    masks = np.bitwise_or.reduceat(1 << (cluster % 8), begin) if len(begin) else begin
    return keys // groups, np.stack([keys % groups, masks], axis=1)


def _vertices_of(patch, cluster, items, cluster_of_place, patches) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (patch, vertex), rising: the vertices of the clusters."""
    from scipy.sparse import csr_matrix

    clusters = int(cluster_of_place[-1]) + 1
    ones = np.ones(len(patch), np.int32), np.ones(items.size, np.int32)
    around = csr_matrix((ones[0], (patch, cluster)), shape=(patches, clusters))
    offsets = 3 * np.searchsorted(cluster_of_place, np.arange(clusters + 1))
    found = around @ csr_matrix((ones[1], items.ravel(), offsets), shape=(clusters, int(items.max()) + 1))
    found.sort_indices()
    return np.repeat(np.arange(patches), np.diff(found.indptr)), found.indices


def _maps(patch, vertex, whole, count) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each vertex its place from the middle; for each patch what makes a map of it, its tangents and normal."""
    x = whole.vertices[vertex]
    number = np.maximum(np.bincount(patch, minlength=count), 1)
    middle = np.stack([np.bincount(patch, x[:, k], count) for k in range(3)], axis=1) / number[:, None]
    rest = x - middle[patch]
    moment = np.zeros((count, 3, 3))
    np.add.at(moment, patch, rest[:, :, None] * rest[:, None, :])
    # The direction in which a patch extends least is filled in from how the others turn: nothing is fitted to it.
    extents, axes = np.linalg.eigh(moment)
    one, other, normal = axes[:, :, 2], axes[:, :, 1], axes[:, :, 0]
    other = np.where((np.cross(one, other) * normal).sum(axis=1, keepdims=True) < 0.0, -other, other)
    inverse = 1.0 / np.maximum(extents, np.maximum(1e-12 * extents[:, 2:], 1e-300))
    inverse[:, 0] = 0.0
    duals = np.einsum("pik,pk,pjk->pij", axes, inverse, axes)
    return rest, duals, np.stack([one, other, normal], axis=1)


def _offsets(owner: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))])
