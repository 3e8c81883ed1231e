"""`tangere terrain`: wheels, barrels and other bodies on height grids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import machine_options, out_folder_option, quaternion_option, width_option

if TYPE_CHECKING:
    import numpy as np

    from tangere.query.contacts import Contacts
    from tangere.scene import Scene
    from tangere.shape.analytic import Analytic
    from tangere.shape.heightfield import Heightfield

_ROWS = 20  #: contacts listed on the screen; --json lists all
_BARRELS = ["barrel", "contacts", "normals", "smallest gap"]
_WHEELS = ["question", "answers", "time", "per wheel", "wheels in 10 ms"]
_EARTH = (0.72, 0.70, 0.64)
_SHOWN = (7.0, 5.0)  #: half sides of the part of the dunes that is drawn [m]
_SUNK = 0.01  #: how deep wheels are in the sand when touching and manifolds are measured [m]


@click.group()
def terrain() -> None:
    """Wheels, barrels and other bodies on height grids."""


@terrain.command()
@out_folder_option
@click.option("--wheels", "count", default=10_000, show_default=True, type=click.IntRange(min=1), help="To be lowered.")
@width_option(560, "frame")
@click.option(
    "--view",
    "look",
    is_flag=False,
    flag_value="wheels",
    type=click.Choice(["wheels", "base", "side", "kerb"]),
    help="Show the wheels, or one of the barrels, in the browser, until Ctrl-C.",
)
@machine_options
def demo(out: Path, count: int, width: int, look: str | None, threads: int | None, device: str | None) -> None:
    """Three barrels at rest, and wheels lowered to first contact; leaves barrels.png, wheels.png and terrain.md."""
    from rich.console import Console

    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.output_folder import make_out_folder, write_report
    from tangere.cli.shared.page import open_page
    from tangere.cli.shared.tables import markdown_table, screen_table
    from tangere.runtime import choose_device, thread_count, using_threads
    from tangere.view import stacked

    check_view_extra(pillow=True, viser=look is not None)
    make_out_folder(out)
    console = Console()
    with using_threads(threads), console.status("barrels") as status:
        barrel_rows, frames, scenes = _barrels(width, device)
        stacked(frames, axis=1).save(out / "barrels.png")
        status.update(f"{count} wheels")
        wheel_rows, scenes["wheels"], shown = _wheels(count, device)
        status.update("drawing the wheels")
        _draw_wheels(scenes["wheels"], f"{shown} of {count:,}", width, device, out / "wheels.png")
        where = f"{choose_device(device).name}, {thread_count()} threads"
    console.print(screen_table("Barrels (radius 0.3 m, height 0.9 m)", _BARRELS, barrel_rows))
    sunk = f"{count:,} wheels on dunes, {1e3 * _SUNK:g} mm deep for the first two questions"
    console.print(screen_table(f"{sunk} ({where})", _WHEELS, wheel_rows))
    parts = ["# tangere terrain demo", where, markdown_table(_BARRELS, barrel_rows), f"{sunk}:"]
    write_report(out / "terrain.md", [*parts, markdown_table(_WHEELS, wheel_rows)])
    console.print(
        f"wrote {out / 'barrels.png'}, {out / 'wheels.png'} and {out / 'terrain.md'}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if look is not None:
        open_page(scenes[look], scenes[look].time_range[1])


@terrain.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--cylinder", type=float, nargs=2, metavar="R H", help="Radius and height [m]; its axis is its z axis.")
@click.option("--sphere", type=float, nargs=1, metavar="R", help="Radius [m].")
@click.option("--capsule", type=float, nargs=2, metavar="R H", help="Radius, and height without the round ends [m].")
@click.option("--cone", type=float, nargs=2, metavar="R H", help="Radius and height [m].")
@click.option("--box", type=float, nargs=3, metavar="X Y Z", help="Sides [m].")
@click.option("--poses", required=True, type=click.Path(path_type=Path), help="CSV: x,y,z,qw,qx,qy,qz of each body.")
@quaternion_option
@click.option("--spacing", type=float, nargs=2, help="dx and dy of the grid [m]; default: the file's, or 1.")
@click.option("--scale", type=float, help="Metres per unit of height in the file; default: the file's, or 1.")
@click.option("--margin", type=float, help="Gaps up to this count [m]; default: a hundredth of the radius.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture.")
@click.option("--view", "look", is_flag=True, help="Show it in the browser, until Ctrl-C.")
@machine_options
@click.pass_context
def check(
    ctx: click.Context,
    file: Path,
    poses: Path,
    quaternion: str | None,
    spacing: tuple[float, float] | None,
    scale: float | None,
    margin: float | None,
    as_json: bool,
    png: Path | None,
    look: bool,
    threads: int | None,
    device: str | None,
    **sizes: Any,
) -> None:
    """Where do bodies rest on the ground in FILE (.npy, .npz, 16-bit .png or GeoTIFF), how deep, and which way is out?

    \b
    tangere terrain check dunes.npz --cylinder 0.35 0.2 --poses wheels.csv
    Exit code: 0 free, 1 contact, 2 bad input.
    """
    import tangere as tg
    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.page import open_page
    from tangere.motion import read_poses
    from tangere.runtime import check_out_file, using_threads
    from tangere.view import picture

    check_out_file(png, "--png", ".png")
    check_view_extra(pillow=png is not None, viser=look)
    bodies = _bodies(sizes).at(read_poses(poses, quaternion)[1])
    ground = tg.Heightfield.load(file, spacing=spacing, scale=scale)
    with using_threads(threads):
        contacts = tg.manifold(bodies, ground, distance=margin, device=device)
    if png is not None:
        picture(_scene(ground, bodies, contacts), path=png)
        click.echo(f"wrote {png}", err=True)
    click.echo(json_text(_as_data(bodies, contacts))) if as_json else _print(bodies, contacts, file.name)
    if look:
        scene = _scene(ground, bodies, contacts)
        open_page(scene, scene.time_range[1])
    ctx.exit(1 if len(contacts) else 0)


def _barrels(width: int, device: str | None) -> tuple[list[list[str]], list[np.ndarray], dict[str, Scene]]:
    """Rows of the table, frames of the picture, and the scenes by name."""
    import tangere as tg
    from tangere.cli.shared.terrain_showcase import article_barrels, barrel_scene
    from tangere.view import strip

    rows, frames, scenes = [], [], {}
    for name, barrel in article_barrels().items():
        contacts = tg.manifold(barrel.body, barrel.ground, device=device)
        normals = sorted({_vector(normal, 2) for normal in contacts.normal})
        rows.append([barrel.told, str(len(contacts)), "; ".join(normals), f"{1e3 * contacts.gap.min():.3f} mm"])
        scenes[name] = barrel_scene(barrel, contacts)
        label = f"{barrel.told}: {len(contacts)} contacts"
        frames.append(strip(scenes[name], [0.0], labels=[label], size=(width, width * 4 // 5), device=device))
    return rows, frames, scenes


def _wheels(count: int, device: str | None) -> tuple[list[list[str]], Scene, int]:
    """Rows of the table, the scene to be drawn, and how many wheels are in it."""
    import numpy as np

    import tangere as tg
    from tangere.cli.shared.terrain_showcase import Lowering, wheel_scene
    from tangere.cli.shared.timing import timed
    from tangere.shape.generate import lowered_wheels

    lowering = Lowering(lowered_wheels(count))
    ground = lowering.scene.terrain
    hits, first_seconds = timed(lambda: tg.first_contact(lowering.moving, ground, device=device))
    sunk = lowering.at(hits.time, deeper=_SUNK)
    touching, touch_seconds = timed(lambda: tg.touches(sunk, ground, device=device))
    contacts, manifold_seconds = timed(lambda: tg.manifold(sunk, ground, device=device))
    rows = [
        _measured("touching", f"{int(touching.hit.sum()):,} touch", touch_seconds, count),
        _measured("manifold", f"{len(contacts):,} contacts", manifold_seconds, count),
        _measured("first contact", f"{int(np.isfinite(hits.time).sum()):,} times", first_seconds, count),
    ]
    scene, shown = wheel_scene(lowering, hits, _SHOWN, device)
    return rows, scene, shown


def _measured(question: str, answer: str, seconds: float, count: int) -> list[str]:
    from tangere.cli.shared.tables import quantity

    each = seconds / count
    return [question, answer, f"{1e3 * seconds:.1f} ms", f"{1e6 * each:.3g} us", quantity(0.01 / each)]


def _draw_wheels(scene: Scene, shown: str, width: int, device: str | None, path: Path) -> None:
    from tangere.view import strip

    labels = [f"{shown} wheels, 2 m above the dunes", "each lowered to its first contact"]
    strip(scene, [0.0, 1.0], labels=labels, size=(width * 3 // 2, width), path=path, device=device)


def _bodies(sizes: dict[str, Any]) -> Analytic:
    """The one kind of body that was asked for."""
    import tangere as tg
    from tangere.runtime import InputError

    given = [name for name, size in sizes.items() if size is not None]
    if len(given) != 1:
        told = ", ".join(f"--{name}" for name in sizes)
        raise InputError(f"say what the bodies are, by one of {told}; {len(given)} were given")
    (name,) = given
    size = sizes[name]
    if name == "box":
        return tg.Box([0.5 * side for side in size])
    if name == "sphere":
        return tg.Sphere(size)
    return {"cylinder": tg.Cylinder, "capsule": tg.Capsule, "cone": tg.Cone}[name](*size)


def _scene(ground: Heightfield, bodies: Analytic, contacts: Contacts) -> Scene:
    """The bodies, the ground around them, and marks that suit the size of a body."""
    import numpy as np

    from tangere.cli.shared.ground_patch import patch
    from tangere.scene import PALETTE, Scene, Thing, marker_radius

    mesh = Thing("bodies", bodies, PALETTE[0])
    corners = mesh.vertices(0.0)
    low, high = corners.min(axis=0)[:2], corners.max(axis=0)[:2]
    size = float(np.ptp(corners.reshape(len(bodies), -1, 3), axis=1).max())
    around = patch(ground, (low + high) / 2.0, tuple((high - low) / 2.0 + 1.5 * size))
    scene = Scene((Thing("ground", around, _EARTH), mesh), contacts, title=ground.name)
    return replace(scene, mark_size=min(1.0, 0.1 * size / marker_radius(len(contacts), scene.extent)))


def _as_data(bodies: Analytic, contacts: Contacts) -> dict[str, Any]:
    """The answer in the types of JSON."""
    from tangere.query.contacts import Kind

    columns = {name: getattr(contacts, name).tolist() for name in ("query", "point_a", "normal", "gap", "key")}
    columns["kind"] = [str(Kind(kind)) for kind in contacts.kind]
    names = ["body", "point", "normal", "gap", "key", "kind"]
    return {
        "bodies": len(bodies),
        "touching": len(set(columns["query"])),
        "contacts": [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


def _print(bodies: Analytic, contacts: Contacts, title: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    touching = len(set(contacts.query.tolist()))
    told = f"{touching} of {len(bodies)} {'touches' if touching == 1 else 'touch'}, {len(contacts)} contacts"
    console.print(f"[bold]{told if touching else 'free'}[/bold]   ({escape(title)})", highlight=False, soft_wrap=True)
    if not touching:
        return
    table = Table("body", "gap", "point", "normal")
    for row in range(min(len(contacts), _ROWS)):
        where = _vector(contacts.point_a[row], 4), _vector(contacts.normal[row], 4)
        table.add_row(str(contacts.query[row]), f"{contacts.gap[row]:.3g}", *where)
    console.print(table)
    if len(contacts) > _ROWS:
        console.print(f"… and {len(contacts) - _ROWS} more; --json lists them all")


def _vector(values: np.ndarray, digits: int) -> str:
    return " ".join(f"{value + 0.0:.{digits}f}".replace(f"-{0:.{digits}f}", f"{0:.{digits}f}") for value in values)
