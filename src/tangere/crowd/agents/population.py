"""The point agents of a crowd: their state on the device, in the order of their cells, and their routes.

Spec: specs/pitiot-multiresolution-interactions 2.11, 2.18, 5.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap
from tangere.crowd.agents.arrays import Agents, CrowdArrays, Routes
from tangere.crowd.agents.cell_sort import cell_sort
from tangere.crowd.agents.relocation import relocated
from tangere.crowd.navigation.routes import Ways, progress, routes_of
from tangere.runtime import SOUND, launch

__all__ = ["Population"]

wp.set_module_options(SOUND)

_STATE = {"position": wp.vec3d, "velocity": wp.vec3d, "within": wp.vec4f}
_STATE |= dict.fromkeys(("dart", "number", "cell"), wp.int32)


class Population:
    """Point agents; everything public is by agent number."""

    def __init__(self, map: CellMap) -> None:
        self.map = map
        self.traits: dict[str, np.ndarray] = {
            **{name: np.empty(0) for name in ("radius", "speed", "set_off", "arrived")},
            **{name: np.empty(0, np.int64) for name in ("group", "repeat", "done")},
        }
        self.ways = Ways.of(None, 0)
        self.routes = Routes()
        self._sent_around = False
        self.crowd = CrowdArrays()  #: as kernels see it
        self.moved = Agents()  #: where a step puts them
        self.crowd.clock = wp.zeros(1, dtype=wp.int32, device=map.device)
        self.crowd.start = wp.zeros(map.cell_capacity + 1, dtype=wp.int32, device=map.device)
        for name, kind in _STATE.items():
            setattr(self.crowd, name, wp.empty(0, dtype=kind, device=map.device))

    def __len__(self) -> int:
        return len(self.ways)

    def by_number(self, name: str) -> np.ndarray:
        """A copy of "position", "velocity" or "dart", by agent number."""
        array = getattr(self.crowd, name).numpy()
        result = np.empty_like(array)
        result[self.crowd.number.numpy()] = array
        return result

    def add(self, positions: np.ndarray, darts: np.ndarray, ways: Ways, traits: dict[str, Any]) -> np.ndarray:
        """Take in agents at rest; returns their numbers."""
        before, count = len(self), len(positions)
        self._keep_progress()
        merged = {
            "position": np.concatenate([self.by_number("position"), positions]),
            "velocity": np.concatenate([self.by_number("velocity"), np.zeros((count, 3))]),
            "dart": np.concatenate([self.by_number("dart"), darts]).astype(np.int32),
            "number": np.arange(before + count, dtype=np.int32),
            "cell": np.zeros(before + count, np.int32),  # both are found when they are sorted
            "within": np.zeros((before + count, 4), np.float32),
        }
        for name, values in {**traits, "arrived": np.inf, "done": 0}.items():
            self.traits[name] = np.concatenate([self.traits[name], np.broadcast_to(values, count)])
        self.ways = self.ways.followed_by(ways)
        self._upload(merged)
        return np.arange(before, before + count)

    def retarget(self, numbers: np.ndarray, ways: Ways, time: float) -> None:
        """Give agents new routes, from their start; they set off now [s]."""
        self._keep_progress()
        self.ways = self.ways.replaced(numbers, ways)
        for name, value in (("arrived", np.inf), ("done", 0), ("set_off", time)):
            self.traits[name][numbers] = value
        self._send_routes(numbers)

    def cell_sort(self) -> list[Any]:
        """What to run after a step to sort the agents it has moved by cell."""
        return cell_sort(self.moved, self.crowd, 1, self.map.device)

    def relocate(self) -> None:
        """After cells were split or merged: find everybody's dart again and sort."""
        c, map = self.crowd, self.map
        if len(c.start) != map.cell_capacity + 1:
            c.start = wp.zeros(map.cell_capacity + 1, dtype=wp.int32, device=map.device)
        if len(self) == 0:
            return
        position, darts = relocated(map, c.position, c.dart)
        launch(_stage, len(self), [map.arrays.cell, position, darts, c], [self.moved], device=map.device)
        for part in cell_sort(self.moved, c, 0, map.device):
            part.run()

    def counts(self) -> np.ndarray:
        """Agents in each cell."""
        return np.diff(self.crowd.start.numpy())

    def arrived(self) -> np.ndarray:
        """When each agent was done with its route, for the first time [s]; inf before."""
        return self.routes.arrived.numpy().copy() if len(self) else np.empty(0)

    def under_way(self) -> np.ndarray:
        """Which agents still have a waypoint to go to."""
        return self.routes.at.numpy() < self.routes.end.numpy() if len(self) else np.empty(0, bool)

    def waypoints(self) -> np.ndarray:
        """(n, 3) what each agent heads for; where it is, if for nothing."""
        at, going = self.routes.at.numpy(), self.under_way()
        result = self.by_number("position")
        result[going] = self.routes.points.numpy()[at[going]]
        return result

    def send_around(self, numbers: np.ndarray, places: np.ndarray) -> None:
        """Let these agents, and nobody else, go over a place first."""
        if len(numbers) == 0 and not self._sent_around:
            return
        self._sent_around = len(numbers) > 0
        flags, detour = np.zeros(len(self), np.int32), np.zeros((len(self), 3))
        flags[numbers], detour[numbers] = 1, places
        self.routes.detoured.assign(flags)
        self.routes.detour.assign(detour)

    def centre_groups(self) -> None:
        """Find the centre of each group."""
        c = self.crowd
        launch(_slots, len(self), [c.number], [self._slot], device=self.map.device)
        groups = len(self._group_first) - 1
        inputs = [c.position, self._slot, self._group_first, self._group_members]
        launch(_centres, groups, inputs, [c.group_centre], device=self.map.device, grain=64)

    @property
    def has_groups(self) -> bool:
        """Whether anybody belongs to a group."""
        return len(self._group_members) > 0

    def _upload(self, state: dict[str, np.ndarray]) -> None:
        device, count = self.map.device, len(state["number"])
        c, traits = self.crowd, self.traits
        for name, kind in _STATE.items():
            setattr(c, name, wp.array(state[name], dtype=kind, device=device))
            setattr(self.moved, name, wp.empty(count, dtype=kind, device=device))
        c.radius, c.speed = (wp.array(traits[name], dtype=wp.float64, device=device) for name in ("radius", "speed"))
        # Kernels count groups from 0, whatever numbers they were given.
        given, group = np.unique(traits["group"], return_inverse=True)
        group = group - np.searchsorted(given, 0)
        c.group = wp.array(group.astype(np.int32), dtype=wp.int32, device=device)
        members = np.argsort(group, kind="stable")
        members = members[group[members] >= 0]
        most = int(group.max(initial=-1)) + 1
        first = np.searchsorted(group[members], np.arange(most + 1))
        self._group_first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
        self._group_members = wp.array(members.astype(np.int32), dtype=wp.int32, device=device)
        self._slot = wp.empty(count, dtype=wp.int32, device=device)
        c.group_centre = wp.zeros(max(most, 1), dtype=wp.vec3d, device=device)
        self._send_routes(np.empty(0, np.int64))
        self.relocate()

    def _send_routes(self, changed: np.ndarray) -> None:
        """Send all routes again; who is on a way around a wall stays on it, but for those whose route is another."""
        before, self.routes = self.routes, routes_of(self.ways, self.traits, self.map.device)
        if self._sent_around:
            known = np.setdiff1d(np.flatnonzero(before.detoured.numpy()), changed)
            self.send_around(known, before.detour.numpy()[known])

    def _keep_progress(self) -> None:
        """Note what is done of each route, so that it may be sent again."""
        if len(self):
            self.traits |= progress(self.routes)


@wp.kernel
def _stage(
    first: int, cell: wp.array[int], position: wp.array[wp.vec3d], darts: wp.array[int], c: CrowdArrays, moved: Agents
):
    i = first + wp.tid()
    moved.position[i] = position[i]
    moved.velocity[i] = c.velocity[i]
    moved.dart[i] = int(darts[i])
    moved.number[i] = int(c.number[i])
    moved.cell[i] = int(cell[darts[i]])
    moved.within[i] = wp.vec4f()


@wp.kernel
def _slots(first: int, number: wp.array[int], slot: wp.array[int]):
    i = first + wp.tid()
    slot[number[i]] = i


@wp.kernel
def _centres(
    first: int,
    position: wp.array[wp.vec3d],
    slot: wp.array[int],
    begin: wp.array[int],
    members: wp.array[int],
    centre: wp.array[wp.vec3d],
):
    g = first + wp.tid()
    total = wp.vec3d()
    for k in range(begin[g], begin[g + 1]):
        total += position[slot[members[k]]]
    centre[g] = total / wp.float64(wp.max(begin[g + 1] - begin[g], 1))
