"""What an agent sees from its cell, as few ranges of agents: its ring, with cells of consecutive numbers in one run.

Agents are sorted by cell, so that those of cells 7, 8 and 9 are one range; in a grid nine cells make three runs.
The order of a row is that of the cells' numbers, whatever the order of the ring.
Each run has a box: where cells are wider than agents look, most of what is around a cell is too far to be looked at.
All that is asked together lies together: a few agents all over a large map then wait for a few lines of memory each,
as they do in a small one.
Spec: specs/pitiot-multiresolution-interactions 2.5, 2.17, 5.3.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.crowd.ground import Triangle, rectangle, triangles_of, whole_sides
from tangere.crowd.walls import Wall, Walls, nearest_wall, walls_of
from tangere.runtime import SOUND, launch

__all__ = ["Run", "Sight", "gap", "sight_of", "wall_near"]

wp.set_module_options(SOUND)

#: Boxes are wider than their cells by this part: a point on a side may be beyond it by a rounding.
_WIDER = wp.constant(wp.float64(1.0e-6))
#: And by this part of their coordinates, more than rounding these to float32 takes away.
_ROUNDING = wp.constant(wp.float64(2.0**-22))


@wp.struct
class Run:
    """Cells first … last, and a box around them, rounded outward."""

    low: wp.vec3f
    high: wp.vec3f
    first: int
    last: int


@wp.struct
class Seen:
    """How much is seen from a cell, and in the plane a rectangle within it."""

    low: wp.vec2d
    high: wp.vec2d
    across: wp.vec4i  # the dart behind each side of the rectangle, -1: not one edge of the cell, or a wall
    beyond: wp.vec4i  # and its cell
    runs: int
    wall: int  # the first one
    walls: int


@wp.struct
class Sight:
    """Runs of cell c: run[c * width] … run[c * width + seen[c].runs - 1]."""

    seen: wp.array[Seen]
    run: wp.array[Run]
    width: int
    walls: Walls
    triangle: wp.array[Triangle]  # by dart; in the plane only


def sight_of(map: CellMap, reach: float) -> Sight:
    """What is seen from each leaf of a map as it is now, and walls as far as `reach` [m] from it."""
    capacity, device, table = map.cell_capacity, map.device, map.rings.table
    s = Sight()
    s.width = table.width + 1
    s.run = wp.empty(capacity * s.width, dtype=Run, device=device)
    s.seen = wp.zeros(capacity, dtype=Seen, device=device)
    low, high = (wp.empty(capacity, dtype=wp.vec3d, device=device) for _ in range(2))
    launch(_boxes, capacity, [map.arrays], [low, high], device=device, grain=4096)
    s.walls, *held = walls_of(map, low, high, reach)
    launch(_runs, capacity, [map.arrays, table, low, high, *held, int(map.flat)], [s], device=device, grain=4096)
    s.triangle = triangles_of(map)
    return s


@wp.func
def gap(run: Run, x: wp.vec3d) -> wp.float64:
    """Square of a distance that nobody in a run is nearer than to x."""
    low = wp.vec3d(run.low)
    high = wp.vec3d(run.high)
    return wp.length_sq(wp.max(wp.max(low - x, x - high), wp.vec3d()))


@wp.func
def wall_near(s: Sight, cell: int, x: wp.vec3d) -> Wall:
    """The nearest wall point in a cell and its ring, if it is within reach."""
    seen = s.seen[cell]
    return nearest_wall(s.walls, seen.wall, seen.wall + seen.walls, x)


@wp.kernel
def _boxes(first: int, m: MapArrays, low: wp.array[wp.vec3d], high: wp.array[wp.vec3d]):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    least = m.centre[c]
    most = m.centre[c]
    d = int(m.anchor[c])
    while d >= 0:
        x = m.position[m.origin[d]]
        least = wp.min(least, x)
        most = wp.max(most, x)
        d = m.link[d]
    wider = _WIDER * (most - least) + _ROUNDING * wp.max(wp.max(least, -least), wp.max(most, -most))
    low[c] = least - wider
    high[c] = most + wider


@wp.kernel
def _runs(
    first: int,
    m: MapArrays,
    table: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    wall: wp.array[int],
    walls: wp.array[int],
    flat: int,
    s: Sight,
):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    base = c * s.width
    s.run[base].first = c
    for k in range(table.size[c]):
        b = table.cells[c * table.width + k]
        at = int(k)
        while at >= 0 and s.run[base + at].first > b:
            s.run[base + at + 1].first = int(s.run[base + at].first)
            at -= 1
        s.run[base + at + 1].first = b
    last = int(-1)
    run = Run()
    for k in range(table.size[c] + 1):
        b = int(s.run[base + k].first)
        if last >= 0 and b == run.last + 1:
            run.low = wp.min(run.low, wp.vec3f(low[b]))
            run.high = wp.max(run.high, wp.vec3f(high[b]))
        else:
            last += 1
            run.first = b
            run.low = wp.vec3f(low[b])
            run.high = wp.vec3f(high[b])
        run.last = b
        s.run[base + last] = run
    s.seen[c].runs = last + 1
    s.seen[c].wall = int(wall[c])
    s.seen[c].walls = int(walls[c])
    if flat == 1:
        within = rectangle(m, c)
        s.seen[c].low = wp.vec2d(within[0], within[1])
        s.seen[c].high = wp.vec2d(within[2], within[3])
        across = whole_sides(m, c, within)
        beyond = wp.vec4i(-1, -1, -1, -1)
        for k in range(4):
            if across[k] >= 0:
                beyond[k] = m.cell[across[k]]
        s.seen[c].across = across
        s.seen[c].beyond = beyond
