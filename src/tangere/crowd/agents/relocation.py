"""Darts of points that did not move while cells did, and of points that have none yet; flat, on surfaces, in space.

Question: in which simplex is a point after cells were split or merged?
Method:   a walk from the dart it had. On a surface a point is put on the nearest triangle; where a cell with bent sides
          is split, the surface itself changes: points then go along a direction that a cell of level 0 keeps through
          all splits and merges, the vector area within its border, to the surface as it is now. So they come back to
          where they were when what was split is merged.
Sound:    a point of the plane or of space keeps its place, one of a surface its place across that direction; one that
          is no longer in the map at all is named.
Known as: repair of prediction darts (Pitiot 2015, sections 6.2.1 and 6.3.1).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap, MapArrays, replace_merged_darts
from tangere.cells.tracking import as_map_points, locate_darts, place_in_map
from tangere.crowd.agents.cell_sizes import cell_widths
from tangere.runtime import SOUND, Arrays, InputError, launch

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
#: Triangles looked at on the way to one; where that is not enough the nearest one is looked for.
_STEPS = wp.constant(10000)
#: Part of a side by which a point may be beyond it: far above rounding, far below what anybody sees.
_BESIDE = wp.constant(wp.float64(1.0e-10))
#: Least cosine between a triangle and the direction of its cell; steeper ones are not met along it.
_STEEP = wp.constant(wp.float64(1.0e-2))
#: How far from a surface a point may be given, as a part of the width of the cell.
_OFF = 0.5


def place_points(map: CellMap, points: Arrays, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) points in the map and their darts (n,); outside, in an obstacle or off the surface is refused."""
    wanted = as_map_points(map, points, name)
    if map.is_surface and len(wanted):
        there, found = _project_to_surface(map, wanted)
        places, darts = there.numpy().copy(), found.numpy().copy()
        away = np.linalg.norm(places - wanted.numpy(), axis=1)
        far = away > _OFF * cell_widths(map)[map.arrays.cell.numpy()[darts]]
        if far.any():
            first = int(np.argmax(far))
            raise InputError(f"{name}: point {first} is {away[first]:.4g} m off the surface")
        outside = np.zeros(len(places), bool)
    else:
        start, status = locate_darts(map, wanted, None)
        places, darts, outside = wanted.numpy().copy(), start.numpy().copy(), status.numpy() != 0
    outside = outside | (map.arrays.obstacle.numpy()[map.arrays.cell.numpy()[darts]] != 0)
    if outside.any():
        raise InputError(f"{name}: point {int(np.argmax(outside))} is outside the map or in an obstacle")
    return places, darts


def relocate(map: CellMap, points: wp.array, darts: wp.array) -> tuple[wp.array, wp.array]:
    """Points and their darts after cells were split or merged."""
    replace_merged_darts(map, darts)
    if map.is_surface:
        return _project_along_normals(map, points, darts)
    # Walls may be between a point and where its dart is now; only who is nowhere in the map is lost.
    found, status = locate_darts(map, points, darts, anywhere=True)
    if status.numpy().any():
        place = points.numpy()[np.argmax(status.numpy())]
        raise InputError(f"an agent at {np.round(place, 6).tolist()} is not in the map any more")
    return points, found


def _project_to_surface(map: CellMap, points: wp.array) -> tuple[wp.array, wp.array]:
    """Points on the nearest triangles of a surface, and their darts."""
    darts = map.darts
    corners = np.stack([map.numpy("centre")[map.numpy("cell")[darts]], *map.edge_ends(darts)], axis=1)
    # In float32 a cell beside the nearest one may be found; the ring of that holds it.
    middle = corners.reshape(-1, 3).mean(axis=0)
    single = wp.array((corners - middle).reshape(-1, 3).astype(np.float32), dtype=wp.vec3f, device=map.device)
    faces = wp.array(np.arange(3 * len(darts), dtype=np.int32), dtype=wp.int32, device=map.device)
    mesh = wp.Mesh(single, faces)
    number = wp.array(darts.astype(np.int32), dtype=wp.int32, device=map.device)
    near = wp.empty(len(points), dtype=wp.int32, device=map.device)
    launch(_nearest, len(points), [mesh.id, wp.vec3d(*middle), points, number], [near], device=map.device)
    return place_in_map(map, points, near)[:2]


def _project_along_normals(map: CellMap, points: wp.array, darts: wp.array) -> tuple[wp.array, wp.array]:
    there, found = wp.empty_like(points), wp.empty_like(darts)
    normals = _device(map, _vector_areas(map))
    launch(_project, len(points), [map.arrays, normals, points, darts], [there, found], device=map.device)
    missed = np.flatnonzero(found.numpy() < 0)
    if len(missed):
        places, numbers = there.numpy().copy(), found.numpy().copy()
        near, dart = _project_to_surface(map, _device(map, points.numpy()[missed]))
        places[missed], numbers[missed] = near.numpy(), dart.numpy()
        there, found = _device(map, places), wp.array(numbers, dtype=wp.int32, device=map.device)
    return there, found


def _vector_areas(map: CellMap) -> np.ndarray:
    """(cells, 3) of each cell of level 0: the same for any surface with its border."""
    darts, parent = map.darts, map.arrays.parent.numpy()
    cell = map.numpy("cell")[darts]
    c, (s, e) = map.numpy("centre")[cell], map.edge_ends(darts)
    while (parent[cell] >= 0).any():
        cell = np.where(parent[cell] >= 0, parent[cell], cell)
    part = np.cross(s - c, e - c)
    return np.stack([np.bincount(cell, part[:, k], minlength=map.cell_capacity) for k in range(3)], axis=1)


def _device(map: CellMap, points: np.ndarray) -> wp.array:
    return wp.array(np.ascontiguousarray(points), dtype=wp.vec3d, device=map.device)


@wp.func
def _root(m: MapArrays, d: int) -> int:
    c = int(m.cell[d])
    while m.parent[c] >= 0:
        c = m.parent[c]
    return c


@wp.kernel
def _nearest(
    first: int,
    mesh: wp.uint64,
    middle: wp.vec3d,
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    near: wp.array[int],
):
    i = first + wp.tid()
    hit = wp.mesh_query_point_no_sign(mesh, wp.vec3f(points[i] - middle), float(wp.inf))
    near[i] = darts[hit.face]


@wp.kernel
def _project(
    first: int,
    m: MapArrays,
    normals: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    there: wp.array[wp.vec3d],
    found: wp.array[int],
):
    i = first + wp.tid()
    x = points[i]
    d = int(darts[i])
    root = _root(m, d)
    n = wp.normalize(normals[root])
    there[i] = x
    found[i] = -1
    for _step in range(_STEPS):
        c = m.centre[m.cell[d]]
        s = m.position[m.origin[d]]
        e = m.position[m.origin[m.phi1[d]]]
        # How far x is within the three sides, seen along n.
        before = wp.dot(n, wp.cross(s - c, x - c))
        after = wp.dot(n, wp.cross(c - e, x - e))
        across = wp.dot(n, wp.cross(e - s, x - s))
        other = int(m.phi2[d])
        if across < _ZERO and other >= 0:
            if _root(m, other) != root:
                other = -1
        if before < _ZERO and before <= after:
            d = m.phi_1[d]
        elif after < _ZERO:
            d = m.phi1[d]
        elif across < _ZERO and other >= 0:
            d = other
        else:
            flat = wp.cross(s - c, e - c)
            steep = wp.dot(flat, n)
            inside = across >= -_BESIDE * wp.length_sq(e - s)
            if inside and steep > _STEEP * wp.length(flat):
                away = wp.dot(flat, c - x) / steep
                # The dart of a point may have been given to a cell elsewhere.
                if away * away <= wp.length(normals[root]):
                    there[i] = x + away * n
                    found[i] = d
            return
