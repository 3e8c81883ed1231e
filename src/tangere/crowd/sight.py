"""What an agent sees from its cell, as few ranges of agents: its ring, with cells of consecutive numbers in one run.

Agents are sorted by cell, so that those of cells 7, 8 and 9 are one range; in a grid nine cells make three runs.
The order of a row is that of the cells' numbers, whatever the order of the ring.
Spec: specs/pitiot-multiresolution-interactions 2.5, 2.17, 5.3.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.crowd.walls import mark_walled
from tangere.runtime import SOUND, launch

__all__ = ["Sight", "sight_of"]

wp.set_module_options(SOUND)


@wp.struct
class Sight:
    """Runs of cell c: run[c * width] … run[c * width + count[c] - 1], each a first and a last cell."""

    run: wp.array[wp.vec2i]
    count: wp.array[int]
    width: int
    walled: wp.array[int]  # per cell: 1 if it has a side nothing may pass
    by_wall: wp.array[int]  # per cell: 1 if it or one of its ring has


def sight_of(map: CellMap) -> Sight:
    """What is seen from each leaf of a map as it is now."""
    capacity, device, table = map.cell_capacity, map.device, map.rings.table
    s = Sight()
    s.width = table.width + 1
    s.run = wp.empty(capacity * s.width, dtype=wp.vec2i, device=device)
    s.count, s.by_wall = (wp.zeros(capacity, dtype=wp.int32, device=device) for _ in range(2))
    s.walled = mark_walled(map)
    launch(_runs, capacity, [table], [s], device=device, grain=4096)
    return s


@wp.kernel
def _runs(first: int, table: RingTable, s: Sight):
    c = first + wp.tid()
    base = c * s.width
    s.run[base] = wp.vec2i(c, c)
    s.by_wall[c] = int(s.walled[c])
    for k in range(table.size[c]):
        b = table.cells[c * table.width + k]
        if s.walled[b] == 1:
            s.by_wall[c] = 1
        at = int(k)
        while at >= 0 and s.run[base + at][0] > b:
            s.run[base + at + 1] = s.run[base + at]
            at -= 1
        s.run[base + at + 1] = wp.vec2i(b, b)
    last = int(0)
    for k in range(1, table.size[c] + 1):
        b = s.run[base + k][0]
        if b == s.run[base + last][1] + 1:
            s.run[base + last] = wp.vec2i(s.run[base + last][0], b)
        else:
            last += 1
            s.run[base + last] = wp.vec2i(b, b)
    s.count[c] = last + 1
