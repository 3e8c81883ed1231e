"""A piece of a terrain, to be drawn: what lies around the bodies, at most so fine as a picture can show."""

from __future__ import annotations

import math

import numpy as np

from tangere.shape.heightfield import Heightfield

_MOST = 800  #: vertices along a side


def patch(terrain: Heightfield, centre: np.ndarray, half: tuple[float, float]) -> Heightfield:
    """The cells of a terrain within a rectangle about `centre` [m], and those on its border; one cell at least.

    Args:
        centre: its x and y [m].
        half: half of its sides along x and y [m]. Where that is more cells than can be told apart in a picture, only
            every second, third … vertex is taken.
    """
    (dx, dy), (x0, y0, z0) = terrain.spacing, terrain.origin
    columns = _between(centre[0] - x0, half[0], dx, terrain.heights.shape[1])
    rows = _between(centre[1] - y0, half[1], dy, terrain.heights.shape[0])
    heights = terrain.heights[rows, columns]
    holes = None if terrain.holes is None else terrain.holes[rows, columns][: len(heights) - 1, : heights.shape[1] - 1]
    origin = (x0 + columns.start * dx, y0 + rows.start * dy, z0)
    return Heightfield(heights, (dx * columns.step, dy * rows.step), origin, holes, name=terrain.name)


def _between(centre: float, half: float, cell: float, count: int) -> slice:
    first = min(max(math.floor((centre - half) / cell), 0), count - 2)
    last = max(min(math.ceil((centre + half) / cell), count - 1), first + 1)
    return slice(first, last + 1, min(-(-(last - first) // _MOST), last - first))
