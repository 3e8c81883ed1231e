"""What the interval engine of the thesis answers: times, triangles, contacts, and what it took to find them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts, Status


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


@dataclass(frozen=True)
class IntervalCounters:
    """How often each test was made; exact on one thread."""

    box_final: int = 0  #: discrete box tests at the end
    box_initial: int = 0  #: discrete box tests at the start
    box_continuous: int = 0  #: continuous box tests
    box_intervals: int = 0  #: intervals those took (stage 1 evaluations)
    edge_edge: int = 0
    vertex_face: int = 0
    face_vertex: int = 0
    recession: int = 0
    leaf_intervals: int = 0  #: intervals the elementary tests took
    boxes: int = 0  #: pairs of boxes tested, N_BV

    @staticmethod
    def of(rows: np.ndarray) -> IntervalCounters:
        """The sum over queries of a kernel's table."""
        return IntervalCounters(*(int(total) for total in rows.reshape(-1, len(COLUMNS)).sum(axis=0)))


COLUMNS = tuple(IntervalCounters.__dataclass_fields__)
#: Places in the kernels' table of counters.
FINAL, INITIAL, CONTINUOUS, INTERVALS, EDGE_EDGE, VERTEX_FACE, FACE_VERTEX, RECESSION, LEAF_INTERVALS, BOXES = (
    wp.constant(i) for i in range(len(COLUMNS))
)
