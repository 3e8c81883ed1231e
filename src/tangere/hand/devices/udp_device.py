"""A device whose driver is another process, which talks by UDP on this machine.

Question: where is a device whose driver we do not have?
Method:   its driver, in any language, sends a packet for each state (`udp_packets`) to a port here; forces go back to
          where these come from. Of what has arrived the newest counts. Who speaks first is the driver; others are not
          heard until it has been silent for the time-out. Packets that cannot be true are counted and left out.
Sound:    a driver that is silent for the time-out, or says nothing but nonsense for so long, raises `DeviceLostError`:
          a stale pose is never told as a new one.
"""

from __future__ import annotations

import select
import socket
import time as system_time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.hand.devices.device import ALL_AXES, DeviceLostError, DeviceState, checked_axes
from tangere.hand.devices.handle_motion import turn_of, vector_of_turn
from tangere.hand.devices.udp_packets import ForcePacket, StatePacket
from tangere.motion import as_poses, quaternions_of, rotations_of
from tangere.runtime import InputError, not_negative, positive, to_numpy, whole

_MOST = 2048  #: bytes of a packet that are looked at
_AT_ONCE = 256  #: packets that one reading takes, so that a flood does not hold a loop up


class UdpDevice:
    """A driver in another process as a device.

    Args:
        port: to listen on, on the loopback interface; 0 takes a free one, which `port` tells.
        timeout: how long a driver may be silent [s].

    Example:
        >>> import numpy as np
        >>> from tangere.hand import UdpDevice, UdpDriver
        >>> device = UdpDevice(0)
        >>> driver = UdpDriver(device.port)
        >>> driver.send(np.eye(4))
        >>> device.wait(1.0)
        >>> device.write(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> driver.force(1.0).force.tolist()
        [0.0, 0.0, 2.0]
        >>> driver.close(), device.close()
        (None, None)
    """

    def __init__(self, port: int, *, timeout: float = 0.1) -> None:
        self.timeout = positive(timeout, "timeout")
        self.measured_axes: tuple[bool, ...] = ALL_AXES
        self.forced_axes: tuple[bool, ...] = ALL_AXES
        self.refused: Counter[str] = Counter()  #: packets that were left out, by why
        self.received = 0  #: packets that were states
        self._socket = _listening(port)
        self._driver: Any = None
        self._state: StatePacket | None = None
        self._heard, self._sent, self._loop_time = -np.inf, 0, 0.0
        self._pose = np.eye(4)
        self._first = np.eye(4)  # where the driver said first that it is

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._socket.getsockname()[1]

    def wait(self, seconds: float) -> None:
        """Wait for the first packet of a driver; raises `DeviceLostError` where none comes in so many seconds."""
        end = system_time.monotonic() + not_negative(seconds, "seconds")
        while self._state is None:
            left = end - system_time.monotonic()
            if left <= 0.0:
                raise DeviceLostError(f"no driver has spoken to UDP port {self.port} for {seconds:g} s{self._faults()}")
            select.select([self._socket], [], [], left)
            self._take()

    def read(self, time: float) -> DeviceState:
        """Where its driver says that it is."""
        self._loop_time = time
        self._take()
        silent = system_time.monotonic() - self._heard
        if self._state is None:
            raise DeviceLostError(f"no driver has spoken to UDP port {self.port} yet{self._faults()}")
        if silent > self.timeout:
            raise DeviceLostError(f"the driver at UDP port {self.port} is silent for {silent:.2g} s{self._faults()}")
        return DeviceState(self._pose.copy(), self._state.velocity.copy(), self._state.buttons)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Tell the driver; a driver that is not there hears nothing."""
        if self._driver is None:
            return
        self._sent += 1
        axes = np.array(self.forced_axes, float)
        answers = 0 if self._state is None else self._state.number
        packet = ForcePacket(axes[:3] * force, axes[3:] * torque, self._sent, answers, self._loop_time)
        try:
            self._socket.sendto(packet.packed(), self._driver)
        except (BlockingIOError, ConnectionError):
            self.refused["not sent"] += 1

    def close(self) -> None:
        """Tell the driver to push no more, and let go; may be called twice."""
        if self._socket.fileno() >= 0:
            self.write(np.zeros(3), np.zeros(3))
            self._socket.close()

    def _take(self) -> None:
        """Read what has arrived; the newest counts."""
        newest = None
        for _ in range(_AT_ONCE):
            try:
                packet, sender = self._socket.recvfrom(_MOST)
            except (BlockingIOError, ConnectionError):
                break
            now = system_time.monotonic()
            if self._driver is not None and sender != self._driver:
                if now - self._heard <= self.timeout:
                    self.refused["stranger"] += 1
                    continue
                newest = self._state = None  # another driver, whose numbers begin anew
            told = StatePacket.unpacked(packet)
            if isinstance(told, str):
                self.refused[told] += 1
                continue
            before = newest or self._state
            # numbers go round; half of them are ahead
            if before is not None and not 0 < (told.number - before.number) & 0xFFFFFFFF < 0x80000000:
                self.refused["old"] += 1
                continue
            newest, self._driver, self._heard = told, sender, now
            self.received += 1
        if newest is not None:
            quaternion = newest.quaternion / np.linalg.norm(newest.quaternion)
            pose = np.eye(4)
            pose[:3, :3] = rotations_of(quaternion[None], "quaternion")[0]
            pose[:3, 3] = newest.position
            if self._state is None:
                self._first = pose
            self._pose = _measured(pose, self._first, newest.measured_axes)
            axes = np.array(newest.measured_axes, float)
            self._state = replace(newest, velocity=axes * newest.velocity)
            self.measured_axes, self.forced_axes = newest.measured_axes, newest.forced_axes

    def _faults(self) -> str:
        told = ", ".join(f"{number} {why}" for why, number in self.refused.items())
        return f" ({told})" if told else ""


class UdpDriver:
    """The other end: what a driver does, in Python; a driver in another language does the same.

    Args:
        port: of the device.
        measured_axes, forced_axes: which of the six axes it reads, and on which it can push.
    """

    def __init__(
        self, port: int, *, measured_axes: tuple[bool, ...] = ALL_AXES, forced_axes: tuple[bool, ...] = ALL_AXES
    ) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._address = ("127.0.0.1", _checked_port(port, 1))
        self._axes = checked_axes(measured_axes), checked_axes(forced_axes)
        self._number = 0

    def send(self, pose: np.ndarray, velocity: np.ndarray | None = None, buttons: int = 0) -> None:
        """Say where the device is: (4, 4), its velocity and spin (6,), its buttons."""
        where = as_poses(pose, "pose")
        if where.shape != (4, 4):
            raise InputError(f"pose must have shape (4, 4), not {where.shape}")
        speed = np.zeros(6) if velocity is None else to_numpy(velocity, "velocity")
        if speed.shape != (6,):
            raise InputError(f"velocity must be six numbers, of the origin and the spin, not of shape {speed.shape}")
        self._number += 1
        packet = StatePacket(
            where[:3, 3], quaternions_of(where[None, :3, :3])[0], speed, whole(buttons, "buttons"), self._number,
            system_time.monotonic(), *self._axes,
        )  # fmt: skip
        self._socket.sendto(packet.packed(), self._address)

    def send_bytes(self, packet: bytes) -> None:
        """Send what was packed elsewhere."""
        self._socket.sendto(packet, self._address)

    def force(self, seconds: float = 0.0) -> ForcePacket | None:
        """The newest force that has come back, waiting so long for one; None where there is none."""
        newest: ForcePacket | None = None
        ready = select.select([self._socket], [], [], seconds)[0]
        while ready:
            told = ForcePacket.unpacked(self._socket.recv(_MOST))
            newest = told if isinstance(told, ForcePacket) else newest
            ready = select.select([self._socket], [], [], 0.0)[0]
        return newest

    def close(self) -> None:
        """Say nothing any more; may be called twice."""
        self._socket.close()


def _measured(pose: np.ndarray, first: np.ndarray, axes: tuple[bool, ...]) -> np.ndarray:
    """A pose that stands still, as it was at first, along and about the axes that are not measured."""
    if all(axes):
        return pose
    seen, there = np.array(axes), first.copy()
    there[:3, 3] = np.where(seen[:3], pose[:3, 3], first[:3, 3])
    if seen[3:].any():
        turn = np.where(seen[3:], vector_of_turn(pose[:3, :3] @ first[:3, :3].T), 0.0)
        there[:3, :3] = turn_of(turn) @ first[:3, :3]
    return there


def _checked_port(port: int, least: int = 0) -> int:
    number = whole(port, "port", least)
    if number > 65535:
        raise InputError(f"port must be at most 65535, not {number}")
    return number


def _listening(port: int) -> socket.socket:
    """A socket on the loopback interface that does not wait."""
    number = _checked_port(port)
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.bind(("127.0.0.1", number))
    except OSError as error:
        made.close()
        raise InputError(f"port: {port} cannot be listened on: {error}") from error
    made.setblocking(False)
    return made
