"""Bounds of a motion: intervals over part of a step, and rates that hold for the whole step."""

from tangere.motion.bounds.interval_bounds import (
    IntervalBox,
    MotionSpan,
    box_bounds,
    boxes_apart,
    linear_bounds,
    point_bounds,
    point_box_bounds,
    span_of,
    union_of_boxes,
    vector_bounds,
    vector_box_bounds,
)
from tangere.motion.bounds.motion_bounds import (
    BodyState,
    MotionBounds,
    SteadyMotion,
    is_steady,
    motion_bounds_of,
    reparametrised_time,
    state_of,
    steady_of,
    steady_state,
)

__all__ = [
    "BodyState",
    "IntervalBox",
    "MotionBounds",
    "MotionSpan",
    "SteadyMotion",
    "box_bounds",
    "boxes_apart",
    "is_steady",
    "linear_bounds",
    "motion_bounds_of",
    "point_bounds",
    "point_box_bounds",
    "reparametrised_time",
    "span_of",
    "state_of",
    "steady_of",
    "steady_state",
    "union_of_boxes",
    "vector_bounds",
    "vector_box_bounds",
]
