"""Potential bubbles: agents are drawn to their goal and pushed by whoever comes within the range.

Question: what is the next velocity of an agent?
Method:   force on an agent: (preferred - v) / tau + pushes, each k (R - d)^2 - z d' within R, 0 beyond, away from its
          source. The distance to an edge of a polygonal agent is d = (|x - a| + |x - b| - |a - b|) / 2, whose level
          sets are ellipses; its gradient is half the sum of two unit vectors. Points never push polygons.
          With `careful` (default) the damping fades out towards R and no push ever pulls (erratum A10: as printed the
          damping is discontinuous at R, and nothing keeps a push from pulling).
          Agents too close to the virtual edge in front of a fast polygonal agent panic: they forget their goal and may
          accelerate and run faster for as long.
Known as: potential bubbles (Pitiot 2015, section 8.2.2, equation 8.1), a social force model; field of view and groups
          are perspectives of the thesis (conclusion, section 2.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays, ball_may_be_near, is_first_cell_seen, squared_edge_reach
from tangere.crowd.agents.neighbour_ranges import nearest_wall_of_cell, rounded_up, squared_gap
from tangere.crowd.agents.wall_crossings import is_hidden
from tangere.crowd.agents.walls import nearest_on_segment
from tangere.runtime import SOUND, InputError, not_negative, number, positive

wp.set_module_options(SOUND)

_ZERO, _HALF, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 0.5, 1.0))
_TINY = wp.constant(wp.float64(1.0e-12))
#: How near walls push unless told [m].
_WALL_RANGE = 0.8
#: Walls are firmer than agents, over their shorter range.
_WALL_FACTOR = wp.constant(wp.float64(2.0))
#: Places of the parameters in the array a kernel gets.
_K, _Z, _R, _TAU, _ACCELERATION, _MAX_SPEED_FACTOR, _NOISE = (wp.constant(i) for i in range(7))
_COSINE, _PANIC, _PANIC_FACTOR, _COHESION, _CAREFUL, _ELLIPSE, _WALL = (wp.constant(i) for i in range(7, 14))

#: Neighbours noted at a time.
_BATCH = wp.constant(16)
IndexBatch = wp.types.vector(length=16, dtype=wp.int32)


@dataclass(frozen=True)
class Bubbles:
    """The behaviour of the thesis.

    Args:
        range: R, who is farther does not matter [m]. It keeps agents apart whatever their radius is.
        stiffness: k [1/(m s^2)]. damping: z [1/s].
        wall_range: the same for walls, not more: within it an agent cannot follow a way along the wall [m]; None: 0.8 m
            or the range.
        relaxation: tau, time to take up the preferred velocity [s].
        acceleration: at most [m/s^2]. max_speed_factor: the most speed, as a part of the preferred one.
        noise: random acceleration against equilibria [m/s^2].
        view: angle of the field of view [degrees]; 360: all around.
        panic: distance from a virtual edge that makes panic [m]; 0: nobody panics.
        panic_factor: on acceleration and speed.
        cohesion: pull to the centre of the own group [1/s^2].
        field: distance to polygon edges, "ellipse" (the thesis) or "distance" (true distance).
        careful: damping fades and no push pulls; False: the formula as printed.
    """

    range: float = 1.5
    stiffness: float = 14.0
    damping: float = 2.0
    wall_range: float | None = None
    relaxation: float = 0.5
    acceleration: float = 12.0
    max_speed_factor: float = 1.3
    noise: float = 0.2
    view: float = 360.0
    panic: float = 2.25
    panic_factor: float = 2.5
    cohesion: float = 0.0
    field: Literal["ellipse", "distance"] = "ellipse"
    careful: bool = True

    def __post_init__(self) -> None:
        for name in ("range", "wall_range", "relaxation", "acceleration", "max_speed_factor", "panic_factor"):
            if name != "wall_range" or self.wall_range is not None:
                positive(getattr(self, name), f"Bubbles: {name}")
        for name in ("stiffness", "damping", "noise", "panic", "cohesion"):
            not_negative(getattr(self, name), f"Bubbles: {name}")
        if self.wall_range is not None and self.wall_range > self.range:
            raise InputError(f"Bubbles: wall_range {self.wall_range} is more than the range {self.range}")
        if self.careful not in (True, False):
            raise InputError(f"Bubbles: careful must be True or False, not {self.careful!r}")
        if not 0 < number(self.view, "Bubbles: view") <= 360:
            raise InputError(f"Bubbles: view must be an angle up to 360 degrees, not {self.view}")
        if self.field not in ("ellipse", "distance"):
            raise InputError(f"Bubbles: field is 'ellipse' or 'distance', not {self.field!r}")

    @property
    def steer(self) -> Any:
        """The function a step calls for each agent."""
        return steer

    def parameters(self) -> np.ndarray:
        """What the function gets."""
        cosine = -2.0 if self.view == 360.0 else math.cos(math.radians(self.view / 2))
        values = [self.stiffness, self.damping, self.range, self.relaxation, self.acceleration, self.max_speed_factor]
        values += [self.noise, cosine, self.panic, self.panic_factor, self.cohesion]
        wall = min(_WALL_RANGE, self.range) if self.wall_range is None else self.wall_range
        return np.array([*values, float(self.careful), float(self.field == "ellipse"), wall])

    def edge_reach(self, length: float, *, ahead: bool = False) -> float:
        """How far beside its middle an edge of that length acts [m].

        Args:
            ahead: a virtual edge of anticipation, which makes panic.
        """
        reach = max(self.range, self.panic) if ahead else self.range
        return math.sqrt(reach**2 + reach * length) if self.field == "ellipse" else reach


@wp.func
def bubble_push(
    d: wp.float64, rate: wp.float64, k: wp.float64, z: wp.float64, r: wp.float64, careful: bool
) -> wp.float64:
    """Push of a bubble at distance d that changes at `rate`."""
    if d >= r:
        return _ZERO
    push = k * (r - d) * (r - d)
    if careful:
        return wp.max(push - z * rate * (_ONE - wp.max(d, _ZERO) / r), _ZERO)
    return push - z * rate


@wp.struct
class SourceField:
    """Distance from a source, how fast it changes, and the unit direction away from it."""

    distance: wp.float64
    rate: wp.float64
    away: wp.vec3d


@wp.func
def elliptic_distance(x: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """Of x from the edge ab: 0 on the edge, and the same along ellipses around its ends."""
    return wp.max(_HALF * (wp.length(x - a) + wp.length(x - b) - wp.length(b - a)), _ZERO)


@wp.func
def edge_field(
    x: wp.vec3d, v: wp.vec3d, a: wp.vec3d, b: wp.vec3d, velocity_a: wp.vec3d, velocity_b: wp.vec3d, normal: wp.vec3d
) -> SourceField:
    """Elliptic distance of x from the edge ab; `normal` of the ground says which way is aside on the edge itself."""
    along = b - a
    length = wp.length(along)
    from_a = x - a
    from_b = x - b
    ua = from_a / wp.max(wp.length(from_a), _TINY)
    ub = from_b / wp.max(wp.length(from_b), _TINY)
    unit = along / wp.max(length, _TINY)
    found = SourceField()
    found.distance = elliptic_distance(x, a, b)
    found.rate = _HALF * (
        wp.dot(ua, v - velocity_a) + wp.dot(ub, v - velocity_b) - wp.dot(unit, velocity_b - velocity_a)
    )
    gradient = _HALF * (ua + ub)
    size = wp.length(gradient)
    if size > wp.float64(1.0e-6):
        found.away = gradient / size
    else:
        aside = wp.cross(normal, unit)
        if wp.dot(from_a, aside) < _ZERO:
            aside = -aside
        found.away = aside
    return found


@wp.func
def segment_field(
    x: wp.vec3d, v: wp.vec3d, a: wp.vec3d, b: wp.vec3d, velocity_a: wp.vec3d, velocity_b: wp.vec3d, normal: wp.vec3d
) -> SourceField:
    """The same for the true distance from the segment ab."""
    near = nearest_on_segment(a, b, x)
    found = SourceField()
    found.distance = wp.length(x - near)
    length = wp.length(b - a)
    part = wp.length(near - a) / wp.max(length, _TINY)
    if found.distance > _TINY:
        found.away = (x - near) / found.distance
    else:
        found.away = wp.cross(normal, (b - a) / wp.max(length, _TINY))
    found.rate = wp.dot(found.away, v - (velocity_a + part * (velocity_b - velocity_a)))
    return found


@wp.func
def perturbation(seed: int, step: int, flat: bool) -> wp.vec3d:
    """A random vector of this seed and step, each part between -1 and 1; the same for any number of threads."""
    state = wp.rand_init(seed, step)
    x = wp.float64(wp.randf(state, -1.0, 1.0))
    y = wp.float64(wp.randf(state, -1.0, 1.0))
    z = wp.float64(0.0)
    if not flat:
        z = wp.float64(wp.randf(state, -1.0, 1.0))
    return wp.vec3d(x, y, z)


@wp.func
def clamp_length(v: wp.vec3d, most: wp.float64) -> wp.vec3d:
    square = wp.dot(v, v)
    if square > most * most:
        return v * (most / wp.sqrt(square))
    return v


@wp.func
def agent_pushes(c: CrowdArrays, p: wp.array[wp.float64], i: int, begin: int, end: int, flat: bool) -> wp.vec3d:
    """All that agents begin … end - 1 push agent i."""
    x = c.position[i]
    v = c.velocity[i]
    r = p[_R]
    careful = p[_CAREFUL] > _HALF
    seeing = p[_COSINE] > -_ONE
    # Those within the range are noted first, without a branch, and sums are kept as numbers: the loop over all
    # candidates then waits neither for a branch guessed wrong nor for a vector in memory.
    near = IndexBatch()
    push_x = wp.float64(0.0)
    push_y = wp.float64(0.0)
    push_z = wp.float64(0.0)
    j = int(begin)
    while j < end:
        count = int(0)
        while j < end and count < _BATCH:
            near[count] = j
            if wp.length_sq(x - c.position[j]) < r * r:
                count += 1
            j += 1
        k = int(0)
        while k < count:
            other = near[k]
            if other != i:
                w = x - c.position[other]
                d = wp.length(w)
                seen = bool(True)
                if seeing:
                    seen = -wp.dot(v, w) >= p[_COSINE] * wp.length(v) * d
                if seen:
                    seen = not is_hidden(c.neighbourhoods, c.cell[i], x, c.position[other])
                if seen:
                    if d > _TINY:
                        w = w * (_ONE / d)
                    else:
                        w = wp.normalize(perturbation(c.seed + c.number[i], c.clock[0], flat))
                    push = bubble_push(d, wp.dot(w, v - c.velocity[other]), p[_K], p[_Z], r, careful)
                    push_x += push * w[0]
                    push_y += push * w[1]
                    push_z += push * w[2]
            k += 1
    return wp.vec3d(push_x, push_y, push_z)


@wp.func
def steer(
    c: CrowdArrays,
    m: MapArrays,
    rings: RingTable,
    e: BodyEdges,
    p: wp.array[wp.float64],
    i: int,
    preferred: wp.vec3d,
    normal: wp.vec3d,
) -> wp.vec3d:
    """The next velocity of agent i."""
    x = c.position[i]
    v = c.velocity[i]
    cell = c.cell[i]
    number = c.number[i]
    r = p[_R]
    careful = p[_CAREFUL] > _HALF
    flat = m.dimension == 2 and c.surface == 0
    push = wp.vec3d()
    fear = wp.vec3d()
    batch = IndexBatch()
    afraid = bool(False)
    far = wp.max(r, p[_PANIC])
    here = wp.vec3f(x)
    within = rounded_up(r * r)
    edges_within = wp.float32(-1.0)
    if e.entry.shape[0] > 0:
        edges_within = squared_edge_reach(e, far)
    row = c.neighbourhoods.cell[cell].run
    for k in range(row, row + c.neighbourhoods.cell[cell].runs):
        run = c.neighbourhoods.run[k]
        away = squared_gap(run, here)
        if away <= within:
            push += agent_pushes(c, p, i, c.start[run.first], c.start[run.last + 1], flat)
        if away <= edges_within:
            # As in `agent_pushes`: those whose ball is touched are noted first, without a branch.
            q = int(e.start[run.first])
            last = e.start[run.last + 1]
            while q < last:
                count = int(0)
                while q < last and count < _BATCH:
                    batch[count] = q
                    count += wp.where(
                        ball_may_be_near(e.entry_ball[q], x, wp.where(e.entry_owner[q] < 0, far, r)), 1, 0
                    )
                    q += 1
                for in_batch in range(count):
                    ahead = e.entry_owner[batch[in_batch]] < 0
                    place = e.entry[batch[in_batch]]
                    g = e.edge[place]
                    # Never more than the true distance.
                    if elliptic_distance(x, e.a[g], e.b[g]) < wp.where(ahead, far, r):
                        if is_first_cell_seen(e, c.neighbourhoods, cell, place, here, edges_within):
                            f = SourceField()
                            if p[_ELLIPSE] > _HALF:
                                f = edge_field(x, v, e.a[g], e.b[g], e.velocity_a[g], e.velocity_b[g], normal)
                            else:
                                f = segment_field(x, v, e.a[g], e.b[g], e.velocity_a[g], e.velocity_b[g], normal)
                            one = bubble_push(f.distance, f.rate, p[_K], p[_Z], r, careful) * f.away
                            push += one
                            if ahead and f.distance < p[_PANIC]:
                                afraid = True
                                fear += f.away * (p[_PANIC] - f.distance) + one
    wall = nearest_wall_of_cell(c.neighbourhoods, cell, x)
    if wall.distance < p[_WALL]:
        w = (x - wall.point) / wp.max(wall.distance, _TINY)
        push += bubble_push(wall.distance, wp.dot(w, v), _WALL_FACTOR * p[_K], p[_Z], p[_WALL], careful) * w
    force = push + p[_NOISE] * perturbation(c.seed + number, c.clock[0], flat)
    limit = p[_ACCELERATION]
    fastest = p[_MAX_SPEED_FACTOR] * c.speed[number]
    if afraid:
        limit *= p[_PANIC_FACTOR]
        fastest *= p[_PANIC_FACTOR]
        aside = fear - wp.dot(fear, normal) * normal
        force += (wp.normalize(aside) * fastest - v) / p[_TAU]
    else:
        force += (preferred - v) / p[_TAU]
        if c.group[number] >= 0:
            force += p[_COHESION] * (c.group_centre[c.group[number]] - x)
    # Whoever is faster than he may, because his panic is over, brakes no harder than he accelerates.
    next_velocity = clamp_length(v + c.dt * clamp_length(force, limit), fastest)
    return v + clamp_length(next_velocity - v, c.dt * limit)
