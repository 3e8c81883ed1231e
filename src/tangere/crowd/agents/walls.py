"""Walls that agents see: borders of the map, blocked edges and faces, and the sides of obstacle cells.

Question: where is the nearest wall in the cells an agent sees?
Method:   when the map has changed, the walls of each cell and its ring that are within reach of the cell are written
          down one after the other, with their corners, so that a search reads nothing else; edges that go on straight
          become one. The nearest wall point
          pushes, not every piece: a wall cut into more pieces by a split pushes no harder.
Known as: obstacles push by their nearest point (Pitiot 2015, sections 8.1 and 8.2.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import CellMap, MapArrays, RingTable, is_wall
from tangere.geometry.closest_points import closest_on_segment, closest_on_triangle
from tangere.runtime import SOUND, launch, offsets

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class WallEdge:
    """The edge ab of a wall."""

    a: wp.vec3d
    b: wp.vec3d


@wp.struct
class Walls:
    """Walls one after the other, by the cell that sees them. In 3-maps, triangles of an edge and a top."""

    edge: wp.array[WallEdge]
    top: wp.array[wp.vec3d]  # empty in 2-maps
    space: int  # 1: triangles
    own: wp.array[int]  # by cell: how many of its own sides are walls
    reach: wp.float64  # those farther from the box of a cell are left out [m]
    opaque: int  # 1: nobody sees through them


@wp.struct
class NearestWall:
    """The nearest point of a wall; distance inf when none is within reach."""

    point: wp.vec3d
    distance: wp.float64


def allocate_walls(map: CellMap, own: wp.array, low: wp.array, high: wp.array, reach: float) -> tuple[Walls, wp.array]:
    """Room for the walls seen from each leaf of a map as it is now, and where those of each cell begin.

    Args:
        own: (cells,) int32, `count_own_walls` of the leaves, 0 of other cells.
        low, high: (cells,) vec3d, boxes of the leaves. reach: walls farther from the box are left out [m].
    """
    device, cells = map.device, map.cell_capacity
    seen = wp.zeros(cells + 1, dtype=wp.int32, device=device)
    walls = Walls()
    walls.own, walls.reach, walls.space = own, reach, int(map.dimension == 3)
    launch(_count_walls, cells, [map.arrays, map.rings.table, low, high, walls], [seen], device=device, grain=4096)
    first, total = offsets(seen)
    walls.edge = wp.empty(total, dtype=WallEdge, device=device)
    walls.top = wp.empty(total * walls.space, dtype=wp.vec3d, device=device)
    return walls, first


@wp.func
def nearest_wall(walls: Walls, begin: int, end: int, x: wp.vec3d) -> NearestWall:
    """The nearest point of walls begin … end - 1."""
    found = NearestWall()
    least = wp.float64(wp.inf)
    for k in range(begin, end):
        near = wp.vec3d()
        if walls.space == 1:
            near = _nearest_on_triangle(walls.top[k], walls.edge[k].a, walls.edge[k].b, x)
        else:
            near = nearest_on_segment(walls.edge[k].a, walls.edge[k].b, x)
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
def _is_closed(m: MapArrays, d: int) -> bool:
    if is_wall(m, d) == 1:
        return True
    if m.dimension == 3:
        return m.phi3[d] < 0
    return m.phi2[d] < 0


@wp.func
def count_own_walls(m: MapArrays, c: int) -> int:
    """How many sides of a leaf stop agents in it; none of an obstacle, where there are no agents."""
    count = int(0)
    d = int(m.anchor[c])
    if m.obstacle[c] != 0:
        d = -1
    while d >= 0:
        if _is_closed(m, d):
            count += 1
        d = m.link[d]
    return count


@wp.func
def _squared_distance(m: MapArrays, d: int, low: wp.vec3d, high: wp.vec3d) -> wp.float64:
    """Square of a distance that the wall of dart d is not nearer than to a box: that of its own box."""
    a = m.position[m.origin[d]]
    b = m.position[m.origin[m.phi1[d]]]
    least = wp.min(a, b)
    most = wp.max(a, b)
    if m.dimension == 3:
        least = wp.min(least, m.face_centre[d])
        most = wp.max(most, m.face_centre[d])
    return wp.length_sq(wp.max(wp.max(low - most, least - high), wp.vec3d()))


@wp.func
def _straight(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> bool:
    """Whether abc is one straight edge, exactly; for others it does not matter that rounding says no."""
    return wp.length_sq(wp.cross(b - a, c - b)) == _ZERO and wp.dot(b - a, c - b) > _ZERO


@wp.func
def _extend_straight(walls: Walls, begin: int, count: int, a: wp.vec3d, b: wp.vec3d) -> bool:
    """Whether an edge goes on one of those there are, which is then made longer; not in 3-maps."""
    if walls.space == 0:
        for k in range(begin, begin + count):
            if walls.edge[k].b == a and _straight(walls.edge[k].a, a, b):
                walls.edge[k].b = b
                return True
            if walls.edge[k].a == b and _straight(a, b, walls.edge[k].b):
                walls.edge[k].a = a
                return True
    return False


@wp.func
def collect_walls(
    m: MapArrays, rings: RingTable, c: int, low: wp.vec3d, high: wp.vec3d, writing: bool, begin: int, walls: Walls
) -> int:
    """Count the walls that cell c sees, or write them from `begin` on, where those that go on straight are one."""
    count = int(0)
    for k in range(rings.size[c] + 1):
        other = int(c)
        if k > 0:
            other = rings.cells[c * rings.width + k - 1]
        if walls.own[other] > 0:
            d = int(m.anchor[other])
            while d >= 0:
                if _is_closed(m, d):
                    if _squared_distance(m, d, low, high) <= walls.reach * walls.reach:
                        a = m.position[m.origin[d]]
                        b = m.position[m.origin[m.phi1[d]]]
                        if not writing or not _extend_straight(walls, begin, count, a, b):
                            if writing:
                                walls.edge[begin + count].a = a
                                walls.edge[begin + count].b = b
                                if walls.space == 1:
                                    walls.top[begin + count] = m.face_centre[d]
                            count += 1
                d = m.link[d]
    return count


@wp.kernel
def _count_walls(
    first: int,
    m: MapArrays,
    rings: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    walls: Walls,
    seen: wp.array[int],
):
    c = first + wp.tid()
    seen[c] = collect_walls(m, rings, c, low[c], high[c], False, 0, walls)
