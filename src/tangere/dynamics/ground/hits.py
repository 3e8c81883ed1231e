"""Bodies that touch the ground on their way, and nothing else: what the walk of a step passes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class GroundHits:
    """Bodies that touch the ground on their way: pairs with the ground's body, when, and where."""

    pairs: np.ndarray  #: (n, 2) int32
    times: np.ndarray  #: (n,)
    point_a: np.ndarray  #: (n, 3) [m]
    point_b: np.ndarray  #: (n, 3) [m]
    normal: np.ndarray  #: (n, 3)


NO_HITS = GroundHits(np.zeros((0, 2), np.int32), np.zeros(0), *(np.zeros((0, 3)) for _ in range(3)))
