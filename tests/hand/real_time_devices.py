"""Devices for processes of tests: a new process imports them by name."""

from __future__ import annotations

import numpy as np

from tangere.dynamics import Body, World
from tangere.hand import DeviceLostError, DeviceState, SimulatedDevice
from tangere.shape import generate


def above() -> np.ndarray:
    """Where the cube is at first: a centimetre over the table."""
    pose = np.eye(4)
    pose[2, 3] = 0.11
    return pose


def cube_on_table() -> World:
    box = generate.box((0.1, 0.1, 0.1))
    return World([Body(box, name="table", fixed=True), Body(box, above(), name="cube")], device="cpu")


def press(time: float) -> np.ndarray:
    """Down by three centimetres within half a second."""
    pose = above()
    pose[2, 3] -= 0.03 * min(2.0 * time, 1.0)
    return pose


def pressing() -> SimulatedDevice:
    return SimulatedDevice(press)


def in_and_out(time: float) -> np.ndarray:
    """Pushed by 30 mm within a second, and drawn back by 15 mm."""
    pose = np.eye(4)
    pose[2, 3] = -0.03 * min(time, 1.0) + 0.03 * np.clip(time - 1.0, 0.0, 0.5)
    return pose


def in_and_out_device() -> SimulatedDevice:
    return SimulatedDevice(in_and_out)


class Failing:
    """A device that is lost after some readings."""

    measured_axes = forced_axes = (True,) * 6

    def __init__(self, readings: int) -> None:
        self._left = readings

    def read(self, time: float) -> DeviceState:
        self._left -= 1
        if self._left < 0:
            raise DeviceLostError("the cable was pulled")
        return DeviceState(press(time))

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        pass

    def close(self) -> None:
        pass


def broken() -> Failing:
    raise DeviceLostError("no such device is plugged in")
