"""What an agent sees from its cell, as few ranges of agents: its ring, with cells of consecutive numbers in one run.

Agents are sorted by cell, so that those of cells 7, 8 and 9 are one range; in a grid nine cells make three runs.
The order of a row is that of the cells' numbers, whatever the order of the ring.
Each run has a box: where cells are wider than agents look, most of what is around a cell is too far to be looked at.
Gaps to boxes are taken in float32, which is rounded outward: boxes and the distance compared with are wider than that.
All that is asked together lies together, and the runs of one cell follow on those of the other: agents wait for a few
lines of memory each, whether there are a few all over a large map or many everywhere.
Spec: specs/pitiot-multiresolution-interactions 2.5, 2.17, 5.3.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import CellMap, MapArrays, RingTable
from tangere.crowd.agents.ground import Triangle, rectangle, triangles_of, whole_sides
from tangere.crowd.steering.walls import Wall, Walls, nearest_wall, own_walls, walls_of, walls_seen
from tangere.runtime import SOUND, launch, offsets

__all__ = ["Run", "Sight", "gap", "in_sight", "sight_of", "wall_near"]

wp.set_module_options(SOUND)

#: Boxes are wider than their cells by this part: a point on a side may be beyond it by a rounding.
_WIDER = wp.constant(wp.float64(1.0e-6))
#: And by this part of their coordinates, more than rounding these to float32 takes away.
_ROUNDING = wp.constant(wp.float64(2.0**-22))
#: Squares of gaps are rounded to float32 a few times, and small ones have less digits there.
_MORE = wp.constant(wp.float64(1.0 + 1.0e-6))
_SMALL = wp.constant(wp.float64(1.0e-37))


@wp.struct
class Run:
    """Cells first … last, and a box around them, rounded outward."""

    low: wp.vec3f
    high: wp.vec3f
    first: int
    last: int


@wp.struct
class Seen:
    """How much is seen from a cell, and in the plane a rectangle within it: 64 bytes, one line of a CPU's cache."""

    low: wp.vec2d
    high: wp.vec2d
    across: wp.vec4i  # the dart behind each side of the rectangle, -1: not one edge of the cell, or a wall
    run: int  # the first one
    runs: int
    wall: int  # the first one
    walls: int


@wp.struct
class Sight:
    """Runs of cell c: run[seen[c].run] … run[seen[c].run + seen[c].runs - 1]."""

    seen: wp.array[Seen]
    run: wp.array[Run]
    walls: Walls
    triangle: wp.array[Triangle]  # by dart; in the plane only


def sight_of(map: CellMap, reach: float) -> Sight:
    """What is seen from each leaf of a map as it is now, and walls as far as `reach` [m] from it."""
    capacity, device, table = map.cell_capacity, map.device, map.rings.table
    s = Sight()
    s.seen = wp.zeros(capacity, dtype=Seen, device=device)
    low, high = (wp.empty(capacity, dtype=wp.vec3d, device=device) for _ in range(2))
    runs, own = (wp.zeros(capacity + 1, dtype=wp.int32, device=device) for _ in range(2))
    order = wp.empty(capacity * (table.width + 1), dtype=wp.int32, device=device)
    launch(_survey, capacity, [map.arrays, table], [low, high, own, order, runs], device=device, grain=4096)
    begin, total = offsets(runs)
    s.run = wp.empty(total, dtype=Run, device=device)
    s.walls, wall = walls_of(map, own, low, high, reach)
    inputs = [map.arrays, table, low, high, order, begin, wall, int(map.flat)]
    launch(_describe, capacity, inputs, [s], device=device, grain=4096)
    s.triangle = triangles_of(map)
    return s


@wp.func
def in_sight(square: wp.float64) -> wp.float32:
    """What a `gap` is compared with: the square of a distance and more than rounding takes away."""
    return wp.float32(square * _MORE + _SMALL)


@wp.func
def gap(run: Run, x: wp.vec3f) -> wp.float32:
    """Square of a distance that nobody in a run is nearer than to x, which was rounded; for `in_sight`."""
    a = wp.max(wp.max(run.low[0] - x[0], x[0] - run.high[0]), wp.float32(0.0))
    b = wp.max(wp.max(run.low[1] - x[1], x[1] - run.high[1]), wp.float32(0.0))
    c = wp.max(wp.max(run.low[2] - x[2], x[2] - run.high[2]), wp.float32(0.0))
    return a * a + b * b + c * c


@wp.func
def wall_near(s: Sight, cell: int, x: wp.vec3d) -> Wall:
    """The nearest wall point in a cell and its ring, if it is within reach."""
    seen = s.seen[cell]
    return nearest_wall(s.walls, seen.wall, seen.wall + seen.walls, x)


@wp.kernel
def _survey(
    first: int,
    m: MapArrays,
    table: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    own: wp.array[int],
    order: wp.array[int],
    runs: wp.array[int],
):
    """The box of each leaf, its walls, its ring by number with itself in it, and how many runs that makes."""
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
    own[c] = own_walls(m, c)
    base = c * (table.width + 1)
    order[base] = c
    for k in range(table.size[c]):
        b = table.cells[c * table.width + k]
        at = int(k)
        while at >= 0 and order[base + wp.max(at, 0)] > b:
            order[base + at + 1] = int(order[base + at])
            at -= 1
        order[base + at + 1] = b
    count = int(1)
    for k in range(base, base + table.size[c]):
        if order[k + 1] != order[k] + 1:
            count += 1
    runs[c] = count


@wp.kernel
def _describe(
    first: int,
    m: MapArrays,
    table: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    order: wp.array[int],
    begin: wp.array[int],
    wall: wp.array[int],
    flat: int,
    s: Sight,
):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    base = c * (table.width + 1)
    last = int(begin[c] - 1)
    run = Run()
    for k in range(base, base + table.size[c] + 1):
        b = int(order[k])
        if k > base and b == run.last + 1:
            run.low = wp.min(run.low, wp.vec3f(low[b]))
            run.high = wp.max(run.high, wp.vec3f(high[b]))
        else:
            last += 1
            run.first = b
            run.low = wp.vec3f(low[b])
            run.high = wp.vec3f(high[b])
        run.last = b
        s.run[last] = run
    s.seen[c].run = int(begin[c])
    s.seen[c].runs = last + 1 - begin[c]
    s.seen[c].wall = int(wall[c])
    s.seen[c].walls = walls_seen(m, table, c, low[c], high[c], True, wall[c], s.walls)
    if flat == 1:
        within = rectangle(m, c)
        s.seen[c].low = wp.vec2d(within[0], within[1])
        s.seen[c].high = wp.vec2d(within[2], within[3])
        s.seen[c].across = whole_sides(m, c, within)
