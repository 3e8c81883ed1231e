"""A SpaceMouse as a device: a cap that is pushed and turned, read by hidapi (extra `[device]`).

Question: how far is the cap deflected?
Method:   HID reports of 3Dconnexion's devices: number 1 is three numbers of 16 bits, the translation, and on newer
          models three more, the rotation; number 2 is the rotation of older ones; number 3 is the buttons; others, such
          as the battery's, are left out. Full deflection is 350. Its x is to the right, its y towards the person, its z
          down; we tell right, up and towards the eye.
Sound:    reports that are too short are counted and left out. A device that was unplugged raises `DeviceLostError`.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tangere.hand.devices.device import DeviceLostError
from tangere.hand.devices.rate_device import RateDevice
from tangere.runtime import needs_extra

#: What a cap tells when it is pushed as far as it goes.
FULL = 350.0
#: 3Dconnexion, and Logitech with the products it made for them.
_VENDOR, _OLD_VENDOR = 0x256F, 0x046D
_OLD_PRODUCTS = {0xC603, 0xC605, 0xC606, 0xC621, 0xC623, 0xC625, 0xC626, 0xC627, 0xC628, 0xC629, 0xC62B}
_MULTI_AXIS = (1, 8)  #: usage page and usage of such devices
_AT_ONCE = 64  #: reports that one reading takes


class CapReports:
    """What the reports so far add up to.

    Example:
        >>> from tangere.hand import CapReports
        >>> reports = CapReports()
        >>> reports.take(bytes([1, 0x5E, 0x01, 0, 0, 0, 0]))  # 350 to the right
        >>> reports.deflection.tolist()
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self) -> None:
        self._raw = [0] * 6
        self.buttons = 0
        self.refused = 0  #: reports that were too short

    def take(self, report: bytes) -> None:
        """One report, with its number in front."""
        number, rest = report[0] if report else 0, report[1:]
        if number in (1, 2):
            if len(rest) < 6:
                self.refused += 1
                return
            if number == 1 and len(rest) >= 12:
                self._raw = list(struct.unpack_from("<6h", rest))
            else:
                self._raw[3 * number - 3 : 3 * number] = struct.unpack_from("<3h", rest)
        elif number == 3:
            if not rest:
                self.refused += 1
                return
            self.buttons = int.from_bytes(rest[:4], "little")

    @property
    def deflection(self) -> np.ndarray:
        """(6,) right, up, towards the eye, and turns about these, -1 to 1."""
        x, y, z, u, v, w = self._raw
        return np.clip(np.array([x, -z, y, u, -w, v], float) / FULL, -1.0, 1.0) + 0.0


class SpaceMouseDevice(RateDevice):
    """A SpaceMouse as a device.

    Args:
        opened: what reads its reports, as hidapi's `device` does: `read(n)` gives a list of bytes, empty where there is
            none, and `close()`; None opens the first one that is plugged in.
        options: of `RateDevice`: speed, spin, dead, easing, start.
    """

    def __init__(self, opened: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.reports = CapReports()
        self._opened = first_spacemouse() if opened is None else opened

    def deflection(self) -> tuple[np.ndarray, int]:
        """What the cap tells now."""
        try:
            for _ in range(_AT_ONCE):
                report = bytes(self._opened.read(64))
                if not report:
                    break
                self.reports.take(report)
        except (OSError, ValueError) as error:
            raise DeviceLostError(f"the SpaceMouse does not answer any more: {error}") from error
        return self.reports.deflection, self.reports.buttons

    def close(self) -> None:
        """Let go of it; may be called twice."""
        self._opened.close()


def first_spacemouse() -> Any:
    """The first one that is plugged in, opened."""
    with needs_extra("hidapi", "device"):
        import hid  # pyright: ignore[reportMissingImports]
    for found in hid.enumerate():
        vendor, product = found["vendor_id"], found["product_id"]
        usage = found.get("usage_page"), found.get("usage")
        known = vendor == _VENDOR or (vendor == _OLD_VENDOR and product in _OLD_PRODUCTS)
        if known and usage in (_MULTI_AXIS, (0, 0), (None, None)):
            opened = hid.device()
            try:
                opened.open_path(found["path"])
            except OSError as error:
                name = found.get("product_string") or "the SpaceMouse"
                raise DeviceLostError(f"{name} cannot be opened, mostly for want of permission: {error}") from error
            opened.set_nonblocking(True)
            return opened
    raise DeviceLostError("no SpaceMouse is plugged in")
