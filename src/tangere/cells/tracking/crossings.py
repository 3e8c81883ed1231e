"""The cells that segments cross, as rows of arrays that stay on the device.

Question: which cells does each segment cross, each cell once?
Method:   every segment is marched twice, to count and to write (rows have no fixed length and nothing is appended, so
          the result does not depend on threads); a row is sorted as it is written, and what was counted twice is cut.
          Few segments on CPU are marched once, one after the other.
          A segment that is stopped (a wall, an obstacle, a hole, a bay of the border) is marched from its other end as
          well: its row has what it crosses before the first and after the last stop, and it is marked.
Known as: the memo particle (Pitiot 2015, section 5.3); count, scan and emit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.march import MARCH_LIMIT, MarchState, check_not_lost, march_step, start_march
from tangere.cells.tracking.simplex_sides import BLOCKED, INSIDE, LOST
from tangere.runtime import SOUND, device_of, launch, offsets

wp.set_module_options(SOUND)

#: How the cells of a segment are found: by marching; by marching unless both ends are in one (convex) cell; the cells
#: of its ends and no more; not at all.
MARCH_ALWAYS, MARCH_UNLESS_ONE_CELL, CELLS_OF_ENDS, NO_CELLS = (wp.constant(k) for k in range(4))
_GRAIN = 512
#: So many segments are not worth a second march and a second thread.
_FEW = 4096


@wp.struct
class Segments:
    """Segments ab, darts of the cells that hold their ends, and how their cells are found: MARCH_ALWAYS and so on."""

    a: wp.array[wp.vec3d]
    b: wp.array[wp.vec3d]
    dart_a: wp.array[int]
    dart_b: wp.array[int]
    method: wp.array[int]


@dataclass(frozen=True)
class Crossings:
    """Rows of cells: row i is `cells[first[i]:first[i + 1]]`, sorted."""

    first: wp.array  #: (n + 1,) int32
    cells: wp.array  #: (k,) int32

    @property
    def owner(self) -> wp.array:
        """(k,) int32 the row of each place."""
        count = len(self.first) - 1
        owner = wp.empty_like(self.cells)
        launch(_write_owners, count, [self.first], [owner], device=device_of(owner))
        return owner

    def row(self, number: int) -> np.ndarray:
        """One row."""
        low, high = self.first[number : number + 2].numpy()
        return self.cells[int(low) : int(high)].numpy()


def allocate_segments(count: int, device: wp.Device) -> Segments:
    """Room for so many segments."""
    segments = Segments()
    segments.a, segments.b = (wp.empty(count, dtype=wp.vec3d, device=device) for _ in range(2))
    for name in ("dart_a", "dart_b", "method"):
        setattr(segments, name, wp.empty(count, dtype=wp.int32, device=device))
    return segments


def cross_segments(map: CellMap, segments: Segments) -> tuple[Crossings, wp.array]:
    """The cells of segments, and (uint8) which of them were marched (1) and stopped on the way (2)."""
    count, device = len(segments.a), map.device
    inputs = [map.arrays, segments]
    if device.is_cpu and count <= _FEW:
        return _cross_in_order(inputs, count, device)
    sizes = wp.empty(count, dtype=wp.int32, device=device)
    marched, status = (wp.empty(count, dtype=wp.uint8, device=device) for _ in range(2))
    nothing = wp.empty(0, dtype=wp.int32, device=device)
    launch(_walk_rows, count, [*inputs, 0, nothing, nothing], [sizes, marched, status], device=device, grain=_GRAIN)
    check_not_lost(status)
    first, total = offsets(sizes)
    cells = wp.empty(total, dtype=wp.int32, device=device)
    launch(_walk_rows, count, [*inputs, 1, first, cells], [sizes, marched, status], device=device, grain=_GRAIN)
    return _pack_rows(first, sizes, cells, total), marched


def _cross_in_order(inputs: list[Any], count: int, device: wp.Device) -> tuple[Crossings, wp.array]:
    """Few segments on CPU: one thread marches them once, each row after the one before."""
    room = 4 * count + 64
    while True:
        first, cells = (wp.empty(size, dtype=wp.int32, device=device) for size in (count + 1, room))
        marched = wp.empty(count, dtype=wp.uint8, device=device)
        lost = wp.zeros(1, dtype=wp.uint8, device=device)
        launch(_walk_in_order, 1, inputs, [first, cells, marched, lost], device=device)
        check_not_lost(lost)
        total = int(first.numpy()[count])
        if total <= room:
            return Crossings(first, cells[:total]), marched
        room = total


def union_of_rows(rows: Crossings, members: wp.array) -> Crossings:
    """For each (n, k) of members the union of their rows."""
    count, device = len(members), device_of(members)
    sizes = wp.empty(count, dtype=wp.int32, device=device)
    launch(_row_sizes, count, [rows.first, members], [sizes], device=device)
    first, total = offsets(sizes)
    cells = wp.empty(total, dtype=wp.int32, device=device)
    launch(_join, count, [rows.first, rows.cells, members, first, cells], [sizes], device=device, grain=_GRAIN)
    return _pack_rows(first, sizes, cells, total)


def _pack_rows(first: wp.array, sizes: wp.array, cells: wp.array, room: int) -> Crossings:
    """Rows of `sizes` cells, without the room that was left after each."""
    count, device = len(sizes), device_of(sizes)
    begin, total = offsets(sizes)
    ends = wp.empty(count + 1, dtype=wp.int32, device=device)
    packed = cells if total == room else wp.empty(total, dtype=wp.int32, device=device)
    launch(_pack, count + 1, [first, begin, cells, total, int(total != room)], [ends, packed], device=device)
    return Crossings(ends, packed)


@wp.func
def insert_sorted(base: int, size: int, cells: wp.array[int], cell: int) -> int:
    """Put a cell into its place of a sorted row unless it is there, or (without room) only count it."""
    at = wp.min(size, cells.shape[0] - base)
    while at > 0 and cells[base + wp.max(at, 1) - 1] > cell:
        at -= 1
    if at > 0:
        if cells[base + at - 1] == cell:
            return size
    if base + size >= cells.shape[0]:
        return size + 1
    for k in range(size - at):
        cells[base + size - k] = int(cells[base + size - k - 1])
    cells[base + at] = cell
    return size + 1


@wp.func
def _march_row(
    m: MapArrays, a: wp.vec3d, b: wp.vec3d, dart: int, base: int, size: int, writing: int, cells: wp.array[int]
) -> wp.vec2i:
    """The size of a row with the cells from a on, and how the march ended; a cell that is inverted stops it."""
    now = MarchState()
    now.dart = dart
    now.status = BLOCKED
    if m.inverted[m.cell[dart]] == 0:
        now = start_march(m, a, dart)
    steps = int(0)
    last = int(-1)
    count = int(size)
    under_way = bool(True)
    while under_way:
        cell = m.cell[now.dart]
        if cell != last:
            if writing == 1:
                count = insert_sorted(base, count, cells, cell)
            else:
                count += 1
            last = cell
        if m.inverted[cell] == 1:
            now.status = BLOCKED
        under_way = now.status < 0 and steps < MARCH_LIMIT
        if under_way:
            now = march_step(m, a, b, now)
            steps += 1
    if now.status < 0:
        return wp.vec2i(count, LOST)
    return wp.vec2i(count, now.status)


@wp.func
def write_row(m: MapArrays, s: Segments, i: int, base: int, writing: int, cells: wp.array[int]) -> wp.vec3i:
    """The row of segment i: its size, how the march ended, and whether there was one (1) and it was stopped (2)."""
    method = s.method[i]
    if method == NO_CELLS:
        return wp.vec3i(0, INSIDE, 0)
    here = m.cell[s.dart_a[i]]
    there = m.cell[s.dart_b[i]]
    if method == CELLS_OF_ENDS or (method == MARCH_UNLESS_ONE_CELL and here == there):
        size = int(1)
        if writing == 1:
            size = insert_sorted(base, insert_sorted(base, 0, cells, here), cells, there)
        elif here != there:
            size = 2
        return wp.vec3i(size, INSIDE, 0)
    end = _march_row(m, s.a[i], s.b[i], s.dart_a[i], base, 0, writing, cells)
    if end[1] == BLOCKED:
        # A wall is in the way: the cells from the other end as well.
        end = _march_row(m, s.b[i], s.a[i], s.dart_b[i], base, end[0], writing, cells)
        return wp.vec3i(end[0], end[1], 2)
    return wp.vec3i(end[0], end[1], 1)


@wp.kernel
def _walk_rows(
    first: int,
    m: MapArrays,
    s: Segments,
    writing: int,
    begin: wp.array[int],
    cells: wp.array[int],
    sizes: wp.array[int],
    marched: wp.array[wp.uint8],
    status: wp.array[wp.uint8],
):
    i = first + wp.tid()
    base = int(0)
    if writing == 1:
        base = begin[i]
    row = write_row(m, s, i, base, writing, cells)
    sizes[i] = row[0]
    status[i] = wp.uint8(row[1])
    marched[i] = wp.uint8(row[2])


@wp.kernel
def _walk_in_order(
    first: int,
    m: MapArrays,
    s: Segments,
    begin: wp.array[int],
    cells: wp.array[int],
    marched: wp.array[wp.uint8],
    lost: wp.array[wp.uint8],
):
    total = int(0)
    for i in range(s.a.shape[0]):
        begin[i] = total
        row = write_row(m, s, i, total, 1, cells)
        total += row[0]
        marched[i] = wp.uint8(row[2])
        if row[1] == LOST:
            lost[0] = wp.uint8(LOST)
    begin[s.a.shape[0]] = total


@wp.kernel
def _row_sizes(first: int, rows: wp.array[int], members: wp.array2d[int], sizes: wp.array[int]):
    i = first + wp.tid()
    size = int(0)
    for k in range(members.shape[1]):
        size += rows[members[i, k] + 1] - rows[members[i, k]]
    sizes[i] = size


@wp.kernel
def _join(
    first: int,
    rows: wp.array[int],
    row_cells: wp.array[int],
    members: wp.array2d[int],
    begin: wp.array[int],
    cells: wp.array[int],
    sizes: wp.array[int],
):
    i = first + wp.tid()
    size = int(0)
    for k in range(members.shape[1]):
        for q in range(rows[members[i, k]], rows[members[i, k] + 1]):
            size = insert_sorted(begin[i], size, cells, row_cells[q])
    sizes[i] = size


@wp.kernel
def _pack(
    first: int,
    first_before: wp.array[int],
    begin: wp.array[int],
    cells: wp.array[int],
    total: int,
    moving: int,
    ends: wp.array[int],
    packed: wp.array[int],
):
    i = first + wp.tid()
    if i == begin.shape[0]:
        ends[i] = total
        return
    ends[i] = int(begin[i])
    if moving == 1:
        end = total
        if i + 1 < begin.shape[0]:
            end = int(begin[i + 1])
        for k in range(begin[i], end):
            packed[k] = int(cells[first_before[i] + k - begin[i]])


@wp.kernel
def _write_owners(first: int, rows: wp.array[int], owner: wp.array[int]):
    i = first + wp.tid()
    for k in range(rows[i], rows[i + 1]):
        owner[k] = i
