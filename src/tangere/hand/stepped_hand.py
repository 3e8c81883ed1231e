"""A hand that holds something in a simulation: the same fast loop, and a step of the simulation is the slow tick.

Question: what does a hand feel that moves a needle or a tool among bodies that yield?
Method:   in every slow tick the simulation makes one step with what is held where the fast loop has it then. What the
          bodies do to it is the load that pushes it until the next step, and less for each way from there.
Sound:    what a device told before a slow tick is what that step begins with: no frame is waited for.
Known as: multi-rate haptic rendering with a local model (Adachi et al. 1995; Cavusoglu and Tendick 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from tangere.hand.coupling import FADING, TANK, ContactRowSet, FastLoop, ForceLaw, Metaphor, coupling_settings
from tangere.hand.devices.device import Device, DeviceState, check_device
from tangere.hand.hand import Hand, Pacer
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, UnsupportedError, not_negative, positive, whole


class SimulationSteps(Protocol):
    """Steps of a simulation as a slow loop."""

    grip: np.ndarray  #: (3,) the point that follows the device, in the frame of what is held [m]
    start: np.ndarray  #: (3,) where it is at first, in `frame` [m]
    frame: np.ndarray  #: (3, 3) axes, as columns, that the fast loop counts by
    security: float  #: how far contacts are kept apart [m]
    asked: int  #: walks that had to ask
    stopped: int  #: walks that were stopped

    @property
    def pose(self) -> np.ndarray: ...

    @property
    def contacts(self) -> Contacts: ...

    @property
    def clearance(self) -> float: ...

    def look(self, proxy: np.ndarray) -> ContactRowSet: ...

    def rows(self) -> ContactRowSet: ...


class SteppedHand(Hand):
    """A device that holds something in a simulation. Everything else is as with `Hand`.

    Args:
        slow: makes the steps.
        device: what the hand holds.
        dt: of a step [s].
        free: six truth values: along and about which axes it can go.
        radius: no point of it is farther from its grip [m].
        stiffness, damping, turn_stiffness, turn_damping, mass, metaphor, law, scale, most_force, most_change: of the
            coupling, as with `Hand`.
        fast_rate, tank, fading, most_jump, delay, clutch_buttons: as with `Hand`.
    """

    def __init__(
        self,
        slow: SimulationSteps,
        device: Device,
        dt: float,
        free: Sequence[bool],
        radius: float,
        *,
        stiffness: float = 2000.0,
        damping: float | None = None,
        turn_stiffness: float | None = None,
        turn_damping: float | None = None,
        mass: float = 0.0,
        metaphor: Metaphor = "spring",
        law: ForceLaw = "coupling",
        scale: float = 1.0,
        most_force: float | None = None,
        most_change: float = 300.0,
        fast_rate: float = 1000.0,
        tank: float | None = TANK,
        fading: float = FADING,
        most_jump: float = 0.1,
        delay: float = 0.0,
        clutch_buttons: int = 1,
    ) -> None:
        check_device(device)
        self.device = device
        self.fast_rate, self.slow_rate = positive(fast_rate, "fast_rate"), 1.0 / dt
        self._per_look = round(self.fast_rate * dt)
        if self._per_look < 1 or abs(self._per_look / self.fast_rate - dt) > 1e-6 * dt:
            told = f"{dt:g} s, the step of the simulation, must be a whole number of ticks"
            raise InputError(f"fast_rate: {told}, not of {fast_rate:g} in a second")
        self._slow: Any = slow
        turned = self.device_maker(lambda: device)()
        settings = coupling_settings(
            self.fast_rate, turned.forced_axes, free, radius, stiffness=stiffness, damping=damping,
            turn_stiffness=turn_stiffness, turn_damping=turn_damping, mass=mass, metaphor=metaphor, law=law,
            scale=scale, most_force=most_force, most_change=most_change, tank=tank, fading=fading,
            most_jump=most_jump, delay=delay,
        )  # fmt: skip
        self._fast = FastLoop(
            turned,
            settings,
            slow.start,
            np.eye(3),
            level=np.inf if tank is None else not_negative(tank, "tank"),
            ticks_per_look=self._per_look,
            clutch_buttons=whole(clutch_buttons, "clutch_buttons"),
        )
        self._fast.put(slow.rows())
        self._slow_ticks = 0
        self._pacer: Pacer | None = None

    def device_maker(self, make_device: Callable[[], Device]) -> Callable[[], Device]:
        """What gives a device to the fast loop, which counts by axes of its own."""
        return partial(turned_device, make_device, self._slow.frame)

    def place(self, pose: Any) -> None:
        """What is held in a simulation stays where its steps have brought it."""
        raise UnsupportedError("place: what is held in a simulation is where its steps have brought it")

    @property
    def force(self) -> np.ndarray:
        """(3,) on the device [N]."""
        return self._slow.frame @ self._fast.force[:3]

    @property
    def torque(self) -> np.ndarray:
        """(3,) on the device [N m]."""
        return self._slow.frame @ self._fast.force[3:]

    def _frame(self, name: str) -> np.ndarray:
        frame, axes, pose = self._fast.state[name], self._slow.frame, np.eye(4)
        pose[:3, :3] = axes @ frame["rotation"]
        pose[:3, 3] = axes @ frame["position"] - pose[:3, :3] @ self._slow.grip
        return pose


def turned_device(make_device: Callable[[], Device], frame: np.ndarray) -> Device:
    """A device as it is seen by other axes (3, 3), columns; itself where they are those of the world."""
    device = make_device()
    return device if np.array_equal(frame, np.eye(3)) else _TurnedDevice(device, frame)


class _TurnedDevice:
    """A device as it is seen in another frame."""

    def __init__(self, device: Device, frame: np.ndarray) -> None:
        self._device, self._frame = device, frame

    @property
    def measured_axes(self) -> tuple[bool, ...]:
        return self._device.measured_axes

    @property
    def forced_axes(self) -> tuple[bool, ...]:
        return (True,) * 6  # which of the world's are is known to `write`

    def read(self, time: float) -> DeviceState:
        told, turn = self._device.read(time), self._frame.T
        pose, velocity = np.eye(4), np.asarray(told.velocity, float)
        pose[:3, :3], pose[:3, 3] = turn @ told.pose[:3, :3] @ self._frame, turn @ told.pose[:3, 3]
        return DeviceState(pose, np.concatenate([turn @ velocity[:3], turn @ velocity[3:]]), told.buttons)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        axes = np.array(self._device.forced_axes, float)
        self._device.write(axes[:3] * (self._frame @ force), axes[3:] * (self._frame @ torque))

    def close(self) -> None:
        self._device.close()
