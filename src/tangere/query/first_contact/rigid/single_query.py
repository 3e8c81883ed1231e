"""One question about two bodies, kept ready: what stays the same from call to call is written once.

Method:   a `RigidQueryBatch` of one query. Of a call only the motions and the lengths are written, on the CPU straight
          into the arrays that kernels read, and only numbers are read back; points and features follow where there is
          a contact.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import warp as wp

from tangere.query.contacts.record import Status
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies
from tangere.query.first_contact.rigid.query_batch import TOLERANCE, RigidQueryBatch, status_of

#: Questions kept for the next call about the same shapes, by each thread.
KEPT_QUESTIONS = 16
_kept = threading.local()


class SingleQuery:
    """A question about the only bodies of two sides."""

    def __init__(self, a: Forest, b: Forest, links: tuple[int, int], recession: bool, device: wp.Device) -> None:
        self.batch = batch = RigidQueryBatch(a, b, 1, sum(links), device, recession=recession)
        self._plain = device.is_cpu and not recession
        columns = {"motion_a": 0, "motion_b": links[0], "links_a": links[0], "links_b": links[1]}
        batch.write_queries(columns | {"shape_a": 0, "shape_b": 0})
        self._motions = batch.host_motions[: links[0]], batch.host_motions[links[0] :]
        queries = batch.host_queries
        self._smooth, self._separation, self._tolerance = (
            queries[name] for name in ("smooth", "separation", "tolerance")
        )
        self._times = batch.host_hits["time"]

    @staticmethod
    def of(a: MovingBodies, b: MovingBodies, recession: bool, device: wp.Device) -> SingleQuery:
        """The question about these shapes that this thread has kept, or a new one."""
        forests = Forest.of(a.shapes, device), Forest.of(b.shapes, device)
        links = a.motion.links, b.motion.links
        kept = _kept.__dict__.setdefault("questions", OrderedDict())
        key = (id(forests[0]), id(forests[1]), links, recession)  # of forests that live: the question holds them
        question = kept.pop(key, None) or SingleQuery(*forests, links, recession, device)
        kept[key] = question
        if len(kept) > KEPT_QUESTIONS:
            kept.popitem(last=False)
        return question

    def search(self, a: MovingBodies, b: MovingBodies, separation: float, tolerance: float | None, start: str) -> None:
        """Find the first contact of two bodies that move so."""
        batch = self.batch
        if self._plain:
            self._motions[0][:] = a.motion.records()
            self._motions[1][:] = b.motion.records()
            self._smooth[0] = a.motion.smooth or b.motion.smooth
            self._separation[0] = separation
            if tolerance is None:
                tolerance = TOLERANCE * max(a.shapes[0].extent, b.shapes[0].extent)
            self._tolerance[0] = tolerance
            batch.prepare()
        else:
            batch.set_queries(a, b, separation, tolerance)
        before = batch.initial_hits() if batch.recession and start == "checked" else None
        batch.search_each()
        if before is not None:
            batch.override_hits(before)
        if start == "checked" and self.time == 0.0:
            batch.classify_initial_overlap(lambda row: (a.body(row), b.body(row)))

    @property
    def time(self) -> float:
        """Of the clock; beyond 1 where there is no contact."""
        return self._times.item(0)

    @property
    def status(self) -> Status:
        """What was found."""
        return status_of(self.batch.host_hits)

    def details(self) -> np.ndarray:
        """The contact as a `ContactDetail` record, (1,)."""
        return self.batch.contact_details().copy()
