"""Bodies that are held back again and again: a press that closes on what cannot yield.

Question: is it worth solving again, and in smaller parts, for what a step runs into?
Method:   whoever went only a part of its motion in several parts of steps one after the other is jammed, until it goes
          all of one. What runs into jammed bodies is solved for once more and then truncated. What is joined, is jammed
          and does not move at all has no speed, whatever the solver says: light parts of a linkage that is pressed
          would keep hundreds of metres a second, and never come to rest. All else keeps its own: a jam may last for
          the smallest parts of one step, and what whirls goes on after it.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.dynamics.state import STILL

#: Parts of steps, one after the other, in which a jammed body was held back.
PARTS = 4


class Jams:
    """How long each body has been held back.

    Args:
        count: of bodies.
    """

    def __init__(self, count: int) -> None:
        self._times = np.zeros(count, np.int64)
        self._saved = self._times

    def count(self, part: np.ndarray) -> None:
        """A part of a step is made, in which each body went a part of its motion."""
        self._times = np.where(part < 1.0, self._times + 1, 0)

    def explain(self, pairs: np.ndarray) -> bool:
        """Whether each of these pairs of bodies, (n, 2), has one that is jammed."""
        return bool((self._times[pairs] >= PARTS).any(axis=1).all())

    def rest(self, velocity: wp.array, part: wp.array, held: wp.array, joined: np.ndarray) -> None:
        """Joined bodies that are jammed and stand still have no velocity; fixed and driven ones keep theirs."""
        jammed = self.jammed & joined
        if jammed.any():
            stands = jammed & (part.numpy() == 0.0) & (held.numpy() & STILL != STILL)
            velocity.assign(np.where(stands[:, None], 0.0, velocity.numpy()))

    @property
    def jammed(self) -> np.ndarray:
        """(n,) bool."""
        return self._times >= PARTS

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
        self._times = kept["times"].astype(np.int64)
