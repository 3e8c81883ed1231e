"""A person in the loop: devices, how their motion drives a part, and the force that comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tangere.hand.devices.device import ALL_AXES, Device, DeviceLostError, DeviceState
from tangere.hand.devices.simulated import SimulatedDevice
from tangere.hand.devices.trace import TraceDevice, TraceRecorder
from tangere.hand.hand import Hand, Pacer
from tangere.hand.needle_hand import NeedleHand
from tangere.hand.report import HandReport

if TYPE_CHECKING:
    from tangere.hand import scenes

__all__ = [
    "ALL_AXES",
    "Device",
    "DeviceLostError",
    "DeviceState",
    "Hand",
    "HandReport",
    "NeedleHand",
    "Pacer",
    "SimulatedDevice",
    "TraceDevice",
    "TraceRecorder",
    "scenes",
]


def __getattr__(name: str) -> Any:
    """Ready scenes are loaded when they are asked for."""
    if name == "scenes":
        import tangere.hand.scenes as module

        return module
    raise AttributeError(f"module 'tangere.hand' has no attribute {name!r}")
