"""Everybody of a floor simulation: traits for life by number, and the state of those who are there on the device.

Question: who is where, who has left and when, and what do kernels read of it?
Method:   numbers are given when people are added or a source is, and never again. State is made anew on the host when
          somebody is added between steps; else it stays on the device, with the count of who is there.
Known as: structure of arrays with a live count.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.crowd.agents.arrays import CrowdArrays, MovedAgents
from tangere.crowd.floor.cell_grid import CellGrid
from tangere.crowd.floor.stages import People

_STATE = {"position": wp.vec3d, "velocity": wp.vec3d, "number": wp.int32, "cell": wp.int32}
#: By number: what a person has when nothing has happened to him.
_PROGRESS = {"stage": -1, "chooser": -1, "since": np.inf, "entered": np.inf, "left": np.inf, "rank": -1}


class PeopleState:
    """People; everything public is by number."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.radius, self.speed = np.empty(0), np.empty(0)
        self.group = np.empty(0, int)  #: -1: alone
        self.progress: dict[str, np.ndarray] = {
            name: np.empty(0, int if isinstance(value, int) else float) for name, value in _PROGRESS.items()
        }
        self.crossed = np.empty((0, 0))  #: (lines, people)
        self.places = {
            "number": np.empty(0, int),
            "position": np.empty((0, 2)),
            "velocity": np.empty((0, 2)),
            "sheet": np.empty(0, int),
        }
        self.arrays, self.moved, self.people = CrowdArrays(), MovedAgents(), People()
        self.live = wp.zeros(1, dtype=wp.int32, device=device)
        self._sheet_of_cell = np.empty(0, int)
        self._uploaded = False

    def __len__(self) -> int:
        return len(self.radius)

    def add(self, radius: np.ndarray, speed: np.ndarray, stage: int, group: np.ndarray | None = None) -> np.ndarray:
        """Give people numbers; they are not there yet. group: of each among these, counted from 0."""
        self.read_back()
        count, before = len(radius), len(self)
        self.radius, self.speed = np.concatenate([self.radius, radius]), np.concatenate([self.speed, speed])
        more = np.full(count, -1) if group is None else group + self.group.max(initial=-1) + 1
        self.group = np.concatenate([self.group, more])
        for name, value in _PROGRESS.items():
            self.progress[name] = np.concatenate([self.progress[name], np.full(count, value)])
        self.progress["stage"][before:] = stage
        lines = len(self.crossed)
        self.crossed = np.concatenate([self.crossed, np.full((lines, count), np.inf)], axis=1)
        return np.arange(before, before + count)

    def put(self, numbers: np.ndarray, positions: np.ndarray, sheet: int, time: float) -> None:
        """Let people stand somewhere on a sheet from now on."""
        self.read_back()
        more = {"number": numbers, "position": positions, "velocity": np.zeros_like(positions)}
        more["sheet"] = np.full(len(numbers), sheet)
        self.places = {name: np.concatenate([self.places[name], more[name]]) for name in more}
        self.progress["entered"][numbers] = time

    def add_line(self) -> None:
        """Note crossings of one more line from now on."""
        self.read_back()
        self.crossed = np.concatenate([self.crossed, np.full((1, len(self)), np.inf)])

    def now(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers, positions (n, 2) and velocities (n, 2) of those who are there."""
        if not self._uploaded:
            return self.places["number"], self.places["position"], self.places["velocity"]
        count, c = self.count, self.arrays
        return (
            c.number.numpy()[:count].astype(int),
            c.position.numpy()[:count, :2].copy(),
            c.velocity.numpy()[:count, :2].copy(),
        )

    def sheets(self) -> np.ndarray:
        """(n,) the sheets that those are on who are there, in the order of `now`."""
        if not self._uploaded:
            return self.places["sheet"]
        return self._sheet_of_cell[self.arrays.cell.numpy()[: self.count]]

    @property
    def count(self) -> int:
        """How many are there."""
        return int(self.live.numpy()[0]) if self._uploaded else len(self.places["number"])

    def trait(self, name: str) -> np.ndarray:
        """A copy of "stage", "entered", "left", … by number."""
        if self._uploaded and len(self):
            return getattr(self.people, name).numpy().copy()
        return self.progress[name].copy()

    def crossings(self) -> np.ndarray:
        """(lines, people) when each line was first crossed."""
        return self.people.crossed.numpy().copy() if self._uploaded and self.crossed.size else self.crossed.copy()

    def read_back(self) -> None:
        """Bring the state to the host, where it may be changed."""
        if not self._uploaded:
            return
        number, position, velocity = self.now()
        self.places = {"number": number, "position": position, "velocity": velocity, "sheet": self.sheets()}
        self.progress = {name: self.trait(name) for name in _PROGRESS}
        self.crossed = self.crossings()
        self._uploaded = False

    def upload(self, grid: CellGrid, sizes: np.ndarray, dt: float, steps: int, seed: int) -> None:
        """Send everything to the device, sorted by the cells of a grid; sizes: class of the radius of each person."""
        self.read_back()
        device, capacity, count = self.device, max(len(self), 1), len(self.places["number"])
        cell = grid.cells_of(self.places["position"], self.places["sheet"])
        order = np.lexsort((self.places["number"], cell))
        state = {
            "position": np.zeros((capacity, 3)),
            "velocity": np.zeros((capacity, 3)),
            "number": np.zeros(capacity, np.int32),
            "cell": np.zeros(capacity, np.int32),
        }
        for name in ("position", "velocity"):
            state[name][:count, :2] = self.places[name][order]
        state["number"][:count], state["cell"][:count] = self.places["number"][order], cell[order]
        c = self.arrays
        for name, kind in _STATE.items():
            setattr(c, name, wp.array(state[name], dtype=kind, device=device))
            setattr(self.moved, name, wp.array(state[name], dtype=kind, device=device))
        start = np.searchsorted(cell[order], np.arange(len(grid) + 1)).astype(np.int32)
        c.start = wp.array(start, dtype=wp.int32, device=device)
        padded = {
            name: np.resize(values, capacity) for name, values in (("radius", self.radius), ("speed", self.speed))
        }
        c.radius, c.speed = (wp.array(padded[name], dtype=wp.float64, device=device) for name in ("radius", "speed"))
        groups = self.group if len(self) else np.array([-1])
        c.group = wp.array(groups.astype(np.int32), dtype=wp.int32, device=device)
        c.group_centre = wp.zeros(max(int(groups.max()) + 1, 1), dtype=wp.vec3d, device=device)
        c.neighbourhoods, c.surface, c.dt, c.seed = grid.neighbourhoods, 0, dt, seed
        c.clock = wp.full(1, steps, dtype=wp.int32, device=device)
        for name, values in (*self.progress.items(), ("size", sizes)):
            kind = wp.int32 if values.dtype.kind == "i" else wp.float64
            sent = np.resize(values, capacity).astype(np.int32 if kind is wp.int32 else float)
            setattr(self.people, name, wp.array(sent, dtype=kind, device=device))
        crossed = self.crossed if self.crossed.size else np.full((len(self.crossed), capacity), np.inf)
        self.people.crossed = wp.array(crossed, dtype=wp.float64, ndim=2, device=device)
        self._sheet_of_cell = grid.sheet
        self.live = wp.array([count], dtype=wp.int32, device=device)
        self._uploaded = True
