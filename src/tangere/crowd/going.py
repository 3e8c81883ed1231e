"""How an agent gets from here to there: straight, sliding along walls, or over a surface.

Question: where is an agent after a displacement, and in which dart's simplex?
Method:   straight from simplex to simplex through the first side left by; at a wall the rest of the way goes on along
          the wall, a few times at most. On a surface the way is unfolded over its edges.
Promise:  nobody passes a wall: the place returned is on the own side of every wall met on the way.
Spec: specs/pitiot-multiresolution-interactions 2.7 (collisions), 2.9, 2.10; 5.1 (sliding).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.tracking.sides import BLOCKED, behind, first_exit, sides
from tangere.cells.tracking.surface import glided, triangle_normal
from tangere.runtime import SOUND

__all__ = ["Place", "go_over_surface", "go_straight"]

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
#: Walls an agent slides along in one step: a corner has two, and a third check ends the way.
_SLIDES = wp.constant(3)
#: How far from a wall it stops, as a part of the size of the simplex: above rounding, below anything seen.
_CLEAR = wp.constant(wp.float64(1.0e-9))
#: Simplices crossed in one step; what is left of the way is given up.
_SIMPLICES = wp.constant(4096)


@wp.struct
class Place:
    position: wp.vec3d
    velocity: wp.vec3d
    dart: int


@wp.func
def _wall_normal(m: MapArrays, d: int) -> wp.vec3d:
    """Unit normal of the wall at a dart, into its cell."""
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    if m.dimension == 3:
        return -wp.normalize(wp.cross(s - m.face_centre[d], e - m.face_centre[d]))
    return wp.normalize(wp.vec3d(s[1] - e[1], e[0] - s[0], _ZERO))


@wp.func
def go_straight(m: MapArrays, dart: int, start: wp.vec3d, velocity: wp.vec3d, dt: wp.float64) -> Place:
    """In the plane or in space."""
    end = Place()
    end.position = start + dt * velocity
    end.velocity = velocity
    end.dart = dart
    if wp.min(sides(m, dart, end.position)) >= _ZERO:
        return end
    p = start
    way = dt * velocity
    d = int(dart)
    slides = int(0)
    for _n in range(_SIMPLICES):
        out = first_exit(m, d, p, p + way)
        if out.side < 0:
            end.position = p + way
            end.dart = d
            return end
        there = behind(m, d, out.side)
        if there >= 0:
            d = there
        else:
            n = _wall_normal(m, d)
            size = wp.length(m.position[m.origin[m.phi1[d]]] - m.position[m.origin[d]])
            s = m.position[m.origin[d]]
            p = p + out.time * way
            p = p + (wp.max(_CLEAR * size - wp.dot(p - s, n), _ZERO)) * n
            way = (_ONE - out.time) * way
            way = way - wp.min(wp.dot(way, n), _ZERO) * n
            end.velocity = end.velocity - wp.min(wp.dot(end.velocity, n), _ZERO) * n
            slides += 1
            if slides == _SLIDES:
                way = wp.vec3d()
    # A corner sharper than rounding allows to leave: stay where it was.
    end.position = start
    end.velocity = wp.vec3d()
    end.dart = dart
    return end


@wp.func
def go_over_surface(m: MapArrays, dart: int, start: wp.vec3d, velocity: wp.vec3d, dt: wp.float64) -> Place:
    """Along a surface in space; a wall stops the agent, and its velocity turns along the wall."""
    way = glided(m, dart, start, dt * velocity, velocity)
    end = Place()
    end.position = way.position
    end.velocity = way.heading
    end.dart = way.dart
    if way.status == BLOCKED:
        s = m.position[m.origin[way.dart]]
        along = wp.normalize(m.position[m.origin[m.phi1[way.dart]]] - s)
        inward = wp.cross(triangle_normal(m, way.dart), along)
        end.velocity = way.heading - wp.min(wp.dot(way.heading, inward), _ZERO) * inward
    return end
