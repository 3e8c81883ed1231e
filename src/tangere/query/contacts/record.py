"""The one record that crosses the rooms: contacts, as a struct of arrays in the world frame at their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from threading import Lock
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import view_room


class Status(IntEnum):
    """What a first-contact query found."""

    FREE = 0  #: certified: no contact in the whole step
    CONTACT = 1  #: first contact at `time`
    START = 2  #: in contact, or overlapping, at time 0 already
    UNRESOLVED = 3  #: certified free until `time`, undecided after it; for Linear motion `mode="exact"` decides

    def __str__(self) -> str:
        return self.name.lower()


class Kind(IntEnum):
    """Which features meet."""

    NONE = 0
    VERTEX_FACE = 1
    EDGE_EDGE = 2
    VERTEX_EDGE = 3
    VERTEX_VERTEX = 4
    OVERLAP = 5  #: an edge pierces a face at time 0
    INSIDE = 6  #: one solid, or a piece of it, is wholly inside the other; the vertex is one of it (`solid=True`)

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


def _column(dtype: type, *shape: int) -> Any:
    """A column without rows."""
    return field(default_factory=lambda: np.zeros((0, *shape), dtype))


def _rows(value: Any, count: int, dtype: type, *shape: int) -> np.ndarray:
    """A column of `count` rows: the array itself where it is one of that type, else one value for all."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value, dtype) if shape else np.asarray(value, dtype)
    return np.full((count, *shape), value, dtype)


@dataclass(frozen=True, eq=False)
class Contacts:
    """n contacts. Every query that finds contacts returns this, every response consumes it, the viewer draws it.

    `normal` is a unit vector that pushes a away from b; `gap = (point_a - point_b) . normal`, negative inside.
    `feature_a` and `feature_b` are vertex, edge or face numbers of the bodies, as `kind` says. A vertex-face contact
    may have its vertex on either side: `vertex_on` is 0 where it belongs to a, 1 where it belongs to b (for an overlap,
    the same for the edge).
    """

    query: np.ndarray = _column(np.int32)  #: (n,) index of the query in a batch
    time: np.ndarray = _column(np.float64)  #: (n,) in [0, 1]
    point_a: np.ndarray = _column(np.float64, 3)  #: (n, 3) [m]
    point_b: np.ndarray = _column(np.float64, 3)  #: (n, 3) [m]
    normal: np.ndarray = _column(np.float64, 3)  #: (n, 3), unit
    gap: np.ndarray = _column(np.float64)  #: (n,) [m]
    body_a: np.ndarray = _column(np.int32)  #: (n,)
    body_b: np.ndarray = _column(np.int32)  #: (n,)
    feature_a: np.ndarray = _column(np.int32)  #: (n,)
    feature_b: np.ndarray = _column(np.int32)  #: (n,)
    weights: np.ndarray = _column(np.float64, 4)  #: (n, 4) of the four vertices involved, see `FirstContacts.weights`
    kind: np.ndarray = _column(np.uint8)  #: (n,) `Kind`
    vertex_on: np.ndarray = _column(np.uint8)  #: (n,) 0 or 1, for vertex-face contacts
    key: np.ndarray = _column(np.int64)  #: (n,) stable across steps and unique for each pair of bodies, for warm starts

    @staticmethod
    def of(
        *,
        point_a: np.ndarray,
        normal: np.ndarray,
        point_b: np.ndarray | None = None,
        gap: np.ndarray | None = None,
        time: np.ndarray | float = 0.0,
        kind: np.ndarray | Kind = Kind.NONE,
        feature_a: np.ndarray | int = -1,
        feature_b: np.ndarray | int = -1,
        vertex_on: np.ndarray | int = 0,
        weights: np.ndarray | float = 0.0,
        query: np.ndarray | int = 0,
        body_a: np.ndarray | int = 0,
        body_b: np.ndarray | int = 1,
        key: np.ndarray | None = None,
    ) -> Contacts:
        """The record of n contacts from what a query knows of them; every column is n rows, or one value for all.

        Args:
            point_a, normal: (n, 3).
            point_b: (n, 3); None means where `point_a` is.
            gap: None means the offset of the points along the normal.
            key: None means of kind, side and features (`contact_key`), and 0 where a feature has no number (-1).
        """
        count = len(point_a)
        point_a, normal = np.ascontiguousarray(point_a), np.ascontiguousarray(normal)
        point_b = point_a.copy() if point_b is None else np.ascontiguousarray(point_b)
        if gap is None:
            gap = np.einsum("ij,ij->i", point_a - point_b, normal)
        kind, vertex_on = _rows(kind, count, np.uint8), _rows(vertex_on, count, np.uint8)
        feature_a, feature_b = _rows(feature_a, count, np.int32), _rows(feature_b, count, np.int32)
        if key is None:
            swapped = vertex_on > 0
            first, second = np.where(swapped, feature_b, feature_a), np.where(swapped, feature_a, feature_b)
            key = np.where((first < 0) | (second < 0), 0, contact_key(kind, vertex_on, first, second))
        return Contacts(
            query=_rows(query, count, np.int32),
            time=_rows(time, count, np.float64),
            point_a=point_a,
            point_b=point_b,
            normal=normal,
            gap=gap,
            body_a=_rows(body_a, count, np.int32),
            body_b=_rows(body_b, count, np.int32),
            feature_a=feature_a,
            feature_b=feature_b,
            weights=_rows(weights, count, np.float64, 4),
            kind=kind,
            vertex_on=vertex_on,
            key=key,
        )

    @staticmethod
    def joined(parts: Sequence[Contacts]) -> Contacts:
        """The contacts of all parts, in order."""
        return Contacts(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Contacts)})

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows) -> Contacts:
        """The contacts chosen by a slice, an index array or a mask."""
        rows = np.atleast_1d(np.arange(len(self))[rows])
        return Contacts(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def __repr__(self) -> str:
        if not len(self):
            return "Contacts(none)"
        if not isinstance(self.kind, np.ndarray):  # a text is no reason to fetch them
            return f"Contacts({len(self)}, on {self.kind.device})"
        kinds = ", ".join(
            f"{count} {Kind(kind)}" for kind, count in zip(*np.unique(self.kind, return_counts=True), strict=True)
        )
        return f"Contacts({len(self)}: {kinds}; time {self.time.min():.6g} to {self.time.max():.6g})"

    def _repr_html_(self) -> str:
        """For notebooks: what meets, and the first contact."""
        return view_room().html(repr(self), contact_facts(self))


class DeferredContacts(Contacts):
    """Contacts whose columns are made when one of them is first read, by `make()`, once however many threads read."""

    @staticmethod
    def by(make: Callable[[], Contacts]) -> DeferredContacts:
        """The contacts that `make` will make."""
        deferred = object.__new__(DeferredContacts)
        deferred.__dict__["_pending"] = Lock(), make
        return deferred

    def __getattr__(self, name: str) -> Any:  # asked only for what is not there
        if name not in Contacts.__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        pending = self.__dict__.get("_pending")
        if pending is not None:
            lock, make = pending
            with lock:
                if "_pending" in self.__dict__:  # else another thread was first
                    self.__dict__.update(vars(make()))
                    del self.__dict__["_pending"]
        return self.__dict__[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return Contacts, tuple(getattr(self, f.name) for f in fields(Contacts))


def contact_facts(contacts: Contacts) -> dict[str, str]:
    """What a notebook shows of the earliest contact: nothing where there is none, or where it is on a device."""
    if not len(contacts) or not isinstance(contacts.time, np.ndarray):
        return {}
    first = int(contacts.time.argmin())
    point, normal = (", ".join(f"{x:.6g}" for x in v[first]) for v in (contacts.point_b, contacts.normal))
    features = f"{contacts.feature_a[first]} and {contacts.feature_b[first]}"
    return {
        "features": f"{Kind(contacts.kind[first])} {features}",
        "bodies": f"{contacts.body_a[first]} and {contacts.body_b[first]}",
        "point": f"({point}) m",
        "normal": f"({normal})",
        "gap": f"{contacts.gap[first]:.6g} m",
    }


def contact_key(kind, vertex_on, first, second) -> np.ndarray:
    """A name for a pair of features that is stable across steps: kind, side, and both numbers (below 2^29)."""
    side = (np.asarray(kind, np.int64) << 1) | np.asarray(vertex_on, np.int64)
    return (side << 58) | (np.asarray(first, np.int64) << 29) | np.asarray(second, np.int64)


def empty_columns(struct: Any, count: int, device: wp.Device) -> Any:
    """A `wp.struct` of arrays with room for n rows, on a device."""
    columns = struct()
    for name, variable in struct.vars.items():
        setattr(columns, name, wp.empty(count, dtype=variable.type.dtype, device=device))
    return columns


def columns_of(columns: Any) -> dict[str, wp.array]:
    """The arrays of such a struct by their names."""
    return {name: getattr(columns, name) for name in columns._cls.vars}
