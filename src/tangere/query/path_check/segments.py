"""What the first-contact searches said of the segments of a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.motion import Path
from tangere.query.contacts.record import Status


@dataclass(frozen=True)
class PathSegments:
    """The earliest answer of all obstacles about each of k segments; times are along the path."""

    status: np.ndarray
    time: np.ndarray  #: inf when free
    time_upper: np.ndarray  #: inf when contact is not certain
    obstacle: np.ndarray  #: -1 when free

    @staticmethod
    def of(path: Path, status: np.ndarray, times: np.ndarray, uppers: np.ndarray) -> PathSegments:
        """From answers of each obstacle, (obstacles, k), whose times are within the segments."""
        # An overlap goes before what only touches then.
        nearest = np.lexsort((status != Status.START, times), axis=0)[0]
        rows, span = np.arange(len(path)), np.diff(path.times)
        chosen = status[nearest, rows]
        return PathSegments(
            chosen,
            path.times[:-1] + times[nearest, rows] * span,
            path.times[:-1] + uppers[nearest, rows] * span,
            np.where(chosen != Status.FREE, nearest, -1),
        )

    @property
    def touching(self) -> np.ndarray:
        """Numbers of the segments that are not free."""
        return np.flatnonzero(self.status != Status.FREE)

    def certified(self, path: Path, times: np.ndarray) -> np.ndarray:
        """(m - 1,) between which times along the path nothing comes nearer than the separation."""
        segment = path_segment(path, times[:-1])
        return (self.status[segment] == Status.FREE) | (times[1:] <= self.time[segment])


def path_segment(path: Path, times: np.ndarray) -> np.ndarray:
    """Numbers of the segments that begin at or before the times."""
    return np.clip(np.searchsorted(path.times, times, side="right") - 1, 0, len(path) - 1)
