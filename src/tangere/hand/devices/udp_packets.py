"""Packets by which a driver in another process is a device, one way the state, the other way the force.

All numbers are little-endian, without gaps; lengths in metres, seconds, newtons and radians.

    state, driver to tangere, 136 bytes           force, tangere to driver, 72 bytes
      0  4 bytes   "TGHD"                           0  4 bytes   "TGHD"
      4  uint8     version, 1                       4  uint8     version, 1
      5  uint8     kind, 1                          5  uint8     kind, 2
      6  uint8     axes that are measured           6  uint16    0
      7  uint8     axes that can push               8  uint32    number, rising
      8  uint32    number, rising                  12  uint32    number of the state that it answers
     12  uint32    buttons                         16  float64   time of tangere [s]
     16  float64   time of the driver [s]          24  float64   force, x y z [N]
     24  float64   position, x y z                 48  float64   torque, x y z [N m]
     48  float64   quaternion, w x y z
     80  float64   velocity, x y z
    104  float64   spin, x y z
    128  float64   reserved, 0

Bits of axes: 1 is x, 2 is y, 4 is z, 8, 16 and 32 are turns about these.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from tangere.hand.devices.device import ALL_AXES

_MAGIC, _VERSION, _STATE, _FORCE = b"TGHD", 1, 1, 2
_HEAD = struct.Struct("<4sBB")
_STATE_FORM = struct.Struct("<4sBBBBII15d")
_FORCE_FORM = struct.Struct("<4sBBHIId6d")
#: How far from 1 the length of a quaternion may be.
_OFF = 1e-3


@dataclass(frozen=True, eq=False)
class StatePacket:
    """What a driver tells.

    Args:
        position: (3,) [m].
        quaternion: (4,) w x y z.
        velocity: (6,) of the handle's origin [m/s], and its spin [rad/s].
        buttons: one bit for each that is held.
        number: rises with each packet.
        time: of the driver [s].
        measured_axes, forced_axes: which of the six axes it reads, and on which it can push.
    """

    position: np.ndarray
    quaternion: np.ndarray
    velocity: np.ndarray
    buttons: int = 0
    number: int = 0
    time: float = 0.0
    measured_axes: tuple[bool, ...] = ALL_AXES
    forced_axes: tuple[bool, ...] = ALL_AXES

    def packed(self) -> bytes:
        """As bytes."""
        return _STATE_FORM.pack(
            _MAGIC, _VERSION, _STATE, _bits(self.measured_axes), _bits(self.forced_axes), self.number & 0xFFFFFFFF,
            self.buttons & 0xFFFFFFFF, self.time, *self.position, *self.quaternion, *self.velocity, 0.0,
        )  # fmt: skip

    @classmethod
    def unpacked(cls, packet: bytes) -> StatePacket | str:
        """From bytes; or why they are no state, in a word or two."""
        if len(packet) != _STATE_FORM.size:
            return "size"
        if _HEAD.unpack_from(packet) != (_MAGIC, _VERSION, _STATE):
            return "head"
        _, _, _, measured, forced, number, buttons, time, *values, _ = _STATE_FORM.unpack(packet)
        numbers = np.array(values)
        if not (np.isfinite(numbers).all() and math.isfinite(time)):
            return "not finite"
        if abs(float(np.linalg.norm(numbers[3:7])) - 1.0) > _OFF:
            return "quaternion"
        return cls(numbers[:3], numbers[3:7], numbers[7:], buttons, number, time, _axes(measured), _axes(forced))


@dataclass(frozen=True, eq=False)
class ForcePacket:
    """What is told back.

    Args:
        force: (3,) [N].
        torque: (3,) about the handle's origin [N m].
        number: rises with each packet.
        answers: number of the newest state that was known.
        time: of the loop [s].
    """

    force: np.ndarray
    torque: np.ndarray
    number: int = 0
    answers: int = 0
    time: float = 0.0

    def packed(self) -> bytes:
        """As bytes."""
        return _FORCE_FORM.pack(
            _MAGIC, _VERSION, _FORCE, 0, self.number & 0xFFFFFFFF, self.answers & 0xFFFFFFFF, self.time, *self.force,
            *self.torque,
        )  # fmt: skip

    @classmethod
    def unpacked(cls, packet: bytes) -> ForcePacket | str:
        """From bytes; or why they are no force, in a word or two."""
        if len(packet) != _FORCE_FORM.size:
            return "size"
        if _HEAD.unpack_from(packet) != (_MAGIC, _VERSION, _FORCE):
            return "head"
        _, _, _, _, number, answers, time, *values = _FORCE_FORM.unpack(packet)
        if not np.isfinite(values).all():
            return "not finite"
        return cls(np.array(values[:3]), np.array(values[3:]), number, answers, time)


def _bits(axes: tuple[bool, ...]) -> int:
    return sum(1 << place for place, there in enumerate(axes) if there)


def _axes(bits: int) -> tuple[bool, ...]:
    return tuple(bool(bits >> place & 1) for place in range(6))
