"""What can be switched in the interval engine, and what it counts: the thesis's experiments are settings of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.query.first_contact.interval.elementary import PRINTED_MEMBERSHIP, SOUND_MEMBERSHIP, Precision
from tangere.query.first_contact.interval.moving_boxes import LITERAL, MOST_DEPTH, NEVER, SYMMETRIC, Subdivision
from tangere.runtime import InputError

__all__ = ["Counters", "IntervalOptions"]

_CRITERIA = {"literal": LITERAL, "symmetric": SYMMETRIC, "never": NEVER}
_MEMBERSHIP = {"sound": SOUND_MEMBERSHIP, "printed": PRINTED_MEMBERSHIP}


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """Settings of the interval engine (specs/redon-rigid-ccd-and-dynamics C8, C10-C12, C14).

    Args:
        order: "time" visits first the boxes that can meet first, and searches on from when they can; "plain" tests
            boxes when they come up, over all the time up to the first contact so far, as printed.
        final_test, initial_test: in plain order, test boxes at the end, then at the start, before the continuous test.
        discrete_axes, continuous_axes: 15, or 6 for the face normals alone.
        criterion, k, depth: when to halve the interval of two boxes (stage 2), and how often at most.
        pass_time: search only until the first contact so far.
        membership: "sound", or "printed", which can miss contacts.
        time_tolerance: longest interval of time that may be reported.
        tolerance: how far points may move in it [m]; None means 1e-6 of the extent of the query.
        most_intervals: of one pair of triangles; beyond it they count as touching.
        recession: cull what moves away: "off", "elementary" (triangles), or "hierarchical" (boxes).
        stamps: ask each box and each pair of bodies only once whether it recedes.
    """

    order: Literal["time", "plain"] = "time"
    final_test: bool = True
    initial_test: bool = True
    discrete_axes: Literal[6, 15] = 15
    continuous_axes: Literal[6, 15] = 15
    criterion: Literal["literal", "symmetric", "never"] = "symmetric"
    k: float = 0.15
    depth: int = 6
    pass_time: bool = True
    membership: Literal["sound", "printed"] = "sound"
    time_tolerance: float = 1.0
    tolerance: float | None = None
    most_intervals: int = 100_000
    recession: Literal["off", "elementary", "hierarchical"] = "off"
    stamps: bool = True

    def __post_init__(self) -> None:
        for name, allowed in (
            ("order", ("time", "plain")),
            ("discrete_axes", (6, 15)),
            ("continuous_axes", (6, 15)),
            ("criterion", tuple(_CRITERIA)),
            ("membership", tuple(_MEMBERSHIP)),
            ("recession", ("off", "elementary", "hierarchical")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {allowed}, not {getattr(self, name)!r}")
        if not 0 <= self.depth <= MOST_DEPTH:
            raise InputError(f"depth must be from 0 to {MOST_DEPTH}, not {self.depth!r}")
        if not (self.k >= 0.0 and np.isfinite(self.k)):
            raise InputError(f"k must not be negative, not {self.k!r}")
        if not self.time_tolerance > 0.0:
            raise InputError(f"time_tolerance must be positive, not {self.time_tolerance!r}")
        if self.tolerance is not None and not (self.tolerance > 0.0 and np.isfinite(self.tolerance)):
            raise InputError(f"tolerance must be positive, not {self.tolerance!r}")
        if not self.most_intervals > 0:
            raise InputError(f"most_intervals must be positive, not {self.most_intervals!r}")

    @staticmethod
    def printed(**changes: Any) -> IntervalOptions:
        """The engine as printed: plain order, both pre-tests, criterion (3.13), k = 0.15, membership at one instant.

        The time tolerance is 1e-4 of the step, which the thesis does not give (specs section 6).
        """
        settings: dict[str, Any] = {
            "order": "plain",
            "criterion": "literal",
            "membership": "printed",
            "time_tolerance": 1e-4,
        }
        return IntervalOptions(**(settings | changes))

    def subdivision(self) -> Any:
        how: Any = Subdivision()
        how.criterion, how.depth = int(_CRITERIA[self.criterion]), self.depth
        how.k, how.axes = self.k, self.continuous_axes
        return how

    def precision(self, extent: float) -> Any:
        precision: Any = Precision()
        precision.space = 1e-6 * extent if self.tolerance is None else self.tolerance
        precision.time, precision.most = self.time_tolerance, self.most_intervals
        precision.membership = int(_MEMBERSHIP[self.membership])
        return precision


@dataclass(frozen=True)
class Counters:
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
    def of(rows: np.ndarray) -> Counters:
        """The sum over queries of a kernel's table."""
        return Counters(*(int(total) for total in rows.reshape(-1, len(COLUMNS)).sum(axis=0)))


COLUMNS = tuple(Counters.__dataclass_fields__)
#: Places in the kernels' table of counters.
FINAL, INITIAL, CONTINUOUS, INTERVALS, EDGE_EDGE, VERTEX_FACE, FACE_VERTEX, RECESSION, LEAF_INTERVALS, BOXES = (
    wp.constant(i) for i in range(len(COLUMNS))
)
