"""The tip of a needle goes on: where it is, what it leaves behind, and what is near, in one launch.

Question: in which cell is the tip after a move, which particles are deposited on the way, and which vessels, membranes
          and parts of the needle itself are nearer than a distance?
Method:   the tip marches from simplex to simplex. Every lock length of path a particle is deposited and a segment of
          the needle is locked; from the last one to the tip is the active segment. Around each segment that is new
          cells are searched ring by ring as far as their boxes are within reach, from those the segment crosses; each
          thing listed there is measured once. Where the border of the map bends inward, the cells at it are looked at
          too, so that what is behind a bay is found. The needle itself is measured segment by segment.
Sound:    nothing nearer than the distance is missed: a straight way to it leads only through cells within reach, which
          share vertices one after the other, or leaves the map and comes back through cells at its border.
Known as: the needle as a list of segments with deposited particles (Pitiot 2015, section 9.1); breadth-first search of
          one-rings.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap, MapArrays, RingTable
from tangere.cells.registration import CellListEntries
from tangere.cells.tracking import march_step, march_to, sides, start_march, walk
from tangere.needle.anatomy import Anatomy
from tangere.needle.distances import SegmentNearest, segment_to_segment, segment_to_triangle
from tangere.needle.nearness import MEMBRANE, SELF, VESSEL, Found
from tangere.runtime import SOUND, PreparedLaunch, launch

wp.set_module_options(SOUND)

#: Places in `TipArrays.state`: how the last march ended; particles deposited; the first one of the last move; what was
#: found, and whether there was no room for it; cells looked at; the mark of the last search; whether to move at all.
STATUS, COUNT, FIRST, FOUND, FULL, VISITED, _MARK, _MOVING = (wp.constant(k) for k in range(8))
_STATE_SIZE = 8
#: Segments next to one that are not compared with it.
SKIPPED = wp.constant(2)
_STEP_LIMIT = wp.constant(1000000)


@wp.struct
class TipArrays:
    """The needle in material coordinates."""

    state: wp.array[int]
    tip: wp.array[wp.vec3d]  # where it is, and where it is to go
    dart: wp.array[int]  # of the tip
    travelled: wp.array[wp.float64]  # since the last particle, and in all
    path: wp.array[wp.vec3d]  # the particles; the first one is the entry
    path_dart: wp.array[int]
    path_weights: wp.array[wp.vec4d]  # in the simplex of the dart: of its end, its origin, the face and the cell centre
    found: wp.array[Found]


@wp.struct
class SearchArrays:
    """What is searched, and marks of what was seen."""

    low: wp.array[wp.vec3d]  # boxes of leaf cells
    high: wp.array[wp.vec3d]
    border: wp.array[int]  # level-0 cells at a border that bends inward
    points: wp.array[wp.vec3d]
    lines: wp.array[wp.vec2i]
    faces: wp.array[wp.vec3i]
    radius: wp.array[wp.float64]  # of lines and faces
    cell_mark: wp.array[int]
    line_mark: wp.array[int]
    face_mark: wp.array[int]
    queue: wp.array[int]
    lock: wp.float64
    distance: wp.float64
    needle_radius: wp.float64
    reach: wp.float64  # distance plus the largest radii


class TipSearch:
    """The launch of one needle in one map, packed anew only when arrays of the map have grown."""

    def __init__(
        self,
        anatomy: Anatomy,
        entry: np.ndarray,
        dart: int,
        *,
        lock_length: float,
        distance: float,
        radius: float,
        room: int = 256,
    ) -> None:
        self.anatomy, self.map = anatomy, anatomy.registration.map
        device = self.map.device
        s, t = SearchArrays(), TipArrays()
        s.points = wp.array(anatomy.points, dtype=wp.vec3d, device=device)
        s.lines = wp.array(anatomy.segments.astype(np.int32), dtype=wp.vec2i, device=device)
        s.faces = wp.array(anatomy.triangles.astype(np.int32), dtype=wp.vec3i, device=device)
        s.radius = wp.array(anatomy.radius, dtype=wp.float64, device=device)
        s.line_mark, s.face_mark = (wp.zeros(len(x) + 1, dtype=wp.int32, device=device) for x in (s.lines, s.faces))
        s.border = wp.array(_bent_border_cells(self.map), dtype=wp.int32, device=device)
        s.lock, s.distance, s.needle_radius = lock_length, distance, radius
        s.reach = distance + radius + max(anatomy.largest_radius, radius)
        self.search, self.tip_arrays = s, t
        t.state = wp.zeros(_STATE_SIZE, dtype=wp.int32, device=device)
        t.tip = wp.array(np.stack([entry, entry]), dtype=wp.vec3d, device=device)
        t.dart = wp.array([dart], dtype=wp.int32, device=device)
        t.travelled = wp.zeros(2, dtype=wp.float64, device=device)
        t.found = wp.zeros(256, dtype=Found, device=device)
        self._packed: tuple[object, ...] = ()
        self._grow_path(room)
        t.path.numpy()[0], t.path_dart.numpy()[0] = entry, dart
        self._bind()
        self.state[COUNT] = 1
        self.refresh()
        launch(_weigh, 1, [self.map.arrays, t], device=device)

    def advance(self, target: np.ndarray) -> None:
        """Move the tip straight towards a point [m], deposit particles, and search around the new segments."""
        self._make_room(target)
        self.tip[1] = target
        self.state[_MOVING] = 1
        self._run()
        while self.state[FULL]:
            self.tip_arrays.found = wp.zeros(2 * len(self.tip_arrays.found), dtype=Found, device=self.map.device)
            self.state[_MOVING] = 0
            self._pack()
            self._run()

    @property
    def found(self) -> np.ndarray:
        """What was found, as a structured array; valid until the next move."""
        return self._found[: self.state[FOUND]]

    def refresh(self, cells: np.ndarray | None = None) -> None:
        """After cells changed: boxes of those (None: all) and darts of particles are found again."""
        capacity, s, device = self.map.cell_capacity, self.search, self.map.device
        if s.low is None or len(s.low) < capacity:
            before = 0 if s.low is None else len(s.low)
            for name, kind in (("low", wp.vec3d), ("high", wp.vec3d), ("cell_mark", wp.int32), ("queue", wp.int32)):
                old, new = getattr(s, name), wp.zeros(capacity, dtype=kind, device=device)
                if before:
                    wp.copy(new, old, count=before)
                setattr(s, name, new)
        if not self._packed or any(a is not b for a, b in zip(self._arrays_now(), self._packed, strict=True)):
            self._pack()
        chosen = self.map.leaves if cells is None else cells
        self._chosen[: len(chosen)] = chosen
        self._measure_boxes(len(chosen))
        if cells is None:
            self._enclose_parents()
        self._find_again.run()
        self._version = self.map.version

    def _enclose_parents(self) -> None:
        """Boxes of split cells around those of their children."""
        levels, parent, split = self.map.levels, self.map.host("parent"), self.map.host("first_child") >= 0
        low, high = self.search.low.numpy(), self.search.high.numpy()
        low[split & (levels >= 0)], high[split & (levels >= 0)] = np.inf, -np.inf
        for level in range(int(levels.max()), 0, -1):
            here = np.flatnonzero(levels == level)
            np.minimum.at(low, parent[here], low[here])
            np.maximum.at(high, parent[here], high[here])

    def follow_merges(self) -> None:
        """After cells were merged, before any is split: aim at darts that live."""
        self._aim_at_live.run()

    def _run(self) -> None:
        if self.map.version != self._version:  # somebody else changed it
            self.refresh()
        self._launch.run()

    def _arrays_now(self) -> tuple[object, ...]:
        m, lists = self.map.arrays, self.anatomy.registration
        lines, faces = lists.entries("segments"), lists.entries("triangles")
        table = self.map.rings.table
        found = m.phi1, m.position, m.cell_level, table.cells, lines.head, lines.cell, faces.head, faces.cell
        return *found, self.search.low, self.tip_arrays.path, self.tip_arrays.found

    def _pack(self) -> None:
        self._bind()
        registration = self.anatomy.registration
        arguments = [self.map.arrays, self.map.rings.table, registration.entries("segments")]
        arguments += [registration.entries("triangles"), self.search, self.tip_arrays]
        device, s, needle = self.map.device, self.search, [self.map.arrays, self.tip_arrays]
        self._launch = PreparedLaunch(_tip_step, arguments, device, dim=1, serial=True)
        cells = wp.zeros(self.map.cell_capacity, dtype=wp.int32, device=device)
        self._chosen = cells.numpy()
        self._measure_boxes = PreparedLaunch(_boxes, [self.map.arrays, cells, s.low, s.high], device, serial=True)
        self._find_again = PreparedLaunch(_follow, needle, device, dim=1, serial=True)
        self._aim_at_live = PreparedLaunch(_replace_dead, needle, device, dim=1, serial=True)
        self._packed = self._arrays_now()

    def _bind(self) -> None:
        t = self.tip_arrays
        self.state, self.tip, self.dart = t.state.numpy(), t.tip.numpy(), t.dart.numpy()
        self.travelled, self._found = t.travelled.numpy(), t.found.numpy()
        self.path, self.path_dart, self.path_weights = t.path.numpy(), t.path_dart.numpy(), t.path_weights.numpy()

    def _make_room(self, target: np.ndarray) -> None:
        more = int(np.linalg.norm(target - self.tip[0]) / self.search.lock) + 2
        if int(self.state[COUNT]) + more > len(self.path):
            self._grow_path(2 * (len(self.path) + more))
            self._pack()

    def _grow_path(self, room: int) -> None:
        t, device = self.tip_arrays, self.map.device
        for name, kind in (("path", wp.vec3d), ("path_dart", wp.int32), ("path_weights", wp.vec4d)):
            old, new = getattr(t, name), wp.zeros(room, dtype=kind, device=device)
            if old is not None:
                wp.copy(new, old, count=len(old))
            setattr(t, name, new)


def _bent_border_cells(map: CellMap) -> np.ndarray:
    """The cells of level 0 at the border of a map whose border bends inward somewhere; none if it is convex."""
    links, levels = map.numpy("phi3"), map.levels
    darts = map.darts
    if map.dimension != 3 or levels.max() > 0:
        cells = map.leaves if map.dimension != 3 else np.flatnonzero(levels == 0)
        return cells.astype(np.int32)  # made finer before: where its border was is not asked
    outside = darts[links[darts] < 0]
    a, b = map.edge_ends(outside)
    c = map.numpy("face_centre")[outside]
    normal = np.cross(a - c, b - c)
    size = np.linalg.norm(normal, axis=1)
    normal, c = normal[size > 0] / size[size > 0, None], c[size > 0]
    _, one = np.unique(np.round(np.c_[normal, (normal * c).sum(axis=1)], 9), axis=0, return_index=True)
    normal, c = normal[one], c[one]
    corners = np.unique(map.numpy("origin")[outside])
    above = map.positions[corners] @ normal.T - (normal * c).sum(axis=1)
    if above.max() <= 1e-9 * np.ptp(map.positions[corners], axis=0).max():
        return np.empty(0, np.int32)
    return np.unique(map.numpy("cell")[outside]).astype(np.int32)


@wp.func
def _box_gap(low: wp.vec3d, high: wp.vec3d, other_low: wp.vec3d, other_high: wp.vec3d) -> wp.float64:
    """The squared distance of two boxes."""
    total = wp.float64(0.0)
    for k in range(3):
        apart = wp.max(wp.max(other_low[k] - high[k], low[k] - other_high[k]), wp.float64(0.0))
        total += apart * apart
    return total


@wp.func
def _note(kind: int, number: int, segment: int, radius: wp.float64, near: SegmentNearest, t: TipArrays):
    place = t.state[FOUND]
    t.state[FOUND] = place + 1
    if place >= t.found.shape[0]:
        t.state[FULL] = 1
        return
    entry = Found()
    entry.kind = kind
    entry.number = number
    entry.segment = segment
    entry.gap = near.distance - radius
    entry.a = near.a
    entry.b = near.b
    t.found[place] = entry


@wp.func
def _deposit(m: MapArrays, t: TipArrays, x: wp.vec3d, dart: int):
    k = t.state[COUNT]
    t.path[k] = x
    t.path_dart[k] = dart
    side = sides(m, dart, x)
    t.path_weights[k] = side / (side[0] + side[1] + side[2] + side[3])
    t.state[COUNT] = k + 1


@wp.func
def _move(m: MapArrays, s: SearchArrays, t: TipArrays):
    """Go to the target, or as far as the map goes, and deposit a particle every lock length."""
    a = t.tip[0]
    end = march_to(m, a, t.tip[1], t.dart[0])
    t.state[STATUS] = end.status
    b = t.tip[1]
    if end.time < wp.float64(1.0):
        b = a + end.time * (t.tip[1] - a)
    way = wp.length(b - a)
    done = wp.float64(0.0)
    dart = int(t.dart[0])
    while t.travelled[0] + (way - done) >= s.lock:
        done += s.lock - t.travelled[0]
        x = a + (done / way) * (b - a)
        dart = march_to(m, a, x, dart).dart
        _deposit(m, t, x, dart)
        t.travelled[0] = wp.float64(0.0)
    t.travelled[0] = t.travelled[0] + (way - done)
    t.travelled[1] = t.travelled[1] + way
    t.tip[0] = b
    t.dart[0] = end.dart


@wp.func
def _search(
    m: MapArrays,
    table: RingTable,
    lines: CellListEntries,
    faces: CellListEntries,
    s: SearchArrays,
    t: TipArrays,
    segment: int,
    a: wp.vec3d,
    b: wp.vec3d,
    dart: int,
):
    """Find what is near one segment."""
    stamp = t.state[_MARK] + 1
    t.state[_MARK] = stamp
    low = wp.min(a, b)
    high = wp.max(a, b)
    limit = s.reach * s.reach
    tail = int(0)
    now = start_march(m, a, dart)
    steps = int(0)
    while steps < _STEP_LIMIT:
        c = m.cell[now.dart]
        if s.cell_mark[c] != stamp:
            s.cell_mark[c] = stamp
            s.queue[tail] = c
            tail += 1
        if now.status >= 0:
            steps = _STEP_LIMIT
        else:
            now = march_step(m, a, b, now)
        steps += 1
    for i in range(s.border.shape[0]):
        # Down the tree of a cell at the border, as far as boxes are within reach.
        c = int(s.border[i])
        root = int(c)
        going = bool(True)
        while going:
            if _box_gap(low, high, s.low[c], s.high[c]) <= limit and m.first_child[c] >= 0:
                c = m.first_child[c]
            else:
                if m.first_child[c] < 0 and s.cell_mark[c] != stamp:
                    if _box_gap(low, high, s.low[c], s.high[c]) <= limit:
                        s.cell_mark[c] = stamp
                        s.queue[tail] = c
                        tail += 1
                while c != root and m.sibling[c] < 0:
                    c = m.parent[c]
                if c == root:
                    going = False
                else:
                    c = m.sibling[c]
    head = int(0)
    while head < tail:
        c = s.queue[head]
        head += 1
        x = int(lines.head[c])
        while x >= 0:
            e = lines.entity[x]
            if s.line_mark[e] != stamp:
                s.line_mark[e] = stamp
                ends = s.lines[e]
                near = segment_to_segment(a, b, s.points[ends[0]], s.points[ends[1]])
                radius = s.radius[e] + s.needle_radius
                if near.distance - radius <= s.distance:
                    _note(VESSEL, e, segment, radius, near, t)
            x = lines.after[x]
        x = faces.head[c]
        while x >= 0:
            e = faces.entity[x]
            if s.face_mark[e] != stamp:
                s.face_mark[e] = stamp
                at = s.faces[e]
                near = segment_to_triangle(a, b, s.points[at[0]], s.points[at[1]], s.points[at[2]])
                if near.distance - s.needle_radius <= s.distance:
                    _note(MEMBRANE, e, segment, s.needle_radius, near, t)
            x = faces.after[x]
        for k in range(table.size[c]):
            other = table.cells[c * table.width + k]
            if s.cell_mark[other] != stamp:
                s.cell_mark[other] = stamp
                if _box_gap(low, high, s.low[other], s.high[other]) <= limit:
                    s.queue[tail] = other
                    tail += 1
    t.state[VISITED] = t.state[VISITED] + tail
    both = s.needle_radius + s.needle_radius
    for k in range(segment - SKIPPED):
        near = segment_to_segment(a, b, t.path[k], t.path[k + 1])
        if near.distance - both <= s.distance:
            _note(SELF, k, segment, both, near, t)


@wp.kernel
def _tip_step(
    first: int,
    m: MapArrays,
    table: RingTable,
    lines: CellListEntries,
    faces: CellListEntries,
    s: SearchArrays,
    t: TipArrays,
):
    if t.state[_MOVING] == 1:
        t.state[FIRST] = t.state[COUNT] - 1
        _move(m, s, t)
    t.state[FOUND] = 0
    t.state[FULL] = 0
    t.state[VISITED] = 0
    last = t.state[COUNT] - 1
    for k in range(t.state[FIRST], last):
        _search(m, table, lines, faces, s, t, k, t.path[k], t.path[k + 1], t.path_dart[k])
    _search(m, table, lines, faces, s, t, last, t.path[last], t.tip[0], t.path_dart[last])


@wp.kernel
def _boxes(first: int, m: MapArrays, cells: wp.array[int], low: wp.array[wp.vec3d], high: wp.array[wp.vec3d]):
    c = cells[first + wp.tid()]
    if m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    least = m.centre[c]
    most = least
    d = int(m.anchor[c])
    while d >= 0:
        x = m.position[m.origin[d]]
        least = wp.min(least, x)
        most = wp.max(most, x)
        d = m.link[d]
    low[c] = least
    high[c] = most


@wp.func
def _live(m: MapArrays, dart: int) -> int:
    d = int(dart)
    while m.tag[d] < 0:
        d = m.link[d]
    return d


@wp.kernel
def _replace_dead(first: int, m: MapArrays, t: TipArrays):
    t.dart[0] = _live(m, t.dart[0])
    for k in range(t.state[COUNT]):
        t.path_dart[k] = _live(m, t.path_dart[k])


@wp.kernel
def _follow(first: int, m: MapArrays, t: TipArrays):
    """Find the tip and all particles again, from where they were."""
    t.dart[0] = walk(m, t.tip[0], _live(m, t.dart[0]))[0]
    for k in range(t.state[COUNT]):
        d = walk(m, t.path[k], _live(m, t.path_dart[k]))[0]
        t.path_dart[k] = d
        side = sides(m, d, t.path[k])
        t.path_weights[k] = side / (side[0] + side[1] + side[2] + side[3])


@wp.kernel
def _weigh(first: int, m: MapArrays, t: TipArrays):
    side = sides(m, t.path_dart[0], t.path[0])
    t.path_weights[0] = side / (side[0] + side[1] + side[2] + side[3])
