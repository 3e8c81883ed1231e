"""Which part of a terrain a batch of bodies needs, and that part made ready for kernels.

A heightfield in memory is ready as a whole. Of one in tiles only some are resident: bodies are taken in groups, near
ones together, such that the tiles of a group fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid.paged_pyramid import PagedPyramid
from tangere.bvh.height_pyramid.pyramid import HeightPyramid
from tangere.runtime import UnsupportedError
from tangere.shape.heightfield import Heightfield, TiledHeightfield

__all__ = ["terrain_visits", "tiles_held"]


def terrain_visits(
    field: Heightfield | TiledHeightfield, centres: np.ndarray, reach: np.ndarray, device: wp.Device
) -> Iterator[tuple[Any, Any]]:
    """Pairs of rows (an index of the batch: slice or array) and the `Terrain` that has all they need.

    Args:
        field: the ground.
        centres: a point of each body, world, shape (n, 3) [m].
        reach: how far from it the body, wherever it goes, may be, shape (n,) or (1,) [m].
        device: where the kernels run.

    The terrain of one visit is valid until the next, as long as its `tiles_held`.
    """
    if isinstance(field, Heightfield):
        yield slice(None), HeightPyramid.of(field, device).terrain
    elif isinstance(field, TiledHeightfield):
        yield from PagedPyramid.of(field, device).visits(centres, reach)
    else:
        raise UnsupportedError(f"a terrain is a Heightfield or a TiledHeightfield, not {field!r}")


@contextmanager
def tiles_held(fields: Iterable[Heightfield | TiledHeightfield], device: wp.Device) -> Iterator[None]:
    """Let no other thread load tiles of these fields, because it might take away those of a visit.

    Fields with all tiles loaded give none away: threads need not wait for each other.
    """
    pyramids = {PagedPyramid.of(field, device) for field in fields if isinstance(field, TiledHeightfield)}
    with ExitStack() as held:
        for pyramid in sorted(pyramids, key=id):  # in one order for all threads
            if not pyramid.has_all:
                held.enter_context(pyramid.lock)
        yield
