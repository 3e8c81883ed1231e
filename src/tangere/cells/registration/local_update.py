"""What is present where, after a few cells changed or a few points moved: only what these hold is looked at again.

Question: the lists of a registration after a split, a merge or a move, at the cost of what changed.
Method:   one thread, one launch. Points of changed cells walk from their darts, edges with a point that moved or
          present in a changed cell are marched again, segments and triangles follow their edges. The inside of a
          triangle is tested against the changed cells, or, if the triangle moved, flooded from its edges.
          Changed are the cells split, merged, made and taken away; where cells are not convex, so that a neighbour's
          face may bend when it is divided, their rings too.
Sound:    the lists are those that finding everybody anew would give. What does not fit, or would need a search through
          the whole map, is left to that.
Known as: incremental registration (Pitiot 2015, chapters 5 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.rings import RingTable
from tangere.cells.registration.cell_lists import CellListEntries, CellLists, put_in, take_out
from tangere.cells.registration.triangle_fill import cell_meets_triangle
from tangere.cells.tracking.crossings import Segments, allocate_segments, insert_sorted, write_row
from tangere.cells.tracking.march import march_to
from tangere.cells.tracking.simplex_sides import INSIDE, LOST, walk
from tangere.runtime import SOUND, PreparedLaunch, launch

wp.set_module_options({**SOUND, "max_unroll": 1})  # the twenty axes of triangle_fill

#: Places in `state`: points, edges, segments and triangles to look at; whether somebody must be searched for in all
#: of the map; points that changed cell, edges that were marched; cells that changed; whether cells around them did too;
#: how edges are marched; the mark of this update, and of its last flood.
_POINTS, _EDGES, _SEGMENTS, _TRIANGLES = (wp.constant(k) for k in range(4))
_GIVEN_UP, _CHANGED, _MARCHED, _CELLS, _SPREADS, _WAY = (wp.constant(k) for k in range(4, 10))
_MARK, _FLOOD = wp.constant(10), wp.constant(11)
_STATE_SIZE = 12
#: Entries of lists to have room for before an update.
_ROOM = 4096


@wp.struct
class ElementLinks:
    """Which segments and triangles have an edge, and which edges a point; both as rows of arrays."""

    edges: wp.array[wp.vec2i]
    segment_edges: wp.array2d[int]
    triangle_edges: wp.array2d[int]
    triangles: wp.array[wp.vec3i]
    point_start: wp.array[int]
    point_edges: wp.array[int]
    segment_start: wp.array[int]
    edge_segments: wp.array[int]
    triangle_start: wp.array[int]
    edge_triangles: wp.array[int]


@wp.struct
class UpdateBuffers:
    """What an update writes on its way."""

    state: wp.array[int]
    points: wp.array[int]  # to look at, and likewise
    edges: wp.array[int]
    segments: wp.array[int]
    triangles: wp.array[int]
    edge_mark: wp.array[int]
    segment_mark: wp.array[int]
    triangle_mark: wp.array[int]
    cell_mark: wp.array[int]  # per cell: changed
    flood_mark: wp.array[int]
    queue: wp.array[int]
    row: wp.array[int]
    changed: wp.array[int]  # cells
    low: wp.array[wp.vec3d]  # box of each of them
    high: wp.array[wp.vec3d]
    one: Segments


@wp.struct
class RegisteredLists:
    points: CellListEntries
    edges: CellListEntries
    segments: CellListEntries
    triangles: CellListEntries


@dataclass
class LocalUpdate:
    """Updates of one registration on CPU; `lists` are of "points", "edges", "segments" and "triangles"."""

    map: CellMap
    lists: dict[str, CellLists]
    links: ElementLinks
    fill: bool

    def __post_init__(self) -> None:
        links, b = self.links, UpdateBuffers()
        sizes = len(links.point_start) - 1, len(links.edges), len(links.segment_edges), len(links.triangle_edges)
        for name, size in zip(("points", "edges", "segments", "triangles"), sizes, strict=True):
            setattr(b, name, wp.zeros(max(1, size), dtype=wp.int32, device="cpu"))
            if name != "points":
                setattr(b, f"{name[:-1]}_mark", wp.zeros(max(1, size), dtype=wp.int32, device="cpu"))
        b.state = wp.zeros(_STATE_SIZE, dtype=wp.int32, device="cpu")
        b.one = allocate_segments(1, wp.get_device("cpu"))
        self._buffers, self._state, self._mark = b, b.state.numpy(), 0
        self._packed: tuple[object, ...] = ()
        self._make_room()

    def after_change(
        self,
        cells: np.ndarray,
        convex: bool,
        points: wp.array,
        darts: wp.array,
        point_cells: wp.array,
        marched: wp.array,
        way: int,
    ) -> bool:
        """After these cells changed, whichever way; False: that is not known, find everybody anew.

        Args:
            cells: numbers of cells that were split or merged, and of those that were taken away.
            convex: every leaf is: the neighbours of these cells only have other edges now, and kept their shape.
            point_cells: (n,) the cell of each point, written with `darts` and (e,) `marched`.
        """
        self._begin(way)
        self._changed[: len(cells)] = cells
        self._state[_CELLS], self._state[_SPREADS] = len(cells), not convex
        arrays = points, darts, point_cells, marched
        packed = *self._arrays_now(), *arrays
        if len(packed) != len(self._packed) or any(a is not b for a, b in zip(packed, self._packed, strict=True)):
            arguments = [*self._arguments(), *arrays]
            self._launch = PreparedLaunch(_after_change, arguments, wp.get_device("cpu"), dim=1, serial=True)
            self._packed = packed
        self._launch.run()
        return not self._state[_GIVEN_UP]

    def after_move(
        self,
        numbers: np.ndarray,
        targets: wp.array,
        status: wp.array,
        points: wp.array,
        darts: wp.array,
        point_cells: wp.array,
        marched: wp.array,
        way: int,
    ) -> bool:
        """Move some points straight to their targets; `status` (uint8) says how each march ended."""
        self._begin(way)
        chosen = wp.array(numbers.astype(np.int32), dtype=wp.int32, device="cpu")
        arrays = chosen, targets, status, points, darts, point_cells, marched
        launch(_after_move, 1, [*self._arguments(), *arrays], device=wp.get_device("cpu"))
        return not self._state[_GIVEN_UP]

    @property
    def counters(self) -> tuple[int, int]:
        """Points that changed cell in the last update, and edges that were marched."""
        return int(self._state[_CHANGED]), int(self._state[_MARCHED])

    def _begin(self, way: int) -> None:
        self._make_room()
        self._mark += 1
        self._state[:_MARK] = 0
        self._state[_WAY], self._state[_MARK] = way, self._mark

    def _arrays_now(self) -> tuple[object, ...]:
        """Arrays that may have been replaced by larger ones since a launch was packed."""
        m, table, entries = self.map.arrays, self.map.rings.table, [known.entries for known in self.lists.values()]
        lists = [array for e in entries for array in (e.head, e.entity)]
        return m.phi1, m.position, m.cell_level, table.cells, self._buffers.row, *lists

    def _arguments(self) -> list[Any]:
        lists = RegisteredLists()
        for name, known in self.lists.items():
            setattr(lists, name, known.entries)
        return [self.map.arrays, self.map.rings.table, lists, self.links, self._buffers, int(self.fill)]

    def _make_room(self) -> None:
        capacity, b = self.map.cell_capacity, self._buffers
        for lists in self.lists.values():
            lists.make_room(capacity, _ROOM)
        if b.cell_mark is None or len(b.cell_mark) < capacity:
            for name in ("cell_mark", "flood_mark", "queue", "row", "changed"):
                setattr(b, name, wp.zeros(capacity, dtype=wp.int32, device="cpu"))
            for name in ("low", "high"):
                setattr(b, name, wp.zeros(capacity, dtype=wp.vec3d, device="cpu"))
            self._changed = b.changed.numpy()


def element_links(
    edges: np.ndarray, segments: np.ndarray, triangles: np.ndarray, corners: np.ndarray, points: int
) -> ElementLinks:
    """From (e, 2) points of edges, (s, 1) and (t, 3) edges of segments and triangles, (t, 3) points of triangles."""
    links = ElementLinks()
    for name, values, kind in (("edges", edges, wp.vec2i), ("triangles", corners, wp.vec3i)):
        setattr(links, name, wp.array(np.ascontiguousarray(values, np.int32), dtype=kind, device="cpu"))
    for name, values in (("segment_edges", segments), ("triangle_edges", triangles)):
        setattr(links, name, wp.array(np.ascontiguousarray(values, np.int32), dtype=wp.int32, device="cpu"))
    for start, users, members, count in (
        ("point_start", "point_edges", edges, points),
        ("segment_start", "edge_segments", segments, len(edges)),
        ("triangle_start", "edge_triangles", triangles, len(edges)),
    ):
        members = np.asarray(members, np.int64)
        order = np.argsort(members.ravel(), kind="stable")
        first = np.searchsorted(members.ravel()[order], np.arange(count + 1))
        setattr(links, start, wp.array(first.astype(np.int32), dtype=wp.int32, device="cpu"))
        width = members.shape[1]
        setattr(links, users, wp.array((order // width).astype(np.int32), dtype=wp.int32, device="cpu"))
    return links


@wp.func
def _note(number: int, counter: int, mark: wp.array[int], noted: wp.array[int], b: UpdateBuffers):
    """Put a number on a list of those to look at, once."""
    if mark[number] != b.state[_MARK]:
        mark[number] = int(b.state[_MARK])
        noted[b.state[counter]] = number
        b.state[counter] = b.state[counter] + 1


@wp.func
def _note_points(c: int, lists: RegisteredLists, b: UpdateBuffers):
    """Note the points of a cell; each is in one."""
    x = int(lists.points.head[c])
    while x >= 0:
        b.points[b.state[_POINTS]] = int(lists.points.entity[x])
        b.state[_POINTS] = b.state[_POINTS] + 1
        x = lists.points.after[x]


@wp.func
def _note_edge(edge: int, links: ElementLinks, b: UpdateBuffers):
    """Note an edge and all that has it."""
    _note(edge, _EDGES, b.edge_mark, b.edges, b)
    for k in range(links.segment_start[edge], links.segment_start[edge + 1]):
        _note(links.edge_segments[k], _SEGMENTS, b.segment_mark, b.segments, b)
    for k in range(links.triangle_start[edge], links.triangle_start[edge + 1]):
        _note(links.edge_triangles[k], _TRIANGLES, b.triangle_mark, b.triangles, b)


@wp.func
def _replace_by_row(e: CellListEntries, entity: int, size: int, b: UpdateBuffers):
    take_out(e, entity)
    for k in range(size):
        if not put_in(e, entity, b.row[k]):
            b.state[_GIVEN_UP] = 1


@wp.func
def _add_cells_of(e: CellListEntries, entity: int, size: int, b: UpdateBuffers) -> int:
    """The size of the row with the cells of an entity."""
    count = int(size)
    x = int(e.entity_head[entity])
    while x >= 0:
        count = insert_sorted(0, count, b.row, e.cell[x])
        x = e.next_of_entity[x]
    return count


@wp.func
def _place_point(
    p: int,
    dart: int,
    m: MapArrays,
    lists: RegisteredLists,
    b: UpdateBuffers,
    darts: wp.array[int],
    point_cells: wp.array[int],
):
    """A point is in the cell of a dart from now on."""
    darts[p] = dart
    cell = m.cell[dart]
    if point_cells[p] != cell:
        point_cells[p] = cell
        b.state[_CHANGED] = b.state[_CHANGED] + 1
        b.row[0] = cell
        _replace_by_row(lists.points, p, 1, b)


@wp.func
def _cross_edges(
    m: MapArrays,
    lists: RegisteredLists,
    links: ElementLinks,
    b: UpdateBuffers,
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    marched: wp.array[wp.uint8],
):
    """March all noted edges, and let segments follow."""
    for i in range(b.state[_EDGES]):
        edge = b.edges[i]
        ends = links.edges[edge]
        b.one.a[0] = points[ends[0]]
        b.one.b[0] = points[ends[1]]
        b.one.dart_a[0] = int(darts[ends[0]])
        b.one.dart_b[0] = int(darts[ends[1]])
        b.one.method[0] = int(b.state[_WAY])
        found = write_row(m, b.one, 0, 0, 1, b.row)
        if found[1] == LOST:
            b.state[_GIVEN_UP] = 1
        marched[edge] = wp.uint8(found[2])
        b.state[_MARCHED] = b.state[_MARCHED] + wp.min(found[2], 1)
        _replace_by_row(lists.edges, edge, found[0], b)
    for i in range(b.state[_SEGMENTS]):
        segment = b.segments[i]
        size = _add_cells_of(lists.edges, links.segment_edges[segment, 0], 0, b)
        _replace_by_row(lists.segments, segment, size, b)


@wp.func
def _row_of_edges(t: int, lists: RegisteredLists, links: ElementLinks, b: UpdateBuffers) -> int:
    size = int(0)
    for k in range(3):
        size = _add_cells_of(lists.edges, links.triangle_edges[t, k], size, b)
    return size


@wp.func
def _corners(t: int, links: ElementLinks, points: wp.array[wp.vec3d]) -> wp.mat33d:
    at = links.triangles[t]
    return wp.matrix_from_rows(points[at[0]], points[at[1]], points[at[2]])


@wp.func
def _is_leaf(m: MapArrays, c: int) -> bool:
    return m.cell_level[c] >= 0 and m.first_child[c] < 0


@wp.func
def _complete_changed(m: MapArrays, table: RingTable, lists: RegisteredLists, b: UpdateBuffers):
    """Add to the changed cells their parts, and their neighbours if these changed too; else note their points."""
    stamp = int(b.state[_MARK])
    flood = b.state[_FLOOD] + 1
    b.state[_FLOOD] = flood
    count = int(0)
    for k in range(b.state[_CELLS]):
        c = int(b.changed[k])
        if b.cell_mark[c] != stamp:
            b.cell_mark[c] = stamp
            b.changed[count] = c
            count += 1
    i = int(0)
    while i < count:
        child = int(m.first_child[b.changed[i]])
        while child >= 0:
            if b.cell_mark[child] != stamp:
                b.cell_mark[child] = stamp
                b.changed[count] = child
                count += 1
            child = m.sibling[child]
        i += 1
    among = int(count)
    for k in range(among):
        c = b.changed[k]
        if _is_leaf(m, c):
            for j in range(table.size[c]):
                x = int(table.cells[c * table.width + j])
                if b.cell_mark[x] != stamp and b.flood_mark[x] != flood:
                    b.flood_mark[x] = flood
                    if b.state[_SPREADS] == 1:
                        b.changed[count] = x
                        count += 1
                    else:
                        _note_points(x, lists, b)
    for k in range(among, count):
        b.cell_mark[b.changed[k]] = stamp
    b.state[_CELLS] = count


@wp.func
def _write_box(m: MapArrays, c: int, place: int, b: UpdateBuffers):
    """The box of a changed leaf: centres of cells and faces are within that of its corners."""
    low = m.centre[c]
    high = m.centre[c]
    d = int(m.anchor[c])
    while d >= 0:
        x = m.position[m.origin[d]]
        low = wp.min(low, x)
        high = wp.max(high, x)
        d = m.link[d]
    b.low[place] = low
    b.high[place] = high


@wp.func
def _boxes_meet(low_a: wp.vec3d, high_a: wp.vec3d, low_b: wp.vec3d, high_b: wp.vec3d) -> bool:
    meet = bool(True)
    for k in range(3):
        meet = meet and low_a[k] <= high_b[k] and low_b[k] <= high_a[k]
    return meet


@wp.func
def _is_in_row(cell: int, size: int, row: wp.array[int]) -> bool:
    found = bool(False)
    for k in range(size):
        found = found or row[k] == cell
    return found


@wp.kernel
def _after_change(
    first: int,
    m: MapArrays,
    table: RingTable,
    lists: RegisteredLists,
    links: ElementLinks,
    b: UpdateBuffers,
    fill: int,
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    point_cells: wp.array[int],
    marched: wp.array[wp.uint8],
):
    stamp = int(b.state[_MARK])
    _complete_changed(m, table, lists, b)
    for i in range(b.state[_CELLS]):
        c = b.changed[i]
        if fill == 1 and _is_leaf(m, c):
            _write_box(m, c, i, b)
        _note_points(c, lists, b)
        x = int(lists.edges.head[c])
        while x >= 0:
            _note_edge(lists.edges.entity[x], links, b)
            x = lists.edges.after[x]
        x = lists.triangles.head[c]
        while x >= 0:
            _note(lists.triangles.entity[x], _TRIANGLES, b.triangle_mark, b.triangles, b)
            x = lists.triangles.after[x]
    for i in range(b.state[_POINTS]):
        p = b.points[i]
        d = int(darts[p])
        while m.tag[d] < 0:
            d = m.link[d]
        found = walk(m, points[p], d)
        if found[1] != INSIDE:
            b.state[_GIVEN_UP] = 1
        _place_point(p, found[0], m, lists, b, darts, point_cells)
    _cross_edges(m, lists, links, b, points, darts, marched)
    for i in range(b.state[_TRIANGLES]):
        t = b.triangles[i]
        size = _row_of_edges(t, lists, links, b)
        if fill == 1:
            x = int(lists.triangles.entity_head[t])
            while x >= 0:
                if b.cell_mark[lists.triangles.cell[x]] != stamp:
                    size = insert_sorted(0, size, b.row, lists.triangles.cell[x])
                x = lists.triangles.next_of_entity[x]
            corners = _corners(t, links, points)
            low = wp.min(corners[0], wp.min(corners[1], corners[2]))
            high = wp.max(corners[0], wp.max(corners[1], corners[2]))
            for k in range(b.state[_CELLS]):
                c = b.changed[k]
                if _is_leaf(m, c) and _boxes_meet(low, high, b.low[k], b.high[k]):
                    if not _is_in_row(c, size, b.row):
                        if cell_meets_triangle(m, c, corners):
                            size = insert_sorted(0, size, b.row, c)
        _replace_by_row(lists.triangles, t, size, b)


@wp.kernel
def _after_move(
    first: int,
    m: MapArrays,
    table: RingTable,
    lists: RegisteredLists,
    links: ElementLinks,
    b: UpdateBuffers,
    fill: int,
    numbers: wp.array[int],
    targets: wp.array[wp.vec3d],
    status: wp.array[wp.uint8],
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    point_cells: wp.array[int],
    marched: wp.array[wp.uint8],
):
    for i in range(numbers.shape[0]):
        p = numbers[i]
        end = march_to(m, points[p], targets[i], darts[p])
        status[i] = wp.uint8(end.status)
        there = targets[i]
        if end.time < wp.float64(1.0):
            there = points[p] + end.time * (targets[i] - points[p])
        points[p] = there
        _place_point(p, end.dart, m, lists, b, darts, point_cells)
        for k in range(links.point_start[p], links.point_start[p + 1]):
            _note_edge(links.point_edges[k], links, b)
    _cross_edges(m, lists, links, b, points, darts, marched)
    for i in range(b.state[_TRIANGLES]):
        t = b.triangles[i]
        size = _row_of_edges(t, lists, links, b)
        if fill == 1:
            # Flood from the cells of the edges.
            corners = _corners(t, links, points)
            stamp = b.state[_FLOOD] + 1
            b.state[_FLOOD] = stamp
            for k in range(size):
                b.queue[k] = int(b.row[k])
                b.flood_mark[b.queue[k]] = stamp
            head = int(0)
            tail = int(size)
            while head < tail:
                c = b.queue[head]
                head += 1
                for k in range(table.size[c]):
                    x = table.cells[c * table.width + k]
                    if b.flood_mark[x] != stamp:
                        b.flood_mark[x] = stamp
                        if cell_meets_triangle(m, x, corners):
                            b.queue[tail] = x
                            tail += 1
                            size = insert_sorted(0, size, b.row, x)
        _replace_by_row(lists.triangles, t, size, b)
