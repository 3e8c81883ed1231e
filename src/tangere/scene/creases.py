"""Sharp edges: which vertices a drawn mesh needs several of, so that light does not run across a crease.

Question: how many normals does each vertex have, and which corner of which triangle uses which?
Method:   corners of triangles that share a vertex belong together where the edge between them is shared by two
          triangles that turn by at most the crease angle; what belongs together (connected components) becomes one
          vertex, as often as there are components.
Known as: crease angle, "auto smooth", feature angle; split normals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Edges that turn by more are sharp [degrees].
CREASE = 30.0
#: Twelve sides of a prism turn by 30 degrees but for rounding, and are meant to be round.
_SLACK = 1e-4


@dataclass(frozen=True, eq=False)
class CreasedMesh:
    """A mesh whose vertices are repeated where it has creases."""

    source: np.ndarray  #: (n,) number of the vertex that each is a copy of
    faces: np.ndarray  #: (m, 3) int32


def split_creases(vertices: np.ndarray, faces: np.ndarray, angle: float = CREASE) -> CreasedMesh:
    """Repeat vertices so that triangles share them only across edges that turn by at most `angle` [degrees].

    Args:
        vertices: (n, 3).
        faces: (m, 3).
    """
    plain = CreasedMesh(np.arange(len(vertices)), faces)
    if len(faces) == 0:
        return plain
    first, second, aligned = _shared_edges(faces)
    normals = _unit(_area_normals(vertices, faces))
    turn = np.einsum("ij,ij->i", normals[first // 3], normals[second // 3])
    # Triangles without area have no direction; neighbours that are turned over have opposite normals.
    flat = ~normals.any(axis=1)
    smooth = aligned & ((turn >= np.cos(np.radians(angle)) - _SLACK) | flat[first // 3] | flat[second // 3])
    if smooth.all():
        return plain

    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # The edge from corner c of a triangle goes to its next corner; a neighbour walks it the other way.
    a, b = first[smooth], second[smooth]
    rows, columns = np.concatenate([a, _next(a)]), np.concatenate([_next(b), b])
    links = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(faces.size, faces.size))
    count, component = connected_components(links, directed=False)
    source = np.empty(count, np.int64)
    source[component] = faces.reshape(-1)
    return CreasedMesh(source, component.reshape(-1, 3).astype(np.int32))


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Mean normals of the triangles at each vertex, weighted by area, (n, 3) unit; zero where there are none."""
    weighted = np.repeat(_area_normals(vertices, faces), 3, axis=0)
    corners = faces.ravel()
    return _unit(np.stack([np.bincount(corners, weighted[:, k], len(vertices)) for k in range(3)], axis=1))


def _area_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


def _next(corner: np.ndarray) -> np.ndarray:
    return np.where(corner % 3 == 2, corner - 2, corner + 1)


def _shared_edges(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of corners at which the same edge begins, and whether the two triangles walk it in opposite directions."""
    corner = np.arange(faces.size)
    begin, end = faces.reshape(-1).astype(np.int64), faces.reshape(-1)[_next(corner)].astype(np.int64)
    key = np.minimum(begin, end) * (int(faces.max()) + 1) + np.maximum(begin, end)
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    first, second = order[:-1][same], order[1:][same]
    return first, second, begin[first] == end[second]
