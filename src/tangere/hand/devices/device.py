"""What is a device to the rest: something with a pose that is read, and a force that is written.

A device of 3, 5 or 6 degrees of freedom says by two masks which of the six axes (x, y, z, then turns about x, y, z) it
measures and on which it can push back. Those it does not measure stand still in what it reads; forces on axes that it
cannot move are left out before they are written.

Known as: the device server of haptic rendering (Redon 2002, section 6.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tangere.runtime import InputError, TangereError

#: A device that measures, or pushes on, all six axes.
ALL_AXES = (True,) * 6


class DeviceLostError(TangereError):
    """A device does not answer any more."""


@dataclass(frozen=True, eq=False)
class DeviceState:
    """Where a device is at an instant.

    Args:
        pose: (4, 4) of its handle in the world [m].
        velocity: (6,) of the handle's origin [m/s], and its spin [rad/s].
        buttons: one bit for each button that is held.
    """

    pose: np.ndarray = field(default_factory=lambda: np.eye(4))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(6))
    buttons: int = 0


class Device(Protocol):
    """What every device does; `close` may be called twice."""

    measured_axes: tuple[bool, ...]  #: which of the six axes it reads
    forced_axes: tuple[bool, ...]  #: on which of the six axes it can push

    def read(self, time: float) -> DeviceState:
        """Where it is at `time` [s] of whoever asks; raises `DeviceLostError` where it does not answer."""
        ...

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Push with a force [N] and a torque [N m] about the handle's origin, in the world's axes."""
        ...

    def close(self) -> None:
        """Let go of it, with no force left on it."""
        ...


def check_device(device: Any) -> None:
    """Raise unless it does what every device does."""
    missing = [name for name in ("read", "write", "close") if not callable(getattr(device, name, None))]
    missing += [name for name in ("measured_axes", "forced_axes") if not hasattr(device, name)]
    if missing:
        kind = type(device).__name__
        raise InputError(f"device must be a device, as SimulatedDevice is one, but {kind} has no {missing[0]}")


def checked_axes(axes: Any) -> tuple[bool, ...]:
    """Six truth values."""
    values = tuple(axes) if np.ndim(axes) == 1 else ()
    if len(values) != 6 or not all(value in (False, True) for value in values):
        raise InputError(f"axes must be six truth values, x y z and the turns about them, not {axes!r}")
    return tuple(bool(value) for value in values)
