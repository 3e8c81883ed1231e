"""Bodies that meet fast: a part of the step for all that touches, in the place of strain for single vertices.

Question: which part of the step does each body make?
Method:   stopping single vertices of a body that comes fast, further in a step than contacts act, would strain it for
          nothing. Its island makes only a part of the step then, as if its time were short, but keeps its velocities,
          and contacts meet it in the next step. Where contacts had been found and did not slow it down enough, half of
          its velocity against the rest of the island is lost, as in any hard impact; and if the solver had too few
          sweeps, which then leave strains that are far from any solution, nothing of the step is made.
Sound:    no energy comes of it. Only what came fast is an impact: by the velocities with which the step began. What is
          pressed, or springs back, makes as much of the step as is not fast, and then its vertices are held back one
          by one. As bodies in an impact have half of the velocities they came with (`ImpactVelocity`), after a few
          steps their island goes on, whatever its strains, unless a tool is driven on into it.
Velocity: what was hit keeps a part of the moves that the solver found. They hold what the contacts did, and what the
          strains did too, for which no way was made: step after step the same strains would drive bodies that stand.
          So these moves are made smaller, by one factor for all that was hit in an island, until the energy of motion
          against the drift of the island is not more than before. Bodies hand on momentum as before, and velocities
          are halved at least.
Known as: plastic impact.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.activation import REACH
from tangere.soft.contact.islands import SLICES, ContactIslands, MassMoves, MeanMoves, slice_of, union
from tangere.soft.model.assembled_bodies import (
    STILL,
    AssembledBodies,
    DofArrays,
    SurfaceArrays,
    WholeBodies,
    struct_of,
)
from tangere.soft.safe_step.separating_direction import VertexMoves, gap_usage, in_frame, moving_pair, shortest_way
from tangere.soft.safe_step.truncation_state import ACTIVE, ALL_NEW, PairBuffer

wp.set_module_options(SOUND)

#: A pair meets fast if it comes nearer by more than the contact distance, or by this part of it if sweeps are too few.
FEW_SWEEPS = 0.3
#: Places to remember pairs of bodies that meet fast.
IMPACT_SLOTS = wp.constant(1024)


@wp.struct
class ImpactArrays:
    """What impacts do to the bodies, (b,) if not said otherwise."""

    fraction: wp.array[wp.float64]  #: part of the step that is made
    velocity_kept: wp.array[wp.float64]  #: part of its velocity kept after an impact
    allowed: wp.array[wp.float64]  #: what pairs allow to the island called by each body
    impacted: wp.array[int]  #: whether one of its island keeps less
    too_fast: wp.array[int]  #: whether contacts did not slow it enough
    impacts: wp.array[int]  #: (IMPACT_SLOTS,) 1 at the `impact_slot` of bodies that meet fast
    fast_approach: wp.float64  #: by how much nearer in a step is fast [m]
    contact_reach: wp.float64  #: up to where contacts are [m]


class ImpactSubstep:
    """Which part of the step each body makes."""

    def __init__(
        self,
        assembly: AssembledBodies,
        features: list,
        islands: ContactIslands,
        state: wp.array,
        distance: float,
        few_sweeps: bool,
        dt: float,
    ) -> None:
        """`features` are the edges and faces that pairs name, their surface and its moves; others as `Truncation`."""
        device, bodies = assembly.device, assembly.body_room
        self._device, self._islands, self._state = device, islands, state
        ones = {name: np.ones(bodies) for name in ("fraction", "velocity_kept", "allowed")}
        zeros = {name: np.zeros(bodies, np.int32) for name in ("impacted", "too_fast")}
        self.arrays: ImpactArrays = struct_of(
            ImpactArrays,
            device,
            **ones,
            **zeros,
            impacts=np.zeros(int(IMPACT_SLOTS), np.int32),
            fast_approach=distance * (FEW_SWEEPS if few_sweeps else 1.0),
            contact_reach=float(REACH) * distance,
        )
        mean = wp.zeros(bodies, dtype=wp.vec3d, device=device)  # (b,) of the velocities of its island [m/s]
        self._velocities = MassMoves(assembly, assembly.dofs.v, wp.zeros_like(assembly.dofs.v))
        self._find_mean = MeanMoves(islands, self._velocities, mean)
        self._pairs = [*features, assembly.dofs.v, mean, dt, self.arrays]
        inputs = [state, int(few_sweeps), islands.label, self.arrays]
        self._apply_to_islands = PreparedLaunch(_apply_to_islands, inputs, device, serial=True)

    def begin(self) -> None:
        """All make the whole step; islands are those of the contacts."""
        for part in (self.arrays.fraction, self.arrays.velocity_kept, self.arrays.allowed):
            part.fill_(1.0)
        for mark in (self.arrays.impacts, self.arrays.too_fast, self.arrays.impacted):
            mark.zero_()
        self._velocities()
        self._find_mean()

    def merge_islands(self, found: PairBuffer) -> None:
        """Put bodies of pairs without certificate into one island, and remember which pairs of bodies meet fast."""
        inputs = [self._state, found.counts, found.items, *self._pairs, self._islands.label]
        launch(_merge_islands, found.launch_size, inputs, device=self._device, threads=1)

    def apply_to_islands(self) -> None:
        """After pairs have said what they allow."""
        self._apply_to_islands(1)


class ImpactVelocity:
    """How fast bodies go on after an impact: by which factor the moves of each body are made smaller."""

    def __init__(
        self,
        assembly: AssembledBodies,
        islands: ContactIslands,
        start: wp.array,
        goal: wp.array,
        drift: wp.array,
        velocity_kept: wp.array,
        dt: float,
    ) -> None:
        """`drift` is the mean move of the island of each body [m]; those that keep less than 1 were hit."""
        device, bodies = assembly.device, assembly.body_room
        self._slices = (len(assembly.dof_base) - 1) * int(SLICES)
        self.factor = wp.ones(bodies, dtype=wp.float64, device=device)  #: (b,)
        self._sums = wp.zeros(bodies * int(SLICES), dtype=wp.vec2d, device=device)
        inputs = [assembly.whole, velocity_kept, assembly.dofs, dt, start, goal, drift, self._sums]
        self._sum_energies = PreparedLaunch(_sum_energies, inputs, device, grain=8)
        total = wp.zeros(bodies, dtype=wp.vec2d, device=device)
        self._find_factors = PreparedLaunch(
            _find_factors, [islands.label, velocity_kept, self._sums, total, self.factor], device, serial=True
        )

    def __call__(self) -> None:
        self._sum_energies(self._slices)
        self._find_factors(1)


@wp.func
def impact_slot(a: int, b: int) -> int:
    """The place where it is kept whether two bodies meet fast; should two pairs share one, both are taken as fast."""
    return (wp.min(a, b) * 8191 + wp.max(a, b)) % IMPACT_SLOTS


@wp.func
def surface_velocity(v: int, surface: SurfaceArrays, velocity: wp.array[wp.vec3d]) -> wp.vec3d:
    """The velocity of a surface vertex [m/s]."""
    total = wp.vec3d()
    for c in range(4):
        total += surface.weights[v][c] * velocity[surface.carriers[v][c]]
    return total


@wp.kernel
def _merge_islands(
    first: int,
    state: wp.array[int],
    counts: wp.array[wp.int64],
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    surface: SurfaceArrays,
    moves: VertexMoves,
    velocity: wp.array[wp.vec3d],
    mean: wp.array[wp.vec3d],
    dt: wp.float64,
    impact: ImpactArrays,
    label: wp.array[int],
):
    """One thread on CPU."""
    k = first + wp.tid()
    if state[ACTIVE] == 0 or wp.int64(k) >= counts[0]:
        return
    v0 = edges[found[k][0], 0]
    v1 = edges[found[k][0], 1]
    i0 = faces[found[k][1], 0]
    i1 = faces[found[k][1], 1]
    i2 = faces[found[k][1], 2]
    a = surface.body[v0]
    b = surface.body[i0]
    union(label, a, b)
    pair = moving_pair(v0, v1, i0, i1, i2, moves)
    furthest = wp.max(wp.length(pair.d0 - pair.m0), wp.length(pair.d0 - pair.m1))
    furthest = wp.max(furthest, wp.max(wp.length(pair.d0 - pair.m2), wp.length(pair.d1 - pair.m0)))
    furthest = wp.max(furthest, wp.max(wp.length(pair.d1 - pair.m1), wp.length(pair.d1 - pair.m2)))
    fast = impact.fast_approach * wp.min(impact.fraction[a], impact.fraction[b])
    if furthest <= fast:
        return
    half = wp.float64(0.5)
    way = shortest_way(pair)
    use = gap_usage(way, in_frame(pair, half * (pair.d0 + pair.d1)), moves.least)
    if not (use[2] >= wp.float64(0.0) and use[0] + use[1] > fast):
        return
    time_a = dt * impact.fraction[a]
    time_b = dt * impact.fraction[b]
    pair.d0 = time_a * surface_velocity(v0, surface, velocity)
    pair.d1 = time_a * surface_velocity(v1, surface, velocity)
    pair.m0 = time_b * surface_velocity(i0, surface, velocity)
    pair.m1 = time_b * surface_velocity(i1, surface, velocity)
    pair.m2 = time_b * surface_velocity(i2, surface, velocity)
    use = gap_usage(way, in_frame(pair, half * (pair.d0 + pair.d1)), moves.least)
    approach = use[0] + use[1]
    still_edge = surface.traits[v0] & surface.traits[v1] & STILL
    still_face = surface.traits[i0] & surface.traits[i1] & surface.traits[i2] & STILL
    if still_edge == 0 and still_face == 0:  # what an impact elsewhere strains need not come nearer by itself
        u = time_a * mean[a]
        approach = wp.max(approach, wp.max(wp.length(pair.d0 - u), wp.length(pair.d1 - u)))
        u = time_b * mean[b]
        approach = wp.max(approach, wp.max(wp.length(pair.m0 - u), wp.length(pair.m1 - u)))
        approach = wp.max(approach, wp.length(pair.m2 - u))
    if approach > fast:
        impact.impacts[impact_slot(a, b)] = 1
        if wp.length(way) < impact.contact_reach:
            impact.too_fast[a] = 1
            impact.too_fast[b] = 1


@wp.kernel
def _apply_to_islands(first: int, state: wp.array[int], few_sweeps: int, label: wp.array[int], impact: ImpactArrays):
    """An island makes the part of the step that its slowest body makes (one thread)."""
    if state[ACTIVE] == 0:
        return
    for b in range(label.shape[0]):
        impact.allowed[label[b]] = wp.min(impact.allowed[label[b]], impact.fraction[b])
        if impact.too_fast[b] == 1:
            impact.impacted[label[b]] = 1
            if few_sweeps == 1:
                impact.allowed[label[b]] = wp.float64(0.0)
    for b in range(label.shape[0]):
        if impact.allowed[label[b]] != impact.fraction[b]:
            impact.fraction[b] = impact.allowed[label[b]]
            state[ALL_NEW] = 1
        impact.impacted[b] = impact.impacted[label[b]]
        if impact.too_fast[b] == 1:
            impact.velocity_kept[b] = wp.float64(0.5)


@wp.kernel
def _sum_energies(
    first: int,
    whole: WholeBodies,
    velocity_kept: wp.array[wp.float64],
    dofs: DofArrays,
    dt: wp.float64,
    start: wp.array[wp.vec3d],
    goal: wp.array[wp.vec3d],
    drift: wp.array[wp.vec3d],
    sums: wp.array[wp.vec2d],
):
    """Mass times squares of moves, as bodies came and as the solver found them, over a slice of those that were hit."""
    k = first + wp.tid()
    begin, end = slice_of(k, whole)
    b = k / SLICES
    while b >= 0:
        if velocity_kept[b] < wp.float64(1.0):
            total = wp.vec2d()
            for i in range(begin, end):
                if dofs.free[i] == 1 and dofs.body[i] == b:
                    on = dt * dofs.v[i] - drift[b]
                    found = goal[i] - start[i] - drift[b]
                    total += dofs.mass[i] * wp.vec2d(wp.dot(on, on), wp.dot(found, found))
            sums[b * SLICES + k % SLICES] = total
        b = whole.following[b]


@wp.kernel
def _find_factors(
    first: int,
    label: wp.array[int],
    velocity_kept: wp.array[wp.float64],
    sums: wp.array[wp.vec2d],
    total: wp.array[wp.vec2d],
    factor: wp.array[wp.float64],
):
    """One factor for all that was hit in an island (one thread)."""
    for b in range(label.shape[0]):
        total[b] = wp.vec2d()
        factor[b] = wp.float64(1.0)
    for b in range(label.shape[0]):
        if velocity_kept[b] < wp.float64(1.0):
            for k in range(b * SLICES, (b + 1) * SLICES):
                total[label[b]] += sums[k]
    for b in range(label.shape[0]):
        both = total[label[b]]
        if velocity_kept[b] < wp.float64(1.0) and both[1] > both[0]:
            factor[b] = wp.sqrt(both[0] / both[1])
