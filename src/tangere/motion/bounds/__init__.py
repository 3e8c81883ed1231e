"""Bounds of a motion: intervals over part of a step, and rates that hold for the whole step."""

from tangere.motion.bounds.interval import (
    IntervalBox,
    MotionSpan,
    apart,
    box_bounds,
    carried,
    carried_vector,
    hull_of,
    linear_bounds,
    point_bounds,
    span_of,
    vector_bounds,
)
from tangere.motion.bounds.rates import BodyState, MotionBounds, clock_time, motion_bounds_of, state_of

__all__ = [
    "BodyState",
    "IntervalBox",
    "MotionBounds",
    "MotionSpan",
    "apart",
    "box_bounds",
    "carried",
    "carried_vector",
    "clock_time",
    "hull_of",
    "linear_bounds",
    "motion_bounds_of",
    "point_bounds",
    "span_of",
    "state_of",
    "vector_bounds",
]
