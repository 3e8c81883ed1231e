"""First contact of analytic bodies of which one or both follow a `Path`: stretch by stretch, until each pair is
stopped.

Sound:    as each stretch is; times are those of the paths, rounded towards the start (`heightfield.path`).
Known as: continuous collision detection along a piecewise trajectory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tangere.motion import Path
from tangere.query.contacts.record import Status
from tangere.query.first_contact.convex.query_batch import MovingSide
from tangere.query.first_contact.heightfield.path import LARGEST_BATCH, in_path_time


def first_along_paths(
    sides: tuple[MovingSide, MovingSide],
    paths: tuple[Path | None, Path | None],
    count: int,
    search: Callable[[MovingSide, MovingSide], np.ndarray],
) -> np.ndarray:
    """`ConvexContact` records of `count` pairs.

    Args:
        sides: the bodies; what they do along a path is taken from `paths`.
        paths: the path that all bodies of a side follow, or None where they have motions of their own.
        search: answers a batch of pairs of sides.
    """
    times = np.unique(np.concatenate([[0.0, 1.0], *(path.times for path in paths if path is not None)]))
    answers, waiting = None, np.arange(count)
    begin, size = 0, 1
    while begin < len(times) - 1 and len(waiting):
        size = max(1, min(2 * size, len(times) - 1 - begin, LARGEST_BATCH // len(waiting)))
        stretch = np.tile(np.arange(begin, begin + size), len(waiting))
        rows = np.repeat(waiting, size)
        first, last = times[stretch], times[stretch + 1]
        parts = (_stretches(side, path, rows, first, last) for side, path in zip(sides, paths, strict=True))
        found = in_path_time(search(*parts).copy(), first, last).reshape(len(waiting), size)
        chosen = np.argmax(found["status"] != Status.FREE, axis=1)
        kept = found["tolerance"].max(axis=1)
        if answers is None:
            answers = found[:, 0].copy()
            answers["tolerance"] = 0.0
        kept = np.maximum(kept, answers["tolerance"][waiting])
        answers[waiting] = found[np.arange(len(waiting)), chosen]
        answers["tolerance"][waiting] = kept
        waiting = waiting[answers["status"][waiting] == Status.FREE]
        begin += size
    assert answers is not None  # there is a stretch
    return answers


def _stretches(side: MovingSide, path: Path | None, rows: np.ndarray, begin: np.ndarray, end: np.ndarray) -> MovingSide:
    """The bodies of some rows, each with its motion between two times."""
    chosen = side[rows] if path is None else MovingSide(side.shape, side.poses, side.motion, side.count, False)
    if path is not None and len(side.poses) > 1:
        chosen = MovingSide(side.shape[rows], side.poses[rows], side.motion, len(rows), False)
    motion = chosen.motion.part(begin, end) if path is None else path.between(begin, end)
    return MovingSide(chosen.shape, chosen.poses, motion, len(rows), False)
