"""Two mesh files as one moving mesh: the first is time 0, the second time 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tangere.cli.shared.mesh_files import load_mesh, tell_doubted_units
from tangere.motion import Linear
from tangere.runtime import InputError
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, weld_vertices


def load_bodies(starts: tuple[Path, ...], ends: tuple[Path, ...], units: str | None = None) -> list[Mesh | Moving]:
    """A mesh for each of `starts`, moving if `ends` names where it goes; both lists in the same order.

    Sizes that make it likely that a unit was mistaken are told on stderr; `units` are those of files without.
    """
    if len(ends) > len(starts):
        raise InputError(f"{len(ends)} end files for {len(starts)} meshes: there must not be more than meshes")
    bodies: list[Mesh | Moving] = [load_moving(start, end, units) for start, end in zip(starts, ends, strict=False)]
    bodies += [load_mesh(path, units) for path in starts[len(ends) :]]
    tell_doubted_units(bodies)
    return bodies


def load_moving(start: Path, end: Path, units: str | None = None) -> Moving:
    """The mesh in `start` on its way to the positions in `end`, which must have the same triangles.

    Vertices are welded only where they are equal in both files: what meets at one end may be apart at the other.
    """
    here, there = load_mesh(start, units, weld=False), load_mesh(end, units, weld=False)
    if len(here.vertices) != len(there.vertices):
        counts = f"{len(here.vertices)} and {len(there.vertices)} vertices"
        raise InputError(f"{start} and {end}: not one mesh in two positions, they have {counts}")
    if not np.array_equal(here.faces, there.faces):
        raise InputError(f"{start} and {end}: not one mesh in two positions, their triangles differ")
    path, faces = weld_vertices(np.hstack([here.vertices, there.vertices]), here.faces)
    return Mesh(path[:, :3], faces, name=here.name).moving(Linear(path[:, 3:]))
