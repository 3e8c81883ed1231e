"""A scene in the browser, until Ctrl-C."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tangere.scene import Scene


def open_page(scene: Scene, time: float) -> None:
    """Serve a page of the scene, say where, and wait; it shows `time`, or the start where that is infinite."""
    from tangere.view import show

    with show(scene, block=False) as viewer:
        if math.isfinite(time):
            viewer.set_time(time)
        click.echo(f"{viewer.url} (Ctrl-C ends)", err=True)
        viewer.wait()
