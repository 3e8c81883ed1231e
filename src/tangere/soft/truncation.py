"""The bound that forbids passing through: after the solve, moves are shortened until a plane separates every pair.

Question: which part of its move may each vertex make so that no edge ever meets a face on the way?
Method:   an edge A and a face B without a common vertex, apart when the step begins, have a direction n along which A
          lies beyond B, by a gap g. As all vertices go along straight lines at the same pace, what A and B lose of that
          gap is at most hA + hB, the most any of their vertices passes the first one of its side. With
          hA + hB <= 0.9 (g - least) they stay apart: n certifies the pair, in any frame that moves along with both.
          Pairs without a certificate share the gap: A may lose 0.9 (g - least) hA / (hA + hB), and each vertex keeps
          the part of its move that respects this. Then the shortened moves are tested again, until all pairs hold.
Sound:    the answer is the certified motion itself, whatever the solver did and whichever rows it had: candidates are
          all pairs whose moving boxes meet. If shortening vertices does not do, bodies that touch move as one.
Drift:    moves are shortened relative to the mean move of the bodies that touch, unless one is held: what falls
          together is not slowed down.
A surface carried by coarser dofs is held back through them. (design: soft bodies, section 6)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bound import Lanes, MovingBox, apart_in_lanes, boxes_meet
from tangere.runtime import SOUND, collect, launch, take
from tangere.soft.assembly import Assembly
from tangere.soft.groups import Groups
from tangere.soft.patches import Patches, around
from tangere.soft.prepared import Prepared
from tangere.soft.separation import crosses, nearest_way, part_within, use_of_gap

wp.set_module_options(SOUND)

__all__ = ["Held", "Truncation"]

#: What is left of the limit of a vertex in each round that shortens single vertices; in the end they only drift.
SHORTER = (0.999, 0.999, 0.9, 0.5, 0.5, 0.0)
LOCAL_ROUNDS = 16
#: After so many more, in each of which bodies that touch move half as far, they only drift.
WHOLE_ROUNDS = 4
#: Edges worth a thread: each takes a microsecond or two.
GRAIN = 256


@dataclass(frozen=True)
class Held:
    """What the truncation of a step did."""

    rounds: int = 0  #: times moves were shortened
    vertices: int = 0  #: surface vertices that ran out of room in the first round
    lost: float = 0.0  #: mean part of the moves that was lost


class Truncation:
    """Shortens the moves of one simulation's steps."""

    def __init__(self, assembly: Assembly, patches: Patches, start: wp.array, least: float) -> None:
        """`start` is where the dofs are when a step begins; `least` is the gap that is never used up [m]."""
        device = assembly.device
        self._assembly, self._patches, self._start, self._least = assembly, patches, start, least
        self._goal = wp.zeros_like(assembly.x)
        self._part, self._new_part = (wp.ones(len(assembly.x), dtype=wp.float64, device=device) for _ in range(2))
        self._limit = wp.ones(len(assembly.rest), dtype=wp.float64, device=device)
        self._shortened = wp.zeros(1, dtype=wp.int32, device=device)
        self._drift = wp.zeros(len(assembly.bodies), dtype=wp.vec3d, device=device)
        state = [start, self._goal, assembly.body_of_dof, self._drift, assembly.free, self._part]
        self._place = Prepared(_place, [*state, assembly.x], device, grain=8192)

    def __call__(self, surface_start: wp.array, surface_end: wp.array, map_surface: Prepared, groups: Groups) -> Held:
        """Shorten the moves of the dofs from the start of the step to where they are.

        Args:
            surface_start, surface_end: the surface vertices; the end is where the dofs carry them, kept up to date.
            map_surface: carries the surface along with the dofs.
        """
        assembly = self._assembly
        found = self._uncertified(surface_start, surface_end)
        if not len(found):
            return Held()
        wp.copy(self._goal, assembly.x)
        self._part.fill_(1.0)
        vertices, last_drift = 0, None
        for round_ in range(LOCAL_ROUNDS + WHOLE_ROUNDS + len(assembly.bodies)):
            groups.merge(self._bodies_of(found))
            drift = groups.drift(self._goal, self._start)
            self._drift.assign(drift)
            short, touched = self._shorten(found, surface_start, surface_end)
            if not short:
                return Held(round_, vertices, self._lost())
            if round_ == 0:
                vertices = int((self._limit.numpy() < 1.0).sum())
            if round_ < LOCAL_ROUNDS:
                changed = self._carry(SHORTER[min(round_, len(SHORTER) - 1)])
            else:
                changed = None
                power = round_ - LOCAL_ROUNDS + 1
                self._hold(groups.members(touched), 0.5**power if power <= WHOLE_ROUNDS else 0.0)
            if last_drift is not None and not np.array_equal(drift, last_drift):
                changed = None  # groups have merged: all moves that were shortened are new
            last_drift = drift
            self._place(len(assembly.x))
            map_surface(len(surface_end))
            found = self._uncertified(surface_start, surface_end, changed)
            if not len(found):
                return Held(round_ + 1, vertices, self._lost())
        self._part.zero_()
        self._drift.zero_()
        self._place(len(assembly.x))
        map_surface(len(surface_end))
        return Held(LOCAL_ROUNDS + WHOLE_ROUNDS + len(assembly.bodies), vertices, 1.0)

    def _uncertified(self, start: wp.array, end: wp.array, changed: wp.array | None = None) -> wp.array:
        """Pairs (edge, face) that have no certificate, neither of their patch nor of their own.

        Args:
            changed: (s,) uint8, the vertices whose moves are new since the last call; None: all.
        """
        patches, lists, tree = self._patches, self._patches.lists, self._patches.tree
        fitted = patches.over(start, end, self._least, changed)
        edges = patches.edges_of(fitted.busy)
        inputs = [edges, patches.edges, fitted.vertex_boxes, lists.patch_of_edge, fitted.certified]
        inputs += [lists.cluster_offsets, lists.clusters, tree.first, tree.last, tree.skip, tree.cluster]
        inputs += [fitted.boxes.nodes, fitted.boxes.lanes, tree.items, tree.order, start, end, self._least]
        return collect(_find_crossing, len(edges), inputs, wp.vec2i, device=self._assembly.device, grain=GRAIN)

    def _bodies_of(self, found: wp.array) -> np.ndarray:
        bodies = wp.empty(len(found), dtype=wp.vec2i, device=self._assembly.device)
        inputs = [found, self._patches.edges, self._patches.faces, self._assembly.body_of_vertex]
        launch(_bodies, len(found), inputs, [bodies], device=self._assembly.device)
        return bodies.numpy().reshape(-1, 2)

    def _shorten(self, found: wp.array, start: wp.array, end: wp.array) -> tuple[int, np.ndarray]:
        """Limits of the surface vertices of these pairs; how many pairs need one, and their bodies."""
        device = self._assembly.device
        self._limit.fill_(1.0)
        self._shortened.zero_()
        needs = wp.zeros(len(found), dtype=wp.int32, device=device)
        inputs = [
            found,
            self._patches.edges,
            self._patches.faces,
            start,
            end,
            self._assembly.body_of_vertex,
            self._drift,
            self._least,
        ]
        launch(_shorten, len(found), inputs, [self._limit, self._shortened, needs], device=device, threads=1)
        short = int(self._shortened.numpy()[0])
        return short, self._bodies_of(found)[needs.numpy() == 1] if short else np.empty((0, 2), np.int32)

    def _carry(self, factor: float) -> wp.array:
        """Hold back the dofs that carry surface vertices with a limit; says which vertices that moves, (s,) uint8."""
        wp.copy(self._new_part, self._part)
        inputs = [self._limit, self._assembly.carriers, self._assembly.weights, self._part, factor]
        device = self._assembly.device
        launch(_carry, len(self._limit), inputs, [self._new_part], device=device, threads=1)
        changed = wp.empty(len(self._limit), dtype=wp.uint8, device=device)
        inputs = [self._assembly.carriers, self._assembly.weights, self._part, self._new_part]
        launch(_find_changed, len(changed), inputs, [changed], device=device)
        wp.copy(self._part, self._new_part)
        return changed

    def _hold(self, bodies: np.ndarray, part: float) -> None:
        """Let all dofs of some bodies make the same part of their move."""
        mask = wp.array(bodies.astype(np.int32), dtype=wp.int32, device=self._assembly.device)
        inputs = [self._assembly.body_of_dof, mask, part]
        launch(_hold, len(self._part), inputs, [self._part], device=self._assembly.device)

    def _lost(self) -> float:
        return float(1.0 - self._part.numpy().mean())


@wp.kernel
def _find_crossing(
    first: int,
    shard: int,
    chosen: wp.array[int],
    edges: wp.array2d[int],
    boxes: wp.array[MovingBox],
    patch_of: wp.array[int],
    certified: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    node_first: wp.array[int],
    node_last: wp.array[int],
    skip: wp.array[int],
    cluster: wp.array[int],
    nodes: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    items: wp.array2d[int],
    order: wp.array[int],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """The faces that an edge has no certificate against."""
    i = chosen[first + wp.tid()]
    v0 = edges[i, 0]
    v1 = edges[i, 1]
    patch = patch_of[i]
    smooth = certified[patch] == 1
    box = wp.min(boxes[v0], boxes[v1])
    e0 = start[v0]
    e1 = start[v1]
    d0 = end[v0] - e0
    d1 = end[v1] - e1
    drift = wp.float64(0.5) * (d0 + d1)
    d0 -= drift
    d1 -= drift
    node = int(0)
    while node < skip.shape[0]:
        if not boxes_meet(box, nodes[node]):
            node = skip[node]
        elif cluster[node] < 0:
            node = node + 1
        elif smooth and around(clusters, cluster_offsets[patch], cluster_offsets[patch + 1], cluster[node]):
            node = skip[node]
        else:
            barred = apart_in_lanes(box, lanes, 12 * cluster[node])
            for j in range(node_first[node], node_last[node] + 1):
                if barred[j - node_first[node]] <= 0:
                    i0 = items[j, 0]
                    i1 = items[j, 1]
                    i2 = items[j, 2]
                    if i0 != v0 and i1 != v0 and i2 != v0 and i0 != v1 and i1 != v1 and i2 != v1:
                        if crosses(e0, e1, d0, d1, i0, i1, i2, start, end, drift, least):
                            place = take(counts, shard, 1, capacity)
                            if place >= 0:
                                out[place] = wp.vec2i(i, order[j])
            node = skip[node]


@wp.kernel
def _bodies(
    first: int,
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    body: wp.array[int],
    bodies: wp.array[wp.vec2i],
):
    k = first + wp.tid()
    bodies[k] = wp.vec2i(body[edges[found[k][0], 0]], body[faces[found[k][1], 0]])


@wp.kernel
def _shorten(
    first: int,
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    body: wp.array[int],
    drift: wp.array[wp.vec3d],
    least: wp.float64,
    limit: wp.array[wp.float64],
    shortened: wp.array[int],
    needs: wp.array[int],
):
    """Share out the gap of each pair that has no certificate in the frame of its bodies (one thread on CPU)."""
    k = first + wp.tid()
    i = found[k][0]
    j = found[k][1]
    u = drift[body[edges[i, 0]]]
    e0 = start[edges[i, 0]]
    e1 = start[edges[i, 1]]
    f0 = start[faces[j, 0]]
    f1 = start[faces[j, 1]]
    f2 = start[faces[j, 2]]
    d0 = end[edges[i, 0]] - e0 - u
    d1 = end[edges[i, 1]] - e1 - u
    m0 = end[faces[j, 0]] - f0 - u
    m1 = end[faces[j, 1]] - f1 - u
    m2 = end[faces[j, 2]] - f2 - u
    way = nearest_way(e0, e1, f0, f1, f2)
    use = use_of_gap(way, e0, e1, f0, f1, f2, d0, d1, m0, m1, m2, least)
    if use[0] + use[1] <= use[2]:
        return
    wp.atomic_add(shortened, 0, 1)
    needs[k] = 1
    if use[2] < wp.float64(0.0):  # they met when the step began, or nearly: nothing may move
        for c in range(2):
            wp.atomic_min(limit, edges[i, c], wp.float64(0.0))
        for c in range(3):
            wp.atomic_min(limit, faces[j, c], wp.float64(0.0))
        return
    n = wp.normalize(way)
    room_a = use[2] * use[0] / (use[0] + use[1])
    room_b = use[2] - room_a
    a0 = wp.dot(n, e0 - f0)
    a1 = wp.dot(n, e1 - f0)
    low = wp.min(a0, a1)
    wp.atomic_min(limit, edges[i, 0], part_within(room_a + a0 - low, -wp.dot(n, d0)))
    wp.atomic_min(limit, edges[i, 1], part_within(room_a + a1 - low, -wp.dot(n, d1)))
    b1 = wp.dot(n, f1 - f0)
    b2 = wp.dot(n, f2 - f0)
    high = wp.max(wp.float64(0.0), wp.max(b1, b2))
    wp.atomic_min(limit, faces[j, 0], part_within(room_b + high, wp.dot(n, m0)))
    wp.atomic_min(limit, faces[j, 1], part_within(room_b + high - b1, wp.dot(n, m1)))
    wp.atomic_min(limit, faces[j, 2], part_within(room_b + high - b2, wp.dot(n, m2)))


@wp.kernel
def _carry(
    first: int,
    limit: wp.array[wp.float64],
    carriers: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    part: wp.array[wp.float64],
    factor: wp.float64,
    new_part: wp.array[wp.float64],
):
    """The carriers of a limited vertex keep at most that part of what the freest of them had (one thread on CPU)."""
    v = first + wp.tid()
    if limit[v] < wp.float64(1.0):
        most = wp.float64(0.0)
        for c in range(4):
            if weights[v][c] != wp.float64(0.0):
                most = wp.max(most, part[carriers[v][c]])
        for c in range(4):
            if weights[v][c] != wp.float64(0.0):
                wp.atomic_min(new_part, carriers[v][c], most * limit[v] * factor)


@wp.kernel
def _find_changed(
    first: int,
    carriers: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    before: wp.array[wp.float64],
    after: wp.array[wp.float64],
    changed: wp.array[wp.uint8],
):
    v = first + wp.tid()
    found = wp.uint8(0)
    for c in range(4):
        if weights[v][c] != wp.float64(0.0) and before[carriers[v][c]] != after[carriers[v][c]]:
            found = wp.uint8(1)
    changed[v] = found


@wp.kernel
def _hold(first: int, body: wp.array[int], held: wp.array[int], most: wp.float64, part: wp.array[wp.float64]):
    i = first + wp.tid()
    if held[body[i]] == 1:
        part[i] = most


@wp.kernel
def _place(
    first: int,
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    body: wp.array[int],
    drift: wp.array[wp.vec3d],
    free: wp.array[int],
    part: wp.array[wp.float64],
    x: wp.array[wp.vec3d],
):
    """The shortened move of each dof, relative to the drift of its body."""
    i = first + wp.tid()
    if free[i] == 1:
        x[i] = goal[i]
        if part[i] < wp.float64(1.0):
            u = drift[body[i]]
            x[i] = start[i] + u + part[i] * (goal[i] - start[i] - u)
