"""The bound that forbids passing through: after the solve, moves are shortened until a plane separates every pair.

Question: which part of its move may each vertex make so that no edge ever meets a face on the way?
Method:   an edge A and a face B without a common vertex, apart when the step begins, have a direction n along which A
          lies beyond B, by a gap g. As all vertices go along straight lines at the same rate, what A and B lose of that
          gap is at most hA + hB, the most any of their vertices passes the first one of its side. With
          hA + hB <= 0.9 (g - least) they stay apart: n certifies the pair, in any frame that moves along with both.
          Pairs without a certificate share the gap: A may lose 0.9 (g - least) hA / (hA + hB), and each vertex keeps
          the part of its move that respects this. Then the shortened moves are tested again, until all pairs hold.
Sound:    the answer is the certified motion itself, whatever the solver did and whichever rows it had: candidates are
          all pairs whose moving boxes meet, ears of surfaces as edges without length, and pairs of edges that have a
          vertex in every face of each other (`hinges`): no surface passes through another, whatever the topology.
          Only what is held on both sides is left alone. If shortening vertices does not do, bodies that touch move as
          one. A move that is not finite is never certified.
Known as: truncation of displacements by separating planes (the planar "divide and truncate" of Newton's VBD solver);
          the aim is that of a collision-free step size (Li et al. 2020), which shortens all moves alike.
Drift:    moves are shortened relative to the mean move of the bodies that touch, unless one is held: what falls
          together is not slowed down. What free islands lose of their momentum is given back to their velocities.
Impacts:  bodies that meet fast, or press so, make a part of the step as a whole (`impact`).
A surface carried by coarser dofs is held back through them.
Device:   an iteration reads and writes device arrays only, and does nothing once all pairs hold; so a few of them are
          part of a captured CUDA graph, and the host asks afterwards whether they were enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox, TreeArrays, apart_in_lanes, boxes_meet
from tangere.bvh.wide import CONE_ROWS
from tangere.geometry.simd import lanes_by_mask
from tangere.runtime import SOUND, PreparedLaunch, reserve_slots
from tangere.soft.contact.cpu.simd_candidates import SCRATCH_ROW
from tangere.soft.contact.detection import HeldCrossings
from tangere.soft.contact.islands import ContactIslands, MassMoves, MeanMoves
from tangere.soft.model.assembled_bodies import AssembledBodies, DofArrays, struct_of
from tangere.soft.safe_step.cpu.simd_crossing import simd_crossing
from tangere.soft.safe_step.impact import ImpactArrays, ImpactVelocity
from tangere.soft.safe_step.patches import Patches, contains_cluster
from tangere.soft.safe_step.separating_direction import VertexMoves, may_cross
from tangere.soft.safe_step.shortening import Shortening
from tangere.soft.safe_step.truncation_state import (
    ACTIVE,
    FOUND,
    ISLAND_ITERATIONS,
    ITERATION,
    LIMITED,
    LOCAL_ITERATIONS,
    NOT_FINITE,
    ROWS,
    PairBuffer,
)

wp.set_module_options(SOUND)

#: Patches worth a thread: each takes some microseconds.
GRAIN = 32
#: Pairs without certificate there is room for at first.
LEAST_ROOM = 8192


@dataclass(frozen=True)
class TruncationReport:
    """What the truncation of a step did."""

    iterations: int = 0  #: times moves were shortened
    limited_vertices: int = 0  #: surface vertices that ran out of room in the first iteration
    lost_motion: float = 0.0  #: mean part of the moves that was lost
    driven_part: float = 1.0  #: least part of its move that a driven body made, less than 1 where it was held back
    impact_substep: float = 1.0  #: least part of the step that a body made, less than 1 where bodies meet or press fast


class Truncation:
    """Shortens the moves of one simulation's steps."""

    def __init__(
        self,
        assembly: AssembledBodies,
        patches: Patches,
        islands: ContactIslands,
        start: wp.array,
        surface: tuple[wp.array, wp.array],
        map_end: PreparedLaunch,
        rows: wp.array,
        least: float,
        distance: float,
        few_sweeps: bool,
        dt: float,
        held: HeldCrossings,
    ) -> None:
        """Prepare.

        Args:
            start: where the dofs are when a step begins.
            surface: the surface vertices when it begins and where the dofs carry them; the second is kept up to date.
            map_end: carries the surface along with the dofs.
            rows: (1,) int32, how many contacts there are: read with the state, so that the host asks but once.
            least: the gap that is never used up [m].
            distance: below which surfaces push each other [m]; pairs that come nearer by more in a step meet fast.
            few_sweeps: whether the solver has fewer than the bodies need.
            dt: length of a step [s].
            held: is told which edges and faces had to be held.
        """
        device = assembly.device
        self._assembly, self._patches, self._islands, self._least = assembly, patches, islands, least
        self._surface, self._map_end = surface, map_end
        self._goal = wp.zeros_like(assembly.dofs.x)
        self.state = wp.zeros(8, dtype=wp.int32, device=device)  #: see `truncation_state`
        self._known = self.state.numpy().copy()
        searching = 0 if patches.per_feature else len(patches.lists.edges.units)
        self._scratch = wp.empty((searching, SCRATCH_ROW), dtype=wp.int32, device=device)
        self._no_cones = wp.empty((0, CONE_ROWS), dtype=wp.float64, device=device)
        self._found = PairBuffer(wp.vec2i, device, LEAST_ROOM)
        self._moves = MassMoves(assembly, self._goal, start)
        self._hinged = patches.hinged
        self._surface_moves = struct_of(
            VertexMoves, device, start=surface[0], end=surface[1], traits=assembly.surface.traits, least=least
        )
        features = [patches.edges, self._hinged.faces, assembly.surface, self._surface_moves]
        self._shortening = Shortening(
            assembly, features, islands, start, self._goal, self.state, distance, few_sweeps, dt, held
        )
        shortening = self._shortening
        self._drift = MeanMoves(islands, self._moves, shortening.drift)
        #: Where the dofs would be had all bodies made the whole step; what of its mean move each body has lost [m].
        self.reached, self.lost_drift = wp.zeros_like(assembly.dofs.x), wp.zeros_like(shortening.drift)
        due = wp.zeros_like(assembly.dofs.x)
        self._missing = MassMoves(assembly, due, self.reached)
        self._find_lost_drift = MeanMoves(islands, self._missing, self.lost_drift)
        self._impact_velocity = ImpactVelocity(
            assembly, islands, start, self._goal, shortening.drift, shortening.substep.arrays.velocity_kept, dt
        )
        moves = [assembly.dofs, dt, start, self._goal, shortening.drift]
        moves += [shortening.substep.arrays, self._impact_velocity.factor, shortening.part, self.reached, due]
        self._find_reached = PreparedLaunch(_find_reached, moves, device, grain=8192)
        self._begin = PreparedLaunch(_begin, [rows, self.state], device, serial=True)
        self._check_finite = PreparedLaunch(_check_finite, [self._moves.sums, self.state], device, serial=True)
        self._count_found = PreparedLaunch(_count_found, [self._found.counts, self.state], device, serial=True)

    def begin(self) -> None:
        """Look whether the moves of the dofs, from the start of the step to where they are, have a certificate."""
        assembly = self._assembly
        self._map_end(len(assembly.surface.rest))
        wp.copy(self._goal, assembly.dofs.x)
        self._moves()
        self._shortening.begin()
        self._hinged.begin()
        self._begin(1)
        self._check_finite(len(self._moves.sums))
        self._find(None)

    def iterate(self) -> None:
        """Shorten moves, and look again; does nothing when all hold."""
        self._shortening.substep.merge_islands(self._found)
        self._islands.compress()
        self._drift()
        changed = self._shortening(self._found)
        self._map_end(len(self._assembly.surface.rest))
        self._find(changed)

    def finished(self) -> bool:
        """Whether no other iteration is needed; on CUDA the device is asked. After too many nothing moves at all."""
        self._known = self.state.numpy().copy()
        if self._known[int(ACTIVE)] == 0 or self.overflow or self.not_finite:
            return True
        # Groups merge at most as often as there are bodies; after that nothing moves.
        if self._known[int(ITERATION)] < int(LOCAL_ITERATIONS) + int(ISLAND_ITERATIONS) + len(self._assembly):
            return False
        wp.copy(self._assembly.dofs.x, self._shortening.start)
        self._map_end(len(self._assembly.surface.rest))
        self._shortening.part.zero_()
        self._shortening.substep.arrays.fraction.fill_(1.0)
        return True

    @property
    def not_finite(self) -> bool:
        """Whether the moves that were asked for are not finite; then nothing is certified."""
        return bool(self._known[int(NOT_FINITE)])

    def restore_momentum(self) -> None:
        """Find what was made of the step and what momentum islands without held dofs are owed, if any was held back."""
        if self._assembly.device.is_cuda or self._known[int(ITERATION)] > 0:
            self._impact_velocity()
            self._find_reached(len(self.reached))
            self._missing()
            self._find_lost_drift()
        else:
            wp.copy(self.reached, self._assembly.dofs.x)
            self.lost_drift.zero_()

    @property
    def rows(self) -> int:
        """How many contacts there were, whether or not there was room for them."""
        return int(self._known[int(ROWS)])

    @property
    def overflow(self) -> int:
        """How many pairs without certificate there were, where that was more than there is room for, else 0."""
        found = int(self._known[int(FOUND)])
        return found if found > len(self._found.items) else 0

    def make_room(self, count: int) -> None:
        """For at least so many pairs without certificate."""
        self._found.make_room(count)

    @property
    def report(self) -> TruncationReport:
        """What was done in the last step."""
        iterations = int(self._known[int(ITERATION)])
        if not iterations:
            return TruncationReport()
        part, fraction = self._shortening.part.numpy(), self._shortening.substep.arrays.fraction.numpy()
        body, driven = self._assembly.dofs.body.numpy(), self._shortening.driven()
        made = (part * fraction[body])[driven].min(initial=1.0)
        return TruncationReport(iterations, self.limited, float(1.0 - part.mean()), float(made), float(fraction.min()))

    @property
    def limited(self) -> int:
        """Surface vertices that ran out of room in the last step."""
        return int(self._known[int(LIMITED)]) if self._known[int(ITERATION)] else 0

    def _find(self, changed: wp.array | None) -> None:
        """Pairs (edge, face) that have no certificate, neither of their patch nor of their own.

        Args:
            changed: (s,) uint8, the vertices whose moves are new since the last call; None: all.
        """
        if self._assembly.device.is_cpu and not self.state.numpy()[int(ACTIVE)]:
            return
        patches, lists, tree = self._patches, self._patches.lists, self._patches.tree
        start, end = self._surface
        fitted = patches.fit_moving(start, end, self._least, changed, wanted=self.state)
        members, boxes = lists.edges, fitted.boxes
        ours = [members.units, members.features, members.ranges, patches.edges, fitted.vertex_boxes]
        if fitted.bvh8 is not None:
            bvh8 = fitted.bvh8
            inputs = [*ours, fitted.certified, lists.octet_offsets, lists.octets, self._no_cones, fitted.changed]
            inputs += [bvh8.changed, tree.first, lists.first_cluster, tree.clusters, boxes.nodes, bvh8.rows]
            inputs += [bvh8.levels, boxes.lanes, tree.corners, tree.items, tree.order]
            inputs += [self._surface_moves, lanes_by_mask(), self._scratch]
            self._found.run(simd_crossing, len(members.units), inputs, GRAIN)
        else:
            inputs = [self.state, *ours, fitted.overlapping, fitted.changed, fitted.dirty, fitted.certified]
            inputs += [lists.cluster_offsets, lists.clusters, tree.arrays, boxes.nodes, boxes.lanes]
            inputs += [self._surface_moves]
            self._found.run(_find_crossing, len(members.units), inputs, GRAIN)
        self._hinged.append_uncertified(self._found, self.state, self._surface_moves)
        self._count_found(1)


@wp.kernel
def _begin(first: int, rows: wp.array[int], state: wp.array[int]):
    """Before the first look (one thread)."""
    for k in range(state.shape[0]):
        state[k] = 0
    state[ACTIVE] = 1
    state[ROWS] = rows[0]


@wp.kernel
def _find_reached(
    first: int,
    dofs: DofArrays,
    dt: wp.float64,
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    drift: wp.array[wp.vec3d],
    impact: ImpactArrays,
    factor: wp.array[wp.float64],
    part: wp.array[wp.float64],
    reached: wp.array[wp.vec3d],
    due: wp.array[wp.vec3d],
):
    """What a body that made a part of the step does in a whole one, and what it is due without shortening.

    Forces act on its velocity for that part only, so that gravity gives what the fall takes; an impact acts as a whole,
    on what it hits, and is owed so to all of the island.
    """
    i = first + wp.tid()
    b = dofs.body[i]
    reached[i] = dofs.x[i]
    due[i] = goal[i]
    fraction = impact.fraction[b]
    if fraction < wp.float64(1.0):
        on = dt * dofs.v[i]
        move = drift[b] + factor[b] * impact.velocity_kept[b] * part[i] * (goal[i] - start[i] - drift[b])
        if impact.velocity_kept[b] == wp.float64(1.0):
            move = on + fraction * (move - on)
        if impact.impacted[b] == 0:
            due[i] = start[i] + on + fraction * (goal[i] - start[i] - on)
        reached[i] = start[i] + move


@wp.kernel
def _check_finite(first: int, sums: wp.array[wp.vec4d], state: wp.array[int]):
    """One move that is not finite makes a sum of moves so (one thread on CPU)."""
    k = first + wp.tid()
    total = sums[k][0] + sums[k][1] + sums[k][2]
    if not (wp.abs(total) < wp.float64(1.0e300)):
        state[NOT_FINITE] = 1


@wp.kernel
def _count_found(first: int, counts: wp.array[wp.int64], state: wp.array[int]):
    """Goes on while pairs are found, and keeps the largest number of them (one thread)."""
    found = int(wp.min(counts[0], wp.int64(2147483647)))
    state[FOUND] = wp.max(state[FOUND], found)
    if found == 0:
        state[ACTIVE] = 0


@wp.kernel
def _find_crossing(
    first: int,
    shard: int,
    state: wp.array[int],
    units: wp.array[wp.vec4i],
    features: wp.array[int],
    ranges: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    boxes: wp.array[MovingBox],
    overlapping: wp.array[wp.uint8],
    changed: wp.array[wp.uint8],
    dirty: wp.array[wp.uint8],
    certified: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    moves: VertexMoves,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """The faces that the edges of a patch, or a single edge, have no certificate against."""
    unit = units[first + wp.tid()]
    top = unit[0]
    patch = unit[1]
    if state[ACTIVE] == 0 or (tree.skip[top] == top + 1 and overlapping[tree.cluster[top]] == wp.uint8(0)):
        return
    if unit[3] == unit[2] + 1 and unit[2] >= ranges[wp.max(tree.cluster[top], 0)][1]:
        return  # a place for a feature that is not there
    smooth = certified[patch] == 1
    box = nodes[top]
    if unit[3] == unit[2] + 1:
        box = wp.min(boxes[edges[features[unit[2]], 0]], boxes[edges[features[unit[2]], 1]])
    node = int(0)
    while node < tree.skip.shape[0]:
        if not boxes_meet(box, nodes[node]) or (dirty[top] | dirty[node]) == wp.uint8(0):
            node = tree.skip[node]
        elif tree.cluster[node] < 0:
            node = node + 1
        elif smooth and contains_cluster(
            clusters, cluster_offsets[patch], cluster_offsets[patch + 1], tree.cluster[node]
        ):
            node = tree.skip[node]
        else:
            for k in range(top, tree.skip[top]):
                own = tree.cluster[k]
                if own >= 0:
                    if (changed[own] | changed[tree.cluster[node]]) != wp.uint8(0) and boxes_meet(
                        nodes[k], nodes[node]
                    ):
                        for e in range(wp.max(unit[2], ranges[own][0]), wp.min(unit[3], ranges[own][1])):
                            i = features[e]
                            v0 = edges[i, 0]
                            v1 = edges[i, 1]
                            reached = wp.min(boxes[v0], boxes[v1])
                            if boxes_meet(reached, nodes[node]):
                                separated = apart_in_lanes(reached, lanes, 12 * tree.cluster[node])
                                for j in range(tree.first[node], tree.last[node] + 1):
                                    if separated[j - tree.first[node]] <= 0:
                                        i0 = tree.items[j, 0]
                                        i1 = tree.items[j, 1]
                                        i2 = tree.items[j, 2]
                                        if i0 != v0 and i1 != v0 and i2 != v0 and i0 != v1 and i1 != v1 and i2 != v1:
                                            if may_cross(v0, v1, i0, i1, i2, moves):
                                                slot = reserve_slots(counts, shard, 1, capacity)
                                                if slot >= 0:
                                                    out[slot] = wp.vec2i(i, tree.order[j])
            node = tree.skip[node]
