"""How an agent gets from here to there: straight, sliding along walls, or over a surface.

Question: where is an agent after a displacement, and in which cell?
Method:   in the plane, who is still in the rectangle that he knows of his cell is still in it, and nothing is asked
          of the map; then his triangle is (`ground`). Else straight from simplex to simplex through the first side
          left by; at a wall the rest of the way goes on along the wall, a few times at most.
          On a surface the way is unfolded over its edges.
Promise:  nobody passes a wall: the place returned is on the own side of every wall met on the way, and not on it.
Spec: specs/pitiot-multiresolution-interactions 2.7 (collisions), 2.9, 2.10; 5.1 (sliding).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import MapArrays
from tangere.cells.tracking import BLOCKED, behind, edge_side, first_exit, glided, sides, triangle_normal
from tangere.crowd.agents.ground import (
    Triangle,
    exit_from,
    is_within,
    kept_of,
    neighbour,
    room,
    room_within,
    side_left,
    square_around,
    turned_to,
)
from tangere.crowd.agents.neighbour_ranges import Sight
from tangere.runtime import SOUND

__all__ = ["AgentPlace", "go_over_surface", "go_straight"]

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
    within: wp.vec4f  # a rectangle in the same cell; empty: not known


@wp.struct
class _Way:
    """How a segment leaves the simplex of a dart, and what is there: a dart, or a wall with its inner normal."""

    side: int  # -1: it does not
    time: wp.float64
    there: int  # -1: a wall
    normal: wp.vec3d
    corner: wp.vec3d
    size: wp.float64


@wp.func
def _wall(way: _Way, s: wp.vec3d, e: wp.vec3d, normal: wp.vec3d) -> _Way:
    way.corner = s
    way.size = wp.length(e - s)
    way.normal = wp.normalize(normal)
    return way


@wp.func
def _way_over(t: Triangle, a: wp.vec3d, b: wp.vec3d) -> _Way:
    """In the plane."""
    out = exit_from(t, a, b)
    way = _Way()
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
        way.there = neighbour(t, way.side)
        if way.there < 0:
            way = _wall(way, s, e, wp.vec3d(s[1] - e[1], e[0] - s[0], _ZERO))
    return way


@wp.func
def _way_through(m: MapArrays, d: int, a: wp.vec3d, b: wp.vec3d) -> _Way:
    """In space."""
    out = first_exit(m, d, a, b)
    way = _Way()
    way.side = out.side
    way.time = out.time
    if way.side < 0 and behind(m, d, 3) < 0:
        if sides(m, d, b)[3] <= _ZERO:
            way.side = 3
            way.time = _ONE
    if way.side >= 0:
        way.there = behind(m, d, way.side)
        if way.there < 0:
            s = m.position[m.origin[d]]
            e = m.position[m.origin[m.phi1[d]]]
            way = _wall(way, s, e, -wp.cross(s - m.face_centre[d], e - m.face_centre[d]))
    return way


@wp.func
def go_straight(m: MapArrays, s: Sight, from_: AgentPlace, dt: wp.float64) -> AgentPlace:
    """In the plane or in space."""
    end = from_
    d = int(from_.dart)
    start = from_.position
    velocity = from_.velocity
    end.position = start + dt * velocity
    if m.dimension == 3:
        if wp.min(sides(m, from_.dart, end.position)) > _ZERO:
            return end
    else:
        if is_within(from_.within, end.position):
            return end
        seen = s.seen[from_.cell]
        if room_within(seen.low, seen.high, end.position) > _ZERO:
            end.within = kept_of(seen.low, seen.high)
            return end
        side = side_left(seen.low, seen.high, end.position)
        # Only who was in the rectangle has left it by that side.
        if side >= 0 and room_within(seen.low, seen.high, start) > _ZERO:
            next_dart = seen.across[side]
            if next_dart >= 0:
                next_cell = m.cell[next_dart]
                there = s.seen[next_cell]
                if room_within(there.low, there.high, end.position) > _ZERO:
                    end.within = kept_of(there.low, there.high)
                    end.dart = next_dart
                    end.cell = next_cell
                    return end
        d = turned_to(s.triangle, d, start)
        end.dart = d
        end.within = square_around(end.position, room(s.triangle[d], end.position))
        if is_within(end.within, end.position):
            return end
    p = start
    way = dt * velocity
    slides = int(0)
    for _n in range(_SIMPLICES):
        out = _Way()
        if m.dimension == 3:
            out = _way_through(m, d, p, p + way)
        else:
            out = _way_over(s.triangle[d], p, p + way)
        if out.side < 0:
            end.position = p + way
            end.dart = d
            if m.dimension == 3:
                end.cell = m.cell[d]
            else:
                end.cell = s.triangle[d].cell
                end.within = wp.vec4f()
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
    end.within = wp.vec4f()
    return end


@wp.func
def go_over_surface(m: MapArrays, s: Sight, from_: AgentPlace, dt: wp.float64) -> AgentPlace:
    """Along a surface in space; a wall stops the agent, and its velocity turns along the wall."""
    way = glided(m, from_.dart, from_.position, dt * from_.velocity, from_.velocity)
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
