"""`tangere first-contact`: when do two moving meshes, or one and itself, first touch?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import SeveralValues, machine_options, query_options, units_option

if TYPE_CHECKING:
    from tangere.query.contacts import Contacts
    from tangere.query.first_contact import FirstContact
    from tangere.scene import Scene

_ROWS = 20  #: contacts listed on the screen; --json lists all


@click.command(cls=SeveralValues)
@click.argument("meshes", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to", "ends", multiple=True, type=click.Path(path_type=Path), help="The same meshes at time 1, in order."
)
@units_option
@click.option("--all", "everything", is_flag=True, help="Every contact in the step, not only the first.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture: before, and at the contact.")
@click.option("--save", type=click.Path(path_type=Path), help="Record the scene (.npz) for `tangere view`.")
@click.option("--view", "look", is_flag=True, help="Show it in the browser, until Ctrl-C.")
@query_options
@machine_options
@click.pass_context
def first_contact(
    ctx: click.Context,
    meshes: tuple[Path, ...],
    ends: tuple[Path, ...],
    units: str | None,
    everything: bool,
    as_json: bool,
    png: Path | None,
    save: Path | None,
    look: bool,
    threads: int | None,
    device: str | None,
    **query: Any,
) -> None:
    """When do MESHES (one: with itself; two: with each other) first touch on their way to the meshes after --to?

    Every vertex goes along a straight line from time 0 to time 1; a mesh without an end file rests.

    \b
    tangere first-contact a.ply b.ply --to a2.ply b2.ply
    Exit code: 0 free, 1 contact, 2 bad input.
    """
    from rich.console import Console

    import tangere as tg
    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.moving_files import load_bodies
    from tangere.cli.shared.page import open_page
    from tangere.runtime import InputError, check_out_file, using_threads
    from tangere.scene import Scene

    if len(meshes) > 2:
        raise InputError(f"first-contact takes one or two meshes, not {len(meshes)}")
    check_out_file(png, "--png", ".png")
    check_out_file(save, "--save", ".npz")
    check_view_extra(pillow=png is not None, viser=look)
    bodies = load_bodies(meshes, ends, units)
    with using_threads(threads), Console(stderr=True).status("looking for contacts"):
        hit = tg.first_contact(*bodies, device=device, **query)
        contacts = tg.all_contacts(*bodies, device=device, **query) if everything else hit.contacts
    scene = Scene.of(*bodies, contacts=contacts, title=" and ".join(path.name for path in meshes))
    if save is not None:
        scene.save(save)
    if png is not None:
        _write_picture(hit, scene, png)
    click.echo(json_text(_as_data(hit, contacts))) if as_json else _print(hit, contacts, scene)
    if look:
        open_page(scene, hit.time)
    ctx.exit(1 if hit else 0)


def _as_data(hit: FirstContact, contacts: Contacts) -> dict[str, Any]:
    """The answer in the types of JSON."""
    from dataclasses import fields

    from tangere.query.contacts import Kind

    columns = {f.name: getattr(contacts, f.name).tolist() for f in fields(contacts)}
    columns["kind"] = [Kind(kind).name.lower() for kind in columns["kind"]]
    return {
        "status": hit.status.name.lower(),
        "time": hit.time,
        "time_upper": hit.time_upper,
        "contacts": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


def _print(hit: FirstContact, contacts: Contacts, scene: Scene) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tangere.query.contacts import Kind

    console = Console()
    upper = f", certain by {hit.time_upper:.9g}" if math.isfinite(hit.time_upper) else ""
    when = f" at t = {hit.time:.9g}{upper}" if math.isfinite(hit.time) else ""
    console.print(
        f"[bold]{hit.status.name.lower()}[/bold]{when}   ({escape(scene.title)})", highlight=False, soft_wrap=True
    )
    if not len(contacts):
        return
    table = Table("time", "features", "a", "b", "gap", "point", "normal")
    for row in range(min(len(contacts), _ROWS)):
        point, normal = (
            " ".join(f"{x: .4f}" for x in vector) for vector in (contacts.point_a[row], contacts.normal[row])
        )
        kind = Kind(contacts.kind[row]).name.lower().replace("_", "-")
        features = str(contacts.feature_a[row]), str(contacts.feature_b[row])
        table.add_row(f"{contacts.time[row]:.9g}", kind, *features, f"{contacts.gap[row]:.3g}", point, normal)
    console.print(table)
    if len(contacts) > _ROWS:
        console.print(f"… and {len(contacts) - _ROWS} more; --json lists them all")


def _write_picture(hit: FirstContact, scene: Scene, path: Path) -> None:
    from tangere.view import strip

    time = hit.time if math.isfinite(hit.time) else 1.0
    at_contact = f"t = {time:.6g}: {hit.status.name.lower()}"
    strip(scene, [0.0, time], labels=["t = 0", at_contact], size=(640, 560), path=path)
    click.echo(f"wrote {path}", err=True)
