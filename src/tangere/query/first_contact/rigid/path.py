"""First contact along a path: one query per stretch between poses, in batches, until the first that is not free.

Question: the earliest time along a `Path` of screws at which two rigid bodies touch.
Method:   `rigid_first_contacts` of 16 stretches, then twice as many, …; the first that touches is asked in full.
Sound:    as each stretch is; times are those of the path.
Known as: continuous collision detection along a piecewise trajectory, path validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import warp as wp

from tangere.motion import Path, Rest, Rigid
from tangere.query.contacts.record import Status
from tangere.query.first_contact.options import RigidOptions, Start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.api import Counters, rigid_first_contact, rigid_first_contacts
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: Stretches in the first batch; each batch is twice the one before.
FIRST_BATCH = 16
LARGEST_BATCH = 4096


def first_contact_along_path(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    separation: float = 0.0,
    tolerance: float | None = None,
    start: Start = "checked",
    options: RigidOptions | None = None,
    counters: Counters | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """First contact of rigid bodies of which one or both follow a `Path`; arguments as for `rigid_first_contact`."""
    options = options or RigidOptions()
    settings = {
        "separation": separation,
        "tolerance": tolerance,
        "counters": counters,
        "device": device,
        "threads": threads,
    }
    # Of a batch only free or not counts: the exact test of the start is for the one stretch that is reported, unless
    # cones need it of all.
    quick, quick_start = replace(options, contacts="first"), start if options.recession else "trusted"

    def many(*parts: Moving) -> FirstContacts:
        return rigid_first_contacts(*parts, start=quick_start, options=quick, details=False, **settings)

    def one(*parts: Moving) -> FirstContact:
        return rigid_first_contact(*parts, start=start, options=options, **settings)

    return along_path((a, b), many, one)


def along_path(
    bodies: Sequence[Mesh | Moving], many: Callable[..., FirstContacts], one: Callable[..., FirstContact]
) -> FirstContact:
    """The first stretch of the bodies' paths that is not free, asked in full.

    Args:
        bodies: of which some follow a `Path`.
        many: answers about the bodies with n motions each: which are free?
        one: answers about the bodies with one motion each.
    """
    times = np.unique(np.concatenate([_breaks(body) for body in bodies]))
    for begin, end in _batches(times):
        parts = [_stretches(body, begin, end) for body in bodies]
        touched = np.flatnonzero(many(*parts).status != Status.FREE)
        if not len(touched):
            continue
        k = int(touched[0])
        hit = one(*(part.shape.moving(part.motion[k]) for part in parts))
        span = end[k] - begin[k]
        contacts = replace(hit.contacts, time=begin[k] + span * hit.contacts.time)
        upper = float(begin[k] + span * hit.time_upper)
        return FirstContact(float(begin[k] + span * hit.time), upper, hit.status, contacts)
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
