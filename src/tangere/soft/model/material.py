"""What holds a body together, as two lists per vertex: weighted neighbours, and elements with a volume or area to keep.

Energy:   psi = mu/2 |F|^2 + lam/2 (J - a)^2 per element, a = 1 + mu/lam, J the ratio of volumes (in sheets of areas).
          The first term is a constant scalar matrix over all vertices, and so is the bending of a sheet towards flat:
          both go into one list of neighbours. The second needs the positions of the opposite vertices only. With all
          other vertices held, J of a solid is linear in the vertex: its block is quadratic.
Lame:     for small strains psi is linear elasticity with mu and lam - mu, so lam is Lame's second parameter (plane
          stress in sheets) plus mu.
Sound:    for any stiffness, step and state, inverted ones included, the block of a vertex is positive definite.
Known as: stable neo-Hookean solids (Smith et al. 2018) without the logarithm; isometric bending (Bergou et al. 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.shape.mesh import Adjacency, Mesh
from tangere.shape.tets import TetMesh
from tangere.soft.body import Body

#: For each corner of a tetrahedron the opposite face, turned so that its volume is positive.
_OPPOSITE = np.array([[1, 3, 2], [0, 2, 3], [0, 3, 1], [0, 1, 2]])


@dataclass(frozen=True)
class ElasticMaterial:
    """The lists of a body of n vertices."""

    neighbours: Adjacency  #: vertices coupled to each vertex
    weights: np.ndarray  #: of each neighbour: force on i is sum of w (x_i - x_j) [N/m]
    diagonal: np.ndarray  #: (n,) minus the sum of the weights
    elements: Adjacency  #: corners (element * k + corner) at each vertex
    opposite: np.ndarray  #: per entry of `elements` the other vertices (3), the last one -1 in sheets
    laws: np.ndarray  #: per entry (3): lam times rest size, 1/(6 volume) or 1/(2 area), a


def material_of(body: Body) -> ElasticMaterial:
    """The lists of a body."""
    shape = body.shape
    if isinstance(shape, TetMesh):
        rows, columns, values = _tet_matrix(shape, body)
        corners, opposite, laws = _tet_elements(shape, body)
    else:
        parts = [_sheet_matrix(shape, body), _bending_matrix(shape, body)]
        rows, columns, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        corners, opposite, laws = _sheet_elements(shape, body)
    count = len(shape.vertices)
    neighbours, weights = _summed(rows, columns, values, count)
    order = np.argsort(corners, kind="stable")
    return ElasticMaterial(
        neighbours=neighbours,
        weights=weights,
        diagonal=-np.bincount(np.repeat(np.arange(count), np.diff(neighbours.offsets)), weights, count),
        elements=Adjacency(_offsets(corners, count), order.astype(np.int32)),
        opposite=opposite[order].astype(np.int32),
        laws=laws[order],
    )


def lame_moduli(body: Body) -> tuple[float, float]:
    """mu and lam of the energy above [Pa]."""
    young, nu = body.youngs_modulus, body.poisson
    mu = young / (2.0 * (1.0 + nu))
    second = young * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)) if body.is_solid else young * nu / (1.0 - nu**2)
    return mu, second + mu


def rigidity_of(body: Body) -> float:
    """Of a sheet, against bending [N m]."""
    return body.youngs_modulus * body.thickness**3 / (12.0 * (1.0 - body.poisson**2))


def _tet_matrix(solid: TetMesh, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    corners = solid.vertices[solid.tets]
    inverse = np.linalg.inv(np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2))
    gradients = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
    return _stiffness(solid.tets, gradients, lame_moduli(body)[0] * solid.volumes * body.fractions)


def _sheet_matrix(mesh: Mesh, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    corners = mesh.vertices[mesh.faces]
    against = np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)  # the side opposite each corner
    gradients = np.cross(mesh.face_normals[:, None], against) / (2.0 * mesh.face_areas)[:, None, None]
    return _stiffness(mesh.faces, gradients, lame_moduli(body)[0] * mesh.face_areas * body.thickness)


def _stiffness(elements: np.ndarray, gradients: np.ndarray, scale: np.ndarray):
    """Entries scale (g_a . g_b) of the matrix that belongs to scale/2 |F|^2, those above its diagonal."""
    one, other = np.triu_indices(elements.shape[1], 1)
    products = scale[:, None] * np.einsum("mki,mki->mk", gradients[:, one], gradients[:, other])
    first, second = elements[:, one], elements[:, other]
    return np.minimum(first, second).ravel(), np.maximum(first, second).ravel(), products.ravel()


def _bending_matrix(mesh: Mesh, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quadratic bending over every inner edge: D/(A0 + A1) |K x|^2 / 2 with the cotangents of both triangles in K.

    Bergou et al. have 3 D; with D a sheet rolled up along its grid stores what plate theory says.
    """
    rigidity = rigidity_of(body)
    faces_at, edges = mesh.topology.edge_faces, mesh.edges
    inner = np.flatnonzero(np.diff(faces_at.offsets) == 2)
    pair = faces_at.indices[faces_at.offsets[inner][:, None] + [0, 1]]
    ends = edges[inner]
    across = np.stack([mesh.faces[pair[:, k]].sum(axis=1) - ends.sum(axis=1) for k in range(2)], axis=1)
    x = mesh.vertices

    def cotangent(at: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        u, v = x[one] - x[at], x[other] - x[at]
        return np.einsum("ij,ij->i", u, v) / np.linalg.norm(np.cross(u, v), axis=1)

    a, b, c, d = ends[:, 0], ends[:, 1], across[:, 0], across[:, 1]
    at_a = cotangent(a, b, c), cotangent(a, b, d)
    at_b = cotangent(b, a, c), cotangent(b, a, d)
    row = np.stack([sum(at_b), sum(at_a), -at_a[0] - at_b[0], -at_a[1] - at_b[1]], axis=1)
    scale = rigidity / mesh.face_areas[pair].sum(axis=1)
    return _stiffness(np.stack([a, b, c, d], axis=1), row[:, :, None], scale)


def _tet_elements(solid: TetMesh, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mu, lam = lame_moduli(body)
    laws = np.stack(
        [lam * solid.volumes * body.fractions, 1.0 / (6.0 * solid.volumes), np.full(len(solid.tets), 1.0 + mu / lam)],
        axis=1,
    )
    return solid.tets.ravel(), solid.tets[:, _OPPOSITE].reshape(-1, 3), np.repeat(laws, 4, axis=0)


def _sheet_elements(mesh: Mesh, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mu, lam = lame_moduli(body)
    areas = mesh.face_areas
    laws = np.stack([lam * areas * body.thickness, 1.0 / (2.0 * areas), np.full(len(areas), 1.0 + mu / lam)], axis=1)
    others = np.stack([np.roll(mesh.faces, -1, axis=1), np.roll(mesh.faces, -2, axis=1)], axis=2).reshape(-1, 2)
    return mesh.faces.ravel(), np.column_stack([others, np.full(len(others), -1)]), np.repeat(laws, 3, axis=0)


def _summed(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, count: int) -> tuple[Adjacency, np.ndarray]:
    """A symmetric matrix off its diagonal, by rows, from what is above it; what is at one place is added, and stays."""
    above = rows < columns  # two triangles on the same three vertices bend at a vertex and itself
    places, first = np.unique(rows[above].astype(np.int64) * count + columns[above], return_inverse=True)
    weights = np.bincount(first.ravel(), values[above], len(places))
    rows, columns = np.divmod(places, count)
    order = np.argsort(np.concatenate([places, columns * count + rows]))
    both = np.concatenate([rows, columns])[order], np.concatenate([columns, rows])[order]
    return Adjacency(_offsets(both[0], count), both[1].astype(np.int32)), weights[order % max(len(places), 1)]


def _offsets(items: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(items, minlength=count))]).astype(np.int32)
