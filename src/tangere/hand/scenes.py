"""Parts to be taken out, put in and felt: those of Redon 2002, chapter 6, each with a way that a hand knows roughly.

lifter   the motor of a window lifter, out of its door
door     a door, into the opening of a car body
pylon    a bent part, out of a pylon of beams and pipes
wheel    a fingertip, over the embossed logo of a steering wheel
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.dynamics import Body, World
from tangere.dynamics.scenes import door_positioning, motor_removal, pylon_extraction
from tangere.hand.devices.handle_motion import turn_of, vector_of_turn
from tangere.runtime import InputError, positive
from tangere.shape import generate

#: Where the flat face of the wheel's hub is, and the radius of the fingertip [m].
_FACE, _TIP = 0.01, 0.004
#: How far a fingertip is kept from the wheel [m].
_FEEL = 2e-5


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
class HandScene:
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
    options: dict[str, Any]


def lifter(**options: Any) -> HandScene:
    """The motor of a window lifter is taken out of its door; options of the `World`."""
    return _led(motor_removal(**options), "motor")


def door(**options: Any) -> HandScene:
    """A door is put into the opening of a car body; options of the `World`."""
    return _led(door_positioning(**options), "door")


def pylon(**options: Any) -> HandScene:
    """A bent part is pivoted out of a pylon; options of the `World`."""
    world, way = pylon_extraction(**options), generate.pylon_bay().free_path  # it is turned while it is pulled
    return _scene(world, "part", way)


def wheel(**options: Any) -> HandScene:
    """A fingertip is pressed on the hub of a steering wheel and drawn across its logo; options of the `World`."""
    tip = generate.icosphere(triangles=320, radius=_TIP)
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, :3, 3] = [(-0.03, 0, 0.03), (-0.03, 0, _FACE + 0.5 * _TIP), (0.03, 0, _FACE + 0.5 * _TIP), (0.03, 0, 0.03)]
    bodies = [Body(generate.steering_wheel(), fixed=True, name="wheel"), Body(tip, poses[0], name="finger")]
    world = World(bodies, **{"gravity": (0.0, 0.0, 0.0), "separation": _FEEL, **options})
    return _scene(world, "finger", poses, stiffness=1000.0)


def _led(world: World, body: str) -> HandScene:
    """The way is that of the scene's own guide."""
    return _scene(world, body, np.concatenate([world[body].pose[None], world.phases["guide"].way]))


def _scene(world: World, body: str, way: np.ndarray, **options: Any) -> HandScene:
    """A part that goes from pose to pose."""
    grip = np.eye(4)
    grip[:3, 3] = world[body].body.mesh.bounds.mean(axis=0)
    return HandScene(world, body, LedWay(way @ grip, 4.0), options)


#: Scenes by name.
HAND_SCENES: dict[str, Callable[..., HandScene]] = {"lifter": lifter, "door": door, "pylon": pylon, "wheel": wheel}


def hand_scene(name: str, **options: Any) -> HandScene:
    """A scene by its name; options of the `World`."""
    if name not in HAND_SCENES:
        raise InputError(f"{name!r} is not one of the scenes {', '.join(HAND_SCENES)}")
    return HAND_SCENES[name](**options)
