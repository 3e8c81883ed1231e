"""Many copies of one world that step together, in the same launches: for sampling, learning and control.

Bodies of different copies are never compared; their rows are islands of their own. A step is made in as many parts as
the copy needs that needs the most, so a copy may differ from a world of its own by what the length of a step makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.dynamics.energy import energies_of
from tangere.dynamics.material import SurfaceKinds
from tangere.dynamics.state import read_poses, write_poses
from tangere.dynamics.stepping.made import PHASES, make_step, steps_in
from tangere.dynamics.stepping.report import WorldTruncation
from tangere.dynamics.stepping.step import WorldStep
from tangere.motion import as_poses
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, NonCopyable, described, to_numpy, using_threads


class WorldCopies(NonCopyable, instead="make more of the world itself: world.copies(n)"):
    """n copies of a world, made by `World.copies(n)`; arrays have one row a copy.

    Args:
        source: the step of the world that is copied.
    """

    def __init__(self, source: WorldStep, count: int) -> None:
        bodies, each = source.bodies, len(source.bodies)
        with using_threads(source.options.threads):
            source.refuse_overlaps()
            kinds = source.surfaces
            surfaces = SurfaceKinds(np.tile(kinds.of_body, count), kinds.friction, kinds.restitution)
            shift = each * np.repeat(np.arange(count), len(source.ignored))[:, None]
            ignored = np.tile(source.ignored, (count, 1)) + shift
            worlds = np.repeat(np.arange(count, dtype=np.int32), each)
            self._step = WorldStep(bodies * count, source.options, surfaces, ignored, source.device, worlds)
            self._count, self._each = count, each
            self._join(source)
            step = self._step
            for name in ("position", "rotation", "velocity"):
                values = getattr(source.state, name).numpy()
                getattr(step.state, name).assign(np.tile(values, (count, *[1] * (values.ndim - 1))))
            step.load.assign(np.tile(source.load.numpy(), (count, 1)))
            step.certified()
        self.phases: dict[str, Callable[[WorldStep], None]] = dict(PHASES)  #: of a step, as those of `World`
        self._seconds: dict[str, float] = {}

    def _join(self, source: WorldStep) -> None:
        """The joints of each copy, and what drives them."""
        joints, motors, each = source.joints.joints, source.joints.motors, self._each
        made = [
            replace(
                joint,
                body_a=joint.body_a + k * each,
                body_b=joint.body_b + k * each if joint.body_b >= 0 else -1,
                name=f"{joint.name} {k}",
            )
            for k in range(self._count)
            for joint in joints
        ]
        driven = {k * len(joints) + number: motor for k in range(self._count) for number, motor in motors.items()}
        self._step.joints.extend(made, driven, np.tile(source.joints.coordinates(), self._count))

    def __repr__(self) -> str:
        return f"WorldCopies({len(self)} worlds of {self._each} bodies; now at {self.time:g} s, on {self._step.device})"

    def __len__(self) -> int:
        return self._count

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of all copies, as a whole."""
        self._seconds = make_step(self._step, self.phases)

    def run(self, seconds: float | None = None, *, steps: int | None = None) -> None:
        """Many steps: for so long [s], or so many."""
        for _ in range(steps_in(seconds, steps, self.dt)):
            self.step()

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return self._step.options.dt

    @property
    def steps(self) -> int:
        """Steps made."""
        return self._step.steps

    @property
    def time(self) -> float:
        """Simulated by each [s]."""
        return self.steps * self.dt

    @property
    def poses(self) -> np.ndarray:
        """(n, bodies, 4, 4) from the frames of the meshes to the worlds [m]; a copy."""
        with self._step.lock:
            return self._rows(read_poses(self._step.state, self._step.table))

    @property
    def positions(self) -> np.ndarray:
        """(n, bodies, 3) of the centres of mass [m]; a copy."""
        with self._step.lock:
            return self._rows(self._step.state.position.numpy()).copy()

    @property
    def velocities(self) -> np.ndarray:
        """(n, bodies, 6) of the centres of mass [m/s], and angular [rad/s]; a copy."""
        with self._step.lock:
            return self._rows(self._step.state.velocity.numpy()).copy()

    @property
    def energy(self) -> np.ndarray:
        """(n,) kinetic and gravitational energy of each [J]."""
        step = self._step
        with step.lock:
            return self._rows(energies_of(step.state, step.table, step.options.gravity)).sum(axis=1)

    @property
    def contacts(self) -> Contacts:
        """The contacts that the last step looked at; `query` is the copy, and bodies are counted in it."""
        with self._step.lock:
            found = self._step.contacts()
        copy, each = (found.body_a // self._each).astype(np.int32), self._each
        return replace(found, query=copy, body_a=found.body_a % each, body_b=found.body_b % each)

    @property
    def truncation(self) -> WorldTruncation:
        """What the last step held back in all copies; body b of copy k is number k * bodies + b."""
        with self._step.lock:
            return self._step.tally.report(self._step.overlapping)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds each phase of the last step took."""
        return dict(self._seconds)

    def set_state(self, *, poses: Any = None, velocities: Any = None) -> None:
        """Put the bodies of all copies elsewhere, or give them other velocities.

        The next step raises if two bodies overlap then.

        Args:
            poses: (n, bodies, 4, 4) or (bodies, 4, 4) [m]; None means where they are.
            velocities: (n, bodies, 6) or (bodies, 6) [m/s], [rad/s]; None means as they are.
        """
        step, shape = self._step, (self._count, self._each)
        if poses is not None:
            matrices = to_numpy(poses, "poses")
            if matrices.shape not in ((*shape, 4, 4), (self._each, 4, 4)):
                raise InputError(f"poses must have shape {(*shape, 4, 4)}, not {matrices.shape}")
            poses = as_poses(np.broadcast_to(matrices, (*shape, 4, 4)).reshape(-1, 4, 4), "poses")
        if velocities is not None:
            velocities = self._sixes(velocities, "velocities")
            driven = np.array([body.driven for body in step.bodies])
            held = np.array([body.held for body in step.bodies])
            velocities = np.where(held & ~driven[:, None], 0.0, velocities)
        with step.lock:
            if poses is not None:
                write_poses(step.state, step.table, poses)
                step.placed_anew()
            if velocities is not None:
                step.state.velocity.assign(velocities)
            self._wake()

    def push(self, loads: Any) -> None:
        """From now on push the bodies, in the place of whatever pushed them before.

        Args:
            loads: (n, bodies, 6) or (bodies, 6) force at the centre of mass and torque [N], [N m].
        """
        step = self._step
        given = self._sixes(loads, "loads")
        constant = np.array([np.r_[body.force, body.torque] for body in step.bodies])
        moves = np.array([body.moves for body in step.bodies])
        with step.lock:
            step.load.assign(np.where(moves[:, None], constant + given, 0.0))
            self._wake()

    def _wake(self) -> None:
        self._step.sleepers.wake(np.arange(len(self._step.bodies)))

    def _sixes(self, given: Any, what: str) -> np.ndarray:
        shape = (self._count, self._each, 6)
        array = to_numpy(given, what)
        if array.shape not in (shape, shape[1:]) or not np.isfinite(array).all():
            raise InputError(f"{what} must be finite, of shape {shape} or {shape[1:]}, not {described(given)}")
        return np.ascontiguousarray(np.broadcast_to(array, shape)).reshape(-1, 6)

    def _rows(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(self._count, self._each, *values.shape[1:])
