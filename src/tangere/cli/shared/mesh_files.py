"""Meshes by file name, in metres: mesh formats, and parts prepared by `tangere convert`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from tangere.shape.mesh import Mesh, doubted_units, says_its_unit


def load_mesh(path: Path, units: str | None = None, *, weld: bool = True) -> Mesh:
    """The mesh in a file; a prepared part (.npz) brings its trees along.

    Args:
        units: of files that do not say theirs, as for `Mesh.load`.
        weld: whether equal vertices are merged; those of a prepared part have been already.
    """
    if path.suffix.lower() == ".npz":
        from tangere.bvh.prepared import PreparedPart

        return PreparedPart.load(path).mesh
    return Mesh.load(path, units=None if says_its_unit(path.suffix) else units, weld=weld)


def tell_doubted_units(bodies: Iterable[Any]) -> None:
    """Say on stderr if the unit of one of the files may have been mistaken: sizes are too different."""
    told = doubted_units(list(bodies))
    if told is not None:
        click.echo(f"tangere: {told}", err=True)
