"""A person in the loop: devices, how their motion drives a part, and the force that comes back."""

from __future__ import annotations

from tangere.hand.devices.device import ALL_AXES, Device, DeviceLostError, DeviceState
from tangere.hand.devices.simulated import SimulatedDevice
from tangere.hand.devices.trace import TraceDevice, TraceRecorder
from tangere.hand.hand import Hand, Pacer
from tangere.hand.report import HandReport

__all__ = [
    "ALL_AXES",
    "Device",
    "DeviceLostError",
    "DeviceState",
    "Hand",
    "HandReport",
    "Pacer",
    "SimulatedDevice",
    "TraceDevice",
    "TraceRecorder",
]
