"""Cylinders, spheres, capsules, cones, boxes and hulls as rigid bodies: what they weigh, their surface in triangles.

What they meet, they meet as their formulas say. Their triangles are for pictures and files: of curved ones the hull of
points on them, of so many sides.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError
from tangere.shape.analytic import CONE, CYLINDER, ROUND, Analytic
from tangere.shape.mesh import MassProperties, Mesh

#: Sides of round bodies, and rings of points from the rim of a half sphere to its pole.
SIDES, RINGS = 48, 8
#: Of a radius: no point of a round body is farther outside of its triangles (0.7 % is).
BEYOND = 0.01


def check_one(shape: Analytic, whose: str) -> None:
    """Raise unless it is one body."""
    if len(shape) != 1:
        raise InputError(f"{whose}: {shape!r} are not one body; make one of each, shape[k]")


def surface_of(shape: Analytic, name: str, offset: np.ndarray | None = None) -> Mesh:
    """The surface of one body in its own frame, or where that is at an offset, (4, 4)."""
    record = shape.records[0]
    radius, half = float(record["radius"]), float(record["half"][2])
    if shape.kind == CYLINDER:
        points = np.concatenate([_ring(radius, -half), _ring(radius, half)])
    elif shape.kind == CONE:
        points = np.concatenate([_ring(radius, -half), [[0.0, 0.0, half]]])
    elif shape.kind == ROUND:
        angles = np.linspace(0.0, np.pi / 2.0, RINGS + 1)[:-1]
        upper = [_ring(radius * np.cos(angle), half + radius * np.sin(angle)) for angle in angles]
        top = np.concatenate([*upper, [[0.0, 0.0, half + radius]]])
        points = np.concatenate([top, top * [1.0, 1.0, -1.0]])
    else:
        points = record["half"] * shape.hull.corners
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except QhullError as error:
        raise InputError(f"Body {name!r} is so thin that it has no surface: {np.ptp(points, axis=0)} m") from error
    corners, triangles = np.unique(hull.simplices, return_inverse=True)
    faces, vertices = triangles.reshape(-1, 3), points[corners]
    turned = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    inward = np.einsum("ni,ni->n", turned, hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    if offset is not None:
        vertices = vertices @ offset[:3, :3].T + offset[:3, 3]
    return Mesh(vertices, faces.astype(np.int32), name=name)


def beyond_facets(shape: Analytic) -> float:
    """How far one body reaches beyond its surface in triangles, at most [m]."""
    return BEYOND * float(shape.records["radius"][0])


def mass_of(shape: Analytic, density: float, offset: np.ndarray | None = None) -> MassProperties:
    """Mass and inertia of one uniform body by its formulas, in its own frame, or where that is at an offset.

    Args:
        density: [kg/m^3].
        offset: (4, 4).
    """
    record = shape.records[0]
    radius, half = float(record["radius"]), record["half"]
    length, centre = 2.0 * float(half[2]), np.zeros(3)
    if shape.kind == CYLINDER:
        volume = np.pi * radius**2 * length
        along, across = radius**2 / 2.0, (3.0 * radius**2 + length**2) / 12.0
    elif shape.kind == CONE:
        volume = np.pi * radius**2 * length / 3.0
        along, across = 0.3 * radius**2, 0.15 * radius**2 + 3.0 / 80.0 * length**2
        centre[2] = -0.25 * length
    elif shape.kind == ROUND:
        rod, ball = np.pi * radius**2 * length, 4.0 / 3.0 * np.pi * radius**3
        volume = rod + ball
        along = (rod * radius**2 / 2.0 + ball * 0.4 * radius**2) / volume
        # two half balls, each 3/8 of the radius from its face
        bulge = 0.4 * radius**2 + 0.5 * length * (0.5 * length + 0.75 * radius)
        across = (rod * (3.0 * radius**2 + length**2) / 12.0 + ball * bulge) / volume
    else:
        return surface_of(shape, "hull", offset).mass_properties(density)
    mass, turn = density * volume, np.eye(3)
    if offset is not None:
        turn, centre = offset[:3, :3], offset[:3, :3] @ centre + offset[:3, 3]
    inertia = mass * (turn @ np.diag([across, across, along]) @ turn.T)
    return MassProperties(mass, volume, centre, 0.5 * (inertia + inertia.T))


def _ring(radius: float, height: float) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(SIDES) / SIDES
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(SIDES, height)], axis=1)
