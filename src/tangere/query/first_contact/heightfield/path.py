"""First contact of bodies that follow a path: the screws between its poses, in batches, until each body is stopped.

Sound: a time within a stretch is given in the path's own time, rounded towards the start; contact that is certain by a
       time of the stretch is certain by that time rounded up.
Known as: continuous collision detection along a piecewise trajectory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tangere.query.contacts.record import Status
from tangere.shape import Moving

#: Stretches of bodies in one batch, at most; each batch has twice as many of a body as the one before.
LARGEST_BATCH = 65_536


def first_along(bodies: Moving, trusted: bool, search: Callable[[Moving, bool], np.ndarray]) -> np.ndarray:
    """What each of n bodies that follow one path finds, as `Answer` records, (n,).

    Args:
        bodies: analytic bodies whose motion is a `Path`.
        trusted: whether not to look if a body is buried at t = 0.
        search: answers a batch of bodies in screw motion, trusted or not.
    """
    path, shape = bodies.motion, bodies.shape
    # Only the first stretch has a start to look at: a body that went below ground through a hole is not buried.
    answers = in_path_time(search(shape.moving(path.segments[:1]), trusted), *path.times[:2])
    begin, size = 1, 1
    while begin < len(path):
        moving = np.flatnonzero(answers["status"] == Status.FREE)
        if not len(moving):
            break
        size = max(1, min(2 * size, len(path) - begin, LARGEST_BATCH // len(moving)))
        stretch = np.tile(np.arange(begin, begin + size), len(moving))
        found = search(shape[np.repeat(moving, size)].moving(path.segments[stretch]), True)
        found = in_path_time(found, path.times[stretch], path.times[stretch + 1]).reshape(len(moving), size)
        first = np.argmax(found["status"] != Status.FREE, axis=1)
        kept = np.maximum(answers["tolerance"][moving], found["tolerance"].max(axis=1))
        answers[moving] = found[np.arange(len(moving)), first]
        answers["tolerance"][moving] = kept
        begin += size
    return answers


def in_path_time(answers: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Answers about stretches from `begin` to `end` of a path, in its time."""
    for name, towards in (("time", 0.0), ("time_upper", np.inf)):
        within = answers[name]
        along = begin + (end - begin) * within  # three roundings, together below two units in the last place
        rounded = np.minimum(np.nextafter(np.nextafter(along, towards), towards), end)
        answers[name] = np.where((within > 0.0) & np.isfinite(within), rounded, along)
    answers["status"][(answers["status"] == Status.START) & (begin > 0.0)] = Status.CONTACT
    return answers
