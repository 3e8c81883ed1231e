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

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.rings import RingTable
from tangere.cells.tracking.surface import triangle_normal
from tangere.crowd.arrays import Crowd, Edges, Routes, wish
from tangere.crowd.going import Place, go_over_surface, go_straight
from tangere.runtime import SOUND, launch

__all__ = ["Behaviour", "gather_agents", "keep_velocity", "step_agents"]

wp.set_module_options(SOUND)

#: Agents per kernel index on CPU, where every index costs a copy of the map's array headers.
_CHUNK = 32
_GRAIN = 16


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


def step_agents(steer: Any, go: bool, inputs: list[Any], time: float, outputs: list[Any], device: wp.Device) -> None:
    """Run one step.

    Args:
        go: False: only steer, agents stay.
        inputs: crowd, map, rings, edges, routes, parameters. outputs: position, velocity, dart, cell.
    """
    crowd, chunk = inputs[0], 1 if device.is_cuda else _CHUNK
    kernel = _step_kernel(steer, _stay if not go else go_over_surface if crowd.surface else go_straight)
    indices = -(-len(crowd.position) // chunk)
    launch(kernel, indices, [*inputs, wp.float64(time), chunk], outputs, device=device, grain=_GRAIN)


def gather_agents(order: wp.array, source: list[wp.array], target: list[wp.array], device: wp.Device) -> None:
    """Put position, velocity, dart and number of agent order[i] at place i."""
    launch(_gather, len(order), [order, *source], target, device=device)


@wp.func
def keep_velocity(
    c: Crowd,
    m: MapArrays,
    rings: RingTable,
    e: Edges,
    p: wp.array[wp.float64],
    i: int,
    wanted: wp.vec3d,
    normal: wp.vec3d,
) -> wp.vec3d:
    """Go on as before."""
    return c.velocity[i]


@wp.func
def _stay(m: MapArrays, dart: int, start: wp.vec3d, velocity: wp.vec3d, dt: wp.float64) -> Place:
    end = Place()
    end.position = start
    end.velocity = velocity
    end.dart = dart
    return end


@cache
def _step_kernel(steer: Any, go: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def step(
        first: int,
        c: Crowd,
        m: MapArrays,
        rings: RingTable,
        e: Edges,
        r: Routes,
        parameters: wp.array[wp.float64],
        time: wp.float64,
        chunk: int,
        position: wp.array[wp.vec3d],
        velocity: wp.array[wp.vec3d],
        dart: wp.array[int],
        cell: wp.array[int],
    ):
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
            end = go(m, c.dart[i], x, v, c.dt)
            position[i] = end.position
            velocity[i] = end.velocity
            dart[i] = end.dart
            cell[i] = m.cell[end.dart]

    return step


@wp.kernel
def _gather(
    first: int,
    order: wp.array[int],
    position: wp.array[wp.vec3d],
    velocity: wp.array[wp.vec3d],
    dart: wp.array[int],
    number: wp.array[int],
    position_out: wp.array[wp.vec3d],
    velocity_out: wp.array[wp.vec3d],
    dart_out: wp.array[int],
    number_out: wp.array[int],
):
    i = first + wp.tid()
    k = order[i]
    position_out[i] = position[k]
    velocity_out[i] = velocity[k]
    dart_out[i] = dart[k]
    number_out[i] = number[k]
