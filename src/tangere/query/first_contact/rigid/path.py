"""First contact along a path: one question per stretch between poses, in batches, until the first that is not free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.motion import Path, Rest, Rigid
from tangere.query.contacts.record import Status
from tangere.query.first_contact.result import FirstContact
from tangere.shape.mesh import Mesh, Moving

__all__ = ["first_along", "has_path"]

#: Stretches asked about at once at first; each batch is twice the one before.
FIRST_BATCH = 16
LARGEST_BATCH = 4096


def has_path(*things: Mesh | Moving) -> bool:
    """Whether one of the bodies moves along a `Path`."""
    return any(isinstance(thing, Moving) and isinstance(thing.motion, Path) for thing in things)


def first_along(
    a: Mesh | Moving,
    b: Mesh | Moving,
    batch: Callable[[Moving, Moving], Any],
    single: Callable[[Moving, Moving], FirstContact],
) -> FirstContact:
    """The first contact of bodies of which one or both follow a path.

    Args:
        batch: answers n stretches at once, with `status`.
        single: answers one stretch in full.
    """
    times = np.unique(np.concatenate([_breaks(a), _breaks(b)]))
    for begin, end in _batches(times):
        parts = _stretches(a, begin, end), _stretches(b, begin, end)
        touched = np.flatnonzero(batch(*parts).status != Status.FREE)
        if not len(touched):
            continue
        k = int(touched[0])
        found = single(*(part.shape.moving(part.motion[k]) for part in parts))
        span = end[k] - begin[k]
        contacts = replace(found.contacts, time=begin[k] + span * found.contacts.time)
        upper = float(begin[k] + span * found.time_upper)
        return FirstContact(float(begin[k] + span * found.time), upper, found.status, contacts)
    return FirstContact(np.inf, np.inf, Status.FREE)


def _batches(times: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    first, size = 0, FIRST_BATCH
    while first < len(times) - 1:
        last = min(first + size, len(times) - 1)
        yield times[first:last], times[first + 1 : last + 1]
        first, size = last, min(2 * size, LARGEST_BATCH)


def _breaks(thing: Mesh | Moving) -> np.ndarray:
    if isinstance(thing, Moving) and isinstance(thing.motion, Path):
        return thing.motion.times
    return np.array([0.0, 1.0])


def _stretches(thing: Mesh | Moving, begin: np.ndarray, end: np.ndarray) -> Moving:
    """The body with its motion between each pair of times."""
    if isinstance(thing, Mesh):
        return thing.moving(Rest().part(begin, end))
    motion = thing.motion.between(begin, end) if isinstance(thing.motion, Path) else thing.motion.part(begin, end)
    assert isinstance(motion, Rigid)
    return thing.shape.moving(motion)
