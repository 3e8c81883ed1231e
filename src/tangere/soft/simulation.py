"""Deformable bodies in time: one step is a list of named phases, each timed and replaceable.

    reset     forget the contacts of the last step
    predict   where everything would go without forces from inside: x + dt v + dt^2 g
    detect    which surfaces touch
    respond   contacts become springs and friction on the degrees of freedom
    solve     sweeps of vertex block descent, accelerated; momentum of free groups put right
    truncate  (response "hard") moves shortened until no surface passes through any other
    record    velocities, time

Detection comes before the solver (specs/leonard-deformable-gpu C17, C18). All arrays stay on one device. On CUDA each
phase is a captured graph until buffers grow (`graphs`), and the host reads a few counters once a step: when a list did
not fit, it is given more room and the step is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.query.contacts import Contacts
from tangere.runtime import choose_device, using_threads
from tangere.shape import Mesh
from tangere.soft.assembly import Assembly
from tangere.soft.body import Body
from tangere.soft.detection import Detection
from tangere.soft.first_guess import FirstGuess
from tangere.soft.good_start import (
    check_options,
    checked_bodies,
    mean_edge,
    positive,
    refuse_broken,
    refuse_overlap,
    three_numbers,
    whole,
)
from tangere.soft.graphs import Graphs, PhaseClock
from tangere.soft.groups import Groups, MassMoves, MeanMoves
from tangere.soft.measures import Energy, elastic_energy, energy_of
from tangere.soft.motion import carry_surface, find_velocity, move_bodies, predict
from tangere.soft.patches import Patches
from tangere.soft.placing import body_range, drive, put, refuse_speed
from tangere.soft.prepared import Prepared
from tangere.soft.pulling import Pull
from tangere.soft.rows import ContactRows
from tangere.soft.surroundings import Surroundings
from tangere.soft.sweeps_launched import SweepsLaunched
from tangere.soft.sweeps_together import SweepsTogether
from tangere.soft.truncation import Held, Truncation

__all__ = ["Simulation"]

#: Least and most sweeps chosen for a step.
SWEEPS = (8, 40)
#: Part of the contact distance that surfaces always keep.
LEAST_GAP = 1e-4
#: The contact distance chosen, as part of the mean edge of the surfaces.
DISTANCE_PART = 0.75
#: Rounds of the truncation in a captured graph; more are rarely needed.
ROUNDS_AT_ONCE = 2


class Simulation:
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
        self.dt = positive("dt", dt)
        self.gravity = three_numbers("gravity", gravity)
        check_options(response, friction, contact_stiffness, sweeps)
        self.response, self._threads = response, threads
        with using_threads(threads):
            self._assembly = assembly = Assembly.of(bodies, choose_device(device))
            self.distance = mean_edge(bodies) * DISTANCE_PART if distance is None else positive("distance", distance)
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
        self.time, self.steps = 0.0, 0
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
        """One step of `dt`."""
        with using_threads(self._threads):
            self._look_round()
            names = list(self.phases)
            self._run(names[:-1])
            while not self._fits():
                wp.copy(self._assembly.x, self._start)
                self._run(names[:-1])
            self._run(names[-1:])
            self._graphs.ready = True

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
        steps = whole("steps", steps, 0)
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
        return self._assembly.bodies

    @property
    def device(self) -> wp.Device:
        return self._assembly.device

    def meshes(self) -> list[Mesh]:
        """The surface of each body where it is now; topologies are those of the bodies."""
        with using_threads(self._threads):
            self._map_end(len(self._surface_end))
        places, base = self._surface_end.numpy(), self._assembly.vertex_base
        return [
            body.surface.replace(vertices=places[base[k] : base[k + 1]].copy()) for k, body in enumerate(self.bodies)
        ]

    def positions(self, body: int = 0) -> np.ndarray:
        """Where the vertices of a body's shape are, shape (n, 3) [m]; a copy."""
        return self._of_body(self._assembly.x, body)

    def velocities(self, body: int = 0) -> np.ndarray:
        """Velocities of the vertices of a body's shape, shape (n, 3) [m/s]; a copy."""
        return self._of_body(self._assembly.v, body)

    def set_state(self, body: int, *, positions: Any = None, velocities: Any = None) -> None:
        """Put a body elsewhere, or give what of it is free other velocities, shapes (n, 3) [m], [m/s].

        Positions alone are a new start: what is nearer to others than the contact distance is not pushed away. With
        velocities they are a state to go on from. With response "hard" the next step raises if surfaces overlap then;
        a body that is to push others is moved by `drive`.
        """
        put(self._assembly, body, positions, velocities, self.dt)
        if positions is not None:
            self._surroundings.moved(gaps_known=velocities is not None)

    def drive(self, body: int, velocity: Any) -> None:
        """From now on move the fixed vertices of a body at a velocity, shape (3,) or (n, 3) [m/s]: a tool, a piston.

        It pushes what it meets and goes round nothing: where it would go through something that cannot yield it is
        held back, and goes on when it can. To follow a path, give the velocity of each step before it.
        """
        drive(self._assembly, body, velocity, self.dt)

    def pull(self, body: int, vertex: int, to: Sequence[float], *, stiffness: float | None = None) -> None:
        """From now on pull a vertex of a body's surface towards a point; whatever was pulled before is let go.

        Args:
            to: [m].
            stiffness: of the spring [N/m]; None means that of the body over its extent.
        """
        self._pull.take(body, vertex, to, stiffness)

    def let_go(self) -> None:
        """Pull nothing any more."""
        self._pull.release()

    def energy(self) -> Energy:
        """Kinetic, elastic and gravitational energy of all bodies now [J]."""
        return energy_of(self._assembly, self.gravity, self._rest_energy)

    def momentum(self) -> np.ndarray:
        """(3,) the momentum of all that is free [kg m/s]."""
        free = self._assembly.free.numpy() == 1
        return self._assembly.mass.numpy()[free] @ self._assembly.v.numpy()[free]

    @property
    def timings(self) -> dict[str, float]:
        """Seconds each phase of the last step took, on its device."""
        return self._clock.seconds()

    @property
    def held(self) -> Held:
        """What the truncation of the last step did."""
        return self._truncation.held if self.steps else Held()

    @property
    def contacts(self) -> Contacts:
        """The contacts the last step responded to, where it began."""
        return self._detection.contacts(self._rows.normal)

    @property
    def rows(self) -> ContactRows:
        """The contacts as springs on the degrees of freedom."""
        return self._rows

    # -- the phases ----------------------------------------------------------------------------------------------------

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
            self._give_up()

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
        capacity = self._rows.capacity
        self._rows.set(self._detection.touching, self._surface_start)
        if self._rows.capacity != capacity:
            self._prepare_sweeps()
        self._rows.join(self._groups)

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

    def _look_round(self) -> None:
        """Where bodies were put somewhere, see what follows from it."""
        if self.response == "hard" and not self._surroundings.known:
            self._map_start(len(self._surface_start))
            before = self._detection.touching
            self._surroundings.look(self.meshes())
            if self._detection.touching is not before:
                self._graphs.forget()
            self._detection.clear()

    def _give_up(self) -> None:
        """Back to where the step began, and say who cannot go on."""
        end = self._assembly.x.numpy().copy()
        wp.copy(self._assembly.x, self._start)
        self._prepare_sweeps()  # what they keep is not finite either
        refuse_broken(self._assembly, end, self.steps, self.dt)

    def _find_velocity(self) -> None:
        if self.response == "hard":
            self._truncation.put_right()
        self._velocity(len(self._assembly.x))

    def _fits(self) -> bool:
        """Whether all lists of the step had room; those that had not are given more."""
        if self.response != "hard" and not np.isfinite(self._missing.sums.numpy()).all():
            self._give_up()
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
        kind = SweepsLaunched if self.device.is_cuda else SweepsTogether
        self._sweeps = kind(self._assembly, self._groups, self._free, self._inertia, self._rows, self.dt)
        self._graphs.forget()

    def _allocate(self, friction: float, contact_stiffness: float | None) -> None:
        a, device = self._assembly, self._assembly.device
        self._start, self._free = wp.zeros_like(a.x), wp.zeros_like(a.x)
        self._inertia = wp.array(a.mass.numpy() / self.dt**2, dtype=wp.float64, device=device)
        self._surface_start, self._surface_end = wp.zeros_like(a.rest), wp.zeros_like(a.rest)
        self._shift = wp.zeros(len(a.bodies), dtype=wp.vec3d, device=device)
        self._map_start = carry_surface(a, self._surface_start)
        self._map_end = carry_surface(a, self._surface_end)
        self._graphs = Graphs(device)
        self._predict: Prepared = predict(a, self._start, self._free, self.dt, self.gravity)
        self._move_bodies = move_bodies(a, self._shift)
        self._map_start(len(self._surface_start))
        self._patches = Patches(a)
        self._groups = Groups(a)
        self._first_guess = FirstGuess(a, self._start, self._free, self._inertia, self._groups)
        self._pull = Pull(a, self._groups, self._start, self._free, self._inertia)
        self._missing = MassMoves(a, self._free, a.x)
        self._missing_mean = MeanMoves(self._groups, self._missing, self._shift)
        self._detection = Detection(a, self._patches, self._surface_start, self.distance)
        self._surroundings = Surroundings(a, self._detection, self.distance)
        self._rows = ContactRows(
            a,
            self._start,
            dt=self.dt,
            distance=self.distance,
            friction=friction,
            stiffness=contact_stiffness,
            limits=self._surroundings.limits,
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

    def _of_body(self, array: wp.array, body: int) -> np.ndarray:
        begin, end = body_range(self._assembly, body)
        return array.numpy()[begin:end].copy()
