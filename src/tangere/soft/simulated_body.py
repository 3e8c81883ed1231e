"""One body of a running simulation: where it is, and what a user does to it, checked by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.runtime import InputError, to_numpy, using_threads, view_room
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body
from tangere.soft.model.assembled_bodies import AssembledBodies

if TYPE_CHECKING:
    from tangere.soft.step import StepPipeline

#: Times the extent of the scene that a vertex may go in one step: beyond, positions have too few digits.
MOST_EXTENTS = 1e9


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedBody:
    """A body as it is now; made by `simulation[0]` or `simulation["ring"]`, and valid as long as the simulation."""

    _pipeline: StepPipeline
    number: int  #: in the list of bodies that the simulation was given

    @classmethod
    def find(cls, pipeline: StepPipeline, body: int | str) -> SimulatedBody:
        """The body of a number or a name."""
        names = pipeline.assembly.names
        if isinstance(body, str):
            named = [number for number, name in enumerate(names) if name == body]
            if len(named) != 1:
                reason = "several bodies are" if named else "there is no body"
                known = ", ".join(map(repr, names))
                raise InputError(f"{reason} called {body!r}; there are {known}, counted from 0")
            return cls(pipeline, named[0])
        if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body < len(names):
            raise InputError(f"there is no body {body!r}; there are {len(names)}, counted from 0")
        return cls(pipeline, int(body))

    def __repr__(self) -> str:
        return f"SimulatedBody({self.number}: {self.name!r}, {len(self.body.shape.vertices)} vertices)"

    def _repr_png_(self) -> bytes | None:
        """For notebooks: its surface where it is now; None where it cannot be drawn."""
        return view_room().png(self.mesh)

    @property
    def body(self) -> Body:
        """As it was given, at rest."""
        return self._pipeline.assembly.bodies[self.number]

    @property
    def name(self) -> str:
        """What it is called."""
        return self._pipeline.assembly.names[self.number]

    @property
    def positions(self) -> np.ndarray:
        """Where the vertices of its shape are, shape (n, 3) [m]; a copy."""
        return self._rows_of(self._pipeline.assembly.dofs.x)

    @property
    def velocities(self) -> np.ndarray:
        """Velocities of the vertices of its shape, shape (n, 3) [m/s]; a copy."""
        return self._rows_of(self._pipeline.assembly.dofs.v)

    @property
    def mesh(self) -> Mesh:
        """Its surface where it is now."""
        with self._pipeline.lock, using_threads(self._pipeline.options.threads):
            return self._pipeline.meshes()[self.number]

    @property
    def force(self) -> np.ndarray:
        """(3,) what all contacts do to it where the bodies are now, and what its edge cuts, if it is a blade [N].

        A hand that leads it feels that; what the truncation takes where it holds it back is not in it.
        """
        pipeline = self._pipeline
        with pipeline.lock, using_threads(pipeline.options.threads):
            total = np.zeros(3) if pipeline.cuts is None else pipeline.cuts.force_on(self.number).copy()
            rows, count = pipeline.rows, pipeline.detection.contact_points.count
            if count:
                rows.update_forces()
                force, bodies = rows.arrays.force.numpy()[:count], rows.arrays.bodies.numpy()[:count]
                total += force[bodies[:, 0] == self.number].sum(axis=0) - force[bodies[:, 1] == self.number].sum(axis=0)
            return total

    def set_state(self, *, positions: Any = None, velocities: Any = None) -> None:
        """Put it elsewhere, or give what of it is free other velocities, shapes (n, 3) [m], [m/s].

        Positions alone are a new start: what is nearer to others than the contact distance is not pushed away. With
        velocities they are a state to go on from. With response "hard" the next step raises if surfaces overlap then
        of which one can yield: what is fixed on both sides may. A body that is to push others is moved by `drive`.
        """
        pipeline, assembly = self._pipeline, self._pipeline.assembly
        with pipeline.lock:
            fixed = self._fixed
            places = None if positions is None else _rows(positions, self.number, "positions", len(fixed))
            if velocities is not None:
                array = _rows(velocities, self.number, "velocities", len(fixed))
                check_speed(assembly, array, pipeline.options.dt, f"body {self.number}")
                _write(assembly.dofs.v, self._dofs, np.where(fixed, self.velocities, array))
            if places is not None:
                _write(assembly.dofs.x, self._dofs, places)
                pipeline.rows.memory.forget()
                pipeline.held_crossings.forget()
                pipeline.initial_contacts.invalidate(keep_gaps=velocities is not None)

    def drive(self, velocity: Any) -> None:
        """From now on move its fixed vertices at a velocity, shape (3,) or (n, 3) [m/s]: a tool, a piston.

        It pushes what it meets and goes round nothing: where it would go through something that cannot yield it is
        held back, and goes on when it can. A body of which nothing is free is held back as a whole and keeps its
        shape (`Simulation.truncation.driven_part`); else vertices are held back one by one. One that is driven on
        fast into what does not yield stands, and so does all that touches it, until it is driven elsewhere
        (`Simulation.truncation.impact_substep`). What is fixed or driven on both sides is not looked at: a tool goes
        through obstacles, other tools and fixed parts of soft bodies, so lead it round them. To follow a path, give
        the velocity of each step before it.
        """
        pipeline, body, assembly = self._pipeline, self.number, self._pipeline.assembly
        with pipeline.lock:
            fixed = self._fixed
            if not fixed.any():
                raise InputError(f"drive: nothing of body {body} is fixed")
            array = to_numpy(velocity, f"drive: velocity of body {body}")
            array = np.tile(array, (len(fixed), 1)) if array.shape == (3,) else array
            array = _rows(array, body, "velocity", len(fixed))
            check_speed(assembly, array, pipeline.options.dt, f"body {body}")
            _write(assembly.dofs.v, self._dofs, np.where(fixed, array, self.velocities))

    def pull(self, vertex: int, to: Sequence[float], *, stiffness: float | None = None) -> None:
        """From now on pull a vertex of its surface towards a point; whatever was pulled before is let go.

        Args:
            to: [m].
            stiffness: of the spring [N/m]; None means that of the body over its extent.
        """
        with self._pipeline.lock:
            self._pipeline.pull.attach(self.number, vertex, to, stiffness)

    @property
    def _dofs(self) -> np.ndarray | slice:
        """Its dofs in the arrays of all bodies."""
        return self._pipeline.assembly.dofs_of(self.number)

    @property
    def _fixed(self) -> np.ndarray:
        """(n, 1) bool: which of its dofs are held."""
        return self._pipeline.assembly.dofs.free.numpy()[self._dofs, None] == 0

    def _rows_of(self, array: wp.array) -> np.ndarray:
        with self._pipeline.lock:
            return array.numpy()[self._dofs].copy()


def check_speed(assembly: AssembledBodies, velocities: np.ndarray, dt: float, whose: str) -> None:
    """Raise if a velocity is too large for a step to keep its digits."""
    most = MOST_EXTENTS * assembly.rest_mesh.extent / dt
    speed = float(np.abs(velocities).max(initial=0.0))
    if not speed <= most:
        raise InputError(f"{whose}: a speed of {speed:g} m/s is more than steps of {dt:g} s can follow, {most:.3g} m/s")


def _rows(given: Any, body: int, what: str, count: int) -> np.ndarray:
    array = to_numpy(given, f"{what} of body {body}")
    if array.shape != (count, 3):
        raise InputError(f"{what} of body {body} have shape {array.shape}, not ({count}, 3)")
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(wrong):
        raise InputError(f"{what} of body {body}: row {wrong[0]} is not finite: {array[wrong[0]].tolist()}")
    return array


def _write(target: wp.array, rows: np.ndarray | slice, array: np.ndarray) -> None:
    if isinstance(rows, slice):
        new = wp.array(array, dtype=wp.vec3d, device=target.device)
        wp.copy(target, new, dest_offset=rows.start, count=len(array))
    else:
        every = target.numpy().copy()
        every[rows] = array
        target.assign(every)
