"""What analytic bodies touch on their way: what the walk of a step passes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class AnalyticHits:
    """Analytic bodies that touch the ground or each other on their way: pairs of bodies, when, and where."""

    pairs: np.ndarray  #: (n, 2) int32; of the ground its body, which comes second
    times: np.ndarray  #: (n,)
    point_a: np.ndarray  #: (n, 3) [m]
    point_b: np.ndarray  #: (n, 3) [m]
    normal: np.ndarray  #: (n, 3)

    @staticmethod
    def joined(parts: Sequence[AnalyticHits]) -> AnalyticHits:
        """All of them, by rising pair."""
        if not parts:
            return NO_HITS
        columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(AnalyticHits)]
        order = np.lexsort((columns[0][:, 1], columns[0][:, 0]))
        return AnalyticHits(*(column[order] for column in columns))

    @staticmethod
    def of(found: Any, hit: np.ndarray, pairs: np.ndarray) -> AnalyticHits:
        """The hits of an answer of first contact about one pair of bodies or many.

        Args:
            hit: (n,) bool.
            pairs: (n, 2) that were asked about.
        """
        told = getattr(found, "contacts", found)  # one pair has its contact there
        times = np.atleast_1d(np.asarray(found.time, float))[hit]
        points = (np.asarray(getattr(told, name)) for name in ("point_a", "point_b", "normal"))
        return AnalyticHits(pairs[hit].astype(np.int32), times, *(each.reshape(-1, 3)[hit] for each in points))


NO_HITS = AnalyticHits(np.zeros((0, 2), np.int32), np.zeros(0), *(np.zeros((0, 3)) for _ in range(3)))
