"""The collision-free speed model: turn away from whoever is near, and go as fast as the space ahead allows.

Question: what is the next velocity of an agent?
Method:   the direction is that of the goal and a push a exp((l - d) / D) from each neighbour and each wall, l being the
          sum of radii. The speed is the space ahead over the time gap, at most the wanted one; ahead is who is in the
          strip of width 2 l in that direction. Who is hidden by a wall does not count.
          Beyond the range nobody changes speed, and pushes are below 1e-4 of the drive: so the range follows from the
          radii, speeds and the time gap, unless a cutoff is given.
          Positions are double; what pairs add may be single, of differences taken in double.
Known as: collision-free speed model (Tordeux, Chraibi, Seyfried 2016), as JuPedSim has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays
from tangere.crowd.agents.neighbour_ranges import rounded_up, squared_gap
from tangere.crowd.agents.wall_crossings import MASKED, is_hidden_by
from tangere.crowd.agents.walls import nearest_on_segment
from tangere.runtime import SOUND, InputError, not_negative, positive

wp.set_module_options(SOUND)

_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
_TINY = wp.constant(wp.float64(1.0e-12))
_MASKED = wp.constant(MASKED)
_RANGE, _STRENGTH, _DECAY, _WALL_STRENGTH, _WALL_DECAY, _GAP, _RESTLESSNESS, _PUSHED = (
    wp.constant(i) for i in range(8)
)
#: Where nobody is ahead, walls push aside at most by so many times the drive.
_ASIDE = wp.constant(wp.float64(2.0))
#: Who is slower than this part of what he wants stands.
_STANDING = wp.constant(wp.float64(0.02))
#: Neighbours that are kept for the space ahead; where there are more, all are looked at again.
_KEPT = 48
#: Pushes below this part of the drive do not count; where a cutoff is given, those below rounding.
_NEGLIGIBLE, _ROUNDING = 1.0e-4, {"single": 2.0**-25, "double": 0.0}
#: People that a range is derived for where nobody says who comes [m, m/s].
_RADIUS, _SPEED = 0.25, 1.5


@dataclass(frozen=True)
class CollisionFreeSpeed:
    """Collision-free speed model.

    Args:
        time_gap: seconds to who is ahead: speed is space over it. About 1.1 people/m/s pass a door with 1 s, 1.3 to 1.9
            as published with 0.8 to 0.5 s.
        strength, decay: of the push from neighbours [1, m]. wall_strength, wall_decay: from walls.
        restlessness: who stands turns at random by up to this angle [rad], and where nobody is ahead walls turn people
            aside but not back.
            The model as published has none (0), and then three people may hold each other for ever in a door, each
            waiting for the next, and two walls one in a door that is hardly wide enough; two radians free them.
        cutoff: how far neighbours count [m]; None: as far as they matter, by radii, speeds and time gap. Of those
            within it, who neither slows anybody down nor pushes more than rounding is left out.
        precision: of what pairs add: "single" is faster, "double" is for comparisons.
    """

    time_gap: float = 1.0
    strength: float = 8.0
    decay: float = 0.1
    wall_strength: float = 5.0
    wall_decay: float = 0.02
    restlessness: float = 0.0
    cutoff: float | None = None
    precision: Literal["single", "double"] = "single"

    def __post_init__(self) -> None:
        for name in ("time_gap", "strength", "decay", "wall_strength", "wall_decay"):
            positive(getattr(self, name), f"CollisionFreeSpeed: {name}")
        not_negative(self.restlessness, "CollisionFreeSpeed: restlessness")
        if self.cutoff is not None:
            positive(self.cutoff, "CollisionFreeSpeed: cutoff")
        if self.precision not in ("single", "double"):
            raise InputError(f"CollisionFreeSpeed: precision is 'single' or 'double', not {self.precision!r}")

    @property
    def range(self) -> float:
        """How far it looks [m]."""
        return self.fitted(_RADIUS, _SPEED).cutoff if self.cutoff is None else self.cutoff  # pyright: ignore[reportReturnType]

    def fitted(self, radius: float, speed: float) -> CollisionFreeSpeed:
        """The same with a cutoff for people of at most this radius [m] and wanted speed [m/s]."""
        least = _NEGLIGIBLE if self.cutoff is None else _ROUNDING[self.precision]
        matters = 2.0 * radius + max(speed * self.time_gap, self._pushed(least))
        return replace(self, cutoff=matters if self.cutoff is None else min(self.cutoff, matters))

    def _pushed(self, least: float) -> float:
        """From which space on a push is less than this part of the drive [m]."""
        return self.decay * math.log(max(self.strength / least, 1.0)) if least > 0.0 else math.inf

    @property
    def steer(self) -> Any:
        """The function a step calls for each agent."""
        return _steering(self.precision == "double")

    def parameters(self) -> np.ndarray:
        """What the function gets."""
        values = [self.range, self.strength, self.decay, self.wall_strength, self.wall_decay, self.time_gap]
        return np.array([*values, self.restlessness, self._pushed(_ROUNDING[self.precision])], float)


@wp.func
def _space_ahead(ex: Any, ey: Any, w: Any, space: Any) -> Any:
    """The lesser of a space and that to a neighbour, if it is ahead: (x, y) of it, distance, sum of radii."""
    along = ex * w[0] + ey * w[1]
    if along >= type(along)(0.0) and wp.abs(ex * w[1] - ey * w[0]) <= w[3]:
        return wp.min(space, w[2] - w[3])
    return space


@cache
def _steering(double: bool) -> Any:
    real = wp.float64 if double else wp.float32
    vec = wp.vec4d if double else wp.vec4f

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
        cell = c.cell[i]
        number = c.number[i]
        radius = c.radius[number]
        r = p[_RANGE]
        seen = c.neighbourhoods.cell[cell]
        wanting = wp.normalize(preferred)
        push = wanting
        nearest = wp.float64(wp.inf)
        mask = wp.int64(0)
        for k in range(seen.walls):
            edge = c.neighbourhoods.walls.edge[seen.wall + k]
            on = nearest_on_segment(edge.a, edge.b, x)
            distance = wp.length(x - on)
            if distance < r:
                nearest = wp.min(nearest, distance)
                if k < _MASKED:
                    mask = mask | (wp.int64(1) << wp.int64(k))
                firm = p[_WALL_STRENGTH] * wp.exp((radius - distance) / p[_WALL_DECAY])
                push += (x - on) * (firm / wp.max(distance, _TINY))
        if seen.walls > _MASKED:
            nearest = _ZERO
        kept = wp.zeros(_KEPT, dtype=vec)
        count = int(0)
        here = wp.vec3f(x)
        within = rounded_up(r * r)
        square = real(r * r)
        wall = real(nearest)
        strength = real(p[_STRENGTH])
        decay = real(p[_DECAY])
        own = real(radius)
        wanted = wp.length(preferred)
        slowing = real(wanted * p[_GAP])  # who is farther does not slow it down
        # Beyond it nobody slows down, and pushes are below rounding: in double precision nothing is left out.
        matters = wp.max(slowing, real(p[_PUSHED]))
        push_x = real(0.0)
        push_y = real(0.0)
        for k in range(seen.run, seen.run + seen.runs):
            run = c.neighbourhoods.run[k]
            if squared_gap(run, here) <= within:
                for j in range(c.start[run.first], c.start[run.last + 1]):
                    y = c.position[j]
                    dx = real(x[0] - y[0])
                    dy = real(x[1] - y[1])
                    apart = dx * dx + dy * dy
                    if apart < square and j != i:
                        d = wp.sqrt(apart)
                        reach = own + real(c.radius[c.number[j]])
                        hidden = d > reach + matters
                        if d > wall and not hidden:
                            hidden = is_hidden_by(c.neighbourhoods, cell, mask, x, y)
                        if not hidden:
                            weight = strength * wp.exp((reach - d) / decay) / wp.max(d, real(1.0e-12))
                            push_x += dx * weight
                            push_y += dy * weight
                            if d < reach + slowing:
                                if count < _KEPT:
                                    kept[count] = vec(-dx, -dy, d, reach)
                                count += 1
        if p[_RESTLESSNESS] > _ZERO:
            free = slowing
            for k in range(wp.min(count, _KEPT)):
                free = _space_ahead(real(wanting[0]), real(wanting[1]), kept[k], free)
            if free >= slowing:  # nobody is ahead: walls push aside, but neither back nor much
                off = push - wp.dot(push, wanting) * wanting
                aside = wp.min(_ONE, _ASIDE / wp.max(wp.length(off), _TINY))
                push = wp.max(wp.dot(push, wanting), _ONE) * wanting + off * aside
        push = wp.normalize(push + wp.vec3d(wp.float64(push_x), wp.float64(push_y), _ZERO))
        slow = wp.length(c.velocity[i]) < _STANDING * wanted
        if p[_RESTLESSNESS] > _ZERO and slow and c.clock[0] > 0:
            state = wp.rand_init(c.seed + number, c.clock[0])
            turn = p[_RESTLESSNESS] * wp.float64(wp.randf(state, -1.0, 1.0))
            cosine = wp.cos(turn)
            sine = wp.sin(turn)
            push = wp.vec3d(cosine * push[0] - sine * push[1], sine * push[0] + cosine * push[1], _ZERO)
        ex = real(push[0])
        ey = real(push[1])
        space = real(1.0e9)
        for k in range(wp.min(count, _KEPT)):
            space = _space_ahead(ex, ey, kept[k], space)
        if count > _KEPT:
            for k in range(seen.run, seen.run + seen.runs):
                run = c.neighbourhoods.run[k]
                for j in range(c.start[run.first], c.start[run.last + 1]):
                    y = c.position[j]
                    dx = real(x[0] - y[0])
                    dy = real(x[1] - y[1])
                    apart = dx * dx + dy * dy
                    if apart < square and j != i:
                        if not is_hidden_by(c.neighbourhoods, cell, mask, x, y):
                            reach = own + real(c.radius[c.number[j]])
                            space = _space_ahead(ex, ey, vec(-dx, -dy, wp.sqrt(apart), reach), space)
        return push * wp.min(wp.max(wp.float64(space) / p[_GAP], _ZERO), wanted)

    return steer
