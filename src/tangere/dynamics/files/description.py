"""A world in plain words: numbers, texts, lists and dictionaries, as TOML and JSON have them.

Question: what does a world consist of, so that a file can say it and the same world can be made of it again?
Method:   one dictionary for the world, one for each body and each joint; `docs/scene-files.md` is its list of keys.
          Joints that have moved since they were made say where they sit in the frames of their bodies.
Precise:  floating-point numbers are told with all their digits, so that a world that is described and made again has
          the same bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.dynamics.body import Body, yes_or_no
from tangere.dynamics.joint import WITH_COORDINATE, WorldJoint, checked_joint, checked_motor
from tangere.dynamics.material import ContactMaterial
from tangere.runtime import InputError, TangereError, described, positive, three_numbers, to_numpy
from tangere.shape.analytic import CONE, CYLINDER, ROUND, Analytic, Box, Capsule, Cone, ConvexMesh, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import Mesh

if TYPE_CHECKING:
    from tangere.dynamics.world import World

#: Keys of a world that are arguments of `World` as they stand.
WORLD_KEYS = ("dt", "gravity", "friction", "restitution", "separation", "allowed", "order", "sweeps", "second_order")
#: Keys of a body that are arguments of `Body` as they stand.
BODY_KEYS = (
    *("density", "mass", "thickness", "centre", "inertia", "fixed", "driven", "velocity", "spin", "force", "torque"),
    *("friction", "restitution", "material", "group", "name"),
)
#: Keys of a body that say where it is, and what it is made of.
PLACE_KEYS = ("position", "rotation", "quaternion", "pose")
SHAPE_KEYS = ("mesh", "shape", "ground", "convex", "offset", "units", "scale")
#: Bodies by formula that a `shape` may be, beside those of triangles.
FORMULAS = {"cylinder": Cylinder, "sphere": Sphere, "capsule": Capsule, "cone": Cone, "cuboid": Box}
#: What a body may be made of.
BodyShape = Mesh | Analytic | Heightfield
#: Keys of a joint that are arguments of `World.join` as they stand.
JOINT_KEYS = ("kind", "a", "b", "at", "axis", "to", "limits", "speed", "force", "name")
#: Keys of a joint that sits in the frames of its bodies.
FRAME_KEYS = ("anchor_a", "anchor_b", "axis_a", "axis_b", "relative", "length", "coordinate")


@dataclass(frozen=True)
class SceneFile:
    """What a file says of a world: arguments of `World`, its joints, and how long it is to run."""

    options: dict[str, Any]
    steps: int | None = None
    joints: list[dict[str, Any]] = field(default_factory=list)
    seconds: float | None = None  #: in the place of steps, whatever their length
    neighbours: list[tuple[int, int]] = field(default_factory=list)  #: not compared if they overlap at the start
    untouched: list[tuple[int, int]] = field(default_factory=list)  #: never compared


# -- read --------------------------------------------------------------------------------------------------------------


def read_description(told: Any, shape_of: Callable[[dict[str, Any], str], BodyShape], where: str) -> SceneFile:
    """The world that a dictionary describes.

    Args:
        shape_of: gives the mesh or ground that a body's dictionary names; its second argument is whose it is.
        where: what to call the dictionary in errors: the file.
    """
    if not isinstance(told, dict):
        raise InputError(f"{where}: describes no world, but is {described(told)}")
    check_keys(told, (*WORLD_KEYS, "seconds", "steps", "material", "body", "joint"), where)
    entries = _tables(told, "body", where)
    if not entries:
        raise InputError(f"{where}: has no [[body]]")
    options = {key: told[key] for key in WORLD_KEYS if key in told}
    options["bodies"] = [_body(entry, k, shape_of, where) for k, entry in enumerate(entries)]
    options["materials"] = _materials(_tables(told, "material", where), where)
    positive(told.get("dt", 0.01), f"{where}: dt")
    joints = _tables(told, "joint", where)
    for k, joint in enumerate(joints):
        check_keys(joint, (*JOINT_KEYS, *FRAME_KEYS), f"{where}: joint[{k}]")
        for key in ("kind", "a"):
            if key not in joint:
                raise InputError(f"{where}: joint[{k}] says no {key}")
    steps, seconds = _length(told, where)
    return SceneFile(options, steps, joints, seconds)


def add_joint(world: World, told: dict[str, Any], where: str) -> None:
    """Join bodies of a world as a dictionary says."""
    try:
        if "anchor_a" not in told:
            strange = next((key for key in FRAME_KEYS if key in told), None)
            if strange is not None:
                raise InputError(f"{strange} goes with anchor_a")
            world.join(**told)
            return
        made = _joint_in_frames(world, told)
        motor = None
        if "speed" in told or "force" in told:
            motor = checked_motor(made, told.get("speed"), told.get("force"))
        world.add_joint(made, motor, coordinate=told.get("coordinate", 0.0))
    except TangereError as error:
        raise InputError(f"{where}: {error}") from error


def check_keys(told: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    """Raise if a dictionary has a key that means nothing."""
    for key in told:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            told_near = f"; is {near[0]!r} meant?" if near else f"; there are {', '.join(known)}"
            raise InputError(f"{where}: there is no key {key!r}{told_near}")


def _tables(told: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    found = told.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"{where}: {key} is a list of tables, [[{key}]], not {described(found)}")
    return found


def _length(told: dict[str, Any], where: str) -> tuple[int | None, float | None]:
    """How many steps, or how many seconds, a run is told to take."""
    if "seconds" in told and "steps" in told:
        raise InputError(f"{where}: says seconds and steps; one of them is enough")
    if "steps" in told:
        steps = told["steps"]
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise InputError(f"{where}: steps must be a whole number of at least 1, not {described(steps)}")
        return steps, None
    return None, positive(told["seconds"], f"{where}: seconds") if "seconds" in told else None


def _body(told: dict[str, Any], k: int, shape_of: Callable[[dict[str, Any], str], BodyShape], where: str) -> Body:
    whose = f"{where}: body[{k}]" + (f" ({told['name']!r})" if "name" in told else "")
    check_keys(told, (*SHAPE_KEYS, *PLACE_KEYS, *BODY_KEYS), whose)
    try:
        options = {key: told[key] for key in BODY_KEYS if key in told}
        shape: Any = shape_of(told, whose)
        if yes_or_no(told.get("convex", False), f"{whose}: convex"):
            if not isinstance(shape, Mesh):
                raise InputError(f"{whose}: convex is of a mesh")
            shape = ConvexMesh(shape)
        if "offset" in told:
            if not isinstance(shape, Analytic):
                raise InputError(f"{whose}: offset is of a body by formula")
            shape = shape.at(to_numpy(told["offset"], f"{whose}: offset"))
        pose: Any = None if "ground" in told and not any(key in told for key in PLACE_KEYS) else _pose(told, whose)
        return Body(shape, pose, **options)
    except TangereError as error:
        text = str(error)
        raise InputError(text if text.startswith(where) else f"{whose}: {text}") from error


def _pose(told: dict[str, Any], whose: str) -> np.ndarray:
    if "pose" in told:
        other = next((key for key in PLACE_KEYS if key != "pose" and key in told), None)
        if other is not None:
            raise InputError(f"{whose}: says pose and {other}; pose is all of it")
        return to_numpy(told["pose"], f"{whose}: pose")
    pose = np.eye(4)
    pose[:3, 3] = three_numbers(told.get("position", (0.0, 0.0, 0.0)), f"{whose}: position")
    if "rotation" in told and "quaternion" in told:
        raise InputError(f"{whose}: says rotation and quaternion; one of them is enough")
    if "rotation" in told:
        pose[:3, :3] = turned_by_degrees(three_numbers(told["rotation"], f"{whose}: rotation"))
    if "quaternion" in told:
        pose[:3, :3] = _turned_by_quaternion(told["quaternion"], whose)
    return pose


def turned_by_degrees(degrees: np.ndarray) -> np.ndarray:
    """(3, 3) of turns about x, then y, then z, [degrees]."""
    turned = np.eye(3)
    for axis, angle in enumerate(np.radians(degrees)):
        cosine, sine = np.cos(angle), np.sin(angle)
        if abs(degrees[axis]) % 90.0 == 0.0:  # right angles are meant exactly
            cosine, sine = np.round(cosine), np.round(sine)
        turn = np.eye(3)
        j, k = (axis + 1) % 3, (axis + 2) % 3
        turn[j, j], turn[j, k], turn[k, j], turn[k, k] = cosine, -sine, sine, cosine
        turned = turn @ turned
    return turned


def _turned_by_quaternion(given: Any, whose: str) -> np.ndarray:
    array = to_numpy(given, f"{whose}: quaternion")
    if array.shape != (4,) or not np.isfinite(array).all() or not array.any():
        raise InputError(f"{whose}: quaternion is four numbers w, x, y, z, not {described(given)}")
    array = array / np.abs(array).max()  # whose squares neither overflow nor vanish
    w, *axis = array / np.linalg.norm(array)
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * (w * cross + cross @ cross)


def _materials(told: list[dict[str, Any]], where: str) -> dict[tuple[str, str], ContactMaterial] | None:
    found: dict[tuple[str, str], ContactMaterial] = {}
    for k, entry in enumerate(told):
        whose = f"{where}: material[{k}]"
        check_keys(entry, ("between", "friction", "restitution"), whose)
        pair = entry.get("between")
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise InputError(f"{whose}: between is the names of two materials, not {described(pair)}")
        try:
            found[pair[0], pair[1]] = ContactMaterial(entry.get("friction"), entry.get("restitution"))
        except TangereError as error:
            raise InputError(f"{whose}: {error}") from error
    return found or None


def _joint_in_frames(world: World, told: dict[str, Any]) -> WorldJoint:
    strange = next((key for key in ("at", "axis", "to") if key in told), None)
    if strange is not None:
        raise InputError(f"says anchor_a and {strange}: a joint sits in the frames of its bodies, or in the world")
    missing = next((key for key in _needed(told["kind"]) if key not in told), None)
    if missing is not None:
        raise InputError(f"says anchor_a and no {missing}")
    return checked_joint(
        WorldJoint(
            told["kind"],
            world[told["a"]].number,
            -1 if told.get("b") is None else world[told["b"]].number,
            **{key: told.get(key, (0.0, 0.0, 1.0)) for key in FRAME_KEYS[:4]},
            relative=told.get("relative", np.eye(3)),
            limits=told.get("limits", (-np.inf, np.inf)),
            length=told.get("length", 0.0),
            name=told.get("name", f"{told['kind']} {len(world.joints)}"),
        )
    )


def _needed(kind: Any) -> tuple[str, ...]:
    """Keys without which a joint in the frames of its bodies is none."""
    axes = FRAME_KEYS[2:4] if kind in WITH_COORDINATE else ()
    return (*FRAME_KEYS[:2], *axes, *(("length",) if kind == "distance" else ()))


# -- write -------------------------------------------------------------------------------------------------------------


def describe(world: World, name_of: Callable[[Mesh | Heightfield], Any], *, now: bool) -> dict[str, Any]:
    """A world as a dictionary that `read_description` takes.

    Args:
        name_of: what to call a mesh or ground.
        now: with bodies where they are now, and what is done to them; False means as they were given.
    """
    told: dict[str, Any] = {"dt": world.dt, "gravity": world.gravity.tolist(), **world.told_options()}
    if world.steps_told is not None:
        told["steps"] = world.steps_told
    materials = told.pop("materials") or {}
    told["material"] = [
        {"between": list(pair)} | {k: v for k, v in vars(law).items() if v is not None}
        for pair, law in materials.items()
    ]
    told["body"] = [_described_body(body, name_of) for body in world.bodies]
    if now:
        poses, velocities, loads = world.poses, world.velocities, world.loads
        for k, entry in enumerate(told["body"]):
            if world.bodies[k].ground is not None:
                continue
            entry |= {"pose": poses[k].tolist(), "velocity": velocities[k, :3].tolist()}
            entry |= {"spin": velocities[k, 3:].tolist()}
            entry |= {"force": loads[k, :3].tolist(), "torque": loads[k, 3:].tolist()}
    told["joint"] = [_described_joint(world, k) for k in range(len(world.joints))]
    return {key: value for key, value in told.items() if not (isinstance(value, list) and not value)}


def _described_shape(body: Body, name_of: Callable[[Mesh | Heightfield], Any]) -> dict[str, Any]:
    if body.analytic is None:
        return {"mesh": name_of(body.mesh)}
    record, kind = body.analytic.records[0], body.analytic.kind
    radius, height = float(record["radius"]), 2.0 * float(record["half"][2])
    if kind == ROUND and height == 0.0:
        return {"shape": {"kind": "sphere", "radius": radius}}
    if isinstance(body.analytic, Box):
        return {"shape": {"kind": "cuboid", "half": record["half"].tolist()}}
    names = {CYLINDER: "cylinder", CONE: "cone", ROUND: "capsule"}
    if kind in names:
        return {"shape": {"kind": names[kind], "radius": radius, "height": height}}
    return {"mesh": name_of(body.mesh), "convex": True}


def _described_body(body: Body, name_of: Callable[[Mesh | Heightfield], Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"name": body.name}
    if body.ground is not None:
        look = {key: getattr(body, key) for key in ("friction", "restitution", "material", "group")}
        return told | {"ground": name_of(body.ground)} | {key: v for key, v in look.items() if v is not None}
    told |= _described_shape(body, name_of) | {"pose": body.pose.tolist()}
    if "shape" in told and not np.array_equal(body.offset, np.eye(4)):
        told["offset"] = body.offset.tolist()
    if body.moves:
        found = body.mass_properties
        told |= {"mass": found.mass, "centre": found.centre.tolist(), "inertia": found.inertia.tolist()}
    elif body.centre is not None:
        told["centre"] = np.asarray(body.centre, float).tolist()
    told |= {"driven": True} if body.driven else {"fixed": bool(body.fixed) or body.held.tolist()}
    for key in ("velocity", "spin", "force", "torque"):
        told[key] = np.asarray(getattr(body, key)).tolist()
    for key in ("friction", "restitution", "material", "group"):
        if getattr(body, key) is not None:
            told[key] = getattr(body, key)
    if told.get("fixed") == [False] * 6:
        del told["fixed"]
    return told


def _described_joint(world: World, k: int) -> dict[str, Any]:
    joint = world.joints[k]
    told: dict[str, Any] = {"name": joint.name, "kind": joint.kind, "a": joint.body_a}
    if joint.body_b >= 0:
        told["b"] = joint.body_b
    for key in FRAME_KEYS[:5]:
        told[key] = np.asarray(getattr(joint, key)).tolist()
    if joint.kind == "distance":
        told["length"] = joint.length
    if joint.kind in WITH_COORDINATE:
        told |= {"limits": list(joint.limits), "coordinate": world.coordinates[joint.name]}
    speed, force = world.motor(joint.name)
    return told | {key: value for key, value in (("speed", speed), ("force", force)) if value is not None}


def generated(told: Any, whose: str) -> Mesh | Analytic:
    """What a table {kind = "box", size = [1, 1, 1]} asks for: a function of `tangere.shape.generate`, or a formula."""
    from tangere.shape import generate  # most scenes name files

    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        raise InputError(f"{whose}: shape is a table with a kind, {{kind = 'box', size = [1, 1, 1]}}")
    makers = [name for name in generate.__all__ if _makes_mesh(getattr(generate, name))]
    if told["kind"] not in (*FORMULAS, *makers):
        raise InputError(f"{whose}: shape.kind is {', '.join((*FORMULAS, *makers))}, not {told['kind']!r}")
    maker = FORMULAS.get(told["kind"]) or getattr(generate, told["kind"])
    arguments = {key: value for key, value in told.items() if key != "kind"}
    check_keys(arguments, tuple(inspect.signature(maker).parameters), f"{whose}: shape {told['kind']}")
    try:
        return maker(**arguments)
    except TypeError as error:
        raise InputError(f"{whose}: shape {told['kind']}: {error}") from error


def _makes_mesh(maker: Any) -> bool:
    return inspect.isfunction(maker) and inspect.signature(maker).return_annotation in ("Mesh", Mesh)
