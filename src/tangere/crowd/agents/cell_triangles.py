"""The triangles agents walk over, each in one place, and how far an agent may go without asking for them.

Question: is an agent still in its cell, and if not, through which side of which triangle has it left, and where to?
Method:   an agent keeps a rectangle within its cell, which is the whole cell in a grid; until it leaves that, nothing
          is asked of the map, and then first of the rectangle behind the side it has left by.
          Corners and neighbours of every dart's triangle are written side by side when the map has changed: a line or
          two of memory, where the map keeps them in ten. A few agents all over a large map wait for little else.
Sound:    what is said to be within a cell is; where that is left, answers are those of `tangere.cells.tracking.sides`,
          by the same functions of the same numbers.
Known as: prediction triangles (Pitiot 2015, sections 4.2 and 7.2), kept in a cache-friendly copy.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import CellMap, MapArrays
from tangere.cells.tracking import Exit, earliest_exit, neighbour_dart, side_rounding, triangle_sides
from tangere.geometry.closest_points import closest_on_segment
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
#: Half the side of a square in a circle, as a part of its radius, and a little less.
_HALF_SQUARE = wp.constant(wp.float64(0.7))
#: Kept of every distance, as a part of the cell: far above what rounding takes away of distances and of steps.
_SPARE = wp.constant(wp.float64(1.0e-9))
#: More than rounding a coordinate to float32 takes away, as a part of it.
_ROUNDING = wp.constant(wp.float64(2.0**-22))
#: Triangles of a cell passed at most; from where that ends the way goes on through sides, as ever.
_TURNS = wp.constant(64)


@wp.struct
class Triangle:
    """Of the centre of a cell and an edge of it, and the darts behind its sides."""

    centre: wp.vec2d
    start: wp.vec2d
    end: wp.vec2d
    turned: int  # 1: the edge is measured from its end
    before: int
    after: int
    across: int  # -1: a border or a wall
    cell: int


def triangles_of(map: CellMap) -> wp.array:
    """By dart, for a map of the plane as it is now; none of others."""
    triangles = wp.empty(len(map.arrays.phi1) if map.flat else 0, dtype=Triangle, device=map.device)
    launch(_write_triangles, len(triangles), [map.arrays], [triangles], device=map.device, grain=4096)
    return triangles


@wp.func
def _flat(p: wp.vec2d) -> wp.vec3d:
    return wp.vec3d(p[0], p[1], _ZERO)


@wp.func
def _sides(t: Triangle, x: wp.vec3d) -> wp.vec4d:
    return triangle_sides(_flat(t.centre), _flat(t.start), _flat(t.end), t.turned == 1, x)


@wp.func
def dart_holding(triangles: wp.array[Triangle], dart: int, x: wp.vec3d) -> int:
    """The dart whose triangle holds x, of the cell that does; from another dart of it."""
    d = int(dart)
    for _n in range(_TURNS):
        side = _sides(triangles[d], x)
        if side[0] < _ZERO:
            d = triangles[d].before
        elif side[1] < _ZERO:
            d = triangles[d].after
        else:
            return d
    return d


@wp.func
def triangle_clearance(t: Triangle, x: wp.vec3d) -> wp.float64:
    """A distance from x within which all is in a triangle; negative if x itself is not."""
    side = _sides(t, x)
    if wp.min(side) < _ZERO:
        return -_ONE
    long_a = wp.length(t.start - t.centre)
    long_b = wp.length(t.end - t.centre)
    clear = wp.min(wp.min(side[0] / long_a, side[1] / long_b), side[2] / wp.length(t.end - t.start))
    return wp.max(clear - _SPARE * (long_a + long_b), _ZERO)


@wp.func
def rectangle_clearance(low: wp.vec2d, high: wp.vec2d, x: wp.vec3d) -> wp.float64:
    """A distance from x within which all is in a rectangle; negative if x is not, or hardly."""
    clear = wp.min(wp.min(x[0] - low[0], high[0] - x[0]), wp.min(x[1] - low[1], high[1] - x[1]))
    return clear - _SPARE * (high[0] - low[0] + high[1] - low[1])


@wp.func
def rounded_inward(low: wp.vec2d, high: wp.vec2d) -> wp.vec4f:
    """What an agent keeps of a rectangle it is in: single numbers, rounded inward."""
    less = _SPARE * (high[0] - low[0] + high[1] - low[1])
    x = less + _ROUNDING * wp.max(wp.abs(low[0]), wp.abs(high[0]))
    y = less + _ROUNDING * wp.max(wp.abs(low[1]), wp.abs(high[1]))
    return wp.vec4f(wp.float32(low[0] + x), wp.float32(low[1] + y), wp.float32(high[0] - x), wp.float32(high[1] - y))


@wp.func
def square_around(x: wp.vec3d, distance: wp.float64) -> wp.vec4f:
    """The same of the square in a circle around x; empty if the distance is not positive."""
    half = distance * _HALF_SQUARE
    return rounded_inward(wp.vec2d(x[0] - half, x[1] - half), wp.vec2d(x[0] + half, x[1] + half))


@wp.func
def is_in_rectangle(rectangle: wp.vec4f, x: wp.vec3d) -> bool:
    """Whether x is in a rectangle an agent keeps; in an empty one nobody is."""
    return (
        x[0] > wp.float64(rectangle[0])
        and x[1] > wp.float64(rectangle[1])
        and x[0] < wp.float64(rectangle[2])
        and x[1] < wp.float64(rectangle[3])
    )


@wp.func
def cell_rectangle(m: MapArrays, c: int) -> wp.vec4d:
    """A rectangle within a cell of the plane (its low and high corner): the whole of it if that is one."""
    centre = m.centre[c]
    low = centre
    high = centre
    nearest = wp.float64(wp.inf)
    d = int(m.anchor[c])
    while d >= 0:
        s = m.position[m.origin[d]]
        e = m.position[m.origin[m.phi1[d]]]
        low = wp.min(low, s)
        high = wp.max(high, s)
        near = s + closest_on_segment(centre, s, e) * (e - s)
        nearest = wp.min(nearest, wp.length(near - centre))
        d = m.link[d]
    d = int(m.anchor[c])
    while d >= 0:
        s = m.position[m.origin[d]]
        e = m.position[m.origin[m.phi1[d]]]
        upright = s[0] == e[0] and (s[0] == low[0] or s[0] == high[0])
        level = s[1] == e[1] and (s[1] == low[1] or s[1] == high[1])
        if not upright and not level:
            half = nearest * _HALF_SQUARE
            return wp.vec4d(centre[0] - half, centre[1] - half, centre[0] + half, centre[1] + half)
        d = m.link[d]
    return wp.vec4d(low[0], low[1], high[0], high[1])


@wp.func
def rectangle_neighbours(m: MapArrays, c: int, within: wp.vec4d) -> wp.vec4i:
    """The darts behind the left, right, lower and upper side of a rectangle; -1 where it is not one edge of cell c."""
    found = wp.vec4i(-1, -1, -1, -1)
    d = int(m.anchor[c])
    while d >= 0:
        s = m.position[m.origin[d]]
        e = m.position[m.origin[m.phi1[d]]]
        upright = wp.min(s[1], e[1]) == within[1] and wp.max(s[1], e[1]) == within[3]
        level = wp.min(s[0], e[0]) == within[0] and wp.max(s[0], e[0]) == within[2]
        side = int(-1)
        if upright and s[0] == within[0] and e[0] == within[0]:
            side = 0
        if upright and s[0] == within[2] and e[0] == within[2]:
            side = 1
        if level and s[1] == within[1] and e[1] == within[1]:
            side = 2
        if level and s[1] == within[3] and e[1] == within[3]:
            side = 3
        if side >= 0:
            found[side] = neighbour_dart(m, d, 2)
        d = m.link[d]
    return found


@wp.func
def rectangle_exit_side(low: wp.vec2d, high: wp.vec2d, x: wp.vec3d) -> int:
    """The one side of a rectangle that x is beyond, as in `rectangle_neighbours`; -1: none, or maybe two.

    Who was in the rectangle has left it there.
    """
    level = x[1] > low[1] and x[1] < high[1]
    upright = x[0] > low[0] and x[0] < high[0]
    if level and x[0] < low[0]:
        return 0
    if level and x[0] > high[0]:
        return 1
    if upright and x[1] < low[1]:
        return 2
    if upright and x[1] > high[1]:
        return 3
    return -1


@wp.func
def triangle_exit(t: Triangle, a: wp.vec3d, b: wp.vec3d) -> Exit:
    """Through which side, and when, the segment from a (time 0) to b (time 1) leaves a triangle."""
    noise = side_rounding(_flat(t.centre), _flat(t.start), _flat(t.end), a, b)
    return earliest_exit(_sides(t, a), _sides(t, b), noise, 3)


@wp.func
def triangle_neighbour(t: Triangle, side: int) -> int:
    """The dart behind a side; -1 at a border or a wall."""
    if side == 0:
        return t.before
    if side == 1:
        return t.after
    return t.across


@wp.kernel
def _write_triangles(first: int, m: MapArrays, triangles: wp.array[Triangle]):
    d = first + wp.tid()
    if m.tag[d] < 0:
        return
    a = m.origin[d]
    b = m.origin[m.phi1[d]]
    t = Triangle()
    t.cell = int(m.cell[d])
    t.centre = wp.vec2d(m.centre[t.cell][0], m.centre[t.cell][1])
    t.start = wp.vec2d(m.position[a][0], m.position[a][1])
    t.end = wp.vec2d(m.position[b][0], m.position[b][1])
    t.turned = int(b < a)
    t.before = neighbour_dart(m, d, 0)
    t.after = neighbour_dart(m, d, 1)
    t.across = neighbour_dart(m, d, 2)
    triangles[d] = t
