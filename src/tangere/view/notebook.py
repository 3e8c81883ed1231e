"""Notebooks: what results show of themselves, and pages inside a cell.

`png` and `html` are for `_repr_png_` and `_repr_html_` of results in every room, which find this one by
`tangere.runtime.view_room`. Where a picture cannot be drawn there is none, and the notebook shows the text it has.
"""

from __future__ import annotations

import base64
import sys
from collections import deque
from collections.abc import Mapping
from html import escape
from typing import Any

from tangere.runtime import TangereError
from tangere.scene import Drawable, Scene
from tangere.view.pictures import Picture, picture

_MOST_TRIANGLES = 2_000_000  #: more take too long for a picture that nobody asked for
_MOST_PAGES = 8  #: inside cells; the oldest is closed when there is one more
_PAGES: deque[Any] = deque()


def png(
    shown: Scene | Drawable | Any, time: float | None = None, *, size: tuple[int, int] = (480, 360)
) -> bytes | None:
    """A picture as the bytes of a PNG file; None where it cannot be drawn.

    Args:
        shown: a scene, a body, a picture, or what has a `scene()` of its own.
        time: in the scene's time range; None means the first contact, or the start.
    """
    if isinstance(shown, Picture):
        return shown._repr_png_()
    try:
        scene = Scene.around(shown)
        if sum(len(thing.faces) for thing in scene.things) > _MOST_TRIANGLES:
            return None
        return picture(scene, _interesting(scene) if time is None else time, size=size)._repr_png_()
    except TangereError:
        return None


def html(title: str, facts: Mapping[str, Any] | None = None, image: bytes | None = None) -> str:
    """A title, a table of facts, and a picture beside it.

    Args:
        facts: what is said in two columns.
        image: bytes of a PNG file, as `png` gives them.
    """
    cell = "text-align:left;padding:1px 12px 1px 0"
    rows = "".join(
        f'<tr><td style="{cell};opacity:.7">{escape(str(name))}</td><td style="{cell}">{escape(str(value))}</td></tr>'
        for name, value in (facts or {}).items()
    )
    table = f'<table style="margin:0">{rows}</table>' if rows else ""
    shown = f'<img alt="" src="data:image/png;base64,{base64.b64encode(image).decode()}">' if image else ""
    return f'<div><div style="font-weight:600">{escape(title)}</div>{table}{shown}</div>'


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook, where nothing may wait for Ctrl-C."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def show_inline(viewer: Any, height: int) -> None:
    """Put the page of a viewer into the cell that runs."""
    from IPython.display import HTML, display

    style = "border:1px solid #ddd;border-radius:4px"
    frame = f'<iframe src="{viewer.url}" width="100%" height="{height}" style="{style}" referrerpolicy="no-referrer">'
    display(HTML(f"<div>{frame}</iframe></div>"))
    _PAGES.append(viewer)
    while len(_PAGES) > _MOST_PAGES:
        _PAGES.popleft().close()


def _interesting(scene: Scene) -> float:
    start, end = scene.time_range
    times = scene.contacts.time[scene.contacts.time <= end]
    return min(max(float(times.min(initial=end)), start), end) if len(times) else start
