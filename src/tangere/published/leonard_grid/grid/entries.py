"""Which triangle is in which cell: stages 4 and 5 of the grid pipeline, and the runs of cells that stage 6 begins with.

Stage 4: an entry (cell, triangle) for each cell a box overlaps. With several levels a triangle lives at the finest one
         whose cells are no smaller than its box, in at most 8 of them, and visits the cells it overlaps at coarser
         levels where larger triangles live; so mixed sizes cost little more than equal ones
         (Léonard 2021, section 3.5, has one level).
Stage 5: entries sorted by cell, those who live there first; equal keys keep the order of triangles.
Runs:    where each cell begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
import warp.utils

from tangere.broad_phase.triangles.triangle_aabbs import Box, TriangleAabbs, is_empty
from tangere.published.leonard_grid.box_corners import lower_corner, upper_corner
from tangere.published.leonard_grid.grid.cells import MOST_LEVELS, Grid, Spec, level_count, size_of
from tangere.runtime import SOUND, CapacityError, device_of, launch, launch_in_turn, sort_pairs

wp.set_module_options(SOUND)

#: Bytes, for each triangle and at most, of the map that tells a visitor whether anyone lives in a coarse cell.
MAP_BYTES, MOST_MAP_BYTES = 4, 1 << 24
#: 2^32 over the golden ratio: neighbouring cells fall on different places of the map.
SPREAD = wp.constant(wp.uint32(2654435769))
#: So many triangles, some 0.3 ms, stay on one thread; of more, so many are worth one.
FEW_TRIANGLES, GRAIN = 3584, 1024
#: On CPU so many entries are sorted by comparing them, more by their digits, which takes 80 us to begin with.
FEW = 16384
#: More entries than one array can hold.
TOO_MANY = wp.constant(-1)


@dataclass(frozen=True)
class GridEntries:
    """Stages 4 and 5: which triangle is in which cell."""

    keys: wp.array  #: (E,) int32: twice the cell, plus 1 for a visitor (published: for all but the home cell)
    triangles: wp.array  #: (E,) int32
    low: wp.array  #: (n,) vec3i: lowest of the finest cells of each triangle
    level: wp.array  #: (n,) int32, -1 where a triangle takes no part


@dataclass(frozen=True)
class Runs:
    """Stage 6, first part: the entries of each occupied cell."""

    start: wp.array  #: (C,) int32: the first entry of each cell; on CUDA there are more places than cells
    visits: wp.array  #: (E,) int32: the first entry of each cell that does not live there; of no use if all do
    number: wp.array  #: (E,) int32: which cell, of the occupied ones, each entry is in


def grid_entries(aabbs: TriangleAabbs, grid: Grid) -> GridEntries:
    """Stage 4: an entry for each cell that a box overlaps, by rising triangle."""
    device, count = device_of(aabbs.boxes), len(aabbs.boxes)
    placed = PlacedTriangles()
    placed.low, placed.high = (wp.empty(count, dtype=wp.vec3i, device=device) for _ in range(2))
    placed.level = wp.empty(count, dtype=wp.int32, device=device)
    placed.spec, placed.first_cell = grid.spec, grid.first_cell
    bytes_ = MOST_LEVELS + min(MAP_BYTES * count, MOST_MAP_BYTES) if grid.leveled else 0
    placed.occupied = wp.zeros(bytes_, dtype=wp.uint8, device=device)
    counts = wp.empty(count + 1, dtype=wp.int32, device=device)  # then: where entries start, and their number
    launches = [(_place, count, [aabbs.boxes, placed, counts])]
    if grid.leveled:
        launches.append((_count_visits, count, [placed, counts]))
    if device.is_cpu:
        launches.append((_accumulate, 1, [counts]))
    grain = GRAIN if count > FEW_TRIANGLES else FEW_TRIANGLES
    launch_in_turn(launches, device=device, grain=grain)
    starts = counts
    if device.is_cuda:
        starts = wp.empty_like(counts)
        warp.utils.array_scan(counts, starts, inclusive=False)
        launch(_check_sums, count, [], [starts], device=device)
    total = int((starts if device.is_cpu else starts[-1:]).numpy()[-1])
    if total < 0:
        raise CapacityError("the grid has more than 2^31 entries: its cells are too small for its largest triangles")
    keys = wp.empty(total, dtype=wp.int32, device=device)
    triangles = wp.empty(total, dtype=wp.int32, device=device)
    launch(_fill_entries, count, [placed, starts], [keys, triangles], device=device, grain=grain)
    return GridEntries(keys, triangles, placed.low, placed.level)


def sorted_entries(entries: GridEntries) -> GridEntries:
    """Stage 5: the entries by rising key, those of equal key by rising triangle."""
    device = device_of(entries.keys)
    if device.is_cpu and len(entries.keys) <= FEW:
        pairs = (entries.keys.numpy().astype(np.int64) << 32) | entries.triangles.numpy()
        pairs.sort()
        halves = (pairs >> 32, pairs)
        keys, triangles = (
            wp.array(half.astype(np.int32), dtype=wp.int32, device=device, copy=False) for half in halves
        )
    else:
        keys, triangles = sort_pairs(entries.keys, entries.triangles, bits=31)
    return GridEntries(keys, triangles, entries.low, entries.level)


def cell_runs(entries: GridEntries) -> Runs:
    """Stage 6, first part: where each cell begins among the sorted entries."""
    device, count = device_of(entries.keys), len(entries.keys)
    # As many as there can be: how many there are is known on the device, and to whom reads it.
    start, visits, number = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(3))
    if count == 0:
        return Runs(start, visits, number)
    if device.is_cpu:
        launch(_runs_in_order, 1, [entries.keys], [start, visits, number], device=device)
        return Runs(start[: int(number.numpy()[-1]) + 1], visits, number)
    begins = wp.empty(count, dtype=wp.int32, device=device)
    launch(_begins, count, [entries.keys], [begins], device=device)
    warp.utils.array_scan(begins, number, inclusive=True)
    launch(_starts, count, [entries.keys, begins, number], [start, visits], device=device)
    return Runs(start, visits, number)


@wp.func
def cell_of(x: wp.vec3d, grid: Spec) -> wp.vec3i:
    y = (x - grid.origin) / grid.cell
    return wp.vec3i(
        wp.clamp(int(wp.floor(y[0])), 0, grid.counts[0] - 1),
        wp.clamp(int(wp.floor(y[1])), 0, grid.counts[1] - 1),
        wp.clamp(int(wp.floor(y[2])), 0, grid.counts[2] - 1),
    )


@wp.func
def cell_number(x: int, y: int, z: int, level: int, counts: wp.vec3i, first_cell: wp.array[int]) -> int:
    nx = level_count(counts[0], level)
    ny = level_count(counts[1], level)
    return first_cell[level] + (z * ny + y) * nx + x


@wp.func
def place_in_map(cell: int, occupied: wp.array[wp.uint8]) -> int:
    scattered = wp.uint64(wp.uint32(cell) * SPREAD)
    return MOST_LEVELS + int((scattered * wp.uint64(occupied.shape[0] - MOST_LEVELS)) >> wp.uint64(32))


@wp.struct
class PlacedTriangles:
    """Where triangles are in the cells of a grid."""

    low: wp.array[wp.vec3i]  # lowest and highest of the finest cells of each triangle
    high: wp.array[wp.vec3i]
    level: wp.array[int]  # where it lives; -1 where it takes no part
    spec: wp.array[Spec]
    first_cell: wp.array[int]
    occupied: wp.array[wp.uint8]  # of several levels: whether anyone lives at each, then a map of cells


@wp.kernel
def _place(first: int, boxes: wp.array[Box], placed: PlacedTriangles, counts: wp.array[int]):
    """Cells and level of each triangle, and how many cells it lives in; of several levels the coarse ones are marked as
    lived in (all who mark write the same).
    """
    i = first + wp.tid()
    box = boxes[i]
    own = int(-1)
    number = int(0)
    if not is_empty(box):
        grid = placed.spec[0]
        a = cell_of(lower_corner(box), grid)
        b = cell_of(upper_corner(box), grid)
        placed.low[i] = a
        placed.high[i] = b
        own = int(0)
        edge = grid.cell
        size = size_of(box)
        while edge < size and own < grid.levels - 1:
            edge = edge * wp.float64(2.0)
            own += 1
        number = ((b[0] >> own) - (a[0] >> own) + 1) * ((b[1] >> own) - (a[1] >> own) + 1)
        number = number * ((b[2] >> own) - (a[2] >> own) + 1)
        if own > 0:
            placed.occupied[own] = wp.uint8(1)
            for z in range(a[2] >> own, (b[2] >> own) + 1):
                for y in range(a[1] >> own, (b[1] >> own) + 1):
                    for x in range(a[0] >> own, (b[0] >> own) + 1):
                        cell = cell_number(x, y, z, own, grid.counts, placed.first_cell)
                        placed.occupied[place_in_map(cell, placed.occupied)] = wp.uint8(1)
    placed.level[i] = own
    counts[i] = number


@wp.func
def entries_at(
    i: int, k: int, visitor: int, placed: PlacedTriangles, place: int, keys: wp.array[int], triangles: wp.array[int]
) -> int:
    """How many entries triangle i has at level k; they are written from `place` on unless it is negative."""
    number = int(0)
    a = placed.low[i]
    b = placed.high[i]
    for z in range(a[2] >> k, (b[2] >> k) + 1):
        for y in range(a[1] >> k, (b[1] >> k) + 1):
            row = cell_number(0, y, z, k, placed.spec[0].counts, placed.first_cell)
            for x in range(a[0] >> k, (b[0] >> k) + 1):
                cell = row + x
                if visitor == 0 or placed.occupied[place_in_map(cell, placed.occupied)] == wp.uint8(1):
                    if place >= 0:
                        keys[place + number] = 2 * cell + visitor
                        triangles[place + number] = i
                    number += 1
    return number


@wp.kernel
def _count_visits(first: int, placed: PlacedTriangles, counts: wp.array[int]):
    i = first + wp.tid()
    own = placed.level[i]
    if own >= 0:
        number = int(0)
        for k in range(own + 1, placed.spec[0].levels):
            if placed.occupied[k] == wp.uint8(1):
                number += entries_at(i, k, 1, placed, -1, counts, counts)
        counts[i] = counts[i] + number


@wp.kernel
def _fill_entries(
    first: int, placed: PlacedTriangles, starts: wp.array[int], keys: wp.array[int], triangles: wp.array[int]
):
    i = first + wp.tid()
    own = placed.level[i]
    if own >= 0:
        place = starts[i]
        for k in range(own, placed.spec[0].levels):
            if k == own or placed.occupied[k] == wp.uint8(1):
                place += entries_at(i, k, wp.min(k - own, 1), placed, place, keys, triangles)


@wp.kernel
def _accumulate(first: int, counts: wp.array[int]):
    """Sums of all counts before each, in their place."""
    last = counts.shape[0] - 1
    total = wp.int64(0)
    for i in range(last):
        count = counts[i]
        counts[i] = int(total)
        total += wp.int64(count)
    counts[last] = int(total)
    if total > wp.int64(2147483647):
        counts[last] = TOO_MANY


@wp.kernel
def _check_sums(first: int, starts: wp.array[int]):
    """The last one says whether a sum went beyond 2^31: no count does (a grid has fewer cells), so there it fell."""
    i = first + wp.tid()
    if starts[i + 1] < starts[i]:
        starts[starts.shape[0] - 1] = TOO_MANY


@wp.kernel
def _runs_in_order(first: int, keys: wp.array[int], start: wp.array[int], visits: wp.array[int], number: wp.array[int]):
    cell = int(-1)
    last = int(-1)
    for e in range(keys.shape[0]):
        key = keys[e]
        if key != last:
            if key >> 1 != last >> 1 or last < 0:
                cell += 1
                start[cell] = e
            if key & 1 == 1:
                visits[cell] = e
            last = key
        number[e] = cell


@wp.kernel
def _begins(first: int, keys: wp.array[int], begins: wp.array[int]):
    e = first + wp.tid()
    begins[e] = 1
    if e > 0 and keys[wp.max(e - 1, 0)] >> 1 == keys[e] >> 1:
        begins[e] = 0


@wp.kernel
def _starts(
    first: int,
    keys: wp.array[int],
    begins: wp.array[int],
    number: wp.array[int],
    start: wp.array[int],
    visits: wp.array[int],
):
    e = first + wp.tid()
    cell = number[e] - 1
    number[e] = cell
    if begins[e] == 1:
        start[cell] = e
    if keys[e] & 1 == 1 and (begins[e] == 1 or keys[wp.max(e - 1, 0)] != keys[e]):
        visits[cell] = e
