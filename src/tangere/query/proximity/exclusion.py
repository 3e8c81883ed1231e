"""Pairs of features of one mesh that are near without being in contact: neighbours, and what is near at rest.

Three kinds (Léonard 2021, sections 3.6.3 and 5.2.2):
  rings     features less than k edges apart along the mesh;
  at_rest   features nearer than a length at rest, if the surface joins them within that length: the two walls of a thin
            slit are near, but not joined, and stay in contact;
  gaps      features nearer than the contact distance at rest come into contact only when they are nearer than they
            were then, or than they have been since: no force at rest, the full margin once they have come apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Surfaces, checked_distance
from tangere.geometry.closest_points import edges_offset, face_offset, nearest_on_edges, nearest_on_face
from tangere.query.contacts.record import Contacts, Kind, contact_key
from tangere.query.proximity.pair_keys import EDGE_EDGE, split_key
from tangere.runtime import SOUND, InputError, check_kind, launch
from tangere.shape.mesh import Adjacency, Mesh, Topology

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class Exclusion:
    """Pairs of features of one body, and how near each must come to count.

    Where other bodies share its topology (`mesh.at`, `mesh.replace`), which of them it is for is said by its place in
    the list that queries take, one entry for each mesh.
    """

    topology: Topology
    keys: np.ndarray  #: (n,) int64, rising: contact keys of a mesh with itself
    activation: np.ndarray  #: (n,) [m]: only nearer than this is a contact; 0: never
    distance: float = 0.0  #: all pairs nearer than this at rest, and joined there, are listed [m]
    rest: np.ndarray | None = None  #: (v, 3) where that was

    @staticmethod
    def rings(mesh: Mesh, count: int) -> Exclusion:
        """Features with vertices less than `count` edges apart; 1 are those that share a vertex, left out anyway."""
        from scipy.sparse import csr_matrix, identity

        check_kind(mesh, Mesh, "mesh")
        try:
            steps = index(count)
        except TypeError as error:
            raise InputError(f"rings must be a whole number, not {count!r}") from error
        if steps < 1:
            raise InputError(f"rings must be at least 1, not {count!r}")
        topology, vertices = mesh.topology, len(mesh.vertices)

        def incidence(features: np.ndarray):
            rows = np.repeat(np.arange(len(features)), features.shape[1])
            ones = np.ones(features.size, np.float32)
            return csr_matrix((ones, (rows, features.ravel())), shape=(len(features), vertices))

        near = identity(vertices, np.float32, format="csr")
        edges = incidence(topology.edges)
        for _ in range(steps - 1):
            near = ((near @ (edges.T @ edges)) > 0).astype(np.float32)
        vertex, face = (near @ incidence(topology.faces).T).nonzero()
        one, other = (edges @ near @ edges.T).nonzero()
        one, other = one[one < other], other[one < other]
        keys = [contact_key(Kind.VERTEX_FACE, 0, vertex, face), contact_key(Kind.EDGE_EDGE, 0, one, other)]
        return _excluding(topology, np.concatenate(keys))

    @staticmethod
    def at_rest(
        mesh: Mesh, distance: float, *, device: str | wp.Device | None = None, threads: int | None = None
    ) -> Exclusion:
        """Features nearer than `distance` [m] in the mesh as it is, if triangles nearer than that join them."""
        contacts = _contacts(mesh, distance, device, threads)
        keys = np.sort(contacts.key[_joined_nearby(mesh.topology, contacts)])
        return Exclusion(mesh.topology, keys, np.zeros(len(keys)), distance, mesh.vertices)

    @staticmethod
    def gaps(
        mesh: Mesh, distance: float, *, device: str | wp.Device | None = None, threads: int | None = None
    ) -> Exclusion:
        """Features nearer than `distance` [m] in the mesh as it is, in contact only when they come nearer still."""
        near = _contacts(mesh, distance, device, threads)
        return _excluding(mesh.topology, near.key).widened(mesh, distance, device=device, threads=threads)

    def widened(
        self, mesh: Mesh, distance: float, *, device: str | wp.Device | None = None, threads: int | None = None
    ) -> Exclusion:
        """The same pairs where each that has come apart counts again: up to how far it is now, at most `distance`."""
        checked_distance(distance)
        surfaces = self._surfaces(mesh, device)
        apart = wp.empty(len(self.keys), dtype=wp.float64, device=surfaces.device)
        keys = wp.array(self.keys, dtype=wp.int64, device=surfaces.device)
        inputs = [keys, surfaces.layout.faces, surfaces.layout.edges, surfaces.positions]
        launch(_distances, len(keys), inputs, [apart], device=surfaces.device, threads=threads)
        return Exclusion(self.topology, self.keys, np.minimum(distance, np.maximum(self.activation, apart.numpy())))

    def _surfaces(self, mesh: Mesh, device: str | wp.Device | None) -> Surfaces:
        if mesh.topology is not self.topology:
            raise InputError(f"Mesh {mesh.name!r}: these exclusions were made for another topology")
        return Surfaces.of([mesh], device)


def _excluding(topology: Topology, keys: np.ndarray) -> Exclusion:
    return Exclusion(topology, np.sort(keys), np.zeros(len(keys)))


def _contacts(mesh: Mesh, distance: float, device: str | wp.Device | None, threads: int | None) -> Contacts:
    from tangere.query.proximity.api import proximity

    check_kind(mesh, Mesh, "mesh")
    return proximity(mesh, distance=distance, device=device, threads=threads)


def _joined_nearby(topology: Topology, contacts: Contacts) -> np.ndarray:
    """Which contacts have features that triangles near the first one join.

    From each triangle the others are reached through edges, by steps that stay among those as near as the contacts say;
    a path on the surface shorter than the distance cannot leave them.
    """
    from scipy.sparse import csr_matrix

    contact, one, other = _triangles_at(topology, contacts)
    if not len(one):  # SciPy takes no empty rows of a sparse matrix
        return np.zeros(len(contacts), bool)
    faces = len(topology.faces)
    rows, columns = np.concatenate([one, other]), np.concatenate([other, one])
    neighbours = topology.edge_faces
    sides = np.repeat(np.arange(len(topology.edges)), np.diff(neighbours.offsets))
    touching = csr_matrix((np.ones(len(sides), np.float32), (neighbours.indices, sides)), (faces, len(topology.edges)))
    across = ((touching @ touching.T) > 0).astype(np.float32)
    corners = csr_matrix(
        (np.ones(3 * faces, np.float32), (np.repeat(np.arange(faces), 3), topology.faces.ravel())),
        (faces, topology.vertex_count),
    )
    near = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (faces, faces))
    near = ((near + corners @ corners.T) > 0).astype(np.float32)
    reached, size = across.multiply(near).tocsr(), -1
    while reached.nnz != size:
        size = reached.nnz
        reached = ((reached @ across).multiply(near) > 0).astype(np.float32).tocsr()
    pairs = np.asarray(reached[one, other]).ravel() > 0
    joined = np.zeros(len(contacts), bool)
    joined[contact[pairs]] = True
    return joined


def _triangles_at(topology: Topology, contacts: Contacts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of triangles that have the features of a contact: the contact, and both triangles."""
    columns = []
    for kind, users in ((Kind.VERTEX_FACE, topology.vertex_faces), (Kind.EDGE_EDGE, topology.edge_faces)):
        contact = np.flatnonzero(contacts.kind == kind)
        row, one = _expanded(users, contacts.feature_a[contact])
        contact, other = contact[row], contacts.feature_b[contact[row]]
        if kind == Kind.EDGE_EDGE:
            row, other = _expanded(topology.edge_faces, other)
            contact, one = contact[row], one[row]
        columns.append((contact, one, other))
    contact, one, other = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return contact, one, other


def _expanded(lists: Adjacency, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lists of some items, one after the other: which of the items, and what is in its list."""
    begin = lists.offsets[items]
    sizes = lists.offsets[items + 1] - begin
    row = np.repeat(np.arange(len(items)), sizes)
    within = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return row, lists.indices[begin[row] + within]


@wp.func
def features_apart(
    edges_pair: bool,
    one: int,
    other: int,
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
) -> wp.float64:
    """The distance of two features."""
    if edges_pair:
        a0 = positions[edges[one, 0]]
        a1 = positions[edges[one, 1]]
        b0 = positions[edges[other, 0]]
        b1 = positions[edges[other, 1]]
        return wp.length(edges_offset(a0, a1, b0, b1, nearest_on_edges(a0, a1, b0, b1)))
    p = positions[one]
    a = positions[faces[other, 0]]
    b = positions[faces[other, 1]]
    c = positions[faces[other, 2]]
    return wp.length(face_offset(p, a, b, c, nearest_on_face(p, a, b, c)))


@wp.kernel
def _distances(
    first: int,
    keys: wp.array[wp.int64],
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    apart: wp.array[wp.float64],
):
    k = first + wp.tid()
    parts = split_key(keys[k], wp.int64(29))
    edges_pair = wp.int64(parts[0] >> 1) == EDGE_EDGE
    apart[k] = features_apart(edges_pair, parts[1], parts[2], faces, edges, positions)
