"""Combinatorial maps from polygons or polyhedra given as lists of vertices; bad topology is refused by dart and law.

Question: which darts are next to each other in a mesh?
Method:   darts are numbered face by face as the corners are given, and sewn where they have the same ends. Corners that
          meet only in a vertex, without an edge or face between them, belong to different vertices of the map (a
          quasi-manifold has one vertex per turn of faces): such a vertex is doubled.
Known as: sewing darts of a combinatorial map (Damiand and Lienhardt 2014; Pitiot 2015, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.runtime import InputError

#: Faces of the usual volumes, counter-clockwise seen from outside, corners numbered as VTK does.
_VOLUME_FACES = {
    4: [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]],
    5: [[0, 3, 2, 1], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]],
    6: [[0, 1, 2], [3, 5, 4], [0, 3, 4, 1], [1, 4, 5, 2], [2, 5, 3, 0]],
    8: [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]],
}


@dataclass(frozen=True)
class HalfFaces:
    """Faces as volumes see them: corner vertices one after the other, the size and the cell of each face."""

    vertices: np.ndarray  #: one per dart
    sizes: np.ndarray  #: one per face
    cells: np.ndarray  #: one per face


@dataclass(frozen=True)
class Links:
    """The permutations of a map and what its darts belong to, int32, one entry per dart."""

    phi1: np.ndarray
    phi_1: np.ndarray
    phi2: np.ndarray
    phi3: np.ndarray
    origin: np.ndarray
    cell: np.ndarray
    positions: np.ndarray  #: (v, 3), with doubled vertices


def half_faces_of_polygons(polygons: object) -> HalfFaces:
    """From an (m, k) array of vertex numbers or a sequence of polygons of any sizes."""
    flat, sizes = _flatten(polygons, "polygons")
    return HalfFaces(flat, sizes, np.arange(len(sizes)))


def half_faces_of_polyhedra(cells: object) -> HalfFaces:
    """From an (m, 4 | 5 | 6 | 8) array in VTK order, or a sequence of cells, each such a row or a sequence of faces."""
    if isinstance(cells, np.ndarray) and cells.ndim == 2 and cells.shape[1] in _VOLUME_FACES:
        return _half_faces_of_rows(cells)
    faces, owners = [], []
    for number, cell in enumerate(cells):
        if len(cell) and np.ndim(cell[0]) == 0:
            if len(cell) not in _VOLUME_FACES:
                raise InputError(f"cells: cell {number} has {len(cell)} corners; give its faces instead")
            cell = [[cell[i] for i in face] for face in _VOLUME_FACES[len(cell)]]
        faces += list(cell)
        owners += [number] * len(cell)
    flat, sizes = _flatten(faces, "cells")
    return HalfFaces(flat, sizes, np.asarray(owners))


def link_polygons(half: HalfFaces, positions: np.ndarray) -> Links:
    """The 2-map of polygons that run counter-clockwise."""
    phi1, phi_1, cell = _face_cycles(half, len(positions))
    origin, end = half.vertices, half.vertices[phi1]
    what = "an edge has at most one face on each side, so that phi2 is an involution"
    phi2 = _twins(np.stack([origin, end]), np.stack([end, origin]), what)
    nothing = np.full(len(origin), -1)
    return _with_vertices(phi1, phi_1, phi2, nothing, half.vertices, cell, positions)


def link_polyhedra(half: HalfFaces, positions: np.ndarray) -> Links:
    """The 3-map of polyhedra whose faces run counter-clockwise seen from outside."""
    phi1, phi_1, cell = _face_cycles(half, len(positions))
    origin, end = half.vertices, half.vertices[phi1]
    what = "each edge of a volume has two of its faces, so that phi2 is an involution"
    phi2 = _twins(np.stack([cell, origin, end]), np.stack([cell, end, origin]), what)
    if (phi2 < 0).any():
        dart = int(np.argmax(phi2 < 0))
        raise InputError(f"dart {dart} (cell {cell[dart]}, {_edge(origin, end, dart)}) breaks a law: {what}")
    face = np.repeat(_same_faces(half), half.sizes)
    what = "a face has at most one volume on each side, so that phi3 is an involution"
    phi3 = _twins(np.stack([face, origin, end]), np.stack([face, end, origin]), what)
    inside = np.flatnonzero(phi3 >= 0)
    wrong = inside[phi1[phi3[phi1[inside]]] != phi3[inside]]
    if len(wrong):
        raise InputError(f"dart {wrong[0]} (cell {cell[wrong[0]]}) breaks a law: phi1(phi3(phi1(d))) = phi3(d)")
    return _with_vertices(phi1, phi_1, phi2, phi3, half.vertices, cell, positions)


def _flatten(faces: object, name: str) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(faces, np.ndarray) and faces.ndim == 2:
        flat, sizes = faces.reshape(-1), np.full(len(faces), faces.shape[1])
    else:
        rows = [np.asarray(face).reshape(-1) for face in faces]
        flat = np.concatenate(rows) if rows else np.empty(0, int)
        sizes = np.array([len(row) for row in rows], dtype=int)
    if len(sizes) == 0:
        raise InputError(f"{name}: there are none")
    if not np.issubdtype(flat.dtype, np.integer):
        raise InputError(f"{name} must hold whole numbers, not {flat.dtype}")
    if (sizes < 3).any():
        face = int(np.argmax(sizes < 3))
        raise InputError(f"{name}: face {face} has {sizes[face]} corners; a face has three or more")
    return flat.astype(np.int64), sizes


def _half_faces_of_rows(cells: np.ndarray) -> HalfFaces:
    faces = _VOLUME_FACES[cells.shape[1]]
    flat = cells[:, [corner for face in faces for corner in face]].reshape(-1)
    if not np.issubdtype(flat.dtype, np.integer):
        raise InputError(f"cells must hold whole numbers, not {flat.dtype}")
    sizes = np.tile([len(face) for face in faces], len(cells))
    return HalfFaces(flat.astype(np.int64), sizes, np.repeat(np.arange(len(cells)), len(faces)))


def _face_cycles(half: HalfFaces, vertex_count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flat = half.vertices
    if flat.min() < 0 or flat.max() >= vertex_count:
        dart = int(np.argmax((flat < 0) | (flat >= vertex_count)))
        raise InputError(f"dart {dart} uses vertex {flat[dart]} but there are {vertex_count} vertices")
    starts = np.cumsum(half.sizes) - half.sizes
    ends = starts + half.sizes - 1
    darts = np.arange(len(flat))
    phi1, phi_1 = darts + 1, darts - 1
    phi1[ends], phi_1[starts] = starts, ends
    face = np.repeat(np.arange(len(half.sizes)), half.sizes)
    order = np.lexsort((flat, face))
    repeated = (flat[order][1:] == flat[order][:-1]) & (face[order][1:] == face[order][:-1])
    if repeated.any():
        dart = int(order[1:][repeated][0])
        raise InputError(f"dart {dart} (face {face[dart]}) breaks a law: a face has vertex {flat[dart]} only once")
    return phi1, phi_1, half.cells[face]


def _twins(keys: np.ndarray, wanted: np.ndarray, law: str) -> np.ndarray:
    """For each dart the one whose key is wanted, or -1; two darts of one key break the law."""
    number = _numbered(np.concatenate([keys, wanted], axis=1))
    mine, theirs = number[: keys.shape[1]], number[keys.shape[1] :]
    order = np.argsort(mine, kind="stable")
    twice = np.flatnonzero(mine[order][1:] == mine[order][:-1])
    if len(twice):
        a, b = sorted((int(order[twice[0]]), int(order[twice[0] + 1])))
        raise InputError(f"darts {a} and {b} ({_edge(keys[-2], keys[-1], a)}) break a law: {law}")
    where = np.full(number.max() + 1, -1)
    where[mine] = np.arange(len(mine))
    return where[theirs]


def _edge(origin: np.ndarray, end: np.ndarray, dart: int) -> str:
    return f"from vertex {origin[dart]} to {end[dart]}"


def _same_faces(half: HalfFaces) -> np.ndarray:
    """A number per face, the same for faces with the same vertices."""
    widest = int(half.sizes.max())
    table = np.full((len(half.sizes), widest), -1)
    starts = np.cumsum(half.sizes) - half.sizes
    row = np.repeat(np.arange(len(half.sizes)), half.sizes)
    table[row, np.arange(len(half.vertices)) - np.repeat(starts, half.sizes)] = half.vertices
    table.sort(axis=1)
    return _numbered(table.T)


def _numbered(columns: np.ndarray) -> np.ndarray:
    """A number per column of (k, n), the same for equal columns; ten times faster than `np.unique` along an axis."""
    order = np.lexsort(columns)
    sorted_columns = columns[:, order]
    fresh = np.r_[False, (sorted_columns[:, 1:] != sorted_columns[:, :-1]).any(axis=0)]
    number = np.empty(columns.shape[1], np.int64)
    number[order] = np.cumsum(fresh)
    return number


def _with_vertices(phi1, phi_1, phi2, phi3, vertices, cell, positions) -> Links:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(phi1)
    turns = []
    for across in (phi2, phi3):
        there = across[phi_1]
        darts = np.flatnonzero(there >= 0)
        turns.append(np.stack([darts, there[darts]]))
    a, b = np.concatenate(turns, axis=1)
    _, orbit = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(count, count)), directed=False)
    first = np.unique(orbit, return_index=True)[1]  # one dart of each turn of faces
    owner = vertices[first]
    order = np.lexsort((first, owner))
    extra = np.zeros(len(first), bool)
    extra[order[1:]] = owner[order[1:]] == owner[order[:-1]]
    vertex = owner.copy()
    vertex[extra] = len(positions) + np.arange(extra.sum())
    arrays = [np.ascontiguousarray(x, dtype=np.int32) for x in (phi1, phi_1, phi2, phi3, vertex[orbit], cell)]
    return Links(*arrays, positions=np.concatenate([positions, positions[owner[extra]]]))
