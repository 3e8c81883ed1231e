"""First contact of rigid meshes, one question or a batch: the functions people call.

Question: the earliest time in [0, 1] at which two rigid bodies come within `separation` of each other, both may move.
Method:   each pair of boxes of two OBB trees carries its own time until which it is certainly free, moved on by a bound
          of second order in time; see `search`, `advance` and `leaf`.
Sound:    `time` is never late: before it, no two triangles are nearer than separation + tolerance / 2. At `time` the
          distance is at most separation + tolerance. Surfaces are what touches: a body wholly inside another is free.
Spec:     specs/redon-rigid-ccd-and-dynamics C3, C10, C12.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp

from tangere.query.contacts.record import Status
from tangere.query.first_contact.options import Options
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, bodies_of
from tangere.query.first_contact.rigid.contact_features import touching
from tangere.query.first_contact.rigid.contact_records import contacts_of, details_of
from tangere.query.first_contact.rigid.cpu.shared_search import search_shared
from tangere.query.first_contact.rigid.details import ContactDetail
from tangere.query.first_contact.rigid.initial_overlap import classify_initial_overlap
from tangere.query.first_contact.rigid.path import first_along, has_path
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.runtime import InputError, choose_device, thread_count, using_threads
from tangere.shape.mesh import Mesh, Moving

__all__ = ["Counters", "rigid_first_contact", "rigid_first_contacts"]

#: Desks kept for the next question about the same shapes.
KEPT_DESKS = 8
_kept = threading.local()


@dataclass
class Counters:
    """What searches did, added up; exact on one thread."""

    box_tests: int = 0  #: pairs of boxes evaluated at a time
    triangle_tests: int = 0  #: pairs of triangles evaluated at a time
    triangle_pairs: int = 0  #: pairs of triangles reached
    receding: int = 0  #: pairs dropped because one of them moves away

    def add(self, rows: np.ndarray) -> None:
        """Add the counters of jobs, one row each."""
        total = rows.sum(axis=0)
        self.box_tests += int(total[0])
        self.triangle_tests += int(total[1])
        self.triangle_pairs += int(total[2])
        self.receding += int(total[3])


def rigid_first_contact(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    separation: float = 0.0,
    tolerance: float | None = None,
    contacts: Literal["first", "all"] = "first",
    recession: bool = False,
    start: Literal["checked", "trusted"] = "checked",
    counters: Counters | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which two rigid bodies touch.

    Args:
        a, b: meshes at rest, or moving by `Twist`, `Screw`, a link of a `Chain`, a `Path`, … (one motion each).
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            larger body's size.
        contacts: "all" also tells every other pair of features within separation + tolerance at that time. Nothing is
            reduced: boxes that land flat on each other have some hundred, for every edge of a triangulation counts.
        recession: drop parts that move away from the other body, by recession cones. On conforming parts (41k on 33k
            triangles, one thread) lifting was 3 to 22 times as fast, sliding 1 to 2.3 times, pressing a fifth slower.
            Meshes that are open or not oriented lose nothing, nor do questions where one body starts inside the other.
        start: "checked" asks exactly, of bodies that are within tolerance at t = 0, whether they meet there (START), or
            do not (CONTACT); "trusted" does not ask (for step loops that leave no overlap behind). With `recession`,
            whose cones take the surfaces not to meet at t = 0, "checked" looks first for what touches or overlaps
            then, which takes about as long as the search; "trusted" does not, and a pair that is within tolerance at
            t = 0 but parting is no contact then.
        counters: where to add up what the search did.
        device: where to search; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    options = Options(separation=separation, tolerance=tolerance)
    _check_start(start)
    if contacts not in ("first", "all"):
        raise InputError(f"contacts must be 'first' or 'all', not {contacts!r}")
    if has_path(a, b):
        settings = {
            "separation": separation,
            "tolerance": tolerance,
            "counters": counters,
            "device": device,
            "recession": recession,
            "start": start,
        }
        return first_along(
            a,
            b,
            # here only free or not counts: the exact question is for the one stretch that is told
            lambda p, q: rigid_first_contacts(
                p, q, **(settings if recession else settings | {"start": "trusted"}), details=False, threads=threads
            ),
            lambda p, q: rigid_first_contact(p, q, **settings, contacts=contacts, threads=threads),
        )
    ones = bodies_of(a, "a"), bodies_of(b, "b")
    for name, bodies in zip("ab", ones, strict=True):
        if bodies.count is not None:
            raise InputError(f"{name} has {bodies.count} motions: ask rigid_first_contacts")
    with using_threads(threads):
        desk = _asked(*ones, options, recession, start, device)
        touches = desk.described()
        desk.refuse_small(options.tolerance)
        if counters is not None:
            counters.add(desk.host_counters)
        status = Status(int(desk.status()[0]))
        if status == Status.FREE:
            return FirstContact(np.inf, np.inf, Status.FREE)
        found = touches
        if contacts == "all":
            instants = wp.array(desk.host_bests["time"].copy(), dtype=wp.float64, device=desk.device)
            others = touching(desk.inputs, instants).numpy()
            others["time"] = touches["time"][0]
            found = np.concatenate([touches.view(np.uint8), others.view(np.uint8)]).view(touches.dtype)
        record = contacts_of(found, ones[0].shapes, ones[1].shapes)
        return FirstContact(float(touches["time"][0]), float(touches["time_upper"][0]), status, record)


def rigid_first_contacts(
    a: Mesh | Moving | MovingBodies,
    b: Mesh | Moving | MovingBodies,
    *,
    separation: float = 0.0,
    tolerance: float | None = None,
    details: bool = True,
    recession: bool = False,
    start: Literal["checked", "trusted"] = "checked",
    counters: Counters | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> FirstContacts:
    """First contact of n pairs of rigid bodies in one go: n with n, or n with one.

    Args:
        a, b: meshes, moving by n motions or one, or `MovingBodies` of several shapes.
        separation, tolerance, recession, start, counters, device, threads: as for `rigid_first_contact`.
        details: also tell features, points and normals.
    """
    options = Options(separation=separation, tolerance=tolerance)
    _check_start(start)
    ones = bodies_of(a, "a"), bodies_of(b, "b")
    if {bodies.count for bodies in ones} in ({0}, {0, None}):
        nothing, status = np.zeros(0, ContactDetail.numpy_dtype()), np.zeros(0, np.uint8)
        return FirstContacts(np.zeros(0), np.zeros(0), status, **(details_of(nothing, status) if details else {}))
    with using_threads(threads):
        desk = _asked(*ones, options, recession, start, device)
        touches = desk.described()
        desk.refuse_small(options.tolerance)
        if counters is not None:
            counters.add(desk.host_counters)
        status = desk.status()
        columns = details_of(touches, status) if details else {}
        return FirstContacts(touches["time"].copy(), touches["time_upper"].copy(), status, **columns)


def _asked(
    a: MovingBodies, b: MovingBodies, options: Options, recession: bool, start: str, device: str | None
) -> RigidQueryBatch:
    """A desk on which the questions have been searched."""
    counts = {bodies.count for bodies in (a, b) if bodies.count is not None}
    if len(counts) > 1:
        raise InputError(f"a has {a.count} bodies and b has {b.count}: they must be as many, or one")
    count = counts.pop() if counts else 1
    place = choose_device(device)
    forests = Forest.of(a.shapes, place), Forest.of(b.shapes, place)
    motions = len(a.motion.records()) + len(b.motion.records())
    desks = _kept.__dict__.setdefault("desks", OrderedDict())
    key = (id(forests[0]), id(forests[1]), count, motions, recession)
    desk = desks.pop(key, None) or RigidQueryBatch(*forests, count, motions, place, recession=recession)
    desks[key] = desk
    if len(desks) > KEPT_DESKS:
        desks.popitem(last=False)
    desk.ask(a, b, options.separation, options.tolerance)
    before = desk.at_start() if recession and start == "checked" else None
    threads = thread_count()
    if count == 1 and threads > 1 and place.is_cpu:
        search_shared(desk, threads)
    else:
        desk.search_each()
    if before is not None:
        desk.put(before)
    if start == "checked":
        classify_initial_overlap(desk, lambda row: (a.body(row), b.body(row)))
    return desk


def _check_start(start: str) -> None:
    if start not in ("checked", "trusted"):
        raise InputError(f"start must be 'checked' or 'trusted', not {start!r}")
