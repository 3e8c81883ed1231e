"""Prepared parts: a mesh with its trees, recession cones and mass in one file, so that nothing is built twice.

File:   a NumPy archive (.npz, no pickle) with a JSON header: format, version, a digest of the mesh, and of every array
        its digest. Arrays are read when they are first asked for, and checked then.
Safe:   what is cut short, damaged, foreign or from a newer version is refused with the reason; links between nodes are
        checked, because a kernel that follows a wrong one would end the process. Boxes are believed: digests find
        damage, not malice. Spec: specs/redon-rigid-ccd-and-dynamics C1 (the thesis's object file with hierarchy and
        cones).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb.build import DEPTH_LIMIT
from tangere.bvh.obb.node import ObbNode
from tangere.bvh.obb.tree import PREPARED, ObbTree
from tangere.bvh.recession.cones import RecessionCones
from tangere.runtime import InputError
from tangere.shape.mesh import MassProperties, Mesh, read_only

__all__ = ["PreparedPart", "load_part", "save_part"]

FORMAT, VERSION = "tangere part", 1


def save_part(
    path: str | PathLike[str], mesh: Mesh, *, cone_vectors: int = 6, density: float | None = None
) -> PreparedPart:
    """Build what is missing of a part's tree and cones, write everything to one file, and return it as loaded.

    Args:
        path: the file, .npz by custom; replaced in one go if it exists.
        cone_vectors: most recession vectors of a node.
        density: [kg/m^3]; None leaves the mass out, which an open mesh does not have.
    """
    tree = ObbTree.of(mesh, "cpu")
    cones = RecessionCones.of(mesh, tree, most=cone_vectors, device="cpu")
    arrays = {
        "vertices": mesh.vertices,
        "faces": mesh.faces,
        "nodes": tree.records(),
        "cone_first": cones.first.numpy(),
        "cone_vectors": cones.vectors.numpy(),
    }
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": mesh.name,
        "content": mesh_digest(mesh),
        "cone_vectors": cones.most,
        "arrays": {name: _digest(array) for name, array in arrays.items()},
    }
    if density is not None:
        mass = mesh.mass_properties(density)
        header["mass"] = {
            "mass": mass.mass,
            "volume": mass.volume,
            "centre": mass.centre.tolist(),
            "inertia": mass.inertia.tolist(),
        }
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        with part.open("wb") as file:
            text = np.frombuffer(json.dumps(header).encode(), np.uint8)
            np.savez(file, header=text, **arrays)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return load_part(target)


def load_part(path: str | PathLike[str]) -> PreparedPart:
    """Open a prepared part; reads the header only."""
    return PreparedPart(path)


def mesh_digest(mesh: Mesh) -> str:
    """What a mesh is, as 64 hexadecimal digits: equal for equal vertices and triangles, whatever the name."""
    return hashlib.sha256((_digest(mesh.vertices) + _digest(mesh.faces)).encode()).hexdigest()


class PreparedPart:
    """A part from a file; everything is read when it is first asked for.

    `part.mesh` is a `Mesh` like any other: queries find its tree and cones here instead of building them.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        with self._reading("header"):
            self._header: dict[str, Any] = self._read_header()

    def __repr__(self) -> str:
        return f"PreparedPart({self.name!r}, {self.path.name!r})"

    @property
    def name(self) -> str:
        """The name of the mesh."""
        return str(self._header["name"])

    @property
    def content(self) -> str:
        """What the mesh is; see `mesh_digest`."""
        return str(self._header["content"])

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh; its cache holds this part."""
        vertices, faces = (self._array(name) for name in ("vertices", "faces"))
        mesh = Mesh(read_only(vertices), read_only(faces), name=self.name)
        if mesh_digest(mesh) != self.content:
            raise self._refused("its mesh is not the one its trees were built for")
        mesh.cache[PREPARED] = self
        return mesh

    @cached_property
    def tree(self) -> ObbTree:
        """The OBB tree, on the CPU."""
        nodes = self._array("nodes")
        if nodes.dtype != ObbNode.numpy_dtype():
            raise self._refused("its tree has another layout")
        depth = self._checked_links(nodes["right"], nodes["triangle"])
        corners = self.mesh.vertices[self.mesh.faces.ravel()]
        return ObbTree(
            wp.array(nodes, dtype=ObbNode, device="cpu"), wp.array(corners, dtype=wp.vec3d, device="cpu"), depth
        )

    @cached_property
    def cones(self) -> RecessionCones:
        """The recession cones of `tree`, on the CPU."""
        first, vectors = self._array("cone_first"), self._array("cone_vectors")
        if (
            first.dtype != np.int32
            or first.shape != (len(self.tree) + 1,)
            or (first[0], first[-1]) != (0, len(vectors))
            or (np.diff(first) < 0).any()
        ):
            raise self._refused("its cones do not belong to its tree")
        return RecessionCones(
            wp.array(first, dtype=wp.int32, device="cpu"),
            wp.array(vectors, dtype=wp.vec3d, device="cpu"),
            int(self._header["cone_vectors"]),
        )

    @property
    def mass(self) -> MassProperties | None:
        """Mass properties, if they were saved."""
        mass = self._header.get("mass")
        if mass is None:
            return None
        return MassProperties(mass["mass"], mass["volume"], np.array(mass["centre"]), np.array(mass["inertia"]))

    def _read_header(self) -> dict[str, Any]:
        with self._archive() as archive:
            if "header" not in archive:
                raise self._refused("it is not a prepared part: it has no header")
            header = json.loads(archive["header"].tobytes().decode())
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self._refused("it is not a prepared part: its header says something else")
        version = header.get("version")
        if not isinstance(version, int) or version < 1:
            raise self._refused(f"its version {version!r} makes no sense")
        if version > VERSION:
            raise self._refused(f"it has version {version}, and this tangere reads versions up to {VERSION}")
        fields = {"name": str, "content": str, "cone_vectors": int, "arrays": dict}
        missing = [name for name, kind in fields.items() if not isinstance(header.get(name), kind)]
        if missing:
            raise self._refused(f"its header lacks {', '.join(missing)}")
        return header

    def _array(self, name: str) -> np.ndarray:
        with self._reading(name), self._archive() as archive:
            if name not in archive:
                raise self._refused(f"the array {name!r} is missing")
            array = archive[name]
        if _digest(array) != self._header["arrays"].get(name):
            raise self._refused(f"the array {name!r} is damaged")
        return array

    def _archive(self) -> Any:
        archive = np.load(self.path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise self._refused("it is not a prepared part")
        return archive

    def _checked_links(self, right: np.ndarray, triangle: np.ndarray) -> int:
        """The depth of the tree; refuses links that do not make a binary tree in preorder over all triangles."""
        wrong = self._refused("the links of its tree are damaged")
        count, faces = len(right), len(self.mesh.faces)
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

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except FileNotFoundError as error:
            raise self._refused("there is no such file") from error
        except Exception as error:  # damaged archives make zipfile and NumPy raise nearly anything
            raise self._refused(f"its {what} cannot be read, the file is cut short or damaged: {error}") from error

    def _refused(self, reason: str) -> InputError:
        return InputError(f"Prepared part {self.path.name!r}: {reason}")


def _digest(array: np.ndarray) -> str:
    content = np.ascontiguousarray(array)
    words = f"{content.dtype.descr} {content.shape}".encode()
    return hashlib.sha256(words + content.tobytes()).hexdigest()
