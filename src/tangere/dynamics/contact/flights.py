"""The bounces of a world: arrays and launches of `impacts`, kept from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.contact.impacts import FlightArrays, begin_flight, bounce_islands, end_flight
from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.contact.rows import Distances
from tangere.dynamics.solver import Solver, vec6d
from tangere.dynamics.state import RigidState
from tangere.runtime import PreparedLaunch


class Flights:
    """Bodies of islands that bounce, from impact to impact.

    Args:
        solved: bodies as the solver takes them.
        free: velocities without contacts.
        motion, end: how bodies go in the step, and their velocities at its end.
    """

    def __init__(
        self,
        solver: Solver,
        rows: RowSet,
        state: RigidState,
        solved: Any,
        free: wp.array,
        motion: wp.array,
        end: wp.array,
        distances: Distances,
        device: wp.Device,
    ) -> None:
        self._solver, self._rows, self._state, self._solved, self._free = solver, rows, state, solved, free
        self._motion, self._end, self._distances, self._device = motion, end, distances, device
        count = self._count = len(free)
        self._flight: Any = FlightArrays()
        for name in ("velocity", "way", "pushed"):
            setattr(self._flight, name, wp.zeros(count, dtype=vec6d, device=device))
        self._unused = wp.zeros(count, dtype=vec6d, device=device)
        self._bounced = wp.zeros(count, dtype=wp.int32, device=device)
        self._key: tuple[int, ...] = ()
        self.events = 0  #: impacts, one after the other, of the last step

    def _prepare(self) -> None:
        islands, rows = self._solver.islands.arrays, self._rows
        key = self._solver.islands.version, rows.version
        if key == self._key:
            return
        device, dt = self._device, self._distances.dt
        about = [islands, self._bounced, self._flight]
        arguments = [islands, self._solved, rows.arrays, rows.facts, self._state, self._free, self._distances]
        self._bounce = PreparedLaunch(bounce_islands, [*arguments, self._flight, self._bounced], device, grain=4)
        self._begin = PreparedLaunch(begin_flight, [*about, dt, self._solved.velocity], device, grain=512)
        velocity = self._solved.velocity
        self._go = PreparedLaunch(end_flight, [*about, velocity, dt, self._motion, self._end], device, grain=512)
        self._speed = PreparedLaunch(end_flight, [*about, velocity, dt, self._unused, self._end], device, grain=512)
        self._key = key

    def find(self, islands: int) -> bool:
        """Go from impact to impact in all islands; whether there was any."""
        self._prepare()
        wp.copy(self._flight.velocity, self._state.velocity)
        wp.copy(self._flight.pushed, self._state.velocity)
        self._flight.way.zero_()
        self._bounce(islands)
        self.events = int(np.sum(self._bounced.numpy()[:islands]))
        return self.events > 0

    def begin(self) -> None:
        """Velocities to solve from: of bodies that bounced their mean ones."""
        self._begin(self._count)

    def end(self) -> None:
        """Motions and velocities of bodies that bounced, from what was solved."""
        self._go(self._count)

    def end_speeds(self) -> None:
        """Their velocities only."""
        self._speed(self._count)
