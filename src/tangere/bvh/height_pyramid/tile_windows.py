"""Which tiles of a terrain bodies may touch: noted by a kernel, or listed on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.terrain import TILE, Terrain
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["note_tiles", "tiles_of", "windows_of"]

_ONE = wp.constant(wp.float64(1.0))
_SIDE = wp.constant(wp.float64(float(TILE)))


@wp.kernel
def note_tiles(
    first: int,
    terrain: wp.array[Terrain],
    tiles_y: int,
    centres: wp.array2d[wp.float64],
    reach: wp.array[wp.float64],
    question: wp.int64,
    noted: wp.array[wp.int64],
    lacking: wp.array[wp.int64],
):
    """Write the number of the question to all tiles of body i, and to `lacking` where one has no page.

    Bodies may write to the same place, but they all write the same.
    """
    i = first + wp.tid()
    t = terrain[0]
    far = reach[wp.min(i, reach.shape[0] - 1)]
    rows = tile_range(centres[i, 1] - t.origin[1], far, t.dy, tiles_y)
    columns = tile_range(centres[i, 0] - t.origin[0], far, t.dx, t.tiles_x)
    for row in range(rows[0], rows[1] + 1):
        for column in range(columns[0], columns[1] + 1):
            tile = row * t.tiles_x + column
            noted[tile] = question
            if t.page[tile] < 0:
                lacking[0] = question


@wp.func
def tile_range(at: wp.float64, reach: wp.float64, step: wp.float64, count: int) -> wp.vec2i:
    """First and last tile along an axis, one cell more than a body reaches; first > last for none, and for NaN."""
    around = reach / step + _ONE
    low = (at / step - around) / _SIDE
    high = (at / step + around) / _SIDE
    if not (high >= wp.float64(0.0) and low < wp.float64(count)):
        return wp.vec2i(0, -1)
    return wp.vec2i(int(wp.max(low, wp.float64(0.0))), int(wp.min(high, wp.float64(count - 1))))


def windows_of(field: Any, centres: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last tile (row, column) of each body as `note_tiles` finds them; first > last for none."""
    step = np.array([field.spacing[1], field.spacing[0]])
    at = (centres[:, [1, 0]] - np.array([field.origin[1], field.origin[0]])) / step
    around = np.broadcast_to(reach, len(centres))[:, None] / step + 1.0
    counts = np.array([cells // TILE + 1 for cells in field.shape], np.float64)
    low, high = (at - around) / TILE, (at + around) / TILE
    some = ((high >= 0.0) & (low < counts)).all(axis=1, keepdims=True)  # NaN is not
    first = np.where(some, np.clip(low, 0.0, counts), 0.0).astype(np.int64)
    return first, np.where(some, np.clip(high, -1.0, counts - 1.0), -1.0).astype(np.int64)


def tiles_of(first: np.ndarray, last: np.ndarray, counts: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """All tiles of all windows, and the body of each, by rising body."""
    size = np.maximum(last - first + 1, 0)
    number = size[:, 0] * size[:, 1]
    owners = np.repeat(np.arange(len(first)), number)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(number) - number, number)
    width = np.maximum(size[owners, 1], 1)
    return (first[owners, 0] + within // width) * counts[1] + first[owners, 1] + within % width, owners
