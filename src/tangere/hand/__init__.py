"""A person in the loop: devices, how their motion drives a part, and the force that comes back."""

from __future__ import annotations

from tangere.hand.devices import (
    ALL_AXES,
    CapReports,
    Device,
    DeviceLostError,
    DeviceState,
    ForcePacket,
    GamepadDevice,
    KeyboardDevice,
    PointerDevice,
    Sight,
    SpaceMouseDevice,
    StatePacket,
    UdpDevice,
    UdpDriver,
)

__all__ = [
    "ALL_AXES",
    "CapReports",
    "Device",
    "DeviceLostError",
    "DeviceState",
    "ForcePacket",
    "GamepadDevice",
    "KeyboardDevice",
    "PointerDevice",
    "Sight",
    "SpaceMouseDevice",
    "StatePacket",
    "UdpDevice",
    "UdpDriver",
]
