"""Screws whose time is distorted so that paths become algebraic: the tangent and the cosine screw of Redon's thesis.

Source: Redon 2002, section 2.3 (there AIM, arbitrary in-between motions: AIM-tan, AIM-CS).
"""

from __future__ import annotations

import numpy as np

from tangere.motion.kinematics import COSINE, TANGENT
from tangere.motion.screw import Screw
from tangere.runtime.errors import InputError

#: tan(w / 2) runs to infinity at half a turn: the slide's speed at the end is 200 times that at the start here [rad].
LARGEST_TANGENT_ANGLE = 3.0


class TanScrew(Screw):
    """The screw whose slide goes with tan(w t / 2): every path is a rational function of tan(w t / 2).

    Time is distorted: the slide's speed at the end is 1 / cos^2(w / 2) times that at the start (1.3 at 1 rad), so turns
    of more than 3 rad are refused; split the step.

    Args:
        start, end: poses at t = 0 and t = 1, shape (4, 4) or (n, 4, 4).
    """

    _kind = TANGENT

    def _screws(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        records = super()._screws(start, end)
        large = records["angle"] > LARGEST_TANGENT_ANGLE
        if large.any():
            worst = int(np.argmax(large))
            raise InputError(
                f"TanScrew: motion {worst} turns by {records['angle'][worst]:.6g} rad,"
                f" more than {LARGEST_TANGENT_ANGLE}: split the step"
            )
        return records


class CosineScrew(Screw):
    """The screw whose turn goes with cos a(t) = 1 - t + t cos w and whose slide is steady: no trigonometry on the way.

    The turn starts infinitely fast: `twist(0)` is infinite unless there is no turn.

    Args:
        start, end: poses at t = 0 and t = 1, shape (4, 4) or (n, 4, 4).
    """

    _kind = COSINE
