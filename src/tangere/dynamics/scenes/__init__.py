"""Ready worlds: loose bodies that stand, fall and hang together, the parts of Redon 2002, bodies on ground."""

from collections.abc import Callable

from tangere.dynamics.scenes.guide import Guide
from tangere.dynamics.scenes.industrial_parts import bouncing_body, door_positioning, motor_removal, pylon_extraction
from tangere.dynamics.scenes.loose_bodies import arch, bolt, card_house, chain, cradle, pile, stack
from tangere.dynamics.scenes.on_ground import barrels, robot_with_trailer
from tangere.dynamics.world import World

#: Scenes by name, and how many steps show all that happens in each.
SCENES: dict[str, tuple[Callable[..., World], int]] = {
    "arch": (arch, 300),
    "barrels": (barrels, 200),
    "body": (bouncing_body, 180),
    "bolt": (bolt, 360),
    "cards": (card_house, 400),
    "chain": (chain, 400),
    "cradle": (cradle, 400),
    "door": (door_positioning, 150),
    "motor": (motor_removal, 350),
    "pile": (pile, 500),
    "pylon": (pylon_extraction, 350),
    "robot": (robot_with_trailer, 400),
    "stack": (stack, 200),
}

__all__ = [
    "SCENES",
    "Guide",
    "arch",
    "barrels",
    "bolt",
    "bouncing_body",
    "card_house",
    "chain",
    "cradle",
    "door_positioning",
    "motor_removal",
    "pile",
    "pylon_extraction",
    "robot_with_trailer",
    "stack",
]
