"""The fused step: every agent looks around, steers and goes, in one kernel; then agents are sorted by cell.

Any behaviour fits: a behaviour is a Warp function `steer(crowd, map, rings, edges, parameters, i, wanted, normal)`
that returns the next velocity of agent i, and an array of parameters. It may read everything of the step before and
writes nothing, so that results depend neither on the order of agents nor on threads.
Spec: specs/pitiot-multiresolution-interactions 2.11, 2.19, 5.3.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.cells.tracking import triangle_normal
from tangere.crowd.agents.arrays import Agents, CrowdArrays, Edges, Routes, wish
from tangere.crowd.agents.locomotion import AgentPlace, go_over_surface, go_straight
from tangere.crowd.agents.neighbour_ranges import Sight
from tangere.runtime import SOUND, PreparedLaunch

__all__ = ["Behaviour", "go_launch", "step_launch"]

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


def step_launch(steer: Any, go: bool, inputs: list[Any], out: Agents, device: wp.Device) -> PreparedLaunch:
    """What to run for one step.

    Args:
        go: False: only steer, agents stay.
        inputs: crowd, map, rings, edges, routes, parameters. out: where the agents go, in the order of the crowd.
    """
    crowd, chunk = inputs[0], 1 if device.is_cuda else _CHUNK
    kernel = _step_kernel(steer, _way(crowd) if go else _stay)
    indices = -(-len(crowd.position) // chunk)
    return PreparedLaunch(kernel, [*inputs, chunk, out], device, dim=indices, grain=_GRAIN)


def go_launch(crowd: CrowdArrays, map: MapArrays, out: Agents, device: wp.Device) -> PreparedLaunch:
    """What to run after a step that only steers: go by the velocities in `out`."""
    chunk = 1 if device.is_cuda else _CHUNK
    indices = -(-len(crowd.position) // chunk)
    return PreparedLaunch(_go_kernel(_way(crowd)), [crowd, map, chunk, out], device, dim=indices, grain=_GRAIN)


def _way(crowd: CrowdArrays) -> Any:
    return go_over_surface if crowd.surface else go_straight


@wp.func
def _here(c: CrowdArrays, i: int, velocity: wp.vec3d) -> AgentPlace:
    here = AgentPlace()
    here.position = c.position[i]
    here.velocity = velocity
    here.dart = c.dart[i]
    here.cell = c.cell[i]
    here.within = c.within[i]
    return here


@wp.func
def _stay(m: MapArrays, s: Sight, from_: AgentPlace, dt: wp.float64) -> AgentPlace:
    return from_


@cache
def _step_kernel(steer: Any, go: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def step(
        first: int,
        c: CrowdArrays,
        m: MapArrays,
        rings: RingTable,
        e: Edges,
        r: Routes,
        parameters: wp.array[wp.float64],
        chunk: int,
        out: Agents,
    ):
        time = wp.float64(c.clock[0]) * c.dt
        begin = (first + wp.tid()) * chunk
        for i in range(begin, wp.min(begin + chunk, c.position.shape[0])):
            x = c.position[i]
            normal = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
            wanted = wish(r, c.number[i], x, c.speed[c.number[i]], time)
            if c.surface == 1:
                normal = triangle_normal(m, c.dart[i])
                size = wp.length(wanted)
                wanted = wanted - wp.dot(wanted, normal) * normal
                wanted = wp.normalize(wanted) * size
            v = steer(c, m, rings, e, parameters, i, wanted, normal)
            if c.surface == 1:
                v = v - wp.dot(v, normal) * normal
            end = go(m, c.sight, _here(c, i, v), c.dt)
            out.position[i] = end.position
            out.velocity[i] = end.velocity
            out.dart[i] = end.dart
            out.number[i] = int(c.number[i])
            out.cell[i] = end.cell
            out.within[i] = end.within

    return step


@cache
def _go_kernel(go: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def walk(first: int, c: CrowdArrays, m: MapArrays, chunk: int, out: Agents):
        begin = (first + wp.tid()) * chunk
        for i in range(begin, wp.min(begin + chunk, c.position.shape[0])):
            end = go(m, c.sight, _here(c, i, out.velocity[i]), c.dt)
            out.position[i] = end.position
            out.velocity[i] = end.velocity
            out.dart[i] = end.dart
            out.cell[i] = end.cell
            out.within[i] = end.within

    return walk
