"""What the phases of a step do, and the buffers they share (`simulation` tells their order).

On CUDA each phase is a captured graph until buffers grow (`graphs`), and the host reads a few counters once a step:
when a list did not fit, it is given more room and the step is done again.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import PreparedLaunch
from tangere.soft.contact.detection import Detection
from tangere.soft.contact.initial_contacts import InitialContacts
from tangere.soft.contact.islands import ContactIslands, MassMoves, MeanMoves
from tangere.soft.contact.rows import ContactRows
from tangere.soft.model.assembly import Assembly
from tangere.soft.model.motion import carry_surface, find_velocity, move_bodies, predict
from tangere.soft.safe_step.patches import Patches
from tangere.soft.safe_step.truncation import Truncation
from tangere.soft.solver.cpu.sweeps import CpuSweeps
from tangere.soft.solver.cuda.graphs import Graphs
from tangere.soft.solver.cuda.sweeps import CudaSweeps
from tangere.soft.solver.initial_guess import FirstGuess
from tangere.soft.solver.pull import Pull
from tangere.soft.validation import refuse_broken

__all__ = ["Phases"]

#: Part of the contact distance that surfaces always keep.
LEAST_GAP = 1e-4
#: Rounds of the truncation in a captured graph; more are rarely needed.
ROUNDS_AT_ONCE = 2


class Phases:
    """The phases of a step; `Simulation` says what takes part and how, and calls them in order."""

    _assembly: Assembly
    _too_few_sweeps: bool  #: for the stiffest body
    dt: float
    gravity: np.ndarray
    response: str
    distance: float
    sweeps: int
    steps: int
    time: float

    @property
    def device(self) -> wp.Device:
        return self._assembly.device

    def reset(self) -> None:
        """Forget the contacts of the last step; surfaces follow the dofs, wherever they were put."""
        self._graphs("reset", self._forget)

    def predict(self) -> None:
        """The free motion of the step is where the solver starts."""
        self._graphs("predict", self._guess)

    def detect(self) -> None:
        """Find the contacts where the step begins."""
        if self.response == "hard":
            self._graphs("detect", self._detection.find_nearest)
        elif self.response == "penalty":
            self._detection.find_all()

    def respond(self) -> None:
        """Turn contacts into rows."""
        if self.response == "hard":
            self._graphs("respond", self._make_rows)
        elif self.response == "penalty":
            self._make_rows()

    def solve(self) -> None:
        """Minimise the energy of the step, nearly."""
        self._graphs("solve", self._sweep_all)

    def truncate(self) -> None:
        """Hold back what would pass through something."""
        self._graphs("truncate", self._hold_back)
        self._graphs.prepare("rounds", self._hold_back_more)
        while not self._truncation.settled():
            self._graphs("rounds", self._hold_back_more)
        if self._truncation.broken:
            self._refuse()

    def record(self) -> None:
        """Velocities follow from the moves."""
        self._graphs("record", self._find_velocity)
        self.steps += 1
        self.time = self.steps * self.dt

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._detection.clear()
        self._groups.clear()
        self._map_start(len(self._surface_start))

    def _guess(self) -> None:
        self._predict(len(self._assembly.x))
        self._pull()
        if self._too_few_sweeps:
            self._first_guess()

    def _make_rows(self) -> None:
        self._rows.set(self._detection.touching, self._surface_start)
        if self._rows.capacity != self._room_of_sweeps:
            self._prepare_sweeps()
        self._rows.union(self._groups)

    def _sweep_all(self) -> None:
        self._sweeps(self.sweeps)
        self._missing()
        self._missing_mean()
        self._move_bodies(len(self._assembly.x))

    def _hold_back(self) -> None:
        self._truncation.begin()
        if self.device.is_cuda:
            self._hold_back_more()

    def _hold_back_more(self) -> None:
        for _ in range(ROUNDS_AT_ONCE if self.device.is_cuda else 1):
            self._truncation.round()

    def _refuse(self) -> None:
        """Say who cannot go on; who made the step undoes it."""
        refuse_broken(self._assembly, self._assembly.x.numpy(), self.steps, self.dt)

    def _keep(self) -> None:
        """What a step changes that the next one goes on from."""
        wp.copy(self._kept_x, self._assembly.x)
        wp.copy(self._kept_v, self._assembly.v)
        self._kept_time = self.steps, self.time
        self._patches.keep()

    def _undo(self) -> None:
        """As if the step, of which any part may be done, had not been begun; without its contacts, or others."""
        wp.copy(self._assembly.x, self._kept_x)
        wp.copy(self._assembly.v, self._kept_v)
        self.steps, self.time = self._kept_time
        self._patches.undo()
        self._detection.clear()
        self._rows.live.zero_()
        self._prepare_sweeps()  # what they keep may not be finite

    def _find_velocity(self) -> None:
        if self.response == "hard":
            self._truncation.put_right()
        self._velocity(len(self._assembly.x))

    def _fits(self) -> bool:
        """Whether all lists of the step had room; those that had not are given more."""
        if self.response != "hard" and not np.isfinite(self._missing.sums.numpy()).all():
            self._refuse()
        if self.device.is_cpu or self.response != "hard":
            return True
        rows, pairs = self._truncation.rows, self._truncation.overflow
        if rows <= self._detection.touching.room and not pairs:
            return True
        self._detection.make_room(rows)
        self._truncation.make_room(pairs)
        self._graphs.forget()
        return False

    def _prepare_sweeps(self) -> None:
        self._graphs.forget()
        kind = CudaSweeps if self.device.is_cuda else CpuSweeps
        self._sweeps = kind(self._assembly, self._groups, self._free, self._inertia, self._rows, self.dt)
        self._room_of_sweeps = self._rows.capacity

    def _allocate(self, friction: float, contact_stiffness: float | None) -> None:
        a, device = self._assembly, self._assembly.device
        self._start, self._free = wp.zeros_like(a.x), wp.zeros_like(a.x)
        self._kept_x, self._kept_v = wp.zeros_like(a.x), wp.zeros_like(a.v)
        self._inertia = wp.array(a.mass.numpy() / self.dt**2, dtype=wp.float64, device=device)
        self._surface_start, self._surface_end = wp.zeros_like(a.rest), wp.zeros_like(a.rest)
        self._shift = wp.zeros(len(a.bodies), dtype=wp.vec3d, device=device)
        self._map_start = carry_surface(a, self._surface_start)
        self._map_end = carry_surface(a, self._surface_end)
        self._graphs = Graphs(device)
        self._predict: PreparedLaunch = predict(a, self._start, self._free, self.dt, self.gravity)
        self._move_bodies = move_bodies(a, self._shift)
        self._map_start(len(self._surface_start))
        self._patches = Patches(a)
        self._groups = ContactIslands(a)
        self._first_guess = FirstGuess(a, self._start, self._free, self._inertia, self._groups)
        self._pull = Pull(a, self._groups, self._start, self._free, self._inertia)
        self._missing = MassMoves(a, self._free, a.x)
        self._missing_mean = MeanMoves(self._groups, self._missing, self._shift)
        self._detection = Detection(a, self._patches, self._surface_start, self.distance)
        self._surroundings = InitialContacts(a, self._detection, self.distance)
        self._rows = ContactRows(
            a,
            self._start,
            dt=self.dt,
            distance=self.distance,
            friction=friction,
            stiffness=contact_stiffness,
            limits=self._surroundings.limits,
            smooth=self.response == "hard",
        )
        self._truncation = Truncation(
            a,
            self._patches,
            self._groups,
            self._start,
            (self._surface_start, self._surface_end),
            self._map_end,
            self._rows.live,
            LEAST_GAP * self.distance,
            self.distance,
            self._too_few_sweeps,
            self.dt,
        )
        reached = self._truncation.reached if self.response == "hard" else a.x
        self._velocity = find_velocity(a, reached, self._truncation.owed, self._start, self.dt)
        self._prepare_sweeps()
