"""First contact of analytic bodies of which one or both follow a `Path`: stretch by stretch, until each pair is
stopped.

Sound:    as each stretch is; times are those of the paths, rounded towards the start (`heightfield.path`).
Known as: continuous collision detection along a piecewise trajectory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tangere.motion import Path, Rest
from tangere.query.contacts.record import Status
from tangere.query.first_contact.convex.query_batch import MovingSide
from tangere.query.first_contact.heightfield.path import LARGEST_BATCH, in_path_time

#: Stretches of a single body that are asked one by one, by a launch that is kept, before batches.
FEW = 4


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
    answers = _first_few(sides, paths, search)
    if answers is not None and answers["status"][0] != Status.FREE:
        return answers
    times = np.unique(np.concatenate([[0.0, 1.0], *(path.times for path in paths if path is not None)]))
    waiting, begin, size = np.arange(count), 0 if answers is None else FEW, 1
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


def _first_few(
    sides: tuple[MovingSide, MovingSide],
    paths: tuple[Path | None, Path | None],
    search: Callable[[MovingSide, MovingSide], np.ndarray],
) -> np.ndarray | None:
    """The answer about the first stretches of one body along a path and one at rest, in turn; None of others."""
    side = int(paths[0] is None)
    path, other = paths[side], sides[1 - side]
    if path is None or not (sides[0].single and sides[1].single and isinstance(other.motion, Rest)):
        return None
    found, kept = None, 0.0
    for k in range(min(FEW, len(path))):
        chosen = sides[side]
        moved = MovingSide(chosen.shape, chosen.poses, path.segments[k], 1, True)
        pair = (moved, other) if side == 0 else (other, moved)
        found = search(*pair).copy()
        kept = max(kept, float(found["tolerance"][0]))
        if found["status"][0] != Status.FREE:
            found = in_path_time(found, path.times[k : k + 1], path.times[k + 1 : k + 2])
            break
    assert found is not None  # a path has a stretch
    found["tolerance"] = kept
    return found


def _stretches(side: MovingSide, path: Path | None, rows: np.ndarray, begin: np.ndarray, end: np.ndarray) -> MovingSide:
    """The bodies of some rows, each with its motion between two times."""
    chosen = side[rows] if path is None else MovingSide(side.shape, side.poses, side.motion, side.count, False)
    if path is not None and len(side.poses) > 1:
        chosen = MovingSide(side.shape[rows], side.poses[rows], side.motion, len(rows), False)
    motion = chosen.motion.part(begin, end) if path is None else path.between(begin, end)
    return MovingSide(chosen.shape, chosen.poses, motion, len(rows), False)
