"""Mesh files in and out through trimesh, without any repair, in metres.

Reading keeps the order of vertices and triangles of the file. Scenes become one mesh, every part where its transforms
put it. Welding merges vertices whose coordinates are equal and nothing else; the first of them keeps its place.
Writing keeps every bit in .ply and 17 decimals in .obj and .off; .stl and .glb hold single precision.
Solids of .step and .stp files are cut into triangles by cascadio (extra [cad]), in metres whatever the file's unit.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, MissingExtraError
from tangere.shape.mesh.units import METRE, MeshSource, named_unit, says_its_unit, unit_in_file

#: Files of solids, which trimesh reads only with cascadio.
_SOLIDS = (".step", ".stp")

#: The types that can be written, with what makes trimesh keep decimals and add nothing.
_OPTIONS: dict[str, dict[str, Any]] = {
    ".glb": {},
    ".obj": {"digits": 17, "include_normals": False},
    ".off": {"digits": 17},
    ".ply": {},
    ".stl": {},
}


def read_mesh(path: str | PathLike[str], units: str | None = None) -> tuple[np.ndarray, np.ndarray, MeshSource]:
    """Vertices (n, 3) [m] and triangles (m, 3) of a mesh file, as they are in the file, and what is known of its unit.

    Args:
        units: of the file's lengths, whatever it says itself; None means what it says, or metres.
    """
    import trimesh

    path = Path(fspath(path))
    told = None if units is None else named_unit(units)
    if told is not None and path.suffix.lower() in _SOLIDS:
        raise InputError(f"Mesh {path.name!r}: a STEP file says its unit and is read in metres; units cannot be told")
    if not path.is_file():
        raise InputError(f"Mesh {path.name!r}: there is no file {str(path)!r}")
    if path.suffix.lower() in _SOLIDS and find_spec("cascadio") is None:
        raise MissingExtraError("cascadio", "cad")
    try:
        with warnings.catch_warnings(action="ignore"):  # trimesh's own, about normals and colours we do not read
            # Primitives of a solid would be merged by material, of which there is none.
            apart = {"merge_primitives": False} if path.suffix.lower() in _SOLIDS else {}
            scene = trimesh.load_scene(path, process=False, maintain_order=True, skip_materials=True, **apart)
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    except Exception as error:  # each of trimesh's readers fails in its own way
        # trimesh then looks in vain for the file cascadio should have written, in a folder nobody knows
        nothing_written = path.suffix.lower() in _SOLIDS and isinstance(error, FileNotFoundError)
        reason = "there is no solid in it that cascadio can read" if nothing_written else _first_line(error)
        raise InputError(f"Mesh {path.name!r}: cannot be read as a mesh ({reason})") from error
    if not sum(len(part.faces) for part in parts):
        raise InputError(f"Mesh {path.name!r}: the file contains no triangles")
    first = np.cumsum([0] + [len(part.vertices) for part in parts[:-1]])
    own = next((part.metadata["units"] for part in scene.geometry.values() if part.metadata.get("units")), None)
    # glTF and STEP (through cascadio) are metres, whatever their makers wrote beside it
    own = unit_in_file(own) if path.suffix.lower() in (".3mf", ".dae") else None
    source = MeshSource(path.name, told or own or METRE, told is not None or says_its_unit(path.suffix))
    return (
        source.unit.to_metres(np.concatenate([np.asarray(part.vertices, np.float64) for part in parts])),
        np.concatenate([np.asarray(part.faces) + offset for part, offset in zip(parts, first, strict=True)]),
        source,
    )


def write_mesh(path: str | PathLike[str], vertices: np.ndarray, faces: np.ndarray) -> None:
    """Write a mesh file of the type its suffix names."""
    import trimesh

    path = Path(fspath(path))
    kind = path.suffix.lower()
    if kind not in _OPTIONS:
        raise InputError(f"cannot write {str(path)!r}: the known types are {', '.join(_OPTIONS)}")
    try:
        if kind == ".ply":
            path.write_bytes(_double_ply(vertices, faces))
        else:
            trimesh.Trimesh(vertices, faces, process=False).export(path, **_OPTIONS[kind])
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error


def weld_vertices(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mesh with vertices of equal coordinates merged into the first of them (-0.0 and 0.0 are equal).

    Returns the arrays themselves if there is nothing to merge.
    """
    order = np.lexsort(vertices.T)  # stable: among equals the first comes first
    ordered = vertices[order]
    opens = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    if opens.all():
        return vertices, faces
    first_of_group = order[np.flatnonzero(opens)]
    representative = np.empty(len(vertices), np.int64)
    representative[order] = first_of_group[np.cumsum(opens) - 1]
    kept = representative == np.arange(len(vertices))
    new_number = np.cumsum(kept) - 1
    return vertices[kept], new_number[representative][faces]


def _double_ply(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """A binary PLY file in double precision (trimesh writes single)."""
    header = (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {len(vertices)}\nproperty double x\nproperty double y\nproperty double z\n"
        f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    rows = np.empty(len(faces), [("count", "u1"), ("corners", "<i4", 3)])
    rows["count"], rows["corners"] = 3, faces
    return header.encode() + vertices.astype("<f8").tobytes() + rows.tobytes()


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
