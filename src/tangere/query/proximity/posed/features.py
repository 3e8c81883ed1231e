"""What of a rigid mesh can touch: vertices, edges and flat patches, and which triangle answers for each.

Question: which vertices and edges can be constraints, where do they border on, and what belongs to one plane?
Method:   triangles that lie in one plane, to `FLAT` of the size of the mesh, are a *patch*: grown over edges that
          hardly bend, and kept only where all of it is within that of one plane, so that ever so fine a tessellation of
          something round is never taken for flat. Edges within a patch, and vertices with no other edges, say nothing
          that the patch does not say: flat on flat gives corners and crossings of outlines, however it is triangulated.
          Each vertex and each edge is owned by one triangle, so that it is compared once (Curtis et al. 2008).
Sound:    which side of a triangle is out does not matter: sheets, open meshes and meshes turned inside out have the
          same features. A triangle without area has no plane, and its edges are features.
Known as: normal cones and Voronoi features of polyhedra (Lin and Canny 1991); coplanar face merging.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.shape.mesh import Mesh

#: How far the vertices of a patch may be from its plane, in sizes of the mesh: what single precision in a file does.
FLAT = 2.5e-7
#: Triangles lower than this part of their longest side have no plane that one could rely on.
DEGENERATE = 1.0e-6
#: Edges that bend by more (sin of the angle) are never within a patch.
_BENT = 1.0e-2
#: Patches that turn out not to be flat are grown again over edges that bend less, so many times less each time.
_FINER, _ROUNDS = 64.0, 4

#: Bits of `owns`: corner k is a vertex owned by this triangle (k), so is side k (3 + k); the triangle has a plane (6);
#: side k is a feature, whoever owns it (7 + k).
OWNS_VERTEX, OWNS_EDGE, HAS_PLANE, IS_FEATURE = 0, 3, 6, 7


@dataclass(frozen=True, eq=False)
class MeshFeatures:
    """The features of a mesh and their neighbourhoods, in its own frame; list i is first[i] … first[i + 1] - 1."""

    owns: np.ndarray  #: (m,) int32: bits as above
    patch: np.ndarray  #: (m,) int32: the smallest triangle of the patch that each triangle belongs to
    vertex_edge: np.ndarray  #: (n,) int32: the first feature among the edges of each vertex; -1: the vertex is none
    vertex_first: np.ndarray  #: (n + 1,) int32
    vertex_tangents: np.ndarray  #: (…, 3) unit vectors from a vertex along its edges
    vertex_ring: np.ndarray  #: (…,) int32: which edges these are
    edge_first: np.ndarray  #: (e + 1,) int32
    edge_tangents: np.ndarray  #: (…, 3) unit vectors from an edge into its triangles, across the edge

    @staticmethod
    def of(mesh: Mesh) -> MeshFeatures:
        """The features of `mesh`, found when they are first asked for and kept in `mesh.cache`."""
        features = mesh.cache.get(MeshFeatures)
        if features is None:
            features = mesh.cache[MeshFeatures] = _features_of(mesh)
        return features


def patch_outlines(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """(m + 1,) where the outline of each triangle's patch begins, and (…,) its sides, 3 face + corner.

    Of a patch the list stands with its smallest triangle; those of the others are empty."""
    features = MeshFeatures.of(mesh)
    outer = (features.owns[:, None] >> (IS_FEATURE + np.arange(3))) & 1 == 1
    sides = np.flatnonzero(outer.ravel())
    of = features.patch[sides // 3]
    return _offsets(of, len(mesh.faces)), sides[np.argsort(of, kind="stable")]


def _features_of(mesh: Mesh) -> MeshFeatures:
    topology = mesh.topology
    faces, edges, face_edges = topology.faces, topology.edges, topology.face_edges
    has_plane = _have_planes(mesh)
    sides = np.argsort(face_edges.ravel(), kind="stable")  # sides of triangles, 3 face + corner, by edge
    edge_of, face_of = face_edges.ravel()[sides], sides // 3
    across, height = _across(mesh, sides)
    sided = has_plane[face_of]  # sides whose triangle tells a direction
    patch, within = _patches(mesh, has_plane, sides, across, height)
    feature = ~within & (edges[:, 0] != edges[:, 1])

    vertex_edge = _first_edges(mesh, feature)
    first_vertex, first_edge = _first_places(faces.ravel()), _first_places(face_edges.ravel())
    owns = has_plane.astype(np.int32) << HAS_PLANE
    for k in range(3):
        owned_vertex = first_vertex.reshape(-1, 3)[:, k] & (vertex_edge[faces[:, k]] >= 0)
        owned_edge = first_edge.reshape(-1, 3)[:, k] & feature[face_edges[:, k]]
        owns |= owned_vertex.astype(np.int32) << (OWNS_VERTEX + k)
        owns |= owned_edge.astype(np.int32) << (OWNS_EDGE + k)
        owns |= feature[face_edges[:, k]].astype(np.int32) << (IS_FEATURE + k)

    rings = topology.vertex_edges
    centre = np.repeat(np.arange(len(mesh.vertices)), np.diff(rings.offsets))
    along = mesh.vertices[edges[rings.indices].sum(axis=1) - centre] - mesh.vertices[centre]
    length = np.linalg.norm(along, axis=1)
    apart = length > 0.0
    return MeshFeatures(
        owns,
        patch,
        vertex_edge,
        _offsets(centre[apart], len(mesh.vertices)),
        along[apart] / length[apart, None],
        rings.indices[apart],
        _offsets(edge_of[sided], len(edges)),
        across[sided],
    )


def _have_planes(mesh: Mesh) -> np.ndarray:
    """(m,) whether each triangle is high enough to have a plane."""
    corners = mesh.vertices[mesh.faces]
    longest = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2).max(axis=1)
    return 2.0 * mesh.face_areas > DEGENERATE * longest * longest


def _across(mesh: Mesh, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors from the sides across them into their triangles, and how far the opposite corner is."""
    corners = mesh.vertices[mesh.faces].reshape(-1, 3)
    ahead = sides - sides % 3 + (sides + 1) % 3
    begin, along = corners[sides], corners[ahead] - corners[sides]
    opposite = corners[sides - sides % 3 + (sides + 2) % 3] - begin
    squared = np.einsum("ij,ij->i", along, along)
    part = np.einsum("ij,ij->i", opposite, along) / np.where(squared > 0.0, squared, 1.0)
    across = opposite - part[:, None] * along
    height = np.linalg.norm(across, axis=1)
    return across / np.where(height > 0.0, height, 1.0)[:, None], height


def _patches(
    mesh: Mesh, has_plane: np.ndarray, sides: np.ndarray, across: np.ndarray, height: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(m,) the smallest triangle of each triangle's patch, and (e,) whether each edge lies within one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _faces, count = mesh.faces, len(mesh.faces)
    edge_faces, tolerance = mesh.topology.edge_face_count, FLAT * mesh.extent
    pair = np.concatenate([[0], np.cumsum(edge_faces)])[:-1][edge_faces == 2]  # of two sides, the first in `sides`
    joint = np.flatnonzero(edge_faces == 2)
    one, other = sides[pair] // 3, sides[pair + 1] // 3
    bend = np.linalg.norm(np.cross(across[pair], across[pair + 1]), axis=1)
    open_out = np.einsum("ij,ij->i", across[pair], across[pair + 1]) < 0.0
    rise = bend * np.maximum(height[pair], height[pair + 1])
    proper = open_out & (bend < _BENT) & has_plane[one] & has_plane[other] & (one != other)

    patch, settled = np.arange(count), np.zeros(count, bool)
    limit = 2.0 * tolerance
    for _ in range(_ROUNDS):
        chosen = proper & (rise <= limit) & ~settled[one] & ~settled[other]
        if not chosen.any():
            break
        links = coo_array((np.ones(int(chosen.sum()), np.int8), (one[chosen], other[chosen])), shape=(count, count))
        label = connected_components(links, directed=False)[1]
        flat = _off_plane(mesh, label)[label] <= tolerance
        fresh = flat & ~settled & (np.bincount(label)[label] > 1)
        smallest = np.full(label.max() + 1, count)
        np.minimum.at(smallest, label, np.arange(count))
        patch = np.where(fresh, smallest[label], patch)
        settled |= fresh
        limit /= _FINER
    within = np.zeros(len(mesh.edges), bool)
    within[joint] = proper & (patch[one] == patch[other])
    return patch.astype(np.int32), within


def _off_plane(mesh: Mesh, label: np.ndarray) -> np.ndarray:
    """How far the corners of the triangles of each label are from their common plane."""
    groups = label.max() + 1
    normals, areas = mesh.face_normals, mesh.face_areas
    order = np.lexsort((areas, label))
    largest = order[np.concatenate([label[order][1:] != label[order][:-1], [True]])]
    # Neighbours may disagree which side is out: all are turned like the largest of them.
    aligned = normals * np.sign(np.einsum("ij,ij->i", normals, normals[largest][label]))[:, None] * areas[:, None]
    summed = np.stack([np.bincount(label, aligned[:, k], groups) for k in range(3)], axis=1)
    unit = summed / np.maximum(np.linalg.norm(summed, axis=1), 1e-300)[:, None]
    corners = mesh.vertices[mesh.faces]
    origin = corners[largest, 0]
    heights = np.einsum("fkj,fj->fk", corners - origin[label][:, None], unit[label])
    off = np.full(groups, 0.0)
    np.maximum.at(off, label, heights.max(axis=1))
    low = np.zeros(groups)
    np.minimum.at(low, label, heights.min(axis=1))
    return 0.5 * (off - low)


def _first_edges(mesh: Mesh, feature: np.ndarray) -> np.ndarray:
    """(n,) the first edge of each vertex that is a feature; of a vertex without any proper edge its first edge."""
    edges, count = mesh.edges, len(mesh.vertices)
    proper = (mesh.vertices[edges[:, 0]] != mesh.vertices[edges[:, 1]]).any(axis=1)
    first = np.full(count, len(edges))
    chosen = np.flatnonzero(feature)
    np.minimum.at(first, edges[chosen].ravel(), np.repeat(chosen, 2))
    lonely = np.ones(count, bool)
    lonely[edges[proper].ravel()] = False
    if lonely.any():
        chosen = np.arange(len(edges))
        every = np.full(count, len(edges))
        np.minimum.at(every, edges.ravel(), np.repeat(chosen, 2))
        first = np.where(lonely, every, first)
    return np.where(first < len(edges), first, -1).astype(np.int32)


def _first_places(items: np.ndarray) -> np.ndarray:
    """Whether each place holds an item that no earlier one holds."""
    is_first = np.zeros(len(items), bool)
    is_first[np.unique(items, return_index=True)[1]] = True
    return is_first


def _offsets(items: np.ndarray, count: int) -> np.ndarray:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(items, minlength=count), out=offsets[1:])
    return offsets
