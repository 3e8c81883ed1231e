"""What can be switched in the interval engine of the thesis: its experiments are settings of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tangere.published.redon_intervals.moving_boxes import LITERAL, MOST_DEPTH, NEVER, SYMMETRIC, Subdivision
from tangere.query.first_contact.mixed.narrow_phase import Precision
from tangere.runtime.errors import InputError

_CRITERIA = {"literal": LITERAL, "symmetric": SYMMETRIC, "never": NEVER}


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """Settings of the interval engine (Redon 2002, sections 3.3, 3.5 and 4.2 to 4.4).

    Args:
        membership: of the elementary tests: "sound", or "printed", which can miss contacts.
        time_tolerance: longest interval of time that may be reported.
        tolerance: how far points may move in it [m]; None means 1e-6 of the extent of the query.
        most_intervals: of one pair of triangles; beyond it they count as touching.
        order: "time" visits first the boxes that can meet first, and searches on from when they can; "plain" tests
            boxes when they come up, over all the time up to the first contact so far, as printed.
        final_test, initial_test: in plain order, test boxes at the end, then at the start, before the continuous test.
        discrete_axes, continuous_axes: 15, or 6 for the face normals alone.
        criterion, k, depth: when to halve the interval of two boxes (stage 2), and how often at most.
        pass_time: search only until the first contact so far.
        recession: cull what moves away: "off", "elementary" (triangles), or "hierarchical" (boxes).
        stamps: ask each box and each pair of bodies only once whether it recedes.
    """

    membership: Literal["sound", "printed"] = "sound"
    time_tolerance: float = 1.0
    tolerance: float | None = None
    most_intervals: int = 100_000
    order: Literal["time", "plain"] = "time"
    final_test: bool = True
    initial_test: bool = True
    discrete_axes: Literal[6, 15] = 15
    continuous_axes: Literal[6, 15] = 15
    criterion: Literal["literal", "symmetric", "never"] = "symmetric"
    k: float = 0.15
    depth: int = 6
    pass_time: bool = True
    recession: Literal["off", "elementary", "hierarchical"] = "off"
    stamps: bool = True

    def __post_init__(self) -> None:
        if not self.time_tolerance > 0.0:
            raise InputError(f"time_tolerance must be positive, not {self.time_tolerance!r}")
        if self.tolerance is not None and not (self.tolerance > 0.0 and np.isfinite(self.tolerance)):
            raise InputError(f"tolerance must be positive, not {self.tolerance!r}")
        if not self.most_intervals > 0:
            raise InputError(f"most_intervals must be positive, not {self.most_intervals!r}")
        for name, allowed in (
            ("membership", ("sound", "printed")),
            ("order", ("time", "plain")),
            ("discrete_axes", (6, 15)),
            ("continuous_axes", (6, 15)),
            ("criterion", tuple(_CRITERIA)),
            ("recession", ("off", "elementary", "hierarchical")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {allowed}, not {getattr(self, name)!r}")
        if not 0 <= self.depth <= MOST_DEPTH:
            raise InputError(f"depth must be from 0 to {MOST_DEPTH}, not {self.depth!r}")
        if not (self.k >= 0.0 and np.isfinite(self.k)):
            raise InputError(f"k must not be negative, not {self.k!r}")

    @staticmethod
    def printed(**changes: Any) -> IntervalOptions:
        """The engine as printed: plain order, both pre-tests, criterion (3.13), k = 0.15, membership at one instant.

        The time tolerance is 1e-4 of the step, which the thesis does not give.
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
        return precision
