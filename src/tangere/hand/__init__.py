"""A person in the loop: devices, how their motion drives a part, and the force that comes back."""

from __future__ import annotations

from tangere.hand.devices.device import ALL_AXES, Device, DeviceLostError, DeviceState

__all__ = ["ALL_AXES", "Device", "DeviceLostError", "DeviceState"]
