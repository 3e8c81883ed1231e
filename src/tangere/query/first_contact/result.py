"""Answers to "when do they first touch": one for two bodies, one for batches: of primitives, of motions, of bodies.

The contract of time: `time` is never later than the true first contact; at `time` the distance is at most
separation + tolerance; by `time_upper` contact is certain (inf where that is not known).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts, Kind, Status, contact_facts
from tangere.runtime import InputError, text_below, to_numpy, view_room


@dataclass(frozen=True, eq=False)
class FirstContacts:
    """First contact of each of n pairs of primitives, motions or bodies. Arrays are of the library the query was given.

    `point_a` … `kind` are None if the query was made with `details=False`.
    """

    time: Any  #: (n,) in [0, 1], inf when free
    time_upper: Any  #: (n,) contact is certain by then, inf when that is not proved
    status: Any  #: (n,) `Status`
    kind: Any = None  #: (n,) `Kind` of the features that meet: vertex-edge if a weight of the face is zero, and so on
    weights: Any = None  #: (n, 4) of the four vertices: vertex-face (1, w0, w1, w2), edge-edge (1-u, u, 1-w, w)
    point_a: Any = None  #: (n, 3) on the first primitive at `time` [m]
    point_b: Any = None  #: (n, 3) on the second primitive at `time` [m]
    normal: Any = None  #: (n, 3) unit, pushes the first primitive away from the second
    test: Any = None  #: (n,) triangle-triangle only: which of the 15 tests touched first, -1 when free or overlapping
    skin: Any = None  #: the `Skin` that the first bodies were asked about without, if any

    def __len__(self) -> int:
        return len(self.time)

    def __bool__(self) -> bool:
        raise InputError(f"{len(self)} answers are not true or false as one: ask `hit.any()` or `hit.all()`")

    @property
    def hit(self) -> Any:
        """(n,) True where there is a contact or none could be excluded; NumPy where the query was given Warp arrays."""
        if isinstance(self.status, wp.array):
            return self.status.numpy() != Status.FREE
        return self.status != Status.FREE

    def __repr__(self) -> str:
        status = to_numpy(self.status, "status", np.uint8)
        counts = ", ".join(f"{int((status == s).sum())} {s}" for s in Status if (status == s).any())
        return f"FirstContacts({len(self)} queries: {counts or 'none'})"

    def _repr_html_(self) -> str:
        """For notebooks: how many of each status, and the earliest contact."""
        status, times = to_numpy(self.status, "status", np.uint8), to_numpy(self.time, "time")
        facts: dict[str, Any] = {str(s): int((status == s).sum()) for s in Status if (status == s).any()}
        if np.isfinite(times).any():
            facts["earliest"] = f"t = {text_below(times.min(), 9)}, query {int(times.argmin())}"
        return view_room().html(f"FirstContacts of {len(self)} queries", facts)


@dataclass(frozen=True, eq=False)
class FirstContact:
    """First contact of two bodies, or of one body with itself, within a step."""

    time: float  #: in [0, 1], inf when free
    time_upper: float  #: contact is certain by then, inf when that is not proved
    status: Status
    contacts: Contacts = field(default_factory=Contacts)  #: the contact at `time` (empty when free)
    skin: Any = None  #: the `Skin` that the first body was asked about without, if any

    def __bool__(self) -> bool:
        """True where there is a contact or none could be excluded."""
        return self.status != Status.FREE

    def __repr__(self) -> str:
        if self.status == Status.FREE:
            return "FirstContact(free)" if self.skin is None else f"FirstContact(free but for {self.skin})"
        what = "no detail"
        if len(self.contacts):
            kind, place = Kind(self.contacts.kind[0]), ", ".join(f"{x:.6g}" for x in self.contacts.point_b[0])
            what = f"around ({place})" if kind == Kind.NONE else kind
        return f"FirstContact({self.status} at t={text_below(self.time, 9)}, {what})"

    def _repr_html_(self) -> str:
        """For notebooks: when, where and which features."""
        facts: dict[str, Any] = {"status": self.status}
        if self.status != Status.FREE:
            facts |= {"time": text_below(self.time, 9), "certain by": f"{self.time_upper:.9g}"}
        return view_room().html("FirstContact", facts | contact_facts(self.contacts))


@dataclass(frozen=True)
class Candidates:
    """Pairs whose moving boxes meet and that share no vertex, as numbers of features of a and b."""

    vertex_face: np.ndarray  #: (n, 2): vertex of a, face of b
    edge_edge: np.ndarray  #: (n, 2): edge of a, edge of b
    face_vertex: np.ndarray  #: (n, 2): face of a, vertex of b (none for a mesh with itself)
