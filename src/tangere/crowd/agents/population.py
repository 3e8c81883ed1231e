"""The point agents of a crowd: their state on the device, in the order of their cells, and their routes.

Question: who is where, in which cell, and on which way?
Method:   state is kept in the order of cells (`arrays`), what an agent keeps for life by its number; all that is public
          is by number.
Known as: point agents, registered in their cells (Pitiot 2015, sections 5.1, 5.2 and 8.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap
from tangere.crowd.agents.arrays import CrowdArrays, MovedAgents
from tangere.crowd.agents.cell_sort import cell_sort_launches
from tangere.crowd.agents.relocation import relocate
from tangere.crowd.navigation.routes import Routes, WaypointLists, route_progress, routes_of
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

_STATE = {"position": wp.vec3d, "velocity": wp.vec3d, "rectangle": wp.vec4f}
_STATE |= dict.fromkeys(("dart", "number", "cell"), wp.int32)


class Population:
    """Point agents; everything public is by agent number."""

    def __init__(self, map: CellMap) -> None:
        self.map = map
        self.traits: dict[str, np.ndarray] = {
            **{name: np.empty(0) for name in ("radius", "speed", "set_off", "arrived")},
            **{name: np.empty(0, np.int64) for name in ("group", "repeat", "done")},
        }
        self.waypoint_lists = WaypointLists.of(None, 0)
        self.routes = Routes()
        self._has_detours = False
        self.arrays = CrowdArrays()  #: as kernels see it
        self.moved = MovedAgents()  #: where a step puts them
        self.arrays.clock = wp.zeros(1, dtype=wp.int32, device=map.device)
        self.arrays.start = wp.zeros(map.cell_capacity + 1, dtype=wp.int32, device=map.device)
        for name, kind in _STATE.items():
            setattr(self.arrays, name, wp.empty(0, dtype=kind, device=map.device))

    def __len__(self) -> int:
        return len(self.waypoint_lists)

    def by_number(self, name: str) -> np.ndarray:
        """A copy of "position", "velocity" or "dart", by agent number."""
        array = getattr(self.arrays, name).numpy()
        result = np.empty_like(array)
        result[self.arrays.number.numpy()] = array
        return result

    def add(self, positions: np.ndarray, darts: np.ndarray, ways: WaypointLists, traits: dict[str, Any]) -> np.ndarray:
        """Take in agents at rest; returns their numbers."""
        before, count = len(self), len(positions)
        self._store_progress()
        merged = {
            "position": np.concatenate([self.by_number("position"), positions]),
            "velocity": np.concatenate([self.by_number("velocity"), np.zeros((count, 3))]),
            "dart": np.concatenate([self.by_number("dart"), darts]).astype(np.int32),
            "number": np.arange(before + count, dtype=np.int32),
            "cell": np.zeros(before + count, np.int32),  # both are found when they are sorted
            "rectangle": np.zeros((before + count, 4), np.float32),
        }
        for name, values in {**traits, "arrived": np.inf, "done": 0}.items():
            self.traits[name] = np.concatenate([self.traits[name], np.broadcast_to(values, count)])
        self.waypoint_lists = self.waypoint_lists.with_more(ways)
        self._upload(merged)
        return np.arange(before, before + count)

    def retarget(self, numbers: np.ndarray, ways: WaypointLists, time: float) -> None:
        """Give agents new routes, from their start; they set off now [s]."""
        self._store_progress()
        self.waypoint_lists = self.waypoint_lists.replaced(numbers, ways)
        for name, value in (("arrived", np.inf), ("done", 0), ("set_off", time)):
            self.traits[name][numbers] = value
        self._upload_routes(numbers)

    def sort_launches(self) -> list[Any]:
        """What to run after a step to sort the agents it has moved by cell."""
        return cell_sort_launches(self.moved, self.arrays, 1, self.map.device)

    def relocate(self) -> None:
        """After cells were split or merged: find everybody's dart again and sort."""
        c, map = self.arrays, self.map
        if len(c.start) != map.cell_capacity + 1:
            c.start = wp.zeros(map.cell_capacity + 1, dtype=wp.int32, device=map.device)
        if len(self) == 0:
            return
        position, darts = relocate(map, c.position, c.dart)
        launch(_write_moved, len(self), [map.arrays.cell, position, darts, c], [self.moved], device=map.device)
        for part in cell_sort_launches(self.moved, c, 0, map.device):
            part.run()

    def counts(self) -> np.ndarray:
        """Agents in each cell."""
        return np.diff(self.arrays.start.numpy())

    def arrived(self) -> np.ndarray:
        """When each agent was done with its route, for the first time [s]; inf before."""
        return self.routes.arrived.numpy().copy() if len(self) else np.empty(0)

    def under_way(self) -> np.ndarray:
        """Which agents still have a waypoint to go to."""
        return self.routes.current.numpy() < self.routes.end.numpy() if len(self) else np.empty(0, bool)

    def set_detours(self, numbers: np.ndarray, places: np.ndarray) -> None:
        """Let these agents, and nobody else, go over a place first."""
        if len(numbers) == 0 and not self._has_detours:
            return
        self._has_detours = len(numbers) > 0
        flags, detour = np.zeros(len(self), np.int32), np.zeros((len(self), 3))
        flags[numbers], detour[numbers] = 1, places
        self.routes.has_detour.assign(flags)
        self.routes.detour.assign(detour)

    def centre_groups(self) -> None:
        """Find the centre of each group."""
        c = self.arrays
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
        c, traits = self.arrays, self.traits
        for name, kind in _STATE.items():
            setattr(c, name, wp.array(state[name], dtype=kind, device=device))
            setattr(self.moved, name, wp.empty(count, dtype=kind, device=device))
        c.radius, c.speed = (wp.array(traits[name], dtype=wp.float64, device=device) for name in ("radius", "speed"))
        # Kernels count groups from 0, whatever numbers they were given.
        group_values, group = np.unique(traits["group"], return_inverse=True)
        group = group - np.searchsorted(group_values, 0)
        c.group = wp.array(group.astype(np.int32), dtype=wp.int32, device=device)
        members = np.argsort(group, kind="stable")
        members = members[group[members] >= 0]
        most = int(group.max(initial=-1)) + 1
        first = np.searchsorted(group[members], np.arange(most + 1))
        self._group_first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
        self._group_members = wp.array(members.astype(np.int32), dtype=wp.int32, device=device)
        self._slot = wp.empty(count, dtype=wp.int32, device=device)
        c.group_centre = wp.zeros(max(most, 1), dtype=wp.vec3d, device=device)
        self._upload_routes(np.empty(0, np.int64))
        self.relocate()

    def _upload_routes(self, changed: np.ndarray) -> None:
        """Send all routes again; who is on a way around a wall stays on it, but for those whose route is another."""
        before, self.routes = self.routes, routes_of(self.waypoint_lists, self.traits, self.map.device)
        if self._has_detours:
            known = np.setdiff1d(np.flatnonzero(before.has_detour.numpy()), changed)
            self.set_detours(known, before.detour.numpy()[known])

    def _store_progress(self) -> None:
        """Note what is done of each route, so that it may be sent again."""
        if len(self):
            self.traits |= route_progress(self.routes)


@wp.kernel
def _write_moved(
    first: int,
    cell: wp.array[int],
    position: wp.array[wp.vec3d],
    darts: wp.array[int],
    c: CrowdArrays,
    moved: MovedAgents,
):
    i = first + wp.tid()
    moved.position[i] = position[i]
    moved.velocity[i] = c.velocity[i]
    moved.dart[i] = int(darts[i])
    moved.number[i] = int(c.number[i])
    moved.cell[i] = int(cell[darts[i]])
    moved.rectangle[i] = wp.vec4f()


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
