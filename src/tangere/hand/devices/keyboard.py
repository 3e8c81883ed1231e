"""Keys as a device: arrows move, letters turn, space is the clutch.

Somebody tells which keys are down: the page of the viewer does, by the code of a KeyboardEvent, which is the place of
a key and not its letter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.hand.devices.rate_device import RateDevice
from tangere.runtime import InputError

#: Axis and direction of each key: right, up and towards the eye, then turns about these.
KEYS: dict[str, tuple[int, float]] = {
    "ArrowRight": (0, 1.0),
    "ArrowLeft": (0, -1.0),
    "ArrowUp": (1, 1.0),
    "ArrowDown": (1, -1.0),
    "PageDown": (2, 1.0),
    "PageUp": (2, -1.0),
    "KeyS": (3, 1.0),
    "KeyW": (3, -1.0),
    "KeyD": (4, 1.0),
    "KeyA": (4, -1.0),
    "KeyQ": (5, 1.0),
    "KeyE": (5, -1.0),
}
#: Keys that are buttons.
BUTTONS: dict[str, int] = {"Space": 1, "Enter": 2}
#: All of them: `KeyboardEvent.code`s.
KEY_CODES = (*KEYS, *BUTTONS)


class KeyboardDevice(RateDevice):
    """Keys as a device.

    Args:
        keys: axis 0 to 5 and direction of each; None means `KEYS`.
        options: of `RateDevice`: speed, spin, easing, start.

    Example:
        >>> from tangere.hand import KeyboardDevice
        >>> keyboard = KeyboardDevice(speed=0.1, easing=0.0)
        >>> keyboard.hold({"ArrowRight"})
        >>> _ = keyboard.read(0.0)
        >>> round(float(keyboard.read(0.05).pose[0, 3]), 6)
        0.005
    """

    def __init__(self, keys: dict[str, tuple[int, float]] | None = None, **options: Any) -> None:
        super().__init__(dead=0.0, **options)
        self._keys = KEYS if keys is None else dict(keys)
        for key, (axis, _) in self._keys.items():
            if axis not in range(6):
                raise InputError(f"keys: {key!r} has axis {axis}, which is not one of 0 to 5")
        self._held: frozenset[str] = frozenset()

    def hold(self, keys: Any) -> None:
        """These keys are down now, and no others; keys that mean nothing are allowed."""
        self._held = frozenset(keys)

    def deflection(self) -> tuple[np.ndarray, int]:
        """What the keys that are down add up to."""
        deflected, buttons = np.zeros(6), 0
        for key in self._held:
            if key in self._keys:
                axis, direction = self._keys[key]
                deflected[axis] += direction
            buttons |= BUTTONS.get(key, 0)
        return deflected, buttons
