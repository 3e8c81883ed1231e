"""The parts of Redon 2002, chapter 6: a car body bounces, a door is put into place, a motor and a pylon's part go out.

The shapes are of our own making with as many triangles as in the document. The body falls in a world with inertia; the
others are led by a hand that trembles (`Guide`) in a world without.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.scenes.guide import REACHED, Guide
from tangere.dynamics.scenes.loose_bodies import STEEL, posed
from tangere.dynamics.world import World
from tangere.shape import generate
from tangere.shape.generate import PartInPlace

#: The security distance, as a part of the size of what stands still; the hand trembles by so many of them.
SECURITY_PART, TREMBLE = 1e-4, 5.0


def bouncing_body(triangles: int = 29_000, **options: Any) -> World:
    """A car body falls on the ground from half a metre, askew; it bounces, slides and comes to rest.

    Args:
        triangles: of the body.
        options: of the `World`; restitution is 0.4, friction 0.4 and a step 1/60 s unless given.
    """
    mesh, turn = generate.body_frame(triangles), (0.25, 0.15, 0.0)
    lowest = float(mesh.at(posed(turn=turn)).bounds[0, 2])
    ground = Body(generate.box((30.0, 30.0, 1.0)), posed(z=-0.5), fixed=True, name="ground")
    body = Body(mesh, posed(z=0.5 - lowest, turn=turn), density=STEEL, velocity=[1.0, 0.0, 0.0], name="car body")
    return World([ground, body], **{"friction": 0.4, "restitution": 0.4, "dt": 1.0 / 60.0, **options})


def door_positioning(triangles: tuple[int, int] = (16_000, 29_000), **options: Any) -> World:
    """A door comes from outside and is put into the opening of a car body.

    Args:
        triangles: of the door and of the body.
        options: of the `World`, and those of the `Guide`: `tremble`, `speed`, `seed`.
    """
    task = generate.door_on_body(*triangles)
    return _led(task, task.free_path[::-1], "door", "car body", options)


def motor_removal(**options: Any) -> World:
    """The motor of a window lifter is taken out of a door, through its one slot: 20,000 triangles in all.

    The hand turns it by a right angle and pulls it straight to where it is to be; it finds the slot by sliding.

    Args:
        options: of the `World`, and those of the `Guide`: `tremble`, `speed`, `seed`.
    """
    task = generate.window_lifter()
    return _led(task, task.free_path[[0, 18, 30]], "motor", "door", options)


def pylon_extraction(**options: Any) -> World:
    """A bent part is pivoted out of a pylon of perforated beams and pipes: 80,000 triangles in all.

    The hand turns it by a right angle, pulling it up a little, and then straight out.

    Args:
        options: of the `World`, and those of the `Guide`: `tremble`, `speed`, `seed`.
    """
    task = generate.pylon_bay()
    return _led(task, task.free_path[[0, 36, 46]], "part", "pylon", options)


def _led(task: PartInPlace, way: np.ndarray, name: str, around: str, options: dict[str, Any]) -> World:
    """A part that is led from pose to pose past what stands round it."""
    security = SECURITY_PART * task.fixed.extent
    leading = {"tremble": TREMBLE * security} | {k: options[k] for k in ("tremble", "speed", "seed") if k in options}
    rest = {key: value for key, value in options.items() if key not in leading}
    bodies = [
        Body(task.fixed, fixed=True, name=around),
        Body(task.part, way[0], density=STEEL, name=name),
    ]
    free = {"order": 1, "gravity": (0.0, 0.0, 0.0), "friction": 0.0, "dt": 1.0 / 60.0, "separation": security}
    world = World(bodies, **{**free, **rest})
    Guide(world, name, way[1:], reach=REACHED * security, **leading)
    return world
