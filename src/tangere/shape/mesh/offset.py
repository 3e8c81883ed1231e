"""A closed mesh without its skin, and how far the facets of a mesh are from the round surface they stand for.

Question: where is the surface once every face is moved inwards by a depth?
Method:   each vertex moves by the shortest way, or nearly, that takes all planes of its triangles inwards by the depth:
          the point of least norm in the convex hull of the normals gives it. Where an edge between two planes would
          turn round, its ends move less; a vertex whose triangles look in opposite directions stays. Triangles of one
          plane may fold.
Sound:    no point of the surface moves farther than `Inset.farthest`, so whatever is inside the mesh and farther from
          all its triangles than that is inside the inset mesh too. Faces inside a solid, where a mesh touches or
          crosses itself, count: leave them out first.
Known as: inward offset, erosion of a solid; the stretch at sharp edges is the mitre.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tangere.runtime import InputError, positive

#: Edges bent by less than this are facets of something round: what has fewer than ten facets means its edges.
ROUND = np.radians(36.5)
#: Faces bent by less than this lie in one plane.
FLAT = 1e-6
#: A vertex moves at most so many times the depth; what is sharper stays where it is.
MOST_STRETCH = 10.0
#: Planes that move inwards within this of each other are moved together.
EVEN = 1.1
#: Of the vertices at most this part may have a thinner skin; else the mesh is thinner than two skins.
MOST_THINNER = 0.5


@dataclass(frozen=True, eq=False)
class Inset:
    """Where the vertices of a mesh are once its skin is taken off."""

    vertices: np.ndarray  #: (n, 3) [m]
    depth: float  #: every face has moved inwards at least so far, but at `thinner` vertices [m]
    farthest: float  #: no point has moved farther [m]
    thinner: int  #: vertices where the skin had to be thinner, so that no edge turns round


def inset(mesh: Any, depth: float) -> Inset:
    """The vertices of a closed `Mesh` with all its faces moved inwards by `depth` [m]."""
    positive(depth, "skin")
    if not (mesh.topology.is_closed and mesh.topology.is_oriented):
        raise InputError(
            f"mesh {mesh.name!r} has no inside ({mesh.topology.open_edge_count} open edges, "
            f"{mesh.topology.crowded_edge_count} of more than two triangles): a skin can be taken off closed, oriented"
            " meshes only; merge vertices that nearly coincide first"
        )
    corners, faces = mesh.vertices[mesh.faces], mesh.faces
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    if _volume(mesh.vertices, faces) < 0.0:
        raise InputError(f"mesh {mesh.name!r} is inside out: turn its faces round")
    length = np.linalg.norm(across, axis=1)
    proper = length > 0.0
    normal = across[proper] / length[proper, None]
    vertex, plane = faces[proper].ravel(), np.repeat(normal, 3, axis=0)
    move = _inward_moves(len(mesh.vertices), vertex, plane) * depth
    edges, _, angle = _bends(mesh)
    share = _share_without_turns(mesh, move, mesh.topology.edges[edges[angle >= FLAT]])
    thinner = (share < 1.0) | ~move.any(axis=1)
    thinner[np.setdiff1d(np.arange(len(thinner)), vertex)] = False
    if thinner.sum() > MOST_THINNER * len(np.unique(vertex)):
        raise InputError(
            f"mesh {mesh.name!r}: edges turn round at {int(thinner.sum())} of {len(thinner)} vertices when a skin of"
            f" {depth:.3g} m is taken off: the part is thinner than two skins, or has finer facets; give a smaller skin"
        )
    move *= share[:, None]
    moved = mesh.vertices + move
    if not _volume(moved, faces) > 0.0:
        raise InputError(
            f"mesh {mesh.name!r}: nothing is left when a skin of {depth:.3g} m is taken off: the part is thinner than"
            " two skins; give a smaller skin"
        )
    return Inset(moved, depth, float(np.linalg.norm(move, axis=1).max() * (1.0 + 1e-12)), int(thinner.sum()))


def _volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Six times the volume within a closed surface [m^3]; below 0 if it is inside out."""
    a, b, c = (vertices[faces[:, k]] - vertices.mean(axis=0) for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)))


def _inward_moves(count: int, vertex: np.ndarray, plane: np.ndarray) -> np.ndarray:
    """(count, 3) for each vertex the shortest x with n x <= -1 for the normals of its triangles; 0 if there is none."""
    matrix, right = np.zeros((count, 3, 3)), np.zeros((count, 3))
    np.add.at(matrix, vertex, plane[:, :, None] * plane[:, None, :])
    np.add.at(right, vertex, plane)
    # As a rule all planes can be moved by as much, or nearly, as on faces, edges, corners of three planes, and balls.
    move = -np.einsum("nij,nj->ni", np.linalg.pinv(matrix, rcond=1e-9, hermitian=True), right)
    inwards = -np.einsum("ij,ij->i", plane, move[vertex])
    least, most = np.full(count, np.inf), np.zeros(count)
    np.minimum.at(least, vertex, inwards)
    np.maximum.at(most, vertex, inwards)
    even = (least > 0.0) & (most <= EVEN * least)
    move[even] /= least[even, None]
    order = np.argsort(vertex, kind="stable")
    first = np.searchsorted(vertex[order], np.arange(count + 1))
    for v in np.flatnonzero(~even & np.isfinite(least)):
        move[v] = _shortest_move(plane[order[first[v] : first[v + 1]]])
    move[np.linalg.norm(move, axis=1) > MOST_STRETCH] = 0.0
    return move


def _shortest_move(normals: np.ndarray) -> np.ndarray:
    """(3,) the shortest x with n x <= -1 for all normals; 0 if there is none, or only one that is far too long.

    It is the same for one, two or three of the normals alone: all are tried.
    """
    normals = normals[np.unique(np.round(normals, 9), axis=0, return_index=True)[1]]
    best, least = np.zeros(3), MOST_STRETCH
    for size in (1, 2, 3):
        chosen = normals[np.array(list(combinations(range(len(normals)), size)), int).reshape(-1, size)]
        gram = chosen @ chosen.transpose(0, 2, 1)
        x = -np.einsum("kji,kj->ki", chosen, np.linalg.pinv(gram, rcond=1e-12, hermitian=True).sum(axis=2))
        fits = (normals @ x.T).max(axis=0, initial=-np.inf) <= -1.0 + 1e-9
        lengths = np.where(fits, np.linalg.norm(x, axis=1), np.inf)
        if len(lengths) and lengths.min() < least:
            best, least = x[np.argmin(lengths)], float(lengths.min())
    return best / -(normals @ best).max() if best.any() else best


def _share_without_turns(mesh: Any, move: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(vertices,) how much of its move each vertex may make so that none of the edges turns round."""
    share = np.ones(len(move))
    before = mesh.vertices[ends[:, 1]] - mesh.vertices[ends[:, 0]]
    for _ in range(60):
        moved = share[:, None] * move
        after = before + moved[ends[:, 1]] - moved[ends[:, 0]]
        turned = np.einsum("ij,ij->i", before, after) <= 0.1 * np.einsum("ij,ij->i", before, before)
        if not turned.any():
            break
        share[ends[turned]] *= 0.5
    else:
        share[ends[turned]] = 0.0
    return share


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
