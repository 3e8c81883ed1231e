"""Meshes of what has none, so that it can be drawn: heightfields, and batches of analytic bodies.

A batch becomes one mesh: every body is a copy of one template, scaled and placed. Edges are sharp, because faces that
meet there do not share vertices. Nothing here decides a contact: bodies have as many sides as a picture needs.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tangere.runtime import to_numpy
from tangere.shape.analytic import CONE, CYLINDER, HULL, ROUND, Analytic
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import Mesh

#: Sides of a round body when there are at most so many; a crowd is seen from farther away.
_SIDES = ((64, 64), (1024, 32), (1 << 62, 16))
_TILT = np.linspace(-0.5 * np.pi, 0.0, 9)
#: Outlines of round bodies, from the bottom up, as smooth pieces of rows (a, b, c): a point at distance a radii from
#: the axis, b radii plus c half lengths above the middle.
_LOWER = np.stack([np.cos(_TILT), np.sin(_TILT), np.full_like(_TILT, -1.0)], axis=1)
_OUTLINES: dict[int, list[np.ndarray]] = {
    int(ROUND): [np.concatenate([_LOWER, _LOWER[::-1] * (1.0, -1.0, -1.0)])],
    int(CYLINDER): [np.array(rows, float) for rows in ([(0, 0, -1), (1, 0, -1)], [(1, 0, -1), (1, 0, 1)])]
    + [np.array([(1, 0, 1), (0, 0, 1)], float)],
    int(CONE): [np.array(rows, float) for rows in ([(0, 0, -1), (1, 0, -1)], [(1, 0, -1), (0, 0, 1)])],
}


def mesh_of(shape: Mesh | Heightfield | Analytic) -> Mesh:
    """The shape as a mesh: itself, the surface of the ground, or all bodies of a batch where they are."""
    if isinstance(shape, Heightfield):
        return shape.to_mesh()
    return _bodies_mesh(shape) if isinstance(shape, Analytic) else shape


def _bodies_mesh(bodies: Analytic) -> Mesh:
    poses = to_numpy(bodies.poses, "poses")
    if bodies.kind == HULL:
        around, along, faces = np.zeros((1, 3)), *_hull_template(bodies.hull.corners)
    else:
        around, along, faces = _turned_template(
            bodies.kind, next(sides for most, sides in _SIDES if len(poses) <= most)
        )
    records = bodies.records
    local = around * records["radius"][:, None, None] + along * records["half"][:, None]
    placed = local @ poses[:, :3, :3].transpose(0, 2, 1) + poses[:, None, :3, 3]
    every = faces + placed.shape[1] * np.arange(len(poses))[:, None, None]
    return Mesh(placed.reshape(-1, 3), every.reshape(-1, 3), name=type(bodies).__name__.lower())


@cache
def _turned_template(kind: int, sides: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices as parts of the radius (k, 3) and of the half lengths (k, 3), and triangles (m, 3), facing outward."""
    turn = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    around, along, faces = [], [], []
    count = 0
    for piece in _OUTLINES[kind]:
        away, up, ends = (np.repeat(column, sides) for column in piece.T)
        angle = np.tile(turn, len(piece))
        around.append(np.stack([away * np.cos(angle), away * np.sin(angle), up], axis=1))
        along.append(np.stack([0.0 * ends, 0.0 * ends, ends], axis=1))
        for row in range(len(piece) - 1):
            here = count + row * sides + np.arange(sides)
            following = count + row * sides + (np.arange(sides) + 1) % sides
            # A ring on the axis is a point: one of its triangles has no area.
            if piece[row, 0] > 1e-9:
                faces.append(np.stack([here, following, following + sides], axis=1))
            if piece[row + 1, 0] > 1e-9:
                faces.append(np.stack([here, following + sides, here + sides], axis=1))
        count += len(angle)
    return np.concatenate(around), np.concatenate(along), np.concatenate(faces)


def _hull_template(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Three vertices of its own for every facet of a hull, and the triangles, facing outward."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(corners)
    a, b, c = (corners[hull.simplices[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    simplices = np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    return corners[simplices].reshape(-1, 3), np.arange(simplices.size).reshape(-1, 3)
