"""Mass, centre and inertia of the solid a closed mesh encloses, or of the sheet that any mesh is.

Question: mass, centre of mass and inertia tensor of a uniform solid, or of a uniform sheet along the triangles.
Method:   the solid is the signed sum of the tetrahedra between a reference point and each triangle; the integrals of
          1, x and x x^T over a tetrahedron, or over a triangle, are polynomials in its corners, so the result is exact
          up to rounding. The reference is the middle of the bounding box: far from the origin nothing cancels.
Known as: polyhedral mass properties (Mirtich 1996 by the divergence theorem; here by signed tetrahedra, as Tonon 2004).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.runtime import InputError
from tangere.shape.mesh.topology import Topology


@dataclass(frozen=True, eq=False)
class MassProperties:
    """What a uniform solid or sheet weighs and how it resists turning."""

    mass: float  #: [kg]
    volume: float  #: [m^3]; of a sheet 0
    centre: np.ndarray  #: (3,) centre of mass [m]
    inertia: np.ndarray  #: (3, 3) about `centre`, along the axes of the mesh [kg m^2]


def solid_mass_properties(vertices: np.ndarray, topology: Topology, density: float, name: str) -> MassProperties:
    """Mass properties of the solid inside a closed, outward oriented surface.

    Args:
        vertices: shape (n, 3) [m].
        topology: the triangles.
        density: [kg/m^3].
        name: what to call the mesh in an error.
    """
    if not (np.isfinite(density) and density > 0.0):
        raise InputError(f"Mesh {name!r}: density must be positive, not {density}")
    _require_solid(topology, name)
    reference = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    a, b, c = np.moveaxis((vertices - reference)[topology.faces], 1, 0)
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    if volume <= len(volumes) * np.finfo(float).eps * np.abs(volumes).sum():
        raise InputError(f"Mesh {name!r}: encloses a volume of {volume:.6g}; its triangles must face outwards")

    corner_sum = a + b + c
    centre = volumes @ corner_sum / (4.0 * volume)
    # Over a tetrahedron with corners 0, a, b, c: integral of x x^T = V / 20 (aa^T + bb^T + cc^T + ss^T), s = a + b + c.
    second = sum(np.einsum("n,ni,nj->ij", volumes, p, p) for p in (a, b, c, corner_sum)) / 20.0
    second = second - volume * np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    return MassProperties(
        mass=density * volume,
        volume=volume,
        centre=reference + centre,
        inertia=density * 0.5 * (inertia + inertia.T),
    )


def sheet_mass_properties(vertices: np.ndarray, topology: Topology, areal_density: float, name: str) -> MassProperties:
    """Mass properties of a sheet along the triangles, open or closed, of any orientation.

    Args:
        vertices: shape (n, 3) [m].
        topology: the triangles.
        areal_density: [kg/m^2].
        name: what to call the mesh in an error.
    """
    if not (np.isfinite(areal_density) and areal_density > 0.0):
        raise InputError(f"Mesh {name!r}: areal density must be positive, not {areal_density}")
    reference = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    a, b, c = np.moveaxis((vertices - reference)[topology.faces], 1, 0)
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    area = float(areas.sum())
    if area <= 0.0:
        raise InputError(f"Mesh {name!r}: its triangles have no area, so it has no mass as a sheet")
    centre = areas @ (a + b + c) / (3.0 * area)
    # Over a triangle: integral of x x^T = A / 12 (aa^T + bb^T + cc^T + ss^T), s = a + b + c.
    second = sum(np.einsum("n,ni,nj->ij", areas, p, p) for p in (a, b, c, a + b + c)) / 12.0
    second = second - area * np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    return MassProperties(areal_density * area, 0.0, reference + centre, areal_density * 0.5 * (inertia + inertia.T))


def _require_solid(topology: Topology, name: str) -> None:
    if topology.open_edge_count:
        reason = f"it is open: {topology.open_edge_count} edges have one triangle only"
    elif topology.crowded_edge_count:
        reason = f"{topology.crowded_edge_count} edges have more than two triangles"
    elif not topology.is_oriented:
        reason = f"it is not oriented: at {topology.reversed_edge_count} edges two triangles disagree which side is out"
    else:
        return
    raise InputError(f"Mesh {name!r}: has no mass properties because {reason}")
