"""Devices that tell how fast, not where: keys, sticks and caps, whose deflection is a velocity.

A deflection from -1 to 1 on each of six axes, less a dead zone, is a share of the largest speed; it comes and goes
within some hundredths of a second, so that keys do not jerk. The pose is the integral.

Known as: rate control (Zhai 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.hand.devices.device import ALL_AXES, DeviceState
from tangere.hand.devices.handle_motion import orthonormal, turn_of
from tangere.motion import as_poses
from tangere.runtime import InputError, fraction, not_negative, positive

#: The longest time between two readings that is integrated: who was away does not find the part elsewhere [s].
_LONGEST = 0.1


class RateDevice:
    """What devices that tell velocities have in common; a subclass says how far it is deflected.

    Args:
        speed: at full deflection [m/s].
        spin: at full deflection [rad/s].
        dead: share of the deflection that is nothing.
        easing: how long a velocity takes to come and go [s].
        start: (4, 4), where the handle is at first.
    """

    measured_axes: tuple[bool, ...] = ALL_AXES
    forced_axes: tuple[bool, ...] = ALL_AXES  # what it cannot push with a picture shows

    def __init__(
        self,
        *,
        speed: float = 0.1,
        spin: float = 0.8,
        dead: float = 0.08,
        easing: float = 0.05,
        start: Any = None,
    ) -> None:
        self._largest = np.repeat([positive(speed, "speed"), positive(spin, "spin")], 3)
        self._dead, self._easing = fraction(dead, "dead"), not_negative(easing, "easing")
        if self._dead == 1.0:
            raise InputError("dead must be below 1: nothing would be left")
        self._pose = np.eye(4) if start is None else as_poses(start, "start").reshape(4, 4).copy()
        self._velocity = np.zeros(6)
        self._frame = np.eye(3)
        self._time: float | None = None

    def look_from(self, axes: Any) -> None:
        """Let its axes be those of a camera: columns (3, 3) right, up and towards the eye, in the world."""
        self._frame = np.asarray(axes, float).reshape(3, 3)

    def deflection(self) -> tuple[np.ndarray, int]:
        """(6,) from -1 to 1 along and about its axes, and the buttons."""
        raise NotImplementedError

    def read(self, time: float) -> DeviceState:
        """Where the handle has come to."""
        deflected, buttons = self.deflection()
        wanted = _shaped(deflected, self._dead) * self._largest
        frame = self._frame
        wanted = np.concatenate([frame @ wanted[:3], frame @ wanted[3:]])
        span = 0.0 if self._time is None else min(max(time - self._time, 0.0), _LONGEST)
        self._time = time
        if span > 0.0:
            kept = np.exp(-span / self._easing) if self._easing else 0.0
            self._velocity = wanted + kept * (self._velocity - wanted)
            pose = np.eye(4)
            pose[:3, 3] = self._pose[:3, 3] + span * self._velocity[:3]
            pose[:3, :3] = orthonormal(turn_of(span * self._velocity[3:]) @ self._pose[:3, :3])
            self._pose = pose
        return DeviceState(self._pose.copy(), self._velocity.copy(), buttons)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """It cannot push: pictures show an arrow."""

    def close(self) -> None:
        """There is nothing to let go of."""


def _shaped(deflected: np.ndarray, dead: float) -> np.ndarray:
    """Nothing within the dead zone, from there on up to all."""
    size = np.clip(np.abs(deflected), 0.0, 1.0)
    return np.sign(deflected) * np.maximum(size - dead, 0.0) / (1.0 - dead)
