"""Meshes that hold bodies given by a formula: as near to them as some hundred triangles come, and never inside.

What is certified about such a mesh is certified about the body; contacts are told earlier by what the mesh is larger:
at most 1 % of a radius for cylinders and cones, 2 % for balls. Boxes and convex meshes are what they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import ConvexHull

from tangere.runtime import InputError, positive, to_numpy
from tangere.shape import generate
from tangere.shape.analytic.bodies import CONE, CYLINDER, ROUND, Analytic
from tangere.shape.mesh.mesh import Mesh

#: Sides of a cylinder, and triangles of a ball: at most 1 % and 2 % larger than the round shape.
SIDES, BALL = 24, 1280


def mesh_holding(body: Analytic) -> Mesh:
    """A closed mesh that holds one analytic body, where it is.

    Example:
        >>> import numpy as np, tangere as tg
        >>> from tangere.shape.robot import mesh_holding
        >>> mesh = mesh_holding(tg.Cylinder(radius=1.0, height=2.0))
        >>> float(np.linalg.norm(mesh.vertices[:, :2], axis=1).max().round(3)), float(mesh.vertices[:, 2].max())
        (1.009, 1.0)
    """
    if len(body) != 1:
        raise InputError(f"a mesh holds one body, not {len(body)}: choose one, bodies[0]")
    record = body.records[0]
    radius, half = float(record["radius"]), np.asarray(record["half"], float)
    if body.kind == CYLINDER:
        mesh = cylinder_mesh(radius, 2.0 * half[2])
    elif body.kind == CONE:
        wide = generate.prism(SIDES, radius=radius / np.cos(np.pi / SIDES), height=2.0 * half[2])
        base = wide.vertices[wide.vertices[:, 2] < 0.0]
        mesh = _hull_mesh(np.concatenate([base, [[0.0, 0.0, half[2]]]]), "cone")
    elif body.kind == ROUND:
        mesh = capsule_mesh(radius, 2.0 * half[2]) if half[2] > 0.0 else ball_mesh(radius)
    else:
        mesh = _hull_mesh(np.asarray(body.hull.corners, float) * half, "convex")
    return mesh.at(to_numpy(body.poses, "poses")[0])


def mesh_of_parts(parts: Sequence[Mesh | Analytic], name: str) -> tuple[Mesh | None, tuple[Mesh | Analytic, ...]]:
    """One mesh that holds all parts of a link; and the parts, meshes as one before the others, if some are analytic.

    Triangles of that mesh have the same numbers in the whole.
    """
    if not parts:
        return None, ()
    meshes = [part for part in parts if isinstance(part, Mesh)]
    bodies = [part for part in parts if not isinstance(part, Mesh)]
    whole = Mesh.join([*meshes, *map(mesh_holding, bodies)], name=name)
    if not bodies:
        return whole, ()
    return whole, (*([Mesh.join(meshes, name=name)] if meshes else []), *bodies)


def cylinder_mesh(radius: float, height: float) -> Mesh:
    """A prism about z whose sides touch the cylinder."""
    radius, height = positive(radius, "cylinder: radius"), positive(height, "cylinder: length")
    return generate.prism(SIDES, radius=radius / np.cos(np.pi / SIDES), height=height)


def ball_mesh(radius: float) -> Mesh:
    """A ball whose faces touch the sphere, or are outside it."""
    radius = positive(radius, "sphere: radius")
    ball = generate.icosphere(triangles=BALL, radius=radius)
    inside = np.abs(np.einsum("ni,ni->n", ball.face_normals, ball.vertices[ball.faces[:, 0]])).min()
    return ball.replace(vertices=ball.vertices * (radius / inside))


def capsule_mesh(radius: float, height: float) -> Mesh:
    """The hull of such balls at both ends of a segment along z; `height` is without the half spheres."""
    end = np.array([0.0, 0.0, 0.5 * positive(height, "capsule: height")])
    ball = ball_mesh(radius).vertices
    return _hull_mesh(np.concatenate([ball + end, ball - end]), "capsule")


def ellipsoid_mesh(radii: np.ndarray) -> Mesh:
    """A ball that is stretched: what held the sphere holds the ellipsoid."""
    sizes = [positive(radius, "ellipsoid: radius") for radius in np.ravel(radii)]
    ball = ball_mesh(1.0)
    return ball.replace(vertices=ball.vertices * sizes)


def _hull_mesh(points: np.ndarray, name: str) -> Mesh:
    """The convex hull, triangles outwards."""
    hull = ConvexHull(points)
    used, faces = np.unique(hull.simplices, return_inverse=True)
    corners, faces = points[used], faces.reshape(-1, 3)
    a, b, c = (corners[faces[:, k]] for k in range(3))
    inwards = np.einsum("ni,ni->n", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    return Mesh(corners, faces.astype(np.int32), name=name)
