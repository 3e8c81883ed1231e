"""Joints between two bodies, or a body and the world: what they leave free, where they end, what drives them.

| kind | leaves free | coordinate |
|---|---|---|
| ball | all rotations about a point | none |
| hinge | a rotation about an axis | angle [rad] |
| slider | a way along an axis | way [m] |
| weld | nothing | none |
| distance | all but the distance of two points | none |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from tangere.runtime import InputError, described, not_negative, number, to_numpy

JointKind = Literal["ball", "hinge", "slider", "weld", "distance"]
#: Kinds that have a coordinate, and so may have limits and motors.
WITH_COORDINATE = ("hinge", "slider")
#: Places, limits and speeds are not larger: beyond that nothing is told apart any more.
LARGEST = 1e15
#: A matrix is a rotation if it is one to within this.
ROTATION = 1e-6
#: A vector is a unit vector if it is one to within this.
UNIT = 1e-12


@dataclass(frozen=True, eq=False)
class WorldJoint:
    """A joint where a world has it; made by `World.join`."""

    kind: JointKind
    body_a: int
    body_b: int  #: -1 is the world
    anchor_a: np.ndarray  #: (3,) in the mesh's frame of a [m]
    anchor_b: np.ndarray  #: (3,) in that of b, or in the world [m]
    axis_a: np.ndarray  #: (3,) unit, in the mesh's frame of a
    axis_b: np.ndarray  #: (3,) unit, in that of b, or in the world
    relative: np.ndarray  #: (3, 3) from a's frame to b's where the coordinate is 0
    limits: tuple[float, float]  #: of the coordinate, from where it was joined [rad or m]
    length: float  #: of a distance joint [m]
    name: str


def joint_of(
    kind: Any,
    bodies: tuple[int, int],
    poses: tuple[np.ndarray, np.ndarray],
    *,
    at: Any,
    axis: Any,
    to: Any,
    limits: Any,
    name: str,
) -> WorldJoint:
    """A joint between bodies where they are now.

    Args:
        bodies: their numbers; the second may be -1, the world.
        poses: of both, (4, 4); the identity for the world.
        at: a point of the joint in the world, (3,) [m].
        axis: of a hinge or a slider, (3,) in the world.
        to: of a distance joint: the other point, on the second body, (3,) in the world [m].
        limits: least and largest coordinate, 0 being where it is now; None means none.
    """
    whose = f"joint {name!r}"
    _check_kind(kind, whose)
    point = _place(at, f"{whose}: at")
    other = point
    if kind == "distance":
        if to is None:
            raise InputError(f"{whose}: a distance joint needs to=, the point on the second body")
        other = _place(to, f"{whose}: to")
    elif to is not None:
        raise InputError(f"{whose}: only a distance joint has to=")
    direction = np.array([0.0, 0.0, 1.0])
    if kind in WITH_COORDINATE:
        if axis is None:
            raise InputError(f"{whose}: a {kind} needs an axis")
        direction = _direction(axis, f"{whose}: axis")
    elif axis is not None:
        raise InputError(f"{whose}: a {kind} has no axis")
    turn_a, turn_b = poses[0][:3, :3], poses[1][:3, :3]
    length = float(np.linalg.norm(point - other))
    if kind == "distance" and not length > 0.0:
        raise InputError(f"{whose}: its two points are the same; a ball joint holds them together")
    return WorldJoint(
        kind,
        *bodies,
        turn_a.T @ (point - poses[0][:3, 3]),
        turn_b.T @ (other - poses[1][:3, 3]),
        turn_a.T @ direction,
        turn_b.T @ direction,
        turn_b.T @ turn_a,
        _limits(limits, kind, whose, at=0.0),
        length,
        name,
    )


def checked_joint(joint: WorldJoint) -> WorldJoint:
    """A joint that is told in the frames of its bodies, as numbers that are good for one; raises where they are not."""
    whose, kind = f"joint {joint.name!r}", joint.kind
    _check_kind(kind, whose)
    relative = to_numpy(joint.relative, f"{whose}: relative")
    rotates = relative.shape == (3, 3) and np.allclose(relative @ relative.T, np.eye(3), atol=ROTATION)
    if not (rotates and np.linalg.det(relative) > 0.0):
        raise InputError(f"{whose}: relative is a (3, 3) rotation, not {described(joint.relative)}")
    length = not_negative(joint.length, f"{whose}: length")
    if kind == "distance" and not 0.0 < length <= LARGEST:
        raise InputError(f"{whose}: length must be positive, at most {LARGEST:g}, not {length:g}")
    unlimited = np.array_equal(to_numpy(joint.limits, f"{whose}: limits"), (-np.inf, np.inf))
    return replace(
        joint,
        anchor_a=_place(joint.anchor_a, f"{whose}: anchor_a"),
        anchor_b=_place(joint.anchor_b, f"{whose}: anchor_b"),
        axis_a=_axis(joint.axis_a, f"{whose}: axis_a"),
        axis_b=_axis(joint.axis_b, f"{whose}: axis_b"),
        relative=relative,
        limits=_limits(None if unlimited else joint.limits, kind, whose),
        length=length,
    )


def checked_motor(joint: WorldJoint, speed: Any, force: Any) -> tuple[float, float, bool]:
    """What drives a joint: speed, the largest force or torque, and whether it is a force alone.

    Args:
        speed: of the coordinate [rad/s or m/s]; None means none is sought.
        force: largest force or torque [N or N m]; without a speed it always acts; None means any.
    """
    whose = f"joint {joint.name!r}"
    if joint.kind not in WITH_COORDINATE:
        raise InputError(f"{whose}: a {joint.kind} cannot be driven; a hinge or a slider can")
    if speed is None:
        given = number(0.0 if force is None else force, f"{whose}: force")
        if not np.isfinite(given):
            raise InputError(f"{whose}: force must be finite, not {described(force)}")
        return 0.0, given, True
    wanted = number(speed, f"{whose}: speed")
    if not np.isfinite(wanted):
        raise InputError(f"{whose}: speed must be finite, not {described(speed)}")
    if abs(wanted) > LARGEST:
        raise InputError(f"{whose}: a speed of {wanted:g} is more than {LARGEST:g}, the largest there may be")
    return wanted, np.inf if force is None else not_negative(force, f"{whose}: force"), False


def _check_kind(kind: Any, whose: str) -> None:
    if kind not in get_args(JointKind):
        raise InputError(f"{whose}: a joint is {', '.join(get_args(JointKind))}, not {described(kind)}")


def _direction(given: Any, what: str) -> np.ndarray:
    """The unit vector along what is given."""
    direction = _three(given, what)
    largest = np.abs(direction).max()
    if not largest > 0.0:
        raise InputError(f"{what} has no direction")
    direction = direction / largest  # whose squares neither overflow nor vanish
    return direction / np.linalg.norm(direction)


def _axis(given: Any, what: str) -> np.ndarray:
    """A unit vector: what is given, to the last bit, where it is one."""
    unit = _direction(given, what)
    given = _three(given, what)
    return given if np.abs(given - unit).max() < UNIT else unit


def _three(given: Any, what: str) -> np.ndarray:
    if given is None:
        raise InputError(f"{what} is missing: three numbers")
    array = to_numpy(given, what)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise InputError(f"{what} must be three finite numbers, not {described(given)}")
    return array


def _place(given: Any, what: str) -> np.ndarray:
    point = _three(given, what)
    if np.abs(point).max() > LARGEST:
        raise InputError(f"{what} is {np.abs(point).max():g} m away, more than {LARGEST:g}, the farthest it may be")
    return point


def _limits(limits: Any, kind: str, whose: str, *, at: float | None = None) -> tuple[float, float]:
    """Least and largest coordinate, checked; `at` is where the joint is, if that has to be between them."""
    if limits is None:
        return -np.inf, np.inf
    if kind not in WITH_COORDINATE:
        raise InputError(f"{whose}: a {kind} has no coordinate to limit")
    array = to_numpy(limits, f"{whose}: limits")
    if array.shape != (2,) or np.isnan(array).any():
        raise InputError(f"{whose}: limits are a least and a largest coordinate, not {described(limits)}")
    if not array[0] <= array[1]:
        raise InputError(f"{whose}: the least coordinate {array[0]:g} is above the largest {array[1]:g}")
    largest = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    if largest > LARGEST:
        raise InputError(f"{whose}: a limit of {largest:g} is more than {LARGEST:g}; inf means that there is none")
    if at is not None and not array[0] <= at <= array[1]:
        raise InputError(f"{whose}: it is at {at:g} now, outside its limits {array[0]:g} to {array[1]:g}")
    return float(array[0]), float(array[1])
