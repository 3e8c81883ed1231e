"""Which parts of an assembly clash, and how: rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from tangere.query.contacts import Contacts, Kind
from tangere.runtime import text_below, view_room


class ClashKind(StrEnum):
    """How two parts clash, the worst first."""

    DUPLICATE = "duplicate"  #: the same shape in the same place
    INSIDE = "inside"  #: one, or a piece of it, is inside the other, and their surfaces do not meet
    HARD = "hard"  #: deeper in each other than the skin
    TOUCHING = "touching"  #: they meet, but not without the skin of either
    NEAR = "near"  #: nearer than the clearance


#: What is wrong however the assembly is meant.
FAULTS = (ClashKind.DUPLICATE, ClashKind.INSIDE, ClashKind.HARD)


@dataclass(frozen=True, eq=False)
class Clash:
    """Two parts that clash."""

    a: int  #: number of the first part
    b: int  #: … and of the second, which is larger
    name_a: str
    name_b: str
    kind: ClashKind
    distance: float  #: of their surfaces, from above [m]; 0 where they meet, NaN where farther than the clearance
    distance_lower: float  #: … and from below
    depth_lower: float  #: how deep they are in each other, from below [m]; NaN where that was not asked for
    depth_upper: float  #: … and from above
    escape: np.ndarray  #: (3,) a translation of the first that certainly parts them [m]; NaN where not asked for
    point: np.ndarray  #: (3,) in the world: the deepest found, or where they touch or are nearest [m]
    normal: np.ndarray  #: (3,) unit, pushes the first part away from the second; 0 of duplicates
    note: str = ""  #: what could not be decided, and why

    def __repr__(self) -> str:
        return f"Clash({self.name_a!r}, {self.name_b!r}: {self.told})"

    @property
    def told(self) -> str:
        """The kind, and how much."""
        if np.isfinite(self.depth_upper) and self.kind in FAULTS:
            return f"{self.kind}, {text_below(self.depth_lower, 3)} to {self.depth_upper:.3g} m deep"
        return f"{self.kind}, {self.distance:.3g} m" if self.kind == ClashKind.NEAR else str(self.kind)

    def as_data(self) -> dict[str, Any]:
        """The row in the types of JSON."""
        return {
            "a": self.name_a,
            "b": self.name_b,
            "kind": str(self.kind),
            "distance": self.distance,
            "distance_lower": self.distance_lower,
            "depth_lower": self.depth_lower,
            "depth_upper": self.depth_upper,
            "escape": self.escape.tolist(),
            "point": self.point.tolist(),
            "normal": self.normal.tolist(),
            "note": self.note,
        }


@dataclass(frozen=True, eq=False)
class Clashes:
    """The clashes of an assembly, by kind, the worst first, then by number of the parts."""

    rows: tuple[Clash, ...]
    clearance: float  #: nearer than this is near [m]
    skin: float  #: shallower than this is touching [m]
    touch: float  #: surfaces nearer than this meet: what is not told from rounding of single precision [m]
    chord_error: float  #: of the facets of the parts [m]
    parts: int
    compared: int  #: pairs whose boxes are near
    open_parts: tuple[str, ...]  #: parts without an inside: closed, oriented surfaces have one
    turned_parts: tuple[str, ...]  #: parts whose triangles all faced inwards, and were turned round for this
    timings: dict[str, float] = field(default_factory=dict)  #: seconds by phase

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Clash]:
        return iter(self.rows)

    def __getitem__(self, row: int) -> Clash:
        return self.rows[row]

    def __bool__(self) -> bool:
        """True where anything is wrong: a duplicate, one inside the other, a hard clash, or too little clearance."""
        return any(row.kind != ClashKind.TOUCHING for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
        return {str(kind): sum(row.kind == kind for row in self.rows) for kind in ClashKind}

    def of(self, *kinds: ClashKind | str) -> tuple[Clash, ...]:
        """The rows of these kinds."""
        return tuple(row for row in self.rows if row.kind in kinds)

    def contacts(self) -> Contacts:
        """The rows as contacts, with the numbers of the parts as bodies; `query` is the row."""
        if not self.rows:
            return Contacts()
        points, normals = (np.stack([getattr(row, name) for row in self.rows]) for name in ("point", "normal"))
        gaps = np.array([-np.nan_to_num(row.depth_lower) if row.kind in FAULTS else row.distance for row in self.rows])
        return Contacts.of(
            point_a=points + 0.5 * gaps[:, None] * normals,
            point_b=points - 0.5 * gaps[:, None] * normals,
            normal=normals,
            gap=gaps,
            kind=np.array([Kind.INSIDE if row.kind == ClashKind.INSIDE else Kind.NONE for row in self.rows], np.uint8),
            query=np.arange(len(self.rows), dtype=np.int32),
            body_a=np.array([row.a for row in self.rows], np.int32),
            body_b=np.array([row.b for row in self.rows], np.int32),
        )

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {kind}" for kind, count in self.counts.items() if count) or "none"
        return f"Clashes({told}; {self.parts} parts, skin {self.skin:.3g} m)"

    def _repr_html_(self) -> str:
        """For notebooks: how many of each kind, and the worst."""
        facts: dict[str, Any] = {"parts": self.parts, "pairs compared": self.compared}
        facts |= {kind: count for kind, count in self.counts.items() if count}
        facts |= {"skin": f"{self.skin:.3g} m", "chord error": f"{self.chord_error:.3g} m"}
        facts |= {f"{row.name_a} and {row.name_b}": row.told for row in self.rows[:8]}
        return view_room().html(repr(self), facts)
