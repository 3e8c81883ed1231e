"""Walls that agents see: borders of the map, blocked edges and faces, and the sides of obstacle cells.

Question: where is the nearest wall in the cells an agent sees?
Method:   when the map has changed, the walls of each cell and its ring are written down one after the other, with
          their corners, so that a search reads nothing else. The nearest wall point pushes, not every piece: a wall cut
          into more pieces by a split pushes no harder.
Spec: specs/pitiot-multiresolution-interactions 2.18 (obstacles), 2.19.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays, is_wall
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.query.closest_points import closest_on_segment, closest_on_triangle
from tangere.runtime import SOUND, launch, offsets

__all__ = ["Wall", "Walls", "nearest_on_segment", "nearest_wall", "walls_of"]

wp.set_module_options(SOUND)


@wp.struct
class Walls:
    """Walls seen from cell c: first[c] … first[c + 1] - 1; segments ab in 2-maps, triangles abc in 3-maps."""

    first: wp.array[int]
    a: wp.array[wp.vec3d]
    b: wp.array[wp.vec3d]
    c: wp.array[wp.vec3d]  # empty in 2-maps
    space: int  # 1: triangles


@wp.struct
class Wall:
    """The nearest point of a wall; distance inf when none is seen."""

    point: wp.vec3d
    distance: wp.float64


def walls_of(map: CellMap) -> Walls:
    """The walls seen from each leaf of a map as it is now."""
    device, table = map.device, map.rings.table
    own, seen = (wp.zeros(map.cell_capacity + 1, dtype=wp.int32, device=device) for _ in range(2))
    launch(_count_own, map.cell_capacity, [map.arrays], [own], device=device)
    launch(_count_seen, map.cell_capacity, [table, own], [seen], device=device)
    walls = Walls()
    walls.first, total = offsets(seen)
    walls.space = int(map.dimension == 3)
    walls.a, walls.b = (wp.empty(total, dtype=wp.vec3d, device=device) for _ in range(2))
    walls.c = wp.empty(total * walls.space, dtype=wp.vec3d, device=device)
    if total:
        launch(_write, map.cell_capacity, [map.arrays, table, own], [walls], device=device, grain=4096)
    return walls


@wp.func
def nearest_wall(walls: Walls, cell: int, x: wp.vec3d) -> Wall:
    """The nearest wall point in a cell and its ring."""
    found = Wall()
    least = wp.float64(wp.inf)
    for k in range(walls.first[cell], walls.first[cell + 1]):
        near = wp.vec3d()
        if walls.space == 1:
            near = _nearest_on_triangle(walls.c[k], walls.a[k], walls.b[k], x)
        else:
            near = nearest_on_segment(walls.a[k], walls.b[k], x)
        square = wp.length_sq(near - x)
        if square < least:
            least = square
            found.point = near
    found.distance = wp.sqrt(least)
    return found


@wp.func
def nearest_on_segment(a: wp.vec3d, b: wp.vec3d, x: wp.vec3d) -> wp.vec3d:
    return a + closest_on_segment(x, a, b) * (b - a)


@wp.func
def _nearest_on_triangle(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, x: wp.vec3d) -> wp.vec3d:
    weights = closest_on_triangle(x, a, b, c)
    return weights[0] * a + weights[1] * b + weights[2] * c


@wp.func
def _stops(m: MapArrays, d: int) -> bool:
    if is_wall(m, d) == 1:
        return True
    if m.dimension == 3:
        return m.phi3[d] < 0
    return m.phi2[d] < 0


@wp.kernel
def _count_own(first: int, m: MapArrays, own: wp.array[int]):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0 or m.obstacle[c] != 0:
        return
    count = int(0)
    d = int(m.anchor[c])
    while d >= 0:
        if _stops(m, d):
            count += 1
        d = m.link[d]
    own[c] = count


@wp.kernel
def _count_seen(first: int, rings: RingTable, own: wp.array[int], seen: wp.array[int]):
    c = first + wp.tid()
    total = int(own[c])
    for k in range(rings.size[c]):
        total += own[rings.cells[c * rings.width + k]]
    seen[c] = total


@wp.kernel
def _write(first: int, m: MapArrays, rings: RingTable, own: wp.array[int], walls: Walls):
    c = first + wp.tid()
    place = int(walls.first[c])
    for k in range(rings.size[c] + 1):
        b = int(c)
        if k > 0:
            b = rings.cells[c * rings.width + k - 1]
        if own[b] > 0:
            d = int(m.anchor[b])
            while d >= 0:
                if _stops(m, d):
                    walls.a[place] = m.position[m.origin[d]]
                    walls.b[place] = m.position[m.origin[m.phi1[d]]]
                    if walls.space == 1:
                        walls.c[place] = m.face_centre[d]
                    place += 1
                d = m.link[d]
