"""Which format a file has, and who writes it: the end of its name decides.

Pictures are drawn in the room above, which is looked up by name when a video is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tangere.runtime import InputError, check_out_file, view_room
from tangere.scene.scene import Drawable, Scene

#: Ends of names, and what can be written under them.
FORMATS = {
    ".npz": "everything, to be loaded again",
    ".glb": "animated glTF",
    ".usd": "USD",
    ".usda": "USD as text",
    ".usdc": "USD, compact",
    ".pvd": "a series for ParaView, in a folder",
    ".vtu": "the start for ParaView",
    ".gif": "a video that every page shows",
    ".mp4": "a video",
}
_HOMES = {
    ".npz": ("tangere.scene.recording", "save_scene"),
    ".glb": ("tangere.scene.export.glb", "save_glb"),
    ".usd": ("tangere.scene.export.usd", "save_usd"),
    ".usda": ("tangere.scene.export.usd", "save_usd"),
    ".usdc": ("tangere.scene.export.usd", "save_usd"),
    ".pvd": ("tangere.scene.export.vtk", "save_pvd"),
    ".vtu": ("tangere.scene.export.vtk", "save_vtu"),
}


def export(shown: Scene | Drawable | Any, path: str | Path, **options: Any) -> None:
    """Write what is shown to `path`, in the format that its name ends in.

    Args:
        shown: a scene, a body, or what has a `scene()` of its own, such as a recorded run.
        path: a file in a folder that exists; `FORMATS` lists the ends of names.
        options: those of the format that are not None: `frames`, `seconds`, and for videos `size`.
    """
    path = Path(path)
    check_export_file(path)
    suffix = path.suffix.lower()
    write = _writer(suffix)
    given = {name: value for name, value in options.items() if value is not None}
    strange = next((name for name in given if name not in inspect.signature(write).parameters), None)
    if strange is not None:
        raise InputError(f"{path}: {strange} means nothing for {suffix} files")
    scene = shown.scene() if callable(getattr(shown, "scene", None)) else shown
    write(Scene.around(scene), path, **given)


def check_export_file(path: str | Path) -> None:
    """Raise unless `path` can be written and its name ends in one of `FORMATS`."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a scene is written as {', '.join(FORMATS)}, so the name must end in one of these")
    check_out_file(path, "", path.suffix.lower())


def _writer(suffix: str) -> Callable[..., None]:
    if suffix not in _HOMES:
        return view_room().save_video
    module, name = _HOMES[suffix]
    return getattr(import_module(module), name)
