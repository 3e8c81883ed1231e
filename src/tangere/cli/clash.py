"""`tangere clash`: which parts of an assembly clash, how, and how deep?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import machine_options, units_option

if TYPE_CHECKING:
    from tangere.assembly import Assembly, Clashes, Removals

_ROWS = 40  #: clashes listed on the screen; --json lists all


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--clearance", type=float, default=0.0, show_default=True, help="Parts nearer than this are near [m].")
@click.option("--skin", type=float, help="Parts no deeper in each other only touch [m]; else by the facets.")
@click.option("--tolerance", type=float, help="Of STEP files: how far facets may be from surfaces [m]; else 1e-5.")
@units_option
@click.option("--allow", multiple=True, nargs=2, metavar="A B", help="Two parts that may clash; may be repeated.")
@click.option("--depth/--no-depth", default=True, show_default=True, help="How deep hard clashes are, and a way out.")
@click.option("--accuracy", default=0.05, show_default=True, help="Of the depth, as a share of it.")
@click.option("--removal", metavar="PART", help="Also: which ways does this part, or assembly within it, come out?")
@click.option("--directions", type=click.Choice(["6", "26"]), default="6", show_default=True, help="With --removal.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture of the worst clashes.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page of all clashes, with a picture of each.")
@machine_options
@click.pass_context
def clash(
    ctx: click.Context,
    file: Path,
    clearance: float,
    skin: float | None,
    tolerance: float | None,
    units: str | None,
    allow: tuple[tuple[str, str], ...],
    depth: bool,
    accuracy: float,
    removal: str | None,
    directions: str,
    as_json: bool,
    png: Path | None,
    html: Path | None,
    threads: int | None,
    device: str | None,
) -> None:
    """Find the parts of FILE that clash: duplicate, inside, hard, touching, near.

    FILE is a STEP file, a .glb, .3mf, .dae or .urdf file, or a folder of .stl, .ply, .obj or .off files.

    \b
    tangere clash gearbox.step --clearance 0.5e-3 --html clashes.html
    tangere clash parts/ --units mm --removal bolt_1
    Exit code: 0 nothing but touching, 1 clashes, 2 bad input.
    """
    import tangere as tg
    from tangere.cli.shared.extras import check_view_extra
    from tangere.runtime import check_out_file

    check_out_file(png, "--png", ".png")
    check_out_file(html, "--html", ".html")
    check_view_extra(pillow=png is not None or html is not None)
    assembly = tg.Assembly.load(file, tolerance=tolerance, units=units)
    found = assembly.clashes(
        clearance, skin, allowed=allow, depth=depth, accuracy=accuracy, device=device, threads=threads
    )
    ways = None
    if removal is not None:
        ways = assembly.removal(removal, int(directions), skin, device=device, threads=threads)
    if png is not None or html is not None:
        from tangere.view import clash_page, clash_sheet

        if png is not None:
            clash_sheet(assembly, found, path=png, device=device, threads=threads)
            click.echo(f"wrote {png}", err=True)
        if html is not None:
            clash_page(assembly, found, html, device=device, threads=threads)
            click.echo(f"wrote {html}", err=True)
    click.echo(json_text(_as_data(assembly, found, ways))) if as_json else _print(assembly, found, ways)
    ctx.exit(1 if found else 0)


def _as_data(assembly: Assembly, found: Clashes, ways: Removals | None) -> dict[str, Any]:
    """The answer in the types of JSON."""
    data = {
        "assembly": assembly.name,
        "parts": [{"name": part.name, "path": part.path, "pose": part.pose.tolist()} for part in assembly.parts],
        "counts": found.counts,
        "clearance": found.clearance,
        "skin": found.skin,
        "touch": found.touch,
        "chord_error": found.chord_error,
        "pairs_compared": found.compared,
        "open_parts": list(found.open_parts),
        "turned_parts": list(found.turned_parts),
        "clashes": [row.as_data() for row in found],
    }
    if ways is not None:
        data["removal"] = {
            "part": ways.part,
            "skin": {"depth": ways.skin.depth, "deepest": ways.skin.deepest},
            "directions": [
                {
                    "direction": row.direction.tolist(),
                    "free": row.free,
                    "distance": row.distance,
                    "blockers": list(row.blockers),
                    "point": row.point.tolist(),
                }
                for row in ways
            ],
        }
    return data


def _print(assembly: Assembly, found: Clashes, ways: Removals | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    told = ", ".join(f"{count} {kind}" for kind, count in found.counts.items() if count) or "no clash"
    console.print(f"[bold]{escape(told)}[/bold]   ({escape(repr(assembly))})", highlight=False, soft_wrap=True)
    console.print(
        f"skin {found.skin:.3g} m, facets within {found.chord_error:.3g} m; {found.compared} pairs compared",
        highlight=False,
        soft_wrap=True,
    )
    for what, parts in (("without an inside", found.open_parts), ("inside out, turned round", found.turned_parts)):
        if parts:
            names = ", ".join(parts[:_ROWS]) + (", …" if len(parts) > _ROWS else "")
            console.print(f"{what}: {escape(names)}", highlight=False, soft_wrap=True)
    if len(found):
        table = Table("part", "part", "how", "at [m]")
        for row in found.rows[:_ROWS]:
            place = ", ".join(f"{x:.5g}" for x in row.point)
            note = f" ({row.note})" if row.note else ""
            table.add_row(escape(row.name_a), escape(row.name_b), escape(row.told + note), place)
        console.print(table)
        if len(found) > _ROWS:
            console.print(f"{len(found) - _ROWS} more, --json lists them", highlight=False)
    if ways is not None:
        table = Table("direction", "how far [m]", "meets", title=escape(f"{ways.part}: free but for {ways.skin}"))
        for way in ways:
            direction = ", ".join(f"{x:.3g}" for x in way.direction)
            table.add_row(direction, "free" if way.free else f"{way.distance:.6g}", escape(", ".join(way.blockers)))
        console.print(table)
