"""How an agent gets from here to there: straight, sliding along walls, or over a surface.

Question: where is an agent after a displacement, and in which cell?
Method:   in the plane, who is still in the rectangle that he knows of his cell is still in it, and nothing is asked
          of the map; then his triangle is (`cell_triangles`). Else straight from simplex to simplex through the first
          side left by; at a wall the rest of the way goes on along the wall, a few times at most.
          On a surface the way is unfolded over its edges.
Sound:    nobody passes a wall: the place returned is on the own side of every wall met on the way, and not on it.
Known as: walking point location (Devillers, Pion, Teillaud 2002) with sliding contact; on surfaces Pitiot 2015, section
          8.3.2.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import MapArrays
from tangere.cells.tracking import BLOCKED, edge_side, first_exit, glide_to, neighbour_dart, sides, triangle_normal
from tangere.crowd.agents.cell_triangles import (
    Triangle,
    dart_holding,
    is_in_rectangle,
    rectangle_clearance,
    rectangle_exit_side,
    rounded_inward,
    square_around,
    triangle_clearance,
    triangle_exit,
    triangle_neighbour,
)
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
#: Walls an agent slides along in one step: a corner has two, and a third check ends the way.
_SLIDES = wp.constant(3)
#: How far from a wall it stops, as a part of the size of the simplex: above rounding, below anything seen.
_CLEAR = wp.constant(wp.float64(1.0e-9))
#: And at least, as a part of its coordinates: far from the origin these are coarse.
_ROUNDING = wp.constant(wp.float64(2.0**-50))
#: Simplices crossed in one step; what is left of the way is given up.
_SIMPLICES = wp.constant(4096)


@wp.struct
class AgentPlace:
    position: wp.vec3d
    velocity: wp.vec3d
    dart: int
    cell: int
    rectangle: wp.vec4f  # a rectangle in the same cell; empty: not known


@wp.struct
class _SimplexExit:
    """How a segment leaves the simplex of a dart, and what is there: a dart, or a wall with its inner normal."""

    side: int  # -1: it does not
    time: wp.float64
    there: int  # -1: a wall
    normal: wp.vec3d
    corner: wp.vec3d
    size: wp.float64


@wp.func
def _with_wall(way: _SimplexExit, s: wp.vec3d, e: wp.vec3d, normal: wp.vec3d) -> _SimplexExit:
    way.corner = s
    way.size = wp.length(e - s)
    way.normal = wp.normalize(normal)
    return way


@wp.func
def _exit_in_plane(t: Triangle, a: wp.vec3d, b: wp.vec3d) -> _SimplexExit:
    """In the plane."""
    out = triangle_exit(t, a, b)
    way = _SimplexExit()
    way.side = out.side
    way.time = out.time
    s = wp.vec3d(t.start[0], t.start[1], _ZERO)
    e = wp.vec3d(t.end[0], t.end[1], _ZERO)
    # What is left for rounding between cells is not left to anybody at a wall: where two meet at a sharp angle, keeping
    # clear of one leads onto the other.
    if way.side < 0 and t.across < 0:
        if edge_side(s, e, b, t.turned == 1) <= _ZERO:
            way.side = 2
            way.time = _ONE
    if way.side >= 0:
        way.there = triangle_neighbour(t, way.side)
        if way.there < 0:
            way = _with_wall(way, s, e, wp.vec3d(s[1] - e[1], e[0] - s[0], _ZERO))
    return way


@wp.func
def _exit_in_space(m: MapArrays, d: int, a: wp.vec3d, b: wp.vec3d) -> _SimplexExit:
    """In space."""
    out = first_exit(m, d, a, b)
    way = _SimplexExit()
    way.side = out.side
    way.time = out.time
    if way.side < 0 and neighbour_dart(m, d, 3) < 0:
        if sides(m, d, b)[3] <= _ZERO:
            way.side = 3
            way.time = _ONE
    if way.side >= 0:
        way.there = neighbour_dart(m, d, way.side)
        if way.there < 0:
            s = m.position[m.origin[d]]
            e = m.position[m.origin[m.phi1[d]]]
            way = _with_wall(way, s, e, -wp.cross(s - m.face_centre[d], e - m.face_centre[d]))
    return way


@wp.func
def move_straight(m: MapArrays, s: Neighbourhoods, start_place: AgentPlace, dt: wp.float64) -> AgentPlace:
    """In the plane or in space."""
    end = start_place
    d = int(start_place.dart)
    start = start_place.position
    velocity = start_place.velocity
    end.position = start + dt * velocity
    if m.dimension == 3:
        if wp.min(sides(m, start_place.dart, end.position)) > _ZERO:
            return end
    else:
        if is_in_rectangle(start_place.rectangle, end.position):
            return end
        seen = s.cell[start_place.cell]
        if rectangle_clearance(seen.low, seen.high, end.position) > _ZERO:
            end.rectangle = rounded_inward(seen.low, seen.high)
            return end
        side = rectangle_exit_side(seen.low, seen.high, end.position)
        # Only who was in the rectangle has left it by that side.
        if side >= 0 and rectangle_clearance(seen.low, seen.high, start) > _ZERO:
            next_dart = seen.across[side]
            if next_dart >= 0:
                next_cell = m.cell[next_dart]
                there = s.cell[next_cell]
                if rectangle_clearance(there.low, there.high, end.position) > _ZERO:
                    end.rectangle = rounded_inward(there.low, there.high)
                    end.dart = next_dart
                    end.cell = next_cell
                    return end
        d = dart_holding(s.triangle, d, start)
        end.dart = d
        end.rectangle = square_around(end.position, triangle_clearance(s.triangle[d], end.position))
        if is_in_rectangle(end.rectangle, end.position):
            return end
    p = start
    way = dt * velocity
    slides = int(0)
    for _n in range(_SIMPLICES):
        out = _SimplexExit()
        if m.dimension == 3:
            out = _exit_in_space(m, d, p, p + way)
        else:
            out = _exit_in_plane(s.triangle[d], p, p + way)
        if out.side < 0:
            end.position = p + way
            end.dart = d
            if m.dimension == 3:
                end.cell = m.cell[d]
            else:
                end.cell = s.triangle[d].cell
                end.rectangle = wp.vec4f()
            return end
        if out.there >= 0:
            d = out.there
        else:
            n = out.normal
            p = p + out.time * way
            clear = wp.max(_CLEAR * out.size, _ROUNDING * wp.max(wp.abs(out.corner)))
            p = p + (wp.max(clear - wp.dot(p - out.corner, n), _ZERO)) * n
            way = (_ONE - out.time) * way
            way = way - wp.min(wp.dot(way, n), _ZERO) * n
            end.velocity = end.velocity - wp.min(wp.dot(end.velocity, n), _ZERO) * n
            slides += 1
            if slides == _SLIDES:
                way = wp.vec3d()
    # A corner sharper than rounding allows to leave: stay where it was.
    end.position = start
    end.velocity = wp.vec3d()
    end.rectangle = wp.vec4f()
    return end


@wp.func
def move_over_surface(m: MapArrays, s: Neighbourhoods, start_place: AgentPlace, dt: wp.float64) -> AgentPlace:
    """Along a surface in space; a wall stops the agent, and its velocity turns along the wall."""
    way = glide_to(m, start_place.dart, start_place.position, dt * start_place.velocity, start_place.velocity)
    end = AgentPlace()
    end.position = way.position
    end.velocity = way.heading
    end.dart = way.dart
    end.cell = m.cell[way.dart]
    if way.status == BLOCKED:
        corner = m.position[m.origin[way.dart]]
        along = wp.normalize(m.position[m.origin[m.phi1[way.dart]]] - corner)
        inward = wp.cross(triangle_normal(m, way.dart), along)
        end.velocity = way.heading - wp.min(wp.dot(way.heading, inward), _ZERO) * inward
    return end
