"""Where the tip of a needle goes that is pushed and spun: the unicycle model, exactly.

Question: the frame of the tip after it advanced and spun at constant speeds for a while.
Method:   p' = u R e3, R' = R [w]x with w = (kappa u, 0, s): a constant twist in the frame of the tip, so that the frame
          afterwards is the frame before times the exponential of the twist, in closed form. No step is too long.
          Duty cycle: spinning whole turns for a part D of the path makes its mean curvature kappa (1 - D).
Sound:    an arc of 100 mm ends where it should to 1e-16 m, in any number of steps.
Known as: the unicycle model of bevel-tip steering (Webster et al. 2006); duty-cycled spinning (Minhas et al. 2007;
          Pitiot 2015, section 9.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.needle.instrument import part_of_a_cycle, unit_vector


@dataclass(frozen=True)
class TipFrame:
    """Where the tip is and which way it looks: z is forward, it bends about its own x axis."""

    position: np.ndarray  #: (3,) [m]
    rotation: np.ndarray  #: (3, 3) axes as columns

    @staticmethod
    def looking(position: object, direction: object, roll: float = 0.0) -> TipFrame:
        """A frame at a point that looks in a direction, turned about it by `roll` [rad]."""
        ahead = unit_vector(direction, "direction")
        other = np.eye(3)[np.argmin(np.abs(ahead))]
        x = np.cross(other, ahead)
        x /= np.linalg.norm(x)
        y = np.cross(ahead, x)
        turned = np.stack([np.cos(roll) * x + np.sin(roll) * y, np.cos(roll) * y - np.sin(roll) * x, ahead], axis=1)
        return TipFrame(np.array(position, dtype=float), turned)

    @property
    def direction(self) -> np.ndarray:
        """(3,) forward."""
        return self.rotation[:, 2]

    def advanced(self, length: float, *, curvature: float = 0.0, spin: float = 0.0) -> TipFrame:
        """After `length` [m] along the path while turning by `spin` [rad] about it."""
        turn = np.array([curvature * length, 0.0, spin])
        rotation, integral = _exponential(turn)
        return TipFrame(
            self.position + self.rotation @ (integral @ np.array([0.0, 0.0, length])), self.rotation @ rotation
        )


def duty_cycled(curvature: float, duty: float, cycle: float) -> list[tuple[float, float]]:
    """One cycle of duty-cycled steering: lengths [m] and turns [rad], the first with whole turns and then without.

    Args:
        duty: the part of the path that is spun, 0 to 1: the mean curvature is that of the tip times 1 - duty.
        cycle: length of the path in a cycle [m].
    """
    duty = part_of_a_cycle(duty, "duty")
    # One turn on a path so short that it hardly bends; more where that would be much of a turn of the path itself.
    turns = max(1, int(np.ceil(10.0 * curvature * duty * cycle)))
    return [(duty * cycle, 2.0 * np.pi * turns), ((1.0 - duty) * cycle, 0.0)]


def _exponential(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """exp([turn]x), and the integral of exp([turn s]x) for s from 0 to 1 (Rodrigues' formula and its integral)."""
    angle = float(np.linalg.norm(turn))
    x, y, z = turn
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    square = angle * angle
    if angle < 1e-4:
        # Series: the next terms are below 1e-17.
        a, b, c = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    else:
        half = np.sin(0.5 * angle)
        a, b = np.sin(angle) / angle, 2.0 * half * half / square
        c = (1.0 - a) / square
    return np.eye(3) + a * k + b * (k @ k), np.eye(3) + b * k + c * (k @ k)
