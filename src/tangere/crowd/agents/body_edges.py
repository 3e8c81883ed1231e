"""Edges of bodies by cell: contours, and the virtual edges that reach ahead of them.

Question: which edges does an agent in this cell see?
Method:   an edge is in every cell it crosses (marched unless both ends are in one convex cell), and cells hold lists
          of their edges. Few edges on CPU are marched and sorted by one kernel into arrays that stay, so that the
          launches which read them are packed once.
          A virtual edge runs from the centroid of a body's head to where it will be after the horizon, cut at the first
          wall; a body wider than it runs far gets two, a wedge as wide as itself. A centroid that its body's first
          corner does not see past a wall has none.
          On surfaces, edges are in the cells of their ends and there are no virtual ones.
Known as: registration of edges (Pitiot 2015, sections 5.3 and 5.4); anticipation edges (section 8.2.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells import group_by_cell
from tangere.cells.maps import CellMap, MapArrays
from tangere.cells.tracking import (
    CELLS_OF_ENDS,
    INSIDE,
    LOST,
    MARCH_ALWAYS,
    MARCH_UNLESS_ONE_CELL,
    NO_CELLS,
    Segments,
    allocate_segments,
    check_not_lost,
    cross_segments,
    march_to,
    points_per_index,
    walk,
    write_row,
)
from tangere.crowd.agents.arrays import BodyEdges, edge_ball
from tangere.crowd.agents.shape_matching import BodyArrays
from tangere.runtime import SOUND, PreparedLaunch, launch

wp.set_module_options(SOUND)

#: A virtual edge becomes two where a body is wider than this part of the edge's length.
_WEDGE = 0.5
#: So many edges are listed on one thread of a CPU.
_FEW = 4096
_ZERO, _HALF = (wp.constant(wp.float64(x)) for x in (0.0, 0.5))


class MovingEdges:
    """The edges of all bodies, where they are now: contours first, then two places for each body's virtual edges.

    Args:
        contours: (e, 2) particles. owners: (e,) bodies.
        widths: (b,) of each body [m]. horizon: of anticipation [s]; 0: no virtual edges.
    """

    def __init__(
        self,
        map: CellMap,
        contours: np.ndarray,
        owners: np.ndarray,
        widths: np.ndarray,
        horizon: float,
    ) -> None:
        self.map = map
        self._horizon = horizon if map.dimension == 2 and map.flat else 0.0
        device, bodies = map.device, len(widths) if self._horizon > 0 else 0
        count = len(contours) + 2 * bodies
        everyone = np.concatenate([owners, np.repeat(np.arange(bodies), 2)])
        self._contours = wp.array(contours.astype(np.int32), dtype=wp.vec2i, device=device)
        self._widths = wp.array(widths, dtype=wp.float64, device=device)
        self._segments = allocate_segments(count, device)
        self.arrays = BodyEdges()  #: as kernels see them
        self.arrays.a, self.arrays.b = self._segments.a, self._segments.b
        for name in ("velocity_a", "velocity_b"):
            setattr(self.arrays, name, wp.empty(count, dtype=wp.vec3d, device=device))
        self.arrays.owner = wp.array(everyone.astype(np.int32), dtype=wp.int32, device=device)
        self.arrays.ahead = wp.zeros(count, dtype=wp.int32, device=device)
        self.arrays.longest = wp.zeros(1, dtype=wp.float64, device=device)
        self._on_one_thread = device.is_cpu and count <= _FEW
        self._placing_launch: tuple[Any, PreparedLaunch] | None = None
        self._listing_launch: tuple[Any, PreparedLaunch] | None = None
        if count == 0:
            self.arrays.start = wp.zeros(map.cell_capacity + 1, dtype=wp.int32, device=device)

    def update(self, bodies: BodyArrays) -> None:
        """Register all edges anew; `arrays` is another struct where any of its arrays had to be replaced."""
        key = self.map.version, bodies.position.ptr, bodies.velocity.ptr, bodies.dart.ptr
        if self._placing_launch is None or self._placing_launch[0] != key:
            method = int(
                CELLS_OF_ENDS
                if bodies.surface
                else MARCH_UNLESS_ONE_CELL
                if self.map.has_convex_cells
                else MARCH_ALWAYS
            )
            reach, chunk = wp.vec2d(self._horizon, _WEDGE), points_per_index(self.map.device)
            arguments = [self.map.arrays, bodies, self._contours, self._widths, reach, method, chunk]
            arguments += [self._segments, self.arrays]
            indices = -(-len(self.arrays.owner) // chunk)
            placing = PreparedLaunch(_place_ends, arguments, self.map.device, dim=indices, grain=16)
            self._placing_launch = key, placing
        self._placing_launch[1].run()
        self._list_by_cell()

    def crossed_cells(self) -> np.ndarray:
        """The cells that contours cross."""
        count = len(self._contours)
        return self.arrays.cells.numpy()[: self.arrays.first.numpy()[count]] if count else np.empty(0, np.int32)

    def _list_by_cell(self) -> None:
        """List edges by cell."""
        if self._on_one_thread:
            room = 4 * len(self.arrays.owner)
            while room:
                room = self._list_in_place(room)
            return
        e = self._without_lists()
        rows, _ = cross_segments(self.map, self._segments)
        lists = group_by_cell(rows.cells, self.map.cell_capacity)
        e.first, e.cells, e.edge = rows.first, rows.cells, rows.owner
        e.start, e.entry = lists.start, lists.order
        e.entry_owner = wp.empty_like(e.entry)
        e.entry_ball = wp.empty(len(e.entry), dtype=wp.vec4d, device=self.map.device)
        e.longest.zero_()
        launch(_write_entries, len(e.entry), [e], device=self.map.device, threads=1)
        self.arrays = e

    def _list_in_place(self, room: int) -> int:
        """List few edges on CPU, into the same arrays as before; returns the room still wanted, 0: it was enough."""
        if self._listing_launch is None or self._listing_launch[0] != self.map.version or len(self.arrays.cells) < room:
            room = max(room, len(self.arrays.cells) if self._listing_launch else 0)
            e, cells, device = self._without_lists(), self.map.cell_capacity, self.map.device
            sizes = {"first": len(e.owner) + 1, "start": cells + 1}
            for name, size in (sizes | dict.fromkeys(("cells", "edge", "entry", "entry_owner"), room)).items():
                setattr(e, name, wp.zeros(size, dtype=wp.int32, device=device))
            e.entry_ball = wp.zeros(room, dtype=wp.vec4d, device=device)
            counter, self._needed = (wp.zeros(size, dtype=wp.int32, device=device) for size in (cells, 1))
            self._lost = wp.zeros(1, dtype=wp.uint8, device=device)
            self.arrays = e
            arguments = [self.map.arrays, self._segments, counter, self._needed, self._lost, e]
            self._listing_launch = self.map.version, PreparedLaunch(_list_on_one_thread, arguments, device, dim=1)
        self._listing_launch[1].run()
        if self._lost.numpy()[0]:
            check_not_lost(self._lost)
        needed = int(self._needed.numpy()[0])
        return needed if needed > len(self.arrays.cells) else 0

    def _without_lists(self) -> BodyEdges:
        """The same edges, without their lists."""
        e = BodyEdges()
        for name in ("a", "b", "velocity_a", "velocity_b", "owner", "ahead", "longest"):
            setattr(e, name, getattr(self.arrays, name))
        return e


@wp.func
def _place_virtual_edge(
    m: MapArrays,
    b: BodyArrays,
    body: int,
    side: int,
    width: wp.float64,
    reach: wp.vec2d,
    i: int,
    x: Segments,
    e: BodyEdges,
):
    """Place one of the two virtual edges of a body, or none."""
    s = b.head_section[body]
    count = wp.float64(b.first[s + 1] - b.first[s])
    hub = wp.vec3d()
    velocity = wp.vec3d()
    for k in range(b.first[s], b.first[s + 1]):
        hub += b.position[b.particle[k]] / count
        velocity += b.velocity[b.particle[k]] / count
    way = reach[0] * velocity
    length = wp.length(way)
    wide = width > reach[1] * length
    seen = walk(m, hub, b.dart[b.particle[b.first[s]]])
    e.a[i] = hub
    e.b[i] = hub
    e.velocity_a[i] = velocity
    e.velocity_b[i] = velocity
    e.ahead[i] = 0
    x.dart_a[i] = seen[0]
    x.dart_b[i] = seen[0]
    x.method[i] = NO_CELLS
    if length > _ZERO and seen[1] == INSIDE and (side == 0 or wide):
        if wide:
            left = wp.vec3d(-way[1], way[0], _ZERO) * (width * _HALF / length)
            if side == 1:
                left = -left
            way = way + left
        end = march_to(m, hub, hub + way, seen[0])
        e.b[i] = hub + end.time * way
        e.ahead[i] = 1
        x.dart_b[i] = end.dart
        x.method[i] = MARCH_UNLESS_ONE_CELL


@wp.kernel
def _place_ends(
    first: int,
    m: MapArrays,
    b: BodyArrays,
    contours: wp.array[wp.vec2i],
    widths: wp.array[wp.float64],
    reach: wp.vec2d,
    method: int,
    chunk: int,
    x: Segments,
    e: BodyEdges,
):
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, e.owner.shape[0])):
        k = i - contours.shape[0]
        if k >= 0:
            _place_virtual_edge(m, b, k / 2, k % 2, widths[k / 2], reach, i, x, e)
            if x.method[i] == MARCH_UNLESS_ONE_CELL:
                x.method[i] = method
        else:
            ends = contours[i]
            e.a[i] = b.position[ends[0]]
            e.b[i] = b.position[ends[1]]
            e.velocity_a[i] = b.velocity[ends[0]]
            e.velocity_b[i] = b.velocity[ends[1]]
            x.dart_a[i] = int(b.dart[ends[0]])
            x.dart_b[i] = int(b.dart[ends[1]])
            x.method[i] = method


@wp.func
def _write_entry(e: BodyEdges, i: int):
    """Write beside an entry what is asked of it first."""
    g = e.edge[e.entry[i]]
    e.entry_ball[i] = edge_ball(e.a[g], e.b[g])
    whose = int(e.owner[g])
    if e.ahead[g] == 1:
        whose = -1
    e.entry_owner[i] = whose


@wp.kernel
def _list_on_one_thread(
    first: int,
    m: MapArrays,
    x: Segments,
    counter: wp.array[int],
    needed: wp.array[int],
    lost: wp.array[wp.uint8],
    e: BodyEdges,
):
    room = e.cells.shape[0]
    total = int(0)
    square = wp.float64(0.0)
    for i in range(e.owner.shape[0]):
        e.first[i] = total
        square = wp.max(square, wp.length_sq(e.b[i] - e.a[i]))
        row = write_row(m, x, i, total, 1, e.cells)
        end = total + row[0]
        while total < end:
            if total < room:
                e.edge[total] = i
            total += 1
        if row[1] == LOST:
            lost[0] = wp.uint8(LOST)
    e.first[e.owner.shape[0]] = total
    e.longest[0] = wp.sqrt(square)
    needed[0] = total
    if total > room:
        return
    k = int(0)
    while k < total:
        counter[e.cells[k]] = counter[e.cells[k]] + 1
        k += 1
    # Ends first; each place taken, from the last one on, moves the end of its cell towards the start.
    end = int(0)
    for cell in range(counter.shape[0]):
        end += counter[cell]
        e.start[cell] = end
        counter[cell] = 0
    e.start[counter.shape[0]] = end
    while k > 0:
        k -= 1
        place = e.start[e.cells[k]] - 1
        e.start[e.cells[k]] = place
        e.entry[place] = k
        _write_entry(e, place)


@wp.kernel
def _write_entries(first: int, e: BodyEdges):
    i = first + wp.tid()
    _write_entry(e, i)
    g = e.edge[e.entry[i]]
    wp.atomic_max(e.longest, 0, wp.length(e.b[g] - e.a[g]))
