"""What an agent sees from its cell, as few ranges of agents: its ring, with cells of consecutive numbers in one run.

Question: which agents may be within reach of one in this cell?
Method:   agents are sorted by cell, so that those of cells 7, 8 and 9 are one range; in a grid nine cells make three
          runs, in the order of the cells' numbers, whatever the order of the ring. Each run has a box: where cells are
          wider than agents look, most of what is around a cell is too far to be looked at.
          All that is asked together lies together, and the runs of one cell follow on those of the other: agents wait
          for a few lines of memory each, whether there are a few all over a large map or many everywhere.
Sound:    gaps to boxes are taken in float32, rounded outward: boxes and the distance compared with are wider than that.
Known as: neighbour lists by cell (cell lists); the one-ring of Pitiot 2015, section 3.3.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import CellMap, MapArrays, RingTable
from tangere.crowd.agents.cell_triangles import Triangle, cell_rectangle, rectangle_neighbours, triangles_of
from tangere.crowd.agents.walls import (
    NearestWall,
    Walls,
    allocate_walls,
    collect_walls,
    count_own_walls,
    nearest_wall,
)
from tangere.runtime import SOUND, launch, offsets

wp.set_module_options(SOUND)

#: Boxes are wider than their cells by this part: a point on a side may be beyond it by a rounding.
_WIDER = wp.constant(wp.float64(1.0e-6))
#: And by this part of their coordinates, more than rounding these to float32 takes away.
_ROUNDING = wp.constant(wp.float64(2.0**-22))
#: Squares of gaps are rounded to float32 a few times, and small ones have less digits there.
_MORE = wp.constant(wp.float64(1.0 + 1.0e-6))
_SMALL = wp.constant(wp.float64(1.0e-37))


@wp.struct
class CellRun:
    """Cells first … last, and a box around them, rounded outward."""

    low: wp.vec3f
    high: wp.vec3f
    first: int
    last: int


@wp.struct
class CellNeighbourhood:
    """How much is seen from a cell, and in the plane a rectangle within it: 64 bytes, one line of a CPU's cache."""

    low: wp.vec2d
    high: wp.vec2d
    across: wp.vec4i  # the dart behind each side of the rectangle, -1: not one edge of the cell, or a wall
    run: int  # the first one
    runs: int
    wall: int  # the first one
    walls: int


@wp.struct
class Neighbourhoods:
    """Runs of cell c: run[cell[c].run] … run[cell[c].run + cell[c].runs - 1]."""

    cell: wp.array[CellNeighbourhood]
    run: wp.array[CellRun]
    walls: Walls
    triangle: wp.array[Triangle]  # by dart; in the plane only


def neighbourhoods_of(map: CellMap, reach: float) -> Neighbourhoods:
    """What is seen from each leaf of a map as it is now, and walls as far as `reach` [m] from it."""
    capacity, device, table = map.cell_capacity, map.device, map.rings.table
    s = Neighbourhoods()
    s.cell = wp.zeros(capacity, dtype=CellNeighbourhood, device=device)
    low, high = (wp.empty(capacity, dtype=wp.vec3d, device=device) for _ in range(2))
    runs, own = (wp.zeros(capacity + 1, dtype=wp.int32, device=device) for _ in range(2))
    order = wp.empty(capacity * (table.width + 1), dtype=wp.int32, device=device)
    launch(_measure_cells, capacity, [map.arrays, table], [low, high, own, order, runs], device=device, grain=4096)
    begin, total = offsets(runs)
    s.run = wp.empty(total, dtype=CellRun, device=device)
    s.walls, wall = allocate_walls(map, own, low, high, reach)
    inputs = [map.arrays, table, low, high, order, begin, wall, int(map.flat)]
    launch(_write_neighbourhoods, capacity, inputs, [s], device=device, grain=4096)
    s.triangle = triangles_of(map)
    return s


@wp.func
def rounded_up(square: wp.float64) -> wp.float32:
    """What a `squared_gap` is compared with: the square of a distance and more than rounding takes away."""
    return wp.float32(square * _MORE + _SMALL)


@wp.func
def squared_gap(run: CellRun, x: wp.vec3f) -> wp.float32:
    """Square of a distance that nobody in a run is nearer than to x, which was rounded; for `rounded_up`."""
    a = wp.max(wp.max(run.low[0] - x[0], x[0] - run.high[0]), wp.float32(0.0))
    b = wp.max(wp.max(run.low[1] - x[1], x[1] - run.high[1]), wp.float32(0.0))
    c = wp.max(wp.max(run.low[2] - x[2], x[2] - run.high[2]), wp.float32(0.0))
    return a * a + b * b + c * c


@wp.func
def nearest_wall_of_cell(s: Neighbourhoods, cell: int, x: wp.vec3d) -> NearestWall:
    """The nearest wall point in a cell and its ring, if it is within reach."""
    seen = s.cell[cell]
    return nearest_wall(s.walls, seen.wall, seen.wall + seen.walls, x)


@wp.kernel
def _measure_cells(
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
    own[c] = count_own_walls(m, c)
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
def _write_neighbourhoods(
    first: int,
    m: MapArrays,
    table: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    order: wp.array[int],
    begin: wp.array[int],
    wall: wp.array[int],
    flat: int,
    s: Neighbourhoods,
):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    base = c * (table.width + 1)
    last = int(begin[c] - 1)
    run = CellRun()
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
    s.cell[c].run = int(begin[c])
    s.cell[c].runs = last + 1 - begin[c]
    s.cell[c].wall = int(wall[c])
    s.cell[c].walls = collect_walls(m, table, c, low[c], high[c], True, wall[c], s.walls)
    if flat == 1:
        within = cell_rectangle(m, c)
        s.cell[c].low = wp.vec2d(within[0], within[1])
        s.cell[c].high = wp.vec2d(within[2], within[3])
        s.cell[c].across = rectangle_neighbours(m, c, within)
