"""The ground and the walls of a map as triangles and quadrilaterals: what pictures, pages and files show of it.

Question: which triangles are the cells of a 2-map, and where do walls stand?
Method:   a triangle for each dart of a leaf. Walls stand on the border of the map, on blocked edges and around
          obstacles; an obstacle itself is a block with a roof.
Known as: the environment of a crowd, with obstacles as marked cells (Pitiot 2015, section 8.1).
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps import WALL, CellMap

#: How high walls and obstacles stand, as parts of the mean length of their edges.
_WALL_HEIGHT, _OBSTACLE_HEIGHT = 0.2, 0.5


def cell_triangles(map: CellMap, *, raised: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3, 3) triangles of the darts of a 2-map [m], and their cells.

    Args:
        raised: obstacles stand out, with a roof and sides.
    """
    darts = map.darts
    cell = map.numpy("cell")[darts]
    triangles = np.stack([map.numpy("centre")[cell], *map.edge_ends(darts)], axis=1)
    blocked = map.arrays.obstacle.numpy()[cell] != 0
    if raised and blocked.any():
        foot = triangles[blocked]
        sides = _raised(foot[:, 1], foot[:, 2], foot[:, 0], _OBSTACLE_HEIGHT)
        roof = foot + (sides[:, 3] - sides[:, 0])[:, None]
        triangles = np.concatenate([triangles[~blocked], roof, sides[:, :3], sides[:, [0, 2, 3]]])
        cell = np.concatenate([cell[~blocked], *[cell[blocked]] * 3])
    return triangles, cell


def cell_edges(map: CellMap) -> np.ndarray:
    """(n, 2, 3) the edges of all leaves, each once [m]."""
    origin = map.numpy("origin")
    ends = np.sort(np.stack([origin[map.darts], origin[map.numpy("phi1")[map.darts]]], axis=1), axis=1)
    return map.positions[np.unique(ends, axis=0)]


def wall_edges(map: CellMap) -> np.ndarray:
    """(n, 2, 3) the edges that stop agents: the border of a 2-map, blocked edges and the sides of obstacles [m]."""
    return map.edge_ends(_wall_darts(map)).swapaxes(0, 1)


def wall_quads(map: CellMap) -> np.ndarray:
    """(n, 4, 3) low upright walls where agents stop but no obstacle stands [m]; each begins with its foot."""
    if map.dimension != 2:
        return np.empty((0, 4, 3))
    darts, cell, obstacle = _wall_darts(map), map.numpy("cell"), map.arrays.obstacle.numpy()
    other = map.numpy("phi2")[darts]
    beside = np.where(other >= 0, obstacle[cell[other]], 0)
    darts = darts[(beside == 0) & (obstacle[cell[darts]] == 0)]
    return _raised(*map.edge_ends(darts), map.numpy("centre")[cell[darts]], _WALL_HEIGHT)


def _wall_darts(map: CellMap) -> np.ndarray:
    """One dart of each such edge, of a cell that agents may be in unless both are obstacles' or there is no other."""
    darts, across = map.darts, map.numpy("phi2")
    blocked = map.arrays.obstacle.numpy()[map.numpy("cell")[darts]] != 0
    stops = (across[darts] < 0) | ((map.numpy("tag")[darts] & WALL != 0) & ~blocked)
    chosen = darts[stops]
    # An edge that is blocked itself stops from both sides.
    twice = (across[chosen] >= 0) & np.isin(across[chosen], chosen) & (across[chosen] < chosen)
    return chosen[~twice]


def _raised(a: np.ndarray, b: np.ndarray, centres: np.ndarray, height: float) -> np.ndarray:
    """(n, 4, 3) upright quads on edges ab of cells with these centres; height: as a part of their mean length."""
    if len(a) == 0:
        return np.empty((0, 4, 3))
    normal = np.cross(a - centres, b - centres)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    up = height * float(np.linalg.norm(b - a, axis=1).mean()) * normal
    return np.stack([a, b, b + up, a + up], axis=1)
