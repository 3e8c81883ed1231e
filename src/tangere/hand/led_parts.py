"""Parts of the ready scenes with a way for each, which a hand that is simulated leads them along.

lifter   the motor of a window lifter, out of its door
door     a door, into the opening of a car body
pylon    a bent part, out of a pylon of beams and pipes
wheel    a finger, pressed on the hub of a steering wheel and drawn across its logo
peg      a square peg, into its hole
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tangere.dynamics import World
from tangere.hand.devices.device import Device
from tangere.hand.devices.handle_motion import turn_of, vector_of_turn
from tangere.hand.hand import Hand
from tangere.hand.scenes import SCENES
from tangere.runtime import InputError, positive
from tangere.shape import generate

#: Separations within which contacts are looked for where small shapes are felt: between two looks a part goes at most
#: half of it, and along a face that has ended it rises by no more than a separation.
FINE_REACH = 3.0
#: How far below where it begins the finger is pressed, and how far it is drawn [m].
_PRESSED, _DRAWN = 0.0045, 0.04
#: How far in a peg goes [m].
_PUSHED = 0.008


@dataclass(frozen=True, eq=False)
class LedWay:
    """Where a hand is at a time: from pose to pose at a steady pace, then still. It goes to other processes as it is.

    Args:
        poses: (n, 4, 4).
        seconds: how long the whole way takes.
        wait: how long it stays at the first pose [s].
    """

    poses: np.ndarray
    seconds: float
    wait: float = 0.2

    def __post_init__(self) -> None:
        positive(self.seconds, "seconds")

    def __call__(self, time: float) -> np.ndarray:
        """(4, 4) at a time [s]."""
        last = len(self.poses) - 1
        along = min(max((time - self.wait) / self.seconds, 0.0), 1.0) * last
        first = min(int(along), last - 1)
        start, end, part = self.poses[first], self.poses[first + 1], along - first
        pose = np.eye(4)
        pose[:3, 3] = (1.0 - part) * start[:3, 3] + part * end[:3, 3]
        pose[:3, :3] = turn_of(part * vector_of_turn(end[:3, :3] @ start[:3, :3].T)) @ start[:3, :3]
        return pose


@dataclass(frozen=True, eq=False)
class LedPart:
    """A world, the part of it that is held, and a way for it.

    Args:
        world: of the part.
        body: its name.
        way: where a hand that knows the way leads its middle, which is the grip of a `Hand`.
        options: of the `Hand`.
    """

    world: World
    body: str
    way: LedWay
    options: dict[str, Any] = field(default_factory=dict)

    def held_by(self, device: Device, **options: Any) -> Hand:
        """The part in a hand; options of the `Hand`."""
        return Hand(self.world, self.body, device, **{**self.options, **options})


def led_part(name: str, **options: Any) -> LedPart:
    """A scene by its name; options of its `World`.

    Example:
        >>> from tangere.hand import led_part
        >>> made = led_part("peg", device="cpu")
        >>> made.body, made.way.poses.shape
        ('part', (2, 4, 4))
    """
    if name not in SCENES:
        raise InputError(f"{name!r} is not one of the scenes {', '.join(SCENES)}")
    world = SCENES[name](**options)
    held = world["part"]
    grip = np.eye(4)
    grip[:3, 3] = held.body.mesh.bounds.mean(axis=0)
    told = {}
    if name == "wheel":  # a look at every tick, and no farther between two than edges of the logo are missed by
        told = {"stiffness": 1000.0, "slow_rate": 1000.0, "reach": FINE_REACH * world.separation}
    return LedPart(world, "part", LedWay(_poses(name, held.pose) @ grip, 4.0), told)


def _poses(name: str, start: np.ndarray) -> np.ndarray:
    """(n, 4, 4) of the part."""
    if name == "lifter":  # turned by a right angle, then straight out: it finds the slot by sliding
        return generate.window_lifter().free_path[[0, 18, 30]]
    if name == "pylon":  # turned while it is pulled
        return generate.pylon_bay().free_path
    if name == "door":
        return generate.door_on_body().free_path[::-1]
    ways = {
        "wheel": [(0, 0, 0), (0, 0, -_PRESSED), (_DRAWN, 0, -_PRESSED), (_DRAWN, 0, 0)],
        "peg": [(0, 0, 0), (0, 0, -_PUSHED)],
    }
    poses = np.tile(start, (len(ways[name]), 1, 1))
    poses[:, :3, 3] += np.array(ways[name], float)
    return poses
