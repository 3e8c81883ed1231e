"""Small assemblies that trap careless methods: pegs in holes, combs, hoops, thin plates (spec 3.3, G-9, 11 and 12)."""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError
from tangere.shape.generate.assembly import Assembly, pose, steps
from tangere.shape.generate.extruded import comb
from tangere.shape.generate.given import length
from tangere.shape.generate.peg import peg
from tangere.shape.generate.pierced import plate_with_hole
from tangere.shape.generate.plate import plate
from tangere.shape.generate.torus import torus
from tangere.shape.mesh import Mesh

__all__ = ["comb_plates", "peg_hole", "thin_plate", "two_hoops"]


def peg_hole(clearance: float = 0.01, *, sides: int = 32, triangles: int = 2048) -> Assembly:
    """A peg in the hole of a plate; it comes out along z, or touches when it is tilted at once.

    Args:
        clearance: between the flat sides of peg and hole, all round [m]; the peg is 0.9 m wide.
        sides: of the peg and of the hole; 4 makes them square. A multiple of 4.
        triangles: of both together, half each; a multiple of 8 sides.
    """
    length("peg and hole", "clearance", clearance, below=0.1)
    if sides < 4 or sides % 4 or triangles % (8 * sides):
        raise InputError(
            f"peg and hole: {triangles} triangles with {sides} sides cannot be shared; use a multiple of"
            f" {8 * sides} triangles, and of 4 sides"
        )
    radius, mounted = 0.45, (0.0, 0.0, 0.0, 0.0)
    gap = clearance / np.cos(np.pi / sides)
    return Assembly(
        part=peg(triangles // 2, radius=radius, sides=sides),
        fixed=plate_with_hole(triangles // 2, radius=radius + gap, sides=sides),
        free_path=np.concatenate([pose()[None], steps(mounted, (0.0, 0.0, 2.0, 0.0), 8)]),
        touching_path=np.concatenate([pose()[None], steps(mounted, (0.0, 0.0, 0.2, 0.5), 8)]),
    )


def comb_plates(teeth: int = 6) -> Assembly:
    """Two combs with large flat faces, teeth in gaps; they part along y, or touch when one also moves along x.

    Args:
        teeth: of each; a comb has 16 teeth - 4 triangles.
    """
    fixed = comb(teeth, pitch=0.2, gap=0.6)
    # Half a turn about z; the teeth then sit in the middle of the gaps, and tips stay 0.1 m from the other's bar.
    turned = fixed.at(pose((0.2 * teeth - 0.02, 1.5, 0.0), axis=2, angle=np.pi))
    mounted = (0.0, 0.0, 0.0, 0.0)
    return Assembly(
        part=turned,
        fixed=fixed,
        free_path=np.concatenate([pose()[None], steps(mounted, (0.0, 1.5, 0.0, 0.0), 8)]),
        touching_path=np.concatenate([pose()[None], steps(mounted, (0.4, 1.5, 0.0, 0.0), 8)]),
    )


def two_hoops(triangles: int = 2400) -> Assembly:
    """Two hoops side by side in crossed planes: in one long step one jumps into the other unless contact is seen.

    The free path leads away; the other ends with the hoops linked, which is possible only through each other.

    Args:
        triangles: of both together, half each; a multiple of 4.
    """
    hoop = torus(triangles // 2, radius=1.0, tube=0.08, name="hoop")
    crossed = hoop.at(pose(axis=0, angle=0.5 * np.pi))
    apart = (2.5, 0.0, 0.0, 0.0)
    return Assembly(
        part=crossed,
        fixed=hoop,
        free_path=np.concatenate([pose(apart[:3])[None], steps(apart, (4.0, 0.0, 0.0, 0.0), 1)]),
        touching_path=np.concatenate([pose(apart[:3])[None], steps(apart, (1.0, 0.0, 0.0, 0.0), 1)]),
    )


def thin_plate(triangles: int = 2000, *, name: str = "thin plate") -> Mesh:
    """A square plate in the xy plane, 1 m by 1 m and 1 mm thick; closed, centred.

    Args:
        triangles: exactly how many; see `plate`.
    """
    return plate(triangles, size=(1.0, 1.0, 1e-3), name=name)
