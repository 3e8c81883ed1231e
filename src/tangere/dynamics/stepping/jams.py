"""Bodies that are held back again and again: a press that closes on what cannot yield.

Question: is it worth solving again, and in smaller parts, for what a step runs into?
Method:   whoever went only a part of its motion, in one part of a step after the other, for as long as a whole step
          takes, is jammed until it goes all of one. A few of the smallest parts are no jam: what whirls goes on after
          them, and would be held for good if it were not solved for in small parts any more. What runs into jammed
          bodies is solved for once more and then truncated. What is joined, is jammed and does not move at all has no
          speed, whatever the solver says: light parts of a linkage that is pressed would keep hundreds of metres a
          second, and never come to rest. All else keeps its own.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.dynamics.state import STILL

#: For how long a jammed body was held back without a break [steps].
JAMMED = 1.0


class Jams:
    """How long each body has been held back.

    Args:
        count: of bodies.
    """

    def __init__(self, count: int) -> None:
        self._times = np.zeros(count)
        self._saved = self._times

    def count(self, part: np.ndarray, share: float) -> None:
        """A part of a step, this share of it, is made, in which each body went a part of its motion."""
        self._times = np.where(part < 1.0, self._times + share, 0.0)

    def explain(self, pairs: np.ndarray) -> bool:
        """Whether each of these pairs of bodies, (n, 2), has one that is jammed."""
        return bool(self.jammed[pairs].any(axis=1).all())

    def rest(self, velocity: wp.array, part: wp.array, held: wp.array, joined: np.ndarray) -> None:
        """Joined bodies that are jammed and stand still have no velocity; fixed and driven ones keep theirs."""
        jammed = self.jammed & joined
        if jammed.any():
            stands = jammed & (part.numpy() == 0.0) & (held.numpy() & STILL != STILL)
            velocity.assign(np.where(stands[:, None], 0.0, velocity.numpy()))

    @property
    def jammed(self) -> np.ndarray:
        """(n,) bool."""
        return self._times >= JAMMED

    def save(self) -> None:
        """Keep what a step changes."""
        self._saved = self._times

    def restore(self) -> None:
        """As it was kept."""
        self._times = self._saved

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What the next step begins with, by name."""
        return {"times": self._times.copy()}

    def resume(self, kept: dict[str, np.ndarray]) -> None:
        """Begin the next step with what a checkpoint has."""
        self._times = kept["times"].astype(np.float64)
