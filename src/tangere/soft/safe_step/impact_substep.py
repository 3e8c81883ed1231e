"""Bodies that meet fast: a part of the step for all that touches, in the place of strain for single vertices.

Question: which part of the step does each body make?
Method:   stopping single vertices of a body that comes fast, further in a step than contacts act, would strain it for
          nothing. Its island makes only a part of the step then, as if its time were short, but keeps its velocities,
          and contacts meet it in the next step. Where contacts had been found and did not slow it down enough, half of
          its velocity against the rest of the island is lost, as in any hard impact; and if the solver had too few
          sweeps, which then leave strains that are far from any solution, nothing of the step is made.
Sound:    no energy comes of it. Only what came fast is an impact: by the velocities with which the step began. What is
          pressed, or springs back, makes as much of the step as is not fast, and then its vertices are held back one
          by one. As bodies in an impact have half of the velocities they came with (`impact_velocity`), after a few
          steps their island goes on, whatever its strains, unless a tool is driven on into it.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.activation import REACH
from tangere.soft.contact.islands import ContactIslands, MassMoves, MeanMoves, union
from tangere.soft.model.assembly import STILL, Assembly
from tangere.soft.safe_step.iteration_state import ACTIVE, ALL_NEW
from tangere.soft.safe_step.pair_buffer import PairBuffer
from tangere.soft.safe_step.separating_direction import gap_usage, shortest_offset

wp.set_module_options(SOUND)

#: A pair meets fast if it comes nearer by more than the contact distance, or by this part of it if sweeps are too few.
FEW_SWEEPS = 0.3
#: Places to remember pairs of bodies that meet fast.
IMPACT_SLOTS = wp.constant(1024)


class ImpactSubstep:
    """Which part of the step each body makes."""

    def __init__(
        self,
        assembly: Assembly,
        features: list[wp.array],
        islands: ContactIslands,
        surface: tuple[wp.array, wp.array],
        state: wp.array,
        least: float,
        distance: float,
        few_sweeps: bool,
        dt: float,
    ) -> None:
        """`features` are the edges and faces that pairs name, and bodies of vertices; others as in `Truncation`."""
        device, bodies = assembly.device, len(assembly.bodies)
        self._device, self._islands = device, islands
        self.fraction = wp.ones(bodies, dtype=wp.float64, device=device)  #: (b,) part of the step
        self.velocity_kept = wp.ones_like(self.fraction)  #: (b,) part of its velocity kept after an impact
        self.impacted = wp.zeros(bodies, dtype=wp.int32, device=device)  #: (b,) whether one of its island keeps less
        self.allowed = wp.ones_like(self.fraction)  #: (b,) what pairs allow to the island called by each body
        self.impacts = wp.zeros(
            int(IMPACT_SLOTS), dtype=wp.int32, device=device
        )  #: 1 at the `impact_slot` of bodies that meet fast
        self.too_fast = wp.zeros(bodies, dtype=wp.int32, device=device)  #: (b,) whether contacts did not slow it enough
        mean = wp.zeros(bodies, dtype=wp.vec3d, device=device)  # (b,) of the velocities of its island [m/s]
        self._velocities = MassMoves(assembly, assembly.v, wp.zeros_like(assembly.v))
        self._find_mean = MeanMoves(islands, self._velocities, mean)
        self.fast_approach = distance * (FEW_SWEEPS if few_sweeps else 1.0)  #: by how much nearer in a step is fast [m]
        approach = [assembly.carriers, assembly.weights, assembly.traits, assembly.v, mean, dt]
        self.contact_reach = float(REACH) * distance  #: up to where contacts are [m]
        self._pairs, self._state = (
            [*features, *surface, *approach, self.fraction, least, self.fast_approach, self.contact_reach],
            state,
        )
        inputs = [
            state,
            int(few_sweeps),
            islands.label,
            self.allowed,
            self.too_fast,
            self.fraction,
            self.velocity_kept,
            self.impacted,
        ]
        self._apply_to_islands = PreparedLaunch(_apply_to_islands, inputs, device, serial=True)

    def begin(self) -> None:
        """All make the whole step; islands are those of the contacts."""
        for each in (self.fraction, self.velocity_kept, self.allowed):
            each.fill_(1.0)
        self.impacts.zero_()
        self.too_fast.zero_()
        self.impacted.zero_()
        self._velocities()
        self._find_mean()

    def merge_islands(self, found: PairBuffer) -> None:
        """Put bodies of pairs without certificate into one island, and remember which pairs of bodies meet fast."""
        inputs = [self._state, found.counts, found.items, *self._pairs]
        outputs = [self._islands.label, self.impacts, self.too_fast]
        launch(_merge_islands, found.launch_size, inputs, outputs, device=self._device, threads=1)

    def apply_to_islands(self) -> None:
        """After pairs have said what they allow."""
        self._apply_to_islands(1)


@wp.func
def impact_slot(a: int, b: int) -> int:
    """The place where it is kept whether two bodies meet fast; should two pairs share one, both are taken as fast."""
    return (wp.min(a, b) * 8191 + wp.max(a, b)) % IMPACT_SLOTS


@wp.func
def surface_velocity(
    v: int, carriers: wp.array[wp.vec4i], weights: wp.array[wp.vec4d], velocity: wp.array[wp.vec3d]
) -> wp.vec3d:
    """The velocity of a surface vertex [m/s]."""
    total = wp.vec3d()
    for c in range(4):
        total += weights[v][c] * velocity[carriers[v][c]]
    return total


@wp.kernel
def _merge_islands(
    first: int,
    state: wp.array[int],
    counts: wp.array[wp.int64],
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    body: wp.array[int],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    carriers: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    traits: wp.array[int],
    velocity: wp.array[wp.vec3d],
    mean: wp.array[wp.vec3d],
    dt: wp.float64,
    substep: wp.array[wp.float64],
    least: wp.float64,
    fast_approach: wp.float64,
    contact_reach: wp.float64,
    label: wp.array[int],
    impacts: wp.array[int],
    too_fast: wp.array[int],
):
    """One thread on CPU."""
    k = first + wp.tid()
    if state[ACTIVE] == 0 or wp.int64(k) >= counts[0]:
        return
    i = found[k][0]
    j = found[k][1]
    a = body[edges[i, 0]]
    b = body[faces[j, 0]]
    union(label, a, b)
    e0 = start[edges[i, 0]]
    e1 = start[edges[i, 1]]
    f0 = start[faces[j, 0]]
    f1 = start[faces[j, 1]]
    f2 = start[faces[j, 2]]
    d0 = end[edges[i, 0]] - e0
    d1 = end[edges[i, 1]] - e1
    m0 = end[faces[j, 0]] - f0
    m1 = end[faces[j, 1]] - f1
    m2 = end[faces[j, 2]] - f2
    furthest = wp.max(wp.max(wp.length(d0 - m0), wp.length(d0 - m1)), wp.length(d0 - m2))
    furthest = wp.max(furthest, wp.max(wp.max(wp.length(d1 - m0), wp.length(d1 - m1)), wp.length(d1 - m2)))
    if furthest <= fast_approach * wp.min(substep[a], substep[b]):
        return
    way = shortest_offset(e0, e1, f0, f1, f2)
    u = wp.float64(0.5) * (d0 + d1)
    use = gap_usage(way, e0, e1, f0, f1, f2, d0 - u, d1 - u, m0 - u, m1 - u, m2 - u, least)
    if not (use[2] >= wp.float64(0.0) and use[0] + use[1] > fast_approach * wp.min(substep[a], substep[b])):
        return
    time_a = dt * substep[a]
    time_b = dt * substep[b]
    d0 = time_a * surface_velocity(edges[i, 0], carriers, weights, velocity)
    d1 = time_a * surface_velocity(edges[i, 1], carriers, weights, velocity)
    m0 = time_b * surface_velocity(faces[j, 0], carriers, weights, velocity)
    m1 = time_b * surface_velocity(faces[j, 1], carriers, weights, velocity)
    m2 = time_b * surface_velocity(faces[j, 2], carriers, weights, velocity)
    u = wp.float64(0.5) * (d0 + d1)
    use = gap_usage(way, e0, e1, f0, f1, f2, d0 - u, d1 - u, m0 - u, m1 - u, m2 - u, least)
    approach = use[0] + use[1]
    still_edge = traits[edges[i, 0]] & traits[edges[i, 1]] & STILL
    still_face = traits[faces[j, 0]] & traits[faces[j, 1]] & traits[faces[j, 2]] & STILL
    if still_edge == 0 and still_face == 0:  # what an impact elsewhere strains need not come nearer by itself
        u = time_a * mean[a]
        approach = wp.max(approach, wp.max(wp.length(d0 - u), wp.length(d1 - u)))
        u = time_b * mean[b]
        approach = wp.max(approach, wp.max(wp.length(m0 - u), wp.max(wp.length(m1 - u), wp.length(m2 - u))))
    if approach > fast_approach * wp.min(substep[a], substep[b]):
        impacts[impact_slot(a, b)] = 1
        if wp.length(way) < contact_reach:
            too_fast[a] = 1
            too_fast[b] = 1


@wp.kernel
def _apply_to_islands(
    first: int,
    state: wp.array[int],
    few_sweeps: int,
    label: wp.array[int],
    allowed: wp.array[wp.float64],
    too_fast: wp.array[int],
    substep: wp.array[wp.float64],
    velocity_kept: wp.array[wp.float64],
    impacted: wp.array[int],
):
    """An island makes the part of the step that its slowest body makes (one thread)."""
    if state[ACTIVE] == 0:
        return
    for b in range(label.shape[0]):
        allowed[label[b]] = wp.min(allowed[label[b]], substep[b])
        if too_fast[b] == 1:
            impacted[label[b]] = 1
            if few_sweeps == 1:
                allowed[label[b]] = wp.float64(0.0)
    for b in range(label.shape[0]):
        if allowed[label[b]] != substep[b]:
            substep[b] = allowed[label[b]]
            state[ALL_NEW] = 1
        impacted[b] = impacted[label[b]]
        if too_fast[b] == 1:
            velocity_kept[b] = wp.float64(0.5)
