"""First contact of rigid meshes, one query or a batch: the functions people call.

Question: the earliest time in [0, 1] at which two rigid bodies come within `separation` of each other, both may move.
Method:   each pair of boxes of two OBB trees carries its own time until which it is certainly free, moved on by a bound
          of second order in time; see `traversal`, `conservative_advancement` and `narrow_phase`.
Sound:    `time` is never late: before it, no two triangles are nearer than separation + tolerance / 2. At `time` the
          distance is at most separation + tolerance. Surfaces are what touches: a body wholly inside another is free.
Known as: conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006) of bounding volume pairs (Tang, Kim and
          Manocha 2009, C2A), time of impact; Redon 2002, chapter 3, searches by intervals instead.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from tangere.query.contacts.record import DeferredContacts, Status
from tangere.query.first_contact.options import Accuracy, RigidOptions, Start, check_start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, batch_size, bodies_of
from tangere.query.first_contact.rigid.details import ContactDetail, certain_times, columns_of, contacts_at, contacts_of
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.query.first_contact.rigid.single_query import SingleQuery
from tangere.runtime import InputError, choose_device, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: Batches kept for the next query about the same shapes.
KEPT_BATCHES = 8
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
    start: Start = "checked",
    options: RigidOptions | None = None,
    counters: Counters | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which two rigid bodies touch.

    Args:
        a, b: meshes at rest, or moving by `Twist`, `Screw`, a link of a `Chain`, … (one motion each).
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            larger body's size.
        start: "checked" decides exactly, for bodies that are within tolerance at t = 0, whether they meet there (START)
            or do not (CONTACT); "trusted" does not (for step loops that leave no overlap behind).
        options: all contacts at that time, recession culling.
        counters: where to add up what the search did.
        device: where to search; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    accuracy, options = Accuracy(separation=separation, tolerance=tolerance), options or RigidOptions()
    check_start(start)
    sides = bodies_of(a, "a"), bodies_of(b, "b")
    for name, bodies in zip("ab", sides, strict=True):
        if bodies.count is not None:
            raise InputError(f"{name} has {bodies.count} motions: ask rigid_first_contacts")
    with using_threads(threads):
        question = SingleQuery.of(*sides, options.recession, choose_device(device))
        question.batch.counting = counters is not None
        question.search(*sides, accuracy.separation, accuracy.tolerance, start)
        question.batch.refuse_small_tolerance(accuracy.tolerance)
        if counters is not None:
            counters.add(question.batch.host_counters)
        status = question.status
        if status == Status.FREE:
            return FirstContact(np.inf, np.inf, status)
        detail = found = question.details()
        if options.contacts == "all":
            others = contacts_at(question.batch.arrays, np.array([question.time])).numpy()
            others["time"] = detail["time"][0]
            found = np.concatenate([detail.view(np.uint8), others.view(np.uint8)]).view(detail.dtype)
        contacts = DeferredContacts.by(partial(contacts_of, found, sides[0].shapes[0], sides[1].shapes[0]))
        return FirstContact(detail["time"].item(0), detail["time_upper"].item(0), status, contacts)


def rigid_first_contacts(
    a: Mesh | Moving | MovingBodies,
    b: Mesh | Moving | MovingBodies,
    *,
    separation: float = 0.0,
    tolerance: float | None = None,
    start: Start = "checked",
    options: RigidOptions | None = None,
    details: bool = True,
    counters: Counters | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContacts:
    """First contact of n pairs of rigid bodies in one go: n with n, or n with one.

    Args:
        a, b: meshes, moving by n motions or one, or `MovingBodies` of several shapes.
        separation, tolerance, start, options, counters, device, threads: as for `rigid_first_contact`.
        details: whether to find features, points and normals as well.
    """
    accuracy, options = Accuracy(separation=separation, tolerance=tolerance), options or RigidOptions()
    check_start(start)
    if options.contacts != "first":
        raise InputError("contacts='all' takes one motion, not a batch")
    sides = bodies_of(a, "a"), bodies_of(b, "b")
    if {bodies.count for bodies in sides} in ({0}, {0, None}):
        nothing, status = np.zeros(0, ContactDetail.numpy_dtype()), np.zeros(0, np.uint8)
        return FirstContacts(np.zeros(0), np.zeros(0), status, **(columns_of(nothing, status) if details else {}))
    with using_threads(threads):
        batch = _searched(*sides, accuracy, options.recession, start, counters is not None, device)
        batch.refuse_small_tolerance(accuracy.tolerance)
        found = batch.contact_details()
        if counters is not None:
            counters.add(batch.host_counters)
        status, upper = batch.status(), found["time_upper"].copy()
        open_ = (status != Status.FREE) & np.isinf(upper)
        if open_.any():
            upper = np.minimum(upper, certain_times(batch.arrays, np.where(open_, batch.host_hits["time"], 2.0)))
        columns = columns_of(found, status) if details else {}
        return FirstContacts(found["time"].copy(), upper, status, **columns)


def _searched(
    a: MovingBodies,
    b: MovingBodies,
    accuracy: Accuracy,
    recession: bool,
    start: str,
    counting: bool,
    device: str | wp.Device | None,
) -> RigidQueryBatch:
    """The queries, searched for their first contact; prepared batches of about the size and shapes are used again."""
    count = batch_size(a, b)
    device = choose_device(device)
    forests = Forest.of(a.shapes, device), Forest.of(b.shapes, device)
    motions = len(a.motion.records()) + len(b.motion.records())
    room = count
    if not recession:  # whose start is checked for all there is room for
        room, motions = (1 << (size - 1).bit_length() for size in (count, motions))
    batches = _kept.__dict__.setdefault("batches", OrderedDict())
    key = (id(forests[0]), id(forests[1]), room, motions, recession)
    batch = batches.pop(key, None) or RigidQueryBatch(*forests, room, motions, device, recession=recession)
    batch.take(count)
    batches[key] = batch
    if len(batches) > KEPT_BATCHES:
        batches.popitem(last=False)
    batch.counting = counting
    batch.set_queries(a, b, accuracy.separation, accuracy.tolerance)
    before = batch.initial_hits() if recession and start == "checked" else None
    batch.search_each()
    if before is not None:
        batch.override_hits(before)
    if start == "checked":
        batch.classify_initial_overlap(lambda row: (a.body(row), b.body(row)))
    return batch
