"""One iteration of the truncation: the gap of each pair without certificate is shared out, and dofs move less far.

`state` is what the device knows about the iterations of a step (`truncation_state`). In the first of them the moves of
single vertices are shortened, ever more; then all bodies of an island make the same part of their moves. Bodies that
meet fast make a part of the step instead, and before that those that press fast one in which they do not
(`impact`).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.detection import HeldCrossings
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.model.assembled_bodies import STILL, AssembledBodies, DofArrays, SurfaceArrays
from tangere.soft.safe_step.impact import ImpactArrays, ImpactSubstep, impact_slot
from tangere.soft.safe_step.separating_direction import (
    VertexMoves,
    allowed_part,
    gap_usage,
    in_frame,
    moving_pair,
    shortest_way,
)
from tangere.soft.safe_step.truncation_state import (
    ACTIVE,
    ALL_NEW,
    ISLAND_ITERATIONS,
    ITERATION,
    LIMITED,
    LOCAL_ITERATIONS,
    SHORT,
    PairBuffer,
)

wp.set_module_options(SOUND)

#: What is left of the limit of a vertex in each iteration that shortens single vertices; in the end they only drift.
LOCAL_FACTORS = (0.999, 0.999, 0.9, 0.5, 0.5, 0.0)
#: Rounding must not let a pair that is just short enough be found again.
ROUNDING = wp.constant(wp.float64(0.999))


class Shortening:
    """Shortens the moves of the dofs from `start` to `goal`, relative to the drift of their islands."""

    def __init__(
        self,
        assembly: AssembledBodies,
        features: list,
        islands: ContactIslands,
        start: wp.array,
        goal: wp.array,
        state: wp.array,
        distance: float,
        few_sweeps: bool,
        dt: float,
        held: HeldCrossings,
    ) -> None:
        """`features` are the edges and faces that pairs name, their surface and its moves; others as `Truncation`."""
        device, bodies, dofs = assembly.device, assembly.body_room, len(assembly.dofs.x)
        self._assembly, self._islands, self._features = assembly, islands, features
        self._state, self.start, self._held = state, start, held
        self.substep = ImpactSubstep(assembly, features, islands, state, distance, few_sweeps, dt)
        self.drift = wp.zeros(bodies, dtype=wp.vec3d, device=device)  #: mean move of the island of each body [m]
        self._last_drift = wp.zeros_like(self.drift)
        self.part, self._new_part = (wp.ones(dofs, dtype=wp.float64, device=device) for _ in range(2))
        self._limit = wp.ones(len(assembly.surface.rest), dtype=wp.float64, device=device)
        self._touched = wp.zeros(bodies, dtype=wp.int32, device=device)
        self._changed = wp.zeros(len(assembly.surface.rest), dtype=wp.uint8, device=device)
        factors = wp.array(LOCAL_FACTORS, dtype=wp.float64, device=device)

        def prepared(kernel: wp.Kernel, *arguments, serial: bool = False) -> PreparedLaunch:
            return PreparedLaunch(kernel, [state, *arguments], device, grain=8192, serial=serial)

        self._begin = prepared(_begin_iteration, self.drift, self._last_drift, serial=True)
        self._count_iteration = prepared(_count_iteration, serial=True)
        carried = [assembly.surface, self.part]
        self._limit_dofs = prepared(_limit_dofs, self._limit, *carried, factors, self._new_part, serial=True)
        whole = [assembly.dofs.body, islands.label, self._touched, self._new_part]
        self._least = wp.ones(bodies, dtype=wp.float64, device=device)
        self._tools = assembly.whole.tool
        moving = [start, goal, assembly.dofs, self._tools]
        self._find_least = prepared(_find_least, *moving, self._new_part, self._least, serial=True)
        self._hold_tools = prepared(_hold_tools, *moving, self._least, self._new_part)
        self._shorten_islands = prepared(_shorten_islands, *whole)
        self._find_changed = prepared(_find_changed, *carried, self._new_part, self._changed)
        moves = [start, goal, self.drift, self.substep.arrays.fraction]
        self._place = prepared(_place, *moves, self._new_part, self.part, assembly.dofs)

    def driven(self) -> np.ndarray:
        """(n,) bool: the dofs of bodies of which nothing is free, that move."""
        dofs = self._assembly.dofs
        return (self._tools.numpy()[dofs.body.numpy()] == 1) & (dofs.v.numpy() != 0.0).any(axis=1)

    def begin(self) -> None:
        """All of every move is left."""
        self._held.count.zero_()
        self.part.fill_(1.0)
        self.substep.begin()

    def __call__(self, found: PairBuffer) -> wp.array:
        """Shorten the moves of these pairs; says which surface vertices go elsewhere now, (s,) uint8."""
        device, vertices, dofs = self._assembly.device, len(self._limit), len(self.part)
        self._begin(1)
        self._limit.fill_(1.0)
        self._touched.zero_()
        inputs = [self._state, found.counts, found.items, *self._features]
        inputs += [self._islands.label, self.drift, self.substep.arrays, self._limit, self._touched]
        inputs += [self._held.pairs, self._held.count]
        launch(_shorten, found.launch_size, inputs, device=device, threads=1)
        self.substep.apply_to_islands()
        self._count_iteration(1)
        wp.copy(self._new_part, self.part)
        self._limit_dofs(vertices)
        self._least.fill_(1.0)
        self._find_least(dofs)
        self._hold_tools(dofs)
        self._shorten_islands(dofs)
        self._find_changed(vertices)
        self._place(dofs)
        return self._changed


@wp.kernel
def _begin_iteration(
    first: int,
    state: wp.array[int],
    drift: wp.array[wp.vec3d],
    last_drift: wp.array[wp.vec3d],
):
    """Where islands have merged all moves that were shortened are new (one thread)."""
    state[SHORT] = 0
    state[ALL_NEW] = 0
    for b in range(drift.shape[0]):
        for c in range(3):
            if state[ITERATION] > 0 and drift[b][c] != last_drift[b][c]:
                state[ALL_NEW] = 1
        last_drift[b] = drift[b]


@wp.kernel
def _count_iteration(first: int, state: wp.array[int]):
    """Pairs that hold in the frame of their island need no iteration; a whole body held back is new (one thread)."""
    if state[SHORT] == 0:
        state[ACTIVE] = 0
    if state[ACTIVE] == 1:
        state[ITERATION] = state[ITERATION] + 1
        if state[ITERATION] > LOCAL_ITERATIONS:
            state[ALL_NEW] = 1


@wp.func
def is_tool_crossing(v0: int, v1: int, j: int, surface: SurfaceArrays) -> bool:
    """Whether of an edge and a face of two bodies one is fixed or driven; no pair of hinged edges."""
    if j >= surface.faces.shape[0] or v0 == v1:
        return False
    f0 = surface.faces[j, 0]
    still = surface.traits[f0] & surface.traits[surface.faces[j, 1]] & surface.traits[surface.faces[j, 2]] & STILL
    return surface.body[v0] != surface.body[f0] and still != (surface.traits[v0] & surface.traits[v1] & STILL)


@wp.kernel
def _shorten(
    first: int,
    state: wp.array[int],
    counts: wp.array[wp.int64],
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    surface: SurfaceArrays,
    moves: VertexMoves,
    label: wp.array[int],
    drift: wp.array[wp.vec3d],
    impact: ImpactArrays,
    limit: wp.array[wp.float64],
    touched: wp.array[int],
    held: wp.array[wp.vec2i],
    held_count: wp.array[int],
):
    """Share out the gap of each pair that has no certificate in the frame of its bodies (one thread on CPU)."""
    k = first + wp.tid()
    if state[ACTIVE] == 0 or wp.int64(k) >= counts[0]:
        return
    i = found[k][0]
    j = found[k][1]
    owner = surface.body[edges[i, 0]]
    pair = moving_pair(edges[i, 0], edges[i, 1], faces[j, 0], faces[j, 1], faces[j, 2], moves)
    pair = in_frame(pair, impact.fraction[owner] * drift[owner])
    way = shortest_way(pair)
    use = gap_usage(way, pair, moves.least)
    lost = use[0] + use[1]
    if lost <= use[2]:
        return
    wp.atomic_add(state, SHORT, 1)
    if state[ITERATION] < LOCAL_ITERATIONS and use[2] >= wp.float64(0.0):
        other = surface.body[faces[j, 0]]
        most = use[2]
        if impact.impacts[impact_slot(owner, other)] == 0:
            most = wp.max(use[2], impact.fast_approach)
        elif wp.length(way) < impact.contact_reach:
            wp.atomic_max(impact.too_fast, owner, 1)
            wp.atomic_max(impact.too_fast, other, 1)
        if lost > most:
            wp.atomic_min(impact.allowed, label[owner], ROUNDING * impact.fraction[owner] * most / lost)
            return
    wp.atomic_max(touched, label[owner], 1)
    if state[ITERATION] == 0 and is_tool_crossing(edges[i, 0], edges[i, 1], j, surface):
        slot = wp.atomic_add(held_count, 0, 1)
        if slot < held.shape[0]:
            held[slot] = found[k]
    if use[2] < wp.float64(0.0):  # they met when the step began, or nearly: nothing may move
        for c in range(2):
            wp.atomic_min(limit, edges[i, c], wp.float64(0.0))
        for c in range(3):
            wp.atomic_min(limit, faces[j, c], wp.float64(0.0))
        return
    n = wp.normalize(way)
    room_a = use[2] * use[0] / lost
    room_b = use[2] - room_a
    a0 = wp.dot(n, pair.e0 - pair.f0)
    a1 = wp.dot(n, pair.e1 - pair.f0)
    low = wp.min(a0, a1)
    wp.atomic_min(limit, edges[i, 0], allowed_part(room_a + a0 - low, -wp.dot(n, pair.d0)))
    wp.atomic_min(limit, edges[i, 1], allowed_part(room_a + a1 - low, -wp.dot(n, pair.d1)))
    b1 = wp.dot(n, pair.f1 - pair.f0)
    b2 = wp.dot(n, pair.f2 - pair.f0)
    high = wp.max(wp.float64(0.0), wp.max(b1, b2))
    wp.atomic_min(limit, faces[j, 0], allowed_part(room_b + high, wp.dot(n, pair.m0)))
    wp.atomic_min(limit, faces[j, 1], allowed_part(room_b + high - b1, wp.dot(n, pair.m1)))
    wp.atomic_min(limit, faces[j, 2], allowed_part(room_b + high - b2, wp.dot(n, pair.m2)))


@wp.kernel
def _limit_dofs(
    first: int,
    state: wp.array[int],
    limit: wp.array[wp.float64],
    surface: SurfaceArrays,
    part: wp.array[wp.float64],
    factors: wp.array[wp.float64],
    new_part: wp.array[wp.float64],
):
    """The carriers of a limited vertex keep at most that part of what the freest of them had (one thread on CPU)."""
    v = first + wp.tid()
    if state[ACTIVE] == 0 or state[ITERATION] > LOCAL_ITERATIONS:
        return
    if limit[v] < wp.float64(1.0):
        if state[ITERATION] == 1:
            wp.atomic_add(state, LIMITED, 1)
        factor = factors[wp.min(state[ITERATION], factors.shape[0]) - 1]
        most = wp.float64(0.0)
        for c in range(4):
            if surface.weights[v][c] != wp.float64(0.0):
                most = wp.max(most, part[surface.carriers[v][c]])
        for c in range(4):
            if surface.weights[v][c] != wp.float64(0.0):
                wp.atomic_min(new_part, surface.carriers[v][c], most * limit[v] * factor)


@wp.func
def is_driven(
    i: int, start: wp.array[wp.vec3d], goal: wp.array[wp.vec3d], dofs: DofArrays, tool: wp.array[int]
) -> bool:
    """Whether a dof is of a body of which nothing is free, and moves."""
    return tool[dofs.body[i]] == 1 and wp.length(goal[i] - start[i]) > wp.float64(0.0)


@wp.kernel
def _find_least(
    first: int,
    state: wp.array[int],
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    dofs: DofArrays,
    tool: wp.array[int],
    new_part: wp.array[wp.float64],
    least: wp.array[wp.float64],
):
    """The least part of their moves that the dofs of a driven body make (one thread on CPU)."""
    i = first + wp.tid()
    if state[ACTIVE] == 1 and new_part[i] < wp.float64(1.0):
        if is_driven(i, start, goal, dofs, tool):
            wp.atomic_min(least, dofs.body[i], new_part[i])


@wp.kernel
def _hold_tools(
    first: int,
    state: wp.array[int],
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    dofs: DofArrays,
    tool: wp.array[int],
    least: wp.array[wp.float64],
    new_part: wp.array[wp.float64],
):
    """All of a driven body makes the part of its move that its slowest dof makes: it keeps its shape."""
    i = first + wp.tid()
    if state[ACTIVE] == 1 and least[dofs.body[i]] < wp.float64(1.0):
        if is_driven(i, start, goal, dofs, tool):
            new_part[i] = least[dofs.body[i]]


@wp.kernel
def _find_changed(
    first: int,
    state: wp.array[int],
    surface: SurfaceArrays,
    before: wp.array[wp.float64],
    after: wp.array[wp.float64],
    changed: wp.array[wp.uint8],
):
    v = first + wp.tid()
    found = wp.uint8(state[ALL_NEW])
    for c in range(4):
        dof = surface.carriers[v][c]
        if surface.weights[v][c] != wp.float64(0.0) and before[dof] != after[dof]:
            found = wp.uint8(1)
    changed[v] = found


@wp.kernel
def _shorten_islands(
    first: int,
    state: wp.array[int],
    body: wp.array[int],
    label: wp.array[int],
    touched: wp.array[int],
    new_part: wp.array[wp.float64],
):
    """When single vertices do not do, all dofs of islands that touch make the same part of their moves."""
    i = first + wp.tid()
    if state[ACTIVE] == 1 and state[ITERATION] > LOCAL_ITERATIONS and touched[label[body[i]]] == 1:
        most = wp.float64(0.0)
        if state[ITERATION] <= LOCAL_ITERATIONS + ISLAND_ITERATIONS:
            most = wp.float64(1.0)
            for _ in range(state[ITERATION] - LOCAL_ITERATIONS):
                most *= wp.float64(0.5)
        new_part[i] = most


@wp.kernel
def _place(
    first: int,
    state: wp.array[int],
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    drift: wp.array[wp.vec3d],
    fraction: wp.array[wp.float64],
    new_part: wp.array[wp.float64],
    part: wp.array[wp.float64],
    dofs: DofArrays,
):
    """The shortened move of each dof, relative to the drift of its body; nothing drifts that is held."""
    i = first + wp.tid()
    if state[ACTIVE] == 0:
        return
    part[i] = new_part[i]
    dofs.x[i] = goal[i]
    b = dofs.body[i]
    if part[i] < wp.float64(1.0) or fraction[b] < wp.float64(1.0):
        u = drift[b]
        dofs.x[i] = start[i] + fraction[b] * (u + part[i] * (goal[i] - start[i] - u))
