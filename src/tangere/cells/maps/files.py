"""Cells of files: what trimesh reads is a surface, what meshio reads may be polygons or polyhedra.

Question: which vertices and cells does a file hold, and are the cells faces or volumes?
Method:   by the ending of its name; of a file that holds volumes, its faces are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from typing import Any

import numpy as np

from tangere.runtime import InputError, MissingExtraError, UnsupportedError
from tangere.shape.mesh import Mesh

_SURFACES = (".stl", ".obj", ".ply", ".off", ".glb")
_VOLUMES = {"tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
_FACES = ("triangle", "quad", "polygon")


@dataclass(frozen=True)
class ReadCells:
    """Vertices (n, 3) [m] and cells as `CellMap.from_polygons` (dimension 2) or `from_polyhedra` (3) take them."""

    dimension: int
    vertices: np.ndarray
    cells: Any


def read_cells(path: str | PathLike[str]) -> ReadCells:
    """The cells of a file: .stl, .obj, .ply, .off, .glb as a surface, anything else as meshio reads it."""
    name = fspath(path)
    if name.lower().endswith(_SURFACES):
        mesh = Mesh.load(name)
        return ReadCells(2, mesh.vertices, mesh.topology.faces)
    try:
        meshio = import_module("meshio")
    except ImportError as error:
        raise MissingExtraError("meshio", "cells") from error
    return cells_of_meshio(meshio.read(name))


def cells_of_meshio(mesh: Any) -> ReadCells:
    """The volumes of a meshio mesh if it has any, else its faces; lines and vertices are left out."""
    points = np.asarray(mesh.points, dtype=np.float64)
    if points.shape[1] == 2:
        points = np.concatenate([points, np.zeros((len(points), 1))], axis=1)
    volumes = [block for block in mesh.cells if block.type in _VOLUMES]
    faces = [block for block in mesh.cells if block.type.startswith(_FACES)]
    unknown = [b.type for b in mesh.cells if b not in volumes and b not in faces and b.type not in ("line", "vertex")]
    if unknown:
        raise UnsupportedError(f"cells of type {unknown[0]!r}; known are {', '.join([*_VOLUMES, *_FACES])}")
    if not volumes and not faces:
        raise InputError("the mesh has neither faces nor volumes")
    if len(volumes) == 1:
        return ReadCells(3, points, np.asarray(volumes[0].data))
    if volumes:
        return ReadCells(3, points, [row for b in volumes for row in b.data.tolist()])
    return ReadCells(2, points, [row for b in faces for row in b.data])
