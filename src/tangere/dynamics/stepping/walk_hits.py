"""What the walk of a step runs into: pairs of meshes, and analytic bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.analytic.hits import NO_HITS, AnalyticHits
from tangere.dynamics.stepping.walk import hits_of


@dataclass(frozen=True, eq=False)
class WalkHits:
    """Hits between meshes, then those of analytic bodies."""

    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))  #: (n, 2) bodies
    times: np.ndarray = field(default_factory=lambda: np.zeros(0))  #: (n,) in [0, 1]
    answer: Any = None  #: of the pairs of meshes asked about
    between: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))  #: which of these are hit
    analytic: AnalyticHits = NO_HITS

    @staticmethod
    def of(answer: Any, asked: wp.array, analytic: AnalyticHits) -> WalkHits:
        """The hits of an answer about pairs of meshes, None if none was asked about, and of analytic bodies."""
        if answer is None and not len(analytic.times):
            return WalkHits()
        pairs, times, between = analytic.pairs, analytic.times, np.zeros(0, np.int32)
        if answer is not None:
            every = answer.time.numpy()
            between = hits_of(every)
            pairs = np.concatenate([asked.numpy()[between], pairs])
            times = np.concatenate([every[between], times])
        return WalkHits(pairs, times, answer, between, analytic)

    def clear_bodies(self, velocity: wp.array, islands: wp.array) -> None:
        """Set the velocities of all bodies that are hit, and of all that touch these, to 0.

        Args:
            islands: of each body, -1 for none.
        """
        values, island = velocity.numpy(), islands.numpy()[: len(velocity)]
        values[self.pairs] = 0.0
        struck = np.unique(island[self.pairs])
        values[np.isin(island, struck[struck >= 0])] = 0.0
        velocity.assign(values)

    def __len__(self) -> int:
        return len(self.times)
