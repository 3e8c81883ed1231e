"""Walls on a raster of nodes: which nodes are inside a plan, and which steps from node to node a wall cuts.

Question: what of a plan do the nodes of a square raster see?
Method:   each wall cuts the lines of the raster; where a row of nodes has been cut an odd number of times, it is
          inside. All walls at once, a cut at a time.
Known as: scan conversion by the even-odd rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Raster:
    """Nodes at origin + (i, j) side, i below columns and j below rows."""

    origin: np.ndarray  #: (2,) [m]
    side: float  #: [m]
    columns: int
    rows: int

    @classmethod
    def around(cls, bounds: tuple[float, float, float, float], side: float, shift: float = 0.0) -> Raster:
        """Nodes over a box, with one more on each side, shifted by this part of a side."""
        low, high = np.array(bounds[:2]) - (1.0 - shift) * side, np.array(bounds[2:]) + side
        columns, rows = (int(n) for n in np.ceil((high - low) / side) + 1)
        return cls(low, side, columns, rows)

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns, self.rows

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """(columns,) x and (rows,) y of the nodes [m]."""
        x, y = (self.origin[k] + self.side * np.arange(n) for k, n in enumerate(self.shape))
        return x, y

    def cuts(self, walls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How often walls cut the step that leads to each node from the one before, in x and in y."""
        along_x = np.zeros((self.columns + 1, self.rows), np.int32)
        along_y = np.zeros((self.columns, self.rows + 1), np.int32)
        local = (walls - self.origin) / self.side
        row, at = _crossings(local, 1, self.rows)
        np.add.at(along_x, (np.clip(np.floor(at).astype(int) + 1, 0, self.columns), row), 1)
        column, at = _crossings(local[:, :, ::-1], 1, self.columns)
        np.add.at(along_y, (column, np.clip(np.floor(at).astype(int) + 1, 0, self.rows)), 1)
        return along_x[:-1], along_y[:, :-1]


def _crossings(walls: np.ndarray, axis: int, lines: int) -> tuple[np.ndarray, np.ndarray]:
    """Where walls cross the lines 0, 1, …, across an axis: the line, and the other coordinate there."""
    a, b = walls[:, 0], walls[:, 1]
    low, high = np.minimum(a[:, axis], b[:, axis]), np.maximum(a[:, axis], b[:, axis])
    first = np.clip(np.ceil(low), 0, lines).astype(int)
    last = np.clip(np.ceil(high), 0, lines).astype(int)  # not the upper end itself: the next wall has it
    count = last - first
    wall = np.repeat(np.arange(len(walls)), count)
    line = np.arange(len(wall)) - np.repeat(np.cumsum(count) - count, count) + first[wall]
    part = (line - a[wall, axis]) / (b[wall, axis] - a[wall, axis])
    return line, a[wall, 1 - axis] + part * (b[wall, 1 - axis] - a[wall, 1 - axis])
