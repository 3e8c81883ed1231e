"""Several triangle surfaces in common arrays: what the grid and every other broad phase of a scene work on.

Vertices, edges and faces of all meshes are numbered through, mesh after mesh. Each vertex and each edge is owned by one
triangle that has it, the first, so that a pair of triangles tests only what it owns: 3.25 instead of 15 pairs of
primitives on average, each exactly once (Léonard 2021, section 3.7; representative triangles: Curtis et al. 2008). What
depends on the topology is kept with it; a mesh with another topology, after a cut, brings its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypeVar
from weakref import ref

import numpy as np
import warp as wp

from tangere.broad_phase.deforming.step import FittedMesh, MeshInStep
from tangere.bvh.lbvh import Frame, vertex_boxes
from tangere.runtime import CapacityError, InputError, as_points, choose_device, described, device_of
from tangere.shape.mesh import Mesh, Topology

#: Bits for the number of a feature in the key of a contact.
NUMBER_BITS = 29
#: Fourth powers of lengths must be numbers.
LARGEST = 1e75
SMALLEST = 1e-75

Made = TypeVar("Made")


@dataclass(frozen=True)
class Layout:
    """The topologies of all meshes, one after the other, on a device."""

    partners: tuple[ref[Topology], ...]  #: all but the first: when one is gone, so is this
    faces: wp.array  #: (m, 3) int32, vertex numbers
    edges: wp.array  #: (e, 2)
    face_edges: wp.array  #: (m, 3): edges (v0, v1), (v1, v2), (v2, v0)
    owns: wp.array  #: (m,) int32: bit k: owns vertex k; bit 3 + k: owns edge k
    body: wp.array  #: (m,) int32: mesh of each face
    vertex_body: wp.array  #: (n,) int32: mesh of each vertex
    vertex_base: np.ndarray  #: (bodies + 1,) int32: number of the first vertex of each mesh, and the total
    edge_base: np.ndarray
    face_base: np.ndarray
    cache: dict[Any, Any] = field(default_factory=dict, init=False)  #: what is built from these topologies together

    def for_jobs(self, what: str, jobs: np.ndarray, make: Callable[[], Made]) -> Made:
        """What `make()` makes for meshes to be compared, (k, 2); kept as long as these are the ones."""
        key = jobs.tobytes()
        known = self.cache.get(what)
        if known is None or known[0] != key:
            known = self.cache[what] = (key, make())
        return known[1]

    @staticmethod
    def of(topologies: tuple[Topology, ...], device: wp.Device) -> Layout:
        """The layout of these topologies, kept with the first as long as all of them are in use.

        It must not keep the others: whoever cuts a body at every step would never be rid of the old ones.
        """
        cache = topologies[0].cache
        key = ("layout", tuple(map(id, topologies)), device.alias)  # forgotten before an id can be used again
        if key not in cache:
            others = {id(t): t for t in topologies if t is not topologies[0]}.values()
            cache[key] = Layout._built(topologies, _watched(others, topologies[0], key), device)
        return cache[key]

    @staticmethod
    def _built(topologies: tuple[Topology, ...], partners: tuple[ref[Topology], ...], device: wp.Device) -> Layout:
        vertex_base = _bases([t.vertex_count for t in topologies])
        edge_base = _bases([len(t.edges) for t in topologies])
        face_base = _bases([len(t.faces) for t in topologies])
        worst = max(int(vertex_base[-1]), int(edge_base[-1]), int(face_base[-1]))
        if worst >= 1 << NUMBER_BITS:
            raise CapacityError(f"a scene holds at most {(1 << NUMBER_BITS) - 1} features of a kind, not {worst}")

        def on_device(parts: list[np.ndarray]) -> wp.array:
            return wp.array(np.concatenate(parts).astype(np.int32), dtype=wp.int32, device=device)

        return Layout(
            partners,
            faces=on_device([t.faces + base for t, base in zip(topologies, vertex_base, strict=False)]),
            edges=on_device([t.edges + base for t, base in zip(topologies, vertex_base, strict=False)]),
            face_edges=on_device([t.face_edges + base for t, base in zip(topologies, edge_base, strict=False)]),
            owns=on_device([owned_features(t) for t in topologies]),
            body=on_device([np.full(len(t.faces), k) for k, t in enumerate(topologies)]),
            vertex_body=on_device([np.full(t.vertex_count, k) for k, t in enumerate(topologies)]),
            vertex_base=vertex_base,
            edge_base=edge_base,
            face_base=face_base,
        )


@dataclass(frozen=True)
class Surfaces:
    """Meshes of a scene at one instant."""

    meshes: tuple[Mesh, ...]
    layout: Layout
    positions: wp.array  #: (n,) vec3d [m]
    frame: Frame
    bounded: bool = True  #: whether the positions are those of the meshes, whose bounds are known

    @staticmethod
    def of(meshes: Sequence[Mesh], device: str | wp.Device | None = None) -> Surfaces:
        if not len(meshes):
            raise InputError("a scene needs at least one mesh")
        for mesh in meshes:
            if not isinstance(mesh, Mesh):
                raise InputError(f"proximity is known between meshes at rest, not of a {type(mesh).__name__}")
        bounds = np.array([mesh.bounds for mesh in meshes])
        sizes = (bounds[:, 1] - bounds[:, 0]).max(axis=1)
        if np.abs(bounds).max() > LARGEST or ((sizes > 0.0) & (sizes < SMALLEST)).any():
            checked_size(*meshes)
        device = choose_device(device)
        layout = Layout.of(tuple(mesh.topology for mesh in meshes), device)
        if len(meshes) == 1:
            positions = as_points(meshes[0].vertices, f"{meshes[0].name}: vertices", device)
        else:
            joined = np.concatenate([m.vertices for m in meshes])
            positions = wp.array(joined, dtype=wp.vec3d, device=device, copy=not device.is_cpu)
        hull = np.array([bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)])
        return Surfaces(tuple(meshes), layout, positions, Frame.around(hull))

    def replaced(self, positions: wp.array) -> Surfaces:
        """The same bodies elsewhere: (n,) vec3d on the same device, which are neither copied nor looked at."""
        if len(positions) != len(self.positions) or positions.dtype != wp.vec3d or positions.device != self.device:
            raise InputError(f"positions must be {len(self.positions)} vec3d on {self.device.alias}")
        return replace(self, positions=positions, bounded=False)

    @property
    def device(self) -> wp.Device:
        return device_of(self.positions)

    @property
    def bodies(self) -> list[MeshInStep]:
        """The meshes as the tree traversals want them."""
        bases = self.layout.vertex_base.tolist()
        return [MeshInStep(mesh, base, self.device) for mesh, base in zip(self.meshes, bases, strict=False)]

    def vertex_boxes(self, distance: float) -> wp.array:
        """The place of each vertex, grown by half of `distance` [m]: boxes of features nearer than that meet."""
        return vertex_boxes(self.positions, self.positions, 0.0, 0.5 * distance, self.frame)

    def fitted(self, distance: float) -> list[FittedMesh]:
        """The meshes with trees whose boxes are grown by half of `distance` [m]."""
        boxes, bases = self.vertex_boxes(distance), self.layout.vertex_base.tolist()
        return [FittedMesh(body, boxes[bases[k] : bases[k + 1]]) for k, body in enumerate(self.bodies)]


def _watched(others: Iterable[Topology], first: Topology, key: Any) -> tuple[ref[Topology], ...]:
    """The others, not held; with the first of them to go, what `first` keeps under `key` goes."""
    owner = ref(first)

    def forget(_: object) -> None:
        kept = owner()
        if kept is not None:
            kept.cache.pop(key, None)

    return tuple(ref(other, forget) for other in others)


def as_meshes(meshes: Mesh | Sequence[Mesh]) -> list[Mesh]:
    """One mesh or several as a list."""
    if not isinstance(meshes, Mesh | Iterable):
        raise InputError(f"meshes must be a Mesh at rest, or a list of them, not a {type(meshes).__name__}")
    return [meshes] if isinstance(meshes, Mesh) else list(meshes)


def checked_distance(distance: float) -> None:
    """Raise unless the distance is a length whose fourth power is a number."""
    if not (isinstance(distance, Real) and SMALLEST <= distance <= LARGEST):
        raise InputError(f"distance must be a positive length, {SMALLEST:g} to {LARGEST:g}, not {described(distance)}")


def checked_size(*meshes: Mesh) -> None:
    """Raise, and say which, if a mesh is too large or too small."""
    for mesh in meshes:
        if np.abs(mesh.bounds).max() > LARGEST:
            raise InputError(f"Mesh {mesh.name!r}: coordinates above {LARGEST:g} are too large")
        if 0.0 < np.ptp(mesh.bounds, axis=0).max() < SMALLEST:
            raise InputError(f"Mesh {mesh.name!r}: an extent below {SMALLEST:g} is too small")


def owned_features(topology: Topology) -> np.ndarray:
    """(m,) int32 bits: bit k if a face owns its vertex k, bit 3 + k if it owns its edge k; the first face owns."""
    faces, face_edges, rows = topology.faces, topology.face_edges, np.arange(len(topology.faces))
    bits = np.zeros(len(faces), np.int32)
    for shift, features, users in ((0, faces, topology.vertex_faces), (3, face_edges, topology.edge_faces)):
        used = users.offsets[1:] > users.offsets[:-1]
        owner = np.full(len(used), -1)
        owner[used] = users.indices[users.offsets[:-1][used]]
        for k in range(3):
            mine = owner[features[:, k]] == rows
            for earlier in range(k):  # a triangle may name a vertex twice
                mine &= features[:, earlier] != features[:, k]
            bits |= mine.astype(np.int32) << (shift + k)
    return bits


def _bases(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
