"""What can be switched in the search by cubics and sphere trees, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from tangere.runtime.errors import InputError


@dataclass(frozen=True)
class Switches:
    """Which savings are used. The time of contact is the same for all settings; the counts are not.

    Args:
        leaf_radius: of the spheres of both trees [m]; None means a fiftieth of the smaller body's extent.
        label_table: skip pairs of nodes whose labels have been done (Redon 2002, chapter 2).
        pair_tables: test each pair of features once.
        vertex_cache: keep the paths of vertices for the whole search.
        prefilters: reject and accept spheres by simpler tests before the quartic (Redon 2002, chapter 2).
        pass_time: pass the earliest time found on to all tests.
        largest_turn: motions other than `TanScrew` are replaced by tangent screws of at most this angle [rad].
    """

    leaf_radius: float | None = None
    label_table: bool = True
    pair_tables: bool = True
    vertex_cache: bool = True
    prefilters: bool = True
    pass_time: bool = True
    largest_turn: float = 1.0

    def __post_init__(self) -> None:
        if self.leaf_radius is not None and not 0.0 < self.leaf_radius < np.inf:
            raise InputError(f"leaf_radius must be positive and finite, not {self.leaf_radius!r}")
        if not 0.0 < self.largest_turn <= 3.0:
            raise InputError(f"largest_turn must be above 0 and at most 3 rad, not {self.largest_turn!r}")


@dataclass(frozen=True)
class Counts:
    """What one search did. The order is that of the kernel's counters."""

    spheres: int = 0  #: pairs of spheres tested
    rejected_by_path: int = 0  #: … of them by the cylinders and planes round the path
    accepted_at_ends: int = 0  #: … at the start or the end
    quadratics: int = 0  #: … as pure turns or translations
    quartics: int = 0  #: … by the quartic
    labels_skipped: int = 0  #: pairs of nodes that the label table knew
    leaf_pairs: int = 0  #: pairs of leaves whose features were tested
    edge_edge: int = 0  #: elementary tests, by kind
    vertex_face: int = 0
    face_vertex: int = 0
    pairs_skipped: int = 0  #: elementary tests that the tables of pairs knew
    transforms: int = 0  #: paths of vertices computed

    @property
    def tests(self) -> int:
        """Sphere tests and elementary tests together."""
        return self.spheres + self.edge_edge + self.vertex_face + self.face_vertex

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)))
