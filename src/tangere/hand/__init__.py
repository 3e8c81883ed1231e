"""A person in the loop: devices, how their motion drives a part, and the force that comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    SimulatedDevice,
    SpaceMouseDevice,
    StatePacket,
    TraceDevice,
    TraceRecorder,
    UdpDevice,
    UdpDriver,
)
from tangere.hand.hand import Hand, Pacer
from tangere.hand.needle_hand import NeedleHand
from tangere.hand.real_time import SeparateLoops, ThreadedLoops
from tangere.hand.report import HandReport

if TYPE_CHECKING:
    from tangere.hand import scenes

__all__ = [
    "ALL_AXES",
    "CapReports",
    "Device",
    "DeviceLostError",
    "DeviceState",
    "ForcePacket",
    "GamepadDevice",
    "Hand",
    "HandReport",
    "KeyboardDevice",
    "NeedleHand",
    "Pacer",
    "PointerDevice",
    "SeparateLoops",
    "Sight",
    "SimulatedDevice",
    "SpaceMouseDevice",
    "StatePacket",
    "ThreadedLoops",
    "TraceDevice",
    "TraceRecorder",
    "UdpDevice",
    "UdpDriver",
    "scenes",
]


def __getattr__(name: str) -> Any:
    """Ready scenes are loaded when they are asked for."""
    if name == "scenes":
        import tangere.hand.scenes as module

        return module
    raise AttributeError(f"module 'tangere.hand' has no attribute {name!r}")
