"""The straight way from a to b: every cell it crosses, and where it meets a border, a wall or an obstacle.

Question: which cells does a segment cross, and does it get to its end?
Method:   from dart simplex to dart simplex through the first side the segment leaves by. Where it passes through an
          edge or a vertex, any of the tied sides will do; should rounding turn it around such a point, it steps over.
Sound:    consecutive cells are neighbours, the first holds a and the last holds b (or is where the way is blocked); a
          segment in a common face is given to the cells of one side.
Known as: ray walking through a subdivision, the straight walk (Devillers, Pion, Teillaud 2002); the memo particle
          (Pitiot 2015, section 5.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.locate import as_darts, as_map_points, check_not_surface
from tangere.cells.tracking.simplex_sides import (
    BLOCKED,
    INSIDE,
    LOST,
    first_exit,
    neighbour_dart,
    points_per_index,
    walk,
)
from tangere.runtime import (
    SOUND,
    Arrays,
    CapacityError,
    collect,
    indices_at_least,
    launch,
    reserve_slots,
    using_threads,
)

wp.set_module_options(SOUND)

_GRAIN = 2048
#: Steps of a march; a segment of this many simplices must be cut.
MARCH_LIMIT = wp.constant(1000000)
#: So many steps without getting anywhere are a circle around an edge or vertex, which is then stepped over by this part
#: of the segment.
CIRCLE = wp.constant(64)
STEP_OVER = wp.constant(wp.float64(1.0e-9))
_SAME = wp.constant(wp.float64(1.0e-12))


@dataclass(frozen=True)
class Moves:
    """How far each point came on the straight way to its target."""

    position: np.ndarray  #: (n, 3) [m] the target, or where the way is blocked
    dart: np.ndarray  #: (n,) int32; blocked: the dart whose edge (2-maps) or face (3-maps) is in the way
    cell: np.ndarray  #: (n,) int32
    time: np.ndarray  #: (n,) part of the way done: 1 unless blocked
    blocked: np.ndarray  #: (n,) bool

    def __repr__(self) -> str:
        return f"Moves({len(self.dart)} points, {int(self.blocked.sum())} blocked)"


def move(map: CellMap, points: Arrays, targets: Arrays, darts: Arrays, *, threads: int | None = None) -> Moves:
    """Move points straight to their targets, up to the first border, wall or obstacle.

    Args:
        points, targets: (n, 2) or (n, 3) [m].
        darts: (n,) a dart of the cell that holds each point.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        check_not_surface(map, "move")
        a = as_map_points(map, points, "points")
        b = as_map_points(map, targets, "targets", len(a))
        dart, time, status = move_darts(map, a, b, as_darts(map, darts, len(a)))
        part = time.numpy()
        start, end = a.numpy(), b.numpy()
        position = np.where((part < 1)[:, None], start + part[:, None] * (end - start), end)
        found = dart.numpy()
        return Moves(position, found, map.arrays.cell.numpy()[found], part, status.numpy() == BLOCKED)


def move_darts(map: CellMap, a: wp.array, b: wp.array, darts: wp.array) -> tuple[wp.array, wp.array, wp.array]:
    """The same on the device: end darts, times and how each march ended (uint8: INSIDE or BLOCKED)."""
    count, device = len(a), map.device
    out, status = (wp.empty(count, dtype=kind, device=device) for kind in (wp.int32, wp.uint8))
    time = wp.empty(count, dtype=wp.float64, device=device)
    chunk = points_per_index(device)
    indices = -(-count // chunk)
    inputs = [map.arrays, a, b, darts, chunk]
    launch(_move, indices, inputs, [out, time, status], device=device, grain=_GRAIN // chunk)
    check_not_lost(status)
    return out, time, status


def crossed_cells(
    map: CellMap, points: Arrays, targets: Arrays, darts: Arrays, *, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells that segments cross, each once: offsets (n + 1,), cells in order, and whether each is blocked (n,).

    Args:
        points, targets: (n, 2) or (n, 3) [m] the ends.
        darts: (n,) a dart of the cell that holds each first end.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        check_not_surface(map, "crossed_cells")
        a = as_map_points(map, points, "points")
        b = as_map_points(map, targets, "targets", len(a))
        pairs, status = march_cells(map, a, b, as_darts(map, darts, len(a)))
        segment, cell = pairs.T
        offsets = np.searchsorted(segment, np.arange(len(a) + 1))
        return offsets, cell, status.numpy() == BLOCKED


def march_cells(map: CellMap, a: wp.array, b: wp.array, darts: wp.array) -> tuple[np.ndarray, wp.array]:
    """(k, 2) pairs of segment and cell, sorted, each once, and how each march ended."""
    status = wp.empty(len(a), dtype=wp.uint8, device=map.device)
    inputs = [map.arrays, a, b, darts, status]
    found = collect(_cells, len(a), inputs, wp.vec2i, device=map.device, grain=256, capacity=4 * len(a))
    check_not_lost(status)
    pairs = found.numpy().reshape(-1, 2)
    # A cell that is not convex may be crossed twice.
    key = np.unique(pairs[:, 0].astype(np.int64) * map.cell_capacity + pairs[:, 1])
    return np.stack(np.divmod(key, map.cell_capacity), axis=1), status


def check_not_lost(status: wp.array) -> None:
    """Raise if a march came to no end."""
    lost = indices_at_least(status, int(LOST))
    if len(lost):
        raise CapacityError(f"segment {lost.numpy().min()} crosses more than {MARCH_LIMIT} simplices: cut it")


@wp.struct
class MarchState:
    """A march under way."""

    dart: int
    time: wp.float64
    idle: int
    status: int


@wp.func
def start_march(m: MapArrays, a: wp.vec3d, d: int) -> MarchState:
    now = MarchState()
    now.dart = walk(m, a, d)[0]
    now.status = -1
    return now


@wp.func
def march_step(m: MapArrays, a: wp.vec3d, b: wp.vec3d, now: MarchState) -> MarchState:
    """One simplex further; the status stays -1 on the way."""
    after = MarchState()
    after.dart = now.dart
    after.time = now.time
    after.status = -1
    way = first_exit(m, now.dart, a, b)
    if way.side < 0:
        # On a side within rounding: the walk decides which of the simplices there holds b.
        end = walk(m, b, now.dart)
        after.dart = end[0]
        after.status = end[1]
        after.time = wp.float64(1.0)
        return after
    after.time = wp.max(now.time, wp.min(way.time, wp.float64(1.0)))
    if after.time <= now.time + _SAME:
        after.idle = now.idle + 1
    if after.idle > CIRCLE:
        after.idle = 0
        after.time = wp.min(after.time + STEP_OVER, wp.float64(1.0))
        end = walk(m, a + after.time * (b - a), now.dart)
        after.dart = end[0]
        if end[1] != INSIDE:
            after.status = BLOCKED
        return after
    there = neighbour_dart(m, now.dart, way.side)
    if there < 0:
        after.status = BLOCKED
        return after
    after.dart = there
    return after


@wp.func
def march_to(m: MapArrays, a: wp.vec3d, b: wp.vec3d, dart: int) -> MarchState:
    """The whole way."""
    now = start_march(m, a, dart)
    steps = int(0)
    while now.status < 0 and steps < MARCH_LIMIT:
        now = march_step(m, a, b, now)
        steps += 1
    if now.status < 0:
        now.status = LOST
    return now


@wp.kernel
def _move(
    first: int,
    m: MapArrays,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    darts: wp.array[int],
    chunk: int,
    out: wp.array[int],
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
):
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, a.shape[0])):
        end = march_to(m, a[i], b[i], darts[i])
        out[i] = end.dart
        time[i] = end.time
        status[i] = wp.uint8(end.status)


@wp.func
def _append_cell(
    segment: int,
    cell: int,
    last: int,
    shard: int,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
) -> int:
    if cell != last:
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            out[slot] = wp.vec2i(segment, cell)
    return cell


@wp.kernel
def _cells(
    first: int,
    shard: int,
    m: MapArrays,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    darts: wp.array[int],
    status: wp.array[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    i = first + wp.tid()
    now = start_march(m, a[i], darts[i])
    steps = int(0)
    last = int(-1)
    while now.status < 0 and steps < MARCH_LIMIT:
        last = _append_cell(i, m.cell[now.dart], last, shard, counts, capacity, out)
        now = march_step(m, a[i], b[i], now)
        steps += 1
    _append_cell(i, m.cell[now.dart], last, shard, counts, capacity, out)
    if now.status < 0:
        now.status = LOST
    status[i] = wp.uint8(now.status)
