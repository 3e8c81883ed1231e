"""Tools among soft bodies with a way for each, which a hand that is simulated leads them along.

press    a ball, pressed on a soft block, drawn across it and lifted
cut      a blade, drawn into a block that it cuts, and out again
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tangere.hand.devices.device import Device
from tangere.hand.led_parts import LedWay
from tangere.hand.tool_hand import ToolHand
from tangere.runtime import InputError, positive
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Blade, Body, Simulation

#: Step of the bodies [s].
STEP = 0.01
#: A guide in the plane of the blade: it goes along y and z, and does not turn.
IN_PLANE = (False, True, True, False, False, False)


@dataclass(frozen=True, eq=False)
class LedTool:
    """A simulation, the tool of it that is held, and a way for it.

    Args:
        simulation: bodies and tool.
        tool: its name, or the blade.
        way: where a hand that knows the way leads its middle.
        options: of the `ToolHand`.
    """

    simulation: Simulation
    tool: str | Blade
    way: LedWay
    options: dict[str, Any] = field(default_factory=dict)

    def held_by(self, device: Device, **options: Any) -> ToolHand:
        """The tool in a hand; options of the `ToolHand`."""
        return ToolHand(self.simulation, self.tool, device, **{**self.options, **options})


def led_tool(name: str, **options: Any) -> LedTool:
    """A scene by its name; options of its `Simulation`, and `youngs_modulus` and `toughness` of what is cut.

    Example:
        >>> from tangere.hand import led_tool
        >>> led_tool("press", device="cpu").tool
        'tool'
    """
    if name not in TOOL_SCENES:
        raise InputError(f"{name!r} is not one of the scenes {', '.join(TOOL_SCENES)}")
    return TOOL_SCENES[name](**{"dt": STEP, "gravity": (0.0, 0.0, 0.0), **options})


def press(*, youngs_modulus: float = 1e4, size: float = 0.1, **options: Any) -> LedTool:
    """A ball on a block that is held below; it is pressed a sixth of the block deep and drawn across it."""
    side, modulus = positive(size, "size"), positive(youngs_modulus, "youngs_modulus")
    block = solid_block((6, 6, 4), size=(1.5 * side, 1.5 * side, side), name="block")
    ball = generate.icosphere(subdivisions=2)
    start = np.array([-0.2 * side, 0.0, 0.75 * side])
    tool = Body(ball.replace(vertices=0.2 * side * ball.vertices + start), fixed=True, name="tool")
    body = Body(block, youngs_modulus=modulus, fixed=block.vertices[:, 2] < -0.49 * side, name="block")
    way = _way(start, side * np.array([(0, 0, 0), (0, 0, -0.22), (0.4, 0, -0.22), (0.4, 0, 0.0)]))
    return LedTool(Simulation([body, tool], **options), "tool", way)


def cut(*, youngs_modulus: float = 3e4, toughness: float = 20.0, size: float = 0.1, **options: Any) -> LedTool:
    """A blade over a block that is held below; it goes in half the height of the block, and out again.

    It is guided in its plane.
    """
    side, modulus = positive(size, "size"), positive(youngs_modulus, "youngs_modulus")
    block = solid_block((12, 6, 6), size=(2.0 * side, side, side), name="block")
    body = Body(
        block, youngs_modulus=modulus, fixed=block.vertices[:, 2] < -0.48 * side, cuttable=True, kerf=0.025 * side,
        name="block",
    )  # fmt: skip
    edge = np.array([0.026 * side, 0.0, 0.55 * side])
    blade = Blade.wedge(
        length=1.3 * side, height=1.5 * side, thickness=0.03 * side, toughness=toughness, at=edge, name="blade"
    )
    start = edge + [0.0, 0.0, 0.75 * side]
    way = _way(start, side * np.array([(0, 0, 0), (0, 0, -0.3), (0, 0, -0.6), (0, 0, 0)]))
    return LedTool(Simulation([body, blade], **options), blade, way, {"free_axes": IN_PLANE})


def _way(start: np.ndarray, moves: np.ndarray) -> LedWay:
    """From place to place without a turn, within two seconds."""
    poses = np.tile(np.eye(4), (len(moves), 1, 1))
    poses[:, :3, 3] = start + moves
    return LedWay(poses, 2.0)


#: Scenes by name.
TOOL_SCENES: dict[str, Callable[..., LedTool]] = {"press": press, "cut": cut}
