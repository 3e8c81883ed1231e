"""A closed mesh without its skin, and how far the facets of a mesh are from the round surface they stand for.

Question: where is the surface once every face is moved inwards by a depth?
Method:   each vertex moves so that all planes of its triangles go inwards by the depth (least squares of n x = -depth
          over its triangles, then stretched until the last of them has gone so far). Where an edge between two planes
          would turn round the mesh is thinner than two skins, which is refused; triangles of one plane may fold.
Sound:    no point of the surface moves farther than `Inset.farthest`, so whatever lies deeper than that inside the mesh
          is inside the inset mesh too.
Known as: inward offset, erosion of a solid; the stretch at sharp edges is the mitre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.runtime import InputError, positive

#: Edges bent by less than this are facets of something round: what has fewer than ten facets means its edges.
ROUND = np.radians(36.5)
#: Faces bent by less than this lie in one plane.
FLAT = 1e-6
#: A vertex moves at most so many times the depth; what is sharper is refused.
MOST_STRETCH = 100.0


@dataclass(frozen=True, eq=False)
class Inset:
    """Where the vertices of a mesh are once its skin is taken off."""

    vertices: np.ndarray  #: (n, 3) [m]
    depth: float  #: every face has moved inwards at least so far [m]
    farthest: float  #: no point has moved farther [m]


def inset(mesh: Any, depth: float) -> Inset:
    """The vertices of a closed `Mesh` with all its faces moved inwards by `depth` [m]."""
    positive(depth, "skin")
    if not (mesh.topology.is_closed and mesh.topology.is_oriented):
        raise InputError(f"mesh {mesh.name!r} has no inside: a skin can be taken off closed, oriented meshes only")
    corners, faces = mesh.vertices[mesh.faces], mesh.faces
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    if np.einsum("ij,ij->", corners[:, 0], across) < 0.0:
        raise InputError(f"mesh {mesh.name!r} is inside out: turn its faces round")
    length = np.linalg.norm(across, axis=1)
    proper = length > 0.0
    normal = across[proper] / length[proper, None]
    vertex, plane = faces[proper].ravel(), np.repeat(normal, 3, axis=0)
    count = len(mesh.vertices)
    matrix, right = np.zeros((count, 3, 3)), np.zeros((count, 3))
    np.add.at(matrix, vertex, plane[:, :, None] * plane[:, None, :])
    np.add.at(right, vertex, plane)
    move = -np.einsum("nij,nj->ni", np.linalg.pinv(matrix, rcond=1e-9, hermitian=True), right)
    inwards = np.full(count, np.inf)
    np.minimum.at(inwards, vertex, -np.einsum("ij,ij->i", plane, move[vertex]))
    used = np.isfinite(inwards)
    stretch = np.linalg.norm(move, axis=1) / np.maximum(inwards, 1e-300)
    wrong = used & ~((inwards > 0.0) & (stretch < MOST_STRETCH))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"mesh {mesh.name!r}: a skin cannot be taken off at vertex {at}: its triangles look in opposite directions"
        )
    move[used] *= depth / np.minimum(inwards[used], 1.0)[:, None]
    moved = mesh.vertices + move
    edges, _, angle = _bends(mesh)
    ends = mesh.topology.edges[edges[angle >= FLAT]]
    before, after = (at[ends[:, 1]] - at[ends[:, 0]] for at in (mesh.vertices, moved))
    turned = np.einsum("ij,ij->i", before, after) <= 0.0
    if turned.any():
        p, q = ends[np.argmax(turned)]
        raise InputError(
            f"mesh {mesh.name!r}: the edge from vertex {p} to {q}, and {int(turned.sum()) - 1} more, turn round when"
            f" a skin of {depth:.3g} m is taken off: the part is thinner than two skins there; give a smaller skin"
        )
    return Inset(moved, depth, float(np.linalg.norm(move, axis=1).max() * (1.0 + 1e-12)))


def chord_error(mesh: Any) -> float:
    """How far a round surface can be from the facets that stand for it [m]: the largest sagitta; 0 if all is flat.

    Facets are taken to be round where at least three follow each other, bent by less than 36.5 degrees from one to the
    next: an edge between two planes, or a chamfer, is what it is.
    """
    inner, pairs, angle = _bends(mesh)
    facet = _facets(len(mesh.faces), pairs[angle < FLAT])
    bent = (angle >= FLAT) & (angle < ROUND)
    edges, pairs, angle = inner[bent], pairs[bent], angle[bent]
    if not len(edges):
        return 0.0
    neighbours = np.unique(np.sort(facet[pairs], axis=1), axis=0)
    follow = np.bincount(neighbours.ravel(), minlength=len(mesh.faces))
    in_row = (follow[facet[pairs]] >= 2).all(axis=1)
    widths = _widths(mesh, edges[in_row], facet[pairs[in_row]], facet)
    return float((0.5 * widths * np.tan(0.25 * angle[in_row])).max(initial=0.0))


def _bends(mesh: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges between two triangles, (k,), these triangles, (k, 2), and the angle between their normals, (k,)."""
    topology = mesh.topology
    inner = np.flatnonzero(topology.edge_face_count == 2)
    pairs = topology.edge_faces.indices[topology.edge_faces.offsets[inner][:, None] + np.arange(2)]
    one, other = mesh.face_normals[pairs[:, 0]], mesh.face_normals[pairs[:, 1]]
    sine = np.linalg.norm(np.cross(one, other), axis=1)
    return inner, pairs, np.arctan2(sine, np.einsum("ij,ij->i", one, other))


def _facets(count: int, pairs: np.ndarray) -> np.ndarray:
    """(count,) the smallest triangle of the facet each triangle belongs to; `pairs` lie in one plane."""
    facet = np.arange(count)
    while len(pairs):
        least = facet.copy()
        np.minimum.at(least, pairs[:, 0], facet[pairs[:, 1]])
        np.minimum.at(least, pairs[:, 1], facet[pairs[:, 0]])
        least = least[least]
        if np.array_equal(least, facet):
            break
        facet = least
    return facet


def _widths(mesh: Any, edges: np.ndarray, facets: np.ndarray, facet: np.ndarray) -> np.ndarray:
    """How wide the narrower of the two facets at each edge is, across the edge [m]."""
    ends = mesh.vertices[mesh.topology.edges[edges]]
    along = ends[:, 1] - ends[:, 0]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    order = np.argsort(facet, kind="stable")
    first = np.searchsorted(facet[order], np.arange(len(facet) + 1))
    widths = np.empty(facets.shape)
    for side in range(2):
        sizes = first[facets[:, side] + 1] - first[facets[:, side]]
        row = np.repeat(np.arange(len(edges)), sizes)
        place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[facets[row, side]]
        corners = mesh.vertices[mesh.faces[order[place]]] - ends[row, None, 0]
        off = np.linalg.norm(np.cross(corners, along[row, None]), axis=2).max(axis=1)
        widths[:, side] = 0.0
        np.maximum.at(widths[:, side], row, off)
    return widths.min(axis=1)
