"""How far it is to a place on a floor, and which way: one field per place and width of people.

Question: which way does somebody of some radius go from here, and how long is it?
Method:   nodes no farther than a part of a step from where the centre of a disc of the radius may be are free; the rest
          of the floor is a band along the walls. From the nodes of the goal the way is found by fast marching over the
          free nodes, slower near walls so that ways keep off corners; from free nodes it goes on into the band, and
          never back. Steps that a wall cuts are no steps. Those through doors too narrow for the radius are as long as
          a hundred kilometres: who was pushed through one finds back, and nobody takes it for a way.
          Sheets lie one after the other; where two are joined, nodes of one beyond the joint are copies of the other's.
          The direction at a node is downhill from it; between nodes it is interpolated.
Sound:    a door that is wide enough is open on every raster: nodes are nearer to each other than four fifths of the
          radius. A door that `FloorPlan.doors` tells is closed. Lengths are right to about a node.
Known as: eikonal equation by the fast marching method (Sethian 1996); floor field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.crowd.agents.wall_crossings import is_hidden, may_meet
from tangere.crowd.floor.plans.building import AnyPlan, FloorWithout
from tangere.crowd.floor.plans.narrow_doors import narrow_gaps, shapely_library
from tangere.crowd.floor.plans.wall_raster import Raster
from tangere.runtime import SOUND, InputError, launch

wp.set_module_options(SOUND)

#: Nodes are no farther apart than this, nor than this part of the radius [m].
_SPACING, _SPACING_PART, _LEAST_SPACING = 0.2, 0.8, 0.02
#: Half the diagonal of a square of nodes, and a little more.
_DIAGONAL = 0.7072
#: Within this many radii of a wall it is slower to go, at most by this factor.
_KEPT, _SLOWER = 1.5, 3.0
#: Where a node is that is not in the heap: not yet, or no more.
_CLOSED = wp.constant(-1)
_DONE = wp.constant(-2)


#: Nodes of all fields that fit into memory: about 24 bytes each.
_MOST_NODES = 2.0e8
#: As many metres as a door too narrow adds to a way: what is as long is none.
NO_WAY = 1.0e5
_NO_WAY = wp.constant(wp.float32(NO_WAY))
#: Bits of an entry: a way may come from side k (0 to 3), only through a narrow door (4 to 7); the node has copies (8).
_COPIED = 256
_HAS_COPIES = wp.constant(_COPIED)
#: Nodes beyond a joint that are copies, in sides of squares of nodes.
_COPIES = 1.6
#: A part of a goal counts if a disc of this part of the radius has room there.
_ROOM = 0.95


@wp.struct
class FieldTable:
    """Fields one after the other; of each the sheets one after the other, nodes of each by column."""

    low: wp.vec2d
    side: wp.float64
    columns: int  # of a sheet
    rows: int
    size: int  # nodes of a field
    direction: wp.array[wp.vec2f]
    length: wp.array[wp.float32]  # of the way from a node [m]; at least `NO_WAY`: there is none
    time: wp.array[wp.float32]  # the same, longer where it is crowded
    closed: wp.array[wp.vec4d]  # lines across doors too narrow
    closed_first: wp.array2d[int]  # by field and sheet, into `closed`
    closed_count: wp.array2d[int]


class WalkableNodes:
    """The nodes of all sheets of a plan for people of one radius."""

    def __init__(self, plan: AnyPlan | FloorWithout, raster: Raster, radius: float) -> None:
        self.raster, self.radius, self.plan = raster, radius, plan
        kinds, entries, slowness, steps = [], [], [], []
        self.closed = _closed_doors(plan, radius)  #: by sheet
        for sheet, closed in zip(plan.sheets, self.closed, strict=True):
            inside = np.cumsum(raster.cuts(sheet.sides)[0], axis=0) % 2 == 1
            near = self._distance_to_walls(sheet.all_walls)
            free = inside & (near >= radius - _DIAGONAL * raster.side)
            kinds.append(np.where(free, 1, np.where(inside, 2, 0)).astype(np.uint8))
            steps.append([_open_steps(raster, walls) for walls in (sheet.all_walls, closed)])
            wall = 1.0 + (_SLOWER - 1.0) * np.clip((_KEPT * radius - near) / (_KEPT * radius), 0.0, 1.0)
            slowness.append(wall.ravel())
        self.copies = self._copies(kinds)
        for sheet_kinds, (by_walls, by_doors) in zip(self._kinds_with_copies(kinds), steps, strict=True):
            through = _entries(sheet_kinds, by_walls)
            open_ways = through & _entries(sheet_kinds, by_doors)
            entries.append((open_ways.astype(np.uint16) | ((through & ~open_ways).astype(np.uint16) << 4)).ravel())
        self.kinds = np.concatenate([sheet_kinds.ravel() for sheet_kinds in kinds])
        self.entries = np.concatenate(entries)
        self.entries[self.copies[:, 1]] = 0
        self.entries[self.copies[:, 0]] |= _COPIED
        self.slowness = np.concatenate(slowness).astype(np.float32)
        self._rooms: dict[int, Any] = {}

    def _distance_to_walls(self, walls: np.ndarray) -> np.ndarray:
        """(columns, rows) as far as one and a half radii; inf beyond."""
        reach = _KEPT * self.radius
        raster = self.raster
        least = np.full(raster.shape, np.inf)
        x, y = raster.nodes()
        low = np.floor((walls.min(axis=1) - reach - raster.origin) / raster.side).astype(int)
        high = np.ceil((walls.max(axis=1) + reach - raster.origin) / raster.side).astype(int) + 1
        low, high = np.clip(low, 0, raster.shape), np.clip(high, 0, raster.shape)
        for (a, b), (i0, j0), (i1, j1) in zip(walls, low, high, strict=True):
            along = b - a
            px, py = x[i0:i1, None] - a[0], y[None, j0:j1] - a[1]
            part = np.clip((px * along[0] + py * along[1]) / (along @ along), 0.0, 1.0)
            np.minimum(
                least[i0:i1, j0:j1], np.hypot(px - part * along[0], py - part * along[1]), out=least[i0:i1, j0:j1]
            )
        return least

    def _copies(self, kinds: list[np.ndarray]) -> np.ndarray:
        """(n, 2) nodes of sheets near a joint, and the nodes at the same places of the sheets they are joined to."""
        shapely, raster = shapely_library(), self.raster
        size, found, taken = raster.columns * raster.rows, [np.empty((0, 2), int)], set()
        for joint in self.plan.joints:
            line = shapely.linestrings(joint.ends)
            low, high = joint.ends.min(axis=0), joint.ends.max(axis=0)
            first = np.maximum(np.floor((low - raster.origin) / raster.side).astype(int) - 2, 0)
            last = np.minimum(np.ceil((high - raster.origin) / raster.side).astype(int) + 3, raster.shape)
            i, j = (k.ravel() for k in np.mgrid[first[0] : last[0], first[1] : last[1]])
            points = shapely.points(raster.origin + raster.side * np.stack([i, j], axis=1))
            near = shapely.dwithin(line, points, _COPIES * raster.side)
            i, j = i[near], j[near]
            for own, other in (joint.sheets, joint.sheets[::-1]):
                there = (kinds[own][i, j] != 0) & (kinds[other][i, j] == 0)
                node = i[there] * raster.rows + j[there]
                pairs = np.stack([own * size + node, other * size + node], axis=1)
                pairs = pairs[[copy not in taken for copy in pairs[:, 1].tolist()]]
                taken.update(pairs[:, 1].tolist())
                found.append(pairs)
        pairs = np.concatenate(found)
        return pairs[np.argsort(pairs[:, 0], kind="stable")].astype(np.int32)

    def _kinds_with_copies(self, kinds: list[np.ndarray]) -> list[np.ndarray]:
        together = np.stack(kinds)
        flat = together.reshape(-1)
        flat[self.copies[:, 1]] = flat[self.copies[:, 0]]
        return list(together)

    def seeds(self, goal: Any, sheet: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of a sheet in a goal or next to it with no wall between, and how far from it they are [m]."""
        shapely, raster = shapely_library(), self.raster
        goal = self._reachable(goal, sheet)
        low, high = np.array(goal.bounds[:2]), np.array(goal.bounds[2:])
        first = np.clip(np.floor((low - raster.origin) / raster.side).astype(int) - 1, 0, np.array(raster.shape) - 1)
        last = np.clip(np.ceil((high - raster.origin) / raster.side).astype(int) + 1, 0, np.array(raster.shape) - 1)
        i, j = (k.ravel() for k in np.mgrid[first[0] : last[0] + 1, first[1] : last[1] + 1])
        nodes = sheet * raster.columns * raster.rows + i * raster.rows + j
        usable = self.kinds[nodes] != 0
        i, j, nodes = i[usable], j[usable], nodes[usable]
        points = shapely.points(raster.origin + raster.side * np.stack([i, j], axis=1))
        away = shapely.distance(points, goal)
        near = away <= 1.5 * raster.side
        nodes, away, points = nodes[near], away[near], points[near]
        ways = shapely.shortest_line(points, goal)
        free = (away == 0.0) | ~shapely.intersects(shapely.boundary(self.plan.sheets[sheet].polygon), ways)
        nodes, away = nodes[free], away[free]
        kinds = self.kinds[nodes]
        if (kinds == 1).any():  # the band leads to nowhere but out of it
            nodes, away = nodes[kinds == 1], away[kinds == 1]
        return nodes.astype(np.int32), away.astype(np.float32)

    def _reachable(self, goal: Any, sheet: int) -> Any:
        """The part of a goal where people have room, where there is one: nobody gets into a sliver of it."""
        shapely = shapely_library()
        if sheet not in self._rooms:
            self._rooms[sheet] = shapely.buffer(self.plan.sheets[sheet].polygon, -_ROOM * self.radius)
        part = shapely.intersection(goal, self._rooms[sheet])
        return goal if part.is_empty or part.area == 0.0 else part


def _closed_doors(plan: AnyPlan | FloorWithout, radius: float) -> list[np.ndarray]:
    """By sheet (n, 2, 2): lines across which nobody of this radius gets, a little longer than from wall to wall."""
    shapely = shapely_library()
    gaps = [[narrow_gaps(sheet.polygon, sheet.walls, radius)] for sheet in plan.sheets]
    for joint in plan.joints:
        one, other = (plan.sheets[k] for k in joint.sheets)
        both = shapely.union(one.polygon, other.polygon, grid_size=1.0e-9)
        found = narrow_gaps(both, np.concatenate([one.walls, one.beyond[joint.sheets[1]]]), radius)
        for k in joint.sheets:
            gaps[k].append(found)
    return [gap + 0.02 * (gap - gap[:, ::-1]) for gap in map(np.concatenate, gaps)]


def _open_steps(raster: Raster, walls: np.ndarray) -> np.ndarray:
    """By node, bits 0 to 3: the step to the node after or before in x, after or before in y is open."""
    cut_x, cut_y = raster.cuts(walls)
    steps = np.zeros(raster.shape, np.uint8)
    steps[:-1] |= (cut_x[1:] == 0).astype(np.uint8)
    steps[1:] |= (cut_x[1:] == 0).astype(np.uint8) << 1
    steps[:, :-1] |= (cut_y[:, 1:] == 0).astype(np.uint8) << 2
    steps[:, 1:] |= (cut_y[:, 1:] == 0).astype(np.uint8) << 3
    return steps


def _entries(kinds: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """By node, bits 0 to 3: a way may come to it from the node after or before in x, after or before in y.

    Not across a wall, from no node off the floor, and from the band only into the band.
    """
    entries = np.zeros_like(steps)
    for bit, (axis, step) in enumerate(((0, 1), (0, -1), (1, 1), (1, -1))):
        other = np.roll(kinds, -step, axis=axis)  # what is rolled over the rim has no step there
        comes = (steps >> bit) & 1 & ((other == 1) | ((other == 2) & (kinds == 2))) & (kinds != 0)
        entries |= comes.astype(np.uint8) << bit
    return entries


def raster_for(plan: AnyPlan, radius: float, fields: int = 0) -> Raster:
    """Nodes near enough for people of the least radius; so many fields over them must fit into memory."""
    side = max(_LEAST_SPACING, min(_SPACING, _SPACING_PART * radius))
    x0, y0, x1, y1 = plan.bounds
    nodes = ((x1 - x0) / side + 3.0) * ((y1 - y0) / side + 3.0) * len(plan.sheets)
    if nodes * fields > _MOST_NODES:
        told = (
            f"{fields} ways over {x1 - x0:g} x {y1 - y0:g} m for a radius of {radius:g} m need {nodes:.1e} nodes each"
        )
        raise InputError(f"plan: {told}, which is too many: are its lengths metres?")
    return Raster.around(plan.bounds, side, shift=0.37)


def marched(
    goals: list[tuple[WalkableNodes, Any, int]], crowding: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(fields, nodes) lengths [m] and (fields, nodes, 2) directions of a field for each terrain, goal and its sheet.

    Args:
        crowding: (nodes,) how much slower it is at each; None: nowhere.
    """
    if not goals:
        return np.empty((0, 0), np.float32), np.empty((0, 0, 2), np.float32)
    raster = goals[0][0].raster
    size = len(goals[0][0].kinds)
    seeds = [terrain.seeds(goal, sheet) for terrain, goal, sheet in goals]
    first = np.cumsum([0, *(len(nodes) for nodes, _ in seeds)]).astype(np.int32)
    length = np.full((len(goals), size), np.inf, np.float32)
    for row, (nodes, away) in zip(length, seeds, strict=True):
        row[nodes] = away
    slow = [raster.side * terrain.slowness * (1.0 if crowding is None else crowding) for terrain, _, _ in goals]
    of = [terrain.copies for terrain, _, _ in goals]
    arrays = {
        "entries": (np.stack([terrain.entries for terrain, _, _ in goals]), wp.uint16),
        "cost": (np.stack(slow).astype(np.float32), wp.float32),
        "seed": (np.concatenate([nodes for nodes, _ in seeds]).astype(np.int32), wp.int32),
        "first": (first, wp.int32),
        "copied": (np.concatenate(of)[:, 0].astype(np.int32), wp.int32),
        "copy": (np.concatenate(of)[:, 1].astype(np.int32), wp.int32),
        "copies": (np.cumsum([0, *map(len, of)]).astype(np.int32), wp.int32),
    }
    inputs = [wp.array(values, dtype=kind, device="cpu") for values, kind in arrays.values()]
    lengths = wp.array(length, dtype=wp.float32, device="cpu")
    heap = wp.empty((len(goals), size), dtype=wp.int32, device="cpu")
    place = wp.full((len(goals), size), -1, dtype=wp.int32, device="cpu")
    directions = wp.zeros((len(goals), size), dtype=wp.vec2f, device="cpu")
    cpu = wp.get_device("cpu")
    launch(_march, len(goals), [raster.rows, *inputs], [lengths, heap, place], device=cpu, grain=1)
    launch(_descend, len(goals) * size, [size, raster.rows, inputs[0], lengths], [directions], device=cpu)
    found, ways = lengths.numpy(), directions.numpy()
    for row, way, copies in zip(found, ways, of, strict=True):
        row[copies[:, 1]], way[copies[:, 1]] = row[copies[:, 0]], way[copies[:, 0]]
    return found, ways


def field_table(
    terrains: list[WalkableNodes], raster: Raster, lengths: np.ndarray, directions: np.ndarray, device: wp.Device
) -> FieldTable:
    """The same for kernels; terrains: of each field."""
    table = FieldTable()
    table.low, table.side = wp.vec2d(*raster.origin), raster.side
    table.columns, table.rows = raster.shape
    table.size = lengths.shape[1]
    table.direction = wp.array(directions.reshape(-1, 2), dtype=wp.vec2f, device=device)
    table.length = wp.array(lengths.ravel(), dtype=wp.float32, device=device)
    table.time = wp.clone(table.length)
    own = list({id(terrain): terrain for terrain in terrains}.values())
    lines = [np.empty((0, 2, 2)), *(closed for terrain in own for closed in terrain.closed)]
    begin, place = np.cumsum([0, *map(len, lines[1:])]), {id(terrain): k for k, terrain in enumerate(own)}
    sheets = len(own[0].closed) if own else 1
    kind = np.array([place[id(terrain)] for terrain in terrains], int)
    first = (kind[:, None] * sheets + np.arange(sheets)).reshape(-1, sheets)
    table.closed = wp.array(np.concatenate(lines).reshape(-1, 4), dtype=wp.vec4d, device=device)
    table.closed_first = wp.array(begin[first].astype(np.int32), dtype=wp.int32, ndim=2, device=device)
    table.closed_count = wp.array(np.diff(begin)[first].astype(np.int32), dtype=wp.int32, ndim=2, device=device)
    return table


@wp.func
def _is_closed(f: FieldTable, field: int, sheet: int, x: wp.vec3d, y: wp.vec3d) -> bool:
    """Whether a door too narrow is between x and y."""
    first = f.closed_first[field, sheet]
    for k in range(first, first + f.closed_count[field, sheet]):
        w = f.closed[k]
        if may_meet(x, y, wp.vec3d(w[0], w[1], wp.float64(0.0)), wp.vec3d(w[2], w[3], wp.float64(0.0))):
            return True
    return False


@wp.func
def way_length(
    f: FieldTable, length: wp.array[wp.float32], seen: Neighbourhoods, cell: int, field: int, sheet: int, x: wp.vec3d
) -> wp.float32:
    """The least way from x in a cell over a node around it [m]; at least `NO_WAY`: there is none.

    Nodes behind a wall or behind a door too narrow do not count, unless there are no others.
    """
    i = wp.clamp(int(wp.floor((x[0] - f.low[0]) / f.side)), 0, f.columns - 2)
    j = wp.clamp(int(wp.floor((x[1] - f.low[1]) / f.side)), 0, f.rows - 2)
    base = field * f.size + (sheet * f.columns + i) * f.rows + j
    best = wp.float32(wp.inf)
    behind = wp.float32(wp.inf)
    farthest = wp.max(wp.max(length[base], length[base + 1]), wp.max(length[base + f.rows], length[base + f.rows + 1]))
    for di in range(2):
        for dj in range(2):
            at = length[base + di * f.rows + dj]
            node = wp.vec3d(
                f.low[0] + wp.float64(i + di) * f.side, f.low[1] + wp.float64(j + dj) * f.side, wp.float64(0.0)
            )
            way = at + wp.float32(wp.length(x - node))
            hidden = is_hidden(seen, cell, x, node)
            # Doors too narrow lead to nodes without a way: where all have one there is none of them.
            if not hidden and at < _NO_WAY and farthest >= _NO_WAY:
                hidden = _is_closed(f, field, sheet, x, node)
            if hidden:
                behind = wp.min(behind, way)
            else:
                best = wp.min(best, way)
    if best < wp.float32(wp.inf):
        return best
    return behind


@wp.func
def way_direction(f: FieldTable, field: int, sheet: int, x: wp.vec3d) -> wp.vec3d:
    """The unit direction of the way from x; zero at the goal and where there is no way."""
    u = (x[0] - f.low[0]) / f.side
    v = (x[1] - f.low[1]) / f.side
    i = wp.clamp(int(wp.floor(u)), 0, f.columns - 2)
    j = wp.clamp(int(wp.floor(v)), 0, f.rows - 2)
    a = wp.float32(wp.clamp(u - wp.float64(i), wp.float64(0.0), wp.float64(1.0)))
    b = wp.float32(wp.clamp(v - wp.float64(j), wp.float64(0.0), wp.float64(1.0)))
    base = field * f.size + (sheet * f.columns + i) * f.rows + j
    one = wp.float32(1.0)
    low = (one - b) * f.direction[base] + b * f.direction[base + 1]
    high = (one - b) * f.direction[base + f.rows] + b * f.direction[base + f.rows + 1]
    d = (one - a) * low + a * high
    out = wp.vec3d(wp.float64(d[0]), wp.float64(d[1]), wp.float64(0.0))
    if wp.length_sq(out) < wp.float64(1.0e-8):
        return wp.vec3d()
    return wp.normalize(out)


@wp.func
def _sift_up(heap: wp.array[int], place: wp.array[int], length: wp.array[wp.float32], start: int):
    k = int(start)
    node = heap[k]
    key = length[node]
    rising = bool(True)
    while rising and k > 0:
        above = (k - 1) >> 1
        other = heap[above]
        if length[other] > key:
            heap[k] = other
            place[other] = k
            k = above
        else:
            rising = False
    heap[k] = node
    place[node] = k


@wp.func
def _sift_down(heap: wp.array[int], place: wp.array[int], length: wp.array[wp.float32], count: int):
    k = int(0)
    node = heap[0]
    key = length[node]
    sinking = bool(True)
    while sinking:
        child = 2 * k + 1
        if child >= count:
            sinking = False
        else:
            other = heap[child]
            least = length[other]
            if child + 1 < count:
                beside = heap[child + 1]
                if length[beside] < least:
                    child = child + 1
                    other = beside
                    least = length[beside]
            if least < key:
                heap[k] = other
                place[other] = k
                k = child
            else:
                sinking = False
    heap[k] = node
    place[node] = k


@wp.func
def _node_beside(node: int, side: int, rows: int) -> int:
    """Sides: after and before in x, after and before in y."""
    if side == 0:
        return node + rows
    if side == 1:
        return node - rows
    if side == 2:
        return node + 1
    return node - 1


@wp.func
def _least_beside(length: wp.array[wp.float32], entries: int, after: int, before: int) -> wp.float32:
    """The lesser length at two nodes, of those that a way may come from: bits 0 and 1."""
    best = wp.float32(wp.inf)
    if (entries & 1) != 0:
        best = length[after]
    if (entries & 2) != 0:
        best = wp.min(best, length[before])
    return best


@wp.func
def _reach_beside(
    node: int,
    here: wp.float32,
    waiting: int,
    rows: int,
    entries: wp.array[wp.uint16],
    cost: wp.array[wp.float32],
    length: wp.array[wp.float32],
    heap: wp.array[int],
    place: wp.array[int],
) -> int:
    """Bring the nodes beside one that is done up to date; how many are in the heap then."""
    count = int(waiting)
    for s in range(4):
        other = _node_beside(node, s, rows)
        if other >= 0 and other < length.shape[0]:
            may = int(entries[other])
            # Who is nearer than this node is done, or has been reached from one that is.
            if (may & (17 << (s ^ 1))) != 0 and place[other] != _DONE and length[other] > here:
                step = cost[other]
                t = here + step + _NO_WAY
                if (may & (1 << (s ^ 1))) != 0:
                    a = _least_beside(length, may, other + rows, other - rows)
                    b = _least_beside(length, may >> 2, other + 1, other - 1)
                    t = wp.min(a, b) + step
                    if wp.abs(a - b) < step:
                        t = wp.float32(0.5) * (a + b + wp.sqrt(wp.float32(2.0) * step * step - (a - b) * (a - b)))
                if t < length[other]:
                    length[other] = t
                    if place[other] == _CLOSED:
                        heap[count] = other
                        place[other] = count
                        count += 1
                    _sift_up(heap, place, length, place[other])
    return count


@wp.kernel
def _march(
    first: int,
    rows: int,
    all_entries: wp.array2d[wp.uint16],
    all_costs: wp.array2d[wp.float32],
    seed: wp.array[int],
    seeds: wp.array[int],
    copied: wp.array[int],
    copy: wp.array[int],
    copies: wp.array[int],
    all_lengths: wp.array2d[wp.float32],
    all_heaps: wp.array2d[int],
    all_places: wp.array2d[int],
):
    f = first + wp.tid()
    entries = all_entries[f]
    cost = all_costs[f]
    length = all_lengths[f]
    heap = all_heaps[f]
    place = all_places[f]
    count = int(0)
    for k in range(seeds[f], seeds[f + 1]):
        heap[count] = seed[k]
        place[seed[k]] = count
        _sift_up(heap, place, length, count)
        count += 1
    while count > 0:
        node = int(heap[0])
        count -= 1
        if count > 0:
            heap[0] = int(heap[count])
            _sift_down(heap, place, length, count)
        place[node] = _DONE
        here = length[node]
        count = _reach_beside(node, here, count, rows, entries, cost, length, heap, place)
        if (int(entries[node]) & _HAS_COPIES) != 0:
            for k in range(copies[f], copies[f + 1]):
                if copied[k] == node:
                    length[copy[k]] = here
                    place[copy[k]] = _DONE
                    count = _reach_beside(copy[k], here, count, rows, entries, cost, length, heap, place)


@wp.kernel
def _descend(
    first: int,
    size: int,
    rows: int,
    entries: wp.array2d[wp.uint16],
    length: wp.array2d[wp.float32],
    direction: wp.array2d[wp.vec2f],
):
    """The unit vector downhill from each node, over steps that are open, or else through a narrow door."""
    i = first + wp.tid()
    f = i / size
    node = i - f * size
    here = length[f, node]
    may = int(entries[f, node])
    if (may & 255) == 0 or not here < wp.float32(wp.inf):
        return
    down = wp.vec2f()
    for axis in range(2):
        best = here
        drop = wp.float32(0.0)
        for s in range(2 * axis, 2 * axis + 2):
            if (may & (17 << s)) != 0:
                there = length[f, _node_beside(node, s, rows)]
                if (may & (1 << s)) == 0:
                    there += _NO_WAY
                if there < best:
                    best = there
                    drop = here - there
                    if s == 2 * axis + 1:
                        drop = there - here
        down[axis] = drop
    if wp.length_sq(down) > wp.float32(0.0):
        direction[f, node] = wp.normalize(down)
