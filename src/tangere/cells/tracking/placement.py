"""Where registered points are: put into the map, moved, and found again after cells changed; flat, curved or in space.

Question: where is a point, and in which simplex?
Method:   in the plane and in space a point stays where it was put and only its dart is looked for. A point of a curved
          surface is on a triangle of it: it is put on the nearest one, moves by gliding (its target says how far and
          which way), and when cells change it goes to the nearest triangle of its cell and the ring of that. In a flat
          map z is left out.
Known as: point location in a moving mesh (Pitiot 2015, sections 5.2, 6.2.1 and 7.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.cells.tracking.locate import locate_darts
from tangere.cells.tracking.march import move_darts
from tangere.cells.tracking.surface import glide_darts
from tangere.geometry.closest_points import closest_on_triangle
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


def place_in_map(map: CellMap, points: wp.array, darts: wp.array | None) -> tuple[wp.array, wp.array, wp.array]:
    """Points in the map, their darts, and (uint8) which of them are outside.

    Args:
        darts: where they are or were before cells were split, merged or bent; None: that is not known.
    """
    if not map.is_surface:
        return points, *locate_darts(map, points, darts, anywhere=True)
    outside = wp.zeros(len(points), dtype=wp.uint8, device=map.device)
    return *_project_to_surface(map, points, darts), outside


def move_in_map(
    map: CellMap, points: wp.array, targets: wp.array, darts: wp.array
) -> tuple[wp.array, wp.array, wp.array]:
    """Points on the straight way to their targets, their darts, and (uint8) which of them were stopped on it."""
    if map.is_surface:
        by = wp.empty_like(points)
        launch(_between, len(points), [points, targets], [by], device=map.device)
        there, _, found, status = glide_darts(map, points, by, by, darts)
        return there, found, status
    found, time, status = move_darts(map, points, targets, darts)
    there = wp.clone(targets)
    launch(_stop, len(there), [points, time], [there], device=map.device)
    return there, found, status


def _project_to_surface(map: CellMap, points: wp.array, darts: wp.array | None) -> tuple[wp.array, wp.array]:
    there, found = wp.empty_like(points), wp.empty(len(points), dtype=wp.int32, device=map.device)
    near, known = (found, 0) if darts is None else (darts, 1)
    inputs = [map.arrays, map.rings.table, points, near, known]
    launch(_nearest, len(points), inputs, [there, found], device=map.device, grain=64)
    return there, found


@wp.struct
class NearestPlace:
    place: wp.vec3d
    away: wp.float64  # squared
    dart: int


@wp.func
def _nearer(m: MapArrays, d: int, x: wp.vec3d, best: NearestPlace) -> NearestPlace:
    """The better of the best so far and the triangle of d."""
    c = m.centre[m.cell[d]]
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    w = closest_on_triangle(x, c, s, e)
    place = w[0] * c + w[1] * s + w[2] * e
    away = wp.length_sq(place - x)
    if away >= best.away:
        return best
    now = NearestPlace()
    now.place = place
    now.away = away
    now.dart = d
    return now


@wp.func
def _nearest_in_cell(m: MapArrays, c: int, x: wp.vec3d, best: NearestPlace) -> NearestPlace:
    now = best
    d = int(m.anchor[c])
    while d >= 0:
        now = _nearer(m, d, x, now)
        d = m.link[d]
    return now


@wp.kernel
def _nearest(
    first: int,
    m: MapArrays,
    table: RingTable,
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    known: int,
    there: wp.array[wp.vec3d],
    found: wp.array[int],
):
    i = first + wp.tid()
    best = NearestPlace()
    best.away = wp.float64(wp.inf)
    if known == 1:
        c = m.cell[darts[i]]
        best = _nearest_in_cell(m, c, points[i], best)
        for k in range(table.size[c]):
            best = _nearest_in_cell(m, table.cells[c * table.width + k], points[i], best)
    else:
        for d in range(m.counts[0]):
            if m.tag[d] >= 0:
                best = _nearer(m, d, points[i], best)
    there[i] = best.place
    found[i] = best.dart


@wp.kernel
def _between(first: int, points: wp.array[wp.vec3d], targets: wp.array[wp.vec3d], by: wp.array[wp.vec3d]):
    i = first + wp.tid()
    by[i] = targets[i] - points[i]


@wp.kernel
def _stop(first: int, before: wp.array[wp.vec3d], time: wp.array[wp.float64], points: wp.array[wp.vec3d]):
    """Points whose way was blocked are where it was."""
    i = first + wp.tid()
    if time[i] < wp.float64(1.0):
        points[i] = before[i] + time[i] * (points[i] - before[i])
