"""`tangere view`: a page in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from tangere.cli.shared.options import SeveralValues, units_option


@click.command(cls=SeveralValues)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to", "ends", multiple=True, type=click.Path(path_type=Path), help="The same meshes at time 1, in order."
)
@units_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Interface to serve on; who has the printed address can open the page.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Default: 8080, or the next free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the default browser.")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture there instead of serving a page.")
@click.option("--time", type=float, help="Time to show; default: the start.")
def view(
    files: tuple[Path, ...],
    ends: tuple[Path, ...],
    units: str | None,
    host: str,
    port: int | None,
    open_browser: bool,
    png: Path | None,
    time: float | None,
) -> None:
    """Look at mesh FILES, prepared parts (.npz) among them, or at one recorded scene (.npz), until Ctrl-C."""
    from tangere.cli.shared.moving_files import load_bodies
    from tangere.runtime import InputError, check_out_file
    from tangere.scene import Scene
    from tangere.view import DEFAULT_PORT, picture, show

    check_out_file(png, "--png", ".png")
    recorded = len(files) == 1 and files[0].suffix.lower() == ".npz" and not _is_part(files[0])
    if recorded and ends:
        raise InputError(f"{files[0]}: a recorded scene knows where its things go; --to is for meshes")
    scene = Scene.load(files[0]) if recorded else Scene.of(*load_bodies(files, ends, units))
    time = scene.time_range[0] if time is None else scene.checked_time(time)
    if png is not None:
        picture(scene, time, path=png)
        click.echo(f"wrote {png}")
        return
    with show(scene, host=host, port=port, open_browser=open_browser, block=False) as viewer:
        viewer.set_time(time)
        if port is None and viewer.port != DEFAULT_PORT:
            click.echo(f"port {DEFAULT_PORT} is taken; this is port {viewer.port}", err=True)
        click.echo(f"{viewer.url} shows {scene!r}; Ctrl-C ends")
        viewer.wait()


def _is_part(path: Path) -> bool:
    """Whether an archive is a prepared part; what is neither that nor a scene is refused as a scene."""
    from tangere.bvh.prepared import PreparedPart
    from tangere.runtime import InputError

    try:
        PreparedPart.load(path)
    except InputError:
        return False
    return True
