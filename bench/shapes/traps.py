"""Small assemblies that trap careless methods: combs, hoops, thin plates (Redon's thesis, its test scenes)."""

from __future__ import annotations

import numpy as np

from tangere.shape.generate import PartInPlace, comb, plate, torus
from tangere.shape.generate.build.assembly import pose, steps
from tangere.shape.mesh import Mesh

__all__ = ["comb_plates", "thin_plate", "two_hoops"]


def comb_plates(teeth: int = 6) -> PartInPlace:
    """Two combs with large flat faces, teeth in gaps; they part along y, or touch when one also moves along x.

    Args:
        teeth: of each; a comb has 16 teeth - 4 triangles.
    """
    fixed = comb(teeth, pitch=0.2, gap=0.6)
    # Half a turn about z; the teeth then sit in the middle of the gaps, and tips stay 0.1 m from the other's bar.
    turned = fixed.at(pose((0.2 * teeth - 0.02, 1.5, 0.0), axis=2, angle=np.pi))
    mounted = (0.0, 0.0, 0.0, 0.0)
    return PartInPlace(
        part=turned,
        fixed=fixed,
        free_path=np.concatenate([pose()[None], steps(mounted, (0.0, 1.5, 0.0, 0.0), 8)]),
        touching_path=np.concatenate([pose()[None], steps(mounted, (0.4, 1.5, 0.0, 0.0), 8)]),
    )


def two_hoops(triangles: int = 2400) -> PartInPlace:
    """Two hoops side by side in crossed planes: in one long step one jumps into the other unless contact is seen.

    The free path leads away; the other ends with the hoops linked, which is possible only through each other.

    Args:
        triangles: of both together, half each; a multiple of 4.
    """
    hoop = torus(triangles // 2, radius=1.0, tube=0.08, name="hoop")
    crossed = hoop.at(pose(axis=0, angle=0.5 * np.pi))
    apart = (2.5, 0.0, 0.0, 0.0)
    return PartInPlace(
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
