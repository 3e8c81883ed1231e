"""One round of the truncation: the gap of each pair without certificate is shared out, and the dofs are held back.

`state` is what the device knows about the rounds of a step (`rounds`). In the first of them single vertices are
shortened, ever more; then all bodies of a group that touches make the same part of their moves. Bodies that meet fast
go on at a slower pace instead, and those that press fast at one at which they are not, before (`pace`).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.model.assembly import Assembly
from tangere.soft.safe_step.found_pairs import FoundPairs
from tangere.soft.safe_step.impact_substep import ImpactSubstep, blow
from tangere.soft.safe_step.round_state import ACTIVE, ALL_NEW, LIMITED, LOCAL_ROUNDS, ROUND, SHORT, WHOLE_ROUNDS
from tangere.soft.safe_step.separating_direction import nearest_way, part_within, use_of_gap

wp.set_module_options(SOUND)

__all__ = ["Shortening"]

#: What is left of the limit of a vertex in each round that shortens single vertices; in the end they only drift.
SHORTER = (0.999, 0.999, 0.9, 0.5, 0.5, 0.0)
#: Rounding must not let a pair that is just short enough be found again.
SURELY = wp.constant(wp.float64(0.999))


class Shortening:
    """Shortens the moves of the dofs from `start` to `goal`, relative to the drift of their groups."""

    def __init__(
        self,
        assembly: Assembly,
        features: tuple[wp.array, wp.array],
        groups: ContactIslands,
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
        self._assembly, self._groups, self._surface = assembly, groups, surface
        self._features = [*features, assembly.body_of_vertex]
        self._state, self._least, self.start = state, least, start
        self.pace = ImpactSubstep(assembly, self._features, groups, surface, state, least, distance, few_sweeps, dt)
        self.drift = wp.zeros(bodies, dtype=wp.vec3d, device=device)  #: mean move of the group of each body [m]
        self._last_drift = wp.zeros_like(self.drift)
        self.part, self._new_part = (wp.ones(dofs, dtype=wp.float64, device=device) for _ in range(2))
        self._limit = wp.ones(len(assembly.rest), dtype=wp.float64, device=device)
        self._touched = wp.zeros(bodies, dtype=wp.int32, device=device)
        self._changed = wp.zeros(len(assembly.rest), dtype=wp.uint8, device=device)
        factors = wp.array(SHORTER, dtype=wp.float64, device=device)

        def prepared(kernel: wp.Kernel, *arguments, serial: bool = False) -> PreparedLaunch:
            return PreparedLaunch(kernel, [state, *arguments], device, grain=8192, serial=serial)

        self._open = prepared(_open_round, self.drift, self._last_drift, serial=True)
        self._judge = prepared(_judge, serial=True)
        carried = [assembly.carriers, assembly.weights, self.part]
        self._carry = prepared(_carry, self._limit, *carried, factors, self._new_part, serial=True)
        whole = [assembly.body_of_dof, groups.label, self._touched, self._new_part]
        self._hold = prepared(_hold, *whole)
        self._find_changed = prepared(_find_changed, *carried, self._new_part, self._changed)
        self._place = prepared(
            _place, start, goal, assembly.body_of_dof, self.drift, self.pace.of, self._new_part, self.part, assembly.x
        )

    def begin(self) -> None:
        """All of every move is left."""
        self.part.fill_(1.0)
        self.pace.begin()

    def __call__(self, found: FoundPairs) -> wp.array:
        """Shorten the moves of these pairs; says which surface vertices go elsewhere now, (s,) uint8."""
        device, vertices, dofs = self._assembly.device, len(self._limit), len(self.part)
        self._open(1)
        self._limit.fill_(1.0)
        self._touched.zero_()
        inputs = [self._state, found.counts, found.items, *self._features, *self._surface]
        inputs += [self._groups.label, self.drift, self.pace.of, self.pace.blows, self.pace.fast, self.pace.seen]
        inputs += [self._least]
        outputs = [self._limit, self._touched, self.pace.slower, self.pace.braked]
        launch(_shorten, found.launched, inputs, outputs, device=device, threads=1)
        self.pace.settle()
        self._judge(1)
        wp.copy(self._new_part, self.part)
        self._carry(vertices)
        self._hold(dofs)
        self._find_changed(vertices)
        self._place(dofs)
        return self._changed


@wp.kernel
def _open_round(
    first: int,
    state: wp.array[int],
    drift: wp.array[wp.vec3d],
    last_drift: wp.array[wp.vec3d],
):
    """Where groups have merged all moves that were shortened are new (one thread)."""
    state[SHORT] = 0
    state[ALL_NEW] = 0
    for b in range(drift.shape[0]):
        for c in range(3):
            if state[ROUND] > 0 and drift[b][c] != last_drift[b][c]:
                state[ALL_NEW] = 1
        last_drift[b] = drift[b]


@wp.kernel
def _judge(first: int, state: wp.array[int]):
    """Pairs that hold in the frame of their group need no round; a whole body held back is all new (one thread)."""
    if state[SHORT] == 0:
        state[ACTIVE] = 0
    if state[ACTIVE] == 1:
        state[ROUND] = state[ROUND] + 1
        if state[ROUND] > LOCAL_ROUNDS:
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
    pace: wp.array[wp.float64],
    blows: wp.array[int],
    fast: wp.float64,
    seen: wp.float64,
    least: wp.float64,
    limit: wp.array[wp.float64],
    touched: wp.array[int],
    slower: wp.array[wp.float64],
    braked: wp.array[int],
):
    """Share out the gap of each pair that has no certificate in the frame of its bodies (one thread on CPU)."""
    k = first + wp.tid()
    if state[ACTIVE] == 0 or wp.int64(k) >= counts[0]:
        return
    i = found[k][0]
    j = found[k][1]
    owner = body[edges[i, 0]]
    u = pace[owner] * drift[owner]
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
    lost = use[0] + use[1]
    if lost <= use[2]:
        return
    wp.atomic_add(state, SHORT, 1)
    if state[ROUND] < LOCAL_ROUNDS and use[2] >= wp.float64(0.0):
        other = body[faces[j, 0]]
        most = use[2]
        if blows[blow(owner, other)] == 0:
            most = wp.max(use[2], fast)
        elif wp.length(way) < seen:
            wp.atomic_max(braked, owner, 1)
            wp.atomic_max(braked, other, 1)
        if lost > most:
            wp.atomic_min(slower, label[owner], SURELY * pace[owner] * most / lost)
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
    if state[ACTIVE] == 0 or state[ROUND] > LOCAL_ROUNDS:
        return
    if limit[v] < wp.float64(1.0):
        if state[ROUND] == 1:
            wp.atomic_add(state, LIMITED, 1)
        factor = factors[wp.min(state[ROUND], factors.shape[0]) - 1]
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
def _hold(
    first: int,
    state: wp.array[int],
    body: wp.array[int],
    label: wp.array[int],
    touched: wp.array[int],
    new_part: wp.array[wp.float64],
):
    """When single vertices do not do, all dofs of groups that touch make the same part of their moves."""
    i = first + wp.tid()
    if state[ACTIVE] == 1 and state[ROUND] > LOCAL_ROUNDS and touched[label[body[i]]] == 1:
        most = wp.float64(0.0)
        if state[ROUND] <= LOCAL_ROUNDS + WHOLE_ROUNDS:
            most = wp.float64(1.0)
            for _ in range(state[ROUND] - LOCAL_ROUNDS):
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
    pace: wp.array[wp.float64],
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
    if part[i] < wp.float64(1.0) or pace[body[i]] < wp.float64(1.0):
        u = drift[body[i]]
        x[i] = start[i] + pace[body[i]] * (u + part[i] * (goal[i] - start[i] - u))
