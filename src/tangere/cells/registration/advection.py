"""Points that go along with a deforming map: each keeps its weights in the simplex of its dart.

Question: where is a point after the vertices have moved?
Method:   its barycentric coordinates before, applied after.
Known as: barycentric embedding in a moving mesh (Pitiot 2015, chapter 7 and section 9.1.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.simplex_sides import sides
from tangere.geometry.closest_points import closest_on_triangle
from tangere.runtime import SOUND, Arrays, launch

wp.set_module_options(SOUND)


def advect(map: CellMap, points: wp.array, darts: wp.array, vertices: Arrays) -> wp.array:
    """Move the vertices of the map, and points with them; returns where the points are then [m].

    Args:
        darts: simplices that hold the points.
        vertices: (v, 3) as in `map.positions` [m].
    """
    weights = wp.empty(len(points), dtype=wp.vec4d, device=map.device)
    kernel = _weigh_on_surface if map.is_surface else _weigh
    launch(kernel, len(points), [map.arrays, points, darts], [weights], device=map.device)
    map.move(vertices)
    there = wp.empty_like(points)
    launch(_place, len(points), [map.arrays, darts, weights], [there], device=map.device)
    return there


@wp.kernel
def _weigh(first: int, m: MapArrays, points: wp.array[wp.vec3d], darts: wp.array[int], weights: wp.array[wp.vec4d]):
    i = first + wp.tid()
    # Each side function belongs to the corner opposite: E, S, the face centre (or C), the cell centre.
    side = sides(m, darts[i], points[i])
    if m.dimension == 2:
        side[3] = wp.float64(0.0)
    weights[i] = side / (side[0] + side[1] + side[2] + side[3])


@wp.kernel
def _weigh_on_surface(
    first: int, m: MapArrays, points: wp.array[wp.vec3d], darts: wp.array[int], weights: wp.array[wp.vec4d]
):
    i = first + wp.tid()
    d = darts[i]
    w = closest_on_triangle(points[i], m.position[m.origin[m.phi1[d]]], m.position[m.origin[d]], m.centre[m.cell[d]])
    weights[i] = wp.vec4d(w[0], w[1], w[2], wp.float64(0.0))


@wp.kernel
def _place(first: int, m: MapArrays, darts: wp.array[int], weights: wp.array[wp.vec4d], there: wp.array[wp.vec3d]):
    i = first + wp.tid()
    d = darts[i]
    w = weights[i]
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    c = m.centre[m.cell[d]]
    if m.dimension == 3:
        there[i] = w[0] * e + w[1] * s + w[2] * m.face_centre[d] + w[3] * c
    else:
        there[i] = w[0] * e + w[1] * s + w[2] * c
