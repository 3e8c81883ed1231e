"""Darts of points that did not move while cells did, and of points that have none yet; flat, on surfaces, in space.

On a surface a point is reached by gliding from the centre of a cell next to it; it is put on the triangle it ends on.
Spec: specs/pitiot-multiresolution-interactions 2.10, 2.14 (re-aiming), 2.15.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.refining import follow_heirs
from tangere.cells.tracking.locate import locate_darts, points_of
from tangere.cells.tracking.surface import glide
from tangere.runtime import Arrays, InputError

__all__ = ["place_points", "relocated"]


def place_points(map: CellMap, points: Arrays, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) points in the map and their darts (n,); outside or in an obstacle is refused."""
    places = points_of(map, points, name).numpy().copy()
    if _is_surface(map):
        from scipy.spatial import cKDTree

        leaves = map.leaves
        cells = leaves[cKDTree(map.numpy("centre")[leaves]).query(places)[1]]
        centre = map.numpy("centre")[cells]
        found = glide(map, centre, places - centre, map.numpy("anchor")[cells])
        places, darts = found.position, found.dart
        outside = found.blocked
    else:
        start, status = locate_darts(map, _device(map, places), None)
        darts, outside = start.numpy().copy(), status.numpy() != 0
    outside = outside | (map.arrays.obstacle.numpy()[map.arrays.cell.numpy()[darts]] != 0)
    if outside.any():
        raise InputError(f"{name}: point {int(np.argmax(outside))} is outside the map or in an obstacle")
    return places, darts


def relocated(map: CellMap, points: wp.array, darts: wp.array) -> tuple[wp.array, wp.array]:
    """Points and their darts after cells were split or merged."""
    follow_heirs(map, darts)
    if not _is_surface(map):
        return points, locate_darts(map, points, darts)[0]
    cells = map.numpy("cell")[darts.numpy()]
    centre = map.numpy("centre")[cells]
    found = glide(map, centre, points.numpy() - centre, map.numpy("anchor")[cells])
    return _device(map, found.position), wp.array(found.dart, dtype=wp.int32, device=map.device)


def _is_surface(map: CellMap) -> bool:
    return map.dimension == 2 and not map.flat


def _device(map: CellMap, points: np.ndarray) -> wp.array:
    return wp.array(np.ascontiguousarray(points), dtype=wp.vec3d, device=map.device)
