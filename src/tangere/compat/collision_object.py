"""A mesh somewhere in the world, as a collision manager keeps it.

A mesh that is closed, in one piece and convex is a solid, as it is in trimesh: what is inside it is in collision with
it. Other meshes are surfaces.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tangere.motion import Rest
from tangere.runtime import InputError
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: A transform whose rotation is this far from one (single precision gives 1e-7) is taken as it is, not as a pose.
_RIGID = 1e-6
#: Vertices of a piece that say on which side of a surface it is, where it does not meet that surface.
SAMPLES = 4
#: Under these keys a mesh's cache holds what is found out here.
_SOLID, _PLANES, _CORNERS, _PIECES = (f"compat.{what}" for what in ("solid", "planes", "corners", "pieces"))

#: Meshes made of trimesh's, by id: a reference to the original, its content's hash, our mesh.
_converted: dict[int, tuple[weakref.ref, int, Mesh]] = {}


class CollisionObject:
    """A mesh and its transform.

    Args:
        mesh: a `tangere.Mesh` or a `trimesh.Trimesh`.
        transform: (4, 4); None means the identity. What is no rotation and translation moves the vertices instead.
    """

    def __init__(self, mesh: Any, transform: Any = None) -> None:
        self.original = self.mesh = as_mesh(mesh)
        self.box = np.zeros((2, 3))  # in the world, lower and upper corner; valid after `place`
        self._pose = np.eye(4)
        self.transform = np.eye(4) if transform is None else transform

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) where the object is."""
        return self._transform

    @transform.setter
    def transform(self, transform: Any) -> None:
        matrix = np.array(transform, np.float64)
        if matrix.shape != (4, 4):
            raise InputError("transform must be (4,4)!")
        if not np.isfinite(matrix).all():
            raise InputError("transform must be finite")
        self._transform = matrix
        self.stale = True

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) rotation and translation that place `mesh` in the world; valid after `place`."""
        return self._pose

    @cached_property
    def placed(self) -> Moving:
        """The mesh at rest at its pose, as the questions take it."""
        return self.mesh.moving(Rest(self.pose))

    @property
    def planes(self) -> np.ndarray:
        """(n, 4) of a solid's faces in its own frame, unit normals outward: a point inside is below all of them."""
        return self.kept(_PLANES, _planes)

    @property
    def corners(self) -> np.ndarray:
        """(n, 3) the vertices that faces use, in the mesh's own frame."""
        return self.kept(_CORNERS, lambda mesh: mesh.vertices[np.unique(mesh.faces)])

    @property
    def samples(self) -> list[np.ndarray]:
        """`SAMPLES` vertices of each connected piece of the mesh, in its own frame."""
        return self.kept(_PIECES, _pieces)

    @property
    def solid(self) -> bool:
        """Whether the inside belongs to the object."""
        return self.kept(_SOLID, _is_convex)

    def in_world(self, points: np.ndarray) -> np.ndarray:
        """Points of the mesh's frame in the world, (n, 3)."""
        return points @ self.pose[:3, :3].T + self.pose[:3, 3]

    def in_frame(self, points: np.ndarray) -> np.ndarray:
        """Points of the world in the mesh's frame, (n, 3)."""
        return (points - self.pose[:3, 3]) @ self.pose[:3, :3]

    def triangles(self, faces: np.ndarray) -> np.ndarray:
        """(k, 3, 3) corners of these faces in the world."""
        return self.in_world(self.mesh.vertices[self.mesh.faces[faces]].reshape(-1, 3)).reshape(-1, 3, 3)

    def kept(self, key: str, found: Callable[[Mesh], Any]) -> Any:
        """What is found out about the mesh once."""
        if key not in self.mesh.cache:
            self.mesh.cache[key] = found(self.mesh)
        return self.mesh.cache[key]


def place(things: Sequence[CollisionObject]) -> None:
    """Find the pose and the box of all whose transform is new."""
    stale = [thing for thing in things if thing.stale]
    if not stale:
        return
    poses = np.array([thing.transform for thing in stale])
    turns = poses[:, :3, :3]
    off = np.abs(turns @ turns.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    rigid = (off < _RIGID) & (np.linalg.det(turns) > 0.0)
    for _ in range(2):  # Newton's iteration for the nearest rotation
        turns = 1.5 * turns - 0.5 * turns @ turns.transpose(0, 2, 1) @ turns
    poses[:, :3, :3], poses[:, 3] = turns, (0.0, 0.0, 0.0, 1.0)
    poses[~rigid] = np.eye(4)
    for thing, pose, is_rigid in zip(stale, poses, rigid.tolist(), strict=True):
        thing._pose, thing.mesh, thing.stale = pose, thing.original, False
        if not is_rigid:
            matrix = thing.transform
            thing.mesh = thing.original.replace(vertices=thing.original.vertices @ matrix[:3, :3].T + matrix[:3, 3])
        thing.__dict__.pop("placed", None)
    bounds = np.array([thing.mesh.bounds for thing in stale])
    turns = poses[:, :3, :3]
    centres = (turns @ bounds.mean(axis=1)[..., None])[..., 0] + poses[:, :3, 3]
    halves = (np.abs(turns) @ (0.5 * (bounds[:, 1] - bounds[:, 0]))[..., None])[..., 0]
    halves += 1e-12 * (np.abs(bounds).max(axis=(1, 2)) + np.abs(centres).max(axis=1))[:, None]  # rounding
    for thing, box in zip(stale, np.stack([centres - halves, centres + halves], axis=1), strict=True):
        thing.box = box


def as_mesh(mesh: Any) -> Mesh:
    """Our mesh of one of ours or of trimesh's; of the same mesh, unchanged, the same one again, with its trees."""
    if isinstance(mesh, Mesh):
        return mesh
    if not (hasattr(mesh, "vertices") and hasattr(mesh, "faces")):
        raise InputError(f"{type(mesh).__name__} is no mesh: a collision manager takes tangere's and trimesh's")
    key, content = id(mesh), hash(mesh)
    kept = _converted.get(key)
    if kept is None or kept[0]() is not mesh or kept[1] != content:
        ours = Mesh(np.array(mesh.vertices, np.float64), np.array(mesh.faces, np.int64))
        ours.cache[_SOLID] = bool(mesh.is_convex)
        kept = _converted[key] = weakref.ref(mesh, lambda _: _converted.pop(key, None)), content, ours
    return kept[2]


def _is_convex(mesh: Mesh) -> bool:
    import trimesh

    return bool(trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).is_convex)


def _planes(mesh: Mesh) -> np.ndarray:
    used = mesh.face_areas > 0.0
    normals = mesh.face_normals[used]
    return np.column_stack([normals, -np.einsum("ij,ij->i", normals, mesh.vertices[mesh.faces[used, 0]])])


def _pieces(mesh: Mesh) -> list[np.ndarray]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges, count = mesh.edges, len(mesh.vertices)
    links = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))
    label = connected_components(links, directed=False)[1]
    used = np.unique(mesh.faces)
    order = used[np.argsort(label[used], kind="stable")]
    pieces = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    some = [piece[np.linspace(0, len(piece) - 1, SAMPLES).astype(int)] for piece in pieces]
    return [mesh.vertices[piece] for piece in some]
