"""Pegs, round or with flat sides, to go into `plate_with_hole` (specs/redon-rigid-ccd-and-dynamics 3.3, G-9)."""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError
from tangere.shape.generate.budget import factor_pair, solve
from tangere.shape.generate.given import length, whole
from tangere.shape.generate.lattice import revolve
from tangere.shape.mesh import Mesh

__all__ = ["peg"]


def peg(
    triangles: int = 512,
    *,
    radius: float = 0.45,
    height: float = 2.0,
    chamfer: float = 0.0,
    sides: int | None = None,
    name: str = "peg",
) -> Mesh:
    """A peg along z, centred at the origin; closed.

    Args:
        triangles: exactly how many; 2 sides rings, with at least 2 rings of vertices (3 with a chamfer).
        radius: of the circle through its corners [m]; see `plate_with_hole` for the clearance.
        height: along z [m].
        chamfer: how far the edge at the lower end is cut back, both ways, for an easy start [m].
        sides: 4 makes it square; chosen from the budget if not given.
    """
    length("peg", "radius", radius)
    length("peg", "height", height)
    if not 0.0 <= chamfer < min(radius, height):
        raise InputError(f"peg: chamfer must be at least 0 and below {min(radius, height):g}, not {chamfer!r}")
    if sides is not None:
        whole("peg", "sides", sides, least=3)
    fewest = 3 if chamfer else 2

    def plan(count: int) -> tuple[int, int] | None:
        if sides is not None:
            rings, rest = divmod(count, 2 * sides)
            return (sides, rings) if not rest and rings >= fewest else None
        return None if count % 2 else factor_pair(count // 2, 2.0 * np.pi * radius / height, least=(3, fewest))

    around, rings = solve("peg", triangles, plan)
    foot, top = -0.5 * height, 0.5 * height
    straight = np.linspace(foot + chamfer, top, rings - 1 if chamfer else rings)
    profile = [(radius, z) for z in straight]
    if chamfer:
        profile.insert(0, (radius - chamfer, foot))
    vertices, faces = revolve(np.array(profile), around, first_pole=foot, last_pole=top, phase=0.25 * np.pi)
    return Mesh(vertices, faces, name=name)
