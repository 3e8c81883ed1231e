"""Record and replay: a scene as one `.npz` file of plain arrays, written whole and read without pickle.

Keys: `format`, `version`, `time_range`, `title`, `mark_size`, `clock` where there is one, `camera/…`,
`contacts/<column>`, and for thing number i `i/name`, `i/colour`, `i/opacity`, `i/frame`, `i/faces`, `i/start` and,
where it moves, `i/end` (linear motion between the two). What has no mesh is recorded as the mesh that is drawn of it.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from tangere.motion import Linear
from tangere.query.contacts import Contacts
from tangere.runtime import UnsupportedError, to_numpy
from tangere.scene.camera import Camera
from tangere.scene.recorded_arrays import read_recorded, write_recorded
from tangere.scene.scene import Scene, Thing
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

FORMAT = "tangere.scene"
VERSION = 1


def save_scene(scene: Scene, path: str | Path) -> None:
    """Write `scene` to `path`; its things may rest or move linearly."""
    arrays = {"time_range": np.array(scene.time_range), "title": scene.title}
    arrays["mark_size"] = scene.mark_size
    arrays |= {} if scene.clock is None else {"clock": np.array(scene.clock, float)}
    arrays |= {f"camera/{key}": value for key, value in asdict(scene.camera).items() if value is not None}
    arrays |= {f"contacts/{f.name}": getattr(scene.contacts, f.name) for f in fields(Contacts)}
    for number, thing in enumerate(scene.things):
        arrays |= {f"{number}/{key}": value for key, value in _thing_arrays(thing).items()}
    write_recorded(path, FORMAT, VERSION, arrays)


def load_scene(path: str | Path) -> Scene:
    """The scene recorded at `path`."""
    return read_recorded(path, "a scene recording", FORMAT, [VERSION], _scene)


def _thing_arrays(thing: Thing) -> dict:
    arrays = {"name": thing.name, "colour": thing.colour, "opacity": thing.opacity, "frame": thing.frame}
    arrays |= {"faces": thing.faces, "start": to_numpy(thing.mesh.vertices, "vertices")}
    if isinstance(thing.shape, Moving):
        if not isinstance(thing.shape.motion, Linear):
            kind = type(thing.shape.motion).__name__
            raise UnsupportedError(f"Thing {thing.name!r} moves by {kind}; a recording takes rest and Linear")
        arrays["end"] = to_numpy(thing.shape.motion.end, "end")
    return arrays


def _scene(arrays: dict[str, np.ndarray]) -> Scene:
    numbers = sorted({int(key.split("/")[0]) for key in arrays if key.split("/")[0].isdigit()})
    columns = {f.name: arrays[f"contacts/{f.name}"] for f in fields(Contacts)}
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("contact columns have different lengths")
    camera = {key.removeprefix("camera/"): value.tolist() for key, value in arrays.items() if key.startswith("camera/")}
    camera = {key: tuple(value) if isinstance(value, list) else value for key, value in camera.items()}
    start, end = arrays["time_range"].tolist()
    things = tuple(_thing(arrays, number) for number in numbers)
    return Scene(
        things,
        Contacts(**columns),
        (start, end),
        Camera(**camera),
        str(arrays["title"]),
        float(arrays.get("mark_size", 1.0)),
        _clock(arrays),
    )


def _clock(arrays: dict[str, np.ndarray]) -> tuple[float, float] | None:
    if "clock" not in arrays:
        return None
    first, last = arrays["clock"].tolist()
    return first, last


def _thing(arrays: dict[str, np.ndarray], number: int) -> Thing:
    name, colour = str(arrays[f"{number}/name"]), tuple(arrays[f"{number}/colour"].tolist())
    shape: Mesh | Moving = Mesh(arrays[f"{number}/start"], arrays[f"{number}/faces"], name=name)
    if f"{number}/end" in arrays:
        shape = shape.moving(Linear(arrays[f"{number}/end"]))
    return Thing(name, shape, colour, float(arrays[f"{number}/opacity"]), arrays[f"{number}/frame"])
