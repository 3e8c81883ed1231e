"""The six motions of two bumpy tori of 69,696 triangles that every engine for rigid parts is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.motion import Twist
from tangere.shape.generate.build.assembly import pose

__all__ = ["TASKS", "Task"]


@dataclass(frozen=True)
class Task:
    """A torus turned by 90 degrees about x starts at `at` and moves with constant velocities."""

    name: str
    at: tuple[float, float, float]
    velocity: tuple[float, float, float]
    rotation: tuple[float, float, float]

    @property
    def motion(self) -> Twist:
        return Twist(pose(self.at, axis=0, angle=0.5 * np.pi), self.velocity, self.rotation)


TASKS = [
    Task("translation", (1.05, 0.0, 0.0), (0.4, 0.0, 0.0), (0.0, 0.0, 0.0)),
    Task("turn about z", (1.05, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.0, 1.0)),
    Task("turn about y", (1.05, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.5 * np.pi, 0.0)),
    Task("approach, 2.3 rad", (0.0, 5.0, 0.0), (0.0, -4.5, 0.0), (1.0, 2.0, 0.5)),
    Task("approach, 20 rad", (0.0, 5.0, 0.0), (0.0, -4.5, 0.0), (3.0, 20.0, 1.5)),
    Task("far apart", (0.0, 5.0, 0.0), (0.0, -1.0, 0.0), (1.0, 2.0, 0.5)),
]
