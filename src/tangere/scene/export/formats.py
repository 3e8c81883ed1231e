"""Which format a file has, and who writes it: the end of its name decides.

Pictures are drawn in the room above, which is looked up when a video is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
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
    write(Scene.around(shown), path, **given)


def check_export_file(path: str | Path) -> None:
    """Raise unless `path` can be written and its name ends in one of `FORMATS`."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a scene is written as {', '.join(FORMATS)}, so the name must end in one of these")
    check_out_file(path, "", path.suffix.lower())


def _writer(suffix: str) -> Callable[..., None]:
    """The function that writes a format; it is loaded now, because those of other formats are not needed."""
    if suffix == ".npz":
        from tangere.scene.recording import save_scene as write
    elif suffix == ".glb":
        from tangere.scene.export.glb import save_glb as write
    elif suffix == ".pvd":
        from tangere.scene.export.vtk import save_pvd as write
    elif suffix == ".vtu":
        from tangere.scene.export.vtk import save_vtu as write
    elif suffix.startswith(".usd"):
        from tangere.scene.export.usd import save_usd as write
    else:
        write = view_room().save_video
    return write
