"""A hand that leads one body of a world without inertia along given poses, and trembles.

Question: can a part be led where it is to go, by somebody who only roughly knows the way, sliding along what it meets?
Method:   in a world of order 1 velocities are what forces do. Before each step the body is pushed and turned towards
          the next pose, at a limited speed, with a target that trembles; contacts take away what leads into them. A
          pose that is passed closely is followed by the next one.
Known as: the first-order world of Redon 2002, chapter 6, led by a mouse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.dynamics.world import World
from tangere.runtime import InputError

#: The last pose is reached within so many security distances and so many radians; others are passed by.
REACHED, TURNED, PASSED = 2.0, 2e-3, 2e-2
#: How much a hand trembles at most, as a part of the way that is left.
CALM = 0.5
#: The part of what is missing that one step makes good.
PACE = 0.5


class Guide:
    """Leads a body: a phase of the steps of a world, before all others.

    Args:
        world: of order 1.
        body: its number or name.
        way: poses (k, 4, 4), one after the other [m].
        reach: how near the centre of mass comes to that of the last one [m].
        tremble: how far the hand is beside where it should be, as a standard deviation [m].
        speed: of the hand [m/s]; it turns as fast as that moves the farthest point.
        seed: of the trembling.
    """

    def __init__(
        self,
        world: World,
        body: int | str,
        way: Any,
        *,
        reach: float,
        tremble: float = 0.0,
        speed: float = 0.3,
        seed: int = 0,
    ) -> None:
        if world.told_options()["order"] != 1:
            raise InputError("Guide: a hand leads bodies in a world of order 1")
        self._world, self._body = world, world[body]
        self.way = np.asarray(way, float)
        self.reached = 0  #: poses so far
        self._reach, self._tremble, self._speed = reach, tremble, speed
        self._random = np.random.default_rng(seed)
        found = self._body.body.mass_properties
        self._mass, self._inertia, self._centre = found.mass, found.inertia, found.centre
        points = self._body.body.mesh.vertices - found.centre
        self._radius = float(np.linalg.norm(points, axis=1).max())
        world.phases = {"guide": self, **world.phases}

    @property
    def done(self) -> bool:
        """Whether the last pose has been reached."""
        return self.reached == len(self.way)

    def missing(self, pose: Any = None) -> tuple[float, float]:
        """How far the centre of mass is from that of a pose, or of the last one [m]; how far it is turned [rad]."""
        shift, turn = self._error(self.way[-1] if pose is None else np.asarray(pose, float))
        return float(np.linalg.norm(shift)), float(np.linalg.norm(turn))

    def __call__(self, step: Any) -> None:
        """Push the body towards the next pose."""
        dt = self._world.dt
        while not self.done:
            shift, turn = self._error(self.way[self.reached])
            last = self.reached == len(self.way) - 1
            near, turned = (self._reach, TURNED) if last else (max(self._reach, 2.0 * self._tremble), PASSED)
            if np.linalg.norm(shift) > near or np.linalg.norm(turn) > turned:
                break
            self.reached += 1
        if self.done:
            self._body.push()
            return
        shake = min(self._tremble, CALM * float(np.linalg.norm(shift)))  # who aims at something near is calm
        shaken = shift + shake * self._random.normal(size=3)
        velocity, spin = (
            _at_most(PACE / dt * shaken, self._speed),
            _at_most(PACE / dt * turn, self._speed / self._radius),
        )
        turned = self._body.pose[:3, :3]
        inertia = turned @ self._inertia @ turned.T
        self._body.push(force=self._mass * velocity, torque=inertia @ spin)

    def _error(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From where the body is to a pose: of its centre of mass [m], and as a rotation vector [rad]."""
        pose = self._body.pose
        shift = target[:3, :3] @ self._centre + target[:3, 3] - self._body.position
        return shift, _rotation_vector(target[:3, :3] @ pose[:3, :3].T)


def _at_most(vector: np.ndarray, length: float) -> np.ndarray:
    return vector * min(1.0, length / max(float(np.linalg.norm(vector)), 1e-300))


def _rotation_vector(turn: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(turn).as_rotvec()
