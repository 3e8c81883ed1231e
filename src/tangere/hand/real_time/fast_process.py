"""The fast loop in a process of its own: what that process ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.hand.coupling import FastLoop
from tangere.hand.devices import Device
from tangere.hand.real_time.shared_state import LOOP_STATE, ORDER, ROWS_HEAD, ROWS_ROW, STATE, unpacked_rows
from tangere.runtime.pacer import SharedRecord, SharedRows


class FastLoopTicks:
    """A fast loop that gets its contacts from shared memory and tells its state there.

    Args:
        make_device: gives the device, which is opened in this process.
        told: settings of the loop.
        state: in which it begins, as bytes.
        names: of the shared memory: orders, rows, state.
        time: of the hand when the loop begins [s].
    """

    def __init__(
        self,
        make_device: Callable[[], Device],
        told: dict[str, Any],
        state: bytes,
        names: tuple[str, str, str],
        time: float,
    ) -> None:
        device = make_device()
        try:
            settings = told["settings"]
            settings["forced"] = [float(axis) for axis in device.forced_axes]
            self._loop = FastLoop.made_from(device, told, np.frombuffer(state, LOOP_STATE)[0])
            self._order = SharedRecord(ORDER, names[0])
            self._rows = SharedRows(ROWS_HEAD, ROWS_ROW, names[1])
            self._state = SharedRecord(STATE, names[2])
        except BaseException:
            device.close()
            raise
        self._told = np.zeros(1, self._state.dtype)
        # field by field NumPy takes as long for the state as all the rest of a tick
        self._told_state = self._told.view(np.uint8)[: LOOP_STATE.itemsize]
        self._told_proxy, self._told_ticks = self._told["proxy"][0], self._told["ticks"]
        self._begun, self._resumes = time, 0

    def tick(self, time: float) -> None:
        """Take what is new, tick, tell."""
        if self._rows.fresh:
            both = self._rows.read()
            if both is not None:
                self._loop.put(unpacked_rows(*both))
        order = self._order.read() if self._order.newest != self._order.seen else None
        if order is not None:
            self._loop.clutch = bool(order["clutch"])
            if order["resumes"] != self._resumes:
                self._resumes = int(order["resumes"])
                self._loop.resume()
        self._loop.tick(self._begun + time)
        self._told_state[:] = self._loop.state_bytes
        self._told_proxy[:], self._told_ticks[0] = self._loop.proxy, self._loop.ticks
        self._state.write(self._told)

    def close(self) -> None:
        """Let go of the device and of the memory."""
        self._loop.device.close()
        for one in (self._order, self._rows, self._state):
            one.close()
