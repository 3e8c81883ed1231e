"""`tangere convert`: prepare parts, so that no tree is ever built twice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tangere.cli.shared.options import units_option

if TYPE_CHECKING:
    from tangere.shape.mesh import Mesh


@click.command()
@click.argument("meshes", nargs=-1, required=True, type=click.Path(path_type=Path))
@units_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write to; default: beside each mesh.")
@click.option("--density", type=click.FloatRange(min=0.0, min_open=True), help="Store mass and inertia too [kg/m^3].")
@click.option("--cone-vectors", default=6, show_default=True, type=click.IntRange(min=1), help="Of a recession cone.")
def convert(
    meshes: tuple[Path, ...], units: str | None, out: Path | None, density: float | None, cone_vectors: int
) -> None:
    """Write a prepared part (.npz) for each of MESHES: the mesh, its box tree, recession cones and, if asked, mass.

    Every command that reads a mesh reads prepared parts as well, this one too: a part is prepared again, and keeps its
    mass unless --density says otherwise. Only prepared parts are ever overwritten.

    \b
    tangere convert door.stl body.glb --out parts
    """
    from rich.console import Console
    from rich.progress import track

    from tangere.bvh.prepared import PreparedPart
    from tangere.cli.shared.mesh_files import load_mesh
    from tangere.cli.shared.output_folder import make_out_folder
    from tangere.cli.shared.tables import screen_table
    from tangere.runtime import InputError

    if out is not None:
        make_out_folder(out)
    targets = [(out or mesh.parent) / f"{mesh.stem}.npz" for mesh in meshes]
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        raise InputError(f"two of the meshes would be written to {twice}")
    for target in targets:
        _check_target(target)
    rows = []
    for source, target in track(list(zip(meshes, targets, strict=True)), "preparing", console=Console(stderr=True)):
        mesh = load_mesh(source, units)
        part = PreparedPart(mesh, density=density or _density_of(mesh), cone_vectors=cone_vectors)
        part.save(target)
        closed = "closed" if mesh.report.closed and mesh.report.oriented else "open: never culled"
        size = f"{target.stat().st_size / 1e6:.1f} MB"
        rows.append([str(target), f"{len(mesh.faces):,}", closed, f"{part.tree.depth}", size])
    Console().print(screen_table("Prepared parts", ["file", "triangles", "surface", "depth", "size"], rows))


def _check_target(target: Path) -> None:
    """Raise if there is something that is not a prepared part where one is to be written."""
    from tangere.bvh.prepared import PreparedPart
    from tangere.runtime import InputError

    if not target.exists():
        return
    try:
        PreparedPart.load(target)
    except InputError as error:
        raise InputError(
            f"{target} is there and would be overwritten, but: {error}; choose a folder by --out"
        ) from error


def _density_of(mesh: Mesh) -> float | None:
    """The density [kg/m^3] a prepared part was given; None for other meshes."""
    from tangere.bvh.obb import PREPARED

    part = mesh.cache.get(PREPARED)
    return None if part is None or part.mass is None else part.mass.mass / part.mass.volume
