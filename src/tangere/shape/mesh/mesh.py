"""Triangle meshes: a topology and where its vertices are.

A `Mesh` is immutable. `replace` and `at` give meshes that share the topology, and with it everything upper rooms keep
in `topology.cache`; what depends on positions lives in `mesh.cache`. Detection takes any triangles: open, non-manifold
and zero-area ones are legal and described in `report`; NaN, wrong indices and emptiness raise.
Known as: an indexed face set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from tangere.runtime import Arrays, InputError, check_kind, file_path, read_only, read_only_copy, to_numpy, view_room
from tangere.shape.mesh.files import read_mesh, weld_vertices, write_mesh
from tangere.shape.mesh.mass import MassProperties, sheet_mass_properties, solid_mass_properties
from tangere.shape.mesh.report import Report, report_on
from tangere.shape.mesh.topology import Topology
from tangere.shape.mesh.units import MeshSource
from tangere.shape.moving import Moving


class Mesh:
    """Triangles in space; immutable.

    Args:
        vertices: positions, shape (n, 3) [m]; copied unless it is a read-only float64 array.
        faces: vertex numbers of each triangle, counter-clockwise seen from outside, shape (m, 3).
        name: what to call it in errors and reports.
    """

    vertices: np.ndarray  #: (n, 3) float64 [m]
    topology: Topology  #: triangles, edges and adjacency, shared by `replace`
    name: str
    cache: dict[Any, Any]  #: what upper rooms build from these positions
    source: MeshSource | None  #: the file it was loaded from, and the unit its lengths were taken in
    _welded: int

    def __init__(self, vertices: Arrays, faces: Arrays, *, name: str = "mesh") -> None:
        positions = _checked_vertices(vertices, name)
        self._set(positions, Topology(faces, len(positions), name), name)

    def _set(
        self,
        vertices: np.ndarray,
        topology: Topology,
        name: str,
        welded: int = 0,
        source: MeshSource | None = None,
    ) -> None:
        parts = {"vertices": vertices, "topology": topology, "name": name, "cache": {}, "source": source}
        self.__dict__.update(parts, _welded=welded)

    @classmethod
    def _of(
        cls, vertices: np.ndarray, topology: Topology, name: str, welded: int, source: MeshSource | None = None
    ) -> Mesh:
        """A mesh from parts that are checked already."""
        mesh = cls.__new__(cls)
        mesh._set(vertices, topology, name, welded, source)
        return mesh

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"Mesh is immutable: use replace() instead of setting {key!r}")

    def __repr__(self) -> str:
        return f"Mesh({self.name!r}, {len(self.vertices)} vertices, {len(self.faces)} triangles)"

    def __reduce__(self):
        return _unpickled, (self.vertices, self.faces, self.name, self._welded, self.source)

    @cached_property
    def _png(self) -> bytes | None:
        return view_room().png(self)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: a small picture; None where it cannot be drawn."""
        return self._png

    def _repr_html_(self) -> str:
        """For notebooks: the same picture, and what there is to know before trusting the mesh."""
        report = self.report
        sides = " x ".join(f"{side:.4g}" for side in self.bounds[1] - self.bounds[0])
        surface = f"{'closed' if report.closed else 'open'}, {'oriented' if report.oriented else 'not oriented'}"
        facts = {"size": f"{sides} m", "surface": surface, "components": report.components}
        if report.notes:
            facts["notes"] = "; ".join(report.notes)
        return view_room().html(repr(self), facts, self._png)

    # -- in and out ---------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str], *, weld: bool = True, units: str | None = None) -> Mesh:
        """Read a mesh file (.stl, .ply, .obj, .off, .glb, …), in metres; a scene becomes one mesh.

        Args:
            path: the file.
            units: of the lengths in the file: "m", "mm", "cm", "inch" …; None means what the file says itself (.3mf,
                .dae, .glb, STEP), else metres. `report` says what was taken.
            weld: merge vertices whose coordinates are equal; `report` says how many. Nothing else is
                changed. Turn it off where two frames of one simulation must keep the topology of the file.
        """
        name = file_path(path, "a mesh file").name
        vertices, faces, source = read_mesh(path, units)
        vertices = _checked_vertices(vertices, name)
        topology = Topology(faces, len(vertices), name)
        if not weld:
            return cls._of(vertices, topology, name, 0, source)
        kept, renumbered = weld_vertices(vertices, topology.faces)
        if kept is vertices:
            return cls._of(vertices, topology, name, 0, source)
        welded = len(vertices) - len(kept)
        return cls._of(read_only(kept), Topology(renumbered, len(kept), name), name, welded, source)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a mesh file of the type the suffix names.

        Args:
            path: the file; .ply keeps every bit, .obj and .off 17 decimals, .stl and .glb single precision.
        """
        write_mesh(path, self.vertices, self.faces)

    @classmethod
    def join(cls, meshes: Sequence[Mesh], *, name: str = "mesh") -> Mesh:
        """One mesh with the vertices and triangles of all, in order; nothing is merged."""
        if not isinstance(meshes, Iterable):
            raise InputError(f"Mesh {name!r}: meshes to join must be a list of them, not {type(meshes).__name__}")
        meshes = list(meshes)
        for number, mesh in enumerate(meshes):
            check_kind(mesh, Mesh, f"Mesh {name!r}: part {number}")
        if not meshes:
            raise InputError(f"Mesh {name!r}: there are no meshes to join")
        first = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
        return cls(
            np.concatenate([mesh.vertices for mesh in meshes]),
            np.concatenate([mesh.faces + np.int32(offset) for mesh, offset in zip(meshes, first, strict=True)]),
            name=name,
        )

    # -- other positions ----------------------------------------------------------------------------------------------

    def replace(self, *, vertices: Arrays) -> Mesh:
        """The same triangles with other positions, shape (n, 3) [m]; topology and its cache are shared."""
        positions = _checked_vertices(vertices, self.name)
        if len(positions) != len(self.vertices):
            raise InputError(
                f"Mesh {self.name!r}: has {len(self.vertices)} vertices, the new positions are {len(positions)}"
            )
        return Mesh._of(positions, self.topology, self.name, self._welded, self.source)

    def at(self, pose: Arrays) -> Mesh:
        """The mesh moved by an invertible affine map, shape (4, 4); topology is shared.

        A map that mirrors turns every triangle round, so that outside stays outside; only then the topology is new.
        """
        linear, offset = _checked_pose(pose, self.name)
        moved = read_only(self.vertices @ linear.T + offset)
        if np.linalg.det(linear) > 0.0:
            return self.replace(vertices=moved)
        turned = Topology(self.faces[:, ::-1], len(moved), self.name)
        return Mesh._of(moved, turned, self.name, self._welded, self.source)

    def moving(self, motion: Any) -> Moving:
        """This mesh with a motion over t in [0, 1], as the continuous queries take it."""
        return Moving(self, motion)

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def faces(self) -> np.ndarray:
        """(m, 3) int32: vertex numbers of each triangle."""
        return self.topology.faces

    @property
    def edges(self) -> np.ndarray:
        """(e, 2) int32: each edge once, smaller vertex first, in lexicographic order."""
        return self.topology.edges

    @cached_property
    def report(self) -> Report:
        """What the mesh is made of, and what is unusual about it."""
        return report_on(self, self._welded)

    @cached_property
    def bounds(self) -> np.ndarray:
        """(2, 3): smallest and largest coordinates [m]."""
        rows = np.ascontiguousarray(self.vertices.T)  # NumPy reduces long rows 16 times as fast as short ones
        return read_only(np.stack([rows.min(axis=1), rows.max(axis=1)]))

    @cached_property
    def extent(self) -> float:
        """Length of the diagonal of the bounds [m]."""
        return float(np.linalg.norm(self.bounds[1] - self.bounds[0]))

    @cached_property
    def face_areas(self) -> np.ndarray:
        """(m,) area of each triangle [m^2]."""
        return read_only(0.5 * np.linalg.norm(self._face_crosses, axis=1))

    @cached_property
    def face_normals(self) -> np.ndarray:
        """(m, 3) unit normal of each triangle, outwards; zero where the triangle has no area."""
        return read_only(_unit(self._face_crosses))

    @cached_property
    def vertex_normals(self) -> np.ndarray:
        """(n, 3) unit normal at each vertex: face normals weighted by the angle at the vertex; zero where undefined."""
        corners = self.vertices[self.faces]
        outgoing = _unit(np.roll(corners, -1, axis=1) - corners)
        incoming = _unit(np.roll(corners, 1, axis=1) - corners)
        angles = np.arccos(np.clip(np.einsum("mci,mci->mc", outgoing, incoming), -1.0, 1.0))
        weighted = (angles[:, :, None] * self.face_normals[:, None, :]).reshape(-1, 3)
        flat, count = self.faces.ravel(), len(self.vertices)
        return read_only(_unit(np.stack([np.bincount(flat, weighted[:, k], count) for k in range(3)], axis=1)))

    def mass_properties(self, density: float = 1.0) -> MassProperties:
        """Mass, centre and inertia of the uniform solid inside the mesh, which must be closed and oriented outwards.

        Args:
            density: [kg/m^3].
        """
        return solid_mass_properties(self.vertices, self.topology, density, self.name)

    def sheet_mass_properties(self, areal_density: float = 1.0) -> MassProperties:
        """Mass, centre and inertia of a uniform sheet along the triangles; the mesh may be open.

        Args:
            areal_density: [kg/m^2], density times thickness.
        """
        return sheet_mass_properties(self.vertices, self.topology, areal_density, self.name)

    @property
    def _face_crosses(self) -> np.ndarray:
        a, b, c = np.moveaxis(self.vertices[self.faces], 1, 0)
        return np.cross(b - a, c - a)


def _unpickled(
    vertices: np.ndarray, faces: np.ndarray, name: str, welded: int, source: MeshSource | None = None
) -> Mesh:
    positions = _checked_vertices(read_only(vertices), name)
    return Mesh._of(positions, Topology(read_only(faces), len(positions), name), name, welded, source)


def _checked_vertices(vertices: Arrays, name: str) -> np.ndarray:
    array = to_numpy(vertices, f"Mesh {name!r}: vertices")
    if array.size == 0:
        raise InputError(f"Mesh {name!r}: has no vertices")
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"Mesh {name!r}: vertices must have shape (n, 3), not {array.shape}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        worst = int(np.argmin(finite))
        raise InputError(f"Mesh {name!r}: vertex {worst} is not finite: {array[worst].tolist()}")
    return read_only_copy(array, np.float64)


def _checked_pose(pose: Arrays, name: str) -> tuple[np.ndarray, np.ndarray]:
    matrix = to_numpy(pose, f"Mesh {name!r}: pose")
    if matrix.shape != (4, 4):
        raise InputError(f"Mesh {name!r}: a pose must have shape (4, 4), not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise InputError(f"Mesh {name!r}: the pose contains numbers that are not finite")
    if not np.array_equal(matrix[3], [0.0, 0.0, 0.0, 1.0]):
        raise InputError(f"Mesh {name!r}: the last row of a pose must be 0 0 0 1, not {matrix[3].tolist()}")
    if np.linalg.matrix_rank(matrix[:3, :3]) < 3:
        raise InputError(f"Mesh {name!r}: the pose cannot be inverted: it flattens the mesh")
    return matrix[:3, :3], matrix[:3, 3]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors at length one; zero stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0.0)
