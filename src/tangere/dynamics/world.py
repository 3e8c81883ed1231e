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

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import warp as wp

from tangere.dynamics.body import Body, check_restitution, yes_or_no
from tangere.dynamics.energy import RigidEnergy, energy_of, momentum_of
from tangere.dynamics.joint import LARGEST, JointKind, WorldJoint, checked_joint, checked_motor, joint_of
from tangere.dynamics.material import Materials, SurfaceKinds
from tangere.dynamics.state import read_poses
from tangere.dynamics.stepping.checkpoint import checkpoint_of, resume_from
from tangere.dynamics.stepping.events import WorldImpacts
from tangere.dynamics.stepping.made import PHASES, make_step, steps_in
from tangere.dynamics.stepping.options import WorldOptions
from tangere.dynamics.stepping.report import WorldTruncation
from tangere.dynamics.stepping.step import WorldStep
from tangere.dynamics.validation import (
    SECURITY_PART,
    checked_bodies,
    checked_checkpoint,
    checked_pairs,
    checked_separation,
    chosen_separation,
    chosen_sweeps,
    overlapping_pairs,
)
from tangere.dynamics.world_body import WorldBody, body_number
from tangere.dynamics.world_copies import WorldCopies
from tangere.query.contacts import Contacts
from tangere.runtime import (
    InputError,
    NonCopyable,
    choose_device,
    described,
    file_path,
    not_negative,
    number,
    positive,
    three_numbers,
    using_threads,
    view_room,
    whole,
)
from tangere.shape.mesh import Mesh

if TYPE_CHECKING:
    from tangere.dynamics.files.description import SceneFile
    from tangere.dynamics.recording import Recording
    from tangere.scene import Scene


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
        separation: how far apart bodies rest, the security distance [m]; None means 2e-4 of the median size of those
            that move. No motion takes more than 0.6 of that away, or a tenth where more is asked for. What fits more
            tightly, or was put nearer, keeps moving: it keeps most of the distance it has.
        allowed: pairs of bodies, by number or name, that may overlap: they are not compared, and neither are those of
            a joint or of a group. "overlapping" means all pairs that overlap at the start, as links of robots do.
        order: 2 for Newton's law; 1 for a world without inertia, where velocities are what forces do in one second.
        sweeps: of the solver in each step, at most; None means 6000 for all bodies that move together, but 65 for each
            along an edge of a cube of them, and 2000 at most: few bodies are solved to the end, of many nearly so.
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
        separation: float | None = None,
        allowed: Sequence[tuple[int | str, int | str]] | Literal["overlapping"] = (),
        order: int = 2,
        sweeps: int | None = None,
        second_order: bool = True,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        bodies = checked_bodies(bodies)
        if order not in (1, 2):
            raise InputError(f"order is 1, velocities follow forces, or 2, accelerations do, not {order!r}")
        chosen = chosen_separation(bodies)
        options = WorldOptions(
            positive(dt, "dt"),
            three_numbers(gravity, "gravity"),
            chosen if separation is None else checked_separation(separation),
            chosen,
            chosen / SECURITY_PART,
            order,
            chosen_sweeps(bodies) if sweeps is None else whole(sweeps, "sweeps"),
            yes_or_no(second_order, "second_order"),
            threads,
        )
        surfaces = SurfaceKinds.of(
            bodies, not_negative(friction, "friction"), check_restitution(restitution, "restitution"), materials
        )
        ignored = checked_pairs(allowed, bodies)
        self._told = {"friction": friction, "restitution": restitution, "materials": dict(materials or {})}
        self._told |= {"allowed": ignored.tolist()}
        with using_threads(threads):
            self._step = WorldStep(bodies, options, surfaces, ignored, choose_device(device))
        #: The phases of a step in order; put a function of the `WorldStep` in the place of any.
        self.phases: dict[str, Callable[[WorldStep], None]] = dict(PHASES)
        self._seconds: dict[str, float] = {}
        self.steps_told: int | None = None  #: how many steps the file says that it was loaded from

    def __repr__(self) -> str:
        return f"World({len(self)} bodies, {len(self.joints)} joints; steps of {self.dt:g} s, now at {self.time:g} s)"

    # -- in and out ----------------------------------------------------------------------------------------------------

    def _repr_png_(self) -> bytes | None:
        """For notebooks: all bodies where they are now; None where they cannot be drawn."""
        return view_room().png(self)

    def _repr_html_(self) -> str:
        """For notebooks: the same picture with what there is to tell."""
        told = self.truncation
        facts = {"bodies": len(self), "joints": len(self.joints), "contacts": len(self.contacts)}
        facts |= {"time": f"{self.time:g} s", "asleep": int(self.asleep.sum()), "truncated": told.all_bodies}
        return view_room().html("World", facts, self._repr_png_())

    def scene(self, *, forces: bool = True) -> Scene:
        """All bodies where they are now, as a scene for pictures and files; forces of contacts are arrows."""
        from tangere.dynamics.drawing import world_scene  # who does not look needs no scene

        return world_scene(self, forces=forces)

    @classmethod
    def load(cls, path: str | PathLike[str], *, meshes: str | PathLike[str] | None = None, **options: Any) -> World:
        """A world from a file.

        `.toml` is a scene as people write it (docs/scene-files.md); `.json` one of the Rigid-IPC project; `.urdf` a
        mechanism, its first link fixed to the world; `.npz` a recorded run, which goes on where it ended.

        Args:
            meshes: the folder of the meshes; None means that of a `.toml` file; for `.json` the folder `meshes` beside
                `fixtures`, or beside the file.
            options: in the place of what the file says; see `World`.
        """
        file = file_path(path, "a world")
        folder = None if meshes is None else file_path(meshes, "the folder of meshes")
        if folder is not None and not folder.is_dir():
            raise InputError(f"meshes: there is no folder {str(folder)!r}")
        if file.suffix.lower() == ".npz":
            from tangere.dynamics.recording import Recording

            return Recording.load(file).world(**options)
        return world_of(read_scene_file(file, folder), str(file), **options)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the world as it is now.

        `.toml` is a scene file with its meshes in a folder beside it; what comes after begins without warm starts.
        `.npz` is a recording of one frame: it goes on with the same bits. Other ends of names are for other programs,
        as `Scene.save` writes them.
        """
        file = file_path(path, "what a world is saved to")
        if file.suffix.lower() == ".toml":
            from tangere.dynamics.files.scene_toml import write_toml

            write_toml(self, file)
        elif file.suffix.lower() == ".npz":
            from tangere.dynamics.recording import Recorder

            recorder = Recorder(self)
            recorder()
            recorder.recording().save(file)
        else:
            self.scene(forces=False).save(file)

    def record(
        self,
        seconds: float | None = None,
        *,
        steps: int | None = None,
        every: int = 1,
        progress: Callable[[int, int], object] | bool = False,
    ) -> Recording:
        """Run, as `run` does, and keep the start and every so many steps."""
        from tangere.dynamics.recording import Recorder  # who does not record needs no scene

        recorder, apart = Recorder(self), whole(every, "every", least=1)
        recorder()

        def keep(done: int, count: int) -> None:
            if done % apart == 0 or done == count:
                recorder()
            if callable(progress):
                progress(done, count)

        self._run(self._count(seconds, steps), keep, progress is True)
        return recorder.recording()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of `dt`, as a whole: whatever stops it, an error or Ctrl-C, leaves everything where it began.

        Several threads may make steps, and look on: they take turns.
        """
        self._seconds = make_step(self._step, self.phases)

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
        self._run(self._count(seconds, steps), progress if callable(progress) else None, progress is True)

    def _count(self, seconds: float | None, steps: int | None) -> int:
        if seconds is None and steps is None and self.steps_told is not None:
            steps = self.steps_told
        return steps_in(seconds, steps, self.dt)

    def _run(self, count: int, after_step: Callable[[int, int], object] | None, bar: bool) -> None:
        numbers = range(count)
        if bar:
            from rich.progress import track

            numbers = track(numbers, description="steps", transient=True)
        for done in numbers:
            self.step()
            if after_step is not None:
                after_step(done + 1, count)

    def copies(self, count: int) -> WorldCopies:
        """So many copies of this world as it is now, which step together: for sampling and learning.

        Each goes its own way from here on; of pulls they know nothing.
        """
        with self._step.lock:
            return WorldCopies(self._step, whole(count, "count", 1))

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
        self._check_new_joint(told, first, second)
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

    def add_joint(
        self, joint: WorldJoint, motor: tuple[float, float, bool] | None = None, *, coordinate: float = 0.0
    ) -> None:
        """A joint that sits in the frames of its bodies, at a coordinate of its own [rad or m]; see `join`."""
        self._check_new_joint(joint.name, joint.body_a, joint.body_b)
        made, at = checked_joint(joint), number(coordinate, f"joint {joint.name!r}: coordinate")
        if not abs(at) <= LARGEST:
            raise InputError(f"joint {joint.name!r}: coordinate must be finite, at most {LARGEST:g}, not {at:g}")
        with self._step.lock:
            self._step.join(made, motor)
            self._step.joints.set_coordinate(len(self.joints) - 1, at)

    def _check_new_joint(self, name: Any, first: int, second: int) -> None:
        """Raise if there can be no joint of this name between these bodies, or one and the world, -1."""
        if not isinstance(name, str):
            raise InputError(f"the name of a joint is a text, not {described(name)}")
        for body in (first, *(() if second == -1 else (second,))):
            body_number(self.bodies, body)
        if first == second:
            raise InputError(f"joint {name!r}: body {first} cannot be joined with itself")
        if not self.bodies[first].moves and (second < 0 or not self.bodies[second].moves):
            raise InputError(f"joint {name!r}: neither of its bodies can move")
        if any(joint.name == name for joint in self.joints):
            raise InputError(f"there is a joint {name!r} already")

    def motor(self, joint: str) -> tuple[float | None, float | None]:
        """Speed and force that drive a joint, as `join` takes them; None for what it has not."""
        with self._step.lock:
            return self._step.joints.motor(self._joint_number(joint))

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

    @property
    def work(self) -> dict[str, float]:
        """What the motor of each hinge and slider has done since the world was made or loaded [J], by name."""
        with self._step.lock:
            return {name: float(self._step.joints.work[self._joint_number(name)]) for name in self.coordinates}

    def _joint_number(self, name: str) -> int:
        for k, joint in enumerate(self.joints):
            if joint.name == name:
                return k
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
    def loads(self) -> np.ndarray:
        """(n, 6) forces that act on the centres of mass from outside, gravity apart [N], and torques [N m]; a copy."""
        with self._step.lock:
            return self._step.load.numpy().copy()

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that later steps depend on, by name: `resume` goes on from it with the same bits."""
        with self._step.lock:
            return checkpoint_of(self._step)

    def resume(self, kept: dict[str, np.ndarray]) -> None:
        """Go on from the checkpoint of a world of the same bodies, joints and options."""
        with self._step.lock:
            resume_from(self._step, checked_checkpoint(kept, checkpoint_of(self._step)))

    def told_options(self) -> dict[str, Any]:
        """Arguments of `World` that make another one like it, but for `dt`, `gravity`, `device` and `threads`."""
        options = self._step.options
        own = {"order": options.order, "sweeps": options.sweeps, "second_order": options.second_order}
        return {**self._told, "separation": self.separation, **own}

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
    def events(self) -> WorldImpacts:
        """Which bodies struck each other in the last step, how fast, and with what impulse."""
        with self._step.lock:
            return self._step.impacts()

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
        """How far apart bodies rest [m]."""
        return self._step.options.separation


def read_scene_file(file: Path, meshes: Path | None) -> SceneFile:
    """What a file says of a world; the end of its name says how."""
    kind = file.suffix.lower()
    if file.is_dir():
        raise InputError(f"{file}: a world is loaded from a .toml, .json, .urdf or .npz file, not from a folder")
    if kind == ".json":
        from tangere.dynamics.files.rigid_ipc import read_rigid_ipc as read
    elif kind == ".toml":
        from tangere.dynamics.files.scene_toml import read_toml as read
    elif kind == ".urdf":
        from tangere.dynamics.files.mechanism import read_mechanism as read
    else:
        raise InputError(f"{file}: a world is loaded from a .toml, .json, .urdf or .npz file, not from {kind!r}")
    return read(file, meshes)


def world_of(read: SceneFile, where: str, **options: Any) -> World:
    """The world that a file describes; options come before what it says."""
    given = {key: value for key, value in {**read.options, **options}.items() if key != "bodies"}
    bodies = read.options["bodies"]
    try:
        if read.neighbours or read.untouched:
            near = np.array(read.neighbours, int).reshape(-1, 2)
            given["allowed"] = [
                *overlapping_pairs(bodies, np.array([body.pose for body in bodies]), near),
                *read.untouched,
                *checked_pairs(given.get("allowed", ()), bodies).tolist(),
            ]
        world = World(bodies, **given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if read.joints:
        from tangere.dynamics.files.description import add_joint

        for k, joint in enumerate(read.joints):
            add_joint(world, joint, f"{where}: joint[{k}]")
    world.steps_told = read.steps if read.seconds is None else max(1, round(read.seconds / world.dt))
    return world
