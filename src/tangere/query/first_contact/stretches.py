"""First contact where one thing follows a `Path` and the other deforms: stretch by stretch, until one is not free.

Method:   between two poses of the path it is a screw, and vertices that go along lines go along parts of them: each
          stretch is a question that has an engine.
Sound:    as each stretch is; times are those of the path, rounded towards the start, and the time by which contact is
          certain is rounded up.
Known as: continuous collision detection along a piecewise trajectory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tangere.motion import Linear, Path, Rigid
from tangere.query.contacts.record import Status
from tangere.query.dispatch import answer
from tangere.query.first_contact.options import Start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.runtime import InputError
from tangere.shape import Moving


def first_contact_by_stretches(a: Any, b: Any, *, start: Start = "checked", **options: Any) -> FirstContact:
    """When a thing along a `Path` first touches one in `Linear` motion; arguments as for `first_contact`."""
    paths = [thing.motion for thing in (a, b) if isinstance(thing, Moving) and isinstance(thing.motion, Path)]
    times = np.unique(np.concatenate([[0.0, 1.0], *(path.times for path in paths)]))
    for begin, end in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        parts = (_stretch(thing, begin, end) for thing in (a, b))
        found = answer("first_contact", *parts, mode="sound", start=start, options=None, **options)
        if isinstance(found, FirstContacts):
            raise InputError(f"{len(found)} bodies follow a Path against a mesh in Linear motion: ask one by one")
        if found.status != Status.FREE:
            return _in_path_time(found, begin, end)
    return FirstContact(np.inf, np.inf, Status.FREE)


def _stretch(thing: Any, begin: float, end: float) -> Any:
    """A thing with its motion between two times."""
    if not isinstance(thing, Moving):
        return thing
    if isinstance(thing.motion, Linear):
        first, last = (thing.motion.positions(thing.shape.vertices, time) for time in (begin, end))
        return thing.shape.replace(vertices=first).moving(Linear(last))
    if isinstance(thing.motion, Path):
        return thing.shape.moving(thing.motion.between(np.array([begin]), np.array([end]))[0])
    assert isinstance(thing.motion, Rigid)
    return thing.shape.moving(thing.motion.part(begin, end))


def _in_path_time(found: FirstContact, begin: float, end: float) -> FirstContact:
    """The answer about a stretch in the time of the whole: three roundings, below two units in the last place."""
    along, upper = (begin + (end - begin) * time for time in (found.time, found.time_upper))
    if found.time > 0.0:
        along = min(float(np.nextafter(np.nextafter(along, 0.0), 0.0)), end)
    if 0.0 < found.time_upper < np.inf:
        upper = min(float(np.nextafter(np.nextafter(upper, np.inf), np.inf)), end)
    status = Status.CONTACT if found.status == Status.START and begin > 0.0 else found.status
    contacts = replace(found.contacts, time=np.full(len(found.contacts), along))
    return FirstContact(along, upper, status, contacts)
