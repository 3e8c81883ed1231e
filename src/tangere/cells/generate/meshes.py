"""Maps of meshes and of files: what trimesh reads is a surface, what meshio reads may be polygons or polyhedra.

Question: which vertices and cells does a file hold, and are the cells faces or volumes?
Method:   by the ending of its name; of a file that holds volumes, its faces are left out.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.runtime import InputError, MissingExtraError, UnsupportedError, check_kind
from tangere.shape.mesh import Mesh

_SURFACES = (".stl", ".obj", ".ply", ".off", ".glb")
_VOLUMES = {"tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
_FACES = ("triangle", "quad", "polygon")


def map_of_mesh(mesh: Mesh, *, device: str | wp.Device | None = None) -> CellMap:
    """The surface of a triangle mesh as a 2-map; its triangles are the cells."""
    check_kind(mesh, Mesh, "map_of_mesh: mesh")
    return CellMap.from_polygons(mesh.vertices, mesh.topology.faces, device=device)


def map_of_meshio(mesh: Any, *, device: str | wp.Device | None = None) -> CellMap:
    """The volumes of a meshio mesh if it has any, else its faces; lines and vertices are left out.

    A mesh whose faces all have z = 0 becomes a map of the plane.
    """
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
    if not volumes:
        return CellMap.from_polygons(points, [row for b in faces for row in b.data], device=device)
    cells = np.asarray(volumes[0].data) if len(volumes) == 1 else [row for b in volumes for row in b.data.tolist()]
    return CellMap.from_polyhedra(points, cells, device=device)


def map_of_file(path: str | PathLike[str], *, device: str | wp.Device | None = None) -> CellMap:
    """The map of a file: .stl, .obj, .ply, .off, .glb as a surface, anything else as meshio reads it."""
    name = fspath(path)
    if name.lower().endswith(_SURFACES):
        return map_of_mesh(Mesh.load(name), device=device)
    try:
        meshio = import_module("meshio")
    except ImportError as error:
        raise MissingExtraError("meshio", "cells") from error
    return map_of_meshio(meshio.read(name), device=device)
