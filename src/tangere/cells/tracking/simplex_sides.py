"""Which side of the planes of a dart's simplex a point is on, and the walk and the first exit that follow from it.

Question: is a point in this simplex, and if not, behind which side?
Method:   a dart d with cell centre C, origin S and end E owns the triangle (C, S, E); in a 3-map, with V and the face
          centre F, the tetrahedron (V, F, S, E). Side functions are positive inside; where one is negative the
          neighbour behind it is, in this order, phi_1(d), phi1(d), phi2(d) and (3-maps) phi3(d).
Sound:    the two simplices at a common side compute exactly opposite values: they are the same products of the same
          differences. So two neighbours never both say "leave", and no tolerance is needed to decide.
Known as: prediction triangles and tetrahedra of BC cells (Pitiot 2015, sections 4.2 and 7.2); the visibility walk of
          walking point location (Devillers, Pion, Teillaud 2002).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays, is_wall
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: How a walk or a march ended: in the target's simplex; at a border, wall or obstacle; after too many steps.
INSIDE, BLOCKED, LOST = wp.constant(0), wp.constant(1), wp.constant(2)

#: A walk of 8 (2D) or 13 (3D) steps is long for a move; one of so many may be going round a vertex it is aimed at.
STEP_LIMIT = wp.constant(512)
#: Nothing goes on for so long.
CAREFUL_LIMIT = wp.constant(100000)

_ZERO = wp.constant(wp.float64(0.0))
#: Parts of a simplex that a point stopped at its side may be beyond it, and how that grows with coordinates.
_STOPPED = wp.constant(wp.float64(1.0e-9))
_FAR = wp.constant(wp.float64(1.0e-6))
#: Some twenty roundings of products of three lengths.
_ROUNDING = wp.constant(wp.float64(1.0e-14))


def points_per_index(device: wp.Device) -> int:
    """Points per kernel index: on CPU a few, because every index costs a copy of the map's 1.3 kB of array headers."""
    return 1 if device.is_cuda else 64


@wp.func
def _det(ax: wp.float64, ay: wp.float64, bx: wp.float64, by: wp.float64) -> wp.float64:
    return ax * by - ay * bx


@wp.func
def edge_side(s: wp.vec3d, e: wp.vec3d, x: wp.vec3d, turned: bool) -> wp.float64:
    """Side of the edge from s to e; `turned` says which end to measure from, so that both faces measure from one."""
    if turned:
        return -_det(s[0] - e[0], s[1] - e[1], x[0] - e[0], x[1] - e[1])
    return _det(e[0] - s[0], e[1] - s[1], x[0] - s[0], x[1] - s[1])


@wp.func
def _sides2(m: MapArrays, d: int, x: wp.vec3d) -> wp.vec4d:
    a = m.origin[d]
    b = m.origin[m.phi1[d]]
    return triangle_sides(m.centre[m.cell[d]], m.position[a], m.position[b], b < a, x)


@wp.func
def triangle_sides(c: wp.vec3d, s: wp.vec3d, e: wp.vec3d, turned: bool, x: wp.vec3d) -> wp.vec4d:
    """The side functions of a triangle of the plane at x."""
    return wp.vec4d(
        _det(s[0] - c[0], s[1] - c[1], x[0] - c[0], x[1] - c[1]),
        -_det(e[0] - c[0], e[1] - c[1], x[0] - c[0], x[1] - c[1]),
        edge_side(s, e, x, turned),
        wp.float64(1.0),
    )


@wp.func
def _sides3(m: MapArrays, d: int, x: wp.vec3d) -> wp.vec4d:
    v = m.centre[m.cell[d]]
    f = m.face_centre[d]
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    g = wp.cross(f - v, x - v)
    return wp.vec4d(
        -wp.dot(s - v, g),
        wp.dot(e - v, g),
        wp.dot(wp.cross(s - v, e - v), x - v),
        -wp.dot(wp.cross(s - f, e - f), x - f),
    )


@wp.func
def sides(m: MapArrays, d: int, x: wp.vec3d) -> wp.vec4d:
    """The side functions of the simplex of d at x, positive inside (a planar map has three: the fourth is 1)."""
    if m.dimension == 3:
        return _sides3(m, d, x)
    return _sides2(m, d, x)


@wp.func
def neighbour_dart(m: MapArrays, d: int, side: int) -> int:
    """The dart behind a side; -1 at a border or a wall."""
    if side == 0:
        return m.phi_1[d]
    if side == 1:
        return m.phi1[d]
    if side == 2:
        if m.dimension == 2 and is_wall(m, d) == 1:
            return -1
        return m.phi2[d]
    if is_wall(m, d) == 1:
        return -1
    return m.phi3[d]


@wp.func
def _walk2(m: MapArrays, x: wp.vec3d, start: int) -> wp.vec2i:
    d = int(start)
    for _n in range(STEP_LIMIT):
        c = m.centre[m.cell[d]]
        a = m.origin[d]
        s = m.position[a]
        after = m.phi1[d]
        if _det(s[0] - c[0], s[1] - c[1], x[0] - c[0], x[1] - c[1]) < _ZERO:
            d = m.phi_1[d]
        else:
            b = m.origin[after]
            e = m.position[b]
            if _det(e[0] - c[0], e[1] - c[1], x[0] - c[0], x[1] - c[1]) > _ZERO:
                d = after
            elif edge_side(s, e, x, b < a) < _ZERO:
                y = neighbour_dart(m, d, 2)
                if y < 0:
                    return wp.vec2i(d, BLOCKED)
                d = y
            else:
                return wp.vec2i(d, INSIDE)
    return wp.vec2i(d, LOST)


@wp.func
def _walk3(m: MapArrays, x: wp.vec3d, start: int) -> wp.vec2i:
    d = int(start)
    for _n in range(STEP_LIMIT):
        v = m.centre[m.cell[d]]
        f = m.face_centre[d]
        after = m.phi1[d]
        s = m.position[m.origin[d]]
        e = m.position[m.origin[after]]
        g = wp.cross(f - v, x - v)
        if wp.dot(s - v, g) > _ZERO:
            d = m.phi_1[d]
        elif wp.dot(e - v, g) < _ZERO:
            d = after
        elif wp.dot(wp.cross(s - v, e - v), x - v) < _ZERO:
            d = m.phi2[d]
        elif wp.dot(wp.cross(s - f, e - f), x - f) > _ZERO:
            y = neighbour_dart(m, d, 3)
            if y < 0:
                return wp.vec2i(d, BLOCKED)
            d = y
        else:
            return wp.vec2i(d, INSIDE)
    return wp.vec2i(d, LOST)


@wp.func
def walk(m: MapArrays, x: wp.vec3d, start: int) -> wp.vec2i:
    """From one simplex to the next towards x: the last dart, and how it ended."""
    end = wp.vec2i(start, LOST)
    if m.dimension == 3:
        end = _walk3(m, x, start)
    else:
        end = _walk2(m, x, start)
    if end[1] == LOST:
        end = _walk_carefully(m, x, end[0])
    return end


@wp.func
def _walk_carefully(m: MapArrays, x: wp.vec3d, start: int) -> wp.vec2i:
    """A walk that leaves only through sides x is behind for certain: around a vertex, rounding may lead in a circle."""
    d = int(start)
    for _n in range(CAREFUL_LIMIT):
        side = sides(m, d, x)
        noise = _simplex_rounding(m, d, x, x)
        way = int(-1)
        for k in range(m.dimension + 1):
            if way < 0 and side[k] < -noise:
                way = k
        if way < 0:
            return wp.vec2i(d, INSIDE)
        there = neighbour_dart(m, d, way)
        if there < 0:
            return wp.vec2i(d, BLOCKED)
        d = there
    return wp.vec2i(d, LOST)


@wp.func
def is_nearly_inside(m: MapArrays, d: int, x: wp.vec3d) -> bool:
    """Whether x is in the simplex of d, or beside it by no more than a point that was stopped there may be."""
    side = sides(m, d, x)
    if m.dimension == 2:
        side[3] = _ZERO
    total = side[0] + side[1] + side[2] + side[3]
    extent = wp.length(m.position[m.origin[d]] - m.centre[m.cell[d]])
    # Its place was rounded at its own distance from the origin.
    slack = _STOPPED * (wp.float64(1.0) + _FAR * wp.length(x) / extent)
    return wp.min(side) >= -slack * total


@wp.struct
class Exit:
    side: int  # -1: the target is inside
    time: wp.float64


@wp.func
def first_exit(m: MapArrays, d: int, a: wp.vec3d, b: wp.vec3d) -> Exit:
    """Through which side, and when, the segment from a (time 0) to b (time 1) leaves the simplex of d.

    Only through sides that b is behind beyond rounding: a segment within a side stays in it.
    """
    return earliest_exit(sides(m, d, a), sides(m, d, b), _simplex_rounding(m, d, a, b), m.dimension + 1)


@wp.func
def earliest_exit(from_a: wp.vec4d, from_b: wp.vec4d, noise: wp.float64, count: int) -> Exit:
    """The exit through the first of `count` sides, by their functions at both ends of a segment."""
    way = Exit()
    way.side = -1
    way.time = wp.float64(2.0)
    for k in range(count):
        if from_b[k] < -noise:
            time = _ZERO
            if from_a[k] > _ZERO:
                time = from_a[k] / (from_a[k] - from_b[k])
            if time < way.time:
                way.side = k
                way.time = time
    return way


@wp.func
def _simplex_rounding(m: MapArrays, d: int, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """What rounding may add to a side function at a or b."""
    c = m.centre[m.cell[d]]
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    if m.dimension == 3:
        extent = wp.max(wp.length(s - c), wp.length(e - c))
        return side_rounding(c, s, e, a, b) * extent
    return side_rounding(c, s, e, a, b)


@wp.func
def side_rounding(c: wp.vec3d, s: wp.vec3d, e: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """The same for a triangle cse of the plane."""
    extent = wp.max(wp.length(s - c), wp.length(e - c))
    return _ROUNDING * extent * (extent + wp.max(wp.length(a - c), wp.length(b - c)))
