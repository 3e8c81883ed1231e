"""The reader of URDF files: links, joints and collision bodies, through the optional package yourdfpy.

Question: which links does a robot have, what joins them, and what are they made of?
Method:   yourdfpy reads the XML; links are put into an order where parents come first; joints that mimic others are
          resolved to the joint whose value counts. Lengths of URDF are metres, so meshes that a file names are taken in
          metres times their scale, unless their own format says another unit.
Sound:    boxes, cylinders and spheres are analytic parts; the mesh of a link holds them.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tangere.runtime import InputError, UnsupportedError, needs_extra, positive, positives
from tangere.shape.analytic.bodies import Analytic, Box, Cylinder, Sphere
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.robot.holding_mesh import mesh_of_parts
from tangere.shape.robot.robot import Inertial, Joint, RobotDescription


def read_urdf(path: str | PathLike[str], packages: Mapping[str, str | PathLike[str]]) -> RobotDescription:
    """The robot in a URDF file; see `RobotDescription.load`."""
    path = Path(fspath(path))
    with needs_extra("yourdfpy", "robot"):
        import yourdfpy
    if not path.is_file():
        raise InputError(f"Robot {path.name!r}: there is no file {str(path)!r}")
    with _without_log():
        return _read(path, {name: Path(fspath(folder)) for name, folder in packages.items()}, yourdfpy)


@contextmanager
def _without_log() -> Iterator[None]:
    """What yourdfpy logs about a file is told by our errors."""
    log = logging.getLogger("yourdfpy.urdf")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def _with_valid_declaration(path: Path) -> Iterator[Path]:
    """The file, or a copy whose XML declaration comes first and names a version that exists: often it does not."""
    text = path.read_bytes()
    found = re.match(rb"((?:\s|<!--.*?-->)*)<\?xml(.*?)\?>", text, re.DOTALL)
    declared = found and re.sub(rb"version\s*=\s*([\"'])(?!1\.\d+\1).*?\1", b'version="1.0"', found[2])
    if not found or (not found[1] and declared == found[2]):
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        # What stood before it comes after it, so that errors name the lines of the file.
        copy.write_bytes(b"<?xml%b?>%b%b" % (declared, found[1], text[found.end() :]))
        yield copy


def _check_xml(file: Path, path: Path) -> None:
    """Raise unless it is XML about a robot: yourdfpy makes something of the rest, too."""
    etree = import_module("lxml.etree")  # comes with yourdfpy
    try:
        root = etree.parse(str(file)).getroot()
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE:
            return  # such files are common, and read
        raise InputError(f"Robot {path.name!r}: is not XML: {error.msg}") from error
    except OSError as error:
        raise InputError(f"Robot {path.name!r}: is not XML in the encoding it says") from error
    if etree.QName(root).localname != "robot":
        raise InputError(f"Robot {path.name!r}: begins with <{root.tag}>, not with <robot>")


def _model(path: Path, yourdfpy: Any) -> Any:
    """What yourdfpy reads: links and joints as they stand in the file."""
    with _with_valid_declaration(path) as file:
        _check_xml(file, path)
        try:
            return yourdfpy.URDF.load(str(file), build_scene_graph=False, load_meshes=False).robot
        except KeyError as error:
            raise InputError(f"Robot {path.name!r}: cannot be read (an element has no attribute {error})") from error
        except IndexError as error:
            reason = "an element is empty that must not be, as a geometry without a shape"
            raise InputError(f"Robot {path.name!r}: cannot be read ({reason})") from error
        except Exception as error:  # lxml's and yourdfpy's own
            raise InputError(f"Robot {path.name!r}: cannot be read ({error})") from error


def _read(path: Path, packages: Mapping[str, Path], yourdfpy: Any) -> RobotDescription:
    model = _model(path, yourdfpy)
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
    read = {name: _with_leader(joint, read, path) for name, joint in read.items()}
    followed = {name: _followed(joint, read, path) for name, joint in read.items()}
    made = [_parts(link, path, packages, yourdfpy) for link in ordered]
    return RobotDescription(
        name=model.name or path.stem,
        links=tuple(number),
        parents=tuple(number[above[name].parent] if name in above else -1 for name in number),
        joints=tuple(followed[above[name].name] if name in above else _ground(name) for name in number),
        shapes=tuple(mesh for mesh, _ in made),
        inertials=tuple(_inertial(link) for link in ordered),
        parts=tuple(parts for _, parts in made),
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


def _with_leader(joint: Joint, joints: Mapping[str, Joint], path: Path) -> Joint:
    """A joint that mimics one that moves; else the joint itself, with a value of its own and a warning."""
    leader = joints.get(joint.follows)
    if joint.kind == "fixed" or (leader is not None and leader.kind != "fixed"):
        return joint
    why = "is not there" if leader is None else "is fixed"
    told = f"Robot {path.name!r}: joint {joint.name!r} mimics {joint.follows!r}, which {why}"
    warnings.warn(f"{told}: it has a value of its own", UserWarning, stacklevel=2)
    return replace(joint, follows=joint.name, factor=1.0, offset=0.0)


def _followed(joint: Joint, joints: Mapping[str, Joint], path: Path) -> Joint:
    """A joint with the value it comes down to: that of the first joint, of those it mimics, which mimics none."""
    factor, offset, seen = joint.factor, joint.offset, [joint.name]
    leader = joint
    while leader.follows != leader.name:
        if leader.follows in seen:
            told = f"joint {leader.name!r} mimics {leader.follows!r}, which mimics it in turn"
            raise InputError(f"Robot {path.name!r}: {told}")
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
    told = {"origin": origin, "axis": axis}
    if joint.mimic is not None:
        told |= {"multiplier": joint.mimic.multiplier or 0.0, "offset": joint.mimic.offset or 0.0}
    for what, numbers in told.items():
        if not np.isfinite(numbers).all():
            raise InputError(f"Robot {path.name!r}: the {what} of joint {joint.name!r} is not finite")
    length = np.linalg.norm(axis)
    if not length > 0.0 and joint.type != "fixed":
        raise InputError(f"Robot {path.name!r}: the axis of joint {joint.name!r} has no direction")
    axis = axis / (length or 1.0)
    mimic, limits = joint.mimic, _limits(joint, path)
    if mimic is None:
        return Joint(joint.name, kinds[joint.type], origin, axis, joint.name, limits=limits)
    if mimic.joint == joint.name:
        raise InputError(f"Robot {path.name!r}: joint {joint.name!r} mimics itself")
    factor = 1.0 if mimic.multiplier is None else float(mimic.multiplier)
    return Joint(joint.name, kinds[joint.type], origin, axis, mimic.joint, factor, float(mimic.offset or 0.0), limits)


def _limits(joint: Any, path: Path) -> tuple[float, float]:
    """The range of a joint's value; of a bound that is not told there is none."""
    if joint.limit is None or joint.type not in ("revolute", "prismatic"):
        return -np.inf, np.inf
    lower = -np.inf if joint.limit.lower is None else float(joint.limit.lower)
    upper = np.inf if joint.limit.upper is None else float(joint.limit.upper)
    if not lower <= upper:
        raise InputError(f"Robot {path.name!r}: joint {joint.name!r} has limits from {lower:g} to {upper:g}")
    return lower, upper


def _inertial(link: Any) -> Inertial | None:
    """What a link weighs; None where the file does not say, or says nothing."""
    told = link.inertial
    if told is None or told.mass is None or told.inertia is None:
        return None
    pose = np.eye(4) if told.origin is None else np.array(told.origin, float)
    inertia = pose[:3, :3] @ np.array(told.inertia, float).reshape(3, 3) @ pose[:3, :3].T
    return Inertial(float(told.mass), pose[:3, 3].copy(), inertia)


def _parts(
    link: Any, path: Path, packages: Mapping[str, Path], yourdfpy: Any
) -> tuple[Mesh | None, tuple[Mesh | Analytic, ...]]:
    """The body of a link in its own frame: what holds it, and what it is made of."""
    parts = []
    for part in link.collisions or link.visuals:
        try:
            shape = _geometry(part.geometry, path, packages, yourdfpy)
            parts.append(shape if part.origin is None else shape.at(part.origin))
        except InputError as error:
            raise InputError(f"Robot {path.name!r}: link {link.name!r}: {error}") from error
    return mesh_of_parts(parts, link.name)


def _mesh_file(name: str, path: Path, packages: Mapping[str, Path], yourdfpy: Any) -> str:
    """Where a mesh is that a URDF file names, or the name itself if it is nowhere.

    The first part of a `package://` address is a folder beside the file or above it, which often has another name than
    the package: then the rest is looked for there. `package:///` is often written for `package://`.
    """
    inside = re.match(r"package:/*(.+)", name)
    if inside is None:
        return yourdfpy.urdf.filename_handler_magic(name, dir=str(path.parent))
    whole = Path(inside[1])
    folder = packages.get(whole.parts[0])
    if folder is not None:
        return str(folder / Path(*whole.parts[1:]))
    folders = path.absolute().parents
    places = [folder / whole for folder in folders] + [folder / Path(*whole.parts[1:]) for folder in folders]
    return next((str(place) for place in places if place.is_file()), name)


def _geometry(geometry: Any, path: Path, packages: Mapping[str, Path], yourdfpy: Any) -> Mesh | Analytic:
    if geometry.box is not None:
        return Box(0.5 * np.array(positives([float(side) for side in geometry.box.size], "box: size", 3)))
    if geometry.cylinder is not None:
        radius, length = geometry.cylinder.radius, geometry.cylinder.length
        return Cylinder(positive(radius, "cylinder: radius"), positive(length, "cylinder: length"))
    if geometry.sphere is not None:
        return Sphere(positive(geometry.sphere.radius, "sphere: radius"))
    if geometry.mesh is None:
        raise InputError("a part has no shape")
    mesh = Mesh.load(_mesh_file(geometry.mesh.filename, path, packages, yourdfpy))
    scale = np.ravel(1.0 if geometry.mesh.scale is None else geometry.mesh.scale)
    if len(scale) not in (1, 3):
        raise InputError(f"Mesh {mesh.name!r}: its scale must be one or three numbers, not {len(scale)}")
    return mesh.at(np.diag([*scale * np.ones(3), 1.0]))
