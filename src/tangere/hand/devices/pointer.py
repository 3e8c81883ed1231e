"""The pointer of a picture as a device: rays through pixels become ways in a plane, or in depth, or turns.

Question: a person has pressed on a point of a part and drags; where is the part to go?
Method:   dragging moves the point that was pressed in the plane through it that faces the eye. With the wheel, or with
          the modifier for depth, it moves along the direction of sight. With the modifier for turns dragging across
          turns the part about that point and the axis up, dragging down about the axis right, the wheel about the
          direction of sight. A gizmo gives a rotation outright. The handle follows within a frame and without a jump
          (`handle_motion`).
Known as: direct manipulation in the image plane; two-axis valuator (Chen, Mountford and Sellen 1988).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tangere.hand.devices.device import ALL_AXES, DeviceState
from tangere.hand.devices.handle_motion import FollowingHandle, orthonormal, turn_of
from tangere.motion import as_poses
from tangere.runtime import InputError, three_numbers

DragKind = Literal["plane", "depth", "turn"]
#: Of the distance to the eye: how far a notch of the wheel moves; and how far it turns [rad].
_NOTCH, _ROLL = 0.02, np.deg2rad(5.0)
#: Dragging by the height of the picture turns by so much [rad].
_HALF_TURN = np.pi


@dataclass(frozen=True, eq=False)
class Sight:
    """A camera.

    Args:
        eye: (3,) [m].
        axes: (3, 3), columns right, up and towards the eye.
        half_height: tangent of half the opening from top to bottom.
        aspect: width by height of the picture.
    """

    eye: np.ndarray
    axes: np.ndarray
    half_height: float
    aspect: float = 1.0

    def ray(self, x: float, y: float) -> np.ndarray:
        """Direction (3,) through a point of the picture, 0 to 1 from the left and from the top; its depth is 1."""
        right, up, back = self.axes.T
        across = (2.0 * x - 1.0) * self.half_height * self.aspect
        return across * right + (1.0 - 2.0 * y) * self.half_height * up - back


class PointerDevice:
    """The pointer of a picture as a device. `press`, `drag` and `release` are what a page tells it.

    The part is held while the pointer is pressed; else the first button is told, which is the clutch of a hand, so that
    it stays where it is. The device tells motions: it stands still when another point is pressed, wherever that is.

    Args:
        settling: how long the handle takes to follow [s].
    """

    measured_axes = ALL_AXES
    forced_axes = ALL_AXES  # what it cannot push with a picture shows

    def __init__(self, *, settling: float = 0.016) -> None:
        self._handle = FollowingHandle(settling=settling)
        self._target = self._taken = np.eye(4)  # of the part: where it is to go, and where it was taken
        self._pressed: _Press | None = None
        self._from: tuple[np.ndarray, np.ndarray] | None = None  # part and device when the part was taken

    @property
    def pressed(self) -> bool:
        """Whether the part is held."""
        return self._pressed is not None

    @property
    def point(self) -> np.ndarray | None:
        """Where the point that was pressed is to be now, (3,) [m]."""
        press = self._pressed
        return None if press is None else self._target[:3, :3] @ press.local + self._target[:3, 3]

    def press(self, pose: Any, point: Any, sight: Sight, x: float, y: float, kind: DragKind = "plane") -> None:
        """Take a part.

        Args:
            pose: (4, 4) of the handle, `hand.handle`: it turns about the point that was pressed.
            point: (3,) that was pressed [m].
            sight: the camera.
            x, y: the pointer, 0 to 1 from the left and from the top of the picture.
            kind: what dragging does: "plane", "depth" or "turn".
        """
        if kind not in ("plane", "depth", "turn"):
            raise InputError(f"kind must be 'plane', 'depth' or 'turn', not {kind!r}")
        given, place = as_poses(pose, "pose").reshape(4, 4).copy(), three_numbers(point, "point")
        if self._pressed is None:  # else the kind has changed, and the part is held already
            self._target, self._taken, self._from = given, given.copy(), None
        start = self._target.copy()
        local = start[:3, :3].T @ (place - start[:3, 3])
        self._pressed = _Press(start, place, local, sight, float(x), float(y), kind)

    def drag(self, x: float, y: float, notches: float = 0.0) -> None:
        """The pointer is there now, and the wheel has been turned by so many notches since it was pressed."""
        press = self._pressed
        if press is None or not np.isfinite([x, y, notches]).all():
            return
        self._target = press.target(x, y, notches)

    def turn_to(self, rotation: Any) -> None:
        """A gizmo says how the part is to be turned (3, 3), about the point that was pressed."""
        press, point = self._pressed, self.point
        if press is None or point is None:
            return
        turned, target = np.asarray(rotation, float).reshape(3, 3), np.eye(4)
        target[:3, :3] = orthonormal(turned)
        target[:3, 3] = point - target[:3, :3] @ press.local
        self._target = target

    def release(self) -> None:
        """Let go."""
        self._pressed = None

    def read(self, time: float) -> DeviceState:
        """Where the handle has come to; the first button while nothing is pressed."""
        pressed, handle = self._pressed is not None, self._handle
        if not pressed or self._from is None:
            handle.place(handle.pose)  # where it is, at rest: the hand takes the part here
            handle.follow(handle.pose, time)
            if pressed:
                self._from = self._taken, handle.pose.copy()
        else:
            part, device = self._from
            wanted = np.eye(4)
            wanted[:3, :3] = self._target[:3, :3] @ part[:3, :3].T @ device[:3, :3]
            wanted[:3, 3] = device[:3, 3] + self._target[:3, 3] - part[:3, 3]
            handle.follow(wanted, time)
        return DeviceState(handle.pose.copy(), handle.velocity.copy(), 0 if pressed else 1)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """It cannot push: pictures show an arrow."""

    def close(self) -> None:
        """Let go."""
        self.release()


@dataclass(frozen=True, eq=False)
class _Press:
    """What was when the pointer was pressed."""

    pose: np.ndarray
    point: np.ndarray
    local: np.ndarray
    sight: Sight
    x: float
    y: float
    kind: DragKind

    def target(self, x: float, y: float, notches: float) -> np.ndarray:
        """Where the part is to be, (4, 4)."""
        sight, target = self.sight, self.pose.copy()
        depth = -float((self.point - sight.eye) @ sight.axes[:, 2])
        if self.kind == "turn":
            # Across turns about up, down about right, the wheel about the direction of sight.
            amount = np.array([y - self.y, sight.aspect * (x - self.x), 0.0]) * _HALF_TURN
            amount[2] = -_ROLL * notches
            target[:3, :3] = turn_of(sight.axes @ amount) @ self.pose[:3, :3]
            target[:3, 3] = self.point - target[:3, :3] @ self.local
            return target
        if self.kind == "depth":
            target[:3, 3] -= 2.0 * (self.y - y) * sight.half_height * depth * sight.axes[:, 2]
        else:
            target[:3, 3] += depth * (sight.ray(x, y) - sight.ray(self.x, self.y))
        towards = sight.ray(x, y) if self.kind == "plane" else -sight.axes[:, 2]
        target[:3, 3] += _NOTCH * depth * notches * towards
        return target
