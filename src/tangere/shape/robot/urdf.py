"""Robots from URDF files: what their links are made of, and how they move from one configuration of joints to another.

Every joint goes at a constant rate from its first value to its last, so links move by a `Chain` of twists, any number
of turns (specs/redon-rigid-ccd-and-dynamics C3.3). Round parts become meshes that hold the true shape, so that nothing
touches later than the robot would. Reading needs the extra [robot].
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.motion import Chain, Rest, Rigid, Twist
from tangere.runtime import InputError, MissingExtraError, UnsupportedError, positive
from tangere.shape import generate
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.mesh.moving import Moving

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
        given: Any = configuration
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"{self.name}: {which} must be joint values, by name or in a row, not {given!r}")
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
    with _without_log():
        return _read(path, yourdfpy)


@contextmanager
def _without_log() -> Iterator[None]:
    """What yourdfpy logs about a file is told by our errors."""
    log = logging.getLogger("yourdfpy.urdf")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _check_xml(path: Path) -> None:
    """Raise unless it is XML about a robot: yourdfpy makes something of the rest, too."""
    etree = import_module("lxml.etree")  # comes with yourdfpy
    try:
        root = etree.parse(str(path)).getroot()
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE:
            return  # such files are common, and read
        raise InputError(f"Robot {path.name!r}: is not XML: {error.msg}") from error
    if etree.QName(root).localname != "robot":
        raise InputError(f"Robot {path.name!r}: begins with <{root.tag}>, not with <robot>")


def _read(path: Path, yourdfpy: Any) -> Robot:
    _check_xml(path)
    try:
        model = yourdfpy.URDF.load(str(path), build_scene_graph=False, load_meshes=False).robot
    except KeyError as error:
        raise InputError(f"Robot {path.name!r}: cannot be read (an element has no attribute {error})") from error
    except Exception as error:  # lxml's and yourdfpy's own
        raise InputError(f"Robot {path.name!r}: cannot be read ({error})") from error
    above = _above(model, path)
    ordered: list[Any] = []
    waiting = [link for link in model.links if link.name not in above]
    while waiting:  # parents first
        link = waiting.pop(0)
        ordered.append(link)
        waiting += [other for other in model.links if other.name in above and above[other.name].parent == link.name]
    if len(ordered) != len(model.links):
        left = sorted({link.name for link in model.links} - {link.name for link in ordered})
        raise InputError(f"Robot {path.name!r}: links {', '.join(left)} hang in a loop")
    number = {link.name: k for k, link in enumerate(ordered)}
    read = {joint.name: _joint(joint, path) for joint in model.joints}
    followed = {name: _followed(joint, read, path) for name, joint in read.items()}
    return Robot(
        name=model.name or path.stem,
        links=tuple(number),
        parents=tuple(number[above[name].parent] if name in above else -1 for name in number),
        joints=tuple(followed[above[name].name] if name in above else _ground(name) for name in number),
        shapes=tuple(_shape(link, path, yourdfpy) for link in ordered),
    )


def _above(model: Any, path: Path) -> dict[str, Any]:
    """The joint above each link that has one; names must be those of one thing each."""
    for what, things in (("link", model.links), ("joint", model.joints)):
        names = [thing.name for thing in things]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"Robot {path.name!r}: there are two {what}s {twice!r}")
    links, above = {link.name for link in model.links}, {}
    for joint in model.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise InputError(f"Robot {path.name!r}: the {role} {link!r} of joint {joint.name!r} is not there")
        if joint.child in above:
            both = f"{above[joint.child].name!r} and {joint.name!r}"
            raise InputError(f"Robot {path.name!r}: link {joint.child!r} hangs on two joints, {both}")
        above[joint.child] = joint
    return above


def _followed(joint: Joint, joints: Mapping[str, Joint], path: Path) -> Joint:
    """A joint with the value it comes down to: that of the first joint, of those it mimics, which mimics none."""
    factor, offset, seen = joint.factor, joint.offset, [joint.name]
    leader = joint
    while leader.follows != leader.name:
        if leader.follows in seen or leader.follows not in joints:
            why = "which mimics it in turn" if leader.follows in seen else "which is not there"
            raise InputError(f"Robot {path.name!r}: joint {leader.name!r} mimics {leader.follows!r}, {why}")
        leader = joints[leader.follows]
        seen.append(leader.name)
        factor, offset = factor * leader.factor, factor * leader.offset + offset
    return replace(joint, follows=leader.name, factor=factor, offset=offset)


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
    if mimic.joint == joint.name:
        raise InputError(f"Robot {path.name!r}: joint {joint.name!r} mimics itself")
    factor = 1.0 if mimic.multiplier is None else float(mimic.multiplier)
    return Joint(joint.name, kinds[joint.type], origin, axis, mimic.joint, factor, float(mimic.offset or 0.0))


def _shape(link: Any, path: Path, yourdfpy: Any) -> Mesh | None:
    """The body of a link in its own frame."""
    parts = []
    for part in link.collisions or link.visuals:
        try:
            mesh = _geometry(part.geometry, path, yourdfpy)
            parts.append(mesh if part.origin is None else mesh.at(part.origin))
        except InputError as error:
            raise InputError(f"Robot {path.name!r}: link {link.name!r}: {error}") from error
    if not parts:
        return None
    return Mesh.join(parts, name=link.name)


def _geometry(geometry: Any, path: Path, yourdfpy: Any) -> Mesh:
    if geometry.box is not None:
        return generate.box(tuple(map(float, geometry.box.size)))
    if geometry.cylinder is not None:
        radius, height = (
            positive(getattr(geometry.cylinder, name), f"cylinder: {name}") for name in ("radius", "length")
        )
        return generate.prism(SIDES, radius=radius / np.cos(np.pi / SIDES), height=height)  # sides touch the cylinder
    if geometry.sphere is not None:
        radius = positive(geometry.sphere.radius, "sphere: radius")
        ball = generate.icosphere(triangles=BALL, radius=radius)
        inside = np.abs(np.einsum("ni,ni->n", ball.face_normals, ball.vertices[ball.faces[:, 0]])).min()
        return ball.replace(vertices=ball.vertices * (radius / inside))  # its faces touch the sphere
    if geometry.mesh is None:
        raise InputError("a part has no shape")
    mesh = Mesh.load(yourdfpy.urdf.filename_handler_magic(geometry.mesh.filename, dir=str(path.parent)))
    scale = np.ones(3) if geometry.mesh.scale is None else geometry.mesh.scale * np.ones(3)
    return mesh.at(np.diag([*scale, 1.0]))
