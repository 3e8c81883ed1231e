"""A gamepad as a device, in the standard layout of browsers.

Somebody tells its axes and buttons: the page of the viewer does, by the Gamepad API, which knows hundreds of models and
brings them all to one layout. By hidapi each model has reports of its own, which we do not decode.

    left stick     right and up            right stick    turns about up and about right
    triggers       towards the eye (left), away (right)
    shoulders      turn about the direction of sight
    A (button 0)   the clutch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.hand.devices.rate_device import RateDevice
from tangere.runtime import InputError

#: Buttons of the standard layout: shoulders, then triggers.
_LEFT, _RIGHT, _LEFT_TRIGGER, _RIGHT_TRIGGER = 4, 5, 6, 7
#: Buttons that are buttons of the device: the four under the thumb.
_BUTTONS = 4


class GamepadDevice(RateDevice):
    """A gamepad as a device.

    Args:
        options: of `RateDevice`: speed, spin, dead, easing, start.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._told: tuple[np.ndarray, int] = np.zeros(6), 0

    def feed(self, axes: Sequence[float], buttons: Sequence[float]) -> None:
        """What the Gamepad API says.

        Args:
            axes: left stick right and down, right stick right and down, -1 to 1.
            buttons: 0 to 1 for each.
        """
        given = np.asarray(axes, float), np.asarray(buttons, float)
        if any(one.ndim != 1 or not np.isfinite(one).all() for one in given):
            raise InputError("axes and buttons must be rows of finite numbers")
        stick, button = np.zeros(4), np.zeros(8)
        stick[: min(len(given[0]), 4)] = given[0][:4]
        button[: min(len(given[1]), 8)] = given[1][:8]
        depth = button[_LEFT_TRIGGER] - button[_RIGHT_TRIGGER]
        roll = button[_LEFT] - button[_RIGHT]
        held = sum(1 << place for place in range(_BUTTONS) if button[place] > 0.5)
        self._told = np.array([stick[0], -stick[1], depth, stick[3], stick[2], roll]), held

    def rest(self) -> None:
        """It was unplugged, or nobody looks at the page: nothing is deflected."""
        self._told = np.zeros(6), 0

    def deflection(self) -> tuple[np.ndarray, int]:
        """What was told last."""
        return self._told
