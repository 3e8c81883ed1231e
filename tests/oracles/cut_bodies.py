"""Is a cut body still a body? Everything that must hold of simplices and their neighbours, found anew with NumPy.

Nothing here reads the lists that cutting keeps: only corners, neighbours and places of vertices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

#: Corners of the facets of a tetrahedron, outward; facet k is opposite corner k.
TET_FACETS = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
TRIANGLE_FACETS = np.array([[1, 2], [2, 0], [0, 1]])


@dataclass(frozen=True)
class CutFigures:
    """What `examine` found; `faults` is empty for a valid complex."""

    faults: list[str]
    size: float  #: volume, or area of a sheet
    parts: int
    euler: int  #: characteristic of the surface, or of the sheet
    altitude: float  #: the least
    longest: float  #: edge
    largest_box: float  #: longest diagonal of the bounding box of a simplex
    surface_volume: float  #: enclosed by the surface
    pinched: int  #: vertices where the surface comes by more than once


def facets_of(size: int) -> np.ndarray:
    return TET_FACETS if size == 4 else TRIANGLE_FACETS


def sizes(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n,) signed volumes of tetrahedra, areas of triangles."""
    a, b, c = (points[corners[:, k]] for k in range(3))
    if corners.shape[1] == 3:
        return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return np.einsum("ij,ij->i", np.cross(b - a, c - a), points[corners[:, 3]] - a) / 6.0


def edge_lengths(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(corners.shape[1], 1)
    return np.linalg.norm(points[corners[:, i]] - points[corners[:, j]], axis=2)


def altitudes(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n,) the least altitude of each simplex."""
    if corners.shape[1] == 3:
        return 2.0 * sizes(points, corners) / edge_lengths(points, corners).max(axis=1)
    a, b, c = (points[corners[:, TET_FACETS[:, k]]] for k in range(3))
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=2)
    return 3.0 * sizes(points, corners) / areas.max(axis=1)


def parts_of(neighbours: np.ndarray) -> tuple[int, np.ndarray]:
    """How many connected parts there are, and which each simplex belongs to."""
    i, k = np.nonzero(neighbours >= 0)
    count = len(neighbours)
    return connected_components(
        coo_matrix((np.ones(len(i)), (i, neighbours[i, k] >> 2)), shape=(count, count)), directed=False
    )


def examine(points: np.ndarray, corners: np.ndarray, neighbours: np.ndarray) -> CutFigures:
    """All that must hold, and figures."""
    faults: list[str] = []
    count, size = corners.shape
    facets = facets_of(size)
    i, k = np.nonzero(neighbours >= 0)
    beyond = neighbours[i, k]
    if not (neighbours[beyond >> 2, beyond & 3] == 4 * i + k).all():
        faults.append("neighbours are not mutual")
    here = np.sort(corners[i[:, None], facets[k]], axis=1)
    if not (here == np.sort(corners[(beyond >> 2)[:, None], facets[beyond & 3]], axis=1)).all():
        faults.append("neighbours do not share a facet")
    every = np.sort(corners[:, facets].reshape(-1, size - 1), axis=1)
    _, shared = np.unique(every, axis=0, return_counts=True)
    if shared.max() > 2:
        faults.append("more than two simplices have the same facet")
    if (shared == 2).sum() * 2 != len(i):
        faults.append("simplices with the same facet are not neighbours")
    if len(np.unique(corners)) != len(points):
        faults.append("vertices without simplices")
    if _stars(corners, i, k, beyond, facets) != len(points):
        faults.append("a star is not connected")
    if not (sizes(points, corners) > 0.0).all():
        faults.append("a simplex is inside out or flat")
    if size == 4:
        euler, volume, pinched = _examine_surface(points, corners, neighbours, faults)
    else:
        euler, volume, pinched = _examine_sheet(corners, faults), 0.0, 0
    return CutFigures(
        faults=faults,
        size=float(sizes(points, corners).sum()),
        parts=int(parts_of(neighbours)[0]),
        euler=euler,
        altitude=float(altitudes(points, corners).min()),
        longest=float(edge_lengths(points, corners).max()),
        largest_box=float(np.linalg.norm(np.ptp(points[corners], axis=1), axis=1).max()),
        surface_volume=volume,
        pinched=pinched,
    )


def _stars(corners: np.ndarray, i: np.ndarray, k: np.ndarray, beyond: np.ndarray, facets: np.ndarray) -> int:
    """Pieces of stars: classes of corners that facets join."""
    count, size = corners.shape
    rows, columns = [], []
    for j in range(size - 1):
        own = facets[k][:, j]
        vertex = corners[i, own]
        rows.append(size * i + own)
        columns.append(size * (beyond >> 2) + np.argmax(corners[beyond >> 2] == vertex[:, None], axis=1))
    links = np.concatenate(rows), np.concatenate(columns)
    return connected_components(coo_matrix((np.ones(len(links[0])), links), shape=(size * count,) * 2), directed=False)[
        0
    ]


def surface_of(corners: np.ndarray, neighbours: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The surface of tetrahedra, its vertices being corners of triangles that meet round edges.

    Returns:
        facets (f,) as 4 t + k; their dofs (f, 3); surface vertices (f, 3); the dof of each surface vertex.
    """
    t, k = np.nonzero(neighbours < 0)
    facets = 4 * t + k
    dofs = corners[t[:, None], TET_FACETS[k]]
    place = np.full(4 * len(corners), -1)
    place[facets] = np.arange(len(facets))
    links: list[tuple[np.ndarray, np.ndarray]] = []
    for j in range(3):
        u, v = dofs[:, j], dofs[:, (j + 1) % 3]
        at, into = t.copy(), k.copy()
        out = np.full(len(t), -1)
        going = np.arange(len(t))
        while len(going):
            # The facet of the tetrahedron, other than the one come through, that has the edge.
            others = corners[at[going]]
            leave = (others != u[going, None]) & (others != v[going, None]) & (np.arange(4) != into[going, None])
            leave = leave.argmax(axis=1)
            n = neighbours[at[going], leave]
            done = n < 0
            out[going[done]] = place[4 * at[going[done]] + leave[done]]
            at[going[~done]], into[going[~done]] = n[~done] >> 2, n[~done] & 3
            going = going[~done]
        for mine, vertex in ((j, u), ((j + 1) % 3, v)):
            theirs = np.argmax(dofs[out] == vertex[:, None], axis=1)
            links.append((3 * np.arange(len(t)) + mine, 3 * out + theirs))
    rows, columns = (np.concatenate([link[side] for link in links]) for side in range(2))
    found, label = connected_components(
        coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(3 * len(t),) * 2), directed=False
    )
    dof_of = np.zeros(found, int)
    dof_of[label] = dofs.ravel()
    return facets, dofs, label.reshape(-1, 3), dof_of


def _examine_surface(points, corners, neighbours, faults) -> tuple[int, float, int]:
    _, dofs, triangles, dof_of = surface_of(corners, neighbours)
    if not (dof_of[triangles] == dofs).all():
        faults.append("a surface vertex has two dofs")
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    key, back = edges @ [len(dof_of), 1], edges @ [1, len(dof_of)]
    once, times = np.unique(key, return_counts=True)
    if times.max() > 1:
        faults.append("a surface edge is in more than two triangles")
    if not np.isin(back, once).all():
        faults.append("the surface is not closed and oriented")
    ordered = np.sort(triangles, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        faults.append("a surface triangle has a vertex twice")
    # Indices alone, as a mesh for detection has them: each edge of dofs may be in several triangles only if pinched.
    euler = len(dof_of) - len(once) // 2 + len(triangles)
    pinched = len(dof_of) - len(np.unique(dof_of))
    solid = len(points) - _edges(corners) + _facets(corners) - len(corners)
    if pinched == 0 and euler != 2 * solid:
        faults.append(f"the surface has Euler characteristic {euler}, the solid {solid}, which is not half of it")
    y = points[dofs]
    return euler, float(np.einsum("ij,ij->i", np.cross(y[:, 0], y[:, 1]), y[:, 2]).sum() / 6.0), pinched


def _examine_sheet(corners: np.ndarray, faults: list[str]) -> int:
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    if len(np.unique(edges, axis=0)) != len(edges):
        faults.append("an edge is twice in one direction")
    return len(np.unique(corners)) - _edges(corners) + len(corners)


def _edges(corners: np.ndarray) -> int:
    i, j = np.triu_indices(corners.shape[1], 1)
    return len(np.unique(np.sort(corners[:, np.stack([i, j], axis=1)].reshape(-1, 2), axis=1), axis=0))


def _facets(corners: np.ndarray) -> int:
    return len(np.unique(np.sort(corners[:, TET_FACETS].reshape(-1, 3), axis=1), axis=0))


def parts_beside_plane(points, corners, neighbours, origin, normal) -> int:
    """Connected parts of the body without a plane: pieces of simplices, joined where facets reach that side."""
    height = (points - origin) @ normal
    count = len(corners)
    has = np.stack([(height[corners] > 0.0).any(axis=1), (height[corners] < 0.0).any(axis=1)], axis=1)
    i, k = np.nonzero(neighbours >= 0)
    across = height[corners[i[:, None], facets_of(corners.shape[1])[k]]]
    rows, columns = [], []
    for side, reached in ((0, (across > 0.0).any(axis=1)), (1, (across < 0.0).any(axis=1))):
        rows.append(2 * i[reached] + side)
        columns.append(2 * (neighbours[i, k][reached] >> 2) + side)
    links = np.concatenate(rows), np.concatenate(columns)
    _, label = connected_components(coo_matrix((np.ones(len(links[0])), links), shape=(2 * count,) * 2), directed=False)
    return len(np.unique(label.reshape(-1, 2)[has]))
