"""Deformable bodies in time: one step is a list of named phases, each timed and replaceable.

    reset     forget the contacts of the last step
    predict   where everything would go without forces from inside: x + dt v + dt^2 g
    detect    which surfaces touch
    respond   contacts become springs and friction on the degrees of freedom
    solve     sweeps of vertex block descent, accelerated; momentum of free islands put right
    truncate  (response "hard") moves shortened until no surface passes through any other
    record    velocities, time

Known as: implicit Euler steps by vertex block descent (Chen et al. 2024, "Vertex Block Descent"), with Anderson
acceleration (Anderson 1965; Peng et al. 2018).
All arrays stay on one device. What each phase does is in `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.query.contacts import Contacts
from tangere.runtime import (
    Arrays,
    InputError,
    NonCopyable,
    choose_device,
    positive,
    three_numbers,
    using_threads,
    view_room,
    whole,
)
from tangere.shape.mesh import Mesh
from tangere.soft.blade import Blade
from tangere.soft.body import Body
from tangere.soft.contact.rows import ContactRows
from tangere.soft.cut_engine import CutEngine, CutEvent, cut_engine, interrupts_wait, kerf_of
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.model.elastic import Energy, elastic_energy, energy_of
from tangere.soft.phase_graphs import PhaseClock
from tangere.soft.safe_step.truncation import TruncationReport
from tangere.soft.simulated_body import SimulatedBody, check_speed
from tangere.soft.step import StepOptions, StepPipeline
from tangere.soft.validation import check_no_overlap, check_options, checked_bodies, mean_edge

#: Least and most sweeps chosen for a step.
SWEEPS = (8, 40)
#: The contact distance chosen, as part of the mean edge of the surfaces.
DISTANCE_PART = 0.75


class Simulation(NonCopyable, instead="make another one of the same bodies, and give each its state by set_state"):
    """Bodies that move, deform and touch.

    `simulation[0]` and `simulation["ring"]` are its bodies as they are now (`SimulatedBody`): where they are, and how
    to put, drive and pull them.

    Args:
        bodies: what takes part; obstacles are bodies with every vertex fixed.
        dt: length of a step [s].
        gravity: [m/s^2].
        response: "hard" never lets surfaces pass through each other; "penalty" only pushes them apart, as published;
            "none" ignores contact.
        distance: surfaces nearer than this push each other [m]; None means three quarters of their mean edge.
        friction: coefficient of Coulomb friction.
        contact_stiffness: of the springs between surfaces [N/m]; None means what the bodies and the step ask for.
        sweeps: of the solver in each step; None means what the stiffest body needs, 8 to 40.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> from tangere.soft import Body, Simulation
        >>> cloth = Body(tg.generate.sheet(200, size=(1.0, 1.0)), name="cloth")
        >>> simulation = Simulation([cloth], device="cpu")
        >>> simulation.run(0.1)
        >>> f"fallen {-simulation.positions[:, 2].mean():.4f} m"  # g dt^2 (1 + 2 + 3 + 4 + 5)
        'fallen 0.0589 m'
    """

    def __init__(
        self,
        bodies: Sequence[Body | Blade],
        *,
        dt: float = 0.02,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        response: Literal["hard", "penalty", "none"] = "hard",
        distance: float | None = None,
        friction: float = 0.3,
        contact_stiffness: float | None = None,
        sweeps: int | None = None,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        bodies, blades = _without_blades(bodies)
        bodies = checked_bodies(bodies)
        dt, down = positive(dt, "dt"), three_numbers(gravity, "gravity")
        check_options(response, friction, contact_stiffness, sweeps)
        with using_threads(threads):
            distance = mean_edge(bodies) * DISTANCE_PART if distance is None else positive(distance, "distance")
            cuttable = any(body.cuttable for body in bodies)
            if cuttable:
                kerf = min(kerf_of(body, distance) for body in bodies if body.cuttable)
                bodies = [blades[n].obstacle(kerf) if n in blades else body for n, body in enumerate(bodies)]
            where = choose_device(device)
            assembly = AssembledBodies.of(bodies, where, growing=cuttable)
            needed = max(body.sweeps_needed(dt) for body in bodies)
            sweeps = int(np.clip(needed, *SWEEPS)) if sweeps is None else int(sweeps)
            for at, body in enumerate(bodies):
                check_speed(assembly, body.velocity, dt, f"body {at}")
            if response == "hard":
                check_no_overlap(assembly, [body.surface for body in bodies], "at the start")
            self._rest_energy = elastic_energy(assembly)
            options = StepOptions(
                dt, down, response, distance, friction, contact_stiffness, sweeps, needed > sweeps, threads
            )
            self._pipeline = StepPipeline(assembly, options)
            self._pipeline.refresh_initial_contacts()
            if cuttable:
                self._pipeline.cuts = cut_engine(self._pipeline, blades)
        self._clock = PhaseClock(assembly.device)
        #: The phases of a step in order; put a function of the `StepPipeline` in the place of any. All but "record" run
        #: again where a list had to grow, so "record" is the last whatever is added.
        self.phases: dict[str, Callable[[StepPipeline], None]] = {
            "reset": StepPipeline.reset,
            "predict": StepPipeline.predict,
            "detect": StepPipeline.detect,
            "respond": StepPipeline.respond,
            "solve": StepPipeline.solve,
            "truncate": StepPipeline.truncate,
            "record": StepPipeline.record,
        }
        if response != "hard":
            del self.phases["truncate"]
        if blades and cuttable:
            self._add_blades()

    def _add_blades(self) -> None:
        """Phases for blades: they cut before contacts are looked for, and press while the solver works."""

        def cut(pipeline: StepPipeline) -> None:
            if pipeline.cuts is not None:
                with interrupts_wait():
                    pipeline.cuts.advance_blades()

        def press(pipeline: StepPipeline) -> None:
            if pipeline.cuts is not None:
                pipeline.cuts.press_blades()

        phases = {}
        for name, phase in self.phases.items():
            if name == "predict":
                phases["cut"] = cut
            if name == "solve":
                phases["press"] = press
            phases[name] = phase
        self.phases = phases

    def __repr__(self) -> str:
        names = ", ".join(repr(body.name) for body in self.bodies)
        return f"Simulation({names}; {self.response}, {self.sweeps} sweeps of {self.dt:g} s, now at {self.time:g} s)"

    def scene(self, **options: Any) -> Any:
        """The bodies as they are now and the contacts of the last step, as a `tangere.scene.Scene`.

        For pictures, the viewer and files; options are those of `tangere.view.soft_scene`.
        """
        return view_room().soft_scene(self, **options)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the bodies as they are now; None where they cannot be drawn."""
        return view_room().png(self.scene(boxes=False, grid=False))

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of `dt`, as a whole: whatever stops it, an error or Ctrl-C, leaves everything where it began.

        Several threads may make steps, and look on: they take turns.
        """
        with self.step_in_parts() as advance:
            advance()

    @contextmanager
    def step_in_parts(self, parts: int = 1, *, sweeps: int | None = None) -> Iterator[Callable[[], None]]:
        """One step of `dt` in so many equal parts, for whoever has to do something between them: done or undone as one.

        Within, call what you are given once for each part. Whatever is raised there undoes all of them.

        Args:
            sweeps: of the solver in each part: short steps need fewer; None: as many as a step has.

        Example:
            >>> import tangere as tg
            >>> from tangere.soft import Body, Simulation
            >>> simulation = Simulation([Body(tg.generate.sheet(200))], dt=0.01, device="cpu")
            >>> with simulation.step_in_parts(5) as advance:
            ...     for part in range(5):
            ...         advance()
            >>> simulation.time
            0.01
        """
        parts, sweeps = whole(parts, "parts"), None if sweeps is None else whole(sweeps, "sweeps")
        pipeline = self._pipeline
        with pipeline.lock, using_threads(pipeline.options.threads):
            saved = False
            try:
                with interrupts_wait():
                    pipeline.save()
                    saved = True
                    if pipeline.cuts is not None:
                        pipeline.cuts.separate()
                pipeline.set_dt(self.dt / parts, sweeps)
                yield self._advance
                pipeline.end_step(parts)
            except BaseException:
                with interrupts_wait():
                    if saved:
                        pipeline.restore()
                raise

    def run(
        self,
        seconds: float | None = None,
        *,
        steps: int | None = None,
        progress: Callable[[int, int], object] | bool = False,
    ) -> None:
        """Many steps: for so long, or so many.

        Args:
            seconds: how long [s], to the nearest step, and at least one.
            steps: how many instead.
            progress: True shows a bar; a function is called with the steps done and all steps after each.
        """
        if (seconds is None) == (steps is None):
            raise InputError("run: say how long, run(seconds), or how many steps, run(steps=n), and not both")
        count = whole(steps, "steps") if seconds is None else max(1, round(positive(seconds, "seconds") / self.dt))
        numbers = range(count)
        if progress is True:
            from rich.progress import track

            numbers = track(numbers, description="steps", transient=True)
        for number in numbers:
            self.step()
            if callable(progress):
                progress(number + 1, count)

    def _advance(self) -> None:
        pipeline = self._pipeline
        pipeline.refresh_initial_contacts()
        names = [name for name in self.phases if name != "record"]
        self._run(names)
        while not pipeline.fits():
            self._run(names)
        self._run(["record"])
        pipeline.allow_capture()

    def _run(self, names: list[str]) -> None:
        for name in names:
            with self._clock.timing(name):
                self.phases[name](self._pipeline)

    # -- cutting -------------------------------------------------------------------------------------------------------

    def cut(self, body: int | str, start: Arrays, end: Arrays) -> list[CutEvent]:
        """The edge of a blade goes through a body that is `cuttable`, from one polyline to another; what it has done.

        Between steps, or in a phase of one. Where it starts just where it was left, the stroke goes on from there in
        the material, wherever that is by now; else a new one begins. What has come off a body is a body of its own,
        numbered after all others, and cut by itself.

        Args:
            body: number or name.
            start, end: of the edge of the blade, shape (k, 3) both [m].

        Example:
            >>> import numpy as np
            >>> from tangere.shape.tets import solid_block
            >>> from tangere.soft import Body, Simulation
            >>> block = Body(solid_block((4, 2, 2), size=(2.0, 1.0, 1.0)), cuttable=True)
            >>> simulation = Simulation([block], gravity=(0.0, 0.0, 0.0), device="cpu")
            >>> blade = np.array([[0.1, -0.8, -0.8], [0.1, -0.8, 0.8]])
            >>> events = simulation.cut(0, blade, blade + [0.0, 1.6, 0.0])
            >>> events += simulation.end_stroke(0)
            >>> [event.kind for event in events if event.kind == "parted"], len(simulation)
            (['parted'], 2)
        """
        number = self[body].number
        return self._change(lambda cuts: cuts.cut(number, start, end), number)

    def end_stroke(self, body: int | str) -> list[CutEvent]:
        """The blade has left a body, and all that has come off it: what it has not decided is decided now."""
        number = self[body].number
        return self._change(lambda cuts: cuts.end_stroke(number), number)

    def abandon_stroke(self, body: int | str) -> None:
        """The blade is taken out of a body where it is: what it has opened stays so, what is undecided stays closed.

        Where `end_stroke`, or a cut elsewhere, which ends it, is refused because walls would touch: the next can begin.
        """
        number = self[body].number
        self._change(lambda cuts: cuts.abandon_stroke(number), number)

    def pieces_of(self, body: int | str) -> tuple[int, ...]:
        """The numbers of a body and of all that blades have cut off it, or off what it was part of."""
        with self._pipeline.lock:
            number, cuts = self[body].number, self._pipeline.cuts
            return (number,) if cuts is None or not self.bodies[number].cuttable else cuts.pieces_of(number)

    @property
    def events(self) -> list[CutEvent]:
        """What blades have done in the last step, before it since the one before, and since."""
        with self._pipeline.lock:
            cuts, steps = self._pipeline.cuts, self.steps
            return [] if cuts is None else [event for event in cuts.events if event.step >= steps - 1]

    def _change(self, change: Callable[[CutEngine], None], number: int) -> list[CutEvent]:
        """Cut something, as a whole or not at all."""
        pipeline = self._pipeline
        with pipeline.lock, using_threads(pipeline.options.threads), interrupts_wait() as hear:
            cuts = pipeline.cuts
            if cuts is None:
                name = self.bodies[number].name
                raise InputError(f"cut: body {number} {name!r} cannot be cut; bodies that can say cuttable=True")
            known = set(map(id, cuts.events))
            if pipeline.stepping:
                change(cuts)
            else:
                pipeline.save(only_cut=True)
                try:
                    change(cuts)
                    hear()
                    pipeline.end_change()
                except BaseException:
                    pipeline.restore()
                    raise
            return [event for event in cuts.events if id(event) not in known]

    # -- bodies --------------------------------------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[Body, ...]:
        """At rest: as they were given, and after cuts what there is of them; what has come off is at the end."""
        return self._pipeline.assembly.bodies

    def __len__(self) -> int:
        return len(self._pipeline.assembly)

    def __iter__(self) -> Iterator[SimulatedBody]:
        return (SimulatedBody(self._pipeline, number) for number in range(len(self)))

    def __getitem__(self, body: int | str) -> SimulatedBody:
        """A body as it is now, by its number or its name."""
        return SimulatedBody.find(self._pipeline, body)

    def meshes(self) -> list[Mesh]:
        """The surface of each body where it is now; topologies are those of the bodies."""
        with self._pipeline.lock, using_threads(self._pipeline.options.threads):
            return self._pipeline.meshes()

    def let_go(self) -> None:
        """Pull nothing any more (`SimulatedBody.pull`)."""
        with self._pipeline.lock:
            self._pipeline.pull.release()

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Steps made."""
        return self._pipeline.steps

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.steps * self.dt

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) where the vertices of all shapes are, body after body [m]; a copy. Of one body: `simulation[0]`."""
        with self._pipeline.lock:
            assembly = self._pipeline.assembly
            return assembly.dofs.x.numpy()[assembly.dof_rows].copy()

    @property
    def velocities(self) -> np.ndarray:
        """(n, 3) velocities of the vertices of all shapes, body after body [m/s]; a copy."""
        with self._pipeline.lock:
            assembly = self._pipeline.assembly
            return assembly.dofs.v.numpy()[assembly.dof_rows].copy()

    @property
    def energy(self) -> Energy:
        """Kinetic, elastic and gravitational energy of all bodies now [J]."""
        with self._pipeline.lock:
            return energy_of(self._pipeline.assembly, self.gravity, self._rest_energy)

    @property
    def momentum(self) -> np.ndarray:
        """(3,) the momentum of all that is free [kg m/s]."""
        assembly = self._pipeline.assembly
        with self._pipeline.lock:
            free = assembly.dofs.free.numpy() == 1
            return assembly.dofs.mass.numpy()[free] @ assembly.dofs.v.numpy()[free]

    @property
    def contacts(self) -> Contacts:
        """The contacts the last step responded to, where it began."""
        with self._pipeline.lock:
            return self._pipeline.detection.contacts(self._pipeline.rows.arrays.normal)

    @property
    def contact_forces(self) -> np.ndarray:
        """(n, 3) what each of `contacts` does to its body a where the bodies are now, friction included [N]."""
        with self._pipeline.lock, using_threads(self._pipeline.options.threads):
            rows, count = self._pipeline.rows, self._pipeline.detection.contact_points.count
            rows.update_forces()
            return rows.arrays.force.numpy()[:count].copy()

    @property
    def rows(self) -> ContactRows:
        """The contacts as springs on the degrees of freedom."""
        return self._pipeline.rows

    @property
    def truncation(self) -> TruncationReport:
        """What the truncation of the last step did."""
        with self._pipeline.lock:
            return self._pipeline.truncation.report if self.steps else TruncationReport()

    @property
    def timings(self) -> dict[str, float]:
        """Seconds each phase of the last step took, on its device."""
        with self._pipeline.lock:
            return self._clock.seconds()

    # -- options -------------------------------------------------------------------------------------------------------

    @property
    def device(self) -> wp.Device:
        """Where it computes."""
        return self._pipeline.assembly.device

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return self._pipeline.options.dt

    @property
    def gravity(self) -> np.ndarray:
        """(3,) [m/s^2]."""
        return self._pipeline.options.gravity

    @property
    def response(self) -> str:
        """ "hard", "penalty" or "none"."""
        return self._pipeline.options.response

    @property
    def distance(self) -> float:
        """Surfaces nearer than this push each other [m]."""
        return self._pipeline.options.distance

    @property
    def sweeps(self) -> int:
        """Of the solver in each step."""
        return self._pipeline.options.sweeps


def _without_blades(bodies: Sequence[Body | Blade]) -> tuple[list[Body], dict[int, Blade]]:
    """Bodies, with obstacles in the places of blades, and the blades by their numbers."""
    if isinstance(bodies, Body | Blade) or not isinstance(bodies, Iterable):
        return checked_bodies(bodies), {}
    given = list(bodies)
    blades = {number: blade for number, blade in enumerate(given) if isinstance(blade, Blade)}
    return [blade.obstacle(None) if isinstance(blade, Blade) else blade for blade in given], blades
