"""Cells must be star-shaped: seen whole from their centre, so that every dart simplex has a positive size.

Question: does each cell's centre see the cell, and if not, is there a point that does?
Method:   the sign of every simplex. For a cell that fails, the point with the largest distance to all planes of its
          facets (a linear programme) becomes its centre, unless there is none.
Surfaces in space are not asked: their triangles have no inside.
Spec: specs/pitiot-multiresolution-interactions 2.8.
"""

from __future__ import annotations

import numpy as np

__all__ = ["blind_cells", "see_whole_cells", "simplex_sizes"]


def simplex_sizes(map) -> np.ndarray:
    """Twice the area (planar maps) or six times the volume (3-maps) of the simplex of every live dart, signed."""
    facets, centre = _facets(map, map.darts), map.numpy("centre")[map.numpy("cell")[map.darts]]
    return _heights(facets, centre)


def blind_cells(map) -> np.ndarray:
    """The cells that their centre does not see whole."""
    if map.dimension == 2 and not map.flat:
        return np.empty(0, np.int64)
    return np.unique(map.numpy("cell")[map.darts[~(simplex_sizes(map) > 0)]])


def see_whole_cells(map) -> np.ndarray:
    """Move the centre of every blind cell to where it sees the cell; returns the cells for which there is no place."""
    blind = blind_cells(map)
    if len(blind) == 0:
        return blind
    cell, centre = map.numpy("cell")[map.darts], map.arrays.centre.numpy().copy()
    hopeless = []
    for c in blind:
        facets = _facets(map, map.darts[cell == c])
        place = _deepest_point(facets, map.dimension)
        if place is not None and (_heights(facets, place) > 0).all():
            centre[c] = place
        else:
            hopeless.append(c)
    map.arrays.centre.assign(centre)
    return np.array(hopeless, np.int64)


def _facets(map, darts: np.ndarray) -> np.ndarray:
    """(n, dimension, 3) corners of the facet of each dart: (face centre,) origin, end."""
    ends = map.numpy("origin")[np.stack([darts, map.numpy("phi1")[darts]])]
    corners = [map.positions[ends[0]], map.positions[ends[1]]]
    if map.dimension == 3:
        corners.insert(0, map.numpy("face_centre")[darts])
    return np.stack(corners, axis=1)


def _outward(facets: np.ndarray) -> np.ndarray:
    sides = facets[:, 1:] - facets[:, :1]
    if facets.shape[1] == 3:
        return np.cross(sides[:, 0], sides[:, 1])
    return np.stack([sides[:, 0, 1], -sides[:, 0, 0], np.zeros(len(facets))], axis=1)


def _heights(facets: np.ndarray, point: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", _outward(facets), facets[:, 0] - point)


def _deepest_point(facets: np.ndarray, dimension: int) -> np.ndarray | None:
    from scipy.optimize import linprog

    normal = _outward(facets)
    length = np.linalg.norm(normal, axis=1)
    if not (length > 0).all():
        return None
    normal = normal / length[:, None]
    middle, scale = facets.reshape(-1, 3).mean(axis=0), np.ptp(facets.reshape(-1, 3), axis=0).max()
    level = np.einsum("ij,ij->i", normal, facets[:, 0] - middle) / scale
    table = np.concatenate([normal[:, :dimension], np.ones((len(normal), 1))], axis=1)
    bounds = [(-2, 2)] * dimension + [(None, 1)]
    answer = linprog([0.0] * dimension + [-1.0], A_ub=table, b_ub=level, bounds=bounds)
    if answer.status != 0 or not answer.x[-1] > 0:
        return None
    return middle + scale * np.concatenate([answer.x[:dimension], np.zeros(3 - dimension)])
