"""The fused step: every agent sees its neighbours, steers and moves, in one kernel; then agents are sorted by cell.

Question: where is each point agent after a step?
Method:   any behaviour fits: a behaviour is a Warp function
          `steer(crowd, map, rings, edges, parameters, i, preferred, normal)` that returns the next velocity of agent i,
          and an array of parameters.
Sound:    it may read everything of the step before and writes nothing, so that results depend neither on the order of
          agents nor on threads.
Known as: a fused kernel; a behaviour is a steering function (Pitiot 2015, section 8.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.cells.tracking import triangle_normal
from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays, MovedAgents
from tangere.crowd.agents.locomotion import AgentPlace, move_over_surface, move_straight
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.crowd.navigation.routes import Routes, preferred_velocity
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: Agents per kernel index on CPU, where every index costs a copy of the map's array headers.
_CHUNK = 32
_GRAIN = 32


class Behaviour(Protocol):
    """How agents steer."""

    @property
    def range(self) -> float:
        """How far it looks [m]: cells are at least as wide."""
        ...

    @property
    def steer(self) -> Any:
        """A `wp.func`, see the module."""
        ...

    def parameters(self) -> np.ndarray:
        """(k,) float64 for the function."""
        ...


@dataclass(frozen=True)
class StepLaunches:
    """What to run in a step of points, in this order."""

    steer: PreparedLaunch  #: and move, unless that is a launch of its own
    move: PreparedLaunch | None
    sort: list[Any]  #: by cell


def step_launches(
    steer: Any, inputs: list[Any], out: MovedAgents, sort: list[Any], device: wp.Device, *, separate: bool
) -> StepLaunches:
    """The launches of a step.

    Args:
        steer: the function of a behaviour.
        inputs: crowd, map, rings, edges, routes, parameters. out: where agents go, in the order of the crowd.
        sort: launches that put them into the crowd, by cell.
        separate: steer and move apart, so that each can be timed.
    """
    crowd, map, chunk = inputs[0], inputs[1], 1 if device.is_cuda else _CHUNK
    movement = move_over_surface if crowd.surface else move_straight
    indices = -(-len(crowd.position) // chunk)
    kernel = _step_kernel(steer, _stay if separate else movement)
    steering = PreparedLaunch(kernel, [*inputs, chunk, out], device, dim=indices, grain=_GRAIN)
    moving = None
    if separate:
        arguments = [crowd, map, chunk, out]
        moving = PreparedLaunch(_move_kernel(movement), arguments, device, dim=indices, grain=_GRAIN)
    return StepLaunches(steering, moving, sort)


@wp.func
def _place_of(c: CrowdArrays, i: int, velocity: wp.vec3d) -> AgentPlace:
    here = AgentPlace()
    here.position = c.position[i]
    here.velocity = velocity
    here.dart = c.dart[i]
    here.cell = c.cell[i]
    here.rectangle = c.rectangle[i]
    return here


@wp.func
def _write_place(out: MovedAgents, i: int, there: AgentPlace):
    out.position[i] = there.position
    out.velocity[i] = there.velocity
    out.dart[i] = there.dart
    out.cell[i] = there.cell
    out.rectangle[i] = there.rectangle


@wp.func
def _stay(m: MapArrays, s: Neighbourhoods, start: AgentPlace, dt: wp.float64) -> AgentPlace:
    return start


@cache
def _step_kernel(steer: Any, movement: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def step(
        first: int,
        c: CrowdArrays,
        m: MapArrays,
        rings: RingTable,
        e: BodyEdges,
        r: Routes,
        parameters: wp.array[wp.float64],
        chunk: int,
        out: MovedAgents,
    ):
        time = wp.float64(c.clock[0]) * c.dt
        begin = (first + wp.tid()) * chunk
        for i in range(begin, wp.min(begin + chunk, c.position.shape[0])):
            x = c.position[i]
            normal = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
            preferred = preferred_velocity(r, c.number[i], x, c.speed[c.number[i]], time)
            if c.surface == 1:
                normal = triangle_normal(m, c.dart[i])
                size = wp.length(preferred)
                preferred = preferred - wp.dot(preferred, normal) * normal
                preferred = wp.normalize(preferred) * size
            v = steer(c, m, rings, e, parameters, i, preferred, normal)
            if c.surface == 1:
                v = v - wp.dot(v, normal) * normal
            end = movement(m, c.neighbourhoods, _place_of(c, i, v), c.dt)
            out.number[i] = int(c.number[i])
            _write_place(out, i, end)

    return step


@cache
def _move_kernel(movement: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def move(first: int, c: CrowdArrays, m: MapArrays, chunk: int, out: MovedAgents):
        begin = (first + wp.tid()) * chunk
        for i in range(begin, wp.min(begin + chunk, c.position.shape[0])):
            end = movement(m, c.neighbourhoods, _place_of(c, i, out.velocity[i]), c.dt)
            _write_place(out, i, end)

    return move
