"""The social force model: people are driven to their goal, and pushed by others and by walls, harder where they touch.

Question: what is the next velocity of an agent?
Method:   mass times acceleration is the drive (preferred - v) / tau and, from each neighbour and wall, a push
          A exp((l - d) / B); where bodies touch, a spring k (l - d) and friction kappa (l - d) against sliding as well.
          Who is hidden by a wall does not count. Speed is at most 1.3 times the wanted one, as Helbing and Molnár
          (1995) have it: without it, steps of a hundredth of a second blow up in dense crowds.
Known as: social force model (Helbing, Farkas, Vicsek 2000).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays
from tangere.crowd.agents.neighbour_ranges import rounded_up, squared_gap
from tangere.crowd.agents.wall_crossings import MASKED, is_hidden_by
from tangere.crowd.agents.walls import nearest_on_segment
from tangere.runtime import SOUND, not_negative, positive

wp.set_module_options(SOUND)

_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
_TINY = wp.constant(wp.float64(1.0e-12))
_MASKED = wp.constant(MASKED)
_RANGE, _STRENGTH, _DECAY, _SPRING, _FRICTION, _TAU, _MASS, _FASTEST = (wp.constant(i) for i in range(8))
#: Pushes that accelerate by less do not count [m/s^2]; people that a range is derived for [m].
_NEGLIGIBLE, _RADIUS = 1.0e-3, 0.25


@dataclass(frozen=True)
class SocialForce:
    """Social force model.

    Args:
        strength: A [N]. decay: B [m]. spring: k [kg/s^2]. friction: kappa [kg/(m s)].
        relaxation: tau [s]. mass: of everybody [kg].
        max_speed_factor: the most speed, as a part of the wanted one.
        cutoff: how far neighbours count [m]; None: as far as they accelerate by a millimetre per square second.
    """

    strength: float = 2000.0
    decay: float = 0.08
    spring: float = 1.2e5
    friction: float = 2.4e5
    relaxation: float = 0.5
    mass: float = 80.0
    max_speed_factor: float = 1.3
    cutoff: float | None = None

    def __post_init__(self) -> None:
        for name in ("strength", "decay", "relaxation", "mass", "max_speed_factor"):
            positive(getattr(self, name), f"SocialForce: {name}")
        for name in ("spring", "friction"):
            not_negative(getattr(self, name), f"SocialForce: {name}")
        if self.cutoff is not None:
            positive(self.cutoff, "SocialForce: cutoff")

    @property
    def range(self) -> float:
        """How far it looks [m]."""
        return self.fitted(_RADIUS, 0.0).cutoff if self.cutoff is None else self.cutoff  # pyright: ignore[reportReturnType]

    def fitted(self, radius: float, speed: float) -> SocialForce:
        """The same with a cutoff for people of at most this radius [m]; their speed does not matter."""
        if self.cutoff is not None:
            return self
        far = self.decay * math.log(max(self.strength / (self.mass * _NEGLIGIBLE), math.e))
        return replace(self, cutoff=2.0 * radius + far)

    @property
    def steer(self) -> Any:
        """The function a step calls for each agent."""
        return steer

    def parameters(self) -> np.ndarray:
        """What the function gets."""
        values = [self.range, self.strength, self.decay, self.spring, self.friction, self.relaxation, self.mass]
        return np.array([*values, self.max_speed_factor], float)


@wp.func
def contact_force(
    p: wp.array[wp.float64], away: wp.vec3d, distance: wp.float64, reach: wp.float64, slip: wp.vec3d
) -> wp.vec3d:
    """The force of a neighbour that is `away` at a distance, l being `reach`; slip: its velocity less our own."""
    unit = away / wp.max(distance, _TINY)
    force = p[_STRENGTH] * wp.exp((reach - distance) / p[_DECAY]) * unit
    if distance < reach:
        along = wp.vec3d(-unit[1], unit[0], _ZERO)
        force += p[_SPRING] * (reach - distance) * unit
        force += p[_FRICTION] * (reach - distance) * wp.dot(slip, along) * along
    return force


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
    radius = c.radius[number]
    r = p[_RANGE]
    seen = c.neighbourhoods.cell[cell]
    nearest = wp.float64(wp.inf)
    mask = wp.int64(0)
    force = wp.vec3d()
    for k in range(seen.walls):
        edge = c.neighbourhoods.walls.edge[seen.wall + k]
        on = nearest_on_segment(edge.a, edge.b, x)
        distance = wp.length(x - on)
        if distance < r:
            nearest = wp.min(nearest, distance)
            if k < _MASKED:
                mask = mask | (wp.int64(1) << wp.int64(k))
            force += contact_force(p, x - on, distance, radius, -v)
    if seen.walls > _MASKED:
        nearest = _ZERO
    here = wp.vec3f(x)
    within = rounded_up(r * r)
    for k in range(seen.run, seen.run + seen.runs):
        run = c.neighbourhoods.run[k]
        if squared_gap(run, here) <= within:
            for j in range(c.start[run.first], c.start[run.last + 1]):
                away = x - c.position[j]
                square = wp.length_sq(away)
                if square < r * r and j != i:
                    d = wp.sqrt(square)
                    hidden = bool(False)
                    if d > nearest:
                        hidden = is_hidden_by(c.neighbourhoods, cell, mask, x, c.position[j])
                    if not hidden:
                        force += contact_force(p, away, d, radius + c.radius[c.number[j]], c.velocity[j] - v)
    next = v + ((preferred - v) / p[_TAU] + force / p[_MASS]) * c.dt
    fastest = p[_FASTEST] * c.speed[number]
    return next * wp.min(_ONE, fastest / wp.max(wp.length(next), _TINY))
