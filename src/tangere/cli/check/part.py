"""`tangere check`: can a part be moved along a path, or a robot along its trajectory, without touching anything?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.check.printed import printed_time
from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import SeveralValues, machine_options, quaternion_option, units_option

if TYPE_CHECKING:
    from tangere.query.path_check import PathCheck
    from tangere.scene import Scene

_ROWS = 20  #: segments listed on the screen; --json lists all


@click.command(cls=SeveralValues)
@click.argument("part", required=False, type=click.Path(path_type=Path))
@click.option("--against", multiple=True, type=click.Path(path_type=Path), help="The obstacles.")
@click.option("--path", "poses", type=click.Path(path_type=Path), help="CSV: t,x,y,z,qw,qx,qy,qz.")
@click.option("--robot", type=click.Path(path_type=Path), help="A URDF file, in the place of PART.")
@click.option(
    "--trajectory", type=click.Path(path_type=Path), help="Of the robot: CSV of joints by name, and t; or .npy."
)
@click.option("--srdf", type=click.Path(path_type=Path), help="Pairs of the robot's links that may touch.")
@click.option("--allow", multiple=True, metavar="A,B", help="Two bodies that may touch, too; files by their names.")
@click.option("--clearance", type=float, help="Of the robot: certify how near bodies come, up to this [m].")
@quaternion_option
@units_option
@click.option("--separation", type=float, default=0.0, show_default=True, help="Distance that counts as contact [m].")
@click.option("--tolerance", type=float, help="How early the time may be, as a length [m].")
@click.option("--leaving", is_flag=True, help="The part is mounted in contact: ignore contacts in its skin.")
@click.option("--skin", type=float, help="With --leaving: depth of the contacts to ignore [m]; else by the facets.")
@click.option("--instants", default=4, show_default=True, type=click.IntRange(min=1), help="Clearances per segment.")
@click.option("--accuracy", default=0.1, show_default=True, help="Of the certified least clearance, as a share of it.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture: start, contact and end of the path.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a plot of the clearance over time (.png).")
@click.option("--out", type=click.Path(path_type=Path), help="Write the whole path as .glb, .usd, .pvd, .mp4, .gif, …")
@click.option("--view", "look", is_flag=True, help="Show it in the browser with a time slider, until Ctrl-C.")
@machine_options
@click.pass_context
def check(
    ctx: click.Context,
    part: Path | None,
    against: tuple[Path, ...],
    poses: Path | None,
    robot: Path | None,
    trajectory: Path | None,
    srdf: Path | None,
    allow: tuple[str, ...],
    clearance: float | None,
    quaternion: str | None,
    units: str | None,
    separation: float,
    tolerance: float | None,
    leaving: bool,
    skin: float | None,
    instants: int,
    accuracy: float,
    as_json: bool,
    png: Path | None,
    plot: Path | None,
    out: Path | None,
    look: bool,
    threads: int | None,
    device: str | None,
) -> None:
    """Move PART along a path past the obstacles: where does it first touch, and how much clearance is there?

    The path is a CSV file of poses; between two of them the part moves by a screw. With --robot and --trajectory: all
    links of a robot against each other and the obstacles, every joint at a constant rate between two rows.

    \b
    tangere check part.stl --against door.stl body.glb --path poses.csv
    tangere check --robot ur5.urdf --srdf ur5.srdf --trajectory q.csv --against table.stl
    Exit code: 0 free, 1 contact, 2 bad input.
    """
    if robot is not None:
        from tangere.cli.check.robot_trajectory import RobotQuestion, check_robot

        _refuse_with_robot(ctx)
        if trajectory is None:
            raise click.UsageError("--robot goes with --trajectory")
        chosen = 0.5 if ctx.get_parameter_source("accuracy") == click.core.ParameterSource.DEFAULT else accuracy
        asked = RobotQuestion(
            robot, trajectory, srdf, allow, against, units, separation, tolerance, clearance, chosen,
            as_json, png, out, look, threads, device,
        )  # fmt: skip
        ctx.exit(1 if check_robot(asked) else 0)
    for name, given in (("--trajectory", trajectory), ("--srdf", srdf), ("--allow", allow), ("--clearance", clearance)):
        if given:
            raise click.UsageError(f"{name} goes with --robot")
    if part is None or poses is None or not against:
        raise click.UsageError("a part goes with --path and --against, a robot with --robot and --trajectory")

    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    import tangere as tg
    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.mesh_files import load_mesh, tell_doubted_units
    from tangere.cli.shared.page import open_page
    from tangere.runtime import check_out_file
    from tangere.scene import Scene
    from tangere.scene.export import check_export_file, export

    check_out_file(png, "--png", ".png")
    check_out_file(plot, "--plot", ".png")
    if out is not None:
        check_export_file(out)
    check_view_extra(pillow=png is not None, matplotlib=plot is not None, viser=look)
    path = tg.Path.load(poses, quaternion=quaternion)
    body, obstacles = load_mesh(part, units), [load_mesh(file, units) for file in against]
    tell_doubted_units([body, *obstacles])
    found = tg.check_path(
        body,
        obstacles,
        path,
        start="leaving" if leaving else "checked",
        skin=skin,
        separation=separation,
        tolerance=tolerance,
        instants=instants,
        accuracy=accuracy,
        progress=True,
        device=device,
        threads=threads,
    )
    title = f"{part.name} along {poses.name}"
    scene = Scene.of(body.moving(path), *obstacles, contacts=found.contacts, title=title, clock=path.clock)
    scene = scene.with_glass(*(thing.name for thing in scene.things[1:]))
    if png is not None:
        _write_picture(found, scene, png)
    if plot is not None:
        _write_plot(found, scene, plot)
    if out is not None:
        with Progress(console=Console(stderr=True), transient=True) as bar:
            bar.add_task(f"writing {escape(out.name)}", total=None)  # a video takes a minute or two
            export(scene, out)
        click.echo(f"wrote {out}", err=True)
    names = [file.name for file in against]
    click.echo(json_text(_as_data(found, names, scene))) if as_json else _print(found, names, scene)
    if look:
        open_page(scene, found.time)
    ctx.exit(1 if found else 0)


def _refuse_with_robot(ctx: click.Context) -> None:
    """Raise if something was given that is about a part on a path."""
    for name in ("part", "poses", "quaternion", "leaving", "skin", "instants", "plot"):
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            option = {"part": "PART", "poses": "--path"}.get(name, f"--{name}")
            raise click.UsageError(f"{option} does not go with --robot")


def _shown(scene: Scene, time: float, digits: int = 6, *, down: bool = False) -> str:
    """A time of the path, in [0, 1], as its file has it."""
    return printed_time(scene, scene.on_clock(time), digits, down=down)


def _least_time(found: PathCheck) -> float:
    """When the clearance is least: the time of the contact where that made it so, which is certain a little later."""
    at = found.clearance.least_time
    return found.time if found.time <= at <= found.time_upper else at


def _as_data(found: PathCheck, names: list[str], scene: Scene) -> dict[str, Any]:
    """The answer in the types of JSON; times are those of the file."""
    from tangere.query.contacts import Kind, Status

    starts = scene.on_clock(found.path.times)
    contacts = found.contacts
    return {
        "status": found.status.name.lower(),
        "time": scene.on_clock(found.time),
        "time_upper": scene.on_clock(found.time_upper),
        "pose": found.pose.tolist(),
        "segments": [
            {
                "from": float(starts[k]),
                "to": float(starts[k + 1]),
                "status": Status(int(status)).name.lower(),
                "time": scene.on_clock(float(found.segment_time[k])),
                "obstacle": names[found.segment_obstacle[k]] if found.segment_obstacle[k] >= 0 else None,
            }
            for k, status in enumerate(found.segment_status)
        ],
        "contacts": [
            {
                "kind": Kind(contacts.kind[row]).name.lower(),
                "point": contacts.point_b[row].tolist(),
                "normal": contacts.normal[row].tolist(),
                "gap": float(contacts.gap[row]),
                "obstacle": names[contacts.body_b[row]],
            }
            for row in range(len(contacts))
        ],
        "skin": None if found.skin is None else {"depth": found.skin.depth, "deepest": found.skin.deepest},
        "clearance": {
            "least": found.clearance.least,
            "least_time": scene.on_clock(_least_time(found)),
            "certain": found.clearance.certain,
            "time": scene.on_clock(found.clearance.time).tolist(),
            "lower": found.clearance.lower.tolist(),
            "upper": found.clearance.upper.tolist(),
            "obstacle": [names[k] for k in found.clearance.obstacle],
        },
    }


def _print(found: PathCheck, names: list[str], scene: Scene) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tangere.query.contacts import Status
    from tangere.runtime import text_below

    console = Console()
    verdict = found.status.name.lower()
    if found.skin is not None:
        verdict += f" but for {found.skin}" if not found else f", deeper than {found.skin}"
    if found.obstacle is not None:
        verdict += f" at t = {_shown(scene, found.time, 9, down=True)} with {names[found.obstacle]}"
    console.print(f"[bold]{escape(verdict)}[/bold]   ({escape(scene.title)})", highlight=False, soft_wrap=True)
    clearance = found.clearance
    obstacle = names[clearance.obstacle[clearance.upper.argmin()]]
    at = _shown(scene, _least_time(found), down=bool(found))
    certain = "" if found else f"; certainly {text_below(clearance.certain)} m all the way"
    console.print(
        f"clearance: {clearance.least:.6g} m at t = {at} ({obstacle}){certain}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    touching = [k for k, status in enumerate(found.segment_status) if status != Status.FREE]
    if not touching:
        return
    table = Table("segment", "from", "to", "verdict", "at", "obstacle")
    for k in touching[:_ROWS]:
        begin, end = (_shown(scene, time) for time in found.path.times[k : k + 2])
        at = _shown(scene, found.segment_time[k], down=True)
        status = Status(int(found.segment_status[k])).name.lower()
        table.add_row(str(k), begin, end, status, at, escape(names[found.segment_obstacle[k]]))
    console.print(table)
    free = len(found.segment_status) - len(touching)
    more = f"; {len(touching) - _ROWS} more touch, --json lists them" if len(touching) > _ROWS else ""
    console.print(
        f"{free} of {len(found.segment_status)} segments are free{more}", highlight=False, markup=False, soft_wrap=True
    )


def _write_picture(found: PathCheck, scene: Scene, path: Path) -> None:
    from tangere.view import strip

    middle = found.time if math.isfinite(found.time) else 0.5
    label = f"t = {_shown(scene, middle, down=True)}: {found.status.name.lower()}"
    labels = [f"t = {_shown(scene, 0.0)}", label, f"t = {_shown(scene, 1.0)}"]
    strip(scene, [0.0, middle, 1.0], labels=labels, size=(560, 520), path=path)
    click.echo(f"wrote {path}", err=True)


def _write_plot(found: PathCheck, scene: Scene, path: Path) -> None:
    import numpy as np

    from tangere.view import plot_lines

    times = scene.on_clock(found.clearance.time)
    series = {
        "measured": (times.tolist(), found.clearance.upper.tolist()),
        # Steps: what is certain between two instants says nothing of the next two.
        "certain between two measurements": (
            np.repeat(times, 2)[1:-1].tolist(),
            np.repeat(found.clearance.between, 2).tolist(),
        ),
    }
    if found:
        row = int((found.clearance.time == found.time).argmax())
        series["first contact"] = ([float(times[row])], [float(found.clearance.upper[row])])
    plot_lines(
        path,
        series,
        title=f"Clearance along the path: {found.status.name.lower()}",
        x_label="t",
        y_label="distance to the nearest obstacle [m]",
    )
    click.echo(f"wrote {path}", err=True)
