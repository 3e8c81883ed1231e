"""`tangere view`: a page in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from tangere.cli.several_values import SeveralValues

__all__ = ["view"]


@click.command(cls=SeveralValues)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to", "ends", multiple=True, type=click.Path(path_type=Path), help="The same meshes at time 1, in order."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Interface to serve on; the page has no password.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(1, 65535))
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the default browser.")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture there instead of serving a page.")
@click.option("--time", default=0.0, show_default=True, help="Time of the picture.")
def view(
    files: tuple[Path, ...],
    ends: tuple[Path, ...],
    host: str,
    port: int,
    open_browser: bool,
    png: Path | None,
    time: float,
) -> None:
    """Look at mesh FILES, or at one recorded scene (.npz), until Ctrl-C."""
    from tangere.cli.moving_files import load_bodies
    from tangere.runtime import InputError
    from tangere.scene import Scene
    from tangere.view import picture
    from tangere.view import view as serve

    recorded = len(files) == 1 and files[0].suffix == ".npz"
    if recorded and ends:
        raise InputError(f"{files[0]}: a recorded scene knows where its things go; --to is for meshes")
    scene = Scene.load(files[0]) if recorded else Scene.of(*load_bodies(files, ends))
    if png is not None:
        picture(scene, time, path=png)
        click.echo(f"wrote {png}")
        return
    with serve(scene, host=host, port=port, open_browser=open_browser, block=False) as viewer:
        click.echo(f"{viewer.url} shows {scene!r}; Ctrl-C ends")
        viewer.wait()
