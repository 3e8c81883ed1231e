"""What can be switched in the interval engine of the thesis: its experiments are settings of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tangere.published.redon_intervals.moving_boxes import LITERAL, MOST_DEPTH, NEVER, SYMMETRIC, Subdivision
from tangere.query.first_contact.mixed.options import BisectionOptions
from tangere.runtime.errors import InputError

_CRITERIA = {"literal": LITERAL, "symmetric": SYMMETRIC, "never": NEVER}


@dataclass(frozen=True, kw_only=True)
class IntervalOptions(BisectionOptions):
    """Settings of the interval engine (Redon 2002, sections 3.3, 3.5 and 4.2 to 4.4).

    Those of the elementary tests are the settings of `BisectionOptions`.

    Args:
        order: "time" visits first the boxes that can meet first, and searches on from when they can; "plain" tests
            boxes when they come up, over all the time up to the first contact so far, as printed.
        final_test, initial_test: in plain order, test boxes at the end, then at the start, before the continuous test.
        discrete_axes, continuous_axes: 15, or 6 for the face normals alone.
        criterion, k, depth: when to halve the interval of two boxes (stage 2), and how often at most.
        pass_time: search only until the first contact so far.
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
    recession: Literal["off", "elementary", "hierarchical"] = "off"
    stamps: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in (
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
