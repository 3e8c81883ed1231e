"""The point agents of a crowd: their state on the device, in the order of their cells, and their routes.

Spec: specs/pitiot-multiresolution-interactions 2.11, 2.18, 5.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.registration.groups import group
from tangere.crowd.arrays import Crowd, Routes
from tangere.crowd.relocating import relocated
from tangere.crowd.stepping import gather_agents
from tangere.runtime import SOUND, InputError, launch

__all__ = ["Population", "routes_of"]

wp.set_module_options(SOUND)


class Population:
    """Point agents; everything public is by agent number."""

    def __init__(self, map: CellMap) -> None:
        self.map = map
        self.traits: dict[str, np.ndarray] = {
            **{name: np.empty(0) for name in ("radius", "speed", "arrived")},
            **{name: np.empty(0, np.int64) for name in ("group", "repeat")},
        }
        self.ways: list[np.ndarray] = []
        self._arrays = {
            name: wp.empty(0, dtype=kind, device=map.device)
            for name, kind in {"position": wp.vec3d, "velocity": wp.vec3d, "dart": wp.int32, "number": wp.int32}.items()
        }
        self._spare: dict[str, wp.array] = {}
        self.crowd = Crowd()
        self.routes = Routes()

    def __len__(self) -> int:
        return len(self.ways)

    def by_number(self, name: str) -> np.ndarray:
        """A copy of "position", "velocity" or "dart", by agent number."""
        array = self._arrays[name].numpy()
        result = np.empty_like(array)
        result[self._arrays["number"].numpy()] = array
        return result

    def add(
        self, positions: np.ndarray, darts: np.ndarray, ways: list[np.ndarray], traits: dict[str, Any]
    ) -> np.ndarray:
        """Take in agents at rest; returns their numbers."""
        before, count = len(self), len(positions)
        self._keep_progress()
        merged = {
            "position": np.concatenate([self.by_number("position"), positions]),
            "velocity": np.concatenate([self.by_number("velocity"), np.zeros((count, 3))]),
            "dart": np.concatenate([self.by_number("dart"), darts]).astype(np.int32),
            "number": np.arange(before + count, dtype=np.int32),
        }
        for name, values in {**traits, "arrived": np.inf}.items():
            self.traits[name] = np.concatenate([self.traits[name], np.broadcast_to(values, count)])
        self.ways += ways
        self._upload(merged)
        return np.arange(before, before + count)

    def retarget(self, numbers: np.ndarray, ways: list[np.ndarray]) -> None:
        """Give agents new routes, from their start."""
        self._keep_progress()
        for number, way in zip(numbers, ways, strict=True):
            self.ways[int(number)] = way
        self.traits["arrived"][numbers] = np.inf
        self._send_routes()

    def targets(self) -> list[wp.array]:
        """Where a step writes position, velocity, dart and cell."""
        return [self._spare[name] for name in ("position", "velocity", "dart", "cell")]

    def settle(self) -> None:
        """Sort the agents a step has moved by cell."""
        self._sort([self._spare[name] for name in ("position", "velocity", "dart")], self._spare["cell"])

    def relocate(self) -> None:
        """After cells were split or merged: find everybody's dart again and sort."""
        if len(self) == 0:
            self._renew_start()
            return
        position, darts = relocated(self.map, self._arrays["position"], self._arrays["dart"])
        cells = wp.empty(len(self), dtype=wp.int32, device=self.map.device)
        launch(_cells_of, len(self), [self.map.arrays.cell, darts], [cells], device=self.map.device)
        wp.copy(self._spare["position"], position)
        wp.copy(self._spare["velocity"], self._arrays["velocity"])
        self._sort([self._spare["position"], self._spare["velocity"], darts], cells)

    def counts(self) -> np.ndarray:
        """Agents in each cell."""
        return np.diff(self.crowd.start.numpy())

    def arrived(self) -> np.ndarray:
        """When each agent was done with its route, for the first time [s]; inf before."""
        return self.routes.arrived.numpy().copy() if len(self) else np.empty(0)

    def under_way(self) -> np.ndarray:
        """Which agents still have a waypoint to go to."""
        return self.routes.at.numpy() < self.routes.end.numpy()

    def waypoints(self) -> np.ndarray:
        """(n, 3) what each agent heads for; where it is, if for nothing."""
        at, going = self.routes.at.numpy(), self.under_way()
        result = self.by_number("position")
        result[going] = self.routes.points.numpy()[at[going]]
        return result

    def send_around(self, numbers: np.ndarray, places: np.ndarray) -> None:
        """Let these agents, and nobody else, go over a place first."""
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
        return bool((self.traits["group"] >= 0).any())

    def _upload(self, state: dict[str, np.ndarray]) -> None:
        device, count = self.map.device, len(state["number"])
        kinds = {"position": wp.vec3d, "velocity": wp.vec3d, "dart": wp.int32, "number": wp.int32, "cell": wp.int32}
        self._arrays = {name: wp.array(state[name], dtype=kinds[name], device=device) for name in state}
        self._spare = {name: wp.empty(count, dtype=kind, device=device) for name, kind in kinds.items()}
        c, traits = self.crowd, self.traits
        c.radius, c.speed = (wp.array(traits[name], dtype=wp.float64, device=device) for name in ("radius", "speed"))
        c.group = wp.array(traits["group"].astype(np.int32), dtype=wp.int32, device=device)
        members = np.argsort(traits["group"], kind="stable")
        members = members[traits["group"][members] >= 0]
        most = int(traits["group"].max(initial=-1)) + 1
        first = np.searchsorted(traits["group"][members], np.arange(most + 1))
        self._group_first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
        self._group_members = wp.array(members.astype(np.int32), dtype=wp.int32, device=device)
        self._slot = wp.empty(count, dtype=wp.int32, device=device)
        c.group_centre = wp.zeros(max(most, 1), dtype=wp.vec3d, device=device)
        self._send_routes()
        self.relocate()

    def _send_routes(self) -> None:
        self.routes = routes_of(self.ways, self.traits["repeat"], self.traits["arrived"], self.map.device)

    def _keep_progress(self) -> None:
        """Cut off what is done of each route, so that it may be sent again."""
        if len(self) == 0:
            return
        at, begin = self.routes.at.numpy(), self.routes.begin.numpy()
        self.traits["arrived"] = self.arrived()
        for number, done in enumerate(at - begin):
            if done:
                way = self.ways[number]
                self.ways[number] = np.roll(way, -done, axis=0) if self.traits["repeat"][number] else way[done:]

    def _sort(self, state: list[wp.array], cells: wp.array) -> None:
        groups = group(cells, self.map.cell_capacity)
        source = [*state, self._arrays["number"]]
        number = self._spare["number"]
        self._spare["number"] = self._arrays["number"]
        target = [self._arrays[name] for name in ("position", "velocity", "dart")]
        gather_agents(groups.order, source, [*target, number], self.map.device)
        self._arrays["number"] = number
        c = self.crowd
        c.start = groups.start
        c.position, c.velocity, c.dart, c.number = (self._arrays[n] for n in ("position", "velocity", "dart", "number"))

    def _renew_start(self) -> None:
        c = self.crowd
        c.start = wp.zeros(self.map.cell_capacity + 1, dtype=wp.int32, device=self.map.device)
        c.position, c.velocity, c.dart, c.number = (self._arrays[n] for n in ("position", "velocity", "dart", "number"))


def routes_of(ways: list[np.ndarray], repeat: np.ndarray, arrived: np.ndarray, device: wp.Device) -> Routes:
    """Routes for kernels from the waypoints (k, 3) of each agent."""
    r = Routes()
    ends = np.cumsum([len(way) for way in ways], dtype=np.int64)
    begins = ends - [len(way) for way in ways]
    for number, way in enumerate(ways):
        if not np.isfinite(way).all():
            raise InputError(f"goals: agent {number} has a waypoint that is not finite")
    points = np.concatenate([np.empty((0, 3)), *ways])
    r.points = wp.array(points, dtype=wp.vec3d, device=device)
    r.begin, r.end, r.at = (wp.array(x.astype(np.int32), dtype=wp.int32, device=device) for x in (begins, ends, begins))
    r.repeat = wp.array(np.asarray(repeat).astype(np.int32), dtype=wp.int32, device=device)
    r.detoured = wp.zeros(len(ways), dtype=wp.int32, device=device)
    r.detour = wp.zeros(len(ways), dtype=wp.vec3d, device=device)
    r.arrived = wp.array(np.asarray(arrived, float), dtype=wp.float64, device=device)
    return r


@wp.kernel
def _cells_of(first: int, cell: wp.array[int], darts: wp.array[int], cells: wp.array[int]):
    i = first + wp.tid()
    cells[i] = cell[darts[i]]


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
