"""How a handle that is not there moves: turns as vectors, and a handle that follows what it is told without a jump.

A mouse tells where it is sixty times a second, a key only that it is down. A coupling of a thousand ticks a second
wants a pose and a velocity that belong together: `FollowingHandle` is a point with a critically damped spring to the
last pose it was told, limited in speed, integrated between two readings.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import positive

#: The longest span between two readings that is made up for [s].
_LONGEST = 0.1


def turn_of(vector: np.ndarray) -> np.ndarray:
    """The rotation (3, 3) of a rotation vector (3,): axis times angle."""
    x, y, z = vector
    angle = float(np.sqrt(x * x + y * y + z * z))
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    if angle < 1e-4:
        return np.eye(3) + k + 0.5 * (k @ k)
    return np.eye(3) + np.sin(angle) / angle * k + (1.0 - np.cos(angle)) / angle**2 * (k @ k)


def vector_of_turn(turn: np.ndarray) -> np.ndarray:
    """The rotation vector (3,) of a rotation (3, 3), of at most half a turn."""
    skew = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine, cosine = float(np.linalg.norm(skew)), 0.5 * (float(np.trace(turn)) - 1.0)
    if sine > 1e-6 or cosine > 0.0:
        return skew * (np.arctan2(sine, cosine) / sine if sine > 1e-12 else 1.0)
    # Half a turn: the axis is a column of turn + 1.
    columns = turn + np.eye(3)
    axis = columns[:, np.argmax(np.linalg.norm(columns, axis=0))]
    return np.pi * axis / np.linalg.norm(axis)


def orthonormal(turn: np.ndarray) -> np.ndarray:
    """The rotation next to one that rounding has bent: a step of Newton's iteration for the polar factor."""
    return 0.5 * turn @ (3.0 * np.eye(3) - turn.T @ turn)


def rigid_motion(rest: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation (3, 3) and the move (3,) that bring points (n, 3) nearest to where they are now (Kabsch 1976)."""
    middle, centre = rest.mean(axis=0), now.mean(axis=0)
    u, _, v = np.linalg.svd((now - centre).T @ (rest - middle))
    turn = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v
    return turn, centre - turn @ middle


class FollowingHandle:
    """A handle that follows poses that it is told.

    Args:
        settling: how long it takes to make a step but for a twentieth of it [s].
        most_speed: [m/s].
        most_spin: [rad/s].
    """

    def __init__(self, *, settling: float = 0.016, most_speed: float = 2.0, most_spin: float = 20.0) -> None:
        self._stiff = 4.744 / positive(settling, "settling")  # (1 + x) exp(-x) = 0.05
        self._most = positive(most_speed, "most_speed"), positive(most_spin, "most_spin")
        self.pose, self.velocity = np.eye(4), np.zeros(6)
        self._time: float | None = None

    def place(self, pose: np.ndarray) -> None:
        """Be there now, at rest."""
        self.pose, self.velocity = np.array(pose, float), np.zeros(6)

    def follow(self, target: np.ndarray, time: float) -> None:
        """Go on to `time` [s] with a spring to `target`."""
        span = 0.0 if self._time is None else min(max(time - self._time, 0.0), _LONGEST)
        self._time = time
        if span == 0.0:
            return
        pose, stiff = self.pose, self._stiff
        error = np.empty(6)
        error[:3] = target[:3, 3] - pose[:3, 3]
        error[3:] = vector_of_turn(target[:3, :3] @ pose[:3, :3].T)
        # The motion of a critically damped spring in closed form; turns as if about one axis.
        rise, decay = stiff * error - self.velocity, float(np.exp(-stiff * span))
        left = (error + span * rise) * decay
        way, velocity = error - left, stiff * left - decay * rise
        for part, most in zip((slice(0, 3), slice(3, 6)), self._most, strict=True):
            for what, largest in ((way, most * span), (velocity, most)):
                size = float(np.linalg.norm(what[part]))
                if size > largest:
                    what[part] *= largest / size
        moved = np.eye(4)
        moved[:3, 3] = pose[:3, 3] + way[:3]
        moved[:3, :3] = orthonormal(turn_of(way[3:]) @ pose[:3, :3])
        self.pose, self.velocity = moved, velocity
