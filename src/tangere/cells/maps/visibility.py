"""Cells must be star-shaped: seen whole from their centre, so that every dart simplex has a positive size.

Question: does each cell's centre see the cell, and if not, is there a point that does?
Method:   the sign of every simplex. For a cell that fails, the point with the largest distance to all planes of its
          facets (a linear programme) becomes its centre, unless there is none.
Surfaces in space are not asked: their triangles have no inside.
Known as: the kernel of a star-shaped polygon or polyhedron; BC cells (Pitiot 2015, section 7.2).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.runtime import SOUND, indices_at_least, launch

wp.set_module_options(SOUND)


def cells_not_star_shaped(map) -> np.ndarray:
    """The cells that their centre does not see whole."""
    if map.is_surface:
        return np.empty(0, np.int64)
    blind = wp.zeros(map.cell_capacity, dtype=wp.uint8, device=map.device)
    launch(_mark_not_star_shaped, map.cell_capacity, [map.arrays], [blind], device=map.device, grain=2048)
    return np.sort(indices_at_least(blind, 1).numpy()).astype(np.int64)


def recentre_cells(map) -> np.ndarray:
    """Move the centre of every blind cell to where it sees the cell; returns the cells for which there is no place."""
    blind = cells_not_star_shaped(map)
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
    corners = [*map.edge_ends(darts)]
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


@wp.kernel
def _mark_not_star_shaped(first: int, m: MapArrays, blind: wp.array[wp.uint8]):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    v = m.centre[c]
    d = int(m.anchor[c])
    while d >= 0:
        s = m.position[m.origin[d]]
        e = m.position[m.origin[m.phi1[d]]]
        size = (s[0] - v[0]) * (e[1] - v[1]) - (s[1] - v[1]) * (e[0] - v[0])
        if m.dimension == 3:
            f = m.face_centre[d]
            size = wp.dot(wp.cross(s - f, e - f), f - v)
        if not size > wp.float64(0.0):
            blind[c] = wp.uint8(1)
        d = m.link[d]
