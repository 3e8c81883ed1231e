"""Robots from URDF files: what their links are made of, and how they move from one configuration of joints to another.

Every joint goes at a constant rate from its first value to its last, so links move by a `Chain` of twists, any number
of turns (specs/redon-rigid-ccd-and-dynamics C3.3). Round parts become meshes that hold the true shape, so that nothing
touches later than the robot would. Reading needs the extra [robot].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.motion import Chain, Rest, Rigid, Twist
from tangere.runtime import InputError, MissingExtraError, UnsupportedError
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.moving import Moving

__all__ = ["Joint", "Robot", "load_urdf"]

#: Sides of a cylinder, and triangles of a ball: at most 1 % and 2 % larger than the round shape.
SIDES, BALL = 24, 1280

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


@dataclass(frozen=True)
class Robot:
    """Links in a tree, each with the joint that moves it, in an order where parents come first."""

    name: str
    links: tuple[str, ...]
    parents: tuple[int, ...]  #: of each link, -1 for the world
    joints: tuple[Joint, ...]  #: of each link
    shapes: tuple[Mesh | None, ...]  #: of each link, None where it has no body

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
        if isinstance(configuration, Mapping):
            values = {name: float(value) for name, value in configuration.items()}
        else:
            if len(configuration) != len(names):
                raise InputError(f"{self.name}: {which} has {len(configuration)} values for {len(names)} joints")
            values = dict(zip(names, map(float, configuration), strict=True))
        for name, value in values.items():
            if name not in names:
                raise InputError(f"{self.name}: {which} names joint {name!r}; there are {', '.join(names) or 'none'}")
            if not np.isfinite(value):
                raise InputError(f"{self.name}: {which} has {value} for joint {name!r}")
        return values


def load_urdf(path: str | PathLike[str]) -> Robot:
    """Read a robot: its collision bodies, or what is seen of links that have none.

    Args:
        path: a URDF file; meshes it names are looked for beside it.
    """
    path = Path(fspath(path))
    try:
        import yourdfpy
    except ImportError as error:
        raise MissingExtraError("yourdfpy", "robot") from error
    if not path.is_file():
        raise InputError(f"Robot {path.name!r}: there is no file {str(path)!r}")
    try:
        model = yourdfpy.URDF.load(str(path), build_scene_graph=False, load_meshes=False).robot
    except Exception as error:  # lxml's and yourdfpy's own
        raise InputError(f"Robot {path.name!r}: cannot be read ({error})") from error
    above = {joint.child: joint for joint in model.joints}
    ordered: list[Any] = []
    waiting = [link for link in model.links if link.name not in above]
    while waiting:  # parents first
        link = waiting.pop(0)
        ordered.append(link)
        waiting += [other for other in model.links if other.name in above and above[other.name].parent == link.name]
    if len(ordered) != len(model.links):
        left = sorted({link.name for link in model.links} - {link.name for link in ordered})
        raise InputError(f"Robot {path.name!r}: links {', '.join(left)} hang in a loop, or on a link that is not there")
    number = {link.name: k for k, link in enumerate(ordered)}
    return Robot(
        name=model.name or path.stem,
        links=tuple(number),
        parents=tuple(number[above[name].parent] if name in above else -1 for name in number),
        joints=tuple(_joint(above[name], path) if name in above else _ground(name) for name in number),
        shapes=tuple(_shape(link, path, yourdfpy) for link in ordered),
    )


def _ground(link: str) -> Joint:
    return Joint(f"{link} in the world", "fixed", np.eye(4), np.array([0.0, 0.0, 1.0]), "")


def _joint(joint: Any, path: Path) -> Joint:
    kinds = {"fixed": "fixed", "revolute": "turning", "continuous": "turning", "prismatic": "sliding"}
    if joint.type not in kinds:
        raise UnsupportedError(f"Robot {path.name!r}: joint {joint.name!r} is {joint.type}; known: {', '.join(kinds)}")
    origin = np.eye(4) if joint.origin is None else np.array(joint.origin, float)
    axis = np.array([1.0, 0.0, 0.0] if joint.axis is None else joint.axis, float)
    length = np.linalg.norm(axis)
    if not length > 0.0 and joint.type != "fixed":
        raise InputError(f"Robot {path.name!r}: the axis of joint {joint.name!r} has no direction")
    axis = axis / (length or 1.0)
    mimic = joint.mimic
    if mimic is None:
        return Joint(joint.name, kinds[joint.type], origin, axis, joint.name)
    factor = 1.0 if mimic.multiplier is None else float(mimic.multiplier)
    return Joint(joint.name, kinds[joint.type], origin, axis, mimic.joint, factor, float(mimic.offset or 0.0))


def _shape(link: Any, path: Path, yourdfpy: Any) -> Mesh | None:
    """The body of a link in its own frame."""
    parts = []
    for part in link.collisions or link.visuals:
        mesh = _geometry(part.geometry, path, yourdfpy)
        parts.append(mesh if part.origin is None else mesh.at(part.origin))
    if not parts:
        return None
    return Mesh.join(parts, name=link.name)


def _geometry(geometry: Any, path: Path, yourdfpy: Any) -> Mesh:
    if geometry.box is not None:
        return generate.box(tuple(map(float, geometry.box.size)))
    if geometry.cylinder is not None:
        radius = geometry.cylinder.radius / np.cos(np.pi / SIDES)  # the sides touch the cylinder
        return generate.prism(SIDES, radius=float(radius), height=float(geometry.cylinder.length))
    if geometry.sphere is not None:
        ball = generate.icosphere(triangles=BALL)
        inside = np.abs(np.einsum("ni,ni->n", ball.face_normals, ball.vertices[ball.faces[:, 0]])).min()
        return ball.replace(vertices=ball.vertices * (geometry.sphere.radius / inside))
    if geometry.mesh is None:
        raise InputError(f"Robot {path.name!r}: a part has no shape")
    mesh = Mesh.load(yourdfpy.urdf.filename_handler_magic(geometry.mesh.filename, dir=str(path.parent)))
    scale = np.ones(3) if geometry.mesh.scale is None else geometry.mesh.scale * np.ones(3)
    return mesh.at(np.diag([*scale, 1.0]))
