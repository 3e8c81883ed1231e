"""Bodies that meet fast: a part of the step for all that touches, in the place of strain for single vertices.

Stopping single vertices of a body that comes fast, further in a step than contacts act, would strain it for nothing.
Its group makes only a part of the step then, as if its time were short, but keeps its velocities, and contacts meet it
in the next step: no energy comes of it. Where contacts had been seen and did not slow it down enough, half of its
velocity against the rest of the group is lost, as in any hard blow; and if the solver had too few sweeps, which then
leave strains that are far from any solution, nothing of the step is made.

Only what came fast is a blow: by the velocities with which the step began. What is pressed, or springs back, makes as
much of the step as is not fast, and then its vertices are held back one by one. As bodies that were struck have half of
the velocities they came with (`after_blow`), after a few steps their group goes on, whatever its strains, unless a tool
is driven on into it.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.activation import REACH
from tangere.soft.contact.islands import ContactIslands, MassMoves, MeanMoves, union
from tangere.soft.model.assembly import STILL, Assembly
from tangere.soft.safe_step.found_pairs import FoundPairs
from tangere.soft.safe_step.round_state import ACTIVE, ALL_NEW
from tangere.soft.safe_step.separating_direction import nearest_way, use_of_gap

wp.set_module_options(SOUND)

__all__ = ["ImpactSubstep", "blow"]

#: A pair meets fast if it comes nearer by more than the contact distance, or by this part of it if sweeps are too few.
FEW_SWEEPS = 0.3
#: Places to remember pairs of bodies that meet fast.
BLOWS = wp.constant(1024)


class ImpactSubstep:
    """Which part of the step each body makes."""

    def __init__(
        self,
        assembly: Assembly,
        features: list[wp.array],
        groups: ContactIslands,
        surface: tuple[wp.array, wp.array],
        state: wp.array,
        least: float,
        distance: float,
        few_sweeps: bool,
        dt: float,
    ) -> None:
        """`features` are the edges and faces that pairs name, and bodies of vertices; others as in `Truncation`."""
        device, bodies = assembly.device, len(assembly.bodies)
        self._device, self._groups = device, groups
        self.of = wp.ones(bodies, dtype=wp.float64, device=device)  #: (b,) part of the step
        self.kept = wp.ones_like(self.of)  #: (b,) part of its velocity that each body keeps after a blow
        self.struck = wp.zeros(bodies, dtype=wp.int32, device=device)  #: (b,) whether one of its group keeps less
        self.slower = wp.ones_like(self.of)  #: (b,) what pairs allow to the group called by each body
        self.blows = wp.zeros(int(BLOWS), dtype=wp.int32, device=device)  #: 1 at the `blow` of bodies that meet fast
        self.braked = wp.zeros(bodies, dtype=wp.int32, device=device)  #: (b,) whether contacts did not slow it enough
        mean = wp.zeros(bodies, dtype=wp.vec3d, device=device)  # (b,) of the velocities of its group [m/s]
        self._velocities = MassMoves(assembly, assembly.v, wp.zeros_like(assembly.v))
        self._find_mean = MeanMoves(groups, self._velocities, mean)
        self.fast = distance * (FEW_SWEEPS if few_sweeps else 1.0)  #: by how much nearer in a step is fast [m]
        came = [assembly.carriers, assembly.weights, assembly.traits, assembly.v, mean, dt]
        self.seen = float(REACH) * distance  #: up to where contacts are [m]
        self._pairs, self._state = [*features, *surface, *came, self.of, least, self.fast, self.seen], state
        paces = [state, int(few_sweeps), groups.label, self.slower, self.braked, self.of, self.kept, self.struck]
        self._settle = PreparedLaunch(_settle, paces, device, serial=True)

    def begin(self) -> None:
        """All make the whole step; groups are those of the contacts."""
        for each in (self.of, self.kept, self.slower):
            each.fill_(1.0)
        self.blows.zero_()
        self.braked.zero_()
        self.struck.zero_()
        self._velocities()
        self._find_mean()

    def union(self, found: FoundPairs) -> None:
        """Put bodies of pairs without certificate into one group, and remember which pairs of bodies meet fast."""
        inputs = [self._state, found.counts, found.items, *self._pairs]
        outputs = [self._groups.label, self.blows, self.braked]
        launch(_join, found.launched, inputs, outputs, device=self._device, threads=1)

    def settle(self) -> None:
        """After pairs have said what they allow."""
        self._settle(1)


@wp.func
def blow(a: int, b: int) -> int:
    """The place where it is kept whether two bodies meet fast; should two pairs share one, both are taken as fast."""
    return (wp.min(a, b) * 8191 + wp.max(a, b)) % BLOWS


@wp.func
def carried(
    v: int, carriers: wp.array[wp.vec4i], weights: wp.array[wp.vec4d], velocity: wp.array[wp.vec3d]
) -> wp.vec3d:
    """The velocity of a surface vertex [m/s]."""
    total = wp.vec3d()
    for c in range(4):
        total += weights[v][c] * velocity[carriers[v][c]]
    return total


@wp.kernel
def _join(
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
    pace: wp.array[wp.float64],
    least: wp.float64,
    fast: wp.float64,
    seen: wp.float64,
    label: wp.array[int],
    blows: wp.array[int],
    braked: wp.array[int],
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
    if furthest <= fast * wp.min(pace[a], pace[b]):
        return
    way = nearest_way(e0, e1, f0, f1, f2)
    u = wp.float64(0.5) * (d0 + d1)
    use = use_of_gap(way, e0, e1, f0, f1, f2, d0 - u, d1 - u, m0 - u, m1 - u, m2 - u, least)
    if not (use[2] >= wp.float64(0.0) and use[0] + use[1] > fast * wp.min(pace[a], pace[b])):
        return
    time_a = dt * pace[a]
    time_b = dt * pace[b]
    d0 = time_a * carried(edges[i, 0], carriers, weights, velocity)
    d1 = time_a * carried(edges[i, 1], carriers, weights, velocity)
    m0 = time_b * carried(faces[j, 0], carriers, weights, velocity)
    m1 = time_b * carried(faces[j, 1], carriers, weights, velocity)
    m2 = time_b * carried(faces[j, 2], carriers, weights, velocity)
    u = wp.float64(0.5) * (d0 + d1)
    use = use_of_gap(way, e0, e1, f0, f1, f2, d0 - u, d1 - u, m0 - u, m1 - u, m2 - u, least)
    came = use[0] + use[1]
    still_edge = traits[edges[i, 0]] & traits[edges[i, 1]] & STILL
    still_face = traits[faces[j, 0]] & traits[faces[j, 1]] & traits[faces[j, 2]] & STILL
    if still_edge == 0 and still_face == 0:  # what a blow elsewhere strains need not come nearer by itself
        u = time_a * mean[a]
        came = wp.max(came, wp.max(wp.length(d0 - u), wp.length(d1 - u)))
        u = time_b * mean[b]
        came = wp.max(came, wp.max(wp.length(m0 - u), wp.max(wp.length(m1 - u), wp.length(m2 - u))))
    if came > fast * wp.min(pace[a], pace[b]):
        blows[blow(a, b)] = 1
        if wp.length(way) < seen:
            braked[a] = 1
            braked[b] = 1


@wp.kernel
def _settle(
    first: int,
    state: wp.array[int],
    few_sweeps: int,
    label: wp.array[int],
    slower: wp.array[wp.float64],
    braked: wp.array[int],
    pace: wp.array[wp.float64],
    kept: wp.array[wp.float64],
    struck: wp.array[int],
):
    """A group goes at the pace of its slowest body (one thread)."""
    if state[ACTIVE] == 0:
        return
    for b in range(label.shape[0]):
        slower[label[b]] = wp.min(slower[label[b]], pace[b])
        if braked[b] == 1:
            struck[label[b]] = 1
            if few_sweeps == 1:
                slower[label[b]] = wp.float64(0.0)
    for b in range(label.shape[0]):
        if slower[label[b]] != pace[b]:
            pace[b] = slower[label[b]]
            state[ALL_NEW] = 1
        struck[b] = struck[label[b]]
        if braked[b] == 1:
            kept[b] = wp.float64(0.5)
