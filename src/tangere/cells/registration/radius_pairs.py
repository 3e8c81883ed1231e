"""All pairs of points within a radius of each other; exact for any sizes of cells.

Question: which points are not farther apart than a radius?
Method:   for each cell that holds points, once, the cells around it that a way of that length may lead to: over rings,
          through every cell whose box is near enough. Then each point is compared with the points of those cells, which
          lie side by side in memory, unless the box of those points is too far from it.
          A way from one point to another within the radius leads only through such cells, so in a convex map nothing is
          missed; where a hole or a bay of the border is between, what can only be reached by a longer way around is not
          near. Walls and obstacles hide nothing: what is behind one is as near as without it.
Known as: fixed-radius near neighbours, by cells.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.rings import RingTable
from tangere.cells.registration.registration import Registration
from tangere.cells.tracking.simplex_sides import points_per_index
from tangere.runtime import SOUND, InputError, collect, launch, reserve_slots, using_threads

wp.set_module_options(SOUND)

_GRAIN = 4096
#: Squares are compared first; only within rounding of the radius is a root taken.
_ROUNDED_UP = wp.constant(wp.float64(1.0 + 1e-12))


@wp.struct
class Boxes:
    """Per cell: a box around it, and one around its points."""

    low: wp.array[wp.vec3d]
    high: wp.array[wp.vec3d]
    low_point: wp.array[wp.vec3d]
    high_point: wp.array[wp.vec3d]


def pairs_within(registration: Registration, radius: float, *, threads: int | None = None) -> np.ndarray:
    """(k, 2) pairs of points not farther apart than `radius` [m], i < j, sorted.

    Args:
        threads: CPU threads; None means those of the registration.
    """
    with using_threads(registration.threads if threads is None else threads):
        if not 0 <= radius < np.inf:
            raise InputError(f"radius must be a length that is not negative [m], but is {radius}")
        map, groups, count = registration.map, registration.present("points"), len(registration._points)
        device, cells = map.device, map.cell_capacity
        points, own = (wp.empty(count, dtype=kind, device=device) for kind in (wp.vec3d, wp.int32))
        inputs = [map.arrays.cell, groups.order, registration._points, registration._darts]
        launch(_gather, count, inputs, [points, own], device=device)
        boxes = Boxes()
        for name in ("low", "high", "low_point", "high_point"):
            setattr(boxes, name, wp.empty(cells, dtype=wp.vec3d, device=device))
        launch(_box, cells, [map.arrays, groups.start, points], [boxes], device=device, grain=_GRAIN)
        around, sizes = _cells_around(registration, boxes, radius)
        chunk = points_per_index(device)
        found = collect(
            _pairs,
            -(-count // chunk),
            [groups.start, groups.order, points, own, boxes, around, sizes, wp.float64(radius), chunk],
            wp.int64,
            device=device,
            grain=_GRAIN // chunk,
            capacity=count,
        )
        keys = found.numpy().copy()
        keys.sort()
        return np.ascontiguousarray(keys.view(np.int32).reshape(-1, 2)[:, ::-1])  # the upper half of a key is i


def _cells_around(registration: Registration, boxes: Boxes, radius: float) -> tuple[wp.array, wp.array]:
    """For each cell with points, those cells around it, and itself, that may hold something within the radius."""
    map, start = registration.map, registration.present("points").start
    sizes = wp.zeros(map.cell_capacity, dtype=wp.int32, device=map.device)
    width = 32
    while True:
        around = wp.empty((map.cell_capacity, width), dtype=wp.int32, device=map.device)
        inputs = [map.rings.table, start, boxes, wp.float64(radius)]
        launch(_search, map.cell_capacity, inputs, [around, sizes], device=map.device, grain=256)
        most = int(sizes.numpy().max())
        if most <= width:
            return around, sizes
        width = most + most // 2


@wp.func
def _gap(low: wp.vec3d, high: wp.vec3d, other_low: wp.vec3d, other_high: wp.vec3d) -> wp.float64:
    """Squared distance of two boxes."""
    total = wp.float64(0.0)
    for k in range(3):
        apart = wp.max(wp.max(other_low[k] - high[k], low[k] - other_high[k]), wp.float64(0.0))
        total += apart * apart
    return total


@wp.kernel
def _gather(
    first: int,
    cell: wp.array[int],
    order: wp.array[int],
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    gathered: wp.array[wp.vec3d],
    own: wp.array[int],
):
    k = first + wp.tid()
    gathered[k] = points[order[k]]
    own[k] = int(cell[darts[order[k]]])


@wp.kernel
def _box(first: int, m: MapArrays, start: wp.array[int], points: wp.array[wp.vec3d], boxes: Boxes):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    d = int(m.anchor[c])
    low = m.position[m.origin[d]]
    high = low
    while d >= 0:
        x = m.position[m.origin[d]]
        low = wp.min(low, x)
        high = wp.max(high, x)
        d = m.link[d]
    boxes.low[c] = low
    boxes.high[c] = high
    if start[c] < start[c + 1]:
        low = points[start[c]]
        high = low
        for k in range(start[c] + 1, start[c + 1]):
            low = wp.min(low, points[k])
            high = wp.max(high, points[k])
        boxes.low_point[c] = low
        boxes.high_point[c] = high


@wp.kernel
def _search(
    first: int,
    table: RingTable,
    start: wp.array[int],
    boxes: Boxes,
    radius: wp.float64,
    around: wp.array2d[int],
    sizes: wp.array[int],
):
    c = first + wp.tid()
    sizes[c] = 0
    if start[c] == start[c + 1]:
        return
    low = boxes.low_point[c]
    high = boxes.high_point[c]
    limit = radius * radius * _ROUNDED_UP
    around[c, 0] = c
    end = int(1)
    head = int(0)
    while head < end and end <= around.shape[1]:
        b = around[c, head]
        for k in range(table.size[b]):
            x = table.cells[b * table.width + k]
            if _gap(low, high, boxes.low[x], boxes.high[x]) <= limit:
                q = wp.min(end, around.shape[1]) - 1
                while q >= 0 and around[c, wp.max(q, 0)] != x:
                    q -= 1
                if q < 0:
                    if end < around.shape[1]:
                        around[c, end] = x
                    end += 1
        head += 1
    sizes[c] = end


@wp.kernel
def _pairs(
    first: int,
    shard: int,
    start: wp.array[int],
    order: wp.array[int],
    points: wp.array[wp.vec3d],
    own: wp.array[int],
    boxes: Boxes,
    around: wp.array2d[int],
    sizes: wp.array[int],
    radius: wp.float64,
    chunk: int,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.int64],
):
    begin = (first + wp.tid()) * chunk
    limit = radius * radius * _ROUNDED_UP
    for k in range(begin, wp.min(begin + chunk, points.shape[0])):
        x = points[k]
        c = own[k]
        for q in range(sizes[c]):
            b = around[c, q]
            # Each pair once: with those that come later in memory.
            low = wp.max(start[b], k + 1)
            if low < start[b + 1] and _gap(x, x, boxes.low_point[b], boxes.high_point[b]) <= limit:
                for j in range(low, start[b + 1]):
                    apart = points[j] - x
                    if wp.length_sq(apart) <= limit and wp.length(apart) <= radius:
                        slot = reserve_slots(counts, shard, 1, capacity)
                        if slot >= 0:
                            one = wp.min(order[k], order[j])
                            other = wp.max(order[k], order[j])
                            out[slot] = (wp.int64(one) << wp.int64(32)) | wp.int64(other)
