"""What the interval engine answers: times, triangles, contacts, and what it took to find them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.query.contacts.record import Contacts, Status
from tangere.query.first_contact.mixed.options import IntervalCounters


@dataclass(frozen=True, eq=False)
class IntervalContacts:
    """First contacts of n motions of two meshes, with what it took to find them."""

    time: np.ndarray  #: (n,) in [0, 1], inf when free
    status: np.ndarray  #: (n,) `Status`
    triangles: np.ndarray  #: (n, 2) triangle of a and of b, -1 when free
    feature: np.ndarray  #: (n,) 3i + j edges i of a and j of b; 9 + i vertex i of a; 12 + j vertex j of b; -1 when free
    contacts: Contacts  #: one for each query that is not free
    counters: IntervalCounters  #: over all queries
    seconds: float  #: wall time of the search

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return f"IntervalContacts({len(self)} queries, {int((self.status != Status.FREE).sum())} with a contact)"
