"""Scenes as TOML files that people write, with meshes in files beside them or made by name.

What the keys are is said in `docs/scene-files.md` and checked in `description`; every error names the file, the body or
joint, and the key.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.dynamics.files.description import BodyShape, SceneFile, describe, generated, read_description
from tangere.runtime import InputError, TangereError, described, to_numpy, writing
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import Mesh

if TYPE_CHECKING:
    from tangere.dynamics.world import World


def read_toml(path: Path, meshes: Path | None) -> SceneFile:
    """The scene in a file.

    Args:
        meshes: the folder of the meshes; None means the one of the file.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    folder = path.parent if meshes is None else meshes
    known: dict[str, BodyShape] = {}

    def shape_of(entry: dict[str, Any], whose: str) -> BodyShape:
        key = json.dumps([entry.get(name) for name in ("mesh", "shape", "ground", "units", "scale")], default=str)
        if key not in known:
            known[key] = _shape(entry, folder, whose)
        return known[key]

    return read_description(told, shape_of, str(path))


def write_toml(world: World, path: Path) -> None:
    """A world as it is now: the file, and a folder `NAME-meshes` beside it, .ply files of meshes and .npz of ground."""
    folder = path.parent / f"{path.stem}-meshes"
    names: dict[int, str] = {}
    with writing(path):
        folder.mkdir(exist_ok=True)

    def name_of(shape: Mesh | Heightfield) -> str:
        if id(shape) not in names:
            names[id(shape)] = f"{folder.name}/{len(names)}.{'ply' if isinstance(shape, Mesh) else 'npz'}"
            shape.save(path.parent / names[id(shape)])
        return names[id(shape)]

    told = describe(world, name_of, now=True)
    tables = {key: told.pop(key, []) for key in ("material", "body", "joint")}
    lines = [f"{key} = {_value(value)}" for key, value in told.items()]
    for kind, entries in tables.items():
        for entry in entries:
            lines += ["", f"[[{kind}]]", *(f"{key} = {_value(value)}" for key, value in entry.items())]
    with writing(path):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _shape(entry: dict[str, Any], folder: Path, whose: str) -> BodyShape:
    """What a body is made of, at its size."""
    if sum(key in entry for key in ("mesh", "shape", "ground")) != 1:
        raise InputError(f"{whose}: says mesh or ground, a file, or shape, a table; one of them and not more")
    if "units" in entry and "mesh" not in entry:
        raise InputError(f"{whose}: units are of a mesh file; all else is in metres")
    if "shape" in entry:
        made = generated(entry["shape"], whose)
    else:
        key = "mesh" if "mesh" in entry else "ground"
        name = entry[key]
        if not isinstance(name, str):
            raise InputError(f"{whose}: {key} is the name of a file, not {described(name)}")
        if not (folder / name).is_file():
            raise InputError(f"{whose}: there is no {key} {str(folder / name)!r}")
        try:
            made = (
                Mesh.load(folder / name, units=entry.get("units")) if key == "mesh" else Heightfield.load(folder / name)
            )
        except TangereError as error:
            raise InputError(f"{whose}: {key}: {error}") from error
    if "scale" not in entry:
        return made
    if not isinstance(made, Mesh):
        raise InputError(f"{whose}: scale is of a mesh")
    scale = to_numpy(entry["scale"], f"{whose}: scale")
    if scale.shape not in ((), (3,)) or not np.isfinite(scale).all() or (scale == 0.0).any():
        raise InputError(f"{whose}: scale is a number or three, none of them 0, not {described(entry['scale'])}")
    return made.at(np.diag([*(scale * np.ones(3)), 1.0]))


def _value(value: Any) -> str:
    """As TOML writes it: JSON, but for infinity and tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0.0 else "-inf"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML wants escaped, too
