"""Tetrahedra from files and from surfaces, through optional packages that load when they are needed."""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, needs_extra
from tangere.shape.mesh.mesh import Mesh


def read_tets(path: str | PathLike[str]) -> tuple[np.ndarray, np.ndarray, str]:
    """Vertices (n, 3) and tetrahedra (m, 4) of a file, as they are there, and a name; vertices of none are left out."""
    path = Path(fspath(path))
    if not path.is_file():
        raise InputError(f"TetMesh {path.name!r}: there is no file {str(path)!r}")
    meshio = _optional("meshio")
    try:
        content = meshio.read(path)
    except (Exception, SystemExit) as error:  # each reader fails in its own way, some by leaving the program
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"TetMesh {path.name!r}: cannot be read ({reason})") from error
    blocks = [block.data for block in content.cells if block.type == "tetra"]
    if not blocks:
        raise InputError(f"TetMesh {path.name!r}: the file contains no tetrahedra")
    tets = np.concatenate(blocks)
    used, numbers = np.unique(tets, return_inverse=True)
    return np.asarray(content.points, np.float64)[used], numbers.reshape(-1, 4), path.name


def fill_with_tets(mesh: Mesh, edge_length: float | None) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Vertices and tetrahedra of the solid inside a mesh, and in words what had to be closed.

    Where surfaces have holes, what most of the surface goes round is inside: its winding number is above a half.
    """
    pytetwild = _optional("pytetwild")
    options = {} if edge_length is None else {"edge_length_fac": edge_length / mesh.extent}
    surface = np.array(mesh.vertices), np.array(mesh.faces)  # copies: it takes no arrays that cannot be written to
    leftover = Path("__tracked_surface.stl")  # which it leaves behind
    before = leftover.exists()
    vertices, tets = pytetwild.tetrahedralize(*surface, **options)
    if not before:
        leftover.unlink(missing_ok=True)
    if not len(tets):
        reason = f"{mesh.topology.open_edge_count} of its edges have one triangle only"
        raise InputError(f"Mesh {mesh.name!r}: there is no inside to fill with tetrahedra: {reason}")
    return np.asarray(vertices, np.float64), np.asarray(tets), _closed(mesh)


def _closed(mesh: Mesh) -> tuple[str, ...]:
    """What of a surface the solid inside it has closed."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    topology, count = mesh.topology, len(mesh.vertices)
    ends = topology.edges[np.diff(topology.edge_faces.offsets) == 1]
    notes = []
    if len(ends):
        links = coo_matrix((np.ones(len(ends), bool), (ends[:, 0], ends[:, 1])), shape=(count, count))
        holes = len(np.unique(connected_components(links, directed=False)[1][ends[:, 0]]))
        notes.append(f"holes of the surface that were closed: {holes}, along {len(ends)} edges with one triangle only")
    if topology.crowded_edge_count:
        notes.append(f"edges of the surface with more than two triangles: {topology.crowded_edge_count}")
    return tuple(notes)


def _optional(package: str) -> Any:
    with needs_extra(package, "tets"):
        return import_module(package)
