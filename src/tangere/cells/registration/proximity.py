"""Who is near a point: in its one-ring, or the nearest k; exact for any sizes of cells.

Question: which other points are near each point?
Method:   a search over rings from the point's own cell, which goes on through every cell that may hold something nearer
          than the farthest found so far (its bounding sphere says so). The way from one point to such another leads
          only through such cells, so in a convex map nothing is missed; where a hole or a bay of the border is between,
          what can only be reached by a longer way around is not near. Walls and obstacles hide nothing.
Known as: proximity queries by one-rings (Pitiot 2015, section 3.3); nearest neighbours by best-first search.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.index_checks import checked_index
from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.neighbourhood import ancestors, ring
from tangere.cells.maps.rings import RingTable
from tangere.cells.registration.registration import Kind, Registration
from tangere.runtime import SOUND, InputError, launch, using_threads

wp.set_module_options(SOUND)

_GRAIN = 256


def in_ring(registration: Registration, kind: Kind, point: int) -> np.ndarray:
    """Numbers of the points, segments or triangles in the cell of a point and in its one-ring, less the point.

    It costs what is found, however many points there are.
    """
    cell = registration.cell_of(point)
    groups = registration.present(kind)
    found = np.unique(groups.rows(np.append(registration.map.rings.row(cell), cell)))
    return found[found != point] if kind == "points" else found


def things_around(
    registration: Registration, kind: Kind, number: int, others: Kind, *, level: int | None = None
) -> np.ndarray:
    """Numbers of the `others` in the cells that a point, segment or triangle crosses and in the one-ring of these.

    Args:
        level: cells of this level instead of leaves. A large thing is in far fewer of them, and their ring is wider:
            all that is within the width of a cell of that level is among the answers.
    """
    return _present_around(registration, others, registration.crossed(kind, number, level=level), level)


def in_ring_at(registration: Registration, kind: Kind, cell: int, level: int) -> np.ndarray:
    """The same for a cell on a coarser level: everyone in its level-k ancestor and the one-ring of that."""
    cell = checked_index(cell, "cell", registration.map.cell_capacity, "cells")
    return _present_around(registration, kind, ancestors(registration.map, level)[[cell]], level)


def _present_around(registration: Registration, kind: Kind, cells: np.ndarray, level: int | None) -> np.ndarray:
    """Who is in cells of a level (None: leaves) and in the one-ring of these."""
    map = registration.map
    seen = np.union1d(cells, ring(map, cells, level=level))
    if level is not None:
        seen = map.leaves[np.isin(ancestors(map, level)[map.leaves], seen)]
    return np.unique(registration.present(kind).rows(seen))


def nearest(registration: Registration, count: int, *, threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The nearest `count` other points of each point: (n, count) numbers (-1: there are no more) and distances [m].

    Args:
        threads: CPU threads; None means those of the registration.
    """
    with using_threads(registration.threads if threads is None else threads):
        if count < 1:
            raise InputError(f"count must be at least 1, not {count}")
        map, groups, n = registration.map, registration.present("points"), len(registration._points)
        reach, queue = _reaches(registration), _queue(registration)
        while True:
            numbers = wp.full((n, count), -1, dtype=wp.int32, device=map.device)
            distances = wp.full((n, count), np.inf, dtype=wp.float64, device=map.device)
            full = wp.zeros(n, dtype=wp.int32, device=map.device)
            inputs = [
                *(map.arrays, map.rings.table, groups.start, groups.order, registration._points, registration._darts),
                *(reach, queue, queue.shape[1], count - 1),
            ]
            launch(_nearest, n, inputs, [numbers, distances, full], device=map.device, grain=_GRAIN)
            if not full.numpy().any():
                return numbers.numpy(), distances.numpy()
            queue = _queue(registration, 2 * queue.shape[1])


def _queue(registration: Registration, width: int = 64) -> wp.array:
    return wp.empty((len(registration._points), width), dtype=wp.int32, device=registration.map.device)


def _reaches(registration: Registration) -> wp.array:
    """Radius of a sphere around its centre that holds each cell."""
    map = registration.map
    reach = wp.zeros(map.cell_capacity, dtype=wp.float64, device=map.device)
    launch(_reach, map.cell_capacity, [map.arrays], [reach], device=map.device, grain=4096)
    return reach


@wp.kernel
def _reach(first: int, m: MapArrays, reach: wp.array[wp.float64]):
    c = first + wp.tid()
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    most = wp.float64(0.0)
    d = int(m.anchor[c])
    while d >= 0:
        most = wp.max(most, wp.length_sq(m.position[m.origin[d]] - m.centre[c]))
        d = m.link[d]
    reach[c] = wp.sqrt(most) * wp.float64(1.0000001)


@wp.func
def _add_ring(
    m: MapArrays,
    table: RingTable,
    c: int,
    x: wp.vec3d,
    reach: wp.array[wp.float64],
    radius: wp.float64,
    queue: wp.array2d[int],
    width: int,
    row: int,
    end: int,
) -> int:
    """Queue those neighbours of c that may hold something within the radius; returns the new end, -1 if it is full."""
    last = int(end)
    for k in range(table.size[c]):
        b = table.cells[c * table.width + k]
        if wp.length(m.centre[b] - x) - reach[b] <= radius:
            known = bool(False)
            for q in range(last):
                if queue[row, q] == b:
                    known = True
            if not known:
                if last == width:
                    return -1
                queue[row, last] = b
                last += 1
    return last


@wp.kernel
def _nearest(
    first: int,
    m: MapArrays,
    table: RingTable,
    start: wp.array[int],
    order: wp.array[int],
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    reach: wp.array[wp.float64],
    queue: wp.array2d[int],
    width: int,
    worst: int,
    numbers: wp.array2d[int],
    distances: wp.array2d[wp.float64],
    full: wp.array[int],
):
    i = first + wp.tid()
    x = points[i]
    queue[i, 0] = int(m.cell[darts[i]])
    head = int(0)
    end = int(1)
    while head < end:
        c = queue[i, head]
        for k in range(start[c], start[c + 1]):
            j = order[k]
            away = wp.length(points[j] - x)
            if j != i and (away < distances[i, worst] or (away == distances[i, worst] and j < numbers[i, worst])):
                place = int(worst)
                while place > 0 and (
                    away < distances[i, place - 1] or (away == distances[i, place - 1] and j < numbers[i, place - 1])
                ):
                    distances[i, place] = distances[i, place - 1]
                    numbers[i, place] = int(numbers[i, place - 1])
                    place -= 1
                distances[i, place] = away
                numbers[i, place] = j
        end = _add_ring(m, table, c, x, reach, distances[i, worst], queue, width, i, end)
        head += 1
    if end < 0:
        full[i] = 1
