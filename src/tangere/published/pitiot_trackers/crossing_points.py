"""Segments that keep the points where they cross the edges of cells, and follow them as they move.

Question: which cells does each segment cross, when it crossed nearly the same ones a step ago?
Method:   a segment remembers the darts it leaves cells by, one for each crossing. Its ends walk from where they were,
          which adds crossings at their side or takes them away. Then every edge must lie across the new line, its end
          to the left and its start to the right; a vertex on the wrong side is one that the crossing points of all its
          edges on one side have run into: they merge there, and leave it as crossing points of the edges on the other
          side. In convex cells a row of edges that all lie across the line from the cell of one end to the cell of the
          other is what the segment crosses, so that looking at it again is all it costs while nothing changes.
Sound:    the same cells as a march, up to cells that the segment only touches. Where rounding leaves a vertex on both
          sides (a segment along edges) the row is given up for this step, and the segment is marched.
Needs:    a flat map with convex cells and without walls. Cells that split or merge make all rows anew.
Known as: intersection particles, which Pitiot 2015 proposes as future work (conclusion, section 2.3).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps import WALL, CellMap, MapArrays
from tangere.cells.tracking import as_darts, as_map_points, edge_side, locate_darts, march_cells
from tangere.runtime import SOUND, Arrays, InputError, UnsupportedError, indices_at_least, launch

wp.set_module_options(SOUND)

_GRAIN = 512
_ZERO = wp.constant(wp.float64(0.0))
#: How a row came out: all edges lie across the line; it could not be straightened; it did not fit.
STRAIGHT, TANGLED, FULL = wp.constant(0), wp.constant(1), wp.constant(2)
#: Edges at a vertex; vertices passed beside those of the row itself, before it is made anew.
_TURNS, _FEW = wp.constant(64), wp.constant(8)
#: A segment that crosses more edges is marched.
_WIDEST = wp.constant(1024)


class CrossingPoints:
    """Where segments cross the edges of cells.

    Args:
        map: flat, with convex cells and without walls or obstacles.
        points, targets: (n, 2) or (n, 3) the ends [m].
        darts: (n,) darts of the cells that hold the first ends; None: they are looked for.
    """

    def __init__(self, map: CellMap, points: Arrays, targets: Arrays, darts: Arrays | None = None) -> None:
        self.map = map
        a = as_map_points(map, points, "points")
        start = None if darts is None else as_darts(map, darts, len(a))
        self._begin(a, start)
        self.move(a, targets)

    def move(self, points: Arrays, targets: Arrays) -> None:
        """Follow the segments to where their ends are now."""
        map, count = self.map, len(self._homes)
        a, b = as_map_points(map, points, "points"), as_map_points(map, targets, "targets")
        if len(a) != count or len(b) != count:
            raise InputError(f"points, targets: there are {len(a)} and {len(b)} for {count} segments")
        if self._version != map.version:
            self._begin(a, None)
        sizes, homes, merged = (wp.empty(count, dtype=wp.int32, device=map.device) for _ in range(3))
        status = wp.empty(count, dtype=wp.uint8, device=map.device)
        while True:
            rows = wp.empty((count, self._width), dtype=wp.int32, device=map.device)
            inputs = [map.arrays, a, b, self._homes, self._sizes, self._rows]
            outputs = [homes, sizes, rows, status, merged]
            launch(_follow, count, inputs, outputs, device=map.device, grain=_GRAIN)
            if not len(indices_at_least(status, int(FULL))):
                break
            self._width *= 2
        tangled = indices_at_least(status, int(TANGLED))
        self._marched = (np.empty(0, np.int64), np.empty((0, 2), np.int64))
        if len(tangled):
            self._march(np.sort(tangled.numpy()), a, b, homes)
        self._homes, self._sizes, self._rows, self._merged = homes, sizes, rows, merged

    @property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """The cells that segments cross, each once: offsets (n + 1,) and cells, sorted in every row."""
        cell, phi2, homes = (self.map.numpy("cell"), self.map.numpy("phi2"), self._homes.numpy())
        sizes = self._sizes.numpy()
        owner = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        there = cell[phi2[self._rows.numpy()[owner, place]]]
        gone, marched = self._marched
        own = np.setdiff1d(np.arange(len(sizes)), gone)
        pairs = np.concatenate([np.stack([own, cell[homes[own]]], axis=1), np.stack([owner, there], axis=1), marched])
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        return np.searchsorted(pairs[:, 0], np.arange(len(sizes) + 1)), pairs[:, 1]

    @property
    def counters(self) -> dict[str, int]:
        """Of the last move: vertices at which crossing points merged and split, segments that were marched."""
        return {"vertices passed": int(self._merged.numpy().sum()), "marched": len(self._marched[0])}

    def _begin(self, a: wp.array, darts: wp.array | None) -> None:
        """No crossings yet, every segment at its first end."""
        map = self.map
        if not (map.flat and map.has_convex_cells) or (map.numpy("tag")[map.darts] & WALL).any():
            raise UnsupportedError("crossing points are kept in flat maps of convex cells without walls; march instead")
        self._homes, status = locate_darts(map, a, darts)
        outside = status.numpy() != 0
        if outside.any():
            raise InputError(f"points: point {int(np.argmax(outside))} is outside the map")
        self._version = map.version
        self._width = 16
        self._sizes = wp.zeros(len(a), dtype=wp.int32, device=map.device)
        self._rows = wp.empty((len(a), self._width), dtype=wp.int32, device=map.device)

    def _march(self, chosen: np.ndarray, a: wp.array, b: wp.array, homes: wp.array) -> None:
        """Find the cells of a few segments as if they were new; `homes` gets the cells of their first ends."""
        ends = [wp.array(x.numpy()[chosen], dtype=wp.vec3d, device=self.map.device) for x in (a, b)]
        darts, status = locate_darts(self.map, ends[0], None)
        pairs, stopped = march_cells(self.map, *ends, darts)
        outside = (status.numpy() != 0) | (stopped.numpy() != 0)
        if outside.any():
            raise InputError(f"segment {chosen[np.argmax(outside)]} leaves the map")
        pairs[:, 0] = chosen[pairs[:, 0]]
        self._marched = (chosen, pairs)
        known = homes.numpy().copy()
        known[chosen] = darts.numpy()
        homes.assign(known)


@wp.func
def _end(m: MapArrays, d: int) -> int:
    return m.origin[m.phi1[d]]


@wp.func
def _behind_edge(m: MapArrays, d: int, x: wp.vec3d) -> bool:
    """Whether x is outside the cell of d as far as the edge of d is concerned."""
    s = m.origin[d]
    e = _end(m, d)
    return edge_side(m.position[s], m.position[e], x, e < s) < _ZERO


@wp.func
def _left(m: MapArrays, vertex: int, a: wp.vec3d, b: wp.vec3d) -> bool:
    """On which side of the line a vertex is; the same answer whichever edge asks."""
    x = m.position[vertex]
    return (b[0] - a[0]) * (x[1] - a[1]) - (b[1] - a[1]) * (x[0] - a[0]) >= _ZERO


@wp.func
def _append_dart(m: MapArrays, rows: wp.array2d[int], i: int, size: int, d: int) -> int:
    """The size of a row with one more crossing; there and back again is none. A full row stays one too large."""
    width = rows.shape[1]
    if size > width:
        return size
    if size > 0:
        if rows[i, size - 1] == m.phi2[d]:
            return size - 1
    if size < width:
        rows[i, size] = d
    return size + 1


@wp.func
def _walk_row(m: MapArrays, x: wp.vec3d, start: int, rows: wp.array2d[int], i: int, size: int) -> wp.vec2i:
    """From cell to cell to the one that holds x, through edges that x is behind: a dart of it (-1: none), the size."""
    d = int(start)
    count = int(size)
    at = int(start)
    while count <= rows.shape[1]:
        if _behind_edge(m, at, x):
            y = m.phi2[at]
            if y < 0:
                return wp.vec2i(-1, count)
            count = _append_dart(m, rows, i, count, at)
            d = y
            at = int(y)
        # The edge just crossed is the last to be looked at, and not behind.
        at = m.phi1[at]
        if at == d:
            return wp.vec2i(d, count)
    return wp.vec2i(d, count)


@wp.func
def _reverse_row(m: MapArrays, rows: wp.array2d[int], i: int, size: int):
    """The same way from its end to its start."""
    for k in range(size / 2):
        d = int(rows[i, k])
        rows[i, k] = m.phi2[rows[i, size - 1 - k]]
        rows[i, size - 1 - k] = m.phi2[d]
    if size % 2 == 1:
        rows[i, size / 2] = int(m.phi2[rows[i, size / 2]])


@wp.func
def _next_around(m: MapArrays, d: int, leftwards: bool) -> int:
    """In the cell of d, the other edge at the vertex that a way through d has on its left (else on its right)."""
    if leftwards:
        return m.phi1[d]
    return m.phi_1[d]


@wp.func
def _pass_vertex(m: MapArrays, rows: wp.array2d[int], i: int, size: int, k: int, leftwards: bool) -> wp.vec2i:
    """Pass the vertex that crossing k has on its left (else right) on the other side.

    All crossings of its edges merge in it, and it is left by those of its other edges. Returns the new size (-1: the
    vertex is on the border) and the first place that changed.
    """
    low = int(k)
    high = int(k)
    if leftwards:
        vertex = _end(m, rows[i, k])
        while low > 0 and _end(m, rows[i, wp.max(low - 1, 0)]) == vertex:
            low -= 1
        while high + 1 < size and _end(m, rows[i, wp.min(high + 1, size - 1)]) == vertex:
            high += 1
    else:
        vertex = int(m.origin[rows[i, k]])
        while low > 0 and m.origin[rows[i, wp.max(low - 1, 0)]] == vertex:
            low -= 1
        while high + 1 < size and m.origin[rows[i, wp.min(high + 1, size - 1)]] == vertex:
            high += 1
    first = _next_around(m, rows[i, low], leftwards)
    last = int(m.phi2[rows[i, high]])
    count = int(0)
    d = int(first)
    while d != last and count < _TURNS:
        y = m.phi2[d]
        if y < 0:
            return wp.vec2i(-1, 0)
        d = _next_around(m, y, leftwards)
        count += 1
    if count == _TURNS:
        return wp.vec2i(-1, 0)
    grown = count - (high - low + 1)
    if size + grown > rows.shape[1]:
        return wp.vec2i(rows.shape[1] + 1, 0)
    if grown < 0:
        for j in range(high + 1, size):
            rows[i, j + grown] = int(rows[i, j])
    else:
        for n in range(size - high - 1):
            rows[i, size - 1 - n + grown] = int(rows[i, size - 1 - n])
    d = first
    for n in range(count):
        rows[i, low + n] = d
        d = _next_around(m, m.phi2[d], leftwards)
    return wp.vec2i(size + grown, low)


@wp.func
def _close_row(m: MapArrays, rows: wp.array2d[int], i: int, size: int) -> int:
    """The size of a row without crossings that go there and straight back."""
    count = int(0)
    for k in range(size):
        count = _append_dart(m, rows, i, count, rows[i, k])
    return count


@wp.func
def _straighten_row(m: MapArrays, a: wp.vec3d, b: wp.vec3d, rows: wp.array2d[int], i: int, size: int) -> wp.vec3i:
    """Pass vertices until every edge lies across the line: the size, how it came out, and how many were passed."""
    count = int(size)
    passed = int(0)
    most = size + _FEW
    k = int(0)
    while k < count:
        d = rows[i, k]
        wrong_left = not _left(m, _end(m, d), a, b)
        if wrong_left or _left(m, m.origin[d], a, b):
            now = _pass_vertex(m, rows, i, count, k, wrong_left)
            if now[0] > rows.shape[1] and rows.shape[1] < _WIDEST:
                return wp.vec3i(0, FULL, passed)
            passed += 1
            if now[0] < 0 or now[0] > rows.shape[1] or passed > most:
                return wp.vec3i(0, TANGLED, passed)
            count = _close_row(m, rows, i, now[0])
            k = 0
        else:
            k += 1
    return wp.vec3i(count, STRAIGHT, passed)


@wp.func
def _trace_row(m: MapArrays, a: wp.vec3d, b: wp.vec3d, start: int, rows: wp.array2d[int], i: int) -> wp.vec3i:
    """The row made anew, from the cell of a on through the one edge of each cell that the line leaves by."""
    size = int(0)
    d = int(start)
    at = int(start)
    was_left = _left(m, m.origin[at], a, b)
    while size <= rows.shape[1]:
        is_left = _left(m, _end(m, at), a, b)
        if is_left and not was_left:
            y = m.phi2[at]
            if not _behind_edge(m, at, b):
                return wp.vec3i(size, STRAIGHT, 0)
            if y < 0:
                return wp.vec3i(0, TANGLED, 0)
            size = _append_dart(m, rows, i, size, at)
            d = y
            at = int(y)
            is_left = False  # where the crossed edge ends on this side
        was_left = is_left
        at = m.phi1[at]
        if at == d:
            return wp.vec3i(0, TANGLED, 0)
    if rows.shape[1] < _WIDEST:
        return wp.vec3i(0, FULL, 0)
    return wp.vec3i(0, TANGLED, 0)


@wp.kernel
def _follow(
    first: int,
    m: MapArrays,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    old_homes: wp.array[int],
    old_sizes: wp.array[int],
    old_rows: wp.array2d[int],
    homes: wp.array[int],
    sizes: wp.array[int],
    rows: wp.array2d[int],
    status: wp.array[wp.uint8],
    merged: wp.array[int],
):
    i = first + wp.tid()
    sizes[i] = 0
    homes[i] = int(old_homes[i])
    merged[i] = 0
    status[i] = wp.uint8(TANGLED)
    # From where a is to where it was, along the old row, and on to where b is.
    front = _walk_row(m, a[i], old_homes[i], rows, i, 0)
    size = int(front[1])
    last = int(old_homes[i])
    if front[0] >= 0 and size <= rows.shape[1]:
        _reverse_row(m, rows, i, size)
        for k in range(old_sizes[i]):
            last = int(m.phi2[old_rows[i, k]])
            size = _append_dart(m, rows, i, size, old_rows[i, k])
    back = wp.vec2i(-1, size)
    if front[0] >= 0:
        back = _walk_row(m, b[i], last, rows, i, size)
    if back[1] > rows.shape[1]:
        if rows.shape[1] < _WIDEST:
            status[i] = wp.uint8(FULL)
    elif back[0] >= 0:
        homes[i] = front[0]
        if m.cell[front[0]] == m.cell[back[0]]:
            status[i] = wp.uint8(STRAIGHT)
        else:
            end = _straighten_row(m, a[i], b[i], rows, i, back[1])
            merged[i] = end[2]
            if end[1] == TANGLED:
                end = _trace_row(m, a[i], b[i], front[0], rows, i)
                merged[i] = 0
            sizes[i] = end[0]
            status[i] = wp.uint8(end[1])
