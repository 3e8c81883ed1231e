"""A work cell: robots on their bases, and things in the world, as bodies that hang on frames.

Question: what is there, what moves it, and which of it can touch?
Method:   frames are the moving joints of all robots, then the motions that are given: of bases, and of things that are
          not where their mesh has them. A body hangs on a path of frames from the world. Bodies that cannot move
          against each other are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from tangere.motion import Path, Rest, Rigid
from tangere.robot.allowed_pairs import AllowedPairs
from tangere.robot.rigid_groups import RigidGroups
from tangere.runtime import InputError, UnsupportedError, described
from tangere.shape import Moving, generate
from tangere.shape.analytic import Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh
from tangere.shape.robot import Joint, RobotDescription, mesh_holding

Ground = Heightfield | TiledHeightfield
#: A motion that is given for the whole trajectory.
Given = Path | Rigid


@dataclass(frozen=True, eq=False)
class PlacedRobot:
    """A robot of the cell."""

    prefix: str  #: of its bodies' names
    robot: RobotDescription
    groups: RigidGroups
    values: slice  #: its part of a configuration of the whole cell


class Workcell:
    """Robots and things.

    Args:
        robots: by name; the bodies of one without a name are called as its links are.
        bases: where robots stand or how they move, by name; others stand at the origin.
        world: things by name: meshes and analytic bodies at rest, or moving rigidly or along a `Path`, over the whole
            trajectory; height fields.
    """

    def __init__(
        self,
        robots: Mapping[str, RobotDescription],
        bases: Mapping[str, Any] | None = None,
        world: Mapping[str, Any] | None = None,
    ) -> None:
        self.robots: list[PlacedRobot] = []
        self.names: list[str] = []
        self.meshes: list[Mesh] = []  #: what holds each body; of ground, its surface
        self.parts: list[tuple[Mesh | Analytic | Ground, ...]] = []  #: what it is made of
        self.paths: list[tuple[int, ...]] = []
        self.joints: list[Joint] = []
        self.origins = np.zeros((0, 4, 4))
        self.value: list[int] = []
        self.given: list[Given] = []
        self.dof = 0
        if bases is not None and not isinstance(bases, Mapping):
            raise InputError(f"bases must be poses or motions by name, a dict, not {described(bases)}")
        bases = bases or {}
        moved = sum(len(groups.joints) for groups in map(groups_of, robots.values()))
        for name, robot in robots.items():
            base = _motion(bases.get(name), f"base of {name or robot.name}")
            self._put_robot(name, robot, self._frame(base, moved), moved)
        for name in bases:
            if name not in robots:
                raise InputError(f"base names robot {name!r}; there are {', '.join(map(repr, robots))}")
        check_world(world)
        for name, thing in sorted((world or {}).items(), key=lambda item: isinstance(item[1], Ground)):
            self._put_thing(name, thing, moved)

    @cached_property
    def still(self) -> frozenset[int]:
        """The frames that do not move."""
        moved = len(self.joints)
        return frozenset(moved + k for k, motion in enumerate(self.given) if isinstance(motion, Rest))

    def pairs(self, allowed: AllowedPairs) -> np.ndarray:
        """Numbers of the bodies that are compared, (n, 2): all that can move against each other, but those allowed.

        Near relatives come first: as a rule they are the nearest, and bound the search for all others.
        """
        known = set(self.names)
        for pair in allowed:
            for name in pair:
                if name not in known:
                    raise InputError(f"allowed names {name!r}, which is no body; there are {', '.join(self.names)}")
        moving = [tuple(frame for frame in path if frame not in self.still) for path in self.paths]
        kept = [
            (a, b)
            for a, b in combinations(range(len(self.names)), 2)
            if moving[a] != moving[b] and (self.names[a], self.names[b]) not in allowed
        ]
        kept.sort(key=lambda pair: len(set(moving[pair[0]]) ^ set(moving[pair[1]])))
        return np.array(kept, np.int32).reshape(-1, 2)

    @cached_property
    def surfaces(self) -> list[tuple[Mesh | Analytic, ...]]:
        """The parts of each body; of ground its triangles, which is all there is of it for gradients."""
        for name, (first, *_) in zip(self.names, self.parts, strict=True):
            if isinstance(first, TiledHeightfield):
                raise UnsupportedError(f"world: {name!r} is ground in tiles, of which there are no gradients")
        return [
            tuple(part.to_mesh() if isinstance(part, Heightfield) else part for part in parts) for parts in self.parts
        ]

    def breaks(self) -> np.ndarray:
        """Times in (0, 1) at which given motions go over from one screw to the next."""
        times = [motion.times[1:-1] for motion in self.given if isinstance(motion, Path)]
        return np.unique(np.concatenate(times)) if times else np.zeros(0)

    def records(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Records of the given motions between times without a break in between: (n, given), or (1, given) at rest."""
        if len(self.still) == len(self.given):
            return self._records_at_rest
        return _table(
            [
                (motion.between(begin, end) if isinstance(motion, Path) else motion.part(begin, end)).records()
                for motion in self.given
            ]
        )

    @cached_property
    def _records_at_rest(self) -> np.ndarray:
        """(1, given), where nothing that is given moves."""
        return _table([motion.records() for motion in self.given if isinstance(motion, Rest)])

    def _put_robot(self, name: str, robot: RobotDescription, base: tuple[int, ...], moved: int) -> None:
        groups, prefix = groups_of(robot), f"{name}/" if name else ""
        first, names = len(self.joints), robot.joint_names
        self.joints += groups.joints
        self.origins = np.concatenate([self.origins, groups.origins])
        self.value += [self.dof + names.index(joint.follows) for joint in groups.joints]
        self.robots.append(PlacedRobot(prefix, robot, groups, slice(self.dof, self.dof + len(names))))
        self.dof += len(names)
        for body, mesh, parts, group in zip(groups.names, groups.meshes, groups.parts, groups.group, strict=True):
            self._put_body(prefix + body, mesh, parts, (*base, *(first + joint for joint in groups.path(group))))

    def _put_thing(self, name: str, thing: Any, moved: int) -> None:
        shape = thing.shape if isinstance(thing, Moving) else thing
        if isinstance(thing, Ground):
            self._put_body(name, _box_about(thing), (thing,), ())
            return
        if not isinstance(shape, Mesh | Analytic):
            kinds = "a Mesh, analytic bodies, at rest or moving, or ground"
            raise UnsupportedError(f"world: {name!r} must be {kinds}, not {described(thing)}")
        motion = _motion(thing.motion, f"world: {name!r}") if isinstance(thing, Moving) else None
        parts = tuple(shape[k] for k in range(len(shape))) if isinstance(shape, Analytic) else (shape,)
        mesh = shape if isinstance(shape, Mesh) else Mesh.join([*map(mesh_holding, parts)], name=str(name))
        self._put_body(name, mesh, parts, self._frame(motion, moved))

    def _put_body(self, name: str, mesh: Mesh, parts: tuple[Any, ...], path: tuple[int, ...]) -> None:
        if not isinstance(name, str):
            raise InputError(f"world: bodies are named by texts, not by {described(name)}")
        if name in self.names:
            raise InputError(f"world: there are two bodies {name!r}: of robots, held and around them")
        self.names.append(name)
        self.meshes.append(mesh)
        self.parts.append(parts)
        self.paths.append(path)

    def _frame(self, motion: Given | None, moved: int) -> tuple[int, ...]:
        """The frame of a given motion; none for what rests where it is."""
        if motion is None:
            return ()
        self.given.append(motion)
        return (moved + len(self.given) - 1,)


def _box_about(ground: Ground) -> Mesh:
    """A box around the surface of a ground."""
    low, high = ground.bounds
    box = generate.box(np.maximum(high - low, 1e-3 * (high - low).max()))
    return box.replace(vertices=box.vertices + 0.5 * (low + high))


def _table(columns: list[np.ndarray]) -> np.ndarray:
    """Records of motions side by side."""
    table = np.zeros((len(columns[0]) if columns else 1, len(columns)), Rest().records().dtype)
    for k, column in enumerate(columns):
        table[:, k] = column
    return table


def groups_of(robot: RobotDescription) -> RigidGroups:
    """The groups of a robot, made once."""
    groups = robot.__dict__.get("_groups")
    if groups is None:
        groups = robot.__dict__["_groups"] = RigidGroups.of(robot)
    return groups


def _motion(given: Any, what: str) -> Given | None:
    """A motion, or a pose, that is given; None where nothing is moved."""
    if given is None:
        return None
    motion = given if isinstance(given, (Path, Rigid)) else None
    if motion is None:
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"{what}: {described(given)} is neither a pose nor a motion")
        motion = Rest(given)
    if isinstance(motion, Rigid) and (motion.shape or motion.links != 1):
        raise UnsupportedError(f"{what}: takes one motion, not {motion!r} of {motion.links} links")
    if isinstance(motion, Rest) and np.array_equal(motion.pose(0.0), np.eye(4)):
        return None
    return motion


def check_world(world: Any) -> None:
    """Raise unless it is things by name."""
    if world is not None and not isinstance(world, Mapping):
        raise InputError(f"world must be meshes by name, a dict, not {described(world)}")
