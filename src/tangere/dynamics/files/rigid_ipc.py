"""Scenes of the Rigid-IPC project: JSON files that name meshes.

Format (Ferguson et al. 2021, "Intersection-free Rigid Body Dynamics"): `rigid_body_problem` has `gravity`,
`coefficient_friction`, `coefficient_restitution` (-1 means 0) and `rigid_bodies`; each has a `mesh`, or `vertices` and
`faces` of its own, `position`, `rotation` (degrees, about x, then y, then z), `scale` or `dimensions` (the box of the
mesh is stretched to it), `linear_velocity`, `angular_velocity` (degrees per second), `force`, `torque`, `density`,
`is_dof_fixed` (one truth value or six), `type` (static, kinematic, dynamic), `enabled` and `group_id`. Beside it stand
`timestep`, `max_time` or `max_iterations` (a number of steps; of both, what is not above 0 says nothing), and
`minimum_separation_distance` among the settings of the barrier. For how long a kinematic body is driven, and along
which poses, is not followed: a warning tells so.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.files.description import SceneFile, turned_by_degrees
from tangere.runtime import InputError, described, to_numpy
from tangere.shape.mesh import Mesh

#: What is known of kinematic bodies and not followed.
NOT_FOLLOWED = ("kinematic_max_time", "kinematic_poses")


def read_rigid_ipc(path: Path, meshes: Path | None) -> SceneFile:
    """The scene in a file.

    Args:
        meshes: the folder of the meshes; None means the folder `meshes` beside the folder `fixtures` the file is in,
            or else beside the file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: is not JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: has too many brackets within each other") from error
    problem = data.get("rigid_body_problem") if isinstance(data, dict) else None
    if not isinstance(problem, dict) or not isinstance(problem.get("rigid_bodies"), list):
        raise InputError(f"{path}: has no rigid_body_problem with rigid_bodies")
    folder = _mesh_folder(path) if meshes is None else meshes
    dt = _number(data, "timestep", 0.01, path)
    known: dict[Any, Mesh] = {}
    bodies = [
        _body(entry, number, folder, known, path)
        for number, entry in enumerate(problem["rigid_bodies"])
        if _enabled(entry, f"{path}: rigid_bodies[{number}]")
    ]
    names = [body.name for body in bodies]
    options: dict[str, Any] = {
        "bodies": _with_own_names(bodies, names),
        "dt": dt,
        "gravity": _vector(problem, "gravity", (0.0, 0.0, 0.0), str(path)),
        "friction": max(_number(problem, "coefficient_friction", 0.0, path), 0.0),
        "restitution": max(_number(problem, "coefficient_restitution", 0.0, path), 0.0),
    }
    barrier = data.get("distance_barrier_constraint", {})
    if not isinstance(barrier, dict):
        raise InputError(f"{path}: distance_barrier_constraint must be an object, not {described(barrier)}")
    if "minimum_separation_distance" in barrier:
        separation = _number(barrier, "minimum_separation_distance", 0.0, path)
        options["separation"] = separation if separation > 0.0 else None
    steps, seconds = int(_number(data, "max_iterations", 0.0, path)), _number(data, "max_time", 0.0, path)
    if steps > 0:
        return SceneFile(options, steps)
    return SceneFile(options, seconds=seconds if seconds > 0.0 else None)


def _mesh_folder(path: Path) -> Path:
    for above in path.resolve().parents:
        if above.name == "fixtures" and (above.parent / "meshes").is_dir():
            return above.parent / "meshes"
    beside = path.parent / "meshes"
    return beside if beside.is_dir() else path.parent


def _body(entry: Any, number: int, folder: Path, known: dict[Any, Mesh], path: Path) -> Body:
    where = f"{path}: rigid_bodies[{number}]"
    named = entry.get("mesh") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not (isinstance(named, str) or (named is None and "vertices" in entry)):
        raise InputError(f"{where}: names no mesh")
    for key in NOT_FOLLOWED:
        if entry.get(key):
            warnings.warn(f"{where}: {key} is not followed; the body is driven at its velocity", stacklevel=2)
    mesh = _mesh(entry, folder, known, where)
    pose = np.eye(4)
    pose[:3, :3] = turned_by_degrees(_vector(entry, "rotation", (0.0, 0.0, 0.0), where))
    pose[:3, 3] = _vector(entry, "position", (0.0, 0.0, 0.0), where)
    held = _held(entry, where)
    kind = entry.get("type", "dynamic")
    if kind not in ("static", "kinematic", "dynamic"):
        raise InputError(f"{where}: type is static, kinematic or dynamic, not {described(kind)}")
    velocity = _vector(entry, "linear_velocity", (0.0, 0.0, 0.0), where)
    spin = np.radians(_vector(entry, "angular_velocity", (0.0, 0.0, 0.0), where))
    options: dict[str, Any] = {"fixed": held}
    if kind == "static":
        options = {"fixed": True}
    elif kind == "kinematic":
        velocity, spin = np.where(held[:3], 0.0, velocity), np.where(held[3:], 0.0, spin)
        options = {"driven": True}
        if _closed(mesh):
            options["centre"] = mesh.mass_properties().centre
    return Body(
        mesh,
        pose,
        density=_number(entry, "density", 1000.0, where),
        velocity=velocity,
        spin=spin,
        force=_vector(entry, "force", (0.0, 0.0, 0.0), where),
        torque=_vector(entry, "torque", (0.0, 0.0, 0.0), where),
        group=_group(entry, where),
        name=Path(entry.get("mesh") or f"body {number}").stem,
        **options,
    )


def _closed(mesh: Mesh) -> bool:
    topology = mesh.topology
    return not (topology.open_edge_count or topology.crowded_edge_count) and topology.is_oriented


def _mesh(entry: dict[str, Any], folder: Path, known: dict[Any, Mesh], where: str) -> Mesh:
    """The mesh of a body at its size; equal ones are one mesh."""
    scale = entry.get("scale", 1.0)
    size = entry.get("dimensions")
    told = entry.get("mesh") or repr((entry.get("vertices"), entry.get("faces")))
    key = told, repr(scale), repr(size)
    if key in known:
        return known[key]
    plain = known.get(told)
    if plain is None:
        plain = known[told] = _plain_mesh(entry, folder, where)
    factors = np.ones(3) * _three_or_one(scale, f"{where}: scale")
    if size is not None:
        wanted = np.ones(3) * _three_or_one(size, f"{where}: dimensions")
        box = np.ptp(plain.bounds, axis=0)
        factors = factors * np.where((wanted == 0.0) | (box == 0.0), 1.0, wanted / np.where(box == 0.0, 1.0, box))
    flat = factors == 0.0
    if flat.any() and (np.ptp(plain.bounds, axis=0)[flat] > 0.0).any():
        raise InputError(f"{where}: scale 0 flattens the mesh")
    known[key] = plain.at(np.diag([*np.where(flat, 1.0, factors), 1.0]))
    return known[key]


def _plain_mesh(entry: dict[str, Any], folder: Path, where: str) -> Mesh:
    """The mesh of a body as its file, or the entry itself, has it."""
    if entry.get("mesh"):
        file = folder / entry["mesh"]
        if not file.is_file():
            raise InputError(f"{where}: there is no mesh {str(file)!r}; say with meshes= where they are")
        return Mesh.load(file)
    try:
        return Mesh(to_numpy(entry["vertices"], "vertices"), _faces(entry.get("faces", [])))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _faces(given: Any) -> np.ndarray:
    """Corners of triangles, which are whole numbers."""
    faces = to_numpy(given, "faces")
    rows = [row for row in given if isinstance(row, list)] if isinstance(given, list) else []
    truths = any(isinstance(corner, bool) for row in rows for corner in row)
    if truths or not (np.isfinite(faces) & (faces == np.floor(faces)) & (np.abs(faces) < 2.0**53)).all():
        raise InputError("faces must be whole numbers")
    return faces.astype(np.int64)


def _enabled(entry: Any, where: str) -> bool:
    given = entry.get("enabled", True) if isinstance(entry, dict) else True
    if not isinstance(given, bool):
        raise InputError(f"{where}: enabled is true or false, not {described(given)}")
    return given


def _group(entry: dict[str, Any], where: str) -> int | None:
    given = entry.get("group_id")
    if given is None:
        return None
    if isinstance(given, bool) or not (isinstance(given, int) or (isinstance(given, float) and given.is_integer())):
        raise InputError(f"{where}: group_id must be a whole number, not {described(given)}")
    return int(given) if given >= 0 else None


def _held(entry: dict[str, Any], where: str) -> np.ndarray:
    given = entry.get("is_dof_fixed", False)
    values = given if isinstance(given, list) else 6 * [given]
    if len(values) != 6 or not all(isinstance(value, bool) for value in values):
        raise InputError(f"{where}: is_dof_fixed is a truth value or six of them, not {described(given)}")
    return np.array(values)


def _three_or_one(given: Any, what: str) -> np.ndarray:
    array = to_numpy(given, what)
    if array.shape not in ((), (1,), (3,)) or not np.isfinite(array).all():
        raise InputError(f"{what} must be a number or three, not {described(given)}")
    return array


def _vector(entry: dict[str, Any], key: str, default: tuple[float, ...], where: str) -> np.ndarray:
    given = entry.get(key, default)
    array = to_numpy(given, f"{where}: {key}")
    if array.shape != (3,) or not np.isfinite(array).all():
        raise InputError(f"{where}: {key} must be three finite numbers, not {described(given)}")
    return array


def _number(entry: dict[str, Any], key: str, default: float, where: Any) -> float:
    given = entry.get(key, default)
    try:
        value = math.nan if isinstance(given, bool) or not isinstance(given, int | float) else float(given)
    except OverflowError:  # a whole number that no float has
        value = math.inf
    if not math.isfinite(value):
        raise InputError(f"{where}: {key} must be a finite number, not {described(given)}")
    return value


def _with_own_names(bodies: list[Body], names: list[str]) -> list[Body]:
    """Bodies of the same mesh are numbered."""
    seen: dict[str, int] = {}
    for body, name in zip(bodies, names, strict=True):
        if names.count(name) > 1:
            seen[name] = seen.get(name, 0) + 1
            object.__setattr__(body, "name", f"{name} {seen[name]}")
    return bodies
