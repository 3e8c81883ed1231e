"""The fast loop: reads a device, runs the kernel of a tick, writes the force; nothing else.

Arrays and the launch are prepared: a tick costs some microseconds. It runs on the CPU, wherever the world computes: a
kernel of one thread gains nothing elsewhere, and the way there and back takes longer than the tick.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.solver import vec6d
from tangere.hand.coupling.fast_tick import (
    JUMP,
    LOST,
    MOST_DELAY,
    NOT_FINITE,
    SILENT,
    WAITING,
    CoupledRows,
    CouplingSettings,
    CouplingState,
    DeviceRecord,
    tick,
)
from tangere.hand.coupling.rows import ContactRowSet
from tangere.hand.devices.device import Device, DeviceLostError
from tangere.runtime import NonCopyable, PreparedLaunch

#: Why a device was let go, by the word of the kernel.
REASONS = {
    SILENT: "it did not answer",
    NOT_FINITE: "it told a pose or a velocity that is none",
    JUMP: "it jumped",
}
#: Numbers that tell the slow loop where the part is: time, grip, rotation, image of the device.
PROXY_NUMBERS = 1 + 12 + 12
_ROOM = 256


class FastLoop(NonCopyable):
    """A device and the part it holds.

    Args:
        settings: of the coupling.
        grip, rotation: where the part is.
        level: what is in the tank at first [J].
        clutch_buttons: bits of the device's buttons that let go of the part while they are held.
    """

    def __init__(
        self,
        device: Device,
        settings: CouplingSettings,
        grip: np.ndarray,
        rotation: np.ndarray,
        *,
        level: float,
        ticks_per_look: int,
        clutch_buttons: int,
    ) -> None:
        self.device = device
        self._forced = device.forced_axes
        self.clutch = False
        self.ticks = 0
        self._last_words = ""
        self._settings, self._buttons, self._per_look = settings, clutch_buttons, ticks_per_look
        self._cpu = wp.get_device("cpu")
        self._told = wp.zeros(1, dtype=DeviceRecord, device=self._cpu)
        self._states = wp.zeros(1, dtype=CouplingState, device=self._cpu)
        told, state = self._told.numpy()[0], self._states.numpy()[0]
        # parts of the records, which NumPy reads and writes where they are
        self._told_position, self._told_rotation = told["frame"]["position"], told["frame"]["rotation"]
        self._told_velocity, self._told_record = told["velocity"], told
        self._state = state
        self.state_bytes = self._states.numpy().view(np.uint8)  #: (n,) the record that the kernel changes, as it lies
        self._force = state["force"]
        for name in ("grip", "image", "base"):
            state[name]["position"], state[name]["rotation"] = grip, rotation
        state["account"]["level"] = level
        self._tell(0.0)
        self._pending: ContactRowSet | None = None
        self._made = 0
        self._sent = wp.zeros(MOST_DELAY + 1, dtype=vec6d, device=self._cpu)
        self._reserve(_ROOM)

    def tick(self, time: float) -> None:
        """Read, couple, write."""
        pending = self._pending
        if pending is not None:
            self._pending = None
            self._take(pending)
        record = self._told_record
        try:
            told = self.device.read(time)
            self._told_position[:] = told.pose[:3, 3]
            self._told_rotation[:] = told.pose[:3, :3]
            self._told_velocity[:] = told.velocity
            record["clutch"] = self.clutch or bool(told.buttons & self._buttons)
            if self.device.forced_axes != self._forced:
                self._push_on(self.device.forced_axes)
            record["answered"] = 1
        except Exception as error:  # a driver may raise anything, and what it told may not even be numbers
            record["answered"] = 0
            self._note(error)
        self._launch.run()
        self.ticks += 1
        force = self._force.copy()
        try:
            self.device.write(force[:3], force[3:])
        except Exception as error:
            self._state["mode"], self._state["lost_why"] = LOST, SILENT
            self._note(error)
        self._tell(time)

    def _push_on(self, axes: tuple[bool, ...]) -> None:
        """A device has told on which axes it can push, as one does that is opened late."""
        self._forced, self._settings.forced = axes, vec6d(*(float(axis) for axis in axes))
        self._prepare()

    def _note(self, error: Exception) -> None:
        """What a device said when it failed; the first words count."""
        if self._state["mode"] != LOST or not self._last_words:
            kind = "" if isinstance(error, DeviceLostError) else f"{type(error).__name__}: "
            self._last_words = f": {kind}{error}"

    def release(self) -> None:
        """Push no more, whatever the device says to that."""
        self._state["force"] = 0.0
        with suppress(Exception):
            self.device.write(np.zeros(3), np.zeros(3))

    def put(self, rows: ContactRowSet) -> None:
        """What the next tick goes by."""
        self._pending = rows

    def place(self, grip: np.ndarray, rotation: np.ndarray) -> None:
        """The part was put elsewhere: without a force, and to be taken there."""
        state = self._state
        for name in ("grip", "image", "base"):
            state[name]["position"], state[name]["rotation"] = grip, rotation
        for name in ("velocity", "force", "faded", "gain"):
            state[name] = 0.0
        if state["mode"] != LOST:
            state["mode"] = WAITING
        self._tell(float(self._proxy[0]))

    def resume(self) -> None:
        """Hold the part again with a device that was lost, from where both are."""
        if self._state["mode"] == LOST:
            self._state["mode"], self._state["lost_why"] = WAITING, 0
            self._last_words = ""

    @property
    def proxy(self) -> np.ndarray:
        """Time, grip and rotation of the part, and of where the device wants it, as the last tick left them."""
        return self._proxy

    @property
    def state(self) -> Any:
        """The record that the kernel changes."""
        return self._state

    @property
    def force(self) -> np.ndarray:
        """(6,) on the device."""
        return self._force.copy()

    @property
    def lost(self) -> str | None:
        """Why the device is not followed any more; None as long as it is."""
        if self._state["mode"] != LOST:
            return None
        why = int(self._state["lost_why"])
        return REASONS[why] + (self._last_words if why == SILENT else "")

    def told_settings(self) -> dict[str, Any]:
        """What makes another loop like this one, in another process: `made_from` takes it."""
        names = CouplingSettings.vars
        settings = {name: np.array(getattr(self._settings, name)).tolist() for name in names}
        return {"settings": settings, "ticks_per_look": self._per_look, "clutch_buttons": self._buttons}

    @classmethod
    def made_from(cls, device: Device, told: dict[str, Any], state: np.ndarray) -> FastLoop:
        """A loop with the settings and in the state of another one."""
        settings: Any = CouplingSettings()
        for name, value in told["settings"].items():
            setattr(settings, name, vec6d(*value) if isinstance(value, list) else value)
        made = cls(
            device, settings, np.zeros(3), np.eye(3), level=0.0, ticks_per_look=told["ticks_per_look"],
            clutch_buttons=told["clutch_buttons"],
        )  # fmt: skip
        made.mirror(state, made.proxy, 0)
        made._tell(0.0)
        return made

    def mirror(self, state: Any, proxy: np.ndarray, ticks: int) -> None:
        """Be in the state of a loop in another process."""
        for name in self._state.dtype.names:
            self._state[name] = state[name]
        self._proxy, self.ticks = np.array(proxy), int(ticks)

    def _tell(self, time: float) -> None:
        """Where the part is, in an array of its own: who looks on reads no half-written one."""
        proxy, grip, image = np.empty(PROXY_NUMBERS), self._state["grip"], self._state["image"]
        proxy[0], proxy[1:4], proxy[4:13] = time, grip["position"], grip["rotation"].ravel()
        proxy[13:16], proxy[16:] = image["position"], image["rotation"].ravel()
        self._proxy = proxy

    def _take(self, rows: ContactRowSet) -> None:
        """Rows into the arrays of the kernel."""
        count, state = len(rows.room), self._state
        if count > self._made:
            self._reserve(2 * count)
        self._host["rows"][:count], self._host["room"][:count] = rows.rows, rows.room
        self._host["count"][0] = count
        state["base"]["position"], state["base"]["rotation"] = rows.grip, rows.rotation
        state["reach"], state["most_step"] = rows.reach, rows.reach / self._per_look
        state["load"], state["load_stiffness"] = rows.load, rows.load_stiffness
        state["most_load"] = rows.most_load
        if rows.stopped:
            state["grip"]["position"], state["grip"]["rotation"] = rows.grip, rows.rotation
            state["velocity"] = 0.0

    def _reserve(self, room: int) -> None:
        arrays: Any = CoupledRows()
        arrays.count = wp.zeros(1, dtype=wp.int32, device=self._cpu)
        arrays.motion = wp.zeros(1, dtype=vec6d, device=self._cpu)
        for name in ("rows", "unit"):
            setattr(arrays, name, wp.zeros(room, dtype=vec6d, device=self._cpu))
        for name in ("room", "need", "gap", "scale", "impulse"):
            setattr(arrays, name, wp.zeros(room, dtype=wp.float64, device=self._cpu))
        arrays.sent = self._sent
        arrays.pool = wp.zeros(room, dtype=wp.int32, device=self._cpu)
        self._arrays, self._made = arrays, room
        self._host = {name: getattr(arrays, name).numpy() for name in ("count", "rows", "room")}
        self._prepare()

    def _prepare(self) -> None:
        arguments = [self._settings, self._told, self._states, self._arrays]
        self._launch = PreparedLaunch(tick, arguments, self._cpu, dim=1, serial=True)
