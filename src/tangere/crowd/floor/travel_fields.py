"""How far it is to a place on a floor plan, and which way: one field per place and width of people.

Question: which way does somebody of some radius go from here, and how long is it?
Method:   nodes no farther than a part of a step from where the centre of a disc of the radius may be are free; the rest
          of the floor is a band along the walls. From the nodes of the goal the way is found by fast marching over the
          free nodes, slower near walls so that ways keep off corners; from free nodes it goes on into the band, and
          never back. Steps that a wall cuts are no steps, nor are those through doors too narrow for the radius.
          The direction at a node is downhill from it; between nodes it is interpolated.
Sound:    a door that is wide enough is open on every raster: nodes are nearer to each other than four fifths of the
          radius. A door that `FloorPlan.doors` tells is closed. Lengths are right to about a node.
Known as: eikonal equation by the fast marching method (Sethian 1996); floor field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.crowd.floor.floor_plan import FloorPlan
from tangere.crowd.floor.narrow_doors import narrow_gaps, shapely_library
from tangere.crowd.floor.wall_raster import Raster
from tangere.runtime import SOUND, launch

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


@wp.struct
class FieldTable:
    """Fields one after the other, nodes of each by column."""

    low: wp.vec2d
    side: wp.float64
    columns: int
    rows: int
    direction: wp.array[wp.vec2f]
    length: wp.array[wp.float32]  # of the way from a node [m]; inf: there is none
    time: wp.array[wp.float32]  # the same, longer where it is crowded


class WalkableNodes:
    """The nodes of a plan for people of one radius."""

    def __init__(self, plan: FloorPlan, raster: Raster, radius: float) -> None:
        self.raster, self.radius, self.plan = raster, radius, plan
        cut_x, cut_y = raster.cuts(plan.walls)
        inside = np.cumsum(cut_x, axis=0) % 2 == 1
        gaps = narrow_gaps(plan.polygon, plan.walls, radius)
        if len(gaps):
            # A little longer than from wall to wall, so that nothing slips by the ends.
            gaps = gaps + 0.02 * (gaps - gaps[:, ::-1])
            more_x, more_y = raster.cuts(gaps)
            cut_x, cut_y = cut_x + more_x, cut_y + more_y
        # bits 0 to 3: the step to the node after or before in x, after or before in y is open
        steps = np.zeros(raster.shape, np.uint8)
        steps[:-1] |= (cut_x[1:] == 0).astype(np.uint8)
        steps[1:] |= (cut_x[1:] == 0).astype(np.uint8) << 1
        steps[:, :-1] |= (cut_y[:, 1:] == 0).astype(np.uint8) << 2
        steps[:, 1:] |= (cut_y[:, 1:] == 0).astype(np.uint8) << 3
        near = self._distance_to_walls()
        free = inside & (near >= radius - _DIAGONAL * raster.side)
        kinds = np.where(free, 1, np.where(inside, 2, 0)).astype(np.uint8)
        slowness = 1.0 + (_SLOWER - 1.0) * np.clip((_KEPT * radius - near) / (_KEPT * radius), 0.0, 1.0)
        self.kinds = kinds.ravel()
        self.entries = _entries(kinds, steps).ravel()
        self.slowness = slowness.ravel().astype(np.float32)

    def _distance_to_walls(self) -> np.ndarray:
        """(columns, rows) as far as one and a half radii; inf beyond."""
        reach = _KEPT * self.radius
        raster, walls = self.raster, self.plan.walls
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

    def seeds(self, goal: Any) -> tuple[np.ndarray, np.ndarray]:
        """Nodes in a goal or next to it with no wall between, and how far from it they are [m]."""
        shapely, raster = shapely_library(), self.raster
        low, high = np.array(goal.bounds[:2]), np.array(goal.bounds[2:])
        first = np.clip(np.floor((low - raster.origin) / raster.side).astype(int) - 1, 0, np.array(raster.shape) - 1)
        last = np.clip(np.ceil((high - raster.origin) / raster.side).astype(int) + 1, 0, np.array(raster.shape) - 1)
        i, j = (k.ravel() for k in np.mgrid[first[0] : last[0] + 1, first[1] : last[1] + 1])
        nodes = i * raster.rows + j
        usable = self.kinds[nodes] != 0
        i, j, nodes = i[usable], j[usable], nodes[usable]
        points = shapely.points(raster.origin + raster.side * np.stack([i, j], axis=1))
        away = shapely.distance(points, goal)
        near = away <= 1.5 * raster.side
        nodes, away, points = nodes[near], away[near], points[near]
        ways = shapely.shortest_line(points, goal)
        free = (away == 0.0) | ~shapely.intersects(shapely.boundary(self.plan.polygon), ways)
        nodes, away = nodes[free], away[free]
        kinds = self.kinds[nodes]
        if (kinds == 1).any():  # the band leads to nowhere but out of it
            nodes, away = nodes[kinds == 1], away[kinds == 1]
        return nodes.astype(np.int32), away.astype(np.float32)


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


def raster_for(plan: FloorPlan, radius: float) -> Raster:
    """Nodes near enough for people of the least radius."""
    side = max(_LEAST_SPACING, min(_SPACING, _SPACING_PART * radius))
    return Raster.around(plan.bounds, side, shift=0.37)


def marched(
    pairs: list[tuple[WalkableNodes, Any]], crowding: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(fields, nodes) lengths [m] and (fields, nodes, 2) directions of a field for each terrain and goal.

    Args:
        crowding: (nodes,) how much slower it is at each; None: nowhere.
    """
    if not pairs:
        return np.empty((0, 0), np.float32), np.empty((0, 0, 2), np.float32)
    raster = pairs[0][0].raster
    size = raster.columns * raster.rows
    seeds = [terrain.seeds(goal) for terrain, goal in pairs]
    first = np.cumsum([0, *(len(nodes) for nodes, _ in seeds)]).astype(np.int32)
    length = np.full((len(pairs), size), np.inf, np.float32)
    for row, (nodes, away) in zip(length, seeds, strict=True):
        row[nodes] = away
    slow = [raster.side * terrain.slowness * (1.0 if crowding is None else crowding) for terrain, _ in pairs]
    arrays = {
        "entries": (np.stack([terrain.entries for terrain, _ in pairs]), wp.uint8),
        "cost": (np.stack(slow).astype(np.float32), wp.float32),
        "seed": (np.concatenate([nodes for nodes, _ in seeds]).astype(np.int32), wp.int32),
        "first": (first, wp.int32),
    }
    inputs = [wp.array(values, dtype=kind, device="cpu") for values, kind in arrays.values()]
    lengths = wp.array(length, dtype=wp.float32, device="cpu")
    heap = wp.empty((len(pairs), size), dtype=wp.int32, device="cpu")
    place = wp.full((len(pairs), size), -1, dtype=wp.int32, device="cpu")
    directions = wp.zeros((len(pairs), size), dtype=wp.vec2f, device="cpu")
    cpu = wp.get_device("cpu")
    launch(_march, len(pairs), [raster.rows, *inputs], [lengths, heap, place], device=cpu, grain=1)
    launch(_descend, len(pairs) * size, [size, raster.rows, inputs[0], lengths], [directions], device=cpu)
    return lengths.numpy(), directions.numpy()


def field_table(raster: Raster, lengths: np.ndarray, directions: np.ndarray, device: wp.Device) -> FieldTable:
    """The same for kernels."""
    table = FieldTable()
    table.low, table.side = wp.vec2d(*raster.origin), raster.side
    table.columns, table.rows = raster.shape
    table.direction = wp.array(directions.reshape(-1, 2), dtype=wp.vec2f, device=device)
    table.length = wp.array(lengths.ravel(), dtype=wp.float32, device=device)
    table.time = wp.clone(table.length)
    return table


@wp.func
def way_length(f: FieldTable, length: wp.array[wp.float32], field: int, x: wp.vec3d) -> wp.float32:
    """The least way from x over a node around it [m]; inf: there is none."""
    i = wp.clamp(int(wp.floor((x[0] - f.low[0]) / f.side)), 0, f.columns - 2)
    j = wp.clamp(int(wp.floor((x[1] - f.low[1]) / f.side)), 0, f.rows - 2)
    best = wp.float32(wp.inf)
    for di in range(2):
        for dj in range(2):
            at = length[field * f.columns * f.rows + (i + di) * f.rows + j + dj]
            dx = x[0] - f.low[0] - wp.float64(i + di) * f.side
            dy = x[1] - f.low[1] - wp.float64(j + dj) * f.side
            best = wp.min(best, at + wp.float32(wp.sqrt(dx * dx + dy * dy)))
    return best


@wp.func
def way_direction(f: FieldTable, field: int, x: wp.vec3d) -> wp.vec3d:
    """The unit direction of the way from x; zero at the goal and where there is no way."""
    u = (x[0] - f.low[0]) / f.side
    v = (x[1] - f.low[1]) / f.side
    i = wp.clamp(int(wp.floor(u)), 0, f.columns - 2)
    j = wp.clamp(int(wp.floor(v)), 0, f.rows - 2)
    a = wp.float32(wp.clamp(u - wp.float64(i), wp.float64(0.0), wp.float64(1.0)))
    b = wp.float32(wp.clamp(v - wp.float64(j), wp.float64(0.0), wp.float64(1.0)))
    base = field * f.columns * f.rows + i * f.rows + j
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


@wp.kernel
def _march(
    first: int,
    rows: int,
    all_entries: wp.array2d[wp.uint8],
    all_costs: wp.array2d[wp.float32],
    seed: wp.array[int],
    seeds: wp.array[int],
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
        for s in range(4):
            other = _node_beside(node, s, rows)
            if other >= 0 and other < length.shape[0]:
                may = int(entries[other])
                # Who is nearer than this node is done, or has been reached from one that is.
                if (may & (1 << (s ^ 1))) != 0 and place[other] != _DONE and length[other] > here:
                    a = _least_beside(length, may, other + rows, other - rows)
                    b = _least_beside(length, may >> 2, other + 1, other - 1)
                    step = cost[other]
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


@wp.kernel
def _descend(
    first: int,
    size: int,
    rows: int,
    entries: wp.array2d[wp.uint8],
    length: wp.array2d[wp.float32],
    direction: wp.array2d[wp.vec2f],
):
    """The unit vector downhill from each node, over steps that are open."""
    i = first + wp.tid()
    f = i / size
    node = i - f * size
    here = length[f, node]
    may = int(entries[f, node])
    if may == 0 or not here < wp.float32(wp.inf):
        return
    down = wp.vec2f()
    for axis in range(2):
        best = here
        drop = wp.float32(0.0)
        for s in range(2 * axis, 2 * axis + 2):
            if (may & (1 << s)) != 0:
                there = length[f, _node_beside(node, s, rows)]
                if there < best:
                    best = there
                    drop = here - there
                    if s == 2 * axis + 1:
                        drop = there - here
        down[axis] = drop
    if wp.length_sq(down) > wp.float32(0.0):
        direction[f, node] = wp.normalize(down)
