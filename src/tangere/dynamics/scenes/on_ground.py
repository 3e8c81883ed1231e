"""Bodies on grids of heights: barrels on a road with kerbs, a robot that pulls its trailer over a heap of sand.

After Strashnov and Torgashev 2020: barrels at rest on road and kerb, wheels on rough ground.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.scenes.loose_bodies import posed
from tangere.dynamics.world import World
from tangere.shape import generate
from tangere.shape.analytic import Box


def barrels(**options: Any) -> World:
    """Three barrels on a road with kerbs: one leans on a kerb, one lies, one stands.

    Args:
        options: of the `World`; friction is 0.7 unless given.
    """
    scene = generate.barrels(drop=1e-3)
    bodies = [Body(scene.bodies[k], name=name) for k, name in enumerate(scene.names)]
    return World([Body(scene.terrain, name="road"), *bodies], **{"friction": 0.7, **options})


def robot_with_trailer(*, speed: float = 3.0, **options: Any) -> World:
    """A robot with four driven wheels pulls a trailer of two, on a ball, over rough grass and a heap of sand.

    Args:
        speed: of the driven wheels [rad/s].
        options: of the `World`; friction is 0.9 unless given.
    """
    scene = generate.robot_with_trailer(drop=0.02)
    wheels = [Body(scene.bodies[k], density=400.0, name=name) for k, name in enumerate(scene.names)]
    places = np.array([wheel.pose[:3, 3] for wheel in wheels])
    bodies = [Body(scene.terrain, name="ground"), *wheels]
    for name, rows, half in (("chassis", slice(0, 4), (0.6, 0.25, 0.1)), ("trailer", slice(4, 6), (0.3, 0.25, 0.1))):
        above = places[rows].mean(axis=0) + [0.0, 0.0, 0.1]
        bodies.append(Body(Box(half), posed(*above), density=300.0, name=name))
    world = World(bodies, **{"friction": 0.9, **options})
    for number, (name, place) in enumerate(zip(scene.names, places, strict=True)):
        carrier = "chassis" if number < 4 else "trailer"
        drive = {"speed": speed, "force": 200.0} if number < 4 else {}
        world.join("hinge", name, carrier, at=place, axis=[0.0, 1.0, 0.0], name=f"axle of {name}", **drive)
    hitch = 0.5 * (world["chassis"].position + world["trailer"].position)
    world.join("ball", "chassis", "trailer", at=hitch, name="hitch")
    return world
