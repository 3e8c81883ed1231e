"""What a hand holds: one protocol, and the devices that speak it."""

from __future__ import annotations

from tangere.hand.devices.device import ALL_AXES, Device, DeviceLostError, DeviceState
from tangere.hand.devices.gamepad import GamepadDevice
from tangere.hand.devices.keyboard import KEY_CODES, KeyboardDevice
from tangere.hand.devices.pointer import PointerDevice, Sight
from tangere.hand.devices.rate_device import RateDevice
from tangere.hand.devices.simulated import SimulatedDevice
from tangere.hand.devices.spacemouse import CapReports, SpaceMouseDevice
from tangere.hand.devices.trace import TraceDevice, TraceRecorder
from tangere.hand.devices.udp_device import UdpDevice, UdpDriver
from tangere.hand.devices.udp_packets import ForcePacket, StatePacket

__all__ = [
    "ALL_AXES",
    "KEY_CODES",
    "CapReports",
    "Device",
    "DeviceLostError",
    "DeviceState",
    "ForcePacket",
    "GamepadDevice",
    "KeyboardDevice",
    "PointerDevice",
    "RateDevice",
    "Sight",
    "SimulatedDevice",
    "SpaceMouseDevice",
    "StatePacket",
    "TraceDevice",
    "TraceRecorder",
    "UdpDevice",
    "UdpDriver",
]
