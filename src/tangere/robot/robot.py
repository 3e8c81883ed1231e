"""Robots that are asked about: trajectories against themselves and the world, links that may touch, what they hold.

`tangere.shape.robot` reads URDF files and knows how links move; this class adds the questions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.motion import Path, Rigid, as_poses
from tangere.robot.allowed_pairs import AllowedPairs
from tangere.robot.drawing import trajectory_scene
from tangere.robot.forward_kinematics import link_jacobians, link_poses
from tangere.robot.result import RobotCheck, RobotChecks
from tangere.robot.touching import TouchingTable, touching_table
from tangere.robot.trajectory_checker import TrajectoryChecker
from tangere.robot.trajectory_gradients import (
    RobotDistances,
    SegmentGradients,
    TrajectoryGradient,
    clearance_gradients,
    distances_in_cell,
    time_gradient,
)
from tangere.robot.workcell import Workcell, check_world, groups_of
from tangere.runtime import Arrays, InputError, choose_device, described, to_numpy
from tangere.scene import Scene
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh
from tangere.shape.robot import Joint, RobotDescription, mesh_of_parts

#: Samples by which links that always touch are found where nothing is said about it.
DEFAULT_SAMPLES = 200
#: Checkers a robot keeps for the next check in the same cell.
KEPT = 4

Thing = Mesh | Moving | Analytic | Heightfield | TiledHeightfield
Allowed = AllowedPairs | TouchingTable | Iterable[Iterable[str]]


@dataclass(frozen=True, repr=False, eq=False)
class Robot(RobotDescription):
    """A robot: links in a tree, each with the joint that moves it, in an order where parents come first.

    Example:
        >>> import numpy as np, tangere as tg
        >>> robot = tg.robot.generate.arm()  # or tg.Robot.load("ur5.urdf")
        >>> pose = np.eye(4)
        >>> pose[:3, 3] = 0.6, 0.0, 0.6
        >>> pillar = tg.generate.box((0.1, 0.1, 1.2)).at(pose)
        >>> q = np.linspace([-1.5, 0.7, 0.5, 0.0, 0.0, 0.0], [1.5, 0.7, 0.5, 0.0, 0.0, 0.0], 11)
        >>> found = robot.check(q, world={"pillar": pillar}, device="cpu")
        >>> found.status.name, found.pair, found.segment
        ('CONTACT', ('wrist_1', 'pillar'), 3)
        >>> [str(tg.Status(int(s))) for s in found.segments.status[:5]]
        ['free', 'free', 'free', 'contact', 'start']
    """

    may_touch: tuple[tuple[str, str], ...] = ()  #: links that may touch what is attached to the robot

    @property
    def limits(self) -> np.ndarray:
        """(dof, 2) least and largest value of each joint of `joint_names` [rad or m]; infinite where there is none."""
        own = {joint.name: joint.limits for joint in self.joints}
        return np.array([own[name] for name in self.joint_names], float).reshape(-1, 2)

    @property
    def bodies(self) -> tuple[str, ...]:
        """The links that have a body."""
        return groups_of(self).names

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The links that fixed joints hold together, each in one group; the first stands on the base."""
        return groups_of(self).links

    def poses(self, q: Arrays) -> np.ndarray:
        """Where all links are, (…, links, 4, 4), in the frame of the base.

        Args:
            q: configurations, (…, dof), in the order of `joint_names` [rad or m].
        """
        return link_poses(self, q)

    def jacobians(self, q: Arrays) -> np.ndarray:
        """How joints move all links, (…, links, 6, dof): the velocity of a link's origin, then its angular velocity, in
        the frame of the base, for each joint value.

        Args:
            q: configurations, (…, dof).
        """
        return link_jacobians(self, q)

    def attach(
        self, name: str, mesh: Mesh | Analytic, link: str, pose: Arrays | None = None, *, may_touch: Iterable[str] = ()
    ) -> Robot:
        """The robot with something in its hand, or mounted on a link; it is compared like a link of its own.

        Args:
            name: of the new body.
            mesh: its shape, in its own frame: a mesh, or analytic bodies.
            link: what it is fixed to; bodies of the same group are not compared with it.
            pose: where it is in the link's frame, (4, 4); None means at its origin.
            may_touch: other links that may touch it.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"{self.name}: name must be a text, not {described(name)}")
        if isinstance(may_touch, str) or not isinstance(may_touch, Iterable):
            raise InputError(f"{self.name}: may_touch must be names of links, not {described(may_touch)}")
        for known in (link, *(may_touch := list(may_touch))):
            if known not in self.links:
                raise InputError(f"{self.name}: there is no link {known!r}; there are {', '.join(self.links)}")
        if name in self.links:
            raise InputError(f"{self.name}: there is a link {name!r} already")
        if not isinstance(mesh, Mesh | Analytic):
            kinds = "a Mesh or an analytic body"
            raise InputError(f"{self.name}: what is attached must be {kinds}, not {described(mesh)}")
        given = [mesh] if isinstance(mesh, Mesh) else [mesh[k] for k in range(len(mesh))]
        shape, parts = mesh_of_parts(given, name)
        place = as_poses(np.eye(4) if pose is None else pose, "pose")
        if place.shape != (4, 4):
            raise InputError(f"pose must have shape (4, 4), not {place.shape}")
        joint = Joint(f"{name} on {link}", "fixed", place, np.array([0.0, 0.0, 1.0]), "")
        return replace(
            self,
            links=(*self.links, name),
            parents=(*self.parents, self.links.index(link)),
            joints=(*self.joints, joint),
            shapes=(*self.shapes, shape),
            inertials=(*self.inertials, None) if self.inertials else (),
            parts=(*(self.parts or ((),) * len(self.links)), parts),
            may_touch=(*self.may_touch, *((name, other) for other in may_touch)),
        )

    def detach(self, name: str) -> Robot:
        """The robot without what was attached to it by that name."""
        if name not in self.links or self.links.index(name) in self.parents or not self._is_attached(name):
            raise InputError(f"{self.name}: nothing is attached as {name!r}")
        kept = [k for k, link in enumerate(self.links) if link != name]
        at = self.links.index(name)

        def left(column: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(column[k] for k in kept) if column else ()

        return replace(
            self,
            links=left(self.links),
            parents=tuple(parent - (parent > at) for parent in left(self.parents)),
            joints=left(self.joints),
            shapes=left(self.shapes),
            inertials=left(self.inertials),
            parts=left(self.parts),
            may_touch=tuple(pair for pair in self.may_touch if name not in pair),
        )

    def _is_attached(self, name: str) -> bool:
        joint = self.joints[self.links.index(name)]
        return joint.kind == "fixed" and joint.name.startswith(f"{name} on ") and joint.follows == ""

    def allowed(self, pairs: Iterable[Iterable[str]] = (), *, srdf: str | PathLike[str] | None = None) -> AllowedPairs:
        """Pairs of links that may touch.

        Args:
            pairs: two names each.
            srdf: a file of MoveIt, whose disabled collisions they are as well. Such files are made by sampling, and
                some of their pairs do touch: `touching` says which.
        """
        found = AllowedPairs.of(pairs)
        if srdf is not None:
            found = AllowedPairs.load(srdf, self.links, self.bodies) | found
        return found

    def touching(
        self,
        samples: int = 2000,
        *,
        prove: bool = False,
        cells: int = 4000,
        seed: int = 0,
        progress: bool = False,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> TouchingTable:
        """Which pairs of links touch: never, sometimes or always; by samples, and by proof.

        Args:
            samples: random configurations within the limits of the joints; those without limits go one turn, or one
                metre to either side.
            prove: prove of pairs that no sample saw touching that none ever does, within the limits; a trajectory
                that leaves these is compared all the same. Nothing is proved of joints without limits that slide, or
                that others follow.
            cells: parts into which the joints between two links are cut for that, at most; what is then not decided is
                open.
            seed: of the random numbers.
            progress: show a bar on stderr.
            device: where to search; None means CUDA if present.
            threads: CPU threads; None means all, or TANGERE_THREADS.
        """
        return touching_table(
            self, samples, prove=prove, cells=cells, seed=seed, progress=progress, device=device, threads=threads
        )

    def default_allowed(self) -> AllowedPairs:
        """What `check` does not compare if it is not told: links that touched in all of some samples, and what
        `attach` was told."""
        kept = self.__dict__.get("_default_allowed")
        if kept is None:
            table = self.touching(DEFAULT_SAMPLES, device="cpu")
            kept = table.allowed | AllowedPairs.of(self.may_touch, "attached")
            self.__dict__["_default_allowed"] = kept
        return kept

    def check(
        self,
        q: Arrays,
        world: Mapping[str, Thing] | None = None,
        allowed: Allowed | None = None,
        *,
        base: Any = None,
        times: Arrays | None = None,
        separation: float = 0.0,
        tolerance: float | None = None,
        clearance: float | None = None,
        accuracy: float = 0.5,
        until: Literal["end", "contact"] = "end",
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> Any:
        """Whether trajectories touch anything: the robot itself, or the world.

        Between two configurations every joint goes at a constant rate. All pairs of bodies that can move against each
        other are compared, in every segment, at all times of it.

        Args:
            q: configurations in the order of `joint_names` [rad or m]: (k, dof) for one trajectory, (n, k, dof) for n.
                k = 1 asks about single configurations.
            world: meshes by name; `mesh.moving(motion)` for what is somewhere else or moves, rigidly or along a `Path`,
                over the whole trajectory. Spheres, cylinders and other analytic bodies are what they are, and solid;
                so is ground, a `Heightfield` or `TiledHeightfield`.
            allowed: pairs of names that may touch: from `allowed`, from `touching`, or a list. None means
                `default_allowed`; the answer says which pairs were left out, and why.
            base: where the robot stands, a pose (4, 4), or how its base moves over the trajectory.
            times: when the configurations are reached, (k,), rising: the clock of the answers; None means evenly from 0
                to 1.
            separation: distance that already counts as contact [m].
            tolerance: at the time of a contact the distance is at most separation + tolerance [m]; None means 1e-6 of
                the larger body's size.
            clearance: also certify how near bodies come in each segment, up to this distance [m].
            accuracy: `clearance_lower` is at least (1 - accuracy) times `clearance_upper`, or times `clearance` where
                nothing comes as near; in (0, 1). Small ones are dear. What rounding does not allow, as a rule below
                1e-8, is as fine as it does: `segments.clearance_accuracy` says how fine. Where bodies touch, lower is 0
                or their gap.
            until: "contact" leaves out the segments after a trajectory's first contact.
            device: where to search; None means CUDA if present.
            threads: CPU threads; None means all, or TANGERE_THREADS.

        Returns:
            `RobotCheck` for one trajectory, `RobotChecks` for n. Either is true where something touches.
        """
        rows = to_numpy(q, "q")
        if rows.ndim not in (2, 3):
            dof = len(self.joint_names)
            raise InputError(f"{self.name}: q must have shape (k, {dof}) or (n, k, {dof}), not {rows.shape}")
        checker = self._checker(world, allowed, base, device, threads)
        found = checker.check(
            rows if rows.ndim == 3 else rows[None],
            times=times,
            separation=separation,
            tolerance=tolerance,
            clearance=clearance,
            accuracy=accuracy,
            until=until,
        )
        return found if rows.ndim == 3 else found[0]

    def distances(
        self,
        q: Arrays,
        world: Mapping[str, Thing] | None = None,
        allowed: Allowed | None = None,
        *,
        base: Any = None,
        cap: float | None = None,
        tie: float | None = None,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> RobotDistances:
        """Distances of all pairs of bodies at configurations, and their gradients by the joint values.

        Args:
            q: (dof,) or (n, dof) [rad or m].
            world, allowed, base: as for `check`; what moves is taken at its start. Pairs that are left out because
                they are proved never to touch are there if a joint is beyond its limits.
            cap: what is farther apart need not be told [m]; None means no cap.
            tie: features that come within this of the nearest count as equally near [m]; None means 1e-9 of the
                bodies' size.
            device: where to compute; None means CUDA if present.
            threads: CPU threads; None means all, or TANGERE_THREADS.

        Example:
            >>> import numpy as np, tangere as tg
            >>> arm = tg.robot.generate.arm()
            >>> near = arm.distances([0.1, 0.7, 0.5, 0.2, 0.3, 0.0], device="cpu")
            >>> near.gradient.shape == (len(near.pairs), 6)
            True
        """
        checker = self._checker(world, allowed, base, device, threads)
        points = to_numpy(q, "q")
        if points.shape[-1:] == (checker.cell.dof,):
            checker = checker.answering(points)
        return distances_in_cell(checker.cell, checker.pairs, points, cap=cap, tie=tie, device=device, threads=threads)

    def time_gradient(
        self,
        found: RobotCheck,
        q: Arrays,
        world: Mapping[str, Thing] | None = None,
        *,
        base: Any = None,
        times: Arrays | None = None,
        separation: float = 0.0,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> TrajectoryGradient:
        """How the time of the first contact on a trajectory changes with its configurations.

        Args:
            found: what `check` said about q, with the same `world`, `base`, `times` and `separation`.
            q: (k, dof).
            device, threads: as for `check`.
        """
        cell = Workcell({"": self}, None if base is None else {"": base}, world)
        return time_gradient(cell, found, q, times=times, separation=separation, device=device, threads=threads)

    def clearance_gradients(
        self,
        found: RobotCheck,
        q: Arrays,
        world: Mapping[str, Thing] | None = None,
        *,
        base: Any = None,
        times: Arrays | None = None,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> SegmentGradients:
        """How the clearance of each segment of a trajectory changes with the configurations at its ends.

        Args:
            found: what `check(q, …, clearance=)` said, with the same `world`, `base` and `times`.
            q: (k, dof).
            device, threads: as for `check`.
        """
        cell = Workcell({"": self}, None if base is None else {"": base}, world)
        return clearance_gradients(cell, found, q, times=times, device=device, threads=threads)

    def scene(
        self,
        q: Arrays,
        world: Mapping[str, Thing] | None = None,
        found: RobotCheck | None = None,
        *,
        base: Any = None,
        times: Arrays | None = None,
    ) -> Scene:
        """A trajectory to look at: `tg.view.show(scene)` plays it, `tg.picture(scene, time)` draws it.

        Args:
            q: configurations, (k, dof).
            world, base, times: as for `check`.
            found: what `check` said: the two bodies that touch first are lit.
        """
        return trajectory_scene(self, q, world, found, base=base, times=times)

    def _checker(
        self,
        world: Mapping[str, Thing] | None,
        allowed: Allowed | None,
        base: Any,
        device: str | wp.Device | None,
        threads: int | None,
    ) -> TrajectoryChecker:
        """The checker of a cell, prepared once."""
        check_world(world)
        pairs = self.default_allowed() if allowed is None else AllowedPairs.of(allowed)
        if allowed is not None and self.may_touch:
            pairs = pairs | AllowedPairs.of(self.may_touch, "attached")
        things = None if world is None else tuple((name, id(thing)) for name, thing in world.items())
        chosen, standing = choose_device(device), id(base)
        if base is not None and not isinstance(base, Path | Rigid):
            base = as_poses(base, "base")  # a copy: what was given may be changed in place
            standing = base.tobytes()
        key = (things, standing, chosen.alias, threads, frozenset(pairs.reasons.items()))
        kept: OrderedDict[Any, Any] = self.__dict__.setdefault("_checkers", OrderedDict())
        held = kept.pop(key, None)
        if held is None:
            cell = Workcell({"": self}, None if base is None else {"": base}, world)
            # What the key counts by its number is held here.
            held = TrajectoryChecker(cell, pairs, device=chosen, threads=threads), dict(world or {}), base
        kept[key] = held
        if len(kept) > KEPT:
            kept.popitem(last=False)
        return held[0]


def check(
    robots: Mapping[str, tuple[Robot, Arrays]],
    world: Mapping[str, Thing] | None = None,
    allowed: Allowed | None = None,
    *,
    bases: Mapping[str, Any] | None = None,
    times: Arrays | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    clearance: float | None = None,
    accuracy: float = 0.5,
    until: Literal["end", "contact"] = "end",
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> RobotCheck | RobotChecks:
    """Whether trajectories of several robots at once touch anything: themselves, each other, or the world.

    Args:
        robots: each robot with its trajectory, as many configurations for each, by name. Bodies are called
            "name/link".
        world, times, separation, tolerance, clearance, accuracy, until, device, threads: as for `Robot.check`.
        allowed: pairs of such names; None means the `default_allowed` of each robot.
        bases: where the robots stand, or how their bases move, by name.

    Example:
        >>> import numpy as np, tangere as tg
        >>> arm = tg.robot.generate.arm()
        >>> away = np.eye(4)
        >>> away[0, 3] = 0.9
        >>> up = np.zeros((2, 6))
        >>> down = np.linspace([0.0] * 6, [0.0, 1.4, 0.0, 0.0, 0.0, 0.0], 2)
        >>> found = tg.robot.check({"left": (arm, down), "right": (arm, up)}, bases={"right": away}, device="cpu")
        >>> found.status.name, [name.partition("/")[0] for name in found.pair]
        ('CONTACT', ['left', 'right'])
    """
    if not isinstance(robots, Mapping) or not robots:
        raise InputError(f"robots must be (robot, trajectory) by name, not {described(robots)}")
    rows = []
    for name, given in robots.items():
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Robot):
            raise InputError(f"robot {name!r} must come as (robot, trajectory), not {described(given)}")
        rows.append(to_numpy(given[1], f"trajectory of {name!r}"))
        if rows[-1].ndim not in (2, 3) or rows[-1].shape[-1] != len(given[0].joint_names):
            raise InputError(
                f"trajectory of {name!r} must end with {len(given[0].joint_names)} joints, not {rows[-1].shape}"
            )
    if len({row.shape[:-1] for row in rows}) > 1:
        raise InputError(f"trajectories must be as long as each other, not {[row.shape[:-1] for row in rows]}")
    machines = {name: robot for name, (robot, _) in robots.items()}
    if allowed is None:
        pairs = AllowedPairs()
        for name, robot in machines.items():
            pairs = pairs | robot.default_allowed().prefixed(f"{name}/" if name else "")
    else:
        pairs = AllowedPairs.of(allowed)
        for name, robot in machines.items():
            pairs = pairs | AllowedPairs.of(robot.may_touch, "attached").prefixed(f"{name}/" if name else "")
    checker = TrajectoryChecker(Workcell(machines, bases, world), pairs, device=device, threads=threads)
    joined = np.concatenate(rows, axis=-1)
    found = checker.check(
        joined if joined.ndim == 3 else joined[None],
        times=times,
        separation=separation,
        tolerance=tolerance,
        clearance=clearance,
        accuracy=accuracy,
        until=until,
    )
    return found if joined.ndim == 3 else found[0]
