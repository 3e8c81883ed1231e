"""What an agent sees from its cell, as few ranges of agents: its ring, with cells of consecutive numbers in one run.

Agents are sorted by cell, so that those of cells 7, 8 and 9 are one range; in a grid nine cells make three runs.
The order of a row is that of the cells' numbers, whatever the order of the ring.
Each run has a box: where cells are wider than agents look, most of what is around a cell is too far to be looked at.
Spec: specs/pitiot-multiresolution-interactions 2.5, 2.17, 5.3.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.crowd.walls import Walls, walls_of
from tangere.runtime import SOUND, launch

__all__ = ["Sight", "in_reach", "sight_of"]

wp.set_module_options(SOUND)

#: Boxes are wider than their cells by this part: a point on a side may be beyond it by a rounding.
_WIDER = wp.constant(wp.float64(1.0e-6))


@wp.struct
class Sight:
    """Runs of cell c: run[c * width] … run[c * width + count[c] - 1], each a first and a last cell."""

    run: wp.array[wp.vec2i]
    low: wp.array[wp.vec3d]  # boxes of runs
    high: wp.array[wp.vec3d]
    count: wp.array[int]
    width: int
    walls: Walls


def sight_of(map: CellMap) -> Sight:
    """What is seen from each leaf of a map as it is now."""
    capacity, device, table = map.cell_capacity, map.device, map.rings.table
    s = Sight()
    s.width = table.width + 1
    s.run = wp.empty(capacity * s.width, dtype=wp.vec2i, device=device)
    s.low, s.high = (wp.empty(capacity * s.width, dtype=wp.vec3d, device=device) for _ in range(2))
    s.count = wp.zeros(capacity, dtype=wp.int32, device=device)
    s.walls = walls_of(map)
    low, high = (wp.empty(capacity, dtype=wp.vec3d, device=device) for _ in range(2))
    launch(_boxes, capacity, [map.arrays], [low, high], device=device, grain=4096)
    launch(_runs, capacity, [table, low, high], [s], device=device, grain=4096)
    return s


@wp.func
def in_reach(s: Sight, k: int, x: wp.vec3d, square: wp.float64) -> bool:
    """Whether anybody in run k may be as near to x as the root of `square`."""
    beyond = wp.max(wp.max(s.low[k] - x, x - s.high[k]), wp.vec3d())
    return wp.length_sq(beyond) <= square


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
    wider = _WIDER * (most - least)
    low[c] = least - wider
    high[c] = most + wider


@wp.kernel
def _runs(first: int, table: RingTable, low: wp.array[wp.vec3d], high: wp.array[wp.vec3d], s: Sight):
    c = first + wp.tid()
    base = c * s.width
    s.run[base] = wp.vec2i(c, c)
    for k in range(table.size[c]):
        b = table.cells[c * table.width + k]
        at = int(k)
        while at >= 0 and s.run[base + at][0] > b:
            s.run[base + at + 1] = s.run[base + at]
            at -= 1
        s.run[base + at + 1] = wp.vec2i(b, b)
    last = int(-1)
    for k in range(table.size[c] + 1):
        b = s.run[base + k][0]
        at = base + last
        if last >= 0 and b == s.run[wp.max(at, 0)][1] + 1:
            s.run[at] = wp.vec2i(s.run[at][0], b)
            s.low[at] = wp.min(s.low[at], low[b])
            s.high[at] = wp.max(s.high[at], high[b])
        else:
            last += 1
            s.run[base + last] = wp.vec2i(b, b)
            s.low[base + last] = low[b]
            s.high[base + last] = high[b]
    s.count[c] = last + 1
