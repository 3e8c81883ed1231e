"""Assemblies from files: STEP, GLB and other scenes, URDF, folders of meshes.

Question: which parts are there, where, and what are they called?
Method:   STEP is cut into triangles by cascadio, at a tolerance, and becomes a scene; every node of a scene with a mesh
          is a part, named by the nodes above it. Vertices of equal bits are welded; parts of equal bits share a shape.
Error:    facets are within the tolerance of the solid's surface; GLB has single precision.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tangere.assembly.part import Part, triangle_digest
from tangere.motion import as_poses
from tangere.runtime import InputError, file_path, needs_extra, positive
from tangere.shape.mesh import Mesh, weld_vertices
from tangere.shape.robot import RobotDescription

#: How far facets of a STEP file may be from its surfaces, unless said [m].
TOLERANCE = 1e-5
#: Facets may be bent from one to the next by this at most [rad].
_ANGLE = 0.5
_SOLIDS = (".step", ".stp")
_SCENES = (".glb", ".gltf", ".3mf", ".dae")
_MESHES = (".stl", ".ply", ".obj", ".off")
#: A pose that is off a rotation by more than this is baked into the shape.
_NOT_RIGID = 1e-6


@dataclass(frozen=True, eq=False)
class PartsRead:
    """What a file or folder has."""

    name: str
    parts: tuple[Part, ...]
    tolerance: float | None  #: to which solids were cut into triangles [m]; None where the file has triangles


def read_parts(path: str | PathLike[str], tolerance: float | None, units: str | None) -> PartsRead:
    """The parts in a file or folder; see `Assembly.load`."""
    path = file_path(path, "an assembly")
    kind = path.suffix.lower()
    if tolerance is not None and kind not in _SOLIDS:
        raise InputError(f"Assembly {path.name!r}: tolerance is for STEP files; this one has its triangles already")
    if path.is_dir():
        return PartsRead(path.name, _folder(path, units), None)
    if not path.is_file():
        raise InputError(f"Assembly {path.name!r}: there is no file {str(path)!r}")
    if units is not None:
        raise InputError(f"Assembly {path.name!r}: says its unit; units are for folders of meshes")
    if kind in _SOLIDS:
        tolerance = TOLERANCE if tolerance is None else positive(tolerance, "tolerance")
        return PartsRead(path.stem, _step(path, tolerance), tolerance)
    if kind in _SCENES:
        return PartsRead(path.stem, _scene_parts(_scene(path, path), path), None)
    if kind == ".urdf":
        return PartsRead(path.stem, _robot(path), None)
    known = ", ".join([*_SOLIDS, *_SCENES, ".urdf"])
    raise InputError(f"Assembly {path.name!r}: known are {known}, and folders of {', '.join(_MESHES)}")


def unique_names(names: list[str]) -> list[str]:
    """The names, with a number behind those that have come before."""
    taken: set[str] = set()
    told = []
    for name in names:
        number, unique = 1, name
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        taken.add(unique)
        told.append(unique)
    return told


def _step(path: Path, tolerance: float) -> tuple[Part, ...]:
    with needs_extra("cascadio", "cad"):
        import cascadio
    with TemporaryDirectory() as folder:
        glb = Path(folder) / "parts.glb"
        # cascadio counts in millimetres, whatever the unit of the file, and writes metres.
        cascadio.step_to_glb(
            str(path),
            str(glb),
            tol_linear=1e3 * tolerance,
            tol_angular=_ANGLE,
            merge_primitives=True,
            use_parallel=False,
        )
        if not glb.is_file():
            raise InputError(f"Assembly {path.name!r}: there is no solid in it that cascadio can read")
        return _scene_parts(_scene(glb, path), path)


def _scene(file: Path, path: Path) -> Any:
    import trimesh

    try:
        with warnings.catch_warnings(action="ignore"):  # trimesh's own, about normals and colours we do not read
            options = {"merge_primitives": True} if file.suffix.lower() in (".glb", ".gltf") else {}
            return trimesh.load_scene(file, process=False, maintain_order=True, skip_materials=True, **options)
    except Exception as error:  # each of trimesh's readers fails in its own way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"Assembly {path.name!r}: cannot be read ({reason})") from error


def _scene_parts(scene: Any, path: Path) -> tuple[Part, ...]:
    """A part for every node of a scene that has triangles."""
    import trimesh

    scale = 1.0
    if path.suffix.lower() in (".3mf", ".dae") and scene.units:
        scale = trimesh.units.unit_conversion(scene.units, "meters")
    parents, shapes = scene.graph.transforms.parents, _Shapes()
    made, names, trails = [], [], []
    for node in scene.graph.nodes_geometry:
        matrix, geometry = scene.graph[node]
        mesh = scene.geometry[geometry]
        if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
            continue
        trail = [str(node)]
        while (above := parents.get(trail[0])) is not None and above != scene.graph.base_frame:
            trail.insert(0, str(above))
        trails.append([name.strip() or "part" for name in trail])
        names.append(trails[-1][-1])
        pose = np.array(matrix, np.float64)
        vertices, pose[:3, 3] = scale * np.asarray(mesh.vertices, np.float64), scale * pose[:3, 3]
        made.append(shapes.placed(vertices, np.asarray(mesh.faces), pose, names[-1]))
    if not made:
        raise InputError(f"Assembly {path.name!r}: there are no triangles in it")
    return tuple(
        Part(name, "/".join([*trail[:-1], name]), shape, pose)
        for name, trail, (shape, pose) in zip(unique_names(names), trails, made, strict=True)
    )


class _Shapes:
    """Meshes by their bits."""

    def __init__(self) -> None:
        self.known: dict[bytes, Mesh] = {}

    def placed(self, vertices: np.ndarray, faces: np.ndarray, pose: np.ndarray, name: str) -> tuple[Mesh, np.ndarray]:
        """The mesh of these triangles and its rigid pose; what is not rigid in the pose goes into the mesh."""
        off = np.abs(pose[:3, :3].T @ pose[:3, :3] - np.eye(3)).max()
        if off > _NOT_RIGID or np.linalg.det(pose[:3, :3]) < 0.0:
            mesh = Mesh(vertices, faces, name=name).at(pose)
            vertices, faces, pose = mesh.vertices, mesh.faces, np.eye(4)
        key = triangle_digest(vertices, faces)
        if key not in self.known:
            self.known[key] = Mesh(*weld_vertices(vertices, faces), name=name)
        return self.known[key], as_poses(pose, f"part {name!r}: pose")


def _folder(path: Path, units: str | None) -> tuple[Part, ...]:
    """A part for every mesh file in a folder, by name, where it is."""
    files = sorted((file for file in path.iterdir() if file.suffix.lower() in _MESHES), key=_natural)
    if not files:
        raise InputError(f"Assembly {path.name!r}: there is no {', '.join(_MESHES)} file in the folder")
    shapes, names = _Shapes(), unique_names([file.stem for file in files])
    parts = []
    for file, name in zip(files, names, strict=True):
        mesh = Mesh.load(file, units=units)
        shape, pose = shapes.placed(mesh.vertices, mesh.faces, np.eye(4), name)
        parts.append(Part(name, name, shape, pose))
    return tuple(parts)


def _natural(file: Path) -> list[Any]:
    """In the order people count: bolt_2 before bolt_10."""
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", file.name)]


def _robot(path: Path) -> tuple[Part, ...]:
    """The links of a robot that have a body, all joints at 0."""
    robot = RobotDescription.load(path)
    zeros = [0.0] * len(robot.joint_names)
    chain, shapes, parts = robot.chain(zeros, zeros), _Shapes(), []
    for number, (link, mesh) in enumerate(zip(robot.links, robot.shapes, strict=True)):
        if mesh is not None:
            shape, pose = shapes.placed(mesh.vertices, mesh.faces, chain.link(number).pose(0.0), link)
            parts.append(Part(link, f"{robot.name}/{link}", shape, pose))
    if not parts:
        raise InputError(f"Assembly {path.name!r}: no link has a body")
    return tuple(parts)
