"""One iteration of the truncation: the gap of each pair without certificate is shared out, and dofs move less far.

`state` is what the device knows about the iterations of a step (`iteration_state`). In the first of them the moves of
single vertices are shortened, ever more; then all bodies of an island make the same part of their moves. Bodies that
meet fast make a part of the step instead, and before that those that press fast one in which they do not
(`impact_substep`).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.model.assembly import Assembly
from tangere.soft.safe_step.impact_substep import ImpactSubstep, impact_slot
from tangere.soft.safe_step.iteration_state import (
    ACTIVE,
    ALL_NEW,
    ISLAND_ITERATIONS,
    ITERATION,
    LIMITED,
    LOCAL_ITERATIONS,
    SHORT,
)
from tangere.soft.safe_step.pair_buffer import PairBuffer
from tangere.soft.safe_step.separating_direction import allowed_part, gap_usage, shortest_offset

wp.set_module_options(SOUND)

#: What is left of the limit of a vertex in each iteration that shortens single vertices; in the end they only drift.
LOCAL_FACTORS = (0.999, 0.999, 0.9, 0.5, 0.5, 0.0)
#: Rounding must not let a pair that is just short enough be found again.
ROUNDING = wp.constant(wp.float64(0.999))


class Shortening:
    """Shortens the moves of the dofs from `start` to `goal`, relative to the drift of their islands."""

    def __init__(
        self,
        assembly: Assembly,
        features: tuple[wp.array, wp.array],
        islands: ContactIslands,
        start: wp.array,
        goal: wp.array,
        surface: tuple[wp.array, wp.array],
        state: wp.array,
        least: float,
        distance: float,
        few_sweeps: bool,
        dt: float,
    ) -> None:
        """`features` are the edges and faces that pairs name; others as in `Truncation`."""
        device, bodies, dofs = assembly.device, len(assembly.bodies), len(assembly.x)
        self._assembly, self._islands, self._surface = assembly, islands, surface
        self._features = [*features, assembly.body_of_vertex]
        self._state, self._least, self.start = state, least, start
        self.substep = ImpactSubstep(assembly, self._features, islands, surface, state, least, distance, few_sweeps, dt)
        self.drift = wp.zeros(bodies, dtype=wp.vec3d, device=device)  #: mean move of the island of each body [m]
        self._last_drift = wp.zeros_like(self.drift)
        self.part, self._new_part = (wp.ones(dofs, dtype=wp.float64, device=device) for _ in range(2))
        self._limit = wp.ones(len(assembly.rest), dtype=wp.float64, device=device)
        self._touched = wp.zeros(bodies, dtype=wp.int32, device=device)
        self._changed = wp.zeros(len(assembly.rest), dtype=wp.uint8, device=device)
        factors = wp.array(LOCAL_FACTORS, dtype=wp.float64, device=device)

        def prepared(kernel: wp.Kernel, *arguments, serial: bool = False) -> PreparedLaunch:
            return PreparedLaunch(kernel, [state, *arguments], device, grain=8192, serial=serial)

        self._begin = prepared(_begin_iteration, self.drift, self._last_drift, serial=True)
        self._count_iteration = prepared(_count_iteration, serial=True)
        carried = [assembly.carriers, assembly.weights, self.part]
        self._limit_dofs = prepared(_limit_dofs, self._limit, *carried, factors, self._new_part, serial=True)
        whole = [assembly.body_of_dof, islands.label, self._touched, self._new_part]
        self._shorten_islands = prepared(_shorten_islands, *whole)
        self._find_changed = prepared(_find_changed, *carried, self._new_part, self._changed)
        self._place = prepared(
            _place,
            start,
            goal,
            assembly.body_of_dof,
            self.drift,
            self.substep.fraction,
            self._new_part,
            self.part,
            assembly.x,
        )

    def begin(self) -> None:
        """All of every move is left."""
        self.part.fill_(1.0)
        self.substep.begin()

    def __call__(self, found: PairBuffer) -> wp.array:
        """Shorten the moves of these pairs; says which surface vertices go elsewhere now, (s,) uint8."""
        device, vertices, dofs = self._assembly.device, len(self._limit), len(self.part)
        self._begin(1)
        self._limit.fill_(1.0)
        self._touched.zero_()
        inputs = [self._state, found.counts, found.items, *self._features, *self._surface]
        inputs += [
            self._islands.label,
            self.drift,
            self.substep.fraction,
            self.substep.impacts,
            self.substep.fast_approach,
            self.substep.contact_reach,
        ]
        inputs += [self._least]
        outputs = [self._limit, self._touched, self.substep.allowed, self.substep.too_fast]
        launch(_shorten, found.launch_size, inputs, outputs, device=device, threads=1)
        self.substep.apply_to_islands()
        self._count_iteration(1)
        wp.copy(self._new_part, self.part)
        self._limit_dofs(vertices)
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


@wp.kernel
def _shorten(
    first: int,
    state: wp.array[int],
    counts: wp.array[wp.int64],
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    body: wp.array[int],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    label: wp.array[int],
    drift: wp.array[wp.vec3d],
    substep: wp.array[wp.float64],
    impacts: wp.array[int],
    fast_approach: wp.float64,
    contact_reach: wp.float64,
    least: wp.float64,
    limit: wp.array[wp.float64],
    touched: wp.array[int],
    allowed: wp.array[wp.float64],
    too_fast: wp.array[int],
):
    """Share out the gap of each pair that has no certificate in the frame of its bodies (one thread on CPU)."""
    k = first + wp.tid()
    if state[ACTIVE] == 0 or wp.int64(k) >= counts[0]:
        return
    i = found[k][0]
    j = found[k][1]
    owner = body[edges[i, 0]]
    u = substep[owner] * drift[owner]
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
    way = shortest_offset(e0, e1, f0, f1, f2)
    use = gap_usage(way, e0, e1, f0, f1, f2, d0, d1, m0, m1, m2, least)
    lost = use[0] + use[1]
    if lost <= use[2]:
        return
    wp.atomic_add(state, SHORT, 1)
    if state[ITERATION] < LOCAL_ITERATIONS and use[2] >= wp.float64(0.0):
        other = body[faces[j, 0]]
        most = use[2]
        if impacts[impact_slot(owner, other)] == 0:
            most = wp.max(use[2], fast_approach)
        elif wp.length(way) < contact_reach:
            wp.atomic_max(too_fast, owner, 1)
            wp.atomic_max(too_fast, other, 1)
        if lost > most:
            wp.atomic_min(allowed, label[owner], ROUNDING * substep[owner] * most / lost)
            return
    wp.atomic_max(touched, label[owner], 1)
    if use[2] < wp.float64(0.0):  # they met when the step began, or nearly: nothing may move
        for c in range(2):
            wp.atomic_min(limit, edges[i, c], wp.float64(0.0))
        for c in range(3):
            wp.atomic_min(limit, faces[j, c], wp.float64(0.0))
        return
    n = wp.normalize(way)
    room_a = use[2] * use[0] / lost
    room_b = use[2] - room_a
    a0 = wp.dot(n, e0 - f0)
    a1 = wp.dot(n, e1 - f0)
    low = wp.min(a0, a1)
    wp.atomic_min(limit, edges[i, 0], allowed_part(room_a + a0 - low, -wp.dot(n, d0)))
    wp.atomic_min(limit, edges[i, 1], allowed_part(room_a + a1 - low, -wp.dot(n, d1)))
    b1 = wp.dot(n, f1 - f0)
    b2 = wp.dot(n, f2 - f0)
    high = wp.max(wp.float64(0.0), wp.max(b1, b2))
    wp.atomic_min(limit, faces[j, 0], allowed_part(room_b + high, wp.dot(n, m0)))
    wp.atomic_min(limit, faces[j, 1], allowed_part(room_b + high - b1, wp.dot(n, m1)))
    wp.atomic_min(limit, faces[j, 2], allowed_part(room_b + high - b2, wp.dot(n, m2)))


@wp.kernel
def _limit_dofs(
    first: int,
    state: wp.array[int],
    limit: wp.array[wp.float64],
    carriers: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
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
            if weights[v][c] != wp.float64(0.0):
                most = wp.max(most, part[carriers[v][c]])
        for c in range(4):
            if weights[v][c] != wp.float64(0.0):
                wp.atomic_min(new_part, carriers[v][c], most * limit[v] * factor)


@wp.kernel
def _find_changed(
    first: int,
    state: wp.array[int],
    carriers: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    before: wp.array[wp.float64],
    after: wp.array[wp.float64],
    changed: wp.array[wp.uint8],
):
    v = first + wp.tid()
    found = wp.uint8(state[ALL_NEW])
    for c in range(4):
        if weights[v][c] != wp.float64(0.0) and before[carriers[v][c]] != after[carriers[v][c]]:
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
    body: wp.array[int],
    drift: wp.array[wp.vec3d],
    substep: wp.array[wp.float64],
    new_part: wp.array[wp.float64],
    part: wp.array[wp.float64],
    x: wp.array[wp.vec3d],
):
    """The shortened move of each dof, relative to the drift of its body; nothing drifts that is held."""
    i = first + wp.tid()
    if state[ACTIVE] == 0:
        return
    part[i] = new_part[i]
    x[i] = goal[i]
    if part[i] < wp.float64(1.0) or substep[body[i]] < wp.float64(1.0):
        u = drift[body[i]]
        x[i] = start[i] + substep[body[i]] * (u + part[i] * (goal[i] - start[i] - u))
