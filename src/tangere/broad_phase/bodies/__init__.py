"""Which of many rigidly moving bodies may meet."""

from tangere.broad_phase.bodies.body_pairs import (
    SLICES,
    BodyBroadPhase,
    box_pairs,
    first_meetings,
    rest_still,
    swept_boxes,
)

__all__ = [
    "SLICES",
    "BodyBroadPhase",
    "box_pairs",
    "first_meetings",
    "rest_still",
    "swept_boxes",
]
