"""Whether a wall is between two places of the plane, asked of as little memory as can be.

Question: does an agent see its waypoint?
Method:   from rectangle to rectangle as long as each is left by the inside of a side that is one edge of its cell: a
          line or two of memory a cell, and in a grid without walls that is all. What is not so simple (cells of other
          shapes, finer neighbours, corners, walls) is asked of `tangere.cells.tracking.march`, from the start.
Known as: line of sight by walking a subdivision (Devillers, Pion, Teillaud 2002).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import MapArrays
from tangere.cells.tracking import INSIDE, MarchState, march_to
from tangere.crowd.agents.cell_triangles import rectangle_clearance
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Nearer to a corner than this part of the way, the march decides.
_CORNER = wp.constant(wp.float64(1.0e-9))
#: How far beside a rectangle it may come in, as a part of it, for rounding.
_OFF = wp.constant(wp.float64(1.0e-8))
_ONE = wp.constant(wp.float64(1.0))
#: Rectangles passed at most; the march has no such limit.
_MOST = wp.constant(4096)


@wp.func
def _crossing(low: wp.float64, high: wp.float64, a: wp.float64, along: wp.float64) -> wp.float64:
    """When a way that begins at a leaves what is between two lines."""
    if along > wp.float64(0.0):
        return (high - a) / along
    if along < wp.float64(0.0):
        return (low - a) / along
    return wp.float64(wp.inf)


@wp.func
def line_of_sight(m: MapArrays, s: Neighbourhoods, a: wp.vec3d, b: wp.vec3d, dart: int) -> MarchState:
    """The march from a to b, of whose end only dart and status are known; `dart` is one of the cell of a."""
    way = b - a
    end = MarchState()
    end.dart = dart
    time = wp.float64(0.0)
    for _n in range(_MOST):
        seen = s.cell[m.cell[end.dart]]
        if rectangle_clearance(seen.low, seen.high, b) > wp.float64(0.0):
            end.status = INSIDE
            return end
        x = _crossing(seen.low[0], seen.high[0], a[0], way[0])
        y = _crossing(seen.low[1], seen.high[1], a[1], way[1])
        side = int(0)
        if way[0] > wp.float64(0.0):
            side = 1
        if y < x:
            side = 2
            if way[1] > wp.float64(0.0):
                side = 3
        # It may have come in where the rectangle, which is not all of the cell, is not.
        off = -rectangle_clearance(seen.low, seen.high, a + time * way)
        strange = off > _OFF * (seen.high[0] - seen.low[0] + seen.high[1] - seen.low[1])
        time = wp.min(x, y)
        if strange or time > _ONE or wp.abs(x - y) <= _CORNER or seen.across[side] < 0:
            return march_to(m, a, b, dart)
        end.dart = seen.across[side]
    return march_to(m, a, b, dart)
