"""Tetrahedral meshes: solids cut into tetrahedra, and the triangle surface around them.

A `TetMesh` is immutable, like `Mesh`. Its `surface` is the triangles that belong to one tetrahedron only, outward. Any
other surface, finer or coarser, is carried along by weights of four corners (`weights_at`): a coarse solid moves a fine
collision surface (Léonard 2021, section 2.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np

from tangere.runtime import Arrays, InputError, read_only, read_only_copy, to_numpy
from tangere.shape.mesh.mesh import Mesh

#: Corners of the four faces of a tetrahedron, outward; face k is opposite corner 3 - k.
_FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
_EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
#: A volume below this part of the cube of the longest edge is none.
_FLAT = 1e-12
#: Tetrahedra tried for each carried point: those with the nearest centres.
_TRIED = 24
#: A point whose weights add up to more than this, without their signs, is too far outside to be carried.
_TOO_FAR = 4.0


@dataclass(frozen=True, eq=False, repr=False)
class TetReport:
    """Counts and properties of a solid; `notes` says in words what is unusual."""

    name: str
    vertices: int
    tetrahedra: int
    volume: float  #: [m^3]
    bounds: np.ndarray  #: (2, 3) smallest and largest coordinates [m]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        low, high = (" ".join(f"{x:.6g}" for x in corner) for corner in self.bounds)
        lines = [
            f"TetMesh {self.name!r}: {self.vertices} vertices, {self.tetrahedra} tetrahedra, {self.volume:.6g} m^3",
            f"  from ({low}) to ({high})",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


class TetMesh:
    """Tetrahedra in space; immutable.

    Args:
        vertices: positions, shape (n, 3) [m].
        tets: vertex numbers of each tetrahedron, shape (m, 4); either orientation, kept with positive volume.
        name: what to call it in errors and reports.
    """

    vertices: np.ndarray  #: (n, 3) float64 [m]
    tets: np.ndarray  #: (m, 4) int32, positive volumes
    name: str

    _notes: tuple[str, ...] = ()

    def __init__(self, vertices: Arrays, tets: Arrays, *, name: str = "solid") -> None:
        positions = _checked_vertices(vertices, name)
        self.__dict__.update(vertices=positions, name=name, **_oriented(positions, tets, name))

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"TetMesh is immutable: use at() instead of setting {key!r}")

    def __repr__(self) -> str:
        return f"TetMesh({self.name!r}, {len(self.vertices)} vertices, {len(self.tets)} tetrahedra)"

    def __reduce__(self):
        return _unpickled, (self.vertices, self.tets, self.name, self._notes)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> TetMesh:
        """Read the tetrahedra of a file (.msh, .vtk, .vtu, .mesh, …) through the optional package meshio."""
        from tangere.shape.tets.files import read_tets

        vertices, tets, name = read_tets(path)
        return cls(vertices, tets, name=name)

    @classmethod
    def fill(cls, mesh: Mesh, *, edge_length: float | None = None) -> TetMesh:
        """The solid inside a mesh, cut into tetrahedra by the optional package pytetwild.

        Args:
            mesh: a surface; the result follows it closely, not exactly. Holes are closed, which `report` then says; one
                that encloses nothing raises.
            edge_length: of the tetrahedra to aim at [m]; None leaves it to the mesher.
        """
        from tangere.shape.tets.files import fill_with_tets

        vertices, tets, notes = fill_with_tets(mesh, edge_length)
        return _unpickled(vertices, tets, mesh.name, notes)

    def at(self, pose: Arrays) -> TetMesh:
        """The solid moved by an invertible affine map, shape (4, 4)."""
        matrix = to_numpy(pose, f"TetMesh {self.name!r}: pose")
        if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
            raise InputError(f"TetMesh {self.name!r}: a pose is a finite array of shape (4, 4), not {matrix.shape}")
        return _unpickled(self.vertices @ matrix[:3, :3].T + matrix[:3, 3], self.tets, self.name, self._notes)

    @cached_property
    def report(self) -> TetReport:
        """Counts and properties, and what was done to the surface that it fills."""
        bounds = np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])
        volume = float(self.volumes.sum())
        return TetReport(self.name, len(self.vertices), len(self.tets), volume, read_only(bounds), self._notes)

    @cached_property
    def volumes(self) -> np.ndarray:
        """(m,) volume of each tetrahedron [m^3]."""
        return read_only(_volumes(self.vertices, self.tets))

    @cached_property
    def edges(self) -> np.ndarray:
        """(e, 2) int32: each edge once, smaller vertex first, in lexicographic order."""
        return read_only(np.unique(np.sort(self.tets[:, _EDGES].reshape(-1, 2), axis=1), axis=0))

    @cached_property
    def surface_vertices(self) -> np.ndarray:
        """(k,) int32: the vertices on the surface, rising: vertex j of `surface` is number j of them."""
        return read_only(np.unique(self._boundary).astype(np.int32))

    @cached_property
    def surface(self) -> Mesh:
        """The triangles around the solid, outward."""
        used = self.surface_vertices
        return Mesh(self.vertices[used], np.searchsorted(used, self._boundary), name=self.name)

    def weights_at(self, points: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """What carries points along: for each the corners (n, 4) of a tetrahedron and their weights (n, 4).

        Weights add up to 1. They are negative for points outside, which should be near: others raise.

        Args:
            points: where they are while the solid is as it is here, shape (n, 3) [m].
        """
        from scipy.spatial import cKDTree

        places = to_numpy(points, f"TetMesh {self.name!r}: points")
        corners = self.vertices[self.tets]
        count = min(_TRIED, len(self.tets))
        _, near = cKDTree(corners.mean(axis=1)).query(places, k=count)
        near = np.asarray(near).reshape(len(places), count)
        sides = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)
        offsets = places[:, None] - corners[near, 0]
        weights = np.einsum("ptij,ptj->pti", np.linalg.inv(sides)[near], offsets)
        weights = np.concatenate([1.0 - weights.sum(axis=-1, keepdims=True), weights], axis=-1)
        rows = np.arange(len(places))
        best = weights.min(axis=-1).argmax(axis=1)
        chosen = weights[rows, best]
        spread = np.abs(chosen).sum(axis=1)
        if len(spread) and not spread.max() <= _TOO_FAR:
            worst = int(np.argmax(spread))
            raise InputError(f"TetMesh {self.name!r}: point {worst} at {places[worst].tolist()} is too far outside")
        return self.tets[near[rows, best]], chosen

    @cached_property
    def _boundary(self) -> np.ndarray:
        faces = self.tets[:, _FACES].reshape(-1, 3)
        _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
        if count.max() > 2:
            crowded = faces[first[np.argmax(count)]].tolist()
            raise InputError(f"TetMesh {self.name!r}: more than two tetrahedra share the face {crowded}")
        return faces[np.sort(first[count == 1])]


def _unpickled(vertices: np.ndarray, tets: np.ndarray, name: str, notes: tuple[str, ...] = ()) -> TetMesh:
    solid = TetMesh(read_only(vertices), tets, name=name)
    solid.__dict__["_notes"] = notes
    return solid


def _checked_vertices(vertices: Arrays, name: str) -> np.ndarray:
    array = to_numpy(vertices, f"TetMesh {name!r}: vertices")
    if array.ndim != 2 or array.shape[1] != 3 or not len(array):
        raise InputError(f"TetMesh {name!r}: vertices must have shape (n, 3), not {array.shape}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        worst = int(np.argmin(finite))
        raise InputError(f"TetMesh {name!r}: vertex {worst} is not finite: {array[worst].tolist()}")
    return read_only_copy(array, np.float64)


def _oriented(vertices: np.ndarray, tets: Arrays, name: str) -> dict[str, np.ndarray]:
    """The tetrahedra, turned where they have to be, and if none has their volumes."""
    array = to_numpy(tets, f"TetMesh {name!r}: tets", dtype=None)
    if array.ndim != 2 or array.shape[1] != 4 or not len(array):
        raise InputError(f"TetMesh {name!r}: tets must have shape (m, 4), not {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"TetMesh {name!r}: tets must hold whole numbers, not {array.dtype}")
    if array.min() < 0 or array.max() >= len(vertices):
        row, column = np.argwhere((array < 0) | (array >= len(vertices)))[0]
        raise InputError(
            f"TetMesh {name!r}: tetrahedron {row} uses vertex {array[row, column]}"
            f" but there are {len(vertices)} vertices"
        )
    array = array.astype(np.int32)
    volumes = _volumes(vertices, array)
    corners = vertices[array]
    edges = corners[:, _EDGES[:, 0]] - corners[:, _EDGES[:, 1]]
    longest = np.sqrt(np.einsum("mei,mei->me", edges, edges).max(axis=1))
    flat = ~(np.abs(volumes) > _FLAT * longest**3)
    if flat.any():
        raise InputError(f"TetMesh {name!r}: tetrahedron {int(np.argmax(flat))} has no volume")
    turned = volumes < 0.0
    if not turned.any():
        return {"tets": read_only(array), "volumes": read_only(volumes)}
    array[turned] = array[turned][:, [0, 2, 1, 3]]
    return {"tets": read_only(array)}


def _volumes(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    a, b, c, d = np.moveaxis(vertices[tets], 1, 0)
    return np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6.0
