"""Cells that only the inside of a triangle crosses: found from the cells of its edges, neighbour by neighbour.

Question: all cells a triangle crosses, however large it is.
Method:   flood from the cells its edges cross; a cell is crossed if one of its dart simplices is not separated from the
          triangle by any axis (face normals and edge products; in the plane, edge normals).
Known as: flood fill with separating axis tests; surfaces in cells: Pitiot 2015, section 5.5.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.runtime import SOUND, UnsupportedError, launch

wp.set_module_options({**SOUND, "max_unroll": 1})  # twenty axes in nested loops: unrolled they take 20 s to compile

_ZERO = wp.constant(wp.float64(0.0))


def fill_triangles(map: CellMap, corners: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """All (triangle, cell) pairs that cross, sorted.

    Args:
        corners: (k, 3, 3) [m].
        pairs: (p, 2) triangle and cell, for the edges.
    """
    if map.is_surface:
        raise UnsupportedError("triangles are filled in flat maps and in space, not on curved surfaces")
    shapes = wp.array(np.ascontiguousarray(corners), dtype=wp.vec3d, device=map.device)
    capacity = map.cell_capacity
    known = pairs[:, 0] * capacity + pairs[:, 1]
    crossed, frontier = known, pairs
    while len(frontier):
        fresh = np.setdiff1d(frontier[:, :1] * capacity + map.rings.rows(frontier[:, 1]), known)
        known = np.union1d(known, fresh)
        tried = np.stack(np.divmod(fresh, capacity), axis=1)
        meets = wp.zeros(len(tried), dtype=wp.int32, device=map.device)
        inputs = [map.arrays, shapes, wp.array(tried.astype(np.int32), dtype=wp.vec2i, device=map.device)]
        launch(_meet, len(tried), inputs, [meets], device=map.device, grain=64)
        frontier = tried[meets.numpy() == 1]
        crossed = np.union1d(crossed, fresh[meets.numpy() == 1])
    return np.stack(np.divmod(crossed, capacity), axis=1)


@wp.func
def _separates(axis: wp.vec3d, a: wp.mat33d, v: wp.vec3d, f: wp.vec3d, s: wp.vec3d, e: wp.vec3d) -> bool:
    """Whether the triangle (rows of a) and the simplex v f s e lie apart along an axis."""
    p = a * axis
    q = wp.vec4d(wp.dot(axis, v), wp.dot(axis, f), wp.dot(axis, s), wp.dot(axis, e))
    return wp.max(p) < wp.min(q) or wp.max(q) < wp.min(p)


@wp.func
def _apart(a: wp.mat33d, v: wp.vec3d, f: wp.vec3d, s: wp.vec3d, e: wp.vec3d, dimension: int) -> bool:
    up = wp.vec3d(_ZERO, _ZERO, wp.float64(1.0))
    corners = wp.matrix_from_rows(v, f, s, e)
    if dimension == 3:
        if _separates(wp.cross(a[1] - a[0], a[2] - a[0]), a, v, f, s, e):
            return True
    for i in range(4):
        for j in range(i + 1, 4):
            edge = corners[j] - corners[i]
            if dimension == 2:
                if _separates(wp.cross(edge, up), a, v, f, s, e):
                    return True
            else:
                for k in range(3):
                    if _separates(wp.cross(edge, a[(k + 1) % 3] - a[k]), a, v, f, s, e):
                        return True
                for k in range(j + 1, 4):
                    if _separates(wp.cross(edge, corners[k] - corners[i]), a, v, f, s, e):
                        return True
    if dimension == 2:
        for k in range(3):
            if _separates(wp.cross(a[(k + 1) % 3] - a[k], up), a, v, f, s, e):
                return True
    return False


@wp.func
def _cell_apart(m: MapArrays, c: int, a: wp.mat33d) -> bool:
    """Whether the corners of a cell say that it is apart: by its box, or all of them on one side of the triangle."""
    low = wp.min(a[0], wp.min(a[1], a[2]))
    high = wp.max(a[0], wp.max(a[1], a[2]))
    n = wp.cross(a[1] - a[0], a[2] - a[0])
    # Centres are means of corners, or points within.
    x = m.centre[c]
    cell_low = x
    cell_high = x
    side = wp.dot(n, x - a[0])
    least = side
    most = side
    d = int(m.anchor[c])
    while d >= 0:
        x = m.position[m.origin[d]]
        cell_low = wp.min(cell_low, x)
        cell_high = wp.max(cell_high, x)
        side = wp.dot(n, x - a[0])
        least = wp.min(least, side)
        most = wp.max(most, side)
        d = m.link[d]
    for k in range(3):
        if cell_high[k] < low[k] or high[k] < cell_low[k]:
            return True
    # Rounding of the products, generously.
    size = wp.length(n) * wp.max(wp.length(cell_high - low), wp.length(high - cell_low)) * wp.float64(1.0e-12)
    return m.dimension == 3 and (least > size or most < -size)


@wp.func
def cell_meets_triangle(m: MapArrays, c: int, a: wp.mat33d) -> bool:
    """Whether a leaf cell and a triangle (rows of a) have a point in common."""
    if _cell_apart(m, c, a):
        return False
    d = int(m.anchor[c])
    while d >= 0:
        f = m.centre[c]
        if m.dimension == 3:
            f = m.face_centre[d]
        s = m.position[m.origin[d]]
        e = m.position[m.origin[m.phi1[d]]]
        if not _apart(a, m.centre[c], f, s, e, m.dimension):
            return True
        d = m.link[d]
    return False


@wp.kernel
def _meet(first: int, m: MapArrays, triangles: wp.array2d[wp.vec3d], pairs: wp.array[wp.vec2i], meets: wp.array[int]):
    i = first + wp.tid()
    t = pairs[i][0]
    a = wp.matrix_from_rows(triangles[t, 0], triangles[t, 1], triangles[t, 2])
    meets[i] = int(cell_meets_triangle(m, pairs[i][1], a))
