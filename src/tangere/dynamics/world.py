"""Rigid bodies in time: one step is a list of named phases, each timed and replaceable.

    predict   velocities without contacts: gravity, forces, the gyroscopic term
    gather    who may meet whom, how near they are, and the contacts among them
    respond   contacts and joints become rows; solved for velocities, as Gauss's projection on friction cones
    walk      first contact of every pair on the way; what is hit becomes a row, and the step is solved again
    truncate  what is left goes only so far, until nobody is hit
    record    positions, velocities, what the next step starts from

Known as: time stepping of multibody systems with contact (Moreau 1988; Jean 1999; Stewart and Trinkle 1996), with
continuous collision detection (Redon 2002).
All arrays stay on one device. What each phase does is in `stepping.step`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.body import Body, check_restitution
from tangere.dynamics.energy import RigidEnergy, energy_of, momentum_of
from tangere.dynamics.files.rigid_ipc import read_rigid_ipc
from tangere.dynamics.joint import JointKind, WorldJoint, checked_motor, joint_of
from tangere.dynamics.material import Materials, SurfaceKinds
from tangere.dynamics.state import read_poses
from tangere.dynamics.stepping.report import WorldTruncation
from tangere.dynamics.stepping.step import WorldOptions, WorldStep
from tangere.dynamics.validation import checked_bodies, checked_pairs, chosen_margin, chosen_sweeps
from tangere.dynamics.world_body import WorldBody, body_number
from tangere.query.contacts import Contacts
from tangere.runtime import (
    InputError,
    NonCopyable,
    choose_device,
    not_negative,
    positive,
    three_numbers,
    using_threads,
    whole,
)
from tangere.shape.mesh import Mesh


class World(NonCopyable, instead="make another one of the same bodies, and give each its state by set_state"):
    """Rigid bodies that move, touch, slide and bounce, and never pass through each other.

    `world[0]` and `world["door"]` are its bodies as they are now (`WorldBody`): where they are, and how to put, push,
    drive and pull them. Every state is free of intersections; what had to be held back for that is told in
    `truncation`.

    Args:
        bodies: what takes part.
        dt: length of a step [s].
        gravity: [m/s^2].
        friction: coefficient of Coulomb friction of bodies that say nothing.
        restitution: of impacts, 0 to 1, of bodies that say nothing.
        materials: friction and restitution of pairs of materials, {("steel", "ice"): ContactMaterial(friction=0.05)}.
        separation: bodies never come nearer to each other than this [m].
        margin: bodies rest this much farther apart, the security distance [m]; None means 2e-4 of the median size of
            those that move.
        allowed: pairs of bodies, by number or name, that may overlap: they are not compared, and neither are those of
            a joint or of a group.
        order: 2 for Newton's law; 1 for a world without inertia, where velocities are what forces do in one second.
        sweeps: of the solver in each step, at most; None means 6000 for all bodies that move together, but 150 to 2000:
            few bodies are solved to the end, of many none waits for all.
        second_order: whether contacts look ahead to second order in time.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> from tangere.dynamics import Body, World
        >>> box = tg.generate.box((1.0, 1.0, 1.0))
        >>> above = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1.5], [0, 0, 0, 1]]
        >>> world = World([Body(box, name="floor", fixed=True), Body(box, above, name="crate")], device="cpu")
        >>> world.run(1.0)
        >>> print(f"at rest {world['crate'].position[2]:.3f} m above the middle of the floor")
        at rest 1.000 m above the middle of the floor
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        *,
        dt: float = 0.01,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        friction: float = 0.5,
        restitution: float = 0.0,
        materials: Materials | None = None,
        separation: float = 0.0,
        margin: float | None = None,
        allowed: Sequence[tuple[int | str, int | str]] = (),
        order: int = 2,
        sweeps: int | None = None,
        second_order: bool = True,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        bodies = checked_bodies(bodies)
        if order not in (1, 2):
            raise InputError(f"order is 1, velocities follow forces, or 2, accelerations do, not {order!r}")
        options = WorldOptions(
            positive(dt, "dt"),
            three_numbers(gravity, "gravity"),
            chosen_margin(bodies) if margin is None else positive(margin, "margin"),
            not_negative(separation, "separation"),
            order,
            chosen_sweeps(bodies) if sweeps is None else whole(sweeps, "sweeps"),
            bool(second_order),
            threads,
        )
        surfaces = SurfaceKinds.of(
            bodies, not_negative(friction, "friction"), check_restitution(restitution, "restitution"), materials
        )
        ignored = checked_pairs(allowed, bodies)
        with using_threads(threads):
            self._step = WorldStep(bodies, options, surfaces, ignored, choose_device(device))
        #: The phases of a step in order; put a function of the `WorldStep` in the place of any.
        self.phases: dict[str, Callable[[WorldStep], None]] = {
            "predict": WorldStep.predict,
            "gather": WorldStep.gather,
            "respond": WorldStep.respond,
            "walk": WorldStep.walk,
            "truncate": WorldStep.truncate,
            "record": WorldStep.record,
        }
        self._seconds: dict[str, float] = {}
        self.steps_told: int | None = None  #: how many steps the file says that it was loaded from

    def __repr__(self) -> str:
        return f"World({len(self)} bodies, {len(self.joints)} joints; steps of {self.dt:g} s, now at {self.time:g} s)"

    # -- in and out ----------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str], *, meshes: str | PathLike[str] | None = None, **options: Any) -> World:
        """A world from a file: `.json` of the Rigid-IPC project.

        Args:
            meshes: the folder of the meshes; None means the folder `meshes` beside `fixtures`, or beside the file.
            options: in the place of what the file says; see `World`.
        """
        file = Path(fspath(path))
        if file.suffix.lower() != ".json":
            raise InputError(f"{file}: a world is loaded from a .json file, not from {file.suffix!r}")
        read = read_rigid_ipc(file, None if meshes is None else Path(fspath(meshes)))
        given = read.options | options
        world = cls(given.pop("bodies"), **given)
        world.steps_told = read.steps
        return world

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of `dt`, as a whole: whatever stops it, an error or Ctrl-C, leaves everything where it began.

        Several threads may make steps, and look on: they take turns.
        """
        step = self._step
        with step.lock, using_threads(step.options.threads):
            step.save()
            try:
                step.refuse_overlaps()
                step.begin()
                self._seconds = dict.fromkeys(self.phases, 0.0)
                while step.unfinished:  # most steps are made in one part
                    step.begin_part()
                    for name, phase in self.phases.items():
                        began = time.perf_counter()
                        phase(step)
                        self._seconds[name] += time.perf_counter() - began
            except BaseException:
                step.restore()
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
            steps: how many instead. Without both: as many as the file says that the world was loaded from.
            progress: True shows a bar; a function is called with the steps done and all steps after each.
        """
        if seconds is None and steps is None and self.steps_told is not None:
            steps = self.steps_told
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

    # -- bodies and joints ---------------------------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[Body, ...]:
        """As they were given, at the start."""
        return self._step.bodies

    def __len__(self) -> int:
        return len(self.bodies)

    def __iter__(self) -> Iterator[WorldBody]:
        return (WorldBody(self._step, number) for number in range(len(self)))

    def __getitem__(self, body: int | str) -> WorldBody:
        """A body as it is now, by its number or its name."""
        return WorldBody.find(self._step, body)

    def push(self, body: int | str, **options: Any) -> None:
        """Push a body; see `WorldBody.push`."""
        self[body].push(**options)

    def drive(self, body: int | str, **options: Any) -> None:
        """Move a driven body at a velocity; see `WorldBody.drive`."""
        self[body].drive(**options)

    def pull(self, body: int | str, point: Any, to: Any, *, stiffness: float | None = None) -> None:
        """Pull a point of a body towards a place; see `WorldBody.pull`."""
        self[body].pull(point, to, stiffness=stiffness)

    def let_go(self) -> None:
        """Pull nothing any more."""
        with self._step.lock:
            self._step.joints.release()

    def join(
        self,
        kind: JointKind,
        a: int | str,
        b: int | str | None = None,
        *,
        at: Any = None,
        axis: Any = None,
        to: Any = None,
        limits: Any = None,
        speed: float | None = None,
        force: float | None = None,
        name: str | None = None,
    ) -> WorldJoint:
        """Join two bodies where they are now, or a body and the world; what is joined is not compared.

        Args:
            kind: "ball", "hinge", "slider", "weld" or "distance".
            b: None is the world.
            at: a point of the joint, (3,) in the world [m].
            axis: of a hinge or a slider, (3,) in the world.
            to: of a distance joint: the point of b, (3,) in the world [m].
            limits: least and largest angle [rad] or way [m] of a hinge or a slider, 0 being where it is now.
            speed: drive it at this [rad/s or m/s].
            force: largest force or torque that drives it, and without a speed the one that always acts [N or N m].
        """
        step = self._step
        first = body_number(self.bodies, a)
        second = -1 if b is None else body_number(self.bodies, b)
        told = f"{kind} {len(step.joints.joints)}" if name is None else name
        if first == second:
            raise InputError(f"joint {told!r}: body {first} cannot be joined with itself")
        if not self.bodies[first].moves and (second < 0 or not self.bodies[second].moves):
            raise InputError(f"joint {told!r}: neither of its bodies can move")
        if any(joint.name == told for joint in step.joints.joints):
            raise InputError(f"there is a joint {told!r} already")
        with step.lock:
            poses = self.poses
            pair = poses[first], np.eye(4) if second < 0 else poses[second]
            made = joint_of(kind, (first, second), pair, at=at, axis=axis, to=to, limits=limits, name=told)
            motor = None if speed is None and force is None else checked_motor(made, speed, force)
            step.join(made, motor)
        return made

    def drive_joint(self, joint: str, *, speed: float | None = None, force: float | None = None) -> None:
        """From now on drive a joint, as `join` does; without speed and force drive it no more."""
        number = self._joint_number(joint)
        with self._step.lock:
            motor = None
            if speed is not None or force is not None:
                motor = checked_motor(self.joints[number], speed, force)
            self._step.joints.drive(number, motor)
            self._step.wake(self.joints[number].body_a)

    @property
    def joints(self) -> tuple[WorldJoint, ...]:
        """In the order they were joined."""
        return tuple(self._step.joints.joints)

    @property
    def coordinates(self) -> dict[str, float]:
        """Angles of hinges [rad], any number of turns, and ways of sliders [m], by the name of the joint."""
        with self._step.lock:
            values = self._step.joints.coordinates()
        kinds = ("hinge", "slider")
        return {joint.name: float(values[k]) for k, joint in enumerate(self.joints) if joint.kind in kinds}

    def _joint_number(self, name: str) -> int:
        for number, joint in enumerate(self.joints):
            if joint.name == name:
                return number
        names = ", ".join(repr(joint.name) for joint in self.joints) or "none"
        raise InputError(f"there is no joint {name!r}; there are {names}")

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Steps made."""
        return self._step.steps

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.steps * self.dt

    @property
    def poses(self) -> np.ndarray:
        """(n, 4, 4) from the frames of the meshes to the world [m]; a copy."""
        with self._step.lock:
            return read_poses(self._step.state, self._step.table)

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) of the centres of mass [m]; a copy."""
        with self._step.lock:
            return self._step.state.position.numpy().copy()

    @property
    def velocities(self) -> np.ndarray:
        """(n, 6) of the centres of mass [m/s], and angular [rad/s]; a copy."""
        with self._step.lock:
            return self._step.state.velocity.numpy().copy()

    @property
    def asleep(self) -> np.ndarray:
        """(n,) bool: bodies that rest and are left alone until something touches them."""
        with self._step.lock:
            return self._step.sleepers.asleep

    def meshes(self) -> list[Mesh]:
        """The surface of each body where it is now."""
        return [body.mesh.at(pose) for body, pose in zip(self.bodies, self.poses, strict=True)]

    @property
    def contacts(self) -> Contacts:
        """The contacts that the last step looked at, where it began; of sleepers those they fell asleep with."""
        with self._step.lock:
            return self._step.contacts()

    @property
    def forces(self) -> np.ndarray:
        """(n, 3) on the first body of each of `contacts`, in the last step [N]."""
        with self._step.lock:
            return self._step.forces()

    @property
    def energy(self) -> RigidEnergy:
        """Kinetic and gravitational energy of all bodies that can move [J]."""
        with self._step.lock:
            return energy_of(self._step.state, self._step.table, self.gravity)

    @property
    def momentum(self) -> np.ndarray:
        """(3,) of all bodies that can move [kg m/s]."""
        with self._step.lock:
            return momentum_of(self._step.state, self._step.table)[0]

    @property
    def angular_momentum(self) -> np.ndarray:
        """(3,) of all bodies that can move, about the world's origin [kg m^2/s]."""
        with self._step.lock:
            return momentum_of(self._step.state, self._step.table)[1]

    @property
    def truncation(self) -> WorldTruncation:
        """What the last step held back, and all steps together."""
        with self._step.lock:
            return self._step.tally.report(self._step.overlapping)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds each phase of the last step took."""
        return dict(self._seconds)

    # -- options -------------------------------------------------------------------------------------------------------

    @property
    def device(self) -> wp.Device:
        """Where it computes."""
        return self._step.device

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return self._step.options.dt

    @property
    def gravity(self) -> np.ndarray:
        """(3,) [m/s^2]."""
        return self._step.options.gravity

    @property
    def separation(self) -> float:
        """Bodies never come nearer than this [m]."""
        return self._step.options.separation

    @property
    def margin(self) -> float:
        """How much farther apart bodies rest [m]."""
        return self._step.options.security
