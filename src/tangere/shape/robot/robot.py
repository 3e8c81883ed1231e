"""Robots: what their links are made of, and how they move from one configuration of joints to another.

Question: where is every link while the joints go from one configuration to another?
Method:   every joint goes at a constant rate from its first value to its last, so links move by a `Chain` of twists,
          any number of turns (Redon 2002, section 3.2, on articulated chains).
Known as: forward kinematics of a kinematic tree, interpolated in joint space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Self

import numpy as np

from tangere.motion import Chain, Rest, Rigid, Twist
from tangere.runtime import InputError, described, file_path
from tangere.shape.analytic.bodies import Analytic
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.moving import Moving

Configuration = Mapping[str, float] | Sequence[float]


@dataclass(frozen=True)
class Joint:
    """What joins a link to its parent."""

    name: str
    kind: str  #: "fixed", "turning" or "sliding"
    origin: np.ndarray  #: (4, 4) where the joint is in the parent's frame
    axis: np.ndarray  #: (3,) unit, in the joint's frame
    follows: str  #: the joint whose value counts: itself, or the one it mimics
    factor: float = 1.0
    offset: float = 0.0
    limits: tuple[float, float] = (-np.inf, np.inf)  #: least and largest value [rad or m]

    def between(self, start: float, end: float) -> Rigid:
        """The motion of the link in its parent's frame while the value goes from `start` to `end` [rad or m]."""
        begin, last = (self.factor * value + self.offset for value in (start, end))
        along = self.origin[:3, :3] @ self.axis
        pose = self.origin.copy()
        if self.kind == "fixed":
            return Rest(pose)
        if self.kind == "sliding":
            pose[:3, 3] += along * begin
            return Twist(pose, along * (last - begin), np.zeros(3))
        turned = Twist(pose, np.zeros(3), along * begin).pose(1.0)
        return Twist(turned, np.zeros(3), along * (last - begin))


@dataclass(frozen=True, eq=False)
class Inertial:
    """What a link weighs, as its file says."""

    mass: float  #: [kg]
    centre: np.ndarray  #: (3,) of mass, in the link's frame [m]
    inertia: np.ndarray  #: (3, 3) about it, along the link's axes [kg m^2]


@dataclass(frozen=True, repr=False, eq=False)
class RobotDescription:
    """What a URDF file says: links in a tree, each with the joint that moves it, parents before children."""

    name: str
    links: tuple[str, ...]
    parents: tuple[int, ...]  #: of each link, -1 for the world
    joints: tuple[Joint, ...]  #: of each link
    shapes: tuple[Mesh | None, ...]  #: of each link, None where it has no body; holds its analytic parts
    inertials: tuple[Inertial | None, ...] = ()  #: of each link, None where the file says none
    parts: tuple[tuple[Mesh | Analytic, ...], ...] = ()  #: of each link: see `parts_of`; empty where it is its mesh

    def __repr__(self) -> str:
        kind, moved = type(self).__name__, len(self.joint_names)
        return f"{kind}({self.name!r}, {len(self.links)} links, {moved} joints that move)"

    @classmethod
    def load(cls, path: str | PathLike[str], *, packages: Mapping[str, str | PathLike[str]] | None = None) -> Self:
        """Read a robot: its collision bodies, or what is seen of links that have none.

        URDF files need the extra [robot], MJCF files the package mujoco.

        Args:
            path: a URDF or an MJCF file (its first element says which). Of MJCF, hinges and slides are read, and
                equalities that make one joint follow another; a free joint at the root is left to `base=`. Of URDF,
                meshes it names are looked for beside it, those of `package://` addresses also in the folders above it,
                with and without the name of the package; a joint that mimics one that is not there is warned of and
                has a value of its own.
            packages: the folders of packages that `package://` addresses name, where they are somewhere else.
        """
        from tangere.shape.robot.mjcf import is_mjcf, read_mjcf
        from tangere.shape.robot.urdf import read_urdf

        file = file_path(path, "a robot")
        if file.is_dir():
            raise InputError(f"Robot {file.name!r}: is a folder; its URDF or MJCF file is meant: {str(file)!r}")
        if packages is not None and not isinstance(packages, Mapping):
            raise InputError(f"Robot {file.name!r}: packages must be a dict of folders, not {described(packages)}")
        folders = {name: file_path(folder, f"packages[{name!r}]") for name, folder in (packages or {}).items()}
        read = read_mjcf(file) if is_mjcf(file) else read_urdf(file, folders)
        return cls(**{field.name: getattr(read, field.name) for field in fields(read)})

    def parts_of(self, link: int) -> tuple[Mesh | Analytic, ...]:
        """What a link is made of, exactly, in its frame: a mesh, and analytic bodies, one each; nothing for no body."""
        mesh = self.shapes[link]
        given = self.parts[link] if self.parts else ()
        return given or (() if mesh is None else (mesh,))

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that have a value of their own, in the order configurations give them."""
        return tuple(joint.name for joint in self.joints if joint.kind != "fixed" and joint.follows == joint.name)

    def chain(self, start: Configuration, end: Configuration) -> Chain:
        """The motion of all links while the joints go from one configuration to another, each at a constant rate.

        Args:
            start, end: values by joint name [rad or m], or in the order of `joint_names`; names left out are 0.
        """
        first, last = self._values(start, "start"), self._values(end, "end")
        motions = [joint.between(first.get(joint.follows, 0.0), last.get(joint.follows, 0.0)) for joint in self.joints]
        return Chain(motions, self.parents)

    def moving(self, start: Configuration, end: Configuration) -> list[Moving]:
        """The links that have a body, in motion; arguments as for `chain`."""
        chain = self.chain(start, end)
        return [mesh.moving(chain.link(k)) for k, mesh in enumerate(self.shapes) if mesh is not None]

    def linked_pairs(self) -> np.ndarray:
        """Pairs of neighbours among the bodies of `moving`, which may touch in their joints: (k, 2)."""
        number = np.cumsum([mesh is not None for mesh in self.shapes]) - 1
        pairs = []
        for link, mesh in enumerate(self.shapes):
            parent = self.parents[link]
            while parent >= 0 and self.shapes[parent] is None:
                parent = self.parents[parent]
            if mesh is not None and parent >= 0:
                pairs.append((number[parent], number[link]))
        return np.array(pairs, np.int32).reshape(-1, 2)

    def _values(self, configuration: Configuration, which: str) -> dict[str, float]:
        names = self.joint_names
        given: Any = configuration
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"{self.name}: {which} must be joint values, by name or in a row, not {described(given)}")
        if not isinstance(given, Mapping):
            given = list(given)
            if len(given) != len(names):
                raise InputError(f"{self.name}: {which} has {len(given)} values for {len(names)} joints")
            given = dict(zip(names, given, strict=True))
        values: dict[str, float] = {}
        for name, value in given.items():
            if name not in names:
                raise InputError(f"{self.name}: {which} names joint {name!r}; there are {', '.join(names) or 'none'}")
            try:
                values[name] = float(value)
            except (TypeError, ValueError):
                raise InputError(f"{self.name}: {which} has {value!r} for joint {name!r}, not a number") from None
            if not np.isfinite(values[name]):
                raise InputError(f"{self.name}: {which} has {value} for joint {name!r}")
        return values
