"""Tetrahedra from files and from closed surfaces, through optional packages that load when they are needed."""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, MissingExtraError
from tangere.shape.mesh.mesh import Mesh

__all__ = ["fill_with_tets", "read_tets"]


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


def fill_with_tets(mesh: Mesh, edge_length: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and tetrahedra of the solid inside a closed mesh."""
    pytetwild = _optional("pytetwild")
    if not mesh.topology.is_closed:
        raise InputError(f"Mesh {mesh.name!r}: only a closed mesh has an inside to fill with tetrahedra")
    options = {} if edge_length is None else {"edge_length_fac": edge_length / mesh.extent}
    vertices, tets = pytetwild.tetrahedralize(mesh.vertices, mesh.faces, **options)
    return np.asarray(vertices, np.float64), np.asarray(tets)


def _optional(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, "tets") from error
