"""`tangere info`: what is in a mesh file."""

from __future__ import annotations

from pathlib import Path

import click

from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import units_option


@click.command()
@click.argument("mesh", type=click.Path(path_type=Path))
@units_option
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
def info(mesh: Path, units: str | None, as_json: bool) -> None:
    """Say what is in a MESH file and what is unusual about it. Detection takes any of it."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tangere.cli.shared.mesh_files import load_mesh

    loaded = load_mesh(mesh, units)
    report = loaded.report
    rows = {
        "vertices": report.vertices,
        "edges": report.edges,
        "triangles": report.triangles,
        "components": report.components,
        "closed": report.closed,
        "oriented": report.oriented,
        "manifold": report.manifold,
        "welded_vertices": report.welded_vertices,
        "zero_area_triangles": report.zero_area_triangles,
        "bounds": report.bounds.tolist(),
        "extent": loaded.extent,
        "units": report.units,
        "notes": list(report.notes),
    }
    if as_json:
        click.echo(json_text({"file": str(mesh), **rows}))
        return
    table = Table(title=escape(report.name), show_header=False, title_justify="left")
    low, high = ("(" + ", ".join(f"{x:.6g}" for x in corner) + ")" for corner in report.bounds)
    rows |= {"bounds": f"{low} to {high}", "extent": f"{loaded.extent:.6g}", "notes": "\n".join(report.notes) or "none"}
    for key, value in rows.items():
        table.add_row(
            key.replace("_", " "), {True: "yes", False: "no"}[value] if isinstance(value, bool) else escape(str(value))
        )
    Console().print(table)
