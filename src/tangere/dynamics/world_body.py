"""One body of a running world: where it is, and what a user does to it, checked by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.dynamics.body import Body
from tangere.dynamics.state import read_poses
from tangere.motion import as_poses
from tangere.runtime import InputError, NonCopyable, described, device_of, positive, to_numpy, view_room
from tangere.shape.mesh import Mesh

if TYPE_CHECKING:
    from tangere.dynamics.stepping.step import WorldStep


@dataclass(frozen=True, eq=False, repr=False)
class WorldBody(NonCopyable, instead="it is a handle of its world; keep its number or its name, and ask the world"):
    """A body as it is now; made by `world[0]` or `world["door"]`, and valid as long as the world."""

    _step: WorldStep
    number: int  #: in the list of bodies that the world was given

    @classmethod
    def find(cls, step: WorldStep, body: int | str) -> WorldBody:
        """The body of a number or a name."""
        return cls(step, body_number(step.bodies, body))

    def __repr__(self) -> str:
        return f"WorldBody({self.number}: {self.name!r}, {len(self.body.mesh.faces)} triangles)"

    def _repr_png_(self) -> bytes | None:
        """For notebooks: its surface where it is now; None where it cannot be drawn."""
        return view_room().png(self.mesh)

    @property
    def body(self) -> Body:
        """As it was given, at the start."""
        return self._step.bodies[self.number]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.body.name

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) from its mesh's frame to the world [m]."""
        with self._step.lock:
            return read_poses(self._step.state, self._step.table)[self.number]

    @property
    def position(self) -> np.ndarray:
        """(3,) of its centre of mass [m]."""
        return self._row(self._step.state.position)

    @property
    def velocity(self) -> np.ndarray:
        """(3,) of its centre of mass [m/s]."""
        return self._row(self._step.state.velocity)[:3]

    @property
    def spin(self) -> np.ndarray:
        """(3,) angular velocity, along the world's axes [rad/s]."""
        return self._row(self._step.state.velocity)[3:]

    @property
    def mesh(self) -> Mesh:
        """Its surface where it is now."""
        return self.body.mesh.at(self.pose)

    def set_state(self, *, pose: Any = None, velocity: Any = None, spin: Any = None) -> None:
        """Put it elsewhere, (4, 4), or give it another velocity [m/s] or spin [rad/s], (3,).

        The next step raises if it overlaps another body then. A body that is to push others is moved by `drive`.
        """
        step, k = self._step, self.number
        with step.lock:
            matrix = None if pose is None else self._checked_pose(pose)
            motion = step.state.velocity.numpy()[k].copy()
            motion[:3] = motion[:3] if velocity is None else self._three(velocity, "velocity")
            motion[3:] = motion[3:] if spin is None else self._three(spin, "spin")
            if not self.body.driven:
                motion = np.where(self.body.held, 0.0, motion)
            if matrix is not None:
                centre = step.table.centre.numpy()[k]
                _write(step.state.rotation, k, matrix[:3, :3])
                _write(step.state.position, k, matrix[:3, 3] + matrix[:3, :3] @ centre)
                step.placed_anew()
            _write(step.state.velocity, k, motion)
            step.wake(k)

    def push(self, *, force: Any = (0.0, 0.0, 0.0), torque: Any = (0.0, 0.0, 0.0), at: Any = None) -> None:
        """From now on push it, in the place of whatever pushed it before; a push of nothing ends it.

        Args:
            force: (3,) along the world's axes [N].
            torque: (3,) [N m].
            at: where the force acts now, (3,) in the world [m]; None means at the centre of mass.
        """
        step, k = self._step, self.number
        if not self.body.moves:
            raise InputError(f"push: body {k} ({self.name!r}) is {'driven' if self.body.driven else 'fixed'}")
        with step.lock:
            pushed, turned = self._three(force, "force"), self._three(torque, "torque")
            if at is not None:
                turned = turned + np.cross(self._three(at, "at") - self.position, pushed)
            constant = np.r_[self.body.force, self.body.torque]
            _write(step.load, k, constant + np.r_[pushed, turned])
            step.wake(k)

    def drive(self, *, velocity: Any = (0.0, 0.0, 0.0), spin: Any = (0.0, 0.0, 0.0)) -> None:
        """From now on move a driven body at a velocity [m/s] and a spin [rad/s], (3,) each.

        It pushes what it meets; where that cannot yield it is held back (`World.truncation`), and goes on when it can.
        """
        step, k = self._step, self.number
        if not self.body.driven:
            raise InputError(f"drive: body {k} ({self.name!r}) is not driven; make it with Body(…, driven=True)")
        with step.lock:
            _write(step.state.velocity, k, np.r_[self._three(velocity, "velocity"), self._three(spin, "spin")])
            step.wake(k)

    def pull(self, point: Any, to: Any, *, stiffness: float | None = None) -> None:
        """From now on pull a point of it towards a place, by a spring with critical damping.

        Args:
            point: (3,) where it is now, in the world [m]; it goes along with the body.
            to: (3,) in the world [m].
            stiffness: of the spring [N/m]; None means what moves the body in a tenth of a second.
        """
        step, k = self._step, self.number
        if not self.body.moves:
            raise InputError(f"pull: body {k} ({self.name!r}) is {'driven' if self.body.driven else 'fixed'}")
        with step.lock:
            pose = self.pose
            local = pose[:3, :3].T @ (self._three(point, "point") - pose[:3, 3])
            given = 100.0 * float(self.body.mass) if stiffness is None else positive(stiffness, "pull: stiffness")
            step.joints.pull(k, local, self._three(to, "to"), given)
            step.wake(k)

    def let_go(self) -> None:
        """Pull it no more."""
        with self._step.lock:
            self._step.joints.release(self.number)

    def _row(self, array: wp.array) -> np.ndarray:
        with self._step.lock:
            return array.numpy()[self.number].copy()

    def _three(self, given: Any, what: str) -> np.ndarray:
        array = to_numpy(given, f"{what} of body {self.number}")
        if array.shape != (3,) or not np.isfinite(array).all():
            raise InputError(
                f"{what} of body {self.number} ({self.name!r}) must be three finite numbers, not {described(given)}"
            )
        return array

    def _checked_pose(self, pose: Any) -> np.ndarray:
        matrix = as_poses(pose, f"pose of body {self.number}")
        if matrix.shape != (4, 4):
            raise InputError(f"pose of body {self.number} ({self.name!r}) must have shape (4, 4), not {matrix.shape}")
        return matrix


def body_number(bodies: tuple[Body, ...], body: Any) -> int:
    """The number of a body that is told by its number or its name."""
    if isinstance(body, str):
        named = [number for number, one in enumerate(bodies) if one.name == body]
        if len(named) != 1:
            reason = "several bodies are" if named else "there is no body"
            names = ", ".join(repr(one.name) for one in bodies[:20]) + (", …" if len(bodies) > 20 else "")
            raise InputError(f"{reason} called {body!r}; there are {names}, counted from 0")
        return named[0]
    if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body < len(bodies):
        raise InputError(f"there is no body {body!r}; there are {len(bodies)}, counted from 0")
    return int(body)


def _write(target: wp.array, row: int, values: np.ndarray) -> None:
    if device_of(target).is_cpu:  # a view takes a tenth of the time of an array
        target.numpy()[row] = values
        return
    one = wp.array(np.asarray(values, float)[None], dtype=target.dtype, device=target.device)
    wp.copy(target, one, dest_offset=row, count=1)
