"""Families of small moving meshes that make trouble: generic, on an integer grid, folding, collapsed, loose, in pairs.

A family is a function of a random generator; it gives a moving mesh, or two things.
"""

from __future__ import annotations

import numpy as np

from tangere.motion import Linear
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

__all__ = ["FAMILIES", "ONE_MESH", "TWO_MESHES", "grid", "scene", "soup", "tetrahedron"]


def scene(family: str, seed: int) -> tuple[Mesh | Moving, Mesh | Moving | None]:
    """Scene number `seed` of a family: a thing and its partner, None where it meets itself."""
    return FAMILIES[family](np.random.default_rng([seed, *family.encode()]))


def grid(columns: int, rows: int) -> Mesh:
    """A flat sheet on whole numbers in the plane z = 0."""
    x, y = np.meshgrid(np.arange(columns, dtype=float), np.arange(rows, dtype=float), indexing="ij")
    number = np.arange(columns * rows).reshape(columns, rows)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    return Mesh(np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3), faces, name="grid")


def tetrahedron() -> Mesh:
    corners = [[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    return Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], name="tetrahedron")


def soup(triangles: np.ndarray) -> Mesh:
    """Loose triangles, (n, 3, 3)."""
    return Mesh(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3), name="soup")


def _random_sheet(rng):
    sheet = grid(4, 4)
    start = sheet.vertices + rng.normal(size=(16, 3)) * 0.1
    return sheet.replace(vertices=start).moving(Linear(start + rng.normal(size=(16, 3)) * 0.6)), None


def _integer_sheet(rng):
    sheet = grid(4, 3)
    start = sheet.vertices + np.array([0, 0, 1]) * rng.integers(-1, 2, (12, 3))
    return sheet.replace(vertices=start).moving(Linear(start + rng.integers(-1, 2, (12, 3)))), None


def _folding_sheet(rng):
    """The far half comes down flat on the near half, or through it."""
    sheet = grid(5, 3)
    start = sheet.vertices * [0.9, 1.0, 1.0] + [0.0, 0.0, 0.02]
    end = start.copy()
    far = start[:, 0] > 2.0
    end[far, 0] = 4.0 - end[far, 0] + rng.choice([0.0, 0.3])
    start[far, 2] += 1.0
    end[far, 2] = rng.choice([0.02, 0.0, -0.5])
    return sheet.replace(vertices=start).moving(Linear(end)), None


def _collapsed_triangles(rng):
    """Triangles that are segments or points, at the start, at the end, or by naming a vertex twice."""
    sheet = grid(4, 3)
    start = sheet.vertices + rng.normal(size=(12, 3)) * 0.2
    end = start + rng.normal(size=(12, 3)) * 0.7
    one, other, third = rng.permutation(12)[:3]
    start[one] = start[other]
    end[third] = end[other]
    start[5] = 0.5 * (start[4] + start[6])
    faces = np.concatenate([sheet.faces, [[0, 0, 7], [11, 11, 11]]])
    return Mesh(start, faces, name="collapsed").moving(Linear(end)), None


def _soup(rng):
    centres = rng.normal(size=(9, 1, 3))
    mesh = soup(centres + rng.normal(size=(9, 3, 3)) * 0.4)
    return mesh.moving(Linear(mesh.vertices + np.repeat(rng.normal(size=(9, 3)), 3, axis=0))), None


def _loose_vertices(rng):
    """Vertices that no triangle uses lie first, between and last."""
    thing, _ = _soup(rng)
    kept = np.sort(rng.permutation(40)[:27])
    start, end = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    start[kept], end[kept] = thing.shape.vertices, thing.motion.end
    return Mesh(start, kept[thing.shape.faces], name="loose").moving(Linear(end)), None


def _flat_motion(rng):
    """Everything stays in one plane: every coplanarity cubic vanishes."""
    mesh = soup(np.concatenate([rng.integers(0, 5, (5, 3, 2)), np.zeros((5, 3, 1))], axis=2).astype(float))
    end = mesh.vertices + np.concatenate([rng.integers(-3, 4, (15, 2)), np.zeros((15, 1))], axis=1)
    return mesh.moving(Linear(end)), None


def _two_bodies(rng):
    a, b = _placed(tetrahedron(), rng, -1.6), _placed(grid(3, 3), rng, 1.6)
    return a.moving(Linear(_going(a, rng, 1.5))), b.moving(Linear(_going(b, rng, -1.5)))


def _one_at_rest(rng):
    a, b = _placed(grid(3, 3), rng, -1.6), _placed(tetrahedron(), rng, 1.6)
    moving = a.moving(Linear(_going(a, rng, 3.0)))
    return (moving, b) if rng.random() < 0.5 else (b, moving)


def _one_part_twice(rng):
    """Two copies of one part share their topology, and with it their trees."""
    part = tetrahedron()
    a, b = (part.replace(vertices=_placed(part, rng, x).vertices) for x in (-1.6, 1.6))
    return a, b.moving(Linear(_going(b, rng, -3.0)))


def _integer_boxes(rng):
    """Faces meet faces, edges meet edges, all at once."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = np.array([[q[0], q[k], q[k + 1]] for q in quads for k in (1, 2)])
    a = Mesh(corners, faces, name="box")
    b = Mesh(corners + [2, *rng.integers(-1, 2, 2)], faces, name="other box")
    return a.moving(Linear(corners + [2, *rng.integers(-1, 2, 2)])), b


def _placed(mesh: Mesh, rng: np.random.Generator, x: float) -> Mesh:
    """The mesh, turned at random about its middle, which comes to (x, 0, 0) or near it."""
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    middle = mesh.bounds.mean(axis=0)
    vertices = (mesh.vertices - middle) @ turn * 0.8 + [x, 0.0, 0.0] + rng.normal(size=3) * 0.3
    return Mesh(vertices, mesh.faces, name=mesh.name)


def _going(mesh: Mesh, rng: np.random.Generator, x: float) -> np.ndarray:
    return mesh.vertices + [x, 0.0, 0.0] + rng.normal(size=mesh.vertices.shape) * 0.2


ONE_MESH = {
    "random sheet": _random_sheet,
    "integer sheet": _integer_sheet,
    "folding sheet": _folding_sheet,
    "collapsed triangles": _collapsed_triangles,
    "soup": _soup,
    "loose vertices": _loose_vertices,
    "flat motion": _flat_motion,
}
TWO_MESHES = {
    "two bodies": _two_bodies,
    "one at rest": _one_at_rest,
    "one part twice": _one_part_twice,
    "integer boxes": _integer_boxes,
}
FAMILIES = ONE_MESH | TWO_MESHES
