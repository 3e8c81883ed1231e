"""How far bodies may get in a step: within what distance contacts are gathered.

Question: which gaps can two bodies close in a step?
Method:   no point of a body goes farther than dt (|v| + |w| radius), with the larger of its velocities now and without
          contacts. Bodies that are fast for their size, or for that of their triangles, gather within their reach only:
          what is beyond is found by the walk.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.contact.rows import Distances
from tangere.dynamics.solver import vec6d
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, linear_of
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)


class PairLimits:
    """Within what distance the features of pairs of bodies are gathered, in room that is kept.

    Args:
        way: how far each body may go.
        rupture: security distances beyond that.
    """

    def __init__(self, way: wp.array, distances: Distances, rupture: float, device: wp.Device) -> None:
        self._about, self._device = [way, distances, rupture], device
        self._limits = wp.zeros(64, dtype=wp.float64, device=device)
        self._limited: wp.array | None = None

    def of(self, listed: wp.array, count: int) -> wp.array:
        """(count,) of the first listed pairs."""
        if count > len(self._limits):
            self._limited = None  # first: who interrupts this leaves no launch over less room
            self._limits = wp.zeros(2 * count, dtype=wp.float64, device=self._device)
        if self._limited is not listed:
            self._find = PreparedLaunch(find_limits, [listed, *self._about, self._limits], self._device, grain=1024)
            self._limited = listed
        self._find(count)
        return self._limits[:count]


@wp.func
def point_speed(velocity: vec6d, radius: wp.float64) -> wp.float64:
    """How fast no point of a body is faster than [m/s]."""
    return wp.length(linear_of(velocity)) + wp.length(angular_of(velocity)) * radius


@wp.kernel
def find_reach(
    first: int,
    table: BodyConstants,
    state: RigidState,
    free: wp.array[vec6d],
    distances: Distances,
    rupture: wp.float64,
    motion: wp.array[vec6d],
    way: wp.array[wp.float64],
    reach: wp.array[wp.float64],
):
    """How far each body may go, and by how much its box is grown."""
    i = first + wp.tid()
    speed = wp.max(point_speed(free[i], table.radius[i]), point_speed(state.velocity[i], table.radius[i]))
    way[i] = wp.min(speed * distances.dt[0], table.reach[i])
    reach[i] = way[i] + rupture * distances.security + distances.kept
    motion[i] = distances.dt[0] * free[i]


@wp.kernel
def find_limits(
    first: int,
    pairs: wp.array[wp.vec2i],
    way: wp.array[wp.float64],
    distances: Distances,
    rupture: wp.float64,
    limits: wp.array[wp.float64],
):
    """Below which distance the features of each pair are contacts."""
    k = first + wp.tid()
    limits[k] = way[pairs[k][0]] + way[pairs[k][1]] + rupture * distances.security + distances.kept


@wp.kernel
def add_motion(
    first: int,
    placed: wp.array[vec6d],
    constants: BodyConstants,
    dt: wp.array[wp.float64],
    most: wp.array[wp.float64],
    motion: wp.array[vec6d],
):
    """Go what `placement` found, too, but no farther than `most[0]`: what contradicts itself is not followed."""
    i = first + wp.tid()
    more = dt[0] * placed[i]
    for k in range(6):
        if (constants.held[i] >> k) & 1 == 1:
            more[k] = wp.float64(0.0)
    way = point_speed(more, constants.radius[i])
    if way > most[0]:
        more = more * (most[0] / way)
    motion[i] = motion[i] + more
