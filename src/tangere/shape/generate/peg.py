"""Pegs, round or with flat sides, to go into `plate_with_hole`."""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError, described, positive, whole
from tangere.shape.generate.build.assembly import PartInPlace, pose, steps
from tangere.shape.generate.build.budget import factor_pair, solve
from tangere.shape.generate.build.lattice import revolve
from tangere.shape.generate.pierced import plate_with_hole
from tangere.shape.mesh.mesh import Mesh


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
    positive(radius, "peg: radius")
    positive(height, "peg: height")
    if not 0.0 <= chamfer < min(radius, height):
        raise InputError(f"peg: chamfer must be at least 0 and below {min(radius, height):g}, not {described(chamfer)}")
    if sides is not None:
        whole(sides, "peg: sides", least=3)
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


def peg_hole(clearance: float = 0.01, *, sides: int = 32, triangles: int = 2048) -> PartInPlace:
    """A peg in the hole of a plate; it comes out along z, or touches when it is tilted at once.

    Args:
        clearance: between the flat sides of peg and hole, all round [m]; the peg is 0.9 m wide.
        sides: of the peg and of the hole; 4 makes them square. A multiple of 4.
        triangles: of both together, half each; a multiple of 8 sides.
    """
    positive(clearance, "peg and hole: clearance", below=0.1)
    if sides < 4 or sides % 4 or triangles % (8 * sides):
        raise InputError(
            f"peg and hole: {triangles} triangles with {sides} sides cannot be shared; use a multiple of"
            f" {8 * sides} triangles, and of 4 sides"
        )
    radius, mounted = 0.45, (0.0, 0.0, 0.0, 0.0)
    gap = clearance / np.cos(np.pi / sides)
    return PartInPlace(
        part=peg(triangles // 2, radius=radius, sides=sides),
        fixed=plate_with_hole(triangles // 2, radius=radius + gap, sides=sides),
        free_path=np.concatenate([pose()[None], steps(mounted, (0.0, 0.0, 2.0, 0.0), 8)]),
        touching_path=np.concatenate([pose()[None], steps(mounted, (0.0, 0.0, 0.2, 0.5), 8)]),
    )
