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
from tangere.hand.tool_hand import ToolHand

if TYPE_CHECKING:
    from tangere.hand import scenes
    from tangere.hand.led_parts import LedPart, LedWay, led_part
    from tangere.hand.led_tools import LedTool, led_tool
    from tangere.hand.recording import HandRecorder

__all__ = [
    "ALL_AXES",
    "CapReports",
    "Device",
    "DeviceLostError",
    "DeviceState",
    "ForcePacket",
    "GamepadDevice",
    "Hand",
    "HandRecorder",
    "HandReport",
    "KeyboardDevice",
    "LedPart",
    "LedTool",
    "LedWay",
    "NeedleHand",
    "Pacer",
    "PointerDevice",
    "SeparateLoops",
    "Sight",
    "SimulatedDevice",
    "SpaceMouseDevice",
    "StatePacket",
    "ThreadedLoops",
    "ToolHand",
    "TraceDevice",
    "TraceRecorder",
    "UdpDevice",
    "UdpDriver",
    "led_part",
    "led_tool",
    "scenes",
]


def __getattr__(name: str) -> Any:
    """What a hand does without is loaded when it is asked for: ready scenes, ways through them, recordings."""
    if name == "scenes":
        import tangere.hand.scenes as module

        return module
    if name in ("LedPart", "LedWay", "led_part"):
        import tangere.hand.led_parts as module
    elif name in ("LedTool", "led_tool"):
        import tangere.hand.led_tools as module
    elif name == "HandRecorder":
        import tangere.hand.recording as module
    else:
        raise AttributeError(f"module 'tangere.hand' has no attribute {name!r}")
    return getattr(module, name)
