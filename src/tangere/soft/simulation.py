"""Deformable bodies in time: one step is a list of named phases, each timed and replaceable.

    reset     forget the contacts of the last step
    predict   where everything would go without forces from inside: x + dt v + dt^2 g
    detect    which surfaces touch
    respond   contacts become springs and friction on the degrees of freedom
    solve     sweeps of vertex block descent, accelerated; momentum of free groups put right
    truncate  (response "hard") moves shortened until no surface passes through any other
    record    velocities, time

Detection comes before the solver (specs/leonard-deformable-gpu C17, C18). All arrays stay on one device. What each
phase does is in `phases`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.query.contacts import Contacts
from tangere.runtime import NonCopyable, choose_device, positive, three_numbers, using_threads, whole
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body
from tangere.soft.contact.rows import ContactRows
from tangere.soft.model.assembly import Assembly
from tangere.soft.model.energy import Energy, elastic_energy, energy_of
from tangere.soft.phases import Phases
from tangere.soft.placement import body_range, drive, put, refuse_speed
from tangere.soft.safe_step.truncation import TruncationReport
from tangere.soft.solver.cuda.graphs import PhaseClock
from tangere.soft.validation import check_options, checked_bodies, mean_edge, refuse_overlap

__all__ = ["Simulation"]

#: Least and most sweeps chosen for a step.
SWEEPS = (8, 40)
#: The contact distance chosen, as part of the mean edge of the surfaces.
DISTANCE_PART = 0.75


class Simulation(
    Phases, NonCopyable, instead="make another one of the same bodies, and give it their state by set_state"
):
    """Bodies that move, deform and touch.

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
        >>> cloth = Body(tg.generate.sheet(200, size=(1.0, 1.0)), stiffness=1e4, density=100.0, name="cloth")
        >>> simulation = Simulation([cloth], device="cpu")
        >>> simulation.run(5)
        >>> f"fallen {-simulation.positions()[:, 2].mean():.4f} m"  # g dt^2 (1 + 2 + 3 + 4 + 5)
        'fallen 0.0589 m'
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        *,
        dt: float = 0.02,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        response: Literal["hard", "penalty", "none"] = "hard",
        distance: float | None = None,
        friction: float = 0.3,
        contact_stiffness: float | None = None,
        sweeps: int | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        bodies = checked_bodies(bodies)
        self.dt = positive(dt, "dt")
        self.gravity = three_numbers(gravity, "gravity")
        check_options(response, friction, contact_stiffness, sweeps)
        self.response, self._threads = response, threads
        self.time, self.steps = 0.0, 0
        self._turn = threading.RLock()  #: who steps, puts or reads waits for it, so that nobody meets half a step
        with using_threads(threads):
            self._assembly = assembly = Assembly.of(bodies, choose_device(device))
            self.distance = mean_edge(bodies) * DISTANCE_PART if distance is None else positive(distance, "distance")
            needed = max(body.sweeps_needed(self.dt) for body in bodies)
            self.sweeps = int(np.clip(needed, *SWEEPS)) if sweeps is None else int(sweeps)
            self._too_few_sweeps = needed > self.sweeps
            for at, body in enumerate(bodies):
                refuse_speed(assembly, body.velocity, self.dt, f"body {at}")
            if response == "hard":
                refuse_overlap(assembly, [body.surface for body in bodies], "at the start")
            self._rest_energy = elastic_energy(assembly)
            self._allocate(friction, contact_stiffness)
            self._look_round()
        self._clock = PhaseClock(self.device)
        #: The phases of a step in order; put a function of the simulation in the place of any.
        self.phases: dict[str, Callable[[Simulation], None]] = {
            "reset": Simulation.reset,
            "predict": Simulation.predict,
            "detect": Simulation.detect,
            "respond": Simulation.respond,
            "solve": Simulation.solve,
            "truncate": Simulation.truncate,
            "record": Simulation.record,
        }
        if response != "hard":
            del self.phases["truncate"]

    def __repr__(self) -> str:
        names = ", ".join(repr(body.name) for body in self._assembly.bodies)
        return f"Simulation({names}; {self.response}, {self.sweeps} sweeps of {self.dt:g} s, now at {self.time:g} s)"

    # -- going on ------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of `dt`, as a whole: whatever stops it, an error or Ctrl-C, leaves everything where it began.

        Several threads may make steps, and look on: they take turns.
        """
        with self._turn, using_threads(self._threads):
            self._keep()
            try:
                self._go_on()
            except BaseException:
                self._undo()
                raise

    def _go_on(self) -> None:
        self._look_round()
        names = list(self.phases)
        self._run(names[:-1])
        while not self._fits():
            wp.copy(self._assembly.x, self._start)
            self._run(names[:-1])
        self._run(names[-1:])
        self._graphs.ready = True

    def _look_round(self) -> None:
        """Where bodies were put somewhere, see what follows from it."""
        if self.response == "hard" and not self._surroundings.known:
            self._map_start(len(self._surface_start))
            before = self._detection.touching
            self._surroundings.look(self.meshes())
            if self._detection.touching is not before:
                self._graphs.forget()
            self._detection.clear()

    def _run(self, names: list[str]) -> None:
        for name in names:
            with self._clock.timing(name):
                self.phases[name](self)

    def run(self, steps: int, *, progress: Callable[[Simulation], Any] | bool = False) -> None:
        """Many steps.

        Args:
            steps: how many.
            progress: True shows a bar; a function is called with the simulation after each step.
        """
        steps = whole(steps, "steps")
        if progress is True:
            from rich.progress import track

            numbers = track(range(steps), description="steps", transient=True)
        else:
            numbers = range(steps)
        for _ in numbers:
            self.step()
            if callable(progress):
                progress(self)

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[Body, ...]:
        """As they were given, at rest."""
        return self._assembly.bodies

    def meshes(self) -> list[Mesh]:
        """The surface of each body where it is now; topologies are those of the bodies."""
        with self._turn, using_threads(self._threads):
            self._map_end(len(self._surface_end))
            places = np.split(self._surface_end.numpy().copy(), self._assembly.vertex_base[1:-1])
        return [body.surface.replace(vertices=own) for body, own in zip(self.bodies, places, strict=True)]

    def positions(self, body: int = 0) -> np.ndarray:
        """Where the vertices of a body's shape are, shape (n, 3) [m]; a copy."""
        return self._of_body(self._assembly.x, body)

    def velocities(self, body: int = 0) -> np.ndarray:
        """Velocities of the vertices of a body's shape, shape (n, 3) [m/s]; a copy."""
        return self._of_body(self._assembly.v, body)

    def set_state(self, body: int, *, positions: Any = None, velocities: Any = None) -> None:
        """Put a body elsewhere, or give what of it is free other velocities, shapes (n, 3) [m], [m/s].

        Positions alone are a new start: what is nearer to others than the contact distance is not pushed away. With
        velocities they are a state to go on from. With response "hard" the next step raises if surfaces overlap then
        of which one can yield: what is fixed on both sides may. A body that is to push others is moved by `drive`.
        """
        with self._turn:
            put(self._assembly, body, positions, velocities, self.dt)
            if positions is not None:
                self._surroundings.moved(gaps_known=velocities is not None)

    def drive(self, body: int, velocity: Any) -> None:
        """From now on move the fixed vertices of a body at a velocity, shape (3,) or (n, 3) [m/s]: a tool, a piston.

        It pushes what it meets and goes round nothing: where it would go through something that cannot yield it is
        held back, and goes on when it can. Vertices are held back one by one: a tool that meets something hard with
        a part of it bends there, and may cross itself. One that is driven on fast into what does not yield stands, and
        so does all that touches it, until it is driven elsewhere (`held.pace`). What is fixed or driven on both sides
        is not looked at: a tool goes through obstacles, other tools and fixed parts of soft bodies, so lead it round
        them. To follow a path, give the velocity of each step before it.
        """
        with self._turn:
            drive(self._assembly, body, velocity, self.dt)

    def pull(self, body: int, vertex: int, to: Sequence[float], *, stiffness: float | None = None) -> None:
        """From now on pull a vertex of a body's surface towards a point; whatever was pulled before is let go.

        Args:
            to: [m].
            stiffness: of the spring [N/m]; None means that of the body over its extent.
        """
        with self._turn:
            self._pull.take(body, vertex, to, stiffness)

    def let_go(self) -> None:
        """Pull nothing any more."""
        with self._turn:
            self._pull.release()

    def energy(self) -> Energy:
        """Kinetic, elastic and gravitational energy of all bodies now [J]."""
        with self._turn:
            return energy_of(self._assembly, self.gravity, self._rest_energy)

    def momentum(self) -> np.ndarray:
        """(3,) the momentum of all that is free [kg m/s]."""
        with self._turn:
            free = self._assembly.free.numpy() == 1
            return self._assembly.mass.numpy()[free] @ self._assembly.v.numpy()[free]

    @property
    def timings(self) -> dict[str, float]:
        """Seconds each phase of the last step took, on its device."""
        with self._turn:
            return self._clock.seconds()

    @property
    def held(self) -> TruncationReport:
        """What the truncation of the last step did."""
        with self._turn:
            return self._truncation.held if self.steps else TruncationReport()

    @property
    def contacts(self) -> Contacts:
        """The contacts the last step responded to, where it began."""
        with self._turn:
            return self._detection.contacts(self._rows.normal)

    @property
    def rows(self) -> ContactRows:
        """The contacts as springs on the degrees of freedom."""
        return self._rows

    def _of_body(self, array: wp.array, body: int) -> np.ndarray:
        begin, end = body_range(self._assembly, body)
        with self._turn:
            return array.numpy()[begin:end].copy()
