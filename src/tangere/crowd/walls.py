"""Walls that agents see: borders of the map, blocked edges and faces, and the sides of obstacle cells.

Question: where is the nearest wall in the cells an agent sees?
Method:   cells with a wall are marked when the map changes; only those are searched. The nearest wall point pushes,
          not every piece: a wall cut into more pieces by a split pushes no harder.
Spec: specs/pitiot-multiresolution-interactions 2.18 (obstacles), 2.19.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays, is_wall
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.query.closest_points import closest_on_segment, closest_on_triangle
from tangere.runtime import SOUND, launch

__all__ = ["Wall", "mark_walled", "nearest_on_segment", "nearest_wall"]

wp.set_module_options(SOUND)


def mark_walled(map: CellMap) -> wp.array:
    """1 for each cell with a wall, (cells,) int32."""
    walled = wp.zeros(map.cell_capacity, dtype=wp.int32, device=map.device)
    launch(_mark, map.cell_capacity, [map.arrays], [walled], device=map.device)
    return walled


@wp.struct
class Wall:
    """The nearest point of a wall; distance inf when none is seen."""

    point: wp.vec3d
    distance: wp.float64


@wp.func
def _stops(m: MapArrays, d: int) -> bool:
    if is_wall(m, d) == 1:
        return True
    if m.dimension == 3:
        return m.phi3[d] < 0
    return m.phi2[d] < 0


@wp.func
def nearest_on_segment(a: wp.vec3d, b: wp.vec3d, x: wp.vec3d) -> wp.vec3d:
    return a + closest_on_segment(x, a, b) * (b - a)


@wp.func
def _nearest_on_triangle(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, x: wp.vec3d) -> wp.vec3d:
    weights = closest_on_triangle(x, a, b, c)
    return weights[0] * a + weights[1] * b + weights[2] * c


@wp.func
def nearest_wall(m: MapArrays, rings: RingTable, walled: wp.array[int], c: int, x: wp.vec3d) -> Wall:
    """The nearest wall point in cell c and its ring."""
    found = Wall()
    found.distance = wp.float64(wp.inf)
    for k in range(rings.size[c] + 1):
        b = int(c)
        if k > 0:
            b = rings.cells[c * rings.width + k - 1]
        if walled[b] == 1:
            d = int(m.anchor[b])
            while d >= 0:
                if _stops(m, d):
                    s = m.position[m.origin[d]]
                    e = m.position[m.origin[m.phi1[d]]]
                    near = wp.vec3d()
                    if m.dimension == 3:
                        near = _nearest_on_triangle(m.face_centre[d], s, e, x)
                    else:
                        near = nearest_on_segment(s, e, x)
                    away = wp.length(near - x)
                    if away < found.distance:
                        found.distance = away
                        found.point = near
                d = m.link[d]
    return found


@wp.kernel
def _mark(first: int, m: MapArrays, walled: wp.array[int]):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0 or m.obstacle[c] != 0:
        return
    d = int(m.anchor[c])
    while d >= 0:
        if _stops(m, d):
            walled[c] = 1
        d = m.link[d]
