"""One step of a simulation: the buffers that its phases share, and what each phase does.

Question: where are all bodies after the next `dt`, and which surfaces touch on the way?
Method:   a phase reads and writes the device arrays of this object and nothing else, so each can be timed, replaced and
          captured as a CUDA graph (`phase_graphs`). Detection comes before the solver (Léonard 2021, section 2.7).
Sound:    a step is done or undone as a whole (`save`, `restore`). Lists that were too short are given more room and the
          step is done again (`fits`): nothing is left out. With response "hard" no surface passes through another.
Known as: a time step of implicit Euler by vertex block descent (Chen et al. 2024), with a collision-free step filter.
On CUDA the host reads a few counters once a step.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import InputError, PreparedLaunch
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body
from tangere.soft.contact.detection import Detection, HeldCrossings
from tangere.soft.contact.friction_memory import ROUNDING
from tangere.soft.contact.initial_contacts import InitialContacts
from tangere.soft.contact.islands import ContactIslands, MassMoves, MeanMoves
from tangere.soft.contact.rows import ContactRows
from tangere.soft.cut_engine import CutEngine
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.model.step_launches import carry_surface, find_velocity, move_bodies, predict
from tangere.soft.phase_graphs import PhaseGraphs
from tangere.soft.safe_step.patches import Patches
from tangere.soft.safe_step.truncation import Truncation
from tangere.soft.solver.cpu.sweeps import CpuSweeps
from tangere.soft.solver.cuda.sweeps import CudaSweeps
from tangere.soft.solver.initial_guess import InitialGuess
from tangere.soft.solver.pull import Pull
from tangere.soft.solver.rod import RodArrays, rod_arrays
from tangere.soft.validation import check_no_overlap, raise_not_finite

#: Part of the contact distance that surfaces always keep.
LEAST_GAP = 1e-4
#: Iterations of the truncation in a captured graph; more are rarely needed.
ITERATIONS_PER_GRAPH = 2
#: What is prepared for one length of steps; that of another length is kept, because steps in parts come and go.
_OF_DT = ("dt", "_predict", "truncation", "_velocity", "sweeps", "_sweeps_capacity")


@dataclass(frozen=True)
class StepOptions:
    """How steps are made; see `Simulation`."""

    dt: float  #: [s]
    gravity: np.ndarray  #: (3,) [m/s^2]
    response: str
    distance: float  #: [m]
    friction: float
    contact_stiffness: float | None  #: [N/m]
    sweeps: int
    few_sweeps: bool  #: whether the stiffest body needs more
    threads: int | None


@dataclass(frozen=True, eq=False)
class BodiesChange:
    """Bodies that take the place of others, n dofs and s surface vertices in all, and what they go on from."""

    bodies: Sequence[Body]
    x: np.ndarray  #: (n, 3) where the dofs are [m]
    v: np.ndarray  #: (n, 3) [m/s]
    sources: np.ndarray  #: (s,) the surface vertex that each one was before; -1 for new ones
    limits: np.ndarray  #: (s,) the gap below which each one touches other bodies [m]
    opened: np.ndarray  #: (s,) bool: whether it has just been opened: what it touched before is forgotten


class StepPipeline:
    """The state of all bodies, the buffers of a step, and its phases as methods: what `Simulation.phases` calls.

    Who replaces a phase finds here what it reads and writes: `assembly.dofs.x` and `assembly.dofs.v` are where the dofs
    are and how fast, `start` is where the step began, `free_motion` where it would end without forces from inside.
    """

    def __init__(self, assembly: AssembledBodies, options: StepOptions) -> None:
        self.options = options
        self.steps = 0  #: made so far
        self.dt = options.dt  #: of the step, or of the part of it, that is made now [s]
        self.sweep_count = options.sweeps  #: of the solver in it
        self.lock = threading.RLock()  #: who steps, puts or reads holds it, so that nobody meets half a step
        self.rod = rod_arrays(device=assembly.device)  #: none, until one is attached
        self.cuts: CutEngine | None = None  #: of bodies that can be cut; None where there are none
        self.stepping = False  #: whether a step, or a cut between steps, is under way
        self._saved_layout: dict[str, Any] | None = None
        self._lay_out(assembly, options.dt)

    @property
    def growing(self) -> bool:
        """Whether bodies have room for what cuts add."""
        return any(body.cuttable for body in self.assembly.current)

    def _lay_out(self, assembly: AssembledBodies, dt: float) -> None:
        """All buffers for these bodies, each in its place."""
        self.assembly, options = assembly, self.options
        a, device = assembly, assembly.device
        self.start, self.free_motion = wp.zeros_like(a.dofs.x), wp.zeros_like(a.dofs.x)
        self._saved_x, self._saved_v = wp.zeros_like(a.dofs.x), wp.zeros_like(a.dofs.v)
        self.inertia = wp.array(a.inertia(dt), dtype=wp.float64, device=device)
        self.surface_start, self.surface_end = wp.zeros_like(a.surface.rest), wp.zeros_like(a.surface.rest)
        self._map_start, self._map_end = carry_surface(a, self.surface_start), carry_surface(a, self.surface_end)
        self._graphs = PhaseGraphs(device)
        self._other_dt: dict[str, Any] = {}
        #: Whether `surface_end` is where surfaces are, and the tree of moves has it in its boxes.
        self.surfaces_known = False
        self._map_start(len(self.surface_start))
        self.patches = Patches(a)
        self.islands = ContactIslands(a)
        self._initial_guess = InitialGuess(a, self.start, self.free_motion, self.inertia, self.islands)
        self.pull = Pull(a, self.islands, self.start, self.free_motion, self.inertia)
        self._missing = MassMoves(a, self.free_motion, a.dofs.x)
        mean = wp.zeros(a.body_room, dtype=wp.vec3d, device=device)
        self._missing_mean = MeanMoves(self.islands, self._missing, mean)
        self._move_bodies = move_bodies(a, mean)
        self.detection = Detection(a, self.patches, self.surface_start, options.distance)
        self.initial_contacts = InitialContacts(a, self.detection, options.distance)
        self.held_crossings = HeldCrossings(a, self.patches.edges, self.surface_start, options.distance)
        self.rows = ContactRows(
            a,
            self.start,
            dt=dt,
            distance=options.distance,
            friction=options.friction,
            stiffness=options.contact_stiffness,
            limits=self.initial_contacts.limits,
            smooth=options.response == "hard",
            places=self.detection.places,
        )
        self._prepare_for_dt(dt)

    # -- phases --------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget the contacts of the last step; surfaces follow the dofs, wherever they were put."""
        self._graphs("reset", self._clear)

    def predict(self) -> None:
        """The free motion of the step is where the solver starts."""
        self.surfaces_known = False
        self._graphs("predict", self._guess)

    def detect(self) -> None:
        """Find the contacts where the step begins."""
        if self.options.response == "hard":
            self._graphs("detect", self.detection.find_nearest)
            if self.detection.add_crossings(self.held_crossings):
                self._graphs.invalidate()
        elif self.options.response == "penalty":
            self.detection.find_all()

    def respond(self) -> None:
        """Turn contacts into rows."""
        if self.options.response == "hard":
            self._graphs("respond", self._make_rows)
            self.held_crossings.set_limits(self.rows.arrays)
        elif self.options.response == "penalty":
            self._make_rows()

    def solve(self) -> None:
        """Minimise the energy of the step, nearly; then put the momentum of free islands right."""
        if self.rows.capacity != self._sweeps_capacity:
            self._prepare_sweeps()
        self._graphs("solve", self._sweep_all)

    def truncate(self) -> None:
        """Shorten moves that would pass through something."""
        self._graphs("truncate", self._begin_truncation)
        self._graphs.capture("iterations", self._iterate_truncation)
        while not self.truncation.finished():
            self._graphs("iterations", self._iterate_truncation)
        if self.truncation.not_finite:
            self._raise_not_finite()
        self.surfaces_known = True

    def record(self) -> None:
        """Velocities follow from the moves; the step is done."""
        self._graphs("record", self._find_velocity)
        if self.options.response == "hard" and (self.truncation.limited or len(self.held_crossings)):
            self.held_crossings.learn()
        self.steps += 1

    # -- what goes through bodies --------------------------------------------------------------------------------------

    def attach_rod(self, rod: RodArrays) -> None:
        """Let a rod take part in every sweep; it is on the device, and its guides are rows that a phase appends."""
        self.rod, self._other_dt = rod, {}
        self._prepare_sweeps()

    # -- a step as a whole ---------------------------------------------------------------------------------------------

    def refresh_initial_contacts(self) -> None:
        """Where bodies were put somewhere, find what follows from it (`InitialContacts`)."""
        if self.options.response == "hard" and not self.initial_contacts.current:
            self._map_start(len(self.surface_start))
            before = self.detection.contact_points
            self.initial_contacts.refresh(self.meshes())
            if self.detection.contact_points is not before:
                self._graphs.invalidate()
            self.detection.clear()

    def change_bodies(self, change: BodiesChange) -> None:
        """Go on with other bodies: what has been cut. `restore` takes it back as long as the step lasts.

        With response "hard" it raises, and changes nothing, if surfaces touch then.
        """
        before = dict(self.__dict__)
        if self._saved_layout is None:
            self._saved_layout = before
        try:
            self._take_over(change)
        except BaseException:
            self.__dict__.update(before)
            raise

    def _take_over(self, change: BodiesChange) -> None:
        memory, detection, pull = self.rows.memory, self.detection, self.pull
        surface_before = self.assembly.surface
        assembly = AssembledBodies.of(change.bodies, self.assembly.device, growing=self.growing)
        for name in ("x", "v"):
            rows = getattr(assembly.dofs, name).numpy()
            rows[assembly.dof_rows] = getattr(change, name)
            getattr(assembly.dofs, name).assign(rows)
        self._lay_out(assembly, self.dt)
        if self.options.response == "hard":
            check_no_overlap(assembly, self.meshes(), "as they are cut")
        vertices = np.concatenate([assembly.vertex_rows(number) for number in range(len(assembly))])
        limits = np.full(len(self.surface_start), self.options.distance)
        limits[vertices] = change.limits
        sources, known = np.full((2, len(limits)), -1)
        sources[vertices], known[vertices] = change.sources, np.where(change.opened, -1, change.sources)
        self.initial_contacts.go_on(limits)
        at, surface = np.maximum(sources, 0), assembly.surface
        moved = np.linalg.norm(surface.rest.numpy() - surface_before.rest.numpy()[at], axis=1)
        elsewhere = (moved > float(ROUNDING) * self.options.distance) | (sources < 0)
        elsewhere |= surface.body.numpy() != surface_before.body.numpy()[at]  # it has come off
        elsewhere |= memory.bristles.elsewhere.numpy()[at] == 1
        self.rows.memory.take_over(memory, self.detection.sources(detection, known), sources, elsewhere)
        self.pull.take_over(pull, sources)
        self.refresh_initial_contacts()

    def carry_surface(self) -> None:
        """`surface_end` is where the dofs carry the surfaces."""
        self._map_end(len(self.surface_end))

    def fit_here(self) -> None:
        """Find where surfaces are, and boxes for them (CPU)."""
        self.carry_surface()
        self.patches.fit_here(self.surface_end)
        self.surfaces_known = True

    def fits(self) -> bool:
        """Whether all lists of the step had room; those that had not are given more, and the dofs go back."""
        response = self.options.response
        if response != "hard" and not np.isfinite(self._missing.sums.numpy()).all():
            self._raise_not_finite()
        if self.assembly.device.is_cpu or response != "hard":
            return True
        rows, pairs = self.truncation.rows, self.truncation.overflow
        if rows <= self.detection.contact_points.room and not pairs:
            return True
        self.detection.make_room(rows)
        self.truncation.make_room(pairs)
        self._graphs.invalidate()
        wp.copy(self.assembly.dofs.x, self.start)
        return False

    def set_dt(self, dt: float, sweeps: int | None = None) -> None:
        """Make steps of another length [s], or with other sweeps, from now on: what depends on it is prepared anew."""
        sweeps = self.options.sweeps if sweeps is None else sweeps
        if sweeps != self.sweep_count:
            self.sweep_count = sweeps
            self._graphs.invalidate()
        if dt != self.dt:
            kept, now = self._other_dt, {} if self.growing else {name: getattr(self, name) for name in _OF_DT}
            self.dt = np.nan  # should something stop this, it is done again
            self.pull.set_inertia(self.assembly.inertia(dt))
            self.rows.set_dt(dt)
            if kept.get("dt") == dt:
                self.__dict__.update(kept)
            else:
                self._prepare_for_dt(dt)
            self._graphs.invalidate()
            self._other_dt = now

    def prepare_dt(self, dt: float) -> None:
        """Steps of this length [s] may come next to those of now: have them prepared, where no cut writes into it."""
        if dt not in (self.dt, self._other_dt.get("dt")) and not self.growing:
            now = {name: getattr(self, name) for name in _OF_DT}
            try:
                self._prepare_for_dt(dt)
                self._other_dt = {name: getattr(self, name) for name in _OF_DT}
            finally:
                self.__dict__.update(now)

    def allow_capture(self) -> None:
        """All phases have run once: from now on they may be captured."""
        self._graphs.ready = True

    def save(self, *, only_cut: bool = False) -> None:
        """Keep what a step changes that the next one goes on from; `only_cut`: it is no step, but a cut between two."""
        self._saved_only_cut = only_cut
        self._saved_steps, self._saved_layout, self.stepping = self.steps, None, True
        if not only_cut:
            wp.copy(self._saved_x, self.assembly.dofs.x)
            wp.copy(self._saved_v, self.assembly.dofs.v)
            self.rows.memory.save()
            self.held_crossings.save()
        self.patches.save()
        if self.cuts is not None:
            self.cuts.save()

    def end_step(self, parts: int) -> None:
        """So many parts were one step."""
        if self.steps != self._saved_steps + parts:
            made = self.steps - self._saved_steps
            raise InputError(f"step_in_parts: {made} of {parts} parts were made")
        self.steps = self._saved_steps + 1
        self.end_change()

    def end_change(self) -> None:
        """What was begun by `save` is done: it is not taken back any more."""
        self.stepping, self._saved_layout = False, None

    def restore(self) -> None:
        """As if the step, of which any part may be done, had not been begun; without its contacts, or others."""
        if self._saved_layout is not None:
            self.__dict__.update(self._saved_layout)
        self.end_change()
        if self.cuts is not None:
            self.cuts.restore()
        if not self._saved_only_cut:
            wp.copy(self.assembly.dofs.x, self._saved_x)
            wp.copy(self.assembly.dofs.v, self._saved_v)
            self.rows.memory.restore()
            self.held_crossings.restore()
        self.steps, self.surfaces_known = self._saved_steps, False
        self.patches.restore()
        self.detection.clear()
        self.rows.live.zero_()
        self._prepare_sweeps()  # what they keep may not be finite

    def meshes(self) -> list[Mesh]:
        """The surface of each body where it is now."""
        self._map_end(len(self.surface_end))
        places, assembly = self.surface_end.numpy(), self.assembly
        return [
            body.surface.replace(vertices=places[assembly.vertex_rows(number)])
            for number, body in enumerate(assembly.bodies)
        ]

    # -- parts of phases -----------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self.detection.clear()
        self.rows.live.zero_()
        self.islands.clear()
        self._map_start(len(self.surface_start))

    def _guess(self) -> None:
        self._predict(len(self.assembly.dofs.x))
        self.pull()
        if self.options.few_sweeps:
            self._initial_guess()

    def _make_rows(self) -> None:
        self.rows.set(self.detection.contact_points, self.surface_start)
        self.rows.merge_islands(self.islands)

    def _sweep_all(self) -> None:
        self.sweeps(self.sweep_count)
        self._missing()
        self._missing_mean()
        self._move_bodies(len(self.assembly.dofs.x))

    def _begin_truncation(self) -> None:
        self.truncation.begin()
        if self.assembly.device.is_cuda:
            self._iterate_truncation()

    def _iterate_truncation(self) -> None:
        for _ in range(ITERATIONS_PER_GRAPH if self.assembly.device.is_cuda else 1):
            self.truncation.iterate()

    def _find_velocity(self) -> None:
        if self.options.response == "hard":
            self.truncation.restore_momentum()
        self._velocity(len(self.assembly.dofs.x))
        if self.options.response == "hard":
            self.rows.keep_strain()

    def _raise_not_finite(self) -> None:
        """Say who cannot go on; who made the step undoes it."""
        raise_not_finite(self.assembly, self.assembly.dofs.x.numpy(), self.steps, self.options.dt)

    def _prepare_for_dt(self, dt: float) -> None:
        a, options = self.assembly, self.options
        self._predict: PreparedLaunch = predict(a, self.start, self.free_motion, dt, options.gravity)
        self.truncation = Truncation(
            a,
            self.patches,
            self.islands,
            self.start,
            (self.surface_start, self.surface_end),
            self._map_end,
            self.rows.live,
            LEAST_GAP * options.distance,
            options.distance,
            options.few_sweeps,
            dt,
            self.held_crossings,
        )
        reached = self.truncation.reached if options.response == "hard" else a.dofs.x
        self._velocity = find_velocity(a, reached, self.truncation.lost_drift, self.start, dt)
        self.dt = dt
        self._prepare_sweeps()

    def _prepare_sweeps(self) -> None:
        self._graphs.invalidate()
        arguments = [self.assembly, self.islands, self.free_motion, self.inertia, self.rows, self.dt]
        cuda = self.assembly.device.is_cuda
        self.sweeps = CudaSweeps(*arguments, self.rod) if cuda else CpuSweeps(*arguments, self.rod)
        self._sweeps_capacity = self.rows.capacity
