"""Prepared parts: a mesh with its tree, recession cones and mass, so that nothing is built twice.

Question: what is built from a mesh before the first query, and how is it kept?
Method:   `PreparedPart(mesh)` builds; `save` and `load` keep everything in one file (`part_file`). Meshes from files
          bring their part along: queries take tree and cones from it.
Sound:    links between nodes are checked on loading, because a kernel that follows a wrong one would end the process.
          Boxes are believed.
Known as: a cooked (baked) collision mesh.
The thesis keeps object, hierarchy and cones in one file as well (Redon 2002, chapter 6).
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb.build import DEPTH_LIMIT
from tangere.bvh.obb.node import ObbNode
from tangere.bvh.obb.tree import PREPARED, ObbTree
from tangere.bvh.prepared.part_file import PartFile, mesh_digest, write_part
from tangere.bvh.recession.cones import RecessionCones
from tangere.runtime import InputError, read_only
from tangere.shape.mesh import MassProperties, Mesh


class PreparedPart:
    """A mesh with its tree, cones and, if a density is given, its mass; each is made or read when first asked for.

    `PreparedPart.load(path).mesh` is a `Mesh` like any other: queries find its tree and cones here instead of building
    them.

    Args:
        mesh: the part.
        cone_vectors: most recession vectors of a node.
        density: [kg/m^3]; None leaves the mass out, which an open mesh does not have.
    """

    def __init__(self, mesh: Mesh, *, cone_vectors: int = 6, density: float | None = None) -> None:
        self._file: PartFile | None = None
        self._cone_vectors = cone_vectors
        self.__dict__["mesh"] = mesh
        self._mass = None if density is None else mesh.mass_properties(density)

    @classmethod
    def load(cls, path: str | PathLike[str], *, mapped: bool = False) -> PreparedPart:
        """Open a prepared part that `save` has written; reads its header only.

        Args:
            mapped: map its arrays into memory: processes that open the same file share them. It must not be
                written to, only replaced, which `save` does.
        """
        part = cls.__new__(cls)
        file = part._file = PartFile(path, mapped=mapped)
        part._cone_vectors = int(file.header["cone_vectors"])
        part._mass = _mass_of(file.header.get("mass"))
        return part

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, .npz by custom; replaced in one go if it exists."""
        header: dict[str, Any] = {"name": self.name, "content": self.content, "cone_vectors": self.cones.most}
        if self.mass is not None:
            header["mass"] = {
                "mass": self.mass.mass,
                "volume": self.mass.volume,
                "centre": self.mass.centre.tolist(),
                "inertia": self.mass.inertia.tolist(),
            }
        arrays = {
            "vertices": self.mesh.vertices,
            "faces": self.mesh.faces,
            "nodes": self.tree.records(),
            "cone_first": self.cones.first.numpy(),
            "cone_vectors": self.cones.vectors.numpy(),
        }
        write_part(path, header, arrays)

    def __repr__(self) -> str:
        return f"PreparedPart({self.name!r}" + (")" if self._file is None else f", {self._file.path.name!r})")

    @property
    def name(self) -> str:
        """The name of the mesh."""
        return self.mesh.name if self._file is None else str(self._file.header["name"])

    @property
    def content(self) -> str:
        """What the mesh is; see `mesh_digest`."""
        return mesh_digest(self.mesh) if self._file is None else str(self._file.header["content"])

    @property
    def mass(self) -> MassProperties | None:
        """Mass properties, if a density was given."""
        return self._mass

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh; that of a file has this part in its cache."""
        file = self._opened()
        vertices, faces = (file.array(name) for name in ("vertices", "faces"))
        mesh = Mesh(read_only(vertices), read_only(faces), name=self.name)
        if mesh_digest(mesh) != self.content:
            raise file.refused("its mesh is not the one its trees were built for")
        mesh.cache[PREPARED] = self
        return mesh

    @cached_property
    def tree(self) -> ObbTree:
        """The OBB tree, on the CPU."""
        if self._file is None:
            return ObbTree.of(self.mesh, "cpu")
        nodes = self._file.array("nodes")
        if nodes.dtype != ObbNode.numpy_dtype():
            raise self._file.refused("its tree has another layout")
        damaged = self._file.refused("the links of its tree are damaged")
        depth = _checked_links(nodes["right"], nodes["triangle"], len(self.mesh.faces), damaged)
        corners = self.mesh.vertices[self.mesh.faces.ravel()]
        return ObbTree(
            wp.array(nodes, dtype=ObbNode, device="cpu", copy=False),
            wp.array(corners, dtype=wp.vec3d, device="cpu"),
            depth,
        )

    @cached_property
    def cones(self) -> RecessionCones:
        """The recession cones of `tree`, on the CPU."""
        if self._file is None:
            return RecessionCones.of(self.mesh, self.tree, most=self._cone_vectors, device="cpu")
        first, vectors = self._file.array("cone_first"), self._file.array("cone_vectors")
        if (
            first.dtype != np.int32
            or first.shape != (len(self.tree) + 1,)
            or (first[0], first[-1]) != (0, len(vectors))
            or (np.diff(first) < 0).any()
        ):
            raise self._file.refused("its cones do not belong to its tree")
        return RecessionCones(
            wp.array(first, dtype=wp.int32, device="cpu", copy=False),
            wp.array(vectors, dtype=wp.vec3d, device="cpu", copy=False),
            self._cone_vectors,
        )

    def _opened(self) -> PartFile:
        assert self._file is not None, "a part that is not from a file has its mesh"
        return self._file


def _mass_of(mass: Any) -> MassProperties | None:
    if mass is None:
        return None
    return MassProperties(mass["mass"], mass["volume"], np.array(mass["centre"]), np.array(mass["inertia"]))


def _checked_links(right: np.ndarray, triangle: np.ndarray, faces: int, wrong: InputError) -> int:
    """The depth of the tree; refuses links that do not make a binary tree in preorder over all triangles."""
    count = len(right)
    leaf = right < 0
    if count != 2 * faces - 1 or not np.array_equal(np.sort(triangle[leaf]), np.arange(faces)):
        raise wrong
    begin, end, depth = np.zeros(1, np.int64), np.full(1, count), 0
    while True:
        inner = end - begin > 1
        if (leaf[begin] == inner).any():
            raise wrong
        begin, end = begin[inner], end[inner]
        if not len(begin):
            return depth
        middle = right[begin]
        depth += 1
        if ((middle <= begin + 1) | (middle >= end)).any() or depth > DEPTH_LIMIT:
            raise wrong
        begin, end = np.concatenate([begin + 1, middle]), np.concatenate([middle, end])
