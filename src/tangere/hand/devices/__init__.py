"""What a hand holds: one protocol, and the devices that speak it."""

from __future__ import annotations

from tangere.hand.devices.device import ALL_AXES, Device, DeviceLostError, DeviceState

__all__ = ["ALL_AXES", "Device", "DeviceLostError", "DeviceState"]
